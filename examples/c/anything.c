/* Random calls with numbers of any size, in any order. No call may crash or report a fault in the library, and each log
 * must be readable. Run it under AddressSanitizer and UBSan.
 *
 *     anything FOLDER FIRST_SEED SEEDS
 *
 * With one seed, the log stays in the folder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hitreg.h"

enum { CALLS = 1500, PLAYERS = 3, CLASSES = 3, TABLES = 2 };

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

/* Usually a small number, sometimes the greatest. */
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

/* A time near the session's, or any time. */
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

/* Checks that a call reports no fault in the library. */
static hitreg_code seen(hitreg_code code, const char *call) {
    if (code == HITREG_ERROR_PANIC || (code != HITREG_OK && !hitreg_last_error()[0])) {
        fprintf(stderr, "%s: code %d: %s\n", call, code, hitreg_last_error());
        exit(1);
    }
    calls_taken += code == HITREG_OK;
    calls_refused += code != HITREG_OK;
    return code;
}
#define CALL(call) seen(call, #call)

static hitreg_field field(const char *name) {
    hitreg_field made = {name, below(4), below(4), below(10), below(2) ? "units" : NULL};
    return made;
}

static hitreg_description *describe(void) {
    static const char *const names[3] = {"f0", "f1", "f2"};
    hitreg_description *description = hitreg_description_new("anything");
    char name[32];
    for (uint32_t player = 0; player < PLAYERS; player++) {
        snprintf(name, sizeof name, "p%" PRIu32, player);
        CALL(hitreg_description_player(description, name));
    }
    CALL(hitreg_description_tick_hz(description, 1 + number(128)));
    CALL(hitreg_description_setting(description, "any.key", "any value"));
    for (uint32_t made = 0; made < CLASSES; made++) {
        hitreg_field fields[3] = {field(names[0]), field(names[1]), field(names[2])};
        snprintf(name, sizeof name, "class%" PRIu32, made);
        CALL(hitreg_description_class(description, name, fields, made + 1));
    }
    for (uint32_t made = 0; made < TABLES; made++) {
        hitreg_column columns[2] = {{"a", below(4)}, {"b", below(4)}};
        snprintf(name, sizeof name, "table%" PRIu32, made);
        CALL(hitreg_description_table(description, name, columns, 2));
    }
    if (below(2)) {
        hitreg_field own = field("own");
        CALL(hitreg_description_usercmd_fields(description, &own, 1));
    }
    if (below(4) == 0) {
        CALL(hitreg_description_usercmd_bytes(description));
    }
    return description;
}

static hitreg_value value(void) {
    return below(2) ? hitreg_real(real()) : hitreg_number((int64_t)number(1000) - 500);
}

static void push(hitreg_stream *stream, int64_t now, uint32_t call) {
    uint32_t player = number(PLAYERS), tick = 1 + call / 20;
    hitreg_value values[3] = {value(), value(), value()};
    uint32_t cells[4] = {number(100), number(100), (uint32_t)bits(), (uint32_t)bits()};
    uint16_t entities[3] = {(uint16_t)number(8), (uint16_t)number(8), (uint16_t)number(8)};
    uint64_t hash = bits();
    hitreg_usercmd cmd = {.seq = number(call + 2), .at_us = time_us(now), .server_time_us = time_us(now), .lerp_ms = number(200),
        .msec = number(60), .pitch = real(), .yaw = real(), .forwardmove = real(), .buttons = number(16), .impulse = number(9),
        .bytes = (const uint8_t *)cells, .fields = values};
    hitreg_packet packet = {.number = number(call + 2), .at_us = time_us(now), .newest = number(call + 2), .count = number(4),
        .ack = number(call + 2), .bytes = number(1400)};
    hitreg_effect effect = {.kind = number(9), .entity = number(8), .x = real(), .y = real()};
    hitreg_snapshot snapshot = {.seq = number(call + 2), .at_us = time_us(now), .server_time_us = time_us(now),
        .tick = number(tick + 2), .ack = number(call + 2), .bytes = number(1400), .choked = number(3), .entities = entities,
        .entity_count = below(4), .effects = &effect, .effect_count = below(2)};
    hitreg_shot shot = {.usercmd = number(call + 2), .at_us = time_us(now), .index = number(3), .reason = (hitreg_reason)number(6),
        .target = (int32_t)(number(5) - 1), .hitgroup = number(5), .damage = (int32_t)number(99), .rewound_us = number(300000),
        .impact = below(2)};
    hitreg_damage damage = {.tick = number(tick + 2), .at_us = time_us(now), .victim = number(8), .attacker = (int32_t)(number(4) - 1),
        .amount = (int32_t)number(99)};
    if (below(2)) {
        shot.weapon = damage.weapon = value();
        shot.pellets = damage.armour = value();
        damage.force_x = value();
    }
    hitreg_state body = {.tick = number(tick + 2), .viewer = (int32_t)(number(4) - 1), .entity = number(8),
        .class_number = number(CLASSES), .cells = cells, .cell_count = below(8) ? 1 + below(3) : below(5)};
    switch (below(13)) {
    case 0:
        CALL(hitreg_push_usercmd(stream, player, &cmd));
        break;
    case 1:
        cmd.byte_count = below(16);
        cmd.field_count = below(4);
        CALL(hitreg_push_usercmd(stream, player, &cmd));
        break;
    case 2:
        CALL(hitreg_push_sent(stream, player, &packet));
        break;
    case 3:
        CALL(hitreg_push_reached(stream, player, number(call + 2), time_us(now)));
        break;
    case 4:
        CALL(hitreg_push_snapshot(stream, player, &snapshot));
        break;
    case 5:
        CALL(hitreg_push_received(stream, player, number(call + 2), time_us(now)));
        break;
    case 6:
        CALL(hitreg_push_executed(stream, player, number(call + 2), number(tick + 2), (hitreg_how)number(5)));
        break;
    case 7:
        CALL(hitreg_push_tick(stream, below(8) ? tick : number(tick + 2), time_us(now), below(2) ? &hash : NULL));
        break;
    case 8:
        CALL(hitreg_push_state(stream, &body));
        break;
    case 9:
        CALL(hitreg_push_shot(stream, HITREG_TABLE_PREDICTED + below(2), player, &shot));
        break;
    case 10:
        CALL(hitreg_push_presence(stream, player, number(tick + 2), time_us(now), (hitreg_presence)number(2)));
        break;
    case 11:
        CALL(hitreg_push_damage(stream, &damage));
        break;
    default: /* an own table, or any other with this number of values */
        CALL(hitreg_push_row(stream, below(8) ? hitreg_table_custom(number(TABLES)) : number(16), number(4), time_us(now), values,
            below(8) ? 2 : below(4)));
    }
}

/* Reads every row, and the one after the last. */
static void read_all(const char *path) {
    static const size_t columns[] = {14, 7, 7, 5, 1, 3, 2, 8, 1, 2, 5, 4};
    hitreg_log *log = NULL;
    if (CALL(hitreg_log_open(path, &log)) != HITREG_OK) {
        fprintf(stderr, "the log cannot be read: %s\n", hitreg_last_error());
        exit(1);
    }
    for (uint32_t number = 0; number <= HITREG_TABLE_DAMAGE + TABLES; number++) {
        int defined = number <= HITREG_TABLE_DAMAGE;
        uint32_t table = defined ? number : hitreg_table_custom(number - HITREG_TABLE_DAMAGE - 1), series;
        for (size_t place = 0; CALL(hitreg_log_series(log, table, place, &series)) == HITREG_OK; place++) {
            size_t count = 0;
            CALL(hitreg_log_count(log, table, series, &count));
            for (size_t index = 0; index <= count; index++) {
                hitreg_value row[14];
                int64_t at_us;
                hitreg_code code = CALL(hitreg_log_row(log, table, series, index, &at_us, row, defined ? columns[number] : 2));
                if (code != (index < count ? HITREG_OK : HITREG_ERROR_NO_ROW)) {
                    fprintf(stderr, "row %zu of %zu: %s\n", index, count, hitreg_last_error());
                    exit(1);
                }
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
        hitreg_description *description = describe();
        hitreg_options options = {.size = sizeof options, .window_ms = number(400), .ring = 64u << below(6), .patient = 1};
        hitreg_recorder *recorder = NULL;
        hitreg_stream *stream = NULL;
        if (CALL(hitreg_recorder_create(path, description, &options, &recorder)) == HITREG_OK) {
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
        hitreg_description_free(description);
    }
    printf("\n%" PRIu64 " calls taken and %" PRIu64 " refused, nothing found\n", calls_taken, calls_refused);
    return 0;
}
