/* Pushes rows of every table with every typed function, and reads the same back from the log. */
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

enum { ROUNDS = 300 };

struct door {
    double angle;
    int16_t key;
    char name[8];
};
static const hitreg_member of_doors[] = {
    HITREG_FIELD(struct door, angle, "angle", HITREG_F64, HITREG_SCOPE_STATUS, HITREG_MEANING_ANGLE),
    HITREG_FIELD(struct door, key, "key", HITREG_I32, HITREG_SCOPE_STATUS, HITREG_MEANING_NAME),
    HITREG_FIELD(struct door, name, "name", HITREG_TEXT, HITREG_SCOPE_STATUS, HITREG_MEANING_PLAIN),
};
struct lift {
    float height;
};
static const hitreg_member of_lifts[] = {
    HITREG_FIELD(struct lift, height, "height", HITREG_F32, HITREG_SCOPE_STATUS, HITREG_MEANING_PLAIN),
};
static const hitreg_class classes[] = {HITREG_CLASS("door", of_doors), HITREG_CLASS("lift", of_lifts)};

static const struct door door = {-0.5, -3, "front"};
static const struct lift lifts[2] = {{2.0f}, {3.0f}};

/* Pushes two ticks with the same bodies in another order, and reads them back. */
static void bodies(const char *path) {
    hitreg_recorder *recorder = NULL;
    hitreg_stream *stream = NULL;
    hitreg_log *log = NULL;
    hitreg_description *description = hitreg_description_new("everything");
    must(hitreg_description_player(description, "p0"));
    SAME(hitreg_description_classes(description, NULL, 1) == HITREG_ERROR_NULL);
    must(hitreg_description_classes(description, classes, 2));
    must(hitreg_recorder_create(path, description, NULL, &recorder));
    hitreg_description_free(description);
    must(hitreg_stream_new(recorder, &stream));
    hitreg_body all[] = {{0, 0, &door}, {1, 1, &lifts[0]}, {2, 1, &lifts[1]}}, turned[] = {all[2], all[0], all[1]};
    hitreg_body swapped[] = {all[0], {1, 1, &lifts[1]}, {2, 1, &lifts[0]}};
    must(hitreg_push_tick_with_bodies(stream, 1, 10000, classes, all, 3));
    must(hitreg_push_tick_with_bodies(stream, 2, 20000, classes, turned, 3));
    must(hitreg_push_tick_with_bodies(stream, 3, 30000, classes, swapped, 3));
    SAME(hitreg_push_tick_with_bodies(stream, 4, 40000, NULL, all, 3) == HITREG_ERROR_NULL);
    SAME(hitreg_push_tick_with_bodies(stream, 4, 40000, classes, NULL, 3) == HITREG_ERROR_NULL);
    /* A refused body leaves nothing, so the tick can be pushed again. */
    hitreg_body empty[] = {all[0], {1, 1, NULL}}, strange[] = {all[0], {1, 2, &lifts[0]}};
    SAME(hitreg_push_tick_with_bodies(stream, 4, 40000, classes, empty, 2) == HITREG_ERROR_NULL);
    SAME(hitreg_push_tick_with_bodies(stream, 4, 40000, classes, strange, 2) == HITREG_ERROR_MISFIT);
    must(hitreg_push_tick_with_bodies(stream, 4, 40000, classes, all, 1));
    hitreg_stream_free(stream);
    must(hitreg_recorder_finish(recorder, NULL));
    hitreg_recorder_free(recorder);
    must(hitreg_log_open(path, &log));
    hitreg_tick ticks[4];
    size_t count;
    must(hitreg_log_count(log, HITREG_TABLE_STATES, 0, &count));
    SAME(count == 10);
    for (size_t tick = 0; tick < 4; tick++) {
        must(hitreg_log_tick(log, tick, &ticks[tick]));
    }
    SAME(ticks[3].hash == hitreg_hash_struct(0, &door, of_doors, classes[0].count));
    SAME(ticks[0].has_hash && ticks[0].hash == ticks[1].hash && ticks[0].hash != ticks[2].hash);
    for (size_t row = 0; row < 6; row++) {
        hitreg_state state;
        struct door opened = {0};
        struct lift moved = {0};
        must(hitreg_log_state(log, row, &state));
        SAME(state.tick == row / 3 + 1 && state.entity == row % 3 && state.class_number == (row % 3 > 0));
        must(hitreg_restore_body(log, &state, classes, 2, state.entity == 0 ? (void *)&opened : (void *)&moved));
        SAME(state.entity > 0 || (opened.angle == -0.5 && opened.key == -3 && strcmp(opened.name, "front") == 0));
        SAME(state.entity == 0 || moved.height == lifts[state.entity - 1].height);
        SAME(state.entity == 0 || hitreg_restore_body(log, &state, classes, 1, &moved) == HITREG_ERROR_MISFIT);
        SAME(state.entity == 0 || strcmp(hitreg_last_error(), "there is no class 1: there are 1 classes") == 0);
        SAME(hitreg_restore_body(log, &state, NULL, 2, &moved) == HITREG_ERROR_NULL);
        SAME(hitreg_restore_body(log, NULL, classes, 2, &moved) == HITREG_ERROR_NULL);
    }
    hitreg_log_free(log);
}

static void record(const char *path) {
    hitreg_recorder *recorder = NULL;
    hitreg_stream *stream = NULL;
    static const hitreg_field fields[2] = {
        {"lean", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_PLAIN, NULL},
        {"stance", HITREG_I32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_NAME, NULL},
    };
    static const hitreg_field of_players[1] = {{"health", HITREG_I32, HITREG_SCOPE_STATUS, HITREG_MEANING_PLAIN, NULL}};
    static const hitreg_column columns[2] = {{"spell", HITREG_U32}, {"power", HITREG_F32}};
    hitreg_description *description = hitreg_description_new("everything");
    must(hitreg_description_player(description, "p0"));
    must(hitreg_description_class(description, "player", of_players, 1));
    must(hitreg_description_usercmd_fields(description, fields, 2));
    must(hitreg_description_usercmd_bytes(description));
    must(hitreg_description_usercmds_as_received(description));
    must(hitreg_description_table(description, "casts", columns, 2));
    hitreg_options options = {.size = sizeof options, .patient = 1};
    must(hitreg_recorder_create(path, description, &options, &recorder));
    hitreg_description_free(description);
    must(hitreg_stream_new(recorder, &stream));
    must(hitreg_push_presence(stream, 0, 1, 10000, HITREG_PRESENCE_JOINED));
    for (uint32_t seq = 1; seq <= ROUNDS; seq++) {
        int64_t at_us = (int64_t)seq * 10000;
        hitreg_value own[2] = {hitreg_real((float)seq / 8.0f), hitreg_number(-(int64_t)seq)};
        uint8_t bytes[3] = {1, 2, (uint8_t)seq};
        hitreg_usercmd cmd = {.seq = seq, .at_us = at_us, .server_time_us = at_us - 1, .lerp_ms = 100, .msec = 10,
            .pitch = -1.0f, .yaw = 2.0f, .roll = 3.0f, .forwardmove = 4.0f, .sidemove = -5.0f, .upmove = 6.0f, .buttons = seq & 3,
            .impulse = 7, .bytes = bytes, .byte_count = seq % 4, .fields = own, .field_count = 2};
        must(hitreg_push_usercmd(stream, 0, &cmd));
        hitreg_packet packet = {.number = seq, .at_us = at_us, .newest = seq, .count = 1, .ack = seq - 1, .bytes = 60};
        must(hitreg_push_sent(stream, 0, &packet));
        must(hitreg_push_reached(stream, 0, seq, at_us + 1000));
        must(hitreg_push_executed(stream, 0, seq, seq, HITREG_HOW_STOOD_IN));
        hitreg_shot shot = {.usercmd = seq, .at_us = at_us, .index = 1, .reason = HITREG_REASON_ALREADY_DEAD, .target = 7,
            .hitgroup = 2, .damage = 30, .rewound_us = 1234, .weapon = hitreg_text("rifle"), .impact = 1, .pellets = hitreg_number(5)};
        must(hitreg_push_judged(stream, 0, &shot));
        shot.reason = HITREG_REASON_MISSED, shot.target = -1, shot.weapon = hitreg_number(12), shot.impact = 0, shot.pellets = hitreg_none();
        must(hitreg_push_predicted(stream, 0, &shot));
        uint64_t hash = UINT64_MAX - seq;
        must(hitreg_push_tick(stream, seq, at_us, seq % 2 ? &hash : NULL));
        uint32_t cell = seq;
        hitreg_state state = {.tick = seq, .viewer = 0, .entity = 0, .cells = &cell, .cell_count = 1};
        must(hitreg_push_state(stream, &state));
        must(hitreg_push_body(stream, seq, 0, 0, &cell, 1));
        hitreg_damage damage = {.tick = seq, .at_us = at_us, .victim = 7, .attacker = -1, .amount = (int32_t)seq};
        if (seq % 2) {
            damage.weapon = hitreg_text("rifle"), damage.armour = hitreg_number(0), damage.force_y = hitreg_real(-2.5f);
        }
        must(hitreg_push_damage(stream, &damage));
        uint16_t entities[2] = {7, 0};
        hitreg_effect effects[2] = {{.kind = 3, .entity = 7, .x = 1.5f}, {.kind = 9, .predictable = 1, .z = -2.0f}};
        hitreg_snapshot snapshot = {.seq = seq, .at_us = at_us, .server_time_us = at_us + 1, .tick = seq, .ack = seq, .bytes = 400,
            .choked = 5, .entities = entities, .entity_count = 2, .effects = effects, .effect_count = seq % 3};
        must(hitreg_push_snapshot(stream, 0, &snapshot));
        must(hitreg_push_received(stream, 0, seq, at_us + 5000));
        hitreg_value cast[2] = {hitreg_number(seq), hitreg_real(0.5f)};
        must(hitreg_push_row(stream, hitreg_table_custom(0), 4, at_us, cast, 2));
    }
    must(hitreg_push_presence(stream, 0, ROUNDS, ROUNDS * 10000, HITREG_PRESENCE_LEFT));
    hitreg_stream_free(stream);
    must(hitreg_recorder_finish(recorder, NULL));
    hitreg_recorder_free(recorder);
}

static size_t count_of(const hitreg_log *log, uint32_t table, uint32_t series) {
    size_t count = 0;
    must(hitreg_log_count(log, table, series, &count));
    return count;
}

static void read(const char *path) {
    hitreg_log *log = NULL;
    uint32_t casts, series;
    must(hitreg_log_open(path, &log));
    SAME(strcmp(hitreg_log_setting(log, "recorder.usercmds"), "as_received") == 0);
    const char *key, *setting;
    size_t settings = 0;
    for (; hitreg_log_setting_at(log, settings, &key, &setting) == HITREG_OK; settings++) {
        SAME(strcmp(hitreg_log_setting(log, key), setting) == 0);
    }
    SAME(settings > 0 && hitreg_log_setting_at(log, settings, &key, &setting) == HITREG_ERROR_NO_ROW);
    hitreg_usercmd found;
    must(hitreg_log_find_usercmd(log, 0, ROUNDS / 2, &found));
    SAME(found.seq == ROUNDS / 2 && hitreg_log_find_usercmd(log, 0, ROUNDS + 1, &found) == HITREG_ERROR_NO_ROW);
    must(hitreg_log_table(log, "casts", &casts));
    SAME(casts == hitreg_table_custom(0));
    must(hitreg_log_series(log, casts, 0, &series));
    SAME(series == 4 && hitreg_log_series(log, casts, 1, &series) == HITREG_ERROR_NO_ROW);
    SAME(count_of(log, HITREG_TABLE_PRESENCE, 0) == 2 && count_of(log, HITREG_TABLE_STATES, 0) == 2 * ROUNDS);
    for (uint32_t table = HITREG_TABLE_FRAMES; table <= HITREG_TABLE_DAMAGE; table++) {
        SAME(table == HITREG_TABLE_PRESENCE || table == HITREG_TABLE_STATES || count_of(log, table, 0) == ROUNDS);
    }
    SAME(count_of(log, casts, 4) == ROUNDS && count_of(log, casts, 0) == 0);
    hitreg_presence_change change;
    must(hitreg_log_presence(log, 0, 0, &change));
    SAME(change.tick == 1 && change.at_us == 10000 && change.presence == HITREG_PRESENCE_JOINED);
    must(hitreg_log_presence(log, 0, 1, &change));
    SAME(change.tick == ROUNDS && change.at_us == ROUNDS * 10000 && change.presence == HITREG_PRESENCE_LEFT);
    for (uint32_t seq = 1; seq <= ROUNDS; seq++) {
        int64_t at_us = (int64_t)seq * 10000;
        hitreg_usercmd cmd;
        must(hitreg_log_usercmd(log, 0, seq - 1, &cmd));
        SAME(cmd.seq == seq && cmd.at_us == at_us && cmd.server_time_us == at_us - 1 && cmd.lerp_ms == 100 && cmd.msec == 10);
        SAME(cmd.pitch == -1.0f && cmd.yaw == 2.0f && cmd.roll == 3.0f);
        SAME(cmd.forwardmove == 4.0f && cmd.sidemove == -5.0f && cmd.upmove == 6.0f);
        SAME(cmd.buttons == (seq & 3) && cmd.impulse == 7);
        SAME(cmd.byte_count == seq % 4 && (cmd.byte_count < 3 || cmd.bytes[2] == (uint8_t)seq));
        SAME(cmd.field_count == 2 && cmd.fields[0].kind == HITREG_VALUE_REAL && cmd.fields[0].data.real == (float)seq / 8.0f);
        SAME(cmd.fields[1].kind == HITREG_VALUE_NUMBER && cmd.fields[1].data.number == -(int64_t)seq);
        hitreg_packet packet;
        must(hitreg_log_sent(log, 0, seq - 1, &packet));
        SAME(packet.number == seq && packet.at_us == at_us && packet.newest == seq && packet.count == 1);
        SAME(packet.ack == seq - 1 && packet.bytes == 60);
        hitreg_arrival arrival;
        must(hitreg_log_reached(log, 0, seq - 1, &arrival));
        SAME(arrival.number == seq && arrival.at_us == at_us + 1000);
        must(hitreg_log_received(log, 0, seq - 1, &arrival));
        SAME(arrival.number == seq && arrival.at_us == at_us + 5000);
        hitreg_executed executed;
        must(hitreg_log_executed(log, 0, seq - 1, &executed));
        SAME(executed.usercmd == seq && executed.tick == seq && executed.how == HITREG_HOW_STOOD_IN);
        hitreg_shot shot;
        must(hitreg_log_judged(log, 0, seq - 1, &shot));
        SAME(shot.usercmd == seq && shot.at_us == at_us && shot.index == 1 && shot.reason == HITREG_REASON_ALREADY_DEAD);
        SAME(shot.target == 7 && shot.hitgroup == 2 && shot.damage == 30 && shot.rewound_us == 1234);
        SAME(strcmp(shot.weapon.data.text, "rifle") == 0 && shot.impact == 1 && shot.pellets.data.number == 5);
        must(hitreg_log_predicted(log, 0, seq - 1, &shot));
        SAME(shot.reason == HITREG_REASON_MISSED && shot.target == -1);
        SAME(strcmp(shot.weapon.data.text, "12") == 0 && shot.impact == 0 && shot.pellets.kind == HITREG_VALUE_NONE);
        hitreg_tick tick;
        must(hitreg_log_tick(log, seq - 1, &tick));
        SAME(tick.tick == seq && tick.at_us == at_us && tick.has_hash == seq % 2);
        SAME(tick.hash == (seq % 2 ? UINT64_MAX - seq : 0));
        hitreg_state state;
        for (uint32_t own = 0; own < 2; own++) {
            must(hitreg_log_state(log, 2 * (seq - 1) + own, &state));
            SAME(state.tick == seq && state.viewer == (own ? 0 : -1) && state.entity == 0 && state.class_number == 0);
            SAME(state.cell_count == 1 && state.cells[0] == seq);
        }
        hitreg_damage damage;
        must(hitreg_log_damage(log, seq - 1, &damage));
        SAME(damage.tick == seq && damage.at_us == at_us && damage.victim == 7 && damage.attacker == -1);
        SAME(damage.amount == (int32_t)seq);
        if (seq % 2) {
            SAME(strcmp(damage.weapon.data.text, "rifle") == 0 && damage.armour.kind == HITREG_VALUE_NUMBER && damage.armour.data.number == 0);
            SAME(damage.force_x.data.real == 0.0f && damage.force_y.data.real == -2.5f && damage.force_z.kind == HITREG_VALUE_REAL);
        } else {
            SAME(damage.weapon.kind == HITREG_VALUE_NONE && damage.armour.kind == HITREG_VALUE_NONE);
            SAME(damage.force_x.kind == HITREG_VALUE_NONE);
        }
        hitreg_snapshot snapshot;
        must(hitreg_log_snapshot(log, 0, seq - 1, &snapshot));
        SAME(snapshot.seq == seq && snapshot.at_us == at_us && snapshot.server_time_us == at_us + 1 && snapshot.tick == seq);
        SAME(snapshot.ack == seq && snapshot.bytes == 400 && snapshot.choked == 5);
        SAME(snapshot.entity_count == 2 && snapshot.entities[0] == 0 && snapshot.entities[1] == 7);
        SAME(snapshot.effect_count == seq % 3);
        if (snapshot.effect_count == 2) {
            const hitreg_effect *effect = &snapshot.effects[1];
            SAME(effect->kind == 9 && effect->entity == 0 && effect->predictable == 1 && effect->z == -2.0f);
        }
        hitreg_value cast[3];
        int64_t at = 0;
        must(hitreg_log_row(log, casts, 4, seq - 1, &at, cast, 2));
        SAME(at == at_us && cast[0].data.number == seq && cast[1].data.real == 0.5f);
        SAME(hitreg_log_row(log, casts, 4, seq - 1, &at, cast, 3) == HITREG_ERROR_MISFIT);
    }
    hitreg_value none;
    SAME(hitreg_log_row(log, casts, 4, ROUNDS, NULL, &none, 1) == HITREG_ERROR_NO_ROW);
    SAME(hitreg_log_row(log, hitreg_table_custom(1), 4, 0, NULL, &none, 1) == HITREG_ERROR_NO_ROW);
    SAME(hitreg_log_table(log, "spells", &casts) == HITREG_ERROR_NO_ROW);
    SAME(hitreg_log_table(log, NULL, &casts) == HITREG_ERROR_NULL);
    SAME(hitreg_log_presence(log, 0, 2, &change) == HITREG_ERROR_NO_ROW);
    hitreg_log_free(log);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        return 128;
    }
    record(argv[1]);
    read(argv[1]);
    if (argc > 2) {
        bodies(argv[2]);
    }
    printf("%d faults\n", faults);
    return faults > 0;
}
