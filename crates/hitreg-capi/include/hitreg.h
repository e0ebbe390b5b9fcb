/* hitreg: records the netcode of action games, and reads and writes what builds make of it.
 *
 * Made from crates/hitreg-capi by cbindgen; docs/recorder.md says how to use it.
 *
 * Every function that gives back a hitreg_code says HITREG_OK, or why not; hitreg_last_error() has the sentence. Structs begin with
 * their size: set it to sizeof the struct. Threads: a stream belongs to the thread that first pushes into it; a recorder, a
 * description and a trace may be used by any one thread at a time; a log by any number at once. Text is UTF-8. */

#ifndef HITREG_H
#define HITREG_H

#include <stddef.h>
#include <stdint.h>

// What a field, or a column, holds.
#define HITREG_F32 0

// A signed number.
#define HITREG_I32 1

// An unsigned number; flags, too.
#define HITREG_U32 2

// Movement: predicted by clients, compared on ack.
#define HITREG_MOVEMENT 0

// Weapons: predicted by clients that predict weapons.
#define HITREG_WEAPONS 1

// The server's alone, such as health.
#define HITREG_STATUS 2

// A field of which no more is known than its kind.
#define HITREG_PLAIN 0

// A coordinate of a place.
#define HITREG_POSITION 1

// A component of a velocity.
#define HITREG_VELOCITY 2

// An angle in degrees.
#define HITREG_ANGLE 3

// A component of a direction of length 1.
#define HITREG_DIRECTION 4

// Something counted.
#define HITREG_COUNTER 5

// Yes or no, or several as bits.
#define HITREG_FLAG 6

// One of a few things, by number.
#define HITREG_NAME 7

// A time in milliseconds, unless it says another unit.
#define HITREG_TIME 8

// Kinds of records, for `hitreg_log_count`: usercmds of a player.
#define HITREG_USERCMDS 0

// Packets that reached the server from a player.
#define HITREG_REACHED 1

// What the server did about a player's usercmds.
#define HITREG_RAN 2

// Ticks; the player does not matter.
#define HITREG_TICKS 3

// States; the player does not matter.
#define HITREG_STATES 4

// Packets that a player sent.
#define HITREG_SENT 5

// Snapshots that were sent to a player.
#define HITREG_SNAPSHOTS 6

// Snapshots that arrived at a player.
#define HITREG_RECEIVED 7

// Times when a player came or went.
#define HITREG_PRESENCES 8

// How a call went.
typedef enum {
  // As asked.
  HITREG_OK = 0,
  // A handle or pointer is null.
  HITREG_NULL = 1,
  // A struct does not say a size that this library knows: set `size` to `sizeof` it, and build with this library's header.
  HITREG_SIZE = 2,
  // Text is not UTF-8, or an enum has no such value, or a number does not fit its field.
  HITREG_VALUE = 3,
  // The record does not fit the description: no such player, class or kind, or another width.
  HITREG_MISFIT = 4,
  // It comes later than the recorder's window allows.
  HITREG_LATE = 5,
  // The recorder cannot keep up; the record is lost, and the log says so.
  HITREG_OVERRUN = 6,
  // The recording, or the handle's work, is over.
  HITREG_FINISHED = 7,
  // The recording cannot be written any more.
  HITREG_STOPPED = 8,
  // The description is not one.
  HITREG_DESCRIPTION = 9,
  // A file cannot be read or written.
  HITREG_FILE = 10,
  // There is no such row.
  HITREG_NO_ROW = 11,
  // The stream belongs to another thread.
  HITREG_THREAD = 12,
  // The library has a fault. Please tell its makers.
  HITREG_PANIC = 13,
} hitreg_code;

// A description of a session. `hitreg_recorder_create` uses it up; it is freed all the same.
typedef struct hitreg_about hitreg_about;

// A log that was read. Nothing changes it: any number of threads may look at it at once.
typedef struct hitreg_log hitreg_log;

// A log being written. Any thread may use it, one at a time.
typedef struct hitreg_recorder hitreg_recorder;

// What a thread pushes into. It belongs to the thread that first pushes; `hitreg_stream_release` lets another have it.
typedef struct hitreg_stream hitreg_stream;

// A trace being put together: tables, one after the other, each with its columns. One thread at a time.
typedef struct hitreg_trace hitreg_trace;

// How a recorder goes about it. Zero is the usual value of each field.
typedef struct {
  // `sizeof(hitreg_options)`.
  uint32_t size;
  // How late a record may be and still be put into its place: 250 ms.
  uint32_t window_ms;
  // How many records a stream holds that nobody has taken from it yet: 4096.
  uint32_t ring;
  // 1: wait where otherwise records or chunks would be dropped; for sessions that do not run in real time.
  uint32_t patient;
  // After how many seconds of the session a file gives way to the next, `NAME-0001.hitlog` and so on.
  uint32_t rotate_s;
  // After how many MiB.
  uint32_t rotate_mib;
} hitreg_options;

// What became of what was recorded.
typedef struct {
  // `sizeof(hitreg_written)`.
  uint32_t size;
  // Nothing yet.
  uint32_t reserved;
  // Records that were written.
  uint64_t records;
  // Records that were lost because a stream was full.
  uint64_t lost_records;
  // Chunks that were dropped because the disk was too slow.
  uint64_t dropped_chunks;
  // Records that came too late.
  uint64_t late_records;
} hitreg_written;

// A client frame's input.
typedef struct {
  // `sizeof(hitreg_usercmd)`.
  uint32_t size;
  // Its number, from 1.
  uint32_t seq;
  // When it was made, in µs of the session; on a server alone, when it came.
  int64_t at_us;
  // The server time that its client's clock showed.
  int64_t server_time_us;
  // How far behind that time the client drew the others.
  uint32_t lerp_ms;
  // How much time it covers, up to 255.
  uint32_t msec;
  // Degrees; down is positive.
  float pitch;
  // Degrees, counter-clockwise from +x.
  float yaw;
  // Degrees.
  float roll;
  // Intended speed ahead, in units/s.
  float forwardmove;
  // The same to the right.
  float sidemove;
  // The same upwards.
  float upmove;
  // Pressed buttons, up to 16 bits.
  uint32_t buttons;
  // A request for once, up to 255.
  uint32_t impulse;
  // 32 bits of the game's own; `hitreg_push_usercmd_bytes` takes more.
  uint32_t extra;
  // Nothing yet.
  uint32_t reserved;
} hitreg_usercmd;

// One value of a row of a kind of the game's own: `number`, or `real` where the column is `HITREG_F32`.
typedef struct {
  // 0: it is `number`; 1: it is `real`.
  uint32_t is_real;
  // A measure.
  float real;
  // A whole number.
  int64_t number;
} hitreg_value;

// A packet that a client sent.
typedef struct {
  // `sizeof(hitreg_packet)`.
  uint32_t size;
  // Its number, from 1.
  uint32_t number;
  // When it left.
  int64_t at_us;
  // The newest usercmd in it.
  uint32_t newest;
  // How many usercmds are in it, up to 255.
  uint32_t count;
  // The newest snapshot that the client had; 0 is none.
  uint32_t ack;
  // The bytes of its datagrams.
  uint32_t bytes;
} hitreg_packet;

// A snapshot that the server sent to a player.
typedef struct {
  // `sizeof(hitreg_snapshot)`.
  uint32_t size;
  // Its number, from 1.
  uint32_t seq;
  // When it left.
  int64_t at_us;
  // The server time that it tells.
  int64_t server_time_us;
  // The tick whose state it carries.
  uint32_t tick;
  // The newest usercmd that had run; 0 is none.
  uint32_t ack;
  // The bytes of its datagrams.
  uint32_t bytes;
  // How many updates were held back before it.
  uint32_t choked;
} hitreg_snapshot;

// A sound or sight that a snapshot tells.
typedef struct {
  // `sizeof(hitreg_effect)`.
  uint32_t size;
  // Which one, in the game's numbering, up to 255.
  uint32_t kind;
  // The entity that it comes from.
  uint32_t entity;
  // Whether its player's client plays it without being told.
  uint32_t predictable;
  // Where.
  float x;
  // Where.
  float y;
  // Where.
  float z;
  // Nothing yet.
  uint32_t reserved;
} hitreg_effect;

// A shot.
typedef struct {
  // `sizeof(hitreg_shot)`.
  uint32_t size;
  // The usercmd that fired.
  uint32_t command;
  // The client frame, or the server's tick.
  int64_t at_us;
  // Which shot of that usercmd, from 0.
  uint32_t index;
  // 0 hit, 1 hit the world, 2 missed, 3 already dead, 4 launched.
  uint32_t reason;
  // The entity that was hit, or -1.
  int32_t target;
  // In which part of the body.
  uint32_t hitgroup;
  // Health points.
  int32_t damage;
  // How far back the targets stood that it was judged against; 0 for a prediction.
  uint32_t rewound_us;
} hitreg_shot;

// A player who came or went.
typedef struct {
  // `sizeof(hitreg_presence)`.
  uint32_t size;
  // The first tick with it, or the first without.
  uint32_t tick;
  // When.
  int64_t at_us;
  // 0 joined, 1 left.
  uint32_t left;
  // Nothing yet.
  uint32_t reserved;
} hitreg_presence;

// What the server did about a usercmd.
typedef struct {
  // `sizeof(hitreg_execution)`.
  uint32_t size;
  // Its number.
  uint32_t command;
  // In which tick.
  uint32_t tick;
  // 0 run, 1 stood in, 2 missing, 3 late, 4 over budget.
  uint32_t how;
} hitreg_execution;

// A packet's way.
typedef struct {
  // `sizeof(hitreg_arrival)`.
  uint32_t size;
  // The packet.
  uint32_t number;
  // When it arrived.
  int64_t at_us;
} hitreg_arrival;

// A tick.
typedef struct {
  // `sizeof(hitreg_tick_end)`.
  uint32_t size;
  // Its number, from 1.
  uint32_t tick;
  // When it was.
  int64_t at_us;
  // The hash of the state after it.
  uint64_t hash;
  // Whether there is one.
  uint32_t has_hash;
  // Nothing yet.
  uint32_t reserved;
} hitreg_tick_end;

// A state of an entity, without its cells.
typedef struct {
  // `sizeof(hitreg_state)`.
  uint32_t size;
  // After which tick.
  uint32_t tick;
  // The only player who was sent it, or -1.
  int32_t viewer;
  // The entity.
  uint32_t entity;
  // Its class.
  uint32_t class_number;
  // How many cells it has.
  uint32_t cells;
} hitreg_state;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A sentence about the last call of this thread that failed; empty if none has. It stays until the next that fails, or until the
// thread ends.
const char *hitreg_last_error(void);

// Begins the description of a session of a game. Null when the name is no text; `hitreg_last_error` says so.
//
// # Safety
// `game` is null or text with a zero at its end.
hitreg_about *hitreg_about_new(const char *game);

// Frees a description; null is none.
//
// # Safety
// `about` is null, or a description that was not freed.
void hitreg_about_free(hitreg_about *about);

// How often the server ticks, 1 to 1,000 times a second.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_tick_hz(hitreg_about *about, uint32_t hz);

// A setting, by the game's own name for it.
//
// # Safety
// `about` is null or a description, `key` and `value` null or text.
hitreg_code hitreg_about_setting(hitreg_about *about, const char *key, const char *value);

// The map: its name, and its bytes if the log is to need no other file.
//
// # Safety
// `about` is null or a description, `name` null or text, `bytes` null or so many bytes.
hitreg_code hitreg_about_map(hitreg_about *about, const char *name, const uint8_t *bytes, size_t length);

// Where the game's random numbers start from.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_seed(hitreg_about *about, uint64_t seed);

// The next player; the first is number 0. Give no nicknames where nobody asked for that.
//
// # Safety
// `about` is null or a description, `name` null or text.
hitreg_code hitreg_about_player(hitreg_about *about, const char *name);

// Begins the next class of entities; the first is number 0. Its fields follow.
//
// # Safety
// `about` is null or a description, `name` null or text.
hitreg_code hitreg_about_class(hitreg_about *about, const char *name);

// The next field of the class that was begun last: `HITREG_F32`…, `HITREG_MOVEMENT`…, `HITREG_POSITION`…; `unit` may be null.
//
// # Safety
// `about` is null or a description, `name` and `unit` null or text.
hitreg_code hitreg_about_field(hitreg_about *about,
                               const char *name,
                               uint32_t kind,
                               uint32_t scope,
                               uint32_t meaning,
                               const char *unit);

// A field of the game's own that usercmds have besides the usual ones (`hitreg_push_usercmd_with`): as `hitreg_about_field`.
//
// # Safety
// `about` is null or a description, `name` and `unit` null or text.
hitreg_code hitreg_about_usercmd_field(hitreg_about *about,
                                       const char *name,
                                       uint32_t kind,
                                       uint32_t meaning,
                                       const char *unit);

// Begins the next kind of record of the game's own; the first is number 0. Its columns follow.
//
// # Safety
// `about` is null or a description, `name` null or text.
hitreg_code hitreg_about_kind(hitreg_about *about, const char *name);

// The next column of the kind that was begun last: `HITREG_F32`, or any number.
//
// # Safety
// `about` is null or a description, `name` null or text.
hitreg_code hitreg_about_column(hitreg_about *about, const char *name, uint32_t kind);

// Usercmds carry bytes of their own (`hitreg_push_usercmd_bytes`).
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_usercmd_bytes(hitreg_about *about);

// Usercmds are recorded by the server as they reach it.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_usercmds_as_received(hitreg_about *about);

// The log holds one side of a session by that side's clock: `player` is the client's, or -1 for the server. All sides say the
// same `session`.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_side(hitreg_about *about,
                              uint64_t session,
                              int32_t player);

// Begins a log at `path`, which is `PATH.part` until `hitreg_recorder_finish`. `options` may be null.
//
// # Safety
// `path` is null or text, `about` null or a description, `options` null or as large as it says, `recorder` null or a place.
hitreg_code hitreg_recorder_create(const char *path,
                                   hitreg_about *about,
                                   const hitreg_options *options,
                                   hitreg_recorder **recorder);

// Keeps the last `seconds` of a session in memory, to be written by `hitreg_recorder_save` alone. `options` may be null.
//
// # Safety
// `about` is null or a description, `options` null or as large as it says, `recorder` null or a place.
hitreg_code hitreg_recorder_keep_last(uint32_t seconds,
                                      hitreg_about *about,
                                      const hitreg_options *options,
                                      hitreg_recorder **recorder);

// Writes what `hitreg_recorder_keep_last` has kept, with all that was pushed before, as a log that begins after a tick. The recording
// goes on.
//
// # Safety
// `recorder` is null or a recorder, `path` null or text.
hitreg_code hitreg_recorder_save(const hitreg_recorder *recorder,
                                 const char *path);

// Begins a trace: a build that plays a log pushes what happens as it would when it records, and `hitreg_recorder_finish` writes the
// tables. A trace that stands there is replaced.
//
// # Safety
// `path` is null or text, `about` null or a description, `log` null or a log, `recorder` null or a place.
hitreg_code hitreg_recorder_trace(const char *path,
                                  hitreg_about *about,
                                  const hitreg_log *log,
                                  hitreg_recorder **recorder);

// Ends the log: all that was pushed is written, and the file gets its name. `written` may be null. The handle is still to be freed.
//
// # Safety
// `recorder` is null or a recorder, `written` null or as large as it says.
hitreg_code hitreg_recorder_finish(hitreg_recorder *recorder,
                                   hitreg_written *written);

// What became so far of what was recorded.
//
// # Safety
// `recorder` is null or a recorder, `written` null or as large as it says.
hitreg_code hitreg_recorder_written(const hitreg_recorder *recorder, hitreg_written *written);

// Frees a recorder. One that was not finished leaves `PATH.part` with all that was recorded. Null is none.
//
// # Safety
// `recorder` is null, or a recorder that was not freed.
void hitreg_recorder_free(hitreg_recorder *recorder);

// A stream, for one thread to push into; a recorder may have any number. It may outlive its recorder, and is freed by itself.
//
// # Safety
// `recorder` is null or a recorder, `stream` null or a place.
hitreg_code hitreg_stream_new(const hitreg_recorder *recorder,
                              hitreg_stream **stream);

// Lets another thread have the stream; called by the thread that has it.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_stream_release(hitreg_stream *stream);

// Frees a stream; what was pushed into it stays recorded. Null is none.
//
// # Safety
// `stream` is null, or a stream that was not freed and that no thread is using.
void hitreg_stream_free(hitreg_stream *stream);

// A client frame's usercmd.
//
// # Safety
// `stream` is null or a stream, `command` null or as large as it says.
hitreg_code hitreg_push_usercmd(hitreg_stream *stream, uint16_t player, const hitreg_usercmd *command);

// The same with the fields of the game's own, as many as the description has (`hitreg_about_usercmd_field`).
//
// # Safety
// `stream` is null or a stream, `command` null or as large as it says, `values` null or so many values.
hitreg_code hitreg_push_usercmd_with(hitreg_stream *stream,
                                     uint16_t player,
                                     const hitreg_usercmd *command,
                                     const hitreg_value *values,
                                     size_t count);

// What a usercmd carries besides, at the same time as the usercmd.
//
// # Safety
// `stream` is null or a stream, `bytes` null or so many bytes.
hitreg_code hitreg_push_usercmd_bytes(hitreg_stream *stream,
                                      uint16_t player,
                                      int64_t at_us,
                                      uint32_t seq,
                                      const uint8_t *bytes,
                                      size_t length);

// A packet that a client sent.
//
// # Safety
// `stream` is null or a stream, `packet` null or as large as it says.
hitreg_code hitreg_push_packet(hitreg_stream *stream, uint16_t player, const hitreg_packet *packet);

// A client's packet arrived at the server. A lost one never does, a duplicated one twice.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_reached(hitreg_stream *stream, uint16_t player, uint32_t number, int64_t at_us);

// A snapshot that the server sent to a player, with the entities and the effects in it; all effects have the size of the first.
//
// # Safety
// `stream` is null or a stream, `snapshot` null or as large as it says, `entities` null or so many numbers, `effects` null or so many.
hitreg_code hitreg_push_snapshot(hitreg_stream *stream,
                                 uint16_t player,
                                 const hitreg_snapshot *snapshot,
                                 const uint16_t *entities,
                                 size_t count,
                                 const hitreg_effect *effects,
                                 size_t effect_count);

// A snapshot arrived at its client.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_received(hitreg_stream *stream, uint16_t player, uint32_t seq, int64_t at_us);

// What the server did about a usercmd: 0 run, 1 stood in, 2 missing, 3 late, 4 over budget.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_ran(hitreg_stream *stream, uint16_t player, uint32_t command, uint32_t tick, uint32_t how);

// The end of a server's tick; ticks count from 1. `hash` is null where the game has none.
//
// # Safety
// `stream` is null or a stream, `hash` null or a number.
hitreg_code hitreg_push_tick(hitreg_stream *stream, uint32_t tick, int64_t at_us, const uint64_t *hash);

// An entity's state after a tick: as many cells of 32 bits as its class has fields, floats by their bits (`memcpy`). `viewer` is
// the only player who was sent it so, or -1.
//
// # Safety
// `stream` is null or a stream, `cells` null or so many cells.
hitreg_code hitreg_push_body(hitreg_stream *stream,
                             uint32_t tick,
                             int32_t viewer,
                             uint16_t entity,
                             uint16_t class_number,
                             const uint32_t *cells,
                             size_t count);

// A shot: as the client predicted it (`judged` 0), or as the server judged it (1).
//
// # Safety
// `stream` is null or a stream, `shot` null or as large as it says.
hitreg_code hitreg_push_shot(hitreg_stream *stream, uint16_t player, const hitreg_shot *shot, uint32_t judged);

// A player joined, or left: the first tick with it, or the first without.
//
// # Safety
// `stream` is null or a stream, `presence` null or as large as it says.
hitreg_code hitreg_push_presence(hitreg_stream *stream, uint16_t player, const hitreg_presence *presence);

// Somebody lost health; `attacker` is a player, or -1.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_damage(hitreg_stream *stream,
                               uint32_t tick,
                               int64_t at_us,
                               uint16_t victim,
                               int32_t attacker,
                               int32_t amount);

// A row of a kind of the game's own. `series` is whose it is: a player, or what else the kind counts by.
//
// # Safety
// `stream` is null or a stream, `values` null or so many values.
hitreg_code hitreg_push_row(hitreg_stream *stream,
                            size_t kind,
                            uint32_t series,
                            int64_t at_us,
                            const hitreg_value *values,
                            size_t count);

// Reads a whole log.
//
// # Safety
// `path` is null or text, `log` null or a place.
hitreg_code hitreg_log_open(const char *path, hitreg_log **log);

// Frees a log, and all text and cells that came from it; null is none.
//
// # Safety
// `log` is null, or a log that was not freed.
void hitreg_log_free(hitreg_log *log);

// The game's name; null for a null log.
//
// # Safety
// `log` is null or a log.
const char *hitreg_log_game(const hitreg_log *log);

// The map's name, and its bytes; `bytes` and `length` may be null. Null for a null log.
//
// # Safety
// `log` is null or a log, `bytes` and `length` are null or places.
const char *hitreg_log_map(const hitreg_log *log, const uint8_t **bytes, size_t *length);

// The seed of the session; 0 for a null log.
//
// # Safety
// `log` is null or a log.
uint64_t hitreg_log_seed(const hitreg_log *log);

// A setting of the session; null where it has none of this name.
//
// # Safety
// `log` is null or a log, `key` null or text.
const char *hitreg_log_setting(const hitreg_log *log, const char *key);

// How many players the session has; 0 for a null log.
//
// # Safety
// `log` is null or a log.
size_t hitreg_log_players(const hitreg_log *log);

// How many records there are of a kind: `HITREG_USERCMDS`…
//
// # Safety
// `log` is null or a log, `count` null or a place.
hitreg_code hitreg_log_count(const hitreg_log *log, uint32_t kind, uint16_t player, size_t *count);

// A player's usercmd, by its place in the log, from 0.
//
// # Safety
// `log` is null or a log, `command` null or as large as it says.
hitreg_code hitreg_log_usercmd(const hitreg_log *log, uint16_t player, size_t index, hitreg_usercmd *command);

// What a usercmd carried besides; no bytes where it carried none. They stay until the log is freed.
//
// # Safety
// `log` is null or a log, `bytes` and `length` null or places.
hitreg_code hitreg_log_usercmd_bytes(const hitreg_log *log,
                                     uint16_t player,
                                     uint32_t seq,
                                     const uint8_t **bytes,
                                     size_t *length);

// What the server did about one of a player's usercmds, in the order of doing, from 0.
//
// # Safety
// `log` is null or a log, `ran` null or as large as it says.
hitreg_code hitreg_log_ran(const hitreg_log *log, uint16_t player, size_t index, hitreg_execution *ran);

// A packet of a player that reached the server, in the order of arrival, from 0.
//
// # Safety
// `log` is null or a log, `arrival` null or as large as it says.
hitreg_code hitreg_log_reached(const hitreg_log *log, uint16_t player, size_t index, hitreg_arrival *arrival);

// A tick, by its place in the log, from 0.
//
// # Safety
// `log` is null or a log, `tick` null or as large as it says.
hitreg_code hitreg_log_tick(const hitreg_log *log, size_t index, hitreg_tick_end *tick);

// A state, by its place in the log, from 0: in the order of ticks, viewers and entities. `cells` stays until the log is freed.
//
// # Safety
// `log` is null or a log, `state` null or as large as it says, `cells` null or a place.
hitreg_code hitreg_log_state(const hitreg_log *log,
                             size_t index,
                             hitreg_state *state,
                             const uint32_t **cells);

// A snapshot that was sent to a player, by its place in the log, from 0. `entities` stays until the log is freed; `hitreg_log_effect` has
// the effects.
//
// # Safety
// `log` is null or a log, `snapshot` null or as large as it says, `entities`, `count` and `effects` null or places.
hitreg_code hitreg_log_snapshot(const hitreg_log *log,
                                uint16_t player,
                                size_t index,
                                hitreg_snapshot *snapshot,
                                const uint16_t **entities,
                                size_t *count,
                                size_t *effects);

// An effect that a snapshot tells, by its place in it, from 0.
//
// # Safety
// `log` is null or a log, `effect` null or as large as it says.
hitreg_code hitreg_log_effect(const hitreg_log *log,
                              uint16_t player,
                              size_t snapshot,
                              size_t index,
                              hitreg_effect *effect);

// A snapshot that arrived at a player, in the order of arrival, from 0.
//
// # Safety
// `log` is null or a log, `arrival` null or as large as it says.
hitreg_code hitreg_log_received(const hitreg_log *log, uint16_t player, size_t index, hitreg_arrival *arrival);

// A time when a player came or went, from 0.
//
// # Safety
// `log` is null or a log, `presence` null or as large as it says.
hitreg_code hitreg_log_presence(const hitreg_log *log, uint16_t player, size_t index, hitreg_presence *presence);

// The fields of the game's own that a usercmd has, by its number; `count` is how many there are.
//
// # Safety
// `log` is null or a log, `values` null or a place for so many values.
hitreg_code hitreg_log_usercmd_values(const hitreg_log *log,
                                      uint16_t player,
                                      uint32_t seq,
                                      hitreg_value *values,
                                      size_t count);

// How many rows there are of a kind of the game's own, by its name.
//
// # Safety
// `log` is null or a log, `kind` null or text, `count` null or a place.
hitreg_code hitreg_log_rows(const hitreg_log *log, const char *kind, size_t *count);

// A row of a kind of the game's own, by its place in the log, from 0: whose it is, when it was, and its values, of which there are
// `count`.
//
// # Safety
// `log` is null or a log, `kind` null or text, `series` and `at_us` null or places, `values` null or a place for so many values.
hitreg_code hitreg_log_row(const hitreg_log *log,
                           const char *kind,
                           size_t index,
                           uint32_t *series,
                           int64_t *at_us,
                           hitreg_value *values,
                           size_t count);

// Begins the trace of a log: `mode` is `closed` where the server ran, `open` where clients ran on recorded snapshots.
//
// # Safety
// `log` is null or a log, `mode` null or text, `trace` null or a place.
hitreg_code hitreg_trace_new(const hitreg_log *log, const char *mode, hitreg_trace **trace);

// Frees a trace; null is none.
//
// # Safety
// `trace` is null, or a trace that was not freed.
void hitreg_trace_free(hitreg_trace *trace);

// A setting that was in force, where it was another than the log's: what `--set` asked for.
//
// # Safety
// `trace` is null or a trace, `key` and `value` null or text.
hitreg_code hitreg_trace_setting(hitreg_trace *trace, const char *key, const char *value);

// Begins the next table: `ticks`, `bodies`… as hitreg knows them, or one of the game's own.
//
// # Safety
// `trace` is null or a trace, `name` null or text.
hitreg_code hitreg_trace_table(hitreg_trace *trace, const char *name);

// A column that tells the rows of the table apart; for tables of the game's own, as often as there are such columns.
//
// # Safety
// `trace` is null or a trace, `column` null or text.
hitreg_code hitreg_trace_key(hitreg_trace *trace, const char *column);

// A column of the table that was begun last, with a value for each of its rows: numbers. `unit` may be null.
//
// # Safety
// `trace` is null or a trace, `name` and `unit` null or text, `values` null or so many.
hitreg_code hitreg_trace_u32(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const uint32_t *values,
                             size_t rows);

// The same: hashes.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_u64(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const uint64_t *values,
                             size_t rows);

// The same: times in µs, and signed numbers.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_i64(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const int64_t *values,
                             size_t rows);

// The same: measures.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_f32(hitreg_trace *trace, const char *name, const char *unit, const float *values, size_t rows);

// The same: names, each row's by its place in the list.
//
// # Safety
// As `hitreg_trace_u32`; `names` is null or so many texts, `codes` null or so many numbers.
hitreg_code hitreg_trace_names(hitreg_trace *trace,
                               const char *name,
                               const char *const *names,
                               size_t count,
                               const uint32_t *codes,
                               size_t rows);

// Writes the trace. A trace that stands there is replaced; anything else is not.
//
// # Safety
// `trace` is null or a trace, `path` null or text.
hitreg_code hitreg_trace_write(const hitreg_trace *trace, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HITREG_H */
