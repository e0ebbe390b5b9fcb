/* All that only games know of themselves, and who comes and goes, comes back from a log as it was pushed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hitreg.h"

static int faults = 0;

static void must(hitreg_code code) {
    if (code != HITREG_OK) {
        fprintf(stderr, "everything: %s\n", hitreg_last_error());
        exit(128);
    }
}

static void same(int holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "everything.c:%d: not %s\n", line, what);
        faults++;
    }
}
#define SAME(what) same(what, #what, __LINE__)

enum { COMMANDS = 300 };

static void record(const char *path) {
    hitreg_recorder *recorder;
    hitreg_stream *stream;
    hitreg_about *about = hitreg_about_new("everything");
    must(hitreg_about_player(about, "p0"));
    must(hitreg_about_usercmd_field(about, "lean", HITREG_F32, HITREG_PLAIN, NULL));
    must(hitreg_about_usercmd_field(about, "stance", HITREG_I32, HITREG_NAME, NULL));
    must(hitreg_about_kind(about, "casts"));
    must(hitreg_about_column(about, "spell", HITREG_U32));
    must(hitreg_about_column(about, "power", HITREG_F32));
    hitreg_options options = {.size = sizeof options, .patient = 1};
    must(hitreg_recorder_create(path, about, &options, &recorder));
    hitreg_about_free(about);
    must(hitreg_stream_new(recorder, &stream));
    hitreg_presence joined = {.size = sizeof joined, .tick = 1, .at_us = 10000};
    must(hitreg_push_presence(stream, 0, &joined));
    for (uint32_t seq = 1; seq <= COMMANDS; seq++) {
        hitreg_usercmd cmd = {.size = sizeof cmd, .seq = seq, .at_us = seq * 10000, .msec = 10};
        hitreg_value own[2] = {{.is_real = 1, .real = (float)seq / 8.0f}, {.number = -(int64_t)seq}};
        must(hitreg_push_usercmd_with(stream, 0, &cmd, own, 2));
        must(hitreg_push_tick(stream, seq, cmd.at_us, NULL));
        hitreg_snapshot snapshot = {.size = sizeof snapshot, .seq = seq, .at_us = cmd.at_us, .tick = seq, .ack = seq};
        uint16_t entities[2] = {7, 0};
        hitreg_effect effects[2] = {{.size = sizeof effects[0], .kind = 3, .entity = 7, .x = 1.5f},
                                    {.size = sizeof effects[0], .kind = 9, .predictable = 1, .z = -2.0f}};
        must(hitreg_push_snapshot(stream, 0, &snapshot, entities, 2, effects, seq % 3));
        must(hitreg_push_received(stream, 0, seq, cmd.at_us + 5000));
        hitreg_value cast[2] = {{.number = seq}, {.is_real = 1, .real = 0.5f}};
        must(hitreg_push_row(stream, 0, 0, cmd.at_us, cast, 2));
    }
    hitreg_presence left = {.size = sizeof left, .tick = COMMANDS, .at_us = COMMANDS * 10000, .left = 1};
    must(hitreg_push_presence(stream, 0, &left));
    hitreg_stream_free(stream);
    must(hitreg_recorder_finish(recorder, NULL));
    hitreg_recorder_free(recorder);
}

static void read(const char *path) {
    hitreg_log *log;
    size_t count, effects;
    must(hitreg_log_open(path, &log));
    must(hitreg_log_count(log, HITREG_PRESENCES, 0, &count));
    SAME(count == 2);
    hitreg_presence presence = {.size = sizeof presence};
    must(hitreg_log_presence(log, 0, 0, &presence));
    SAME(presence.tick == 1 && presence.at_us == 10000 && presence.left == 0);
    must(hitreg_log_presence(log, 0, 1, &presence));
    SAME(presence.tick == COMMANDS && presence.left == 1);
    must(hitreg_log_count(log, HITREG_SNAPSHOTS, 0, &count));
    SAME(count == COMMANDS);
    must(hitreg_log_count(log, HITREG_RECEIVED, 0, &count));
    SAME(count == COMMANDS);
    must(hitreg_log_rows(log, "casts", &count));
    SAME(count == COMMANDS);
    for (uint32_t seq = 1; seq <= COMMANDS; seq++) {
        hitreg_value own[3];
        must(hitreg_log_usercmd_values(log, 0, seq, own, 2));
        SAME(own[0].is_real && own[0].real == (float)seq / 8.0f && !own[1].is_real && own[1].number == -(int64_t)seq);
        hitreg_snapshot snapshot = {.size = sizeof snapshot};
        const uint16_t *entities;
        must(hitreg_log_snapshot(log, 0, seq - 1, &snapshot, &entities, &count, &effects));
        SAME(snapshot.seq == seq && snapshot.ack == seq && snapshot.at_us == seq * 10000);
        SAME(count == 2 && entities[0] == 0 && entities[1] == 7);
        SAME(effects == seq % 3);
        hitreg_effect effect = {.size = sizeof effect};
        if (effects > 1) {
            must(hitreg_log_effect(log, 0, seq - 1, 1, &effect));
            SAME(effect.kind == 9 && effect.entity == 0 && effect.predictable == 1 && effect.z == -2.0f);
        }
        SAME(hitreg_log_effect(log, 0, seq - 1, effects, &effect) == HITREG_NO_ROW);
        hitreg_arrival arrival = {.size = sizeof arrival};
        must(hitreg_log_received(log, 0, seq - 1, &arrival));
        SAME(arrival.number == seq && arrival.at_us == seq * 10000 + 5000);
        uint32_t series;
        int64_t at;
        must(hitreg_log_row(log, "casts", seq - 1, &series, &at, own, 2));
        SAME(series == 0 && at == seq * 10000 && own[0].number == seq && own[1].real == 0.5f);
        SAME(hitreg_log_row(log, "casts", seq - 1, &series, &at, own, 3) == HITREG_MISFIT);
    }
    hitreg_value none;
    SAME(hitreg_log_usercmd_values(log, 0, COMMANDS + 1, &none, 1) == HITREG_NO_ROW);
    SAME(hitreg_log_rows(log, NULL, &count) == HITREG_NULL);
    SAME(hitreg_log_row(log, "spells", 0, NULL, NULL, &none, 1) == HITREG_NO_ROW);
    SAME(hitreg_log_presence(log, 0, 2, &presence) == HITREG_NO_ROW);
    hitreg_log_free(log);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        return 128;
    }
    record(argv[1]);
    read(argv[1]);
    printf("%d faults\n", faults);
    return faults > 0;
}
