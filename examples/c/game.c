/* A small game with a server, two clients and a link between them, which knows hitreg by its header alone.
 *
 *   game record LOG [SECONDS]      plays a session and records it
 *   game replay LOG -o TRACE       plays a recorded session again: that makes it a build
 *
 * Players slide over a plane, turn, and shoot along their view. With -DBUG a hit counts behind the shooter, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hitreg.h"

enum { PLAYERS = 2, HZ = 100, TICK_US = 1000000 / HZ, ATTACK = 1, REFIRE = 25, LINK = 64 };
enum { UNTESTABLE = 125, TROUBLE = 128 };
static const float FRICTION = 4.0f, ACCELERATE = 900.0f, RANGE = 400.0f, RADIUS = 16.0f;

struct body {
    float x, y, vx, vy;
    int32_t health;
    uint32_t refire; /* ticks until it may shoot again */
};
struct world {
    uint32_t tick;
    struct body bodies[PLAYERS];
};
struct shot {
    uint16_t shooter;
    uint32_t command;
    int32_t target; /* -1: nobody */
    int32_t damage;
};

static void must(hitreg_code code) {
    if (code != HITREG_OK) {
        fprintf(stderr, "game: %s\n", hitreg_last_error());
        exit(TROUBLE);
    }
}

/* ---- The game itself, shared by recording and replaying. ---- */

static void spawn(struct world *world) {
    memset(world, 0, sizeof *world);
    for (int p = 0; p < PLAYERS; p++) {
        world->bodies[p].x = p == 0 ? -100.0f : 100.0f;
        world->bodies[p].health = 100;
    }
}

static void respawn(struct body *body, uint32_t tick) {
    body->x = (float)(tick % 7) * 40.0f - 120.0f;
    body->y = (float)(tick % 5) * 40.0f - 80.0f;
    body->vx = body->vy = 0.0f;
    body->health = 100;
}

/* Runs one usercmd; says whether it shot, and whom it hit. */
static int run(struct world *world, uint16_t player, const hitreg_usercmd *cmd, struct shot *shot) {
    struct body *me = &world->bodies[player];
    float seconds = (float)cmd->msec / 1000.0f, turn = cmd->yaw * 3.14159265f / 180.0f;
    float ahead_x = cosf(turn), ahead_y = sinf(turn);
    me->vx -= me->vx * FRICTION * seconds;
    me->vy -= me->vy * FRICTION * seconds;
    me->vx += ahead_x * cmd->forwardmove / 320.0f * ACCELERATE * seconds;
    me->vy += ahead_y * cmd->forwardmove / 320.0f * ACCELERATE * seconds;
    me->x += me->vx * seconds;
    me->y += me->vy * seconds;
    if (me->refire > 0) {
        me->refire--;
    }
    if (!(cmd->buttons & ATTACK) || me->refire > 0) {
        return 0;
    }
    me->refire = REFIRE;
    *shot = (struct shot){.shooter = player, .command = cmd->seq, .target = -1};
    for (int other = 0; other < PLAYERS; other++) {
        struct body *them = &world->bodies[other];
        float dx = them->x - me->x, dy = them->y - me->y;
        float along = dx * ahead_x + dy * ahead_y, beside = dx * ahead_y - dy * ahead_x;
#ifdef BUG
        along = fabsf(along);
#endif
        if (other != player && along > 0.0f && along < RANGE && fabsf(beside) < RADIUS) {
            shot->target = other;
            shot->damage = 30;
            them->health -= shot->damage;
            if (them->health <= 0) {
                respawn(them, world->tick);
            }
        }
    }
    return 1;
}

static void cells_of(const struct body *body, uint32_t cells[6]) {
    memcpy(cells, body, 6 * sizeof(uint32_t));
}

static uint64_t hash(const struct world *world) {
    uint64_t hash = 1469598103934665603u;
    for (int p = 0; p < PLAYERS; p++) {
        uint32_t cells[6];
        cells_of(&world->bodies[p], cells);
        for (int c = 0; c < 6; c++) {
            hash = (hash ^ cells[c]) * 1099511628211u;
        }
    }
    return hash;
}

/* ---- Recording: two clients, a server, and a link that delays and loses. ---- */

static uint32_t random_bits(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static hitreg_about *about(void) {
    hitreg_about *about = hitreg_about_new("slide");
    must(hitreg_about_tick_hz(about, HZ));
    must(hitreg_about_setting(about, "slide.friction", "4"));
    must(hitreg_about_map(about, "plane", NULL, 0));
    must(hitreg_about_class(about, "player"));
    const char *names[4] = {"origin.x", "origin.y", "velocity.x", "velocity.y"};
    for (int f = 0; f < 4; f++) {
        uint32_t meaning = f < 2 ? HITREG_POSITION : HITREG_VELOCITY;
        must(hitreg_about_field(about, names[f], HITREG_F32, HITREG_MOVEMENT, meaning, NULL));
    }
    must(hitreg_about_field(about, "health", HITREG_I32, HITREG_STATUS, HITREG_PLAIN, "health points"));
    must(hitreg_about_field(about, "refire", HITREG_U32, HITREG_WEAPONS, HITREG_COUNTER, NULL));
    must(hitreg_about_player(about, "p0"));
    must(hitreg_about_player(about, "p1"));
    return about;
}

/* A bot: keeps turning, mostly towards the other, and shoots now and then. */
static hitreg_usercmd think(uint16_t player, uint32_t seq, const struct world *seen, uint32_t *seed) {
    const struct body *me = &seen->bodies[player], *them = &seen->bodies[1 - player];
    hitreg_usercmd cmd = {.size = sizeof cmd, .seq = seq, .at_us = (int64_t)seq * TICK_US, .msec = 10};
    cmd.server_time_us = cmd.at_us - 30000;
    cmd.yaw = atan2f(them->y - me->y, them->x - me->x) * 180.0f / 3.14159265f;
    if (seq / 150 % 3 == 2) {
        cmd.yaw += 180.0f; /* runs away */
    }
    cmd.yaw += (float)(random_bits(seed) % 9) - 4.0f;
    cmd.forwardmove = seq / 70 % 2 ? 320.0f : 160.0f;
    cmd.buttons = random_bits(seed) % 4 == 0 ? ATTACK : 0;
    return cmd;
}

static int record(const char *path, uint32_t seconds) {
    hitreg_recorder *recorder;
    hitreg_stream *stream;
    hitreg_about *session = about();
    /* It runs faster than real, so the recorder may take its time. */
    hitreg_options options = {.size = sizeof options, .patient = 1};
    must(hitreg_recorder_create(path, session, &options, &recorder));
    hitreg_about_free(session);
    must(hitreg_stream_new(recorder, &stream));

    static hitreg_usercmd sent[PLAYERS][LINK]; /* by number, until they arrive */
    uint32_t arrives[PLAYERS][LINK] = {{0}}, newest[PLAYERS] = {0}, seed = 7;
    struct world world;
    spawn(&world);
    for (uint32_t tick = 1; tick <= seconds * HZ; tick++) {
        int64_t now = (int64_t)tick * TICK_US;
        world.tick = tick;
        for (uint16_t p = 0; p < PLAYERS; p++) {
            hitreg_usercmd cmd = think(p, tick, &world, &seed);
            must(hitreg_push_usercmd(stream, p, &cmd));
            hitreg_packet packet = {sizeof packet, tick, now, tick, 1, 0, 60};
            must(hitreg_push_packet(stream, p, &packet));
            sent[p][tick % LINK] = cmd;
            int lost = random_bits(&seed) % 50 == 0;
            arrives[p][tick % LINK] = lost ? 0 : tick + 2 + random_bits(&seed) % 3;
        }
        for (uint16_t p = 0; p < PLAYERS; p++) {
            for (uint32_t number = tick > 8 ? tick - 8 : 1; number < tick; number++) {
                if (arrives[p][number % LINK] != tick) {
                    continue;
                }
                must(hitreg_push_reached(stream, p, number, now));
                uint32_t late = number < newest[p] ? 3 : 0;
                must(hitreg_push_ran(stream, p, number, tick, late));
                struct shot shot;
                const hitreg_usercmd *cmd = &sent[p][number % LINK];
                if (late == 0 && run(&world, p, cmd, &shot)) {
                    hitreg_shot judged = {sizeof judged, shot.command, now, 0, shot.target < 0 ? 2 : 0,
                                          shot.target,   0,            shot.damage, 0};
                    must(hitreg_push_shot(stream, p, &judged, 1));
                }
                newest[p] = late ? newest[p] : number;
            }
        }
        uint64_t state = hash(&world);
        must(hitreg_push_tick(stream, tick, now, &state));
        for (uint16_t p = 0; p < PLAYERS; p++) {
            uint32_t cells[6];
            cells_of(&world.bodies[p], cells);
            must(hitreg_push_body(stream, tick, -1, p, 0, cells, 6));
        }
    }
    hitreg_stream_free(stream);
    hitreg_written written = {.size = sizeof written};
    must(hitreg_recorder_finish(recorder, &written));
    hitreg_recorder_free(recorder);
    printf("%llu records in %s\n", (unsigned long long)written.records, path);
    return 0;
}

/* ---- Replaying: the recorded usercmds, in the ticks in which they ran. ---- */

/* Columns of the trace's tables. */
static struct {
    uint32_t *tick, *bodies_tick, *entity, *cells[6], *shooter, *command, *shot_tick, *target, *reason;
    uint64_t *hash;
    int64_t *at_us, *shot_at, *damage;
    size_t ticks, bodies, shots;
} out;

static void *room(size_t count, size_t size) {
    void *made = calloc(count + 1, size);
    if (!made) {
        exit(TROUBLE);
    }
    return made;
}

static void write_trace(hitreg_log *log, const char *path) {
    hitreg_trace *trace;
    must(hitreg_trace_new(log, "closed", &trace));
    must(hitreg_trace_table(trace, "ticks"));
    must(hitreg_trace_u32(trace, "tick", NULL, out.tick, out.ticks));
    must(hitreg_trace_i64(trace, "at_us", "µs", out.at_us, out.ticks));
    must(hitreg_trace_u64(trace, "hash", NULL, out.hash, out.ticks));
    must(hitreg_trace_table(trace, "bodies"));
    must(hitreg_trace_u32(trace, "tick", NULL, out.bodies_tick, out.bodies));
    must(hitreg_trace_u32(trace, "entity", NULL, out.entity, out.bodies));
    const char *fields[4] = {"origin.x", "origin.y", "velocity.x", "velocity.y"};
    for (int f = 0; f < 4; f++) {
        float *values = room(out.bodies, sizeof *values);
        memcpy(values, out.cells[f], out.bodies * sizeof *values);
        must(hitreg_trace_f32(trace, fields[f], f < 2 ? "units" : "units/s", values, out.bodies));
        free(values);
    }
    must(hitreg_trace_u32(trace, "health", NULL, out.cells[4], out.bodies));
    must(hitreg_trace_u32(trace, "refire", NULL, out.cells[5], out.bodies));
    must(hitreg_trace_table(trace, "shots"));
    const char *targets[PLAYERS + 1] = {"none", "p0", "p1"}, *reasons[2] = {"hit", "missed"};
    uint32_t *zero = room(out.shots, sizeof *zero);
    must(hitreg_trace_u32(trace, "shooter", NULL, out.shooter, out.shots));
    must(hitreg_trace_u32(trace, "command", NULL, out.command, out.shots));
    must(hitreg_trace_u32(trace, "index", NULL, zero, out.shots));
    must(hitreg_trace_u32(trace, "impact", NULL, zero, out.shots));
    must(hitreg_trace_i64(trace, "at_us", "µs", out.shot_at, out.shots));
    must(hitreg_trace_u32(trace, "tick", NULL, out.shot_tick, out.shots));
    must(hitreg_trace_names(trace, "reason", reasons, 2, out.reason, out.shots));
    must(hitreg_trace_names(trace, "target", targets, PLAYERS + 1, out.target, out.shots));
    must(hitreg_trace_i64(trace, "damage", NULL, out.damage, out.shots));
    free(zero);
    must(hitreg_trace_write(trace, path));
    hitreg_trace_free(trace);
}

static int replay(const char *path, const char *to) {
    hitreg_log *log;
    must(hitreg_log_open(path, &log));
    if (strcmp(hitreg_log_game(log), "slide") != 0 || hitreg_log_players(log) != PLAYERS) {
        fprintf(stderr, "game: this log is of %s, and I play slide\n", hitreg_log_game(log));
        return UNTESTABLE;
    }
    size_t ticks, rows, most_shots = 0, next[PLAYERS] = {0}, all[PLAYERS];
    must(hitreg_log_count(log, HITREG_TICKS, 0, &ticks));
    for (uint16_t p = 0; p < PLAYERS; p++) {
        must(hitreg_log_count(log, HITREG_RAN, p, &all[p]));
        most_shots += all[p];
    }
    rows = ticks * PLAYERS;
    out.tick = room(ticks, 4), out.at_us = room(ticks, 8), out.hash = room(ticks, 8);
    out.bodies_tick = room(rows, 4), out.entity = room(rows, 4);
    for (int c = 0; c < 6; c++) {
        out.cells[c] = room(rows, 4);
    }
    out.shooter = room(most_shots, 4), out.command = room(most_shots, 4), out.shot_tick = room(most_shots, 4);
    out.target = room(most_shots, 4), out.reason = room(most_shots, 4);
    out.shot_at = room(most_shots, 8), out.damage = room(most_shots, 8);

    struct world world;
    spawn(&world);
    for (; out.ticks < ticks; out.ticks++) {
        hitreg_tick_end end = {.size = sizeof end};
        must(hitreg_log_tick(log, out.ticks, &end));
        world.tick = end.tick;
        for (uint16_t p = 0; p < PLAYERS; p++) {
            for (; next[p] < all[p]; next[p]++) {
                hitreg_execution ran = {.size = sizeof ran};
                must(hitreg_log_ran(log, p, next[p], &ran));
                if (ran.tick > end.tick) {
                    break;
                }
                /* The first usercmd is number 1, and none is missing in a recording of our own. */
                hitreg_usercmd cmd = {.size = sizeof cmd};
                must(hitreg_log_usercmd(log, p, ran.command - 1, &cmd));
                struct shot shot;
                if (ran.how == 0 && run(&world, p, &cmd, &shot)) {
                    size_t row = out.shots++;
                    out.shooter[row] = p, out.command[row] = shot.command, out.shot_tick[row] = end.tick;
                    out.shot_at[row] = end.at_us, out.damage[row] = shot.damage;
                    out.target[row] = (uint32_t)(shot.target + 1), out.reason[row] = shot.target < 0;
                }
            }
        }
        out.tick[out.ticks] = end.tick, out.at_us[out.ticks] = end.at_us, out.hash[out.ticks] = hash(&world);
        for (uint32_t p = 0; p < PLAYERS; p++) {
            uint32_t cells[6];
            cells_of(&world.bodies[p], cells);
            out.bodies_tick[out.bodies] = end.tick, out.entity[out.bodies] = p;
            for (int c = 0; c < 6; c++) {
                out.cells[c][out.bodies] = cells[c];
            }
            out.bodies++;
        }
    }
    write_trace(log, to);
    hitreg_log_free(log);
    free(out.tick), free(out.at_us), free(out.hash), free(out.bodies_tick), free(out.entity);
    for (int c = 0; c < 6; c++) {
        free(out.cells[c]);
    }
    free(out.shooter), free(out.command), free(out.shot_tick), free(out.target), free(out.reason);
    free(out.shot_at), free(out.damage);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "record") == 0) {
        return record(argv[2], argc > 3 ? (uint32_t)atoi(argv[3]) : 20);
    }
    if (argc == 5 && strcmp(argv[1], "replay") == 0 && strcmp(argv[3], "-o") == 0) {
        return replay(argv[2], argv[4]);
    }
    fprintf(stderr, "usage: game record LOG [SECONDS] | game replay LOG -o TRACE\n");
    return TROUBLE;
}
