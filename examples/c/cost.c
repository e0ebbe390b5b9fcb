/* The cost of recording on the calling thread: usercmds of sixteen players from one thread and from four, in bursts with pauses
 * between them, like the frames of an engine. Each figure is the median of the bursts.
 *
 *     cargo build -p hitreg-capi --release
 *     cc -O2 -std=c11 -D_POSIX_C_SOURCE=200809L examples/c/cost.c -I crates/hitreg-capi/include target/release/libhitreg_capi.a -lpthread -ldl -lm -o cost
 *     ./cost /tmp/cost.hitlog */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hitreg.h"

enum { PLAYERS = 16, BURSTS = 500, IN_A_BURST = 8, MOST_THREADS = 4 };

struct work {
    hitreg_recorder *recorder;
    uint16_t first, last;
    double *bursts; /* ns a usercmd */
};

static void must(hitreg_code code) {
    if (code != HITREG_OK) {
        fprintf(stderr, "cost: %s\n", hitreg_last_error());
        exit(128);
    }
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *run(void *of) {
    struct work *work = of;
    hitreg_stream *stream = NULL;
    int64_t began = nanoseconds();
    must(hitreg_stream_new(work->recorder, &stream));
    for (uint32_t burst = 0; burst < BURSTS; burst++) {
        int64_t from = nanoseconds();
        for (uint32_t number = 1; number <= IN_A_BURST; number++) {
            for (uint16_t player = work->first; player < work->last; player++) {
                hitreg_usercmd cmd = {.seq = burst * IN_A_BURST + number, .msec = 8};
                cmd.at_us = cmd.server_time_us = (from - began) / 1000;
                cmd.forwardmove = 320.0f;
                cmd.buttons = number;
                must(hitreg_push_usercmd(stream, player, &cmd));
            }
        }
        work->bursts[burst] = (double)(nanoseconds() - from) / (IN_A_BURST * (work->last - work->first));
        struct timespec pause = {0, 4000000};
        nanosleep(&pause, NULL);
    }
    hitreg_stream_free(stream);
    return NULL;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure(const char *path, int threads) {
    static double bursts[MOST_THREADS * BURSTS];
    struct work work[MOST_THREADS];
    pthread_t running[MOST_THREADS];
    hitreg_recorder *recorder = NULL;
    hitreg_description *description = hitreg_description_new("cost");
    for (int player = 0; player < PLAYERS; player++) {
        must(hitreg_description_player(description, "player"));
    }
    remove(path);
    must(hitreg_recorder_create(path, description, NULL, &recorder));
    hitreg_description_free(description);
    for (int thread = 0; thread < threads; thread++) {
        uint16_t each = (uint16_t)(PLAYERS / threads);
        work[thread] = (struct work){recorder, (uint16_t)(thread * each), (uint16_t)((thread + 1) * each),
                                     bursts + thread * BURSTS};
        if (pthread_create(&running[thread], NULL, run, &work[thread])) {
            exit(2);
        }
    }
    for (int thread = 0; thread < threads; thread++) {
        pthread_join(running[thread], NULL);
    }
    hitreg_written written = {.size = sizeof written};
    must(hitreg_recorder_finish(recorder, &written));
    hitreg_recorder_free(recorder);
    qsort(bursts, (size_t)(threads * BURSTS), sizeof *bursts, ascending);
    printf("%d players from %d thread(s): %.1f ns a usercmd (median burst), %.1f (99 %%), %llu lost\n", PLAYERS, threads,
           bursts[threads * BURSTS / 2], bursts[threads * BURSTS * 99 / 100], (unsigned long long)written.lost_rows);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        return 128;
    }
    measure(argv[1], 1);
    measure(argv[1], 4);
    return 0;
}
