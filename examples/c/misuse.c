/* What is called wrongly gives a code and a sentence, and harms nothing: run under AddressSanitizer and UBSan. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static hitreg_about *about(void) {
    hitreg_about *made = hitreg_about_new("misused");
    EXPECT(hitreg_about_player(made, "p0"), HITREG_OK, "");
    EXPECT(hitreg_about_field(made, "x", HITREG_F32, 0, 0, NULL), HITREG_MISFIT, "before the first class");
    EXPECT(hitreg_about_column(made, "x", HITREG_F32), HITREG_MISFIT, "before the first kind");
    EXPECT(hitreg_about_class(made, "player"), HITREG_OK, "");
    EXPECT(hitreg_about_field(made, "x", 99, 0, 0, NULL), HITREG_VALUE, "no kind of field 99");
    EXPECT(hitreg_about_field(made, "x", 0, 99, 0, NULL), HITREG_VALUE, "no scope 99");
    EXPECT(hitreg_about_field(made, "x", 0, 0, 99, NULL), HITREG_VALUE, "no meaning 99");
    EXPECT(hitreg_about_field(made, "\xff", 0, 0, 0, NULL), HITREG_VALUE, "not UTF-8");
    EXPECT(hitreg_about_field(made, "x", 0, 0, 1, "units"), HITREG_OK, "");
    EXPECT(hitreg_about_setting(made, "key", NULL), HITREG_NULL, "value is null");
    EXPECT(hitreg_about_map(made, "m", NULL, 9), HITREG_NULL, "bytes is null");
    EXPECT(hitreg_about_side(made, 1, -2), HITREG_VALUE, "no player -2");
    EXPECT(hitreg_about_kind(made, "casts"), HITREG_OK, "");
    EXPECT(hitreg_about_column(made, "power", HITREG_F32), HITREG_OK, "");
    return made;
}

static void record(const char *path) {
    hitreg_recorder *recorder = NULL;
    hitreg_stream *stream = NULL;
    hitreg_about *session = about();
    EXPECT(hitreg_recorder_create(NULL, session, NULL, &recorder), HITREG_NULL, "path is null");
    EXPECT(hitreg_recorder_create(path, NULL, NULL, &recorder), HITREG_NULL, "about is null");
    EXPECT(hitreg_recorder_create(path, session, NULL, NULL), HITREG_NULL, "the answer is null");
    hitreg_options options = {.size = 4000};
    EXPECT(hitreg_recorder_create(path, session, &options, &recorder), HITREG_SIZE, "hitreg_options.size is 4000");
    EXPECT(hitreg_recorder_create("/no/such/folder/a.hitlog", session, NULL, &recorder), HITREG_FILE, "/no/such/folder");
    EXPECT(hitreg_recorder_create(path, session, NULL, &recorder), HITREG_FINISHED, "used already");
    hitreg_about_free(session);
    hitreg_about *nobody = hitreg_about_new("misused");
    EXPECT(hitreg_recorder_create(path, nobody, NULL, &recorder), HITREG_DESCRIPTION, "nobody plays");
    hitreg_about_free(nobody);
    hitreg_about *slow = about();
    EXPECT(hitreg_about_tick_hz(slow, 0), HITREG_OK, "");
    EXPECT(hitreg_recorder_create(path, slow, NULL, &recorder), HITREG_DESCRIPTION, "from 1 to 1000");
    hitreg_about_free(slow);
    session = about();
    EXPECT(hitreg_recorder_keep_last(60, NULL, NULL, &recorder), HITREG_NULL, "about is null");
    EXPECT(hitreg_recorder_keep_last(60, session, &options, &recorder), HITREG_SIZE, "hitreg_options.size is 4000");
    EXPECT(hitreg_recorder_trace(path, session, NULL, &recorder), HITREG_NULL, "log is null");
    EXPECT(hitreg_recorder_create(path, session, NULL, &recorder), HITREG_OK, "");
    hitreg_about_free(session);

    EXPECT(hitreg_stream_new(NULL, &stream), HITREG_NULL, "recorder is null");
    EXPECT(hitreg_stream_new(recorder, NULL), HITREG_NULL, "the answer is null");
    EXPECT(hitreg_stream_new(recorder, &stream), HITREG_OK, "");
    hitreg_usercmd cmd = {.size = sizeof cmd, .seq = 1, .at_us = 10, .msec = 10};
    uint64_t hash = 1;
    uint32_t cells[2] = {0, 0};
    EXPECT(hitreg_push_usercmd(NULL, 0, &cmd), HITREG_NULL, "stream is null");
    EXPECT(hitreg_push_usercmd(stream, 0, NULL), HITREG_NULL, "hitreg_usercmd is null");
    EXPECT(hitreg_push_usercmd(stream, 7, &cmd), HITREG_MISFIT, "player 7");
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_OK, "");
    cmd.msec = 256;
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_VALUE, "msec is 256");
    cmd.size = 8;
    EXPECT(hitreg_push_usercmd(stream, 0, &cmd), HITREG_SIZE, "hitreg_usercmd.size is 8");
    EXPECT(hitreg_push_usercmd_bytes(stream, 0, 10, 1, (const uint8_t *)"x", 1), HITREG_MISFIT, "usercmd_bytes");
    EXPECT(hitreg_push_tick(stream, 0, 10, &hash), HITREG_MISFIT, "no tick 0");
    EXPECT(hitreg_push_tick(stream, 1, 10, NULL), HITREG_OK, "");
    EXPECT(hitreg_push_body(stream, 1, -1, 0, 0, cells, 2), HITREG_MISFIT, "2 cells");
    EXPECT(hitreg_push_body(stream, 1, -1, 0, 4, cells, 1), HITREG_MISFIT, "class 4");
    EXPECT(hitreg_push_body(stream, 1, 70000, 0, 0, cells, 1), HITREG_VALUE, "no player 70000");
    EXPECT(hitreg_push_body(stream, 1, -1, 0, 0, NULL, 1), HITREG_NULL, "cells is null");
    const uint32_t *askew = (const uint32_t *)(const void *)((const char *)cells + 1);
    EXPECT(hitreg_push_body(stream, 1, -1, 0, 0, askew, 1), HITREG_VALUE, "no array of 1");
    EXPECT(hitreg_push_body(stream, 1, -1, 0, 0, cells, SIZE_MAX / 2), HITREG_VALUE, "no array of");
    EXPECT(hitreg_push_ran(stream, 0, 1, 1, 9), HITREG_VALUE, "done as 9");
    hitreg_value number = {.is_real = 0, .number = 1};
    EXPECT(hitreg_push_row(stream, 0, 0, 10, &number, 1), HITREG_MISFIT, "a row of `casts`");
    EXPECT(hitreg_push_row(stream, 5, 0, 10, &number, 1), HITREG_MISFIT, "no kind 5");

    EXPECT(hitreg_push_usercmd_with(stream, 0, &cmd, &number, 1), HITREG_SIZE, "hitreg_usercmd.size is 8");
    cmd = (hitreg_usercmd){.size = sizeof cmd, .seq = 2, .at_us = 10};
    EXPECT(hitreg_push_usercmd_with(stream, 0, &cmd, &number, 1), HITREG_MISFIT, "usercmd_field");
    EXPECT(hitreg_push_presence(stream, 0, NULL), HITREG_NULL, "hitreg_presence is null");
    hitreg_presence nobody_came = {.size = sizeof nobody_came, .tick = 1, .at_us = 10};
    EXPECT(hitreg_push_presence(stream, 9, &nobody_came), HITREG_MISFIT, "player 9");
    hitreg_snapshot snapshot = {.size = sizeof snapshot, .seq = 1, .at_us = 10, .tick = 1};
    hitreg_effect effects[2] = {{.size = 4}, {.size = sizeof effects[1]}};
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot, NULL, 0, NULL, 1), HITREG_NULL, "hitreg_effect is null");
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot, NULL, 0, effects, 2), HITREG_SIZE, "hitreg_effect.size is 4");
    effects[0].size = sizeof effects[0];
    effects[1].kind = 256;
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot, NULL, 0, effects, 2), HITREG_VALUE, "kind is 256");
    EXPECT(hitreg_push_snapshot(stream, 0, &snapshot, NULL, 0, effects, SIZE_MAX / 2), HITREG_VALUE, "there are no");
    EXPECT(hitreg_recorder_save(recorder, "kept.hitlog"), HITREG_FILE, "keeps nothing");
    EXPECT(hitreg_recorder_save(NULL, "kept.hitlog"), HITREG_NULL, "recorder is null");

    other_thread(stream, HITREG_THREAD, "belongs to another thread", __LINE__);
    EXPECT(hitreg_stream_release(stream), HITREG_OK, "");
    other_thread(stream, HITREG_OK, "", __LINE__);
    EXPECT(hitreg_push_tick(stream, 3, 30, &hash), HITREG_THREAD, "belongs to another thread");
    hitreg_stream *second = NULL;
    EXPECT(hitreg_stream_new(recorder, &second), HITREG_OK, "");

    hitreg_written written = {.size = 1};
    EXPECT(hitreg_recorder_finish(recorder, &written), HITREG_SIZE, "hitreg_written.size is 1");
    written.size = sizeof written;
    EXPECT(hitreg_recorder_finish(recorder, &written), HITREG_OK, "");
    if (written.records != 3) {
        fprintf(stderr, "misuse.c: %d records and not 3\n", (int)written.records);
        faults++;
    }
    EXPECT(hitreg_recorder_finish(recorder, NULL), HITREG_FINISHED, "finished");
    EXPECT(hitreg_recorder_written(recorder, &written), HITREG_FINISHED, "finished");
    EXPECT(hitreg_push_tick(second, 4, 40, &hash), HITREG_FINISHED, "finished");
    hitreg_recorder_free(recorder);
    EXPECT(hitreg_push_tick(second, 5, 50, &hash), HITREG_FINISHED, "finished");
    hitreg_stream_free(stream);
    hitreg_stream_free(second);
}

static void read(const char *path, const char *trace_path) {
    hitreg_log *log = NULL;
    hitreg_trace *trace = NULL;
    size_t count = 0;
    EXPECT(hitreg_log_open("/no/such.hitlog", &log), HITREG_FILE, "/no/such.hitlog");
    EXPECT(hitreg_log_open("/dev/null", &log), HITREG_FILE, "is empty");
    EXPECT(hitreg_log_open(path, &log), HITREG_OK, "");
    EXPECT(hitreg_log_count(log, 99, 0, &count), HITREG_VALUE, "no kind 99");
    EXPECT(hitreg_log_count(log, HITREG_USERCMDS, 9, &count), HITREG_NO_ROW, "no player 9");
    EXPECT(hitreg_log_count(log, HITREG_TICKS, 9, &count), HITREG_OK, "");
    hitreg_tick_end end = {.size = sizeof end};
    EXPECT(hitreg_log_tick(log, count, &end), HITREG_NO_ROW, "no row 2");
    EXPECT(hitreg_log_tick(NULL, 0, &end), HITREG_NULL, "log is null");
    EXPECT(hitreg_log_tick(log, 0, NULL), HITREG_NULL, "hitreg_tick_end is null");
    if (hitreg_log_game(NULL) || hitreg_log_players(NULL) || hitreg_log_setting(log, "none")) {
        faults++;
    }
    EXPECT(hitreg_trace_new(log, "sideways", &trace), HITREG_VALUE, "sideways");
    EXPECT(hitreg_trace_new(log, "closed", &trace), HITREG_OK, "");
    uint32_t values[2] = {1, 2};
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_MISFIT, "before the first table");
    EXPECT(hitreg_trace_table(trace, "own"), HITREG_OK, "");
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_OK, "");
    EXPECT(hitreg_trace_u32(trace, "short", NULL, values, 1), HITREG_OK, "");
    EXPECT(hitreg_trace_write(trace, trace_path), HITREG_FILE, "has 2 rows and others 1");
    hitreg_trace_free(trace);
    EXPECT(hitreg_trace_new(log, "closed", &trace), HITREG_OK, "");
    EXPECT(hitreg_trace_table(trace, "own"), HITREG_OK, "");
    EXPECT(hitreg_trace_key(trace, "nothing"), HITREG_OK, "");
    EXPECT(hitreg_trace_u32(trace, "tick", NULL, values, 2), HITREG_OK, "");
    EXPECT(hitreg_trace_write(trace, trace_path), HITREG_FILE, "no column of it");
    EXPECT(hitreg_trace_write(trace, path), HITREG_FILE, path);
    hitreg_trace_free(trace);
    hitreg_log_free(log);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    record(argv[1]);
    read(argv[1], argv[2]);
    hitreg_about_free(NULL);
    hitreg_recorder_free(NULL);
    hitreg_stream_free(NULL);
    hitreg_log_free(NULL);
    hitreg_trace_free(NULL);
    if (hitreg_about_new(NULL)) {
        faults++;
    }
    printf("%d faults\n", faults);
    return faults != 0;
}
