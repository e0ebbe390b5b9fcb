// A complete game in C++: a dot that its only player pushes along a line. `dot record LOG`, `dot replay LOG -o TRACE`.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hitreg.h"

static float run(float x, const hitreg_usercmd &cmd) { return x + cmd.forwardmove * cmd.msec / 1000.0f; }

static void must(hitreg_code code) {
    if (code != HITREG_OK) {
        std::fprintf(stderr, "dot: %s\n", hitreg_last_error());
        std::exit(128);
    }
}

static hitreg_description *describe() {
    static const hitreg_field fields[] = {
        {"origin.x", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION, nullptr},
    };
    hitreg_description *description = hitreg_description_new("dot");
    must(hitreg_description_class(description, "dot", fields, 1));
    must(hitreg_description_player(description, "p0"));
    return description;
}

// Plays the usercmds of a log, or of a bot if there is no log, and records.
static void play(hitreg_recorder *recorder, const hitreg_log *log) {
    hitreg_stream *stream = nullptr;
    must(hitreg_stream_new(recorder, &stream));
    size_t ticks = 500;
    if (log) must(hitreg_log_count(log, HITREG_TABLE_FRAMES, 0, &ticks));
    float x = 0;
    for (uint32_t tick = 1; tick <= ticks; tick++) {
        hitreg_usercmd cmd = {};
        cmd.seq = tick, cmd.at_us = tick * 10000, cmd.msec = 10;
        cmd.forwardmove = tick % 90 < 45 ? 320.0f : -200.0f;
        if (log) must(hitreg_log_usercmd(log, 0, tick - 1, &cmd));
        x = run(x, cmd);
        uint64_t hash = 0;
        uint32_t cell;
        std::memcpy(&hash, &x, sizeof x), std::memcpy(&cell, &x, sizeof x);
        must(hitreg_push_usercmd(stream, 0, &cmd));
        must(hitreg_push_tick(stream, tick, cmd.at_us, &hash));
        must(hitreg_push_body(stream, tick, 0, 0, &cell, 1));
    }
    hitreg_stream_free(stream);
    must(hitreg_recorder_finish(recorder, nullptr));
    hitreg_recorder_free(recorder);
}

int main(int argc, char **argv) {
    hitreg_recorder *recorder = nullptr;
    hitreg_log *log = nullptr;
    hitreg_description *session = describe();
    if (argc == 3 && !std::strcmp(argv[1], "record")) {
        hitreg_options options = {};
        options.size = sizeof options, options.patient = 1;  // the game runs faster than real time
        must(hitreg_recorder_create(argv[2], session, &options, &recorder));
    } else if (argc == 5 && !std::strcmp(argv[1], "replay")) {
        must(hitreg_log_open(argv[2], &log));
        if (std::strcmp(hitreg_log_game(log), "dot")) std::exit(125);
        must(hitreg_recorder_trace(argv[4], session, log, &recorder));
    } else {
        std::exit(128);
    }
    hitreg_description_free(session);
    play(recorder, log);
    hitreg_log_free(log);
}
