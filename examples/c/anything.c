/* Calls that a seed picks, with numbers of any size, in any order: nothing crashes, no call finds a fault in the library, and what was
 * written is read again. Run under AddressSanitizer and UBSan.
 *
 *     anything FOLDER FIRST_SEED SEEDS
 *
 * The file of a single seed is kept.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hitreg.h"

enum { CALLS = 1500, PLAYERS = 3, CLASSES = 3, KINDS = 2 };

static uint64_t state;
static uint64_t calls_taken, calls_refused;

static uint64_t bits(void) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static uint32_t below(uint32_t limit) {
    return (uint32_t)(bits() % limit);
}

/* Mostly small; at times as large as can be. */
static uint32_t number(uint32_t usual) {
    switch (below(24)) {
    case 0:
        return UINT32_MAX;
    case 1:
        return UINT32_MAX / 2 + below(3);
    case 2:
        return (uint32_t)bits();
    case 3:
        return 65535 + below(3);
    default:
        return below(usual);
    }
}

/* A time near where the session is, or anywhere. */
static int64_t time_us(int64_t now) {
    switch (below(24)) {
    case 0:
        return INT64_MAX;
    case 1:
        return INT64_MIN;
    case 2:
        return (int64_t)bits();
    case 3:
        return -1;
    default:
        return now + (int64_t)below(90000) - 30000;
    }
}

static float real(void) {
    static const float odd[] = {0.0f, -0.0f, 1e30f, -1e30f, 1e-40f};
    uint32_t pattern = (uint32_t)bits();
    float any;
    switch (below(8)) {
    case 0:
        return odd[below(5)];
    case 1:
        memcpy(&any, &pattern, sizeof any);
        return any;
    default:
        return (float)below(4096) - 2048.0f;
    }
}

/* Whatever a call answers, it is not that the library has a fault. */
static hitreg_code seen(hitreg_code code, const char *call) {
    if (code == HITREG_PANIC || (code != HITREG_OK && !hitreg_last_error()[0])) {
        fprintf(stderr, "%s: code %d: %s\n", call, code, hitreg_last_error());
        exit(1);
    }
    calls_taken += code == HITREG_OK;
    calls_refused += code != HITREG_OK;
    return code;
}
#define CALL(call) seen(call, #call)

static hitreg_about *described(void) {
    hitreg_about *about = hitreg_about_new("anything");
    char name[32];
    for (uint32_t player = 0; player < PLAYERS; player++) {
        snprintf(name, sizeof name, "p%" PRIu32, player);
        CALL(hitreg_about_player(about, name));
    }
    CALL(hitreg_about_tick_hz(about, 1 + number(128)));
    CALL(hitreg_about_setting(about, "any.key", "any value"));
    for (uint32_t made = 0; made < CLASSES; made++) {
        snprintf(name, sizeof name, "class%" PRIu32, made);
        CALL(hitreg_about_class(about, name));
        for (uint32_t field = 0; field <= made; field++) {
            snprintf(name, sizeof name, "f%" PRIu32, field);
            CALL(hitreg_about_field(about, name, below(4), below(4), below(10), below(2) ? "units" : NULL));
        }
    }
    for (uint32_t made = 0; made < KINDS; made++) {
        snprintf(name, sizeof name, "kind%" PRIu32, made);
        CALL(hitreg_about_kind(about, name));
        CALL(hitreg_about_column(about, "a", below(4)));
        CALL(hitreg_about_column(about, "b", below(4)));
    }
    if (below(2)) {
        CALL(hitreg_about_usercmd_field(about, "own", below(4), below(10), NULL));
    }
    if (below(4) == 0) {
        CALL(hitreg_about_usercmd_bytes(about));
    }
    return about;
}

static hitreg_value value(void) {
    return (hitreg_value){.is_real = below(2), .real = real(), .number = (int64_t)number(1000) - 500};
}

static void push(hitreg_stream *stream, int64_t now, uint32_t call) {
    uint16_t player = (uint16_t)number(PLAYERS);
    uint32_t tick = 1 + call / 20, size_off = below(40) == 0 ? number(200) : 0;
    hitreg_value values[3] = {value(), value(), value()};
    uint32_t cells[4] = {number(100), number(100), (uint32_t)bits(), (uint32_t)bits()};
    uint16_t entities[3] = {(uint16_t)number(8), (uint16_t)number(8), (uint16_t)number(8)};
    uint64_t hash = bits();
    hitreg_usercmd cmd = {.size = sizeof cmd + size_off, .seq = number(call + 2), .at_us = time_us(now), .server_time_us = time_us(now),
        .lerp_ms = number(200), .msec = number(60), .pitch = real(), .yaw = real(), .forwardmove = real(), .buttons = number(16),
        .impulse = number(9), .extra = (uint32_t)bits()};
    hitreg_packet packet = {.size = sizeof packet + size_off, .number = number(call + 2), .at_us = time_us(now),
        .newest = number(call + 2), .count = number(4), .ack = number(call + 2), .bytes = number(1400)};
    hitreg_effect effect = {.size = sizeof effect, .kind = number(9), .entity = number(8), .x = real(), .y = real()};
    hitreg_snapshot snapshot = {.size = sizeof snapshot + size_off, .seq = number(call + 2), .at_us = time_us(now),
        .server_time_us = time_us(now), .tick = number(tick + 2), .ack = number(call + 2), .bytes = number(1400), .choked = number(3)};
    hitreg_shot shot = {.size = sizeof shot, .command = number(call + 2), .at_us = time_us(now), .index = number(3), .reason = number(6),
        .target = (int32_t)(number(5) - 1), .hitgroup = number(5), .damage = (int32_t)number(99), .rewound_us = number(300000)};
    hitreg_presence presence = {.size = sizeof presence, .tick = number(tick + 2), .at_us = time_us(now), .left = number(2)};
    switch (below(14)) {
    case 0:
        CALL(hitreg_push_usercmd(stream, player, &cmd));
        break;
    case 1:
        CALL(hitreg_push_usercmd_with(stream, player, &cmd, values, number(3) % 4));
        break;
    case 2:
        CALL(hitreg_push_usercmd_bytes(stream, player, time_us(now), number(call + 2), (const uint8_t *)cells, below(16)));
        break;
    case 3:
        CALL(hitreg_push_packet(stream, player, &packet));
        break;
    case 4:
        CALL(hitreg_push_reached(stream, player, number(call + 2), time_us(now)));
        break;
    case 5:
        CALL(hitreg_push_snapshot(stream, player, &snapshot, entities, below(4), &effect, below(2)));
        break;
    case 6:
        CALL(hitreg_push_received(stream, player, number(call + 2), time_us(now)));
        break;
    case 7:
        CALL(hitreg_push_ran(stream, player, number(call + 2), number(tick + 2), number(5)));
        break;
    case 8:
        CALL(hitreg_push_tick(stream, below(8) ? tick : number(tick + 2), time_us(now), below(2) ? &hash : NULL));
        break;
    case 9:
        CALL(hitreg_push_body(stream, number(tick + 2), (int32_t)(number(4) - 1), entities[0], (uint16_t)number(CLASSES), cells,
            below(8) ? 1 + below(3) : below(5)));
        break;
    case 10:
        CALL(hitreg_push_shot(stream, player, &shot, below(2)));
        break;
    case 11:
        CALL(hitreg_push_presence(stream, player, &presence));
        break;
    case 12:
        CALL(hitreg_push_damage(stream, number(tick + 2), time_us(now), entities[0], (int32_t)(number(4) - 1), (int32_t)number(99)));
        break;
    default:
        CALL(hitreg_push_row(stream, number(KINDS), number(4), time_us(now), values, below(8) ? 2 : below(4)));
    }
}

/* Every row that there is, and the one after the last. */
static void read_all(const char *path) {
    hitreg_log *log = NULL;
    if (CALL(hitreg_log_open(path, &log)) != HITREG_OK) {
        fprintf(stderr, "what was written is not read: %s\n", hitreg_last_error());
        exit(1);
    }
    for (uint16_t player = 0; player <= hitreg_log_players(log); player++) {
        for (uint32_t kind = 0; kind <= HITREG_PRESENCES + 1; kind++) {
            size_t count = 0;
            CALL(hitreg_log_count(log, kind, player, &count));
            for (size_t index = 0; index <= count; index++) {
                hitreg_usercmd cmd = {.size = sizeof cmd};
                hitreg_execution ran = {.size = sizeof ran};
                hitreg_arrival arrival = {.size = sizeof arrival};
                hitreg_tick_end end = {.size = sizeof end};
                hitreg_state body = {.size = sizeof body};
                hitreg_snapshot snapshot = {.size = sizeof snapshot};
                hitreg_presence presence = {.size = sizeof presence};
                const uint32_t *cells = NULL;
                const uint16_t *entities = NULL;
                size_t has = 0, effects = 0;
                CALL(hitreg_log_usercmd(log, player, index, &cmd));
                CALL(hitreg_log_ran(log, player, index, &ran));
                CALL(hitreg_log_reached(log, player, index, &arrival));
                CALL(hitreg_log_tick(log, index, &end));
                CALL(hitreg_log_state(log, index, &body, &cells));
                CALL(hitreg_log_snapshot(log, player, index, &snapshot, &entities, &has, &effects));
                CALL(hitreg_log_received(log, player, index, &arrival));
                CALL(hitreg_log_presence(log, player, index, &presence));
            }
        }
    }
    hitreg_log_free(log);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    uint64_t first = strtoull(argv[2], NULL, 10), seeds = strtoull(argv[3], NULL, 10);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        char path[512];
        snprintf(path, sizeof path, "%s/anything-%" PRIu64 ".hitlog", argv[1], seed);
        state = seed;
        fprintf(stderr, "\rseed %" PRIu64, seed);
        hitreg_about *about = described();
        hitreg_options options = {.size = sizeof options, .window_ms = number(400), .ring = 64u << below(6), .patient = 1};
        hitreg_recorder *recorder = NULL;
        hitreg_stream *stream = NULL;
        if (CALL(hitreg_recorder_create(path, about, &options, &recorder)) == HITREG_OK) {
            CALL(hitreg_stream_new(recorder, &stream));
            for (uint32_t call = 0; call < CALLS; call++) {
                push(stream, (int64_t)call * 1000, call);
            }
            hitreg_stream_free(stream);
            hitreg_written written = {.size = sizeof written};
            CALL(hitreg_recorder_finish(recorder, &written));
            hitreg_recorder_free(recorder);
            read_all(path);
            if (seeds > 1) {
                remove(path);
            }
        }
        hitreg_about_free(about);
    }
    printf("\n%" PRIu64 " calls taken and %" PRIu64 " refused, nothing found\n", calls_taken, calls_refused);
    return 0;
}
