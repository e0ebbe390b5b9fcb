/* hitreg: records the netcode of action games, reads logs, and reads and writes traces.
 *
 * Generated from crates/hitreg-capi by cbindgen. docs/recorder.md is the guide.
 *
 * Functions that return a hitreg_code return HITREG_OK on success. After an error, hitreg_last_error() returns the
 * message. Structs begin with their size: set it to sizeof the struct. Text is UTF-8.
 *
 * Threads: a stream belongs to the thread that first pushes into it. A recorder, a description or a trace may be used
 * by one thread at a time. A log may be used by any number of threads at once. */

#ifndef HITREG_H
#define HITREG_H

#include <stddef.h>
#include <stdint.h>

// Field type: 32-bit float.
#define HITREG_F32 0

// Field type: signed integer.
#define HITREG_I32 1

// Field type: unsigned integer; also flags.
#define HITREG_U32 2

// Scope: movement, predicted by clients and compared on an ack.
#define HITREG_MOVEMENT 0

// Scope: weapons, predicted by clients that predict weapons.
#define HITREG_WEAPONS 1

// Scope: server only, such as health.
#define HITREG_STATUS 2

// Meaning: none of the others.
#define HITREG_PLAIN 0

// Meaning: a coordinate of a position.
#define HITREG_POSITION 1

// Meaning: a component of a velocity.
#define HITREG_VELOCITY 2

// Meaning: an angle in degrees.
#define HITREG_ANGLE 3

// Meaning: a component of a unit vector.
#define HITREG_DIRECTION 4

// Meaning: a counter.
#define HITREG_COUNTER 5

// Meaning: a flag, or a set of flags as bits.
#define HITREG_FLAG 6

// Meaning: an enumeration value.
#define HITREG_NAME 7

// Meaning: a time, in milliseconds unless the field has another unit.
#define HITREG_TIME 8

// Record kind for `hitreg_log_count`: usercmds of a player.
#define HITREG_USERCMDS 0

// Record kind: packets from a player that reached the server.
#define HITREG_REACHED 1

// Record kind: results of a player's usercmds on the server.
#define HITREG_RAN 2

// Record kind: ticks; `player` is ignored.
#define HITREG_TICKS 3

// Record kind: states; `player` is ignored.
#define HITREG_STATES 4

// Record kind: packets that a player sent.
#define HITREG_SENT 5

// Record kind: snapshots sent to a player.
#define HITREG_SNAPSHOTS 6

// Record kind: snapshots that arrived at a player.
#define HITREG_RECEIVED 7

// Record kind: changes of a player's presence.
#define HITREG_PRESENCES 8

// Result of a call.
typedef enum {
  // Success.
  HITREG_OK = 0,
  // A handle or pointer is null.
  HITREG_NULL = 1,
  // A struct's `size` is unknown to this library. Set it to `sizeof` the struct, and build with this library's
  // header.
  HITREG_SIZE = 2,
  // Text is not UTF-8, an enum value does not exist, or a number does not fit its field.
  HITREG_VALUE = 3,
  // The record does not fit the description: an unknown player, class or kind, or a wrong number of values.
  HITREG_MISFIT = 4,
  // The record is older than the reorder window.
  HITREG_LATE = 5,
  // The recorder cannot keep up. The record is lost, and a gap in the log marks it.
  HITREG_OVERRUN = 6,
  // The recording has ended, or the handle was used up.
  HITREG_FINISHED = 7,
  // A write error stopped the recording.
  HITREG_STOPPED = 8,
  // The description is invalid.
  HITREG_DESCRIPTION = 9,
  // A file cannot be read or written.
  HITREG_FILE = 10,
  // The row does not exist.
  HITREG_NO_ROW = 11,
  // The stream belongs to another thread.
  HITREG_THREAD = 12,
  // The library panicked. Please report it.
  HITREG_PANIC = 13,
} hitreg_code;

// A description of a session. The functions that start a recorder consume it, but the caller still frees it.
typedef struct hitreg_about hitreg_about;

// A log in memory. It is immutable: any number of threads may read it at once.
typedef struct hitreg_log hitreg_log;

// A log that is being written. Any thread may use it, one at a time.
typedef struct hitreg_recorder hitreg_recorder;

// A handle for one thread to push records. It belongs to the first thread that pushes; `hitreg_stream_release` makes
// it free for another.
typedef struct hitreg_stream hitreg_stream;

// A trace under construction: a sequence of tables with their columns. One thread at a time.
typedef struct hitreg_trace hitreg_trace;

// Options of a recorder. Zero selects the default of each field.
typedef struct {
  // `sizeof(hitreg_options)`.
  uint32_t size;
  // Reorder window in milliseconds: how much older than the newest record a record may be; 250 by default.
  uint32_t window_ms;
  // Capacity of each stream, in records; 4096 by default.
  uint32_t ring;
  // 1: wait instead of dropping records or chunks, for sessions that do not run in real time.
  uint32_t patient;
  // Seconds of session time after which a new file (`NAME-0001.hitlog` and so on) starts; 0 for no limit.
  uint32_t rotate_s;
  // MiB after which a new file starts; 0 for no limit.
  uint32_t rotate_mib;
} hitreg_options;

// Counters of a recorder.
typedef struct {
  // `sizeof(hitreg_written)`.
  uint32_t size;
  // Reserved; 0.
  uint32_t reserved;
  // Records written.
  uint64_t records;
  // Records lost because a stream was full.
  uint64_t lost_records;
  // Chunks dropped because the disk was too slow.
  uint64_t dropped_chunks;
  // Records refused because they were older than the reorder window.
  uint64_t late_records;
} hitreg_written;

// A client frame's input.
typedef struct {
  // `sizeof(hitreg_usercmd)`.
  uint32_t size;
  // Usercmd number, from 1.
  uint32_t seq;
  // Session time of the client frame, in µs. A server that does not know it sets the arrival time.
  int64_t at_us;
  // The server time on the client's clock, in µs.
  int64_t server_time_us;
  // How far behind `server_time_us` the client drew other players, in milliseconds.
  uint32_t lerp_ms;
  // Duration of the client frame in milliseconds, up to 255.
  uint32_t msec;
  // Pitch in degrees; down is positive.
  float pitch;
  // Yaw in degrees, counter-clockwise from +x.
  float yaw;
  // Roll in degrees.
  float roll;
  // Intended forward speed, in units/s.
  float forwardmove;
  // Intended speed to the right, in units/s.
  float sidemove;
  // Intended upward speed, in units/s.
  float upmove;
  // Pressed buttons, up to 16 bits.
  uint32_t buttons;
  // A one-shot request, up to 255; 0 for none.
  uint32_t impulse;
  // 32 game-defined bits. `hitreg_push_usercmd_bytes` takes more data.
  uint32_t extra;
  // Reserved; 0.
  uint32_t reserved;
} hitreg_usercmd;

// One value of a custom row or of a game-defined usercmd field. `real` is for `HITREG_F32` columns, `number` for all
// others.
typedef struct {
  // 0: use `number`, 1: use `real`.
  uint32_t is_real;
  // The value as a float.
  float real;
  // The value as an integer.
  int64_t number;
} hitreg_value;

// A packet that a client sent.
typedef struct {
  // `sizeof(hitreg_packet)`.
  uint32_t size;
  // Packet number, from 1.
  uint32_t number;
  // Send time, in µs.
  int64_t at_us;
  // The newest usercmd in it.
  uint32_t newest;
  // Number of usercmds in it, up to 255.
  uint32_t count;
  // The newest snapshot that the client had received; 0 for none.
  uint32_t ack;
  // Total bytes of its datagrams.
  uint32_t bytes;
} hitreg_packet;

// A snapshot that the server sent to a player.
typedef struct {
  // `sizeof(hitreg_snapshot)`.
  uint32_t size;
  // Snapshot number, from 1.
  uint32_t seq;
  // Send time, in µs.
  int64_t at_us;
  // The server time in the snapshot, in µs.
  int64_t server_time_us;
  // The tick whose state it carries.
  uint32_t tick;
  // The newest usercmd that had run; 0 for none.
  uint32_t ack;
  // Total bytes of its datagrams.
  uint32_t bytes;
  // Number of updates that the client's rate limit held back before this one.
  uint32_t choked;
} hitreg_snapshot;

// A one-shot sound or visual effect in a snapshot.
typedef struct {
  // `sizeof(hitreg_effect)`.
  uint32_t size;
  // Number of the effect in the game's numbering, up to 255.
  uint32_t kind;
  // The entity that causes it.
  uint32_t entity;
  // 1: shared code causes the effect, so that its player's client can predict it.
  uint32_t predictable;
  // Position, in units.
  float x;
  // Position, in units.
  float y;
  // Position, in units.
  float z;
  // Reserved; 0.
  uint32_t reserved;
} hitreg_effect;

// A shot, predicted or judged.
typedef struct {
  // `sizeof(hitreg_shot)`.
  uint32_t size;
  // The usercmd that fired it.
  uint32_t command;
  // Time of the client frame or of the server's tick, in µs.
  int64_t at_us;
  // Index among the shots of that usercmd, from 0.
  uint32_t index;
  // 0: hit, 1: hit the world, 2: missed, 3: already dead, 4: launched.
  uint32_t reason;
  // The entity that was hit; -1 for none.
  int32_t target;
  // The part of the body that was hit.
  uint32_t hitgroup;
  // Damage, in health points.
  int32_t damage;
  // How far the server rewound the targets, in µs; 0 for a prediction.
  uint32_t rewound_us;
} hitreg_shot;

// A player joined or left.
typedef struct {
  // `sizeof(hitreg_presence)`.
  uint32_t size;
  // The first tick with the player, or the first without.
  uint32_t tick;
  // Time of the change, in µs.
  int64_t at_us;
  // 0: joined, 1: left.
  uint32_t left;
  // Reserved; 0.
  uint32_t reserved;
} hitreg_presence;

// How the server handled a usercmd.
typedef struct {
  // `sizeof(hitreg_execution)`.
  uint32_t size;
  // Usercmd number.
  uint32_t command;
  // The tick.
  uint32_t tick;
  // 0: run, 1: stood in, 2: missing, 3: late, 4: over budget.
  uint32_t how;
} hitreg_execution;

// The arrival of a packet or a snapshot.
typedef struct {
  // `sizeof(hitreg_arrival)`.
  uint32_t size;
  // Number of the packet or the snapshot.
  uint32_t number;
  // Arrival time, in µs.
  int64_t at_us;
} hitreg_arrival;

// The end of a tick.
typedef struct {
  // `sizeof(hitreg_tick_end)`.
  uint32_t size;
  // Tick number, from 1.
  uint32_t tick;
  // Time of the tick, in µs.
  int64_t at_us;
  // Hash of the state after the tick.
  uint64_t hash;
  // 1: `hash` is set.
  uint32_t has_hash;
  // Reserved; 0.
  uint32_t reserved;
} hitreg_tick_end;

// A state of an entity, without its cells.
typedef struct {
  // `sizeof(hitreg_state)`.
  uint32_t size;
  // The tick before the state.
  uint32_t tick;
  // The only player who was sent the state; -1 for all.
  int32_t viewer;
  // The entity.
  uint32_t entity;
  // Number of its class.
  uint32_t class_number;
  // Number of cells.
  uint32_t cells;
} hitreg_state;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the message of the last failed call of this thread; empty without one. It is valid until the next failed
// call or until the thread ends.
const char *hitreg_last_error(void);

// Creates the description of a session of a game. Returns null on an error; `hitreg_last_error` has the message.
//
// # Safety
// `game` is null or a C string.
hitreg_about *hitreg_about_new(const char *game);

// Frees a description; does nothing for null.
//
// # Safety
// `about` is null, or a description that was not freed.
void hitreg_about_free(hitreg_about *about);

// Sets the server's tick rate, 1 to 1,000 Hz.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_tick_hz(hitreg_about *about, uint32_t hz);

// Adds a setting under the game's own name.
//
// # Safety
// `about` is null or a description, `key` and `value` null or a C string.
hitreg_code hitreg_about_setting(hitreg_about *about, const char *key, const char *value);

// Sets the map's name and its bytes. Pass no bytes when the replay loads the map from its own files.
//
// # Safety
// `about` is null or a description, `name` null or a C string, `bytes` null or `length` bytes.
hitreg_code hitreg_about_map(hitreg_about *about, const char *name, const uint8_t *bytes, size_t length);

// Sets the random seed of the session.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_seed(hitreg_about *about, uint64_t seed);

// Adds the next player, numbered from 0. Pass a pseudonym unless players agreed to be recorded by name.
//
// # Safety
// `about` is null or a description, `name` null or a C string.
hitreg_code hitreg_about_player(hitreg_about *about, const char *name);

// Starts the next class of entities, numbered from 0. `hitreg_about_field` adds its fields.
//
// # Safety
// `about` is null or a description, `name` null or a C string.
hitreg_code hitreg_about_class(hitreg_about *about, const char *name);

// Adds a field to the latest class. `kind` is `HITREG_F32`…, `scope` `HITREG_MOVEMENT`…, `meaning` `HITREG_POSITION`…;
// `unit` may be null.
//
// # Safety
// `about` is null or a description, `name` and `unit` null or a C string.
hitreg_code hitreg_about_field(hitreg_about *about,
                               const char *name,
                               uint32_t kind,
                               uint32_t scope,
                               uint32_t meaning,
                               const char *unit);

// Adds a game-defined field to all usercmds, for `hitreg_push_usercmd_with`. The arguments are those of
// `hitreg_about_field`.
//
// # Safety
// `about` is null or a description, `name` and `unit` null or a C string.
hitreg_code hitreg_about_usercmd_field(hitreg_about *about,
                                       const char *name,
                                       uint32_t kind,
                                       uint32_t meaning,
                                       const char *unit);

// Starts the next custom record kind, numbered from 0. `hitreg_about_column` adds its columns.
//
// # Safety
// `about` is null or a description, `name` null or a C string.
hitreg_code hitreg_about_kind(hitreg_about *about, const char *name);

// Adds a column to the latest custom kind: `HITREG_F32` for floats, any other type for integers.
//
// # Safety
// `about` is null or a description, `name` null or a C string.
hitreg_code hitreg_about_column(hitreg_about *about, const char *name, uint32_t kind);

// Declares that usercmds carry extra bytes, for `hitreg_push_usercmd_bytes`.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_usercmd_bytes(hitreg_about *about);

// Declares that the server records usercmds on arrival.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_usercmds_as_received(hitreg_about *about);

// Declares that the log holds one side of a session, by that side's clock. `player` is the client's player, or -1 for
// the server. All sides pass the same `session`.
//
// # Safety
// `about` is null or a description.
hitreg_code hitreg_about_side(hitreg_about *about, uint64_t session, int32_t player);

// Starts a log at `path`, which is called `PATH.part` until `hitreg_recorder_finish`. `options` may be null.
//
// # Safety
// `path` is null or a C string, `about` null or a description, `options` null or a struct of its `size`, `recorder`
// null or writable.
hitreg_code hitreg_recorder_create(const char *path,
                                   hitreg_about *about,
                                   const hitreg_options *options,
                                   hitreg_recorder **recorder);

// Starts a flight recorder: it keeps the last `seconds` of a session in memory for `hitreg_recorder_save`. `options`
// may be null.
//
// # Safety
// `about` is null or a description, `options` null or a struct of its `size`, `recorder` null or writable.
hitreg_code hitreg_recorder_keep_last(uint32_t seconds,
                                      hitreg_about *about,
                                      const hitreg_options *options,
                                      hitreg_recorder **recorder);

// Writes what `hitreg_recorder_keep_last` holds in memory, including everything pushed before this call, as a log that
// begins after a tick. The recording goes on.
//
// # Safety
// `recorder` is null or a recorder, `path` null or a C string.
hitreg_code hitreg_recorder_save(const hitreg_recorder *recorder, const char *path);

// Starts a trace. A build that replays a log pushes the same records as when it records a session.
// `hitreg_recorder_finish` writes the tables. It replaces an existing trace.
//
// # Safety
// `path` is null or a C string, `about` null or a description, `log` null or a log, `recorder` null or writable.
hitreg_code hitreg_recorder_trace(const char *path,
                                  hitreg_about *about,
                                  const hitreg_log *log,
                                  hitreg_recorder **recorder);

// Ends the log: writes everything pushed before and renames the file. `written` may be null. The caller still frees
// the handle.
//
// # Safety
// `recorder` is null or a recorder, `written` null or a struct of its `size`.
hitreg_code hitreg_recorder_finish(hitreg_recorder *recorder, hitreg_written *written);

// Returns the recorder's counters so far.
//
// # Safety
// `recorder` is null or a recorder, `written` null or a struct of its `size`.
hitreg_code hitreg_recorder_written(const hitreg_recorder *recorder, hitreg_written *written);

// Frees a recorder; does nothing for null. Without a finish, `PATH.part` keeps everything recorded so far.
//
// # Safety
// `recorder` is null, or a recorder that was not freed.
void hitreg_recorder_free(hitreg_recorder *recorder);

// Creates a stream for one thread to push into. A recorder can have any number of streams. A stream may outlive its
// recorder; free both.
//
// # Safety
// `recorder` is null or a recorder, `stream` null or writable.
hitreg_code hitreg_stream_new(const hitreg_recorder *recorder, hitreg_stream **stream);

// Gives up ownership of the stream, so that another thread can push. Only the owner may call it.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_stream_release(hitreg_stream *stream);

// Frees a stream; its records stay in the log. Does nothing for null.
//
// # Safety
// `stream` is null, or a stream that was not freed and that no thread is using.
void hitreg_stream_free(hitreg_stream *stream);

// Pushes a client frame's usercmd.
//
// # Safety
// `stream` is null or a stream, `command` null or a struct of its `size`.
hitreg_code hitreg_push_usercmd(hitreg_stream *stream, uint16_t player, const hitreg_usercmd *command);

// Pushes a usercmd with its game-defined fields, one value for each `hitreg_about_usercmd_field`.
//
// # Safety
// `stream` is null or a stream, `command` null or a struct of its `size`, `values` null or `count` values.
hitreg_code hitreg_push_usercmd_with(hitreg_stream *stream,
                                     uint16_t player,
                                     const hitreg_usercmd *command,
                                     const hitreg_value *values,
                                     size_t count);

// Pushes the extra bytes of a usercmd. Push the usercmd itself with the same `at_us`.
//
// # Safety
// `stream` is null or a stream, `bytes` null or `length` bytes.
hitreg_code hitreg_push_usercmd_bytes(hitreg_stream *stream,
                                      uint16_t player,
                                      int64_t at_us,
                                      uint32_t seq,
                                      const uint8_t *bytes,
                                      size_t length);

// Pushes a packet that a client sent.
//
// # Safety
// `stream` is null or a stream, `packet` null or a struct of its `size`.
hitreg_code hitreg_push_packet(hitreg_stream *stream, uint16_t player, const hitreg_packet *packet);

// Pushes the arrival of a client's packet at the server. A lost packet never arrives, a duplicated one twice.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_reached(hitreg_stream *stream, uint16_t player, uint32_t number, int64_t at_us);

// Pushes a snapshot that the server sent to a player, with its entities and effects. All effects have the size of the
// first.
//
// # Safety
// `stream` is null or a stream, `snapshot` null or a struct of its `size`, `entities` null or `count` numbers,
// `effects` null or `effect_count` structs.
hitreg_code hitreg_push_snapshot(hitreg_stream *stream,
                                 uint16_t player,
                                 const hitreg_snapshot *snapshot,
                                 const uint16_t *entities,
                                 size_t count,
                                 const hitreg_effect *effects,
                                 size_t effect_count);

// Pushes the arrival of a snapshot at its client.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_received(hitreg_stream *stream, uint16_t player, uint32_t seq, int64_t at_us);

// Pushes how the server handled a usercmd. `how` is 0: run, 1: stood in, 2: missing, 3: late, 4: over budget.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_ran(hitreg_stream *stream, uint16_t player, uint32_t command, uint32_t tick, uint32_t how);

// Pushes the end of a server tick; ticks count from 1. `hash` is null if the game does not hash its state.
//
// # Safety
// `stream` is null or a stream, `hash` null or a number.
hitreg_code hitreg_push_tick(hitreg_stream *stream, uint32_t tick, int64_t at_us, const uint64_t *hash);

// Pushes an entity's state after a tick: one 32-bit cell for each field of its class, floats as their bits (`memcpy`).
// `viewer` is the only player who was sent this state, or -1.
//
// # Safety
// `stream` is null or a stream, `cells` null or `count` cells.
hitreg_code hitreg_push_body(hitreg_stream *stream,
                             uint32_t tick,
                             int32_t viewer,
                             uint16_t entity,
                             uint16_t class_number,
                             const uint32_t *cells,
                             size_t count);

// Pushes a shot: `judged` is 0 for the client's prediction, 1 for the server's result.
//
// # Safety
// `stream` is null or a stream, `shot` null or a struct of its `size`.
hitreg_code hitreg_push_shot(hitreg_stream *stream, uint16_t player, const hitreg_shot *shot, uint32_t judged);

// Pushes that a player joined or left, with the first tick with or without the player.
//
// # Safety
// `stream` is null or a stream, `presence` null or a struct of its `size`.
hitreg_code hitreg_push_presence(hitreg_stream *stream, uint16_t player, const hitreg_presence *presence);

// Pushes damage to an entity. `attacker` is a player, or -1.
//
// # Safety
// `stream` is null or a stream.
hitreg_code hitreg_push_damage(hitreg_stream *stream,
                               uint32_t tick,
                               int64_t at_us,
                               uint16_t victim,
                               int32_t attacker,
                               int32_t amount);

// Pushes a row of a custom kind. `series` is a player, or whatever else the kind groups its rows by.
//
// # Safety
// `stream` is null or a stream, `values` null or `count` values.
hitreg_code hitreg_push_row(hitreg_stream *stream,
                            size_t kind,
                            uint32_t series,
                            int64_t at_us,
                            const hitreg_value *values,
                            size_t count);

// Reads a log into memory.
//
// # Safety
// `path` is null or a C string, `log` null or writable.
hitreg_code hitreg_log_open(const char *path, hitreg_log **log);

// Frees a log and all text and arrays that were returned from it; does nothing for null.
//
// # Safety
// `log` is null, or a log that was not freed.
void hitreg_log_free(hitreg_log *log);

// Returns the game's name; null for a null log.
//
// # Safety
// `log` is null or a log.
const char *hitreg_log_game(const hitreg_log *log);

// Returns the map's name, and its bytes unless `bytes` or `length` is null. Returns null for a null log.
//
// # Safety
// `log` is null or a log, `bytes` and `length` null or writable.
const char *hitreg_log_map(const hitreg_log *log, const uint8_t **bytes, size_t *length);

// Returns the session's random seed; 0 for a null log.
//
// # Safety
// `log` is null or a log.
uint64_t hitreg_log_seed(const hitreg_log *log);

// Returns a setting of the session; null if the log has no setting of this name.
//
// # Safety
// `log` is null or a log, `key` null or a C string.
const char *hitreg_log_setting(const hitreg_log *log, const char *key);

// Returns the number of players; 0 for a null log.
//
// # Safety
// `log` is null or a log.
size_t hitreg_log_players(const hitreg_log *log);

// Returns the number of records of a kind (`HITREG_USERCMDS`…).
//
// # Safety
// `log` is null or a log, `count` null or writable.
hitreg_code hitreg_log_count(const hitreg_log *log, uint32_t kind, uint16_t player, size_t *count);

// Returns a player's usercmd, by its index in the log.
//
// # Safety
// `log` is null or a log, `command` null or a struct of its `size`.
hitreg_code hitreg_log_usercmd(const hitreg_log *log, uint16_t player, size_t index, hitreg_usercmd *command);

// Returns the extra bytes of a usercmd, which may be empty. They are valid until the log is freed.
//
// # Safety
// `log` is null or a log, `bytes` and `length` null or writable.
hitreg_code hitreg_log_usercmd_bytes(const hitreg_log *log,
                                     uint16_t player,
                                     uint32_t seq,
                                     const uint8_t **bytes,
                                     size_t *length);

// Returns how the server handled one of a player's usercmds, by its index in the order of handling.
//
// # Safety
// `log` is null or a log, `ran` null or a struct of its `size`.
hitreg_code hitreg_log_ran(const hitreg_log *log, uint16_t player, size_t index, hitreg_execution *ran);

// Returns the arrival of a player's packet at the server, by its index in the order of arrival.
//
// # Safety
// `log` is null or a log, `arrival` null or a struct of its `size`.
hitreg_code hitreg_log_reached(const hitreg_log *log, uint16_t player, size_t index, hitreg_arrival *arrival);

// Returns a tick, by its index in the log.
//
// # Safety
// `log` is null or a log, `tick` null or a struct of its `size`.
hitreg_code hitreg_log_tick(const hitreg_log *log, size_t index, hitreg_tick_end *tick);

// Returns a state, by its index in the order of ticks, viewers and entities. `cells` is valid until the log is freed.
//
// # Safety
// `log` is null or a log, `state` null or a struct of its `size`, `cells` null or writable.
hitreg_code hitreg_log_state(const hitreg_log *log, size_t index, hitreg_state *state, const uint32_t **cells);

// Returns a snapshot that the server sent to a player, by its index in the log. `entities` is valid until the log is
// freed. `effects` returns the number of effects for `hitreg_log_effect`.
//
// # Safety
// `log` is null or a log, `snapshot` null or a struct of its `size`, `entities`, `count` and `effects` null or
// writable.
hitreg_code hitreg_log_snapshot(const hitreg_log *log,
                                uint16_t player,
                                size_t index,
                                hitreg_snapshot *snapshot,
                                const uint16_t **entities,
                                size_t *count,
                                size_t *effects);

// Returns an effect of a snapshot, by its index in the snapshot.
//
// # Safety
// `log` is null or a log, `effect` null or a struct of its `size`.
hitreg_code hitreg_log_effect(const hitreg_log *log,
                              uint16_t player,
                              size_t snapshot,
                              size_t index,
                              hitreg_effect *effect);

// Returns the arrival of a snapshot at a player, by its index in the order of arrival.
//
// # Safety
// `log` is null or a log, `arrival` null or a struct of its `size`.
hitreg_code hitreg_log_received(const hitreg_log *log, uint16_t player, size_t index, hitreg_arrival *arrival);

// Returns a change of a player's presence, by its index in the log.
//
// # Safety
// `log` is null or a log, `presence` null or a struct of its `size`.
hitreg_code hitreg_log_presence(const hitreg_log *log, uint16_t player, size_t index, hitreg_presence *presence);

// Returns the game-defined fields of a usercmd, by its number. `count` must equal the number of fields.
//
// # Safety
// `log` is null or a log, `values` null or writable for `count` values.
hitreg_code hitreg_log_usercmd_values(const hitreg_log *log,
                                      uint16_t player,
                                      uint32_t seq,
                                      hitreg_value *values,
                                      size_t count);

// Returns the number of rows of a custom kind, by its name.
//
// # Safety
// `log` is null or a log, `kind` null or a C string, `count` null or writable.
hitreg_code hitreg_log_rows(const hitreg_log *log, const char *kind, size_t *count);

// Returns a row of a custom kind, by its index in the log: its series, its time and its values. `count` must equal the
// number of values.
//
// # Safety
// `log` is null or a log, `kind` null or a C string, `series` and `at_us` null or writable, `values` null or writable
// for `count` values.
hitreg_code hitreg_log_row(const hitreg_log *log,
                           const char *kind,
                           size_t index,
                           uint32_t *series,
                           int64_t *at_us,
                           hitreg_value *values,
                           size_t count);

// Creates the trace of a log. `mode` is `closed` if the build ran the server, `open` if clients ran on recorded
// snapshots.
//
// # Safety
// `log` is null or a log, `mode` null or a C string, `trace` null or writable.
hitreg_code hitreg_trace_new(const hitreg_log *log, const char *mode, hitreg_trace **trace);

// Frees a trace; does nothing for null.
//
// # Safety
// `trace` is null, or a trace that was not freed.
void hitreg_trace_free(hitreg_trace *trace);

// Sets a setting of the replay that differs from the log's, as given by `--set`.
//
// # Safety
// `trace` is null or a trace, `key` and `value` null or a C string.
hitreg_code hitreg_trace_setting(hitreg_trace *trace, const char *key, const char *value);

// Starts the next table: one that hitreg defines, such as `ticks` or `bodies`, or a custom one.
//
// # Safety
// `trace` is null or a trace, `name` null or a C string.
hitreg_code hitreg_trace_table(hitreg_trace *trace, const char *name);

// Adds a key column to a custom table. The key columns together identify a row; call it once for each.
//
// # Safety
// `trace` is null or a trace, `column` null or a C string.
hitreg_code hitreg_trace_key(hitreg_trace *trace, const char *column);

// Adds a column of numbers to the latest table, with one value for each row. `unit` may be null.
//
// # Safety
// `trace` is null or a trace, `name` and `unit` null or a C string, `values` null or `rows` values.
hitreg_code hitreg_trace_u32(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const uint32_t *values,
                             size_t rows);

// Adds a column of 64-bit hashes; as `hitreg_trace_u32`.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_u64(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const uint64_t *values,
                             size_t rows);

// Adds a column of signed numbers or times in µs; as `hitreg_trace_u32`.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_i64(hitreg_trace *trace,
                             const char *name,
                             const char *unit,
                             const int64_t *values,
                             size_t rows);

// Adds a column of floats; as `hitreg_trace_u32`.
//
// # Safety
// As `hitreg_trace_u32`.
hitreg_code hitreg_trace_f32(hitreg_trace *trace, const char *name, const char *unit, const float *values, size_t rows);

// Adds a column of names. `codes` has each row's index in the list `names`.
//
// # Safety
// As `hitreg_trace_u32`; `names` is null or `count` C strings, `codes` null or `rows` numbers.
hitreg_code hitreg_trace_names(hitreg_trace *trace,
                               const char *name,
                               const char *const *names,
                               size_t count,
                               const uint32_t *codes,
                               size_t rows);

// Writes the trace to a file. It replaces an existing trace, but no other file.
//
// # Safety
// `trace` is null or a trace, `path` null or a C string.
hitreg_code hitreg_trace_write(const hitreg_trace *trace, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HITREG_H */
