/* hitreg.h: record the netcode of a game, read recordings, and write traces.
 *
 * C99 and C++. Guide: docs/recorder.md. Complete programs: examples/c.
 *
 *     hitreg_description *description = hitreg_description_new("mygame");
 *     hitreg_description_player(description, "p0");
 *     hitreg_recorder_create("duel.hitlog", description, NULL, &recorder);
 *     hitreg_description_free(description);
 *     hitreg_stream_new(recorder, &stream);
 *     ... hitreg_push_usercmd, hitreg_push_tick, hitreg_push_body ...
 *     hitreg_stream_free(stream);
 *     hitreg_recorder_finish(recorder, NULL);
 *     hitreg_recorder_free(recorder);
 *
 * Contents:
 *
 *     1. Version and errors
 *     2. Description     what a session is, before its first record
 *     3. Recorder        log files, the flight recorder, traces of a replay
 *     4. Streams         one for each thread that records
 *     5. Rows            tables, values, hitreg_push_row
 *     6. Pushing         a typed function for each table
 *     7. Logs            reading a recording, hitreg_log_row
 *     8. Reading         a typed function for each table
 *     9. Playback        replaying a log as a build
 *    10. Traces          column by column, without a recorder
 *
 * Rules of all functions:
 *
 * - A function that can fail returns HITREG_OK or an error. hitreg_last_error() returns the message.
 * - On an error, no output is written unless the function's comment says so. Initialize handles with NULL.
 * - A null handle or pointer is an error, never a crash. `..._free` accepts null.
 * - Free each handle with its own function. Using a freed handle is undefined behaviour.
 * - Text is UTF-8 and ends with a zero byte. The library copies what it keeps.
 * - Times are microseconds (`_us`) from the start of the session, all by one clock.
 * - Players count from 0; ticks, usercmds, packets and snapshots count from 1. A tick or a usercmd of
 *   number 0 is refused. In other columns, 0 means none, or before the first.
 * - Threads: a stream belongs to the thread that first pushes into it. One thread at a time may use
 *   a description, a recorder or a trace. Any number of threads may read a log.
 * - After a fork, the child process must not use the parent's recorders, playbacks and streams.
 *
 * Generated from crates/hitreg-capi by its tests; edit hitreg.h.in and src. */

#ifndef HITREG_H
#define HITREG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ============================================================================================== */
/* 1. Version and errors                                                                          */
/* ============================================================================================== */

// Version of this header; `hitreg_version()` returns that of the library.
#define HITREG_VERSION "0.1.0"

// Returns the version of this library, such as `0.1.0`. The text is valid until the process ends.
const char *hitreg_version(void);

// Result of a call.
typedef enum hitreg_code {
  // Success.
  HITREG_OK = 0,
  // A handle or pointer is null.
  HITREG_ERROR_NULL = 1,
  // The `size` of a struct, or the size of a list's items, is unknown to this library. Set it to `sizeof`, and build
  // with this library's header. Or the type of a field does not have the size of its member.
  HITREG_ERROR_SIZE = 2,
  // Text is not UTF-8, an enum value does not exist, or a number does not fit its column.
  HITREG_ERROR_VALUE = 3,
  // The row does not fit its table or the description: an unknown player, class or table, a wrong number of values,
  // a value of a wrong kind, or a tick that contradicts another one. Or the stream is not that of the playback.
  HITREG_ERROR_MISFIT = 4,
  // The row is older than the reorder window.
  HITREG_ERROR_LATE = 5,
  // The recorder cannot keep up. The row is lost, and a gap in the log marks it.
  HITREG_ERROR_OVERRUN = 6,
  // The recording or the playback has ended.
  HITREG_ERROR_FINISHED = 7,
  // A write error stopped the recording.
  HITREG_ERROR_STOPPED = 8,
  // The description is invalid.
  HITREG_ERROR_DESCRIPTION = 9,
  // A file cannot be read or written.
  HITREG_ERROR_FILE = 10,
  // The row does not exist.
  HITREG_ERROR_NO_ROW = 11,
  // The stream belongs to another thread, or the recorder or playback to the parent process.
  HITREG_ERROR_THREAD = 12,
  // The library panicked. Please report it.
  HITREG_ERROR_PANIC = 13,
} hitreg_code;

// Returns the message of the last failed call of this thread; empty without one. It is valid until the next failed
// call of the thread or until the thread ends.
const char *hitreg_last_error(void);

/* ============================================================================================== */
/* 2. Description: what a session is, before its first record                                     */
/* ============================================================================================== */

// What a session is: its game, players, settings, and the fields of its entities. It can describe several recorders;
// free it afterwards.
typedef struct hitreg_description hitreg_description;

// Creates the description of a session of a game. Returns null on an error; `hitreg_last_error` has the message.
hitreg_description *hitreg_description_new(const char *game);

// Frees a description; does nothing for null.
void hitreg_description_free(hitreg_description *description);

// Adds the next player, numbered from 0. Pass a pseudonym unless players agreed to be recorded by name.
hitreg_code hitreg_description_player(hitreg_description *description, const char *name);

// Sets the server's tick rate, 1 to 1,000 Hz.
hitreg_code hitreg_description_tick_hz(hitreg_description *description, uint32_t hz);

// Sets the map's name and its bytes, at most 11 MiB. Pass no bytes (null, 0) when the replay loads the map from its own
// files.
hitreg_code hitreg_description_map(hitreg_description *description,
                                   const char *name,
                                   const uint8_t *bytes,
                                   size_t length);

// Sets the random seed of the session.
hitreg_code hitreg_description_seed(hitreg_description *description, uint64_t seed);

// Adds a setting under the game's own name, such as `mygame.friction`. The last value of a name counts.
hitreg_code hitreg_description_setting(hitreg_description *description, const char *key, const char *value);

// Declares that the log holds one side of a session, by that side's clock. `player` is the client's player, or -1 for
// the server. All sides pass the same `session`; `hitreg merge` combines their logs.
hitreg_code hitreg_description_side(hitreg_description *description, uint64_t session, int32_t player);

// Declares an optional command of this build: `step` or `record` (docs/builds.md). Only traces store it.
hitreg_code hitreg_description_capability(hitreg_description *description, const char *name);

// Declares that the server records usercmds on arrival: `at_us` of a usercmd is its arrival time.
static inline hitreg_code hitreg_description_usercmds_as_received(hitreg_description *description) {
  return hitreg_description_setting(description, "recorder.usercmds", "as_received");
}

/* ---- Fields: the state of entities, and usercmd fields and tables of your own ---- */

// The type of a field or a column. Columns of traces take all but `HITREG_I32`.
typedef enum hitreg_type {
  // 32-bit float.
  HITREG_F32 = 0,
  // Signed 32-bit integer.
  HITREG_I32 = 1,
  // Unsigned 32-bit integer; also flags and counters.
  HITREG_U32 = 2,
  // Signed 64-bit integer.
  HITREG_I64 = 3,
  // Unsigned 64-bit integer; also ids and hashes.
  HITREG_U64 = 4,
  // 64-bit float.
  HITREG_F64 = 5,
  // A flag: 0 or 1. Rows refuse other numbers. States keep them, and exports show them as true.
  HITREG_BOOL = 6,
  // A text that repeats, such as the name of a weapon. Columns of traces: `hitreg_trace_names`.
  HITREG_TEXT = 7,
} hitreg_type;

// Who determines the value of a field, and so what a client does with it on an ack.
typedef enum hitreg_scope {
  // Movement: clients predict it, and compare it on an ack.
  HITREG_SCOPE_MOVEMENT = 0,
  // Weapons: clients that predict weapons predict it, and compare it on an ack.
  HITREG_SCOPE_WEAPONS = 1,
  // Only the server, such as health: clients adopt it on an ack.
  HITREG_SCOPE_STATUS = 2,
} hitreg_scope;

// What a field measures.
typedef enum hitreg_meaning {
  // None of the others.
  HITREG_MEANING_PLAIN = 0,
  // A coordinate of a position; in units by default.
  HITREG_MEANING_POSITION = 1,
  // A component of a velocity; in units/s by default.
  HITREG_MEANING_VELOCITY = 2,
  // An angle in degrees, which wraps at 360. Three consecutive angles are pitch, yaw and roll.
  HITREG_MEANING_ANGLE = 3,
  // A component of a unit vector.
  HITREG_MEANING_DIRECTION = 4,
  // A counter: any change means that an event happened, whatever its size.
  HITREG_MEANING_COUNTER = 5,
  // A flag, or a set of flags as bits.
  HITREG_MEANING_FLAG = 6,
  // A value of an enumeration.
  HITREG_MEANING_NAME = 7,
  // A point in time or a duration; in milliseconds by default.
  HITREG_MEANING_TIME = 8,
} hitreg_meaning;

// A field of an entity's state, or of a usercmd.
typedef struct hitreg_field {
  // Name, unique in its class. Components of a vector share the first part: `origin.x`, `origin.y`.
  const char *name;
  // A `hitreg_type`.
  uint32_t value_type;
  // A `hitreg_scope`.
  uint32_t scope;
  // A `hitreg_meaning`.
  uint32_t meaning;
  // The unit; null for the default of the meaning.
  const char *unit;
} hitreg_field;

// Adds the next class of entities, numbered from 0, with the fields of their states.
hitreg_code hitreg_description_class(hitreg_description *description,
                                     const char *name,
                                     const hitreg_field *fields,
                                     size_t count);

// Adds fields of your own to all usercmds, for `hitreg_usercmd.fields`. `scope` has no effect.
hitreg_code hitreg_description_usercmd_fields(hitreg_description *description,
                                              const hitreg_field *fields,
                                              size_t count);

// Declares usercmd fields of type HITREG_I32 by their names; `hitreg_numbers` makes their values.
static inline hitreg_code hitreg_description_usercmd_numbers(hitreg_description *description,
                                                             const char *const *names, uint32_t count) {
  hitreg_code code = names ? HITREG_OK : hitreg_description_usercmd_fields(description, NULL, count);
  uint32_t i;
  for (i = 0; names && code == HITREG_OK && i < count; i++) {
    hitreg_field field;
    field.name = names[i];
    field.value_type = HITREG_I32;
    field.scope = HITREG_SCOPE_MOVEMENT;
    field.meaning = HITREG_MEANING_PLAIN;
    field.unit = NULL;
    code = hitreg_description_usercmd_fields(description, &field, 1);
  }
  return code;
}

// Declares that usercmds carry bytes of your own, for `hitreg_usercmd.bytes`.
hitreg_code hitreg_description_usercmd_bytes(hitreg_description *description);

// A column of a table of your own.
typedef struct hitreg_column {
  // Name, unique in its table; not `at_us`.
  const char *name;
  // A `hitreg_type`.
  uint32_t value_type;
} hitreg_column;

// Adds the next table of your own, numbered from 0; see `hitreg_table_custom`. Each row has a time, a series (such as
// a player) and these columns.
hitreg_code hitreg_description_table(hitreg_description *description,
                                     const char *name,
                                     const hitreg_column *columns,
                                     size_t count);

/* ============================================================================================== */
/* 3. Recorder                                                                                    */
/* ============================================================================================== */

// A log that is being written. Any thread may use it, one at a time.
typedef struct hitreg_recorder hitreg_recorder;

// Options of a recorder. Zero selects the default of each field.
typedef struct hitreg_options {
  // `sizeof(hitreg_options)`.
  uint32_t size;
  // Reorder window in milliseconds: how much older than the newest row a row may be; 250 by default.
  uint32_t window_ms;
  // Capacity of each stream, in rows, at most 1048576; 4096 by default.
  uint32_t ring;
  // 1: wait instead of dropping rows or chunks, for sessions that do not run in real time.
  uint32_t patient;
  // Seconds of session time after which a new file (`NAME-0001.hitlog` and so on) starts; 0 for no limit. With both
  // limits 0, there is one file, without a number. A flight recorder ignores both limits.
  uint32_t rotate_s;
  // MiB after which a new file starts; 0 for no limit. Chunks that wait for the disk still go into the old file.
  uint32_t rotate_mib;
} hitreg_options;

// Starts a log at `path`, which is called `PATH.part` until `hitreg_recorder_finish`. `options` may be null.
hitreg_code hitreg_recorder_create(const char *path,
                                   hitreg_description *description,
                                   const hitreg_options *options,
                                   hitreg_recorder **recorder);

// Starts a flight recorder: it keeps the last `seconds`, from 1 to 1000000, of a session in memory for
// `hitreg_recorder_save`. `options` may be null.
hitreg_code hitreg_recorder_keep_last(uint32_t seconds,
                                      hitreg_description *description,
                                      const hitreg_options *options,
                                      hitreg_recorder **recorder);

// Writes what `hitreg_recorder_keep_last` holds in memory, including everything pushed before this call, as a log that
// begins after a tick. The recording goes on. A signal handler must not call it, nor any other function of this
// library: set a flag in the handler, and save from the main loop.
hitreg_code hitreg_recorder_save(const hitreg_recorder *recorder, const char *path);

// A log in memory. It is immutable: any number of threads may read it at once.
typedef struct hitreg_log hitreg_log;

// Starts a trace. A build that replays a log pushes the same rows as when it records a session.
// `hitreg_recorder_finish` writes the tables. It replaces an existing trace.
hitreg_code hitreg_recorder_trace(const char *path,
                                  hitreg_description *description,
                                  const hitreg_log *log,
                                  hitreg_recorder **recorder);

// Counters of a recorder.
typedef struct hitreg_written {
  // `sizeof(hitreg_written)`.
  uint32_t size;
  // Reserved; 0.
  uint32_t reserved;
  // Rows in the file so far. A flight recorder and a trace count the rows that they received.
  uint64_t rows;
  // Rows lost because a stream was full.
  uint64_t lost_rows;
  // Chunks dropped because the disk was too slow. Gaps in the log mark when.
  uint64_t dropped_chunks;
  // Rows refused because they were older than the reorder window. Gaps in the log mark when.
  uint64_t late_rows;
} hitreg_written;

// Returns the recorder's counters so far; the last ones after `hitreg_recorder_finish`.
hitreg_code hitreg_recorder_written(const hitreg_recorder *recorder, hitreg_written *written);

// Ends the log: writes everything pushed before and renames the file. `written` may be null; the counters are there also
// if the file cannot be written. The caller still frees the handle.
hitreg_code hitreg_recorder_finish(hitreg_recorder *recorder,
                                   hitreg_written *written);

// Frees a recorder; does nothing for null, or in a child process of a fork. Without a finish, `PATH.part` keeps
// everything recorded so far.
void hitreg_recorder_free(hitreg_recorder *recorder);

/* ============================================================================================== */
/* 4. Streams: one for each thread that records                                                   */
/* ============================================================================================== */

// A handle for one thread to push rows. It belongs to the first thread that pushes; `hitreg_stream_release` makes
// it free for another.
typedef struct hitreg_stream hitreg_stream;

// Creates a stream for one thread to push into. A recorder can have any number of streams. A stream may outlive its
// recorder; free both.
hitreg_code hitreg_stream_new(const hitreg_recorder *recorder, hitreg_stream **stream);

// Gives up ownership of the stream, so that another thread can push. Only the owner may call it.
hitreg_code hitreg_stream_release(hitreg_stream *stream);

// Frees a stream; its rows stay in the log. Does nothing for null.
void hitreg_stream_free(hitreg_stream *stream);

/* ============================================================================================== */
/* 5. Rows: tables, values, hitreg_push_row                                                       */
/* ============================================================================================== */

// A table of a log, with the columns of its rows in order. Every row also has a time, `at_us`. The series of a row is
// its player, and 0 in `TICKS`, `STATES` and `DAMAGE`.
typedef enum hitreg_table {
  // Usercmds: seq, server_time_us, lerp_ms, msec, pitch, yaw, roll, forwardmove, sidemove, upmove, buttons, impulse,
  // bytes, fields. Angles and moves are floats. `bytes` is a list of bytes, `fields` of `hitreg_value`.
  HITREG_TABLE_FRAMES = 0,
  // Shots as clients predicted them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
  // pellets. `weapon` is a text or a number; it and `pellets` may be empty.
  HITREG_TABLE_PREDICTED = 1,
  // Shots as the server judged them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
  // pellets.
  HITREG_TABLE_JUDGED = 2,
  // Packets that clients sent: number, newest, count, ack, bytes.
  HITREG_TABLE_SENT = 3,
  // Packets that reached the server: number.
  HITREG_TABLE_REACHED = 4,
  // How the server handled usercmds: usercmd, tick, how. Rows take the time of the previous push.
  HITREG_TABLE_EXECUTED = 5,
  // Players who joined or left: tick, presence.
  HITREG_TABLE_PRESENCE = 6,
  // Snapshots that the server sent: seq, tick, server_time_us, ack, bytes, choked, entities, effects. `entities` is
  // a list of `uint16_t`, `effects` of `hitreg_effect`.
  HITREG_TABLE_SNAPSHOTS = 7,
  // Snapshots that reached their client: seq.
  HITREG_TABLE_RECEIVED = 8,
  // Ends of server ticks: tick, hash. `hash` may be empty.
  HITREG_TABLE_TICKS = 9,
  // States of entities after a tick: tick, viewer, entity, class_number, cells. `cells` is a list of `uint32_t`.
  // Rows take the time of the previous push.
  HITREG_TABLE_STATES = 10,
  // Damage to entities: tick, victim, attacker, amount, weapon, armour, force_x, force_y, force_z. `weapon`, `armour`
  // and the force may be empty.
  HITREG_TABLE_DAMAGE = 11,
  // The first table of your own; see `hitreg_table_custom`. It has the columns of `hitreg_description_table`.
  HITREG_TABLE_CUSTOM = 256,
} hitreg_table;

// Returns the number of a table of your own: 0 for the first `hitreg_description_table`.
static inline uint32_t hitreg_table_custom(uint32_t number) {
  return (uint32_t)HITREG_TABLE_CUSTOM + number;
}

// The kind of a value.
typedef enum hitreg_value_kind {
  // No value.
  HITREG_VALUE_NONE = 0,
  // An integer: `data.number`.
  HITREG_VALUE_NUMBER = 1,
  // A float: `data.real`.
  HITREG_VALUE_REAL = 2,
  // A list: `count` items of `item_bytes` bytes at `data.items`.
  HITREG_VALUE_LIST = 3,
  // A 64-bit float: `data.real64`.
  HITREG_VALUE_REAL64 = 4,
  // A text: `data.text`.
  HITREG_VALUE_TEXT = 5,
} hitreg_value_kind;

// The content of a value.
typedef union hitreg_value_data {
  // An integer; a `u64` and a hash as their bits.
  int64_t number;
  // A float.
  float real;
  // A 64-bit float.
  double real64;
  // A text, ended by a zero byte. Texts of a log stay valid until the log is freed.
  const char *text;
  // The first item of a list; null if it is empty.
  const void *items;
} hitreg_value_data;

// One value of a row. Make it with `hitreg_number`, `hitreg_real`, `hitreg_real64`, `hitreg_text`,
// `hitreg_list` or `hitreg_none`.
typedef struct hitreg_value {
  // A `hitreg_value_kind`.
  uint16_t kind;
  // Size of an item of a list, in bytes.
  uint16_t item_bytes;
  // Number of items of a list.
  uint32_t count;
  // The content.
  hitreg_value_data data;
} hitreg_value;

// Returns no value, for columns that may be empty.
static inline hitreg_value hitreg_none(void) {
  hitreg_value value;
  value.kind = HITREG_VALUE_NONE;
  value.item_bytes = 0;
  value.count = 0;
  value.data.number = 0;
  return value;
}

// Returns an integer, also for flags and enumerations. A 64-bit hash is passed as its bits.
static inline hitreg_value hitreg_number(int64_t number) {
  hitreg_value value = hitreg_none();
  value.kind = HITREG_VALUE_NUMBER;
  value.data.number = number;
  return value;
}

// Returns a float.
static inline hitreg_value hitreg_real(float real) {
  hitreg_value value = hitreg_none();
  value.kind = HITREG_VALUE_REAL;
  value.data.real = real;
  return value;
}

// Returns a 64-bit float.
static inline hitreg_value hitreg_real64(double real64) {
  hitreg_value value = hitreg_none();
  value.kind = HITREG_VALUE_REAL64;
  value.data.real64 = real64;
  return value;
}

// Returns a text.
static inline hitreg_value hitreg_text(const char *text) {
  hitreg_value value = hitreg_none();
  value.kind = HITREG_VALUE_TEXT;
  value.data.text = text;
  return value;
}

// Returns a list of `count` items of `item_bytes` bytes each. `items` may be null if `count` is 0.
static inline hitreg_value hitreg_list(const void *items, uint32_t count, uint16_t item_bytes) {
  hitreg_value value = hitreg_none();
  value.kind = HITREG_VALUE_LIST;
  value.item_bytes = item_bytes;
  value.count = count;
  value.data.items = items;
  return value;
}

// Makes values of integers.
static inline void hitreg_numbers(hitreg_value *values, const int32_t *numbers, uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    values[i] = hitreg_number(numbers[i]);
  }
}

// Pushes a row: one value for each column of the table, in the order of the columns. `table` is a `hitreg_table`, or
// `hitreg_table_custom`. `series` is the player; 0 in tables without players; any number in a table of your own.
//
// A row may be older than the newest row by the reorder window of `hitreg_options`. `at_us` has no effect on rows that
// take the time of the previous push. A row that is refused does no harm.
hitreg_code hitreg_push_row(hitreg_stream *stream,
                            uint32_t table,
                            uint32_t series,
                            int64_t at_us,
                            const hitreg_value *values,
                            size_t count);

/* ============================================================================================== */
/* 6. Pushing: a typed function for each table                                                    */
/*                                                                                                */
/* Each fills a row and calls hitreg_push_row, whose errors it returns. A null struct returns     */
/* HITREG_ERROR_NULL. Start structs with zeros: `hitreg_usercmd usercmd = {0};`                   */
/* ============================================================================================== */

/* ---- What the server does: ticks, bodies, executed usercmds, damage ---- */

// Pushes the end of a server tick. `hash` points to a hash of the state; null, or a hash of 0, if the tick has none.
// Later ticks have higher numbers. A tick that contradicts another one returns HITREG_ERROR_MISFIT, as do its states
// and usercmds.
static inline hitreg_code hitreg_push_tick(hitreg_stream *stream, uint32_t tick, int64_t at_us, const uint64_t *hash) {
  hitreg_value row[2];
  row[0] = hitreg_number(tick);
  row[1] = hash ? hitreg_number((int64_t)*hash) : hitreg_none();
  return hitreg_push_row(stream, HITREG_TABLE_TICKS, 0, at_us, row, 2);
}

// Writes a field of type HITREG_I64 or HITREG_U64 as two cells of a state.
static inline void hitreg_put_64(uint32_t *cells, uint64_t bits) {
  cells[0] = (uint32_t)bits;
  cells[1] = (uint32_t)(bits >> 32);
}

// Writes a field of type HITREG_F64 as two cells of a state.
static inline void hitreg_put_f64(uint32_t *cells, double real64) {
  uint64_t bits;
  memcpy(&bits, &real64, sizeof bits);
  hitreg_put_64(cells, bits);
}

// Writes a field of type `HITREG_TEXT` as two cells of a state. The recorder remembers each different text until it
// ends, at most 4 MiB of them.
hitreg_code hitreg_put_text(hitreg_stream *stream, const char *text, uint32_t *cells);

// Reads a field of type HITREG_I64 or HITREG_U64 from two cells of a state.
static inline uint64_t hitreg_get_64(const uint32_t *cells) { return (uint64_t)cells[1] << 32 | cells[0]; }

// Reads a field of type HITREG_F64 from two cells of a state.
static inline double hitreg_get_f64(const uint32_t *cells) {
  uint64_t bits = hitreg_get_64(cells);
  double real64;
  memcpy(&real64, &bits, sizeof real64);
  return real64;
}

// The state of an entity after a tick.
typedef struct hitreg_state {
  // The tick. In a log that begins inside a session, states of tick 0 say where entities were.
  uint32_t tick;
  // The only player who was sent this state; -1 for all.
  int32_t viewer;
  // The entity, up to 65,535; players first.
  uint32_t entity;
  // The class of the entity: 0 for the first `hitreg_description_class`.
  uint32_t class_number;
  // One cell for each field of the class, floats as their bits (`memcpy`). Fields of 64 bits have two cells:
  // `hitreg_put_64`, `hitreg_put_f64`, `hitreg_put_text`.
  const uint32_t *cells;
  // Number of cells.
  uint32_t cell_count;
} hitreg_state;

// Pushes the state of an entity after a tick. Push the tick first: a state takes the time of the
// previous push.
static inline hitreg_code hitreg_push_state(hitreg_stream *stream, const hitreg_state *state) {
  hitreg_value row[5];
  if (!state) {
    return hitreg_push_row(stream, HITREG_TABLE_STATES, 0, 0, NULL, 5);
  }
  row[0] = hitreg_number(state->tick);
  row[1] = hitreg_number(state->viewer);
  row[2] = hitreg_number(state->entity);
  row[3] = hitreg_number(state->class_number);
  row[4] = hitreg_list(state->cells, state->cell_count, sizeof *state->cells);
  return hitreg_push_row(stream, HITREG_TABLE_STATES, 0, 0, row, 5);
}

// Pushes the state of an entity that all players share; see `hitreg_push_state`.
static inline hitreg_code hitreg_push_body(hitreg_stream *stream, uint32_t tick, uint32_t entity, uint32_t class_number,
                                           const uint32_t *cells, uint32_t cell_count) {
  hitreg_state state;
  state.tick = tick;
  state.viewer = -1;
  state.entity = entity;
  state.class_number = class_number;
  state.cells = cells;
  state.cell_count = cell_count;
  return hitreg_push_state(stream, &state);
}

/* ---- Structs as states: one table of members declares, pushes and restores them ---- */

// A member of a struct as a field of a class. Make it with HITREG_FIELD.
typedef struct hitreg_member {
  // The field.
  hitreg_field field;
  // Bytes before the member in the struct.
  uint32_t offset;
  // Bytes of the member.
  uint32_t size;
} hitreg_member;

// Member `member` of the struct `type` as a field called `name`. HITREG_F32 is a float, HITREG_F64 a double, and
// HITREG_TEXT an array of char, not a pointer. Other types are integers, signed as the member. The member may be smaller
// than the field, not larger.
#define HITREG_FIELD(type, member, name, value_type, scope, meaning) \
  { {name, value_type, scope, meaning, NULL}, offsetof(type, member), sizeof(((type *)0)->member) }

// Declares a class whose fields are the members of a struct. Returns `HITREG_ERROR_SIZE` if the type of a field does
// not have the size of its member.
hitreg_code hitreg_description_struct(hitreg_description *description,
                                      const char *name,
                                      const hitreg_member *members,
                                      uint32_t count);

// Pushes the state of an entity from a struct; see `hitreg_push_body`. Signed types extend a smaller member with its
// sign, unsigned types with zeros. Returns `HITREG_ERROR_SIZE` if the type of a field does not have the size of its
// member.
hitreg_code hitreg_push_struct(hitreg_stream *stream,
                               uint32_t tick,
                               uint32_t entity,
                               uint32_t class_number,
                               const void *body,
                               const hitreg_member *members,
                               uint32_t count);

// Continues a hash over the members of a struct: texts up to their end, other members as their bytes. Begin with 0.
uint64_t hitreg_hash_struct(uint64_t hash, const void *body, const hitreg_member *members, uint32_t count);

// A class of entities whose states are structs. Make it with HITREG_CLASS.
typedef struct hitreg_class {
  // Name of the class.
  const char *name;
  // The members of its structs.
  const hitreg_member *members;
  // Number of members.
  uint32_t count;
} hitreg_class;

// A class called `name`, with all members of the array `members`.
#define HITREG_CLASS(name, members) \
  { name, members, (uint32_t)(sizeof(members) / sizeof((members)[0])) }

// Declares classes, numbered from 0 in their order. The first is that of the players.
static inline hitreg_code hitreg_description_classes(hitreg_description *description, const hitreg_class *classes,
                                                     uint32_t count) {
  hitreg_code code = HITREG_OK;
  uint32_t i;
  if (!classes) {
    return hitreg_description_class(description, NULL, NULL, count);
  }
  for (i = 0; code == HITREG_OK && i < count; i++) {
    code = hitreg_description_struct(description, classes[i].name, classes[i].members, classes[i].count);
  }
  return code;
}

// An entity and the struct with its state.
typedef struct hitreg_body {
  // The entity, up to 65,535; players first.
  uint32_t entity;
  // Index of its class in the array of classes.
  uint32_t class_number;
  // The struct.
  const void *state;
} hitreg_body;

// Pushes the end of a tick, with a hash of all bodies, and then the state of each. The order of the bodies does not
// matter. `classes` are those of the description. If a body is refused, nothing is pushed.
hitreg_code hitreg_push_tick_with_bodies(hitreg_stream *stream,
                                         uint32_t tick,
                                         int64_t at_us,
                                         const hitreg_class *classes,
                                         const hitreg_body *bodies,
                                         size_t count);

// How the server handled a usercmd.
typedef enum hitreg_how {
  // The server ran it.
  HITREG_HOW_RUN = 0,
  // It never arrived; the server ran the previous usercmd again in its place.
  HITREG_HOW_STOOD_IN = 1,
  // It never arrived, and the server ran nothing in its place.
  HITREG_HOW_MISSING = 2,
  // It arrived after a later usercmd had run, and the server dropped it.
  HITREG_HOW_LATE = 3,
  // The player had used up the simulation time that the server allows.
  HITREG_HOW_OVER_BUDGET = 4,
} hitreg_how;

// Pushes how the server handled a usercmd, in the order of handling.
static inline hitreg_code hitreg_push_executed(hitreg_stream *stream, uint32_t player, uint32_t usercmd, uint32_t tick,
                                               hitreg_how how) {
  hitreg_value row[3];
  row[0] = hitreg_number(usercmd);
  row[1] = hitreg_number(tick);
  row[2] = hitreg_number(how);
  return hitreg_push_row(stream, HITREG_TABLE_EXECUTED, player, 0, row, 3);
}

// Damage to an entity. A value that is not set is absent in the log. If one of the three forces is set, the others are 0.
typedef struct hitreg_damage {
  // The tick of the damage.
  uint32_t tick;
  // Time of the tick.
  int64_t at_us;
  // The entity that lost health.
  uint32_t victim;
  // The player who caused it; -1 for other causes, such as a fall.
  int32_t attacker;
  // Lost health points.
  int32_t amount;
  // The weapon: `hitreg_text` with its name, or `hitreg_number`.
  hitreg_value weapon;
  // Lost armour points: `hitreg_number`, up to 65,535.
  hitreg_value armour;
  // The push: the change of the victim's velocity in units/s, as `hitreg_real`.
  hitreg_value force_x, force_y, force_z;
} hitreg_damage;

// Pushes damage to an entity.
static inline hitreg_code hitreg_push_damage(hitreg_stream *stream, const hitreg_damage *damage) {
  hitreg_value row[9];
  if (!damage) {
    return hitreg_push_row(stream, HITREG_TABLE_DAMAGE, 0, 0, NULL, 9);
  }
  row[0] = hitreg_number(damage->tick);
  row[1] = hitreg_number(damage->victim);
  row[2] = hitreg_number(damage->attacker);
  row[3] = hitreg_number(damage->amount);
  row[4] = damage->weapon;
  row[5] = damage->armour;
  row[6] = damage->force_x;
  row[7] = damage->force_y;
  row[8] = damage->force_z;
  return hitreg_push_row(stream, HITREG_TABLE_DAMAGE, 0, damage->at_us, row, 9);
}

// Whether a player joined or left.
typedef enum hitreg_presence {
  // The player joined.
  HITREG_PRESENCE_JOINED = 0,
  // The player left.
  HITREG_PRESENCE_LEFT = 1,
} hitreg_presence;

// Pushes that a player joined or left. `tick` is the first tick with the player, or the first
// without.
static inline hitreg_code hitreg_push_presence(hitreg_stream *stream, uint32_t player, uint32_t tick, int64_t at_us,
                                               hitreg_presence presence) {
  hitreg_value row[2];
  row[0] = hitreg_number(tick);
  row[1] = hitreg_number(presence);
  return hitreg_push_row(stream, HITREG_TABLE_PRESENCE, player, at_us, row, 2);
}

/* ---- What players do: usercmds and shots ---- */

// A client frame's input.
typedef struct hitreg_usercmd {
  // Number of the usercmd, from 1.
  uint32_t seq;
  // Session time of the client frame. A server that does not know it sets the arrival time.
  int64_t at_us;
  // The server time on the client's clock.
  int64_t server_time_us;
  // How far behind `server_time_us` the client drew other players, in milliseconds.
  uint32_t lerp_ms;
  // Duration of the client frame in milliseconds, up to 255.
  uint32_t msec;
  // View angles in degrees: down is positive; counter-clockwise from +x; roll.
  float pitch, yaw, roll;
  // Intended speed forward, to the right and up, in units/s.
  float forwardmove, sidemove, upmove;
  // Pressed buttons, up to 16 bits.
  uint32_t buttons;
  // A one-shot request, up to 255; 0 for none.
  uint32_t impulse;
  // Bytes of your own, stored unchanged; see `hitreg_description_usercmd_bytes`. A row takes at most 4 MiB.
  const uint8_t *bytes;
  uint32_t byte_count;
  // One value for each field of `hitreg_description_usercmd_fields`. Without them, the row is refused.
  const hitreg_value *fields;
  uint32_t field_count;
} hitreg_usercmd;

// Pushes a client frame's usercmd.
static inline hitreg_code hitreg_push_usercmd(hitreg_stream *stream, uint32_t player, const hitreg_usercmd *usercmd) {
  hitreg_value row[14];
  if (!usercmd) {
    return hitreg_push_row(stream, HITREG_TABLE_FRAMES, player, 0, NULL, 14);
  }
  row[0] = hitreg_number(usercmd->seq);
  row[1] = hitreg_number(usercmd->server_time_us);
  row[2] = hitreg_number(usercmd->lerp_ms);
  row[3] = hitreg_number(usercmd->msec);
  row[4] = hitreg_real(usercmd->pitch);
  row[5] = hitreg_real(usercmd->yaw);
  row[6] = hitreg_real(usercmd->roll);
  row[7] = hitreg_real(usercmd->forwardmove);
  row[8] = hitreg_real(usercmd->sidemove);
  row[9] = hitreg_real(usercmd->upmove);
  row[10] = hitreg_number(usercmd->buttons);
  row[11] = hitreg_number(usercmd->impulse);
  row[12] = hitreg_list(usercmd->bytes, usercmd->byte_count, sizeof *usercmd->bytes);
  row[13] = hitreg_list(usercmd->fields, usercmd->field_count, sizeof *usercmd->fields);
  return hitreg_push_row(stream, HITREG_TABLE_FRAMES, player, usercmd->at_us, row, 14);
}

// The result of a shot.
typedef enum hitreg_reason {
  // It hit a target.
  HITREG_REASON_HIT = 0,
  // The map blocked a shot that would have hit a target.
  HITREG_REASON_HIT_WORLD = 1,
  // Its line meets no target.
  HITREG_REASON_MISSED = 2,
  // It hit a target that is already dead at present; no damage.
  HITREG_REASON_ALREADY_DEAD = 3,
  // It launched a projectile; the impact has its own row.
  HITREG_REASON_LAUNCHED = 4,
} hitreg_reason;

// A shot, as the client predicted it or as the server judged it.
typedef struct hitreg_shot {
  // The usercmd that fired it.
  uint32_t usercmd;
  // Time of the client frame (predicted) or of the server's tick (judged).
  int64_t at_us;
  // Index among the shots of that usercmd, from 0 up to 255; impacts have indices of their own. Shots with equal
  // indices get the next free ones in tables.
  uint32_t index;
  // The result.
  hitreg_reason reason;
  // The entity that was hit; -1 for none.
  int32_t target;
  // The part of the body that was hit, in the game's numbering, up to 255.
  uint32_t hitgroup;
  // Damage, in health points.
  int32_t damage;
  // How far the server rewound the targets; 0 for a prediction.
  uint32_t rewound_us;
  // The weapon: `hitreg_text` with its name, or `hitreg_number`; `hitreg_none` if it is unknown.
  hitreg_value weapon;
  // 1 for the impact of a projectile, which a shot of the same usercmd launched.
  uint32_t impact;
  // Number of pellets that hit, in one row for all pellets of a shot: `hitreg_number`, up to 255; `hitreg_none` if the
  // game does not count them.
  hitreg_value pellets;
} hitreg_shot;

// Pushes a shot into HITREG_TABLE_PREDICTED or HITREG_TABLE_JUDGED.
static inline hitreg_code hitreg_push_shot(hitreg_stream *stream, uint32_t table, uint32_t player,
                                           const hitreg_shot *shot) {
  hitreg_value row[10];
  if (!shot) {
    return hitreg_push_row(stream, table, player, 0, NULL, 10);
  }
  row[0] = hitreg_number(shot->usercmd);
  row[1] = hitreg_number(shot->index);
  row[2] = hitreg_number(shot->reason);
  row[3] = hitreg_number(shot->target);
  row[4] = hitreg_number(shot->hitgroup);
  row[5] = hitreg_number(shot->damage);
  row[6] = hitreg_number(shot->rewound_us);
  row[7] = shot->weapon;
  row[8] = hitreg_number(shot->impact);
  row[9] = shot->pellets;
  return hitreg_push_row(stream, table, player, shot->at_us, row, 10);
}

// Pushes a shot as the player's client predicted it.
static inline hitreg_code hitreg_push_predicted(hitreg_stream *stream, uint32_t player, const hitreg_shot *shot) {
  return hitreg_push_shot(stream, HITREG_TABLE_PREDICTED, player, shot);
}

// Pushes a shot as the server judged it.
static inline hitreg_code hitreg_push_judged(hitreg_stream *stream, uint32_t player, const hitreg_shot *shot) {
  return hitreg_push_shot(stream, HITREG_TABLE_JUDGED, player, shot);
}

/* ---- What the network carries: packets from clients, snapshots to clients ---- */

// A packet that a client sent.
typedef struct hitreg_packet {
  // Number of the packet, from 1.
  uint32_t number;
  // Send time.
  int64_t at_us;
  // The newest usercmd in it.
  uint32_t newest;
  // Number of usercmds in it, up to 255.
  uint32_t count;
  // The newest snapshot that the client had received; 0 for none.
  uint32_t ack;
  // Total bytes of its datagrams, up to 65,535; 0 if unknown.
  uint32_t bytes;
} hitreg_packet;

// Pushes a packet that a client sent.
static inline hitreg_code hitreg_push_sent(hitreg_stream *stream, uint32_t player, const hitreg_packet *packet) {
  hitreg_value row[5];
  if (!packet) {
    return hitreg_push_row(stream, HITREG_TABLE_SENT, player, 0, NULL, 5);
  }
  row[0] = hitreg_number(packet->number);
  row[1] = hitreg_number(packet->newest);
  row[2] = hitreg_number(packet->count);
  row[3] = hitreg_number(packet->ack);
  row[4] = hitreg_number(packet->bytes);
  return hitreg_push_row(stream, HITREG_TABLE_SENT, player, packet->at_us, row, 5);
}

// Pushes the arrival of a client's packet at the server. A lost packet never arrives, a duplicated
// one arrives twice.
static inline hitreg_code hitreg_push_reached(hitreg_stream *stream, uint32_t player, uint32_t number, int64_t at_us) {
  hitreg_value row[1];
  row[0] = hitreg_number(number);
  return hitreg_push_row(stream, HITREG_TABLE_REACHED, player, at_us, row, 1);
}

// A sound or a visual effect in a snapshot, which happens once.
typedef struct hitreg_effect {
  // Number of the effect in the game's numbering, up to 255.
  uint32_t kind;
  // The entity that causes it, up to 65,535.
  uint32_t entity;
  // 1: shared code causes the effect, so that its player's client can predict it; 0: it does not.
  uint32_t predictable;
  // Position, in units.
  float x;
  // Position, in units.
  float y;
  // Position, in units.
  float z;
} hitreg_effect;

// A snapshot that the server sent to a player.
typedef struct hitreg_snapshot {
  // Number of the snapshot, from 1.
  uint32_t seq;
  // Send time.
  int64_t at_us;
  // The server time in the snapshot.
  int64_t server_time_us;
  // The tick whose state it carries.
  uint32_t tick;
  // The newest usercmd that had run; 0 for none.
  uint32_t ack;
  // Total bytes of its datagrams, up to 65,535; 0 if unknown.
  uint32_t bytes;
  // Number of updates that the client's rate limit held back before this one, up to 255.
  uint32_t choked;
  // The entities in it, in any order.
  const uint16_t *entities;
  uint32_t entity_count;
  // Its sounds and visual effects.
  const hitreg_effect *effects;
  uint32_t effect_count;
} hitreg_snapshot;

// Pushes a snapshot that the server sent to a player.
static inline hitreg_code hitreg_push_snapshot(hitreg_stream *stream, uint32_t player,
                                               const hitreg_snapshot *snapshot) {
  hitreg_value row[8];
  if (!snapshot) {
    return hitreg_push_row(stream, HITREG_TABLE_SNAPSHOTS, player, 0, NULL, 8);
  }
  row[0] = hitreg_number(snapshot->seq);
  row[1] = hitreg_number(snapshot->tick);
  row[2] = hitreg_number(snapshot->server_time_us);
  row[3] = hitreg_number(snapshot->ack);
  row[4] = hitreg_number(snapshot->bytes);
  row[5] = hitreg_number(snapshot->choked);
  row[6] = hitreg_list(snapshot->entities, snapshot->entity_count, sizeof *snapshot->entities);
  row[7] = hitreg_list(snapshot->effects, snapshot->effect_count, sizeof *snapshot->effects);
  return hitreg_push_row(stream, HITREG_TABLE_SNAPSHOTS, player, snapshot->at_us, row, 8);
}

// Pushes the arrival of a snapshot at its client.
static inline hitreg_code hitreg_push_received(hitreg_stream *stream, uint32_t player, uint32_t seq, int64_t at_us) {
  hitreg_value row[1];
  row[0] = hitreg_number(seq);
  return hitreg_push_row(stream, HITREG_TABLE_RECEIVED, player, at_us, row, 1);
}

/* ============================================================================================== */
/* 7. Logs: reading a recording                                                                   */
/* ============================================================================================== */

// Reads a log into memory.
hitreg_code hitreg_log_open(const char *path, hitreg_log **log);

// Frees a log and all text and arrays that were returned from it; does nothing for null.
void hitreg_log_free(hitreg_log *log);

// Returns the text of a field of type `HITREG_TEXT`, given its two cells of a state. It stays valid until the log is
// freed. Returns null for a null log or null cells, and an empty text for cells that hold none.
const char *hitreg_log_text(const hitreg_log *log, const uint32_t *cells);

// Returns the game's name; null for a null log.
const char *hitreg_log_game(const hitreg_log *log);

// Returns the map's name, and its bytes unless `bytes` or `length` is null. Returns null for a null log.
const char *hitreg_log_map(const hitreg_log *log, const uint8_t **bytes, size_t *length);

// Returns the session's random seed; 0 for a null log.
uint64_t hitreg_log_seed(const hitreg_log *log);

// Returns a setting of the session; null if the log has no setting of this name.
const char *hitreg_log_setting(const hitreg_log *log, const char *key);

// Returns a setting of the session by its index, in the order of the log. Returns `HITREG_ERROR_NO_ROW` after the last.
hitreg_code hitreg_log_setting_at(const hitreg_log *log, size_t index, const char **key, const char **value);

// Returns the number of players; 0 for a null log.
size_t hitreg_log_players(const hitreg_log *log);

// Returns the number of a table by its name, for tables of your own. A log numbers them from 0 in the order of its
// description, but a program of another version may have described others.
hitreg_code hitreg_log_table(const hitreg_log *log, const char *name, uint32_t *table);

// Returns a series of a table by its index, in ascending order. A series is a player, or 0 in tables without players;
// a table of your own chooses its series. Returns `HITREG_ERROR_NO_ROW` after the last.
hitreg_code hitreg_log_series(const hitreg_log *log, uint32_t table, size_t index, uint32_t *series);

// Returns the number of rows of a series of a table. `table` and `series` are those of `hitreg_push_row`.
hitreg_code hitreg_log_count(const hitreg_log *log, uint32_t table, uint32_t series, size_t *count);

// Returns the index of a usercmd by its number. If several usercmds of the player have the number, this is the first
// one in the log. Returns `HITREG_ERROR_NO_ROW` if the log has none of this number.
hitreg_code hitreg_log_usercmd_index(const hitreg_log *log, uint32_t player, uint32_t seq, size_t *index);

// Reads a row as `hitreg_push_row` takes it: its time and its first `count` values. `index` counts the rows of the
// series from 0. `at_us` may be null; rows without a time have time 0. Lists are valid until the log is freed.
hitreg_code hitreg_log_row(const hitreg_log *log,
                           uint32_t table,
                           uint32_t series,
                           size_t index,
                           int64_t *at_us,
                           hitreg_value *values,
                           size_t count);

/* ============================================================================================== */
/* 8. Reading: a typed function for each table                                                    */
/*                                                                                                */
/* Each calls hitreg_log_row, whose errors it returns. `index` counts the rows of a player, or of */
/* the session, from 0. Lists in structs are valid until the log is freed.                        */
/* ============================================================================================== */

// The end of a tick.
typedef struct hitreg_tick {
  // Number of the tick, from 1.
  uint32_t tick;
  // Time of the tick.
  int64_t at_us;
  // Hash of the state after the tick.
  uint64_t hash;
  // 1: `hash` was recorded; 0: it was not.
  uint32_t has_hash;
} hitreg_tick;

// Reads a tick.
static inline hitreg_code hitreg_log_tick(const hitreg_log *log, size_t index, hitreg_tick *tick) {
  hitreg_value row[2];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_TICKS, 0, index, &at_us, tick ? row : NULL, 2);
  if (code == HITREG_OK) {
    tick->tick = (uint32_t)row[0].data.number;
    tick->at_us = at_us;
    tick->hash = (uint64_t)row[1].data.number;
    tick->has_hash = row[1].kind != HITREG_VALUE_NONE;
  }
  return code;
}

// Reads a state. States are in the order of ticks, viewers (-1 first) and entities.
static inline hitreg_code hitreg_log_state(const hitreg_log *log, size_t index, hitreg_state *state) {
  hitreg_value row[5];
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_STATES, 0, index, NULL, state ? row : NULL, 5);
  if (code == HITREG_OK) {
    state->tick = (uint32_t)row[0].data.number;
    state->viewer = (int32_t)row[1].data.number;
    state->entity = (uint32_t)row[2].data.number;
    state->class_number = (uint32_t)row[3].data.number;
    state->cells = (const uint32_t *)row[4].data.items;
    state->cell_count = row[4].count;
  }
  return code;
}

// Writes a state into a struct, member by member. The members are those with which the state was pushed. A text fills
// an array of its own length without a zero byte; a longer text is cut.
hitreg_code hitreg_restore_struct(const hitreg_log *log,
                                  const hitreg_state *state,
                                  void *body,
                                  const hitreg_member *members,
                                  uint32_t count);

// Writes a state into a struct of its class; see `hitreg_push_tick_with_bodies`.
hitreg_code hitreg_restore_body(const hitreg_log *log,
                                const hitreg_state *state,
                                const hitreg_class *classes,
                                uint32_t class_count,
                                void *body);

// How the server handled a usercmd.
typedef struct hitreg_executed {
  // Number of the usercmd.
  uint32_t usercmd;
  // The tick in which the server handled it.
  uint32_t tick;
  // What the server did.
  hitreg_how how;
} hitreg_executed;

// Reads how the server handled a usercmd of a player, in the order of handling.
static inline hitreg_code hitreg_log_executed(const hitreg_log *log, uint32_t player, size_t index,
                                              hitreg_executed *executed) {
  hitreg_value row[3];
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_EXECUTED, player, index, NULL, executed ? row : NULL, 3);
  if (code == HITREG_OK) {
    executed->usercmd = (uint32_t)row[0].data.number;
    executed->tick = (uint32_t)row[1].data.number;
    executed->how = (hitreg_how)row[2].data.number;
  }
  return code;
}

// Reads damage to an entity. The weapon is a text, which stays valid until the log is freed.
static inline hitreg_code hitreg_log_damage(const hitreg_log *log, size_t index, hitreg_damage *damage) {
  hitreg_value row[9];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_DAMAGE, 0, index, &at_us, damage ? row : NULL, 9);
  if (code == HITREG_OK) {
    damage->tick = (uint32_t)row[0].data.number;
    damage->at_us = at_us;
    damage->victim = (uint32_t)row[1].data.number;
    damage->attacker = (int32_t)row[2].data.number;
    damage->amount = (int32_t)row[3].data.number;
    damage->weapon = row[4];
    damage->armour = row[5];
    damage->force_x = row[6];
    damage->force_y = row[7];
    damage->force_z = row[8];
  }
  return code;
}

// A player joined or left.
typedef struct hitreg_presence_change {
  // The first tick with the player, or the first without.
  uint32_t tick;
  // Time of the change.
  int64_t at_us;
  // Whether the player joined or left.
  hitreg_presence presence;
} hitreg_presence_change;

// Reads a change of a player's presence.
static inline hitreg_code hitreg_log_presence(const hitreg_log *log, uint32_t player, size_t index,
                                              hitreg_presence_change *change) {
  hitreg_value row[2];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_PRESENCE, player, index, &at_us, change ? row : NULL, 2);
  if (code == HITREG_OK) {
    change->tick = (uint32_t)row[0].data.number;
    change->at_us = at_us;
    change->presence = (hitreg_presence)row[1].data.number;
  }
  return code;
}

// Reads a usercmd of a player, with its bytes and its fields of your own.
static inline hitreg_code hitreg_log_usercmd(const hitreg_log *log, uint32_t player, size_t index,
                                             hitreg_usercmd *usercmd) {
  hitreg_value row[14];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_FRAMES, player, index, &at_us, usercmd ? row : NULL, 14);
  if (code == HITREG_OK) {
    usercmd->seq = (uint32_t)row[0].data.number;
    usercmd->at_us = at_us;
    usercmd->server_time_us = row[1].data.number;
    usercmd->lerp_ms = (uint32_t)row[2].data.number;
    usercmd->msec = (uint32_t)row[3].data.number;
    usercmd->pitch = row[4].data.real;
    usercmd->yaw = row[5].data.real;
    usercmd->roll = row[6].data.real;
    usercmd->forwardmove = row[7].data.real;
    usercmd->sidemove = row[8].data.real;
    usercmd->upmove = row[9].data.real;
    usercmd->buttons = (uint32_t)row[10].data.number;
    usercmd->impulse = (uint32_t)row[11].data.number;
    usercmd->bytes = (const uint8_t *)row[12].data.items;
    usercmd->byte_count = row[12].count;
    usercmd->fields = (const hitreg_value *)row[13].data.items;
    usercmd->field_count = row[13].count;
  }
  return code;
}

// Reads a usercmd of a player by its number; see `hitreg_log_usercmd_index`.
static inline hitreg_code hitreg_log_find_usercmd(const hitreg_log *log, uint32_t player, uint32_t seq,
                                                  hitreg_usercmd *usercmd) {
  size_t index = 0;
  hitreg_code code = hitreg_log_usercmd_index(log, player, seq, &index);
  return code == HITREG_OK ? hitreg_log_usercmd(log, player, index, usercmd) : code;
}

// Reads a shot of a player from HITREG_TABLE_PREDICTED or HITREG_TABLE_JUDGED. The weapon is a text, which stays valid
// until the log is freed.
static inline hitreg_code hitreg_log_shot(const hitreg_log *log, uint32_t table, uint32_t player, size_t index,
                                          hitreg_shot *shot) {
  hitreg_value row[10];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, table, player, index, &at_us, shot ? row : NULL, 10);
  if (code == HITREG_OK) {
    shot->usercmd = (uint32_t)row[0].data.number;
    shot->at_us = at_us;
    shot->index = (uint32_t)row[1].data.number;
    shot->reason = (hitreg_reason)row[2].data.number;
    shot->target = (int32_t)row[3].data.number;
    shot->hitgroup = (uint32_t)row[4].data.number;
    shot->damage = (int32_t)row[5].data.number;
    shot->rewound_us = (uint32_t)row[6].data.number;
    shot->weapon = row[7];
    shot->impact = (uint32_t)row[8].data.number;
    shot->pellets = row[9];
  }
  return code;
}

// Reads a shot as a player's client predicted it.
static inline hitreg_code hitreg_log_predicted(const hitreg_log *log, uint32_t player, size_t index,
                                               hitreg_shot *shot) {
  return hitreg_log_shot(log, HITREG_TABLE_PREDICTED, player, index, shot);
}

// Reads a shot of a player as the server judged it.
static inline hitreg_code hitreg_log_judged(const hitreg_log *log, uint32_t player, size_t index, hitreg_shot *shot) {
  return hitreg_log_shot(log, HITREG_TABLE_JUDGED, player, index, shot);
}

// Reads a packet that a player's client sent.
static inline hitreg_code hitreg_log_sent(const hitreg_log *log, uint32_t player, size_t index, hitreg_packet *packet) {
  hitreg_value row[5];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_SENT, player, index, &at_us, packet ? row : NULL, 5);
  if (code == HITREG_OK) {
    packet->number = (uint32_t)row[0].data.number;
    packet->at_us = at_us;
    packet->newest = (uint32_t)row[1].data.number;
    packet->count = (uint32_t)row[2].data.number;
    packet->ack = (uint32_t)row[3].data.number;
    packet->bytes = (uint32_t)row[4].data.number;
  }
  return code;
}

// Reads a snapshot that the server sent to a player.
static inline hitreg_code hitreg_log_snapshot(const hitreg_log *log, uint32_t player, size_t index,
                                              hitreg_snapshot *snapshot) {
  hitreg_value row[8];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, HITREG_TABLE_SNAPSHOTS, player, index, &at_us, snapshot ? row : NULL, 8);
  if (code == HITREG_OK) {
    snapshot->seq = (uint32_t)row[0].data.number;
    snapshot->at_us = at_us;
    snapshot->tick = (uint32_t)row[1].data.number;
    snapshot->server_time_us = row[2].data.number;
    snapshot->ack = (uint32_t)row[3].data.number;
    snapshot->bytes = (uint32_t)row[4].data.number;
    snapshot->choked = (uint32_t)row[5].data.number;
    snapshot->entities = (const uint16_t *)row[6].data.items;
    snapshot->entity_count = row[6].count;
    snapshot->effects = (const hitreg_effect *)row[7].data.items;
    snapshot->effect_count = row[7].count;
  }
  return code;
}

// The arrival of a packet at the server, or of a snapshot at its client.
typedef struct hitreg_arrival {
  // Number of the packet or the snapshot.
  uint32_t number;
  // Arrival time.
  int64_t at_us;
} hitreg_arrival;

// Reads an arrival from HITREG_TABLE_REACHED or HITREG_TABLE_RECEIVED.
static inline hitreg_code hitreg_log_arrival(const hitreg_log *log, uint32_t table, uint32_t player, size_t index,
                                             hitreg_arrival *arrival) {
  hitreg_value row[1];
  int64_t at_us;
  hitreg_code code = hitreg_log_row(log, table, player, index, &at_us, arrival ? row : NULL, 1);
  if (code == HITREG_OK) {
    arrival->number = (uint32_t)row[0].data.number;
    arrival->at_us = at_us;
  }
  return code;
}

// Reads the arrival of a player's packet at the server.
static inline hitreg_code hitreg_log_reached(const hitreg_log *log, uint32_t player, size_t index,
                                             hitreg_arrival *arrival) {
  return hitreg_log_arrival(log, HITREG_TABLE_REACHED, player, index, arrival);
}

// Reads the arrival of a snapshot at a player's client.
static inline hitreg_code hitreg_log_received(const hitreg_log *log, uint32_t player, size_t index,
                                              hitreg_arrival *arrival) {
  return hitreg_log_arrival(log, HITREG_TABLE_RECEIVED, player, index, arrival);
}

/* ============================================================================================== */
/* 9. Playback: replaying a log as a build                                                        */
/*                                                                                                */
/*     hitreg_playback *playback = NULL;                                                          */
/*     hitreg_stream *stream = NULL;                                                              */
/*     int exit_code;                                                                             */
/*     hitreg_step step;                                                                          */
/*     if (hitreg_playback_open(argc, argv, "mygame", &playback, &exit_code) != HITREG_OK) {      */
/*       fprintf(stderr, "mygame: %s\n", hitreg_last_error());                                    */
/*       return exit_code;                                                                        */
/*     }                                                                                          */
/*     hitreg_playback_begin(playback, description, &stream);                                     */
/*     while (hitreg_playback_next(playback, stream, &step) == HITREG_OK) {                       */
/*       switch (step.kind) { ... }                                                               */
/*     }                                                                                          */
/*     hitreg_stream_free(stream);                                                                */
/*     hitreg_playback_finish(playback);                                                          */
/*     hitreg_playback_free(playback);                                                            */
/*                                                                                                */
/* A log that begins within a session: the players who are present join, then bodies are          */
/* restored. So a game may spawn a body when its player joins.                                    */
/* In a tick, rows of your own tables come first, by their times, then joins and leaves, then     */
/* usercmds by player, then the end of the tick.                                                  */
/* Usercmds run in the ticks in which they were recorded as executed. If the log records no       */
/* execution, they run in the first tick that is not earlier than they are.                       */
/* ============================================================================================== */

// A log that a build replays into a trace. One thread uses it.
typedef struct hitreg_playback hitreg_playback;

// What a server does next in a recorded session.
typedef enum hitreg_step_kind {
  // Restore a body that exists before the first tick: row `row` of `hitreg_log_state`. Only in a log that begins
  // within a session, after the players who are present have joined.
  HITREG_STEP_RESTORE = 0,
  // `player` joins. A body that the game spawns here is restored if the player was present before the first tick.
  HITREG_STEP_JOIN = 1,
  // `player` leaves.
  HITREG_STEP_LEAVE = 2,
  // Run a usercmd of `player`: row `row` of `hitreg_log_usercmd`.
  HITREG_STEP_INPUT = 3,
  // End the tick: simulate, then push the tick and its bodies.
  HITREG_STEP_TICK = 4,
  // A row of a table of your own: row `row` of series `player` of table `table`, for `hitreg_log_row`. Rows come
  // first in a tick, by their times. Games without a table of what happens, in its order, ignore them.
  HITREG_STEP_ROW = 5,
} hitreg_step_kind;

// A step of a playback.
typedef struct hitreg_step {
  // What to do.
  hitreg_step_kind kind;
  // The tick in which the step happens.
  uint32_t tick;
  // Time of the tick.
  int64_t at_us;
  // The player, or the series of a row; 0 for steps without one.
  uint32_t player;
  // The row to read; 0 for steps without one.
  size_t row;
  // For usercmds: `HITREG_HOW_RUN`, or `HITREG_HOW_STOOD_IN` for one that runs again in place of a lost one.
  hitreg_how how;
  // For rows: the table.
  uint32_t table;
} hitreg_step;

// Opens the log that the arguments of `main` name: `replay LOG -o TRACE`, and any number of `--set KEY=VALUE`. On an
// error, `exit_code` is the code for `main`: 125 for other arguments or a log of another game, 128 for other trouble.
hitreg_code hitreg_playback_open(int argc,
                                 const char *const *argv,
                                 const char *game,
                                 hitreg_playback **playback,
                                 int *exit_code);

// Returns the log of a playback, which is valid until the playback is freed; null for null.
const hitreg_log *hitreg_playback_log(const hitreg_playback *playback);

// Returns a setting of this replay: as asked for with `--set`, or as recorded. Returns null if the session has no
// setting of this name.
const char *hitreg_playback_setting(const hitreg_playback *playback, const char *key);

// Starts the trace, with the description that the game also records with, and returns the stream for its rows. Call it
// once; a second call returns `HITREG_ERROR_VALUE`. Free the stream before `hitreg_playback_finish`.
hitreg_code hitreg_playback_begin(hitreg_playback *playback, hitreg_description *description, hitreg_stream **stream);

// Returns the next step, and pushes the recorded usercmds and executions before it. Returns `HITREG_ERROR_NO_ROW` after
// the last tick, and `HITREG_ERROR_MISFIT` for a stream that `hitreg_playback_begin` did not return.
hitreg_code hitreg_playback_next(hitreg_playback *playback, hitreg_stream *stream, hitreg_step *step);

// Writes the trace of the steps so far. The playback can then only be freed. Returns `HITREG_ERROR_VALUE`, and does
// not end the playback, if `hitreg_playback_begin` has not started a trace.
hitreg_code hitreg_playback_finish(hitreg_playback *playback);

// Frees a playback and its log; does nothing for null, or in a child process of a fork.
void hitreg_playback_free(hitreg_playback *playback);

/* ============================================================================================== */
/* 10. Traces: column by column, without a recorder                                                */
/*                                                                                                */
/* A playback is simpler for a build that replays a log. This writes any table.                   */
/* ============================================================================================== */

// A trace under construction: a sequence of tables with their columns. One thread at a time.
typedef struct hitreg_trace hitreg_trace;

// Creates the trace of a log. `mode` is "closed" if the build ran the server, "open" if clients ran on recorded
// snapshots.
hitreg_code hitreg_trace_new(const hitreg_log *log, const char *mode, hitreg_trace **trace);

// Frees a trace; does nothing for null.
void hitreg_trace_free(hitreg_trace *trace);

// Sets a setting of the replay that differs from the log's, as given by `--set`.
hitreg_code hitreg_trace_setting(hitreg_trace *trace, const char *key, const char *value);

// Starts the next table: one that hitreg defines, such as `ticks` or `bodies`, or one of your own. Columns follow.
hitreg_code hitreg_trace_table(hitreg_trace *trace, const char *name);

// Names a key column of the latest table, if hitreg does not define the table. The key columns together identify a
// row; call it once for each.
hitreg_code hitreg_trace_key(hitreg_trace *trace, const char *column);

// Adds a column to the latest table: `rows` values of a `hitreg_type`, one for each row. The type is `HITREG_U32`,
// `HITREG_U64`, `HITREG_I64`, `HITREG_F32`, `HITREG_F64` or `HITREG_BOOL`; flags are bytes, 0 or 1. `unit` may be null.
hitreg_code hitreg_trace_column(hitreg_trace *trace,
                                const char *name,
                                const char *unit,
                                uint32_t value_type,
                                const void *values,
                                size_t rows);

// Adds a column of unsigned numbers; see `hitreg_trace_column`.
static inline hitreg_code hitreg_trace_u32(hitreg_trace *trace, const char *name, const char *unit,
                                           const uint32_t *values, size_t rows) {
  return hitreg_trace_column(trace, name, unit, HITREG_U32, values, rows);
}

// Adds a column of 64-bit hashes; see `hitreg_trace_column`.
static inline hitreg_code hitreg_trace_u64(hitreg_trace *trace, const char *name, const char *unit,
                                           const uint64_t *values, size_t rows) {
  return hitreg_trace_column(trace, name, unit, HITREG_U64, values, rows);
}

// Adds a column of signed numbers or times; see `hitreg_trace_column`.
static inline hitreg_code hitreg_trace_i64(hitreg_trace *trace, const char *name, const char *unit,
                                           const int64_t *values, size_t rows) {
  return hitreg_trace_column(trace, name, unit, HITREG_I64, values, rows);
}

// Adds a column of floats; see `hitreg_trace_column`.
static inline hitreg_code hitreg_trace_f32(hitreg_trace *trace, const char *name, const char *unit, const float *values,
                                           size_t rows) {
  return hitreg_trace_column(trace, name, unit, HITREG_F32, values, rows);
}

// Adds a column of names to the latest table. `codes` has the index in `names` of each row's name.
hitreg_code hitreg_trace_names(hitreg_trace *trace,
                               const char *name,
                               const char *const *names,
                               size_t count,
                               const uint32_t *codes,
                               size_t rows);

// Writes the trace to a file. It replaces an existing trace, but no other file.
hitreg_code hitreg_trace_write(const hitreg_trace *trace, const char *path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HITREG_H */
