/* Wrong calls return a code and a message, without side effects. Run it under AddressSanitizer and UBSan. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hitreg.h"

static int faults = 0;

static void expect(hitreg_code found, hitreg_code wanted, const char *says, int line) {
    if (found != wanted || (wanted != HITREG_OK && !strstr(hitreg_last_error(), says))) {
        fprintf(stderr, "misuse.c:%d: code %d, not %d: %s\n", line, found, wanted, hitreg_last_error());
        faults++;
    }
}
#define EXPECT(call, code, says) expect(call, code, says, __LINE__)

struct shared {
    hitreg_stream *stream;
    hitreg_code code;
    char says[256];
};

static void *from_another_thread(void *of) {
    struct shared *shared = of;
    uint64_t hash = 1;
    shared->code = hitreg_push_tick(shared->stream, 2, 20, &hash);
    strncpy(shared->says, hitreg_last_error(), sizeof shared->says - 1);
    return NULL;
}

static void other_thread(hitreg_stream *stream, hitreg_code wanted, const char *says, int line) {
    struct shared shared = {stream, HITREG_OK, ""};
    pthread_t thread;
    if (pthread_create(&thread, NULL, from_another_thread, &shared) || pthread_join(thread, NULL)) {
        exit(2);
    }
    if (shared.code != wanted || !strstr(shared.says, says)) {
        fprintf(stderr, "misuse.c:%d: code %d, not %d: %s\n", line, shared.code, wanted, shared.says);
        faults++;
    }
}

static hitreg_code add_class(hitreg_description *description, const char *name, uint32_t type, uint32_t scope, uint32_t meaning) {
    hitreg_field field = {name, type, scope, meaning, "units"};
    return hitreg_description_class(description, "player", &field, 1);
}

struct wide {
    double x;
};
static const hitreg_member too_wide[] = {
    HITREG_FIELD(struct wide, x, "origin.x", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION),
};

static hitreg_description *describe(void) {
    static const hitreg_column power = {"power", HITREG_F32}, unknown = {"unknown", 8}, unnamed = {NULL, HITREG_F32};
    hitreg_description *made = hitreg_description_new("misused");
    EXPECT(hitreg_description_player(made, "p0"), HITREG_OK, "");
    EXPECT(add_class(made, "x", 99, 0, 0), HITREG_ERROR_VALUE, "no type 99");
    EXPECT(add_class(made, "x", 8, 0, 0), HITREG_ERROR_VALUE, "no type 8");
    EXPECT(add_class(made, "x", 0, 99, 0), HITREG_ERROR_VALUE, "no scope 99");
    EXPECT(add_class(made, "x", 0, 0, 99), HITREG_ERROR_VALUE, "no meaning 99");
    EXPECT(add_class(made, "\xff", 0, 0, 0), HITREG_ERROR_VALUE, "not UTF-8");
    EXPECT(add_class(made, NULL, 0, 0, 0), HITREG_ERROR_NULL, "the field's name is null");
    EXPECT(hitreg_description_class(made, "player", NULL, 1), HITREG_ERROR_NULL, "fields is null");
    EXPECT(hitreg_description_usercmd_fields(made, NULL, 1), HITREG_ERROR_NULL, "fields is null");
    EXPECT(hitreg_description_struct(made, "player", too_wide, 1), HITREG_ERROR_SIZE, "`origin.x` has 8 bytes, and HITREG_F32 takes 4");
    EXPECT(hitreg_description_struct(made, "player", NULL, 1), HITREG_ERROR_NULL, "members is null");
    EXPECT(add_class(made, "x", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION), HITREG_OK, "");
    EXPECT(hitreg_description_setting(made, "key", NULL), HITREG_ERROR_NULL, "value is null");
    EXPECT(hitreg_description_map(made, "m", NULL, 9), HITREG_ERROR_NULL, "bytes is null");
    EXPECT(hitreg_description_side(made, 1, -2), HITREG_ERROR_VALUE, "no player -2");
    EXPECT(hitreg_description_table(made, "casts", NULL, 1), HITREG_ERROR_NULL, "columns is null");
    EXPECT(hitreg_description_table(made, "casts", &unknown, 1), HITREG_ERROR_VALUE, "no type 8");
    EXPECT(hitreg_description_table(made, "casts", &unnamed, 1), HITREG_ERROR_NULL, "the column's name is null");
    EXPECT(hitreg_description_table(made, "casts", &power, 1), HITREG_OK, "");
    return made;
}

static void record(const char *path) {
    hitreg_recorder *recorder = NULL;
    hitreg_stream *stream = NULL;
    hitreg_description *session = describe();
    EXPECT(hitreg_recorder_create(NULL, session, NULL, &recorder), HITREG_ERROR_NULL, "path is null");
    EXPECT(hitreg_recorder_create(path, NULL, NULL, &recorder), HITREG_ERROR_NULL, "description is null");
    EXPECT(hitreg_recorder_create(path, session, NULL, NULL), HITREG_ERROR_NULL, "the answer is null");
    hitreg_options options = {.size = 4000};
    EXPECT(hitreg_recorder_create(path, session, &options, &recorder), HITREG_ERROR_SIZE, "hitreg_options.size is 4000");
    EXPECT(hitreg_recorder_create("/no/such/folder/a.hitlog", session, NULL, &recorder), HITREG_ERROR_FILE, "/no/such/folder");
    hitreg_description *nobody = hitreg_description_new("misused");
    EXPECT(hitreg_recorder_create(path, nobody, NULL, &recorder), HITREG_ERROR_DESCRIPTION, "has no players");
    hitreg_description_free(nobody);
    hitreg_description *slow = describe();
    EXPECT(hitreg_description_tick_hz(slow, 0), HITREG_OK, "");
    EXPECT(hitreg_recorder_create(path, slow, NULL, &recorder), HITREG_ERROR_DESCRIPTION, "from 1 to 1000");
    hitreg_description_free(slow);
    /* The failed calls left the description as it was. */
    EXPECT(hitreg_recorder_keep_last(60, NULL, NULL, &recorder), HITREG_ERROR_NULL, "description is null");
    EXPECT(hitreg_recorder_keep_last(60, session, &options, &recorder), HITREG_ERROR_SIZE, "hitreg_options.size is 4000");
    EXPECT(hitreg_recorder_keep_last(0, session, NULL, &recorder), HITREG_ERROR_VALUE, "from 1 s to 1000000 s");
    EXPECT(hitreg_recorder_keep_last((uint32_t)-5, session, NULL, &recorder), HITREG_ERROR_VALUE, "from 1 s to 1000000 s");
    EXPECT(hitreg_recorder_trace(path, session, NULL, &recorder), HITREG_ERROR_NULL, "log is null");
    EXPECT(hitreg_recorder_create(path, session, NULL, &recorder), HITREG_OK, "");
    hitreg_description_free(session);

    EXPECT(hitreg_stream_new(NULL, &stream), HITREG_ERROR_NULL, "recorder is null");
    EXPECT(hitreg_stream_new(recorder, NULL), HITREG_ERROR_NULL, "the answer is null");
    EXPECT(hitreg_stream_new(recorder, &stream), HITREG_OK, "");
    hitreg_usercmd cmd = {.seq = 1, .at_us = 10, .msec = 10};
    uint64_t hash = 1;
    uint32_t cells[2] = {0, 0};
    EXPECT(hitreg_push_usercmd(NULL, 0, &cmd), HITREG_ERROR_NULL, "stream is null");
    EXPECT(hitreg_push_usercmd(stream, 0, NULL), HITREG_ERROR_NULL, "values is null");
    EXPECT(hitreg_push_usercmd(stream, 7, &cmd), HITREG_ERROR_MISFIT, "player 7");
    EXPECT(hitreg_push_usercmd(stream, 70000, &cmd), HITREG_ERROR_VALUE, "player is 70000");
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_OK, "");
    hitreg_usercmd zero = {.seq = 0, .at_us = 10};
    EXPECT(hitreg_push_usercmd(stream, 0, &zero), HITREG_ERROR_MISFIT, "no usercmd 0");
    cmd.msec = 256;
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_ERROR_VALUE, "msec is 256");
    hitreg_value own = hitreg_number(1);
    cmd = (hitreg_usercmd){.seq = 2, .at_us = 10, .fields = &own, .field_count = 1};
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_ERROR_MISFIT, "a row of `frames` is 1");
    cmd = (hitreg_usercmd){.seq = 2, .at_us = 10, .bytes = (const uint8_t *)"x", .byte_count = 1};
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_ERROR_MISFIT, "bytes of its own, but the description");
    cmd.bytes = NULL;
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_ERROR_NULL, "bytes is null");
    EXPECT(hitreg_push_tick(stream, 0, 10, &hash), HITREG_ERROR_MISFIT, "no tick 0");
    EXPECT(hitreg_push_tick(stream, 1, 10, NULL), HITREG_OK, "");
    EXPECT(hitreg_push_body(stream, 1, 0, 0, cells, 2), HITREG_ERROR_MISFIT, "2 cells");
    EXPECT(hitreg_push_body(stream, 1, 0, 4, cells, 1), HITREG_ERROR_MISFIT, "class 4");
    EXPECT(hitreg_push_body(stream, 1, 70000, 0, cells, 1), HITREG_ERROR_VALUE, "entity is 70000");
    EXPECT(hitreg_push_body(stream, 1, 0, 0, NULL, 1), HITREG_ERROR_NULL, "cells is null");
    const uint32_t *askew = (const uint32_t *)(const void *)((const char *)cells + 1);
    EXPECT(hitreg_push_body(stream, 1, 0, 0, askew, 1), HITREG_ERROR_VALUE, "no array of 1");
    hitreg_state state = {.tick = 1, .viewer = 70000, .cells = cells, .cell_count = 1};
    EXPECT(hitreg_push_state(stream, &state), HITREG_ERROR_VALUE, "viewer is 70000");
    EXPECT(hitreg_push_state(stream, NULL), HITREG_ERROR_NULL, "values is null");
    EXPECT(hitreg_push_executed(stream, 0, 1, 1, (hitreg_how)9), HITREG_ERROR_VALUE, "no how 9");
    hitreg_shot shot = {.usercmd = 1, .at_us = 10, .target = 70000};
    EXPECT(hitreg_push_judged(stream, 0, &shot), HITREG_ERROR_VALUE, "target is 70000");
    EXPECT(hitreg_push_predicted(stream, 0, NULL), HITREG_ERROR_NULL, "values is null");
    shot.target = -1, shot.weapon = hitreg_real(1.0f);
    EXPECT(hitreg_push_judged(stream, 0, &shot), HITREG_ERROR_MISFIT, "weapon is not a text or a number");
    shot.weapon = hitreg_text(NULL);
    EXPECT(hitreg_push_judged(stream, 0, &shot), HITREG_ERROR_NULL, "weapon is null");
    hitreg_damage damage = {.tick = 1, .at_us = 10, .armour = hitreg_number(-1)};
    EXPECT(hitreg_push_damage(stream, &damage), HITREG_ERROR_VALUE, "armour is -1");
    EXPECT(hitreg_push_damage(stream, NULL), HITREG_ERROR_NULL, "values is null");
    EXPECT(hitreg_push_shot(stream, HITREG_TABLE_TICKS, 0, &shot), HITREG_ERROR_MISFIT, "`ticks` has 2 values");
    EXPECT(hitreg_push_row(stream, hitreg_table_custom(0), 0, 10, &own, 1), HITREG_ERROR_MISFIT, "a row of `casts`");
    EXPECT(hitreg_push_row(stream, hitreg_table_custom(5), 0, 10, &own, 1), HITREG_ERROR_MISFIT, "no custom kind 5");
    EXPECT(hitreg_push_row(stream, 99, 0, 10, &own, 1), HITREG_ERROR_VALUE, "no table 99");
    EXPECT(hitreg_push_row(stream, HITREG_TABLE_RECEIVED, 0, 10, &own, SIZE_MAX / 2), HITREG_ERROR_VALUE, "no array of");
    EXPECT(hitreg_push_row(stream, HITREG_TABLE_RECEIVED, 0, 10, NULL, 1), HITREG_ERROR_NULL, "values is null");
    own = hitreg_list(cells, 1, 8);
    EXPECT(hitreg_push_row(stream, HITREG_TABLE_RECEIVED, 0, 10, &own, 1), HITREG_ERROR_MISFIT, "seq is not a number");
    EXPECT(hitreg_push_presence(stream, 9, 1, 10, HITREG_PRESENCE_JOINED), HITREG_ERROR_MISFIT, "player 9");
    EXPECT(hitreg_push_presence(stream, 0, 1, 10, (hitreg_presence)2), HITREG_ERROR_VALUE, "no presence 2");
    hitreg_snapshot snapshot = {.seq = 1, .at_us = 10, .tick = 1, .effect_count = 1};
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot), HITREG_ERROR_NULL, "effects is null");
    hitreg_effect effects[2] = {{.kind = 1}, {.kind = 256}};
    snapshot.effects = effects, snapshot.effect_count = 2;
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot), HITREG_ERROR_VALUE, "kind is 256");
    EXPECT(hitreg_recorder_save(recorder, "kept.hitlog"), HITREG_ERROR_FILE, "has nothing to save");
    EXPECT(hitreg_recorder_save(NULL, "kept.hitlog"), HITREG_ERROR_NULL, "recorder is null");

    other_thread(stream, HITREG_ERROR_THREAD, "belongs to another thread", __LINE__);
    EXPECT(hitreg_stream_release(stream), HITREG_OK, "");
    other_thread(stream, HITREG_OK, "", __LINE__);
    EXPECT(hitreg_push_tick(stream, 3, 30, &hash), HITREG_ERROR_THREAD, "belongs to another thread");
    hitreg_stream *second = NULL;
    EXPECT(hitreg_stream_new(recorder, &second), HITREG_OK, "");

    /* A child process lacks the recorder's thread. */
    pid_t child = fork();
    if (child == 0) {
        hitreg_code code = hitreg_recorder_finish(recorder, NULL);
        hitreg_recorder_free(recorder);
        _exit(code != HITREG_ERROR_THREAD);
    }
    int ended = 1;
    if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0) {
        fprintf(stderr, "misuse.c: a child process could end the recording\n");
        faults++;
    }

    hitreg_written written = {.size = 1};
    EXPECT(hitreg_recorder_finish(recorder, &written), HITREG_ERROR_SIZE, "hitreg_written.size is 1");
    written.size = sizeof written;
    EXPECT(hitreg_recorder_finish(recorder, &written), HITREG_OK, "");
    if (written.rows != 3) {
        fprintf(stderr, "misuse.c: %d rows, not 3\n", (int)written.rows);
        faults++;
    }
    EXPECT(hitreg_recorder_finish(recorder, NULL), HITREG_ERROR_FINISHED, "finished");
    EXPECT(hitreg_recorder_written(recorder, &written), HITREG_OK, "");
    EXPECT(hitreg_push_tick(second, 4, 40, &hash), HITREG_ERROR_FINISHED, "finished");
    hitreg_recorder_free(recorder);
    EXPECT(hitreg_push_tick(second, 5, 50, &hash), HITREG_ERROR_FINISHED, "finished");
    hitreg_stream_free(stream);
    hitreg_stream_free(second);
}

static void read_log(const char *path, const char *trace_path) {
    hitreg_log *log = NULL;
    hitreg_trace *trace = NULL;
    size_t count = 0;
    EXPECT(hitreg_log_open("/no/such.hitlog", &log), HITREG_ERROR_FILE, "/no/such.hitlog");
    EXPECT(hitreg_log_open("/dev/null", &log), HITREG_ERROR_FILE, "is empty");
    EXPECT(hitreg_log_open(path, &log), HITREG_OK, "");
    EXPECT(hitreg_log_count(log, 99, 0, &count), HITREG_ERROR_VALUE, "no table 99");
    EXPECT(hitreg_log_count(log, HITREG_TABLE_FRAMES, 9, &count), HITREG_ERROR_NO_ROW, "no player 9");
    EXPECT(hitreg_log_count(log, HITREG_TABLE_TICKS, 9, &count), HITREG_ERROR_VALUE, "no series but 0");
    EXPECT(hitreg_log_count(log, HITREG_TABLE_TICKS, 0, &count), HITREG_OK, "");
    hitreg_tick tick;
    EXPECT(hitreg_log_tick(log, count, &tick), HITREG_ERROR_NO_ROW, "no row 2");
    EXPECT(hitreg_log_tick(NULL, 0, &tick), HITREG_ERROR_NULL, "log is null");
    EXPECT(hitreg_log_tick(log, 0, NULL), HITREG_ERROR_NULL, "values is null");
    EXPECT(hitreg_log_table(log, "spells", NULL), HITREG_ERROR_NO_ROW, "no table `spells`");
    if (hitreg_log_game(NULL) || hitreg_log_players(NULL) || hitreg_log_setting(log, "none")) {
        faults++;
    }
    EXPECT(hitreg_trace_new(log, "sideways", &trace), HITREG_ERROR_VALUE, "sideways");
    EXPECT(hitreg_trace_new(log, "closed", &trace), HITREG_OK, "");
    uint32_t values[2] = {1, 2};
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_ERROR_MISFIT, "before the first table");
    EXPECT(hitreg_trace_table(trace, "own"), HITREG_OK, "");
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_OK, "");
    EXPECT(hitreg_trace_column(trace, "tick", NULL, HITREG_I32, values, 2), HITREG_ERROR_VALUE, "has type 1");
    EXPECT(hitreg_trace_u32(trace, "short", NULL, values, 1), HITREG_OK, "");
    EXPECT(hitreg_trace_write(trace, trace_path), HITREG_ERROR_FILE, "has 2 rows and others 1");
    hitreg_trace_free(trace);
    EXPECT(hitreg_trace_new(log, "closed", &trace), HITREG_OK, "");
    EXPECT(hitreg_trace_table(trace, "own"), HITREG_OK, "");
    EXPECT(hitreg_trace_key(trace, "nothing"), HITREG_OK, "");
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_OK, "");
    EXPECT(hitreg_trace_write(trace, trace_path), HITREG_ERROR_FILE, "is not one of its columns");
    EXPECT(hitreg_trace_write(trace, path), HITREG_ERROR_FILE, path);
    hitreg_trace_free(trace);
    hitreg_log_free(log);
}

/* Refused calls of a playback change neither the playback nor their outputs. */
static void replay(const char *path, const char *trace_path) {
    const char *arguments[] = {"misuse", "replay", path, "-o", trace_path};
    hitreg_playback *playback = NULL, *other = NULL;
    hitreg_stream *stream = NULL;
    hitreg_step step = {.kind = HITREG_STEP_LEAVE};
    int exit_code = 0;
    EXPECT(hitreg_playback_open(5, arguments, "misused", NULL, &exit_code), HITREG_ERROR_NULL, "the answer is null");
    EXPECT(hitreg_playback_open(5, arguments, "misused", &playback, &exit_code), HITREG_OK, "");
    other = playback;
    EXPECT(hitreg_playback_open(5, arguments, "another", &other, &exit_code), HITREG_ERROR_FILE, "this build plays `another`");
    hitreg_description *session = describe();
    EXPECT(hitreg_playback_finish(playback), HITREG_ERROR_VALUE, "call `begin`");
    EXPECT(hitreg_playback_begin(playback, session, NULL), HITREG_ERROR_NULL, "the answer is null");
    EXPECT(hitreg_playback_begin(playback, NULL, &stream), HITREG_ERROR_NULL, "description is null");
    EXPECT(hitreg_playback_next(playback, stream, &step), HITREG_ERROR_NULL, "stream is null");
    EXPECT(hitreg_playback_begin(playback, session, &stream), HITREG_OK, "");
    hitreg_stream *begun = stream;
    EXPECT(hitreg_playback_begin(playback, session, &stream), HITREG_ERROR_VALUE, "has begun");
    EXPECT(hitreg_playback_next(playback, stream, NULL), HITREG_ERROR_NULL, "the answer is null");
    if (other != playback || exit_code != 125 || stream != begun || step.kind != HITREG_STEP_LEAVE) {
        fprintf(stderr, "misuse.c: a refused call wrote an output\n");
        faults++;
    }
    EXPECT(hitreg_playback_next(playback, stream, &step), HITREG_OK, "");
    if (step.kind != HITREG_STEP_INPUT || step.tick != 1) {
        fprintf(stderr, "misuse.c: a refused call took step %d of tick %u\n", (int)step.kind, step.tick);
        faults++;
    }
    hitreg_stream_free(stream);
    EXPECT(hitreg_playback_finish(playback), HITREG_OK, "");
    EXPECT(hitreg_playback_finish(playback), HITREG_ERROR_FINISHED, "finished");
    hitreg_description_free(session);
    hitreg_playback_free(playback);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    record(argv[1]);
    read_log(argv[1], argv[2]);
    replay(argv[1], argv[2]);
    hitreg_description_free(NULL);
    hitreg_recorder_free(NULL);
    hitreg_stream_free(NULL);
    hitreg_log_free(NULL);
    hitreg_trace_free(NULL);
    if (hitreg_description_new(NULL)) {
        faults++;
    }
    printf("%d faults\n", faults);
    return faults != 0;
}
