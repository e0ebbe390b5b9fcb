// The whole of a game in C++: a dot that its only player pushes along a line. `dot record LOG`, `dot replay LOG -o TRACE`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hitreg.h"

static void must(hitreg_code code) {
    if (code != HITREG_OK) {
        std::fprintf(stderr, "dot: %s\n", hitreg_last_error());
        std::exit(128);
    }
}

static float run(float x, const hitreg_usercmd &cmd) { return x + cmd.forwardmove * cmd.msec / 1000.0f; }

static void record(const char *path) {
    hitreg_about *about = hitreg_about_new("dot");
    must(hitreg_about_player(about, "p0"));
    hitreg_options options = {sizeof options, 0, 0, 1};
    hitreg_recorder *recorder;
    must(hitreg_recorder_create(path, about, &options, &recorder));
    hitreg_about_free(about);
    hitreg_stream *stream;
    must(hitreg_stream_new(recorder, &stream));
    float x = 0;
    for (uint32_t tick = 1; tick <= 500; tick++) {
        hitreg_usercmd cmd = {};
        cmd.size = sizeof cmd, cmd.seq = tick, cmd.at_us = tick * 10000, cmd.msec = 10;
        cmd.forwardmove = tick % 90 < 45 ? 320.0f : -200.0f;
        must(hitreg_push_usercmd(stream, 0, &cmd));
        x = run(x, cmd);
        uint64_t hash = 0;
        std::memcpy(&hash, &x, sizeof x);
        must(hitreg_push_tick(stream, tick, cmd.at_us, &hash));
    }
    hitreg_stream_free(stream);
    must(hitreg_recorder_finish(recorder, nullptr));
    hitreg_recorder_free(recorder);
}

static void replay(const char *path, const char *to) {
    hitreg_log *log;
    must(hitreg_log_open(path, &log));
    size_t count;
    must(hitreg_log_count(log, HITREG_USERCMDS, 0, &count));
    std::vector<uint32_t> ticks;
    std::vector<int64_t> times;
    std::vector<uint64_t> hashes;
    float x = 0;
    for (size_t row = 0; row < count; row++) {
        hitreg_usercmd cmd = {};
        cmd.size = sizeof cmd;
        must(hitreg_log_usercmd(log, 0, row, &cmd));
        x = run(x, cmd);
        uint64_t hash = 0;
        std::memcpy(&hash, &x, sizeof x);
        ticks.push_back(cmd.seq), times.push_back(cmd.at_us), hashes.push_back(hash);
    }
    hitreg_trace *trace;
    must(hitreg_trace_new(log, "closed", &trace));
    must(hitreg_trace_table(trace, "ticks"));
    must(hitreg_trace_u32(trace, "tick", nullptr, ticks.data(), ticks.size()));
    must(hitreg_trace_i64(trace, "at_us", nullptr, times.data(), times.size()));
    must(hitreg_trace_u64(trace, "hash", nullptr, hashes.data(), hashes.size()));
    must(hitreg_trace_write(trace, to));
    hitreg_trace_free(trace);
    hitreg_log_free(log);
}

int main(int argc, char **argv) {
    if (argc == 3 && !std::strcmp(argv[1], "record")) return record(argv[2]), 0;
    if (argc == 5 && !std::strcmp(argv[1], "replay")) return replay(argv[2], argv[4]), 0;
    return 128;
}
