/* A small game with a server, two clients and a link between them. It uses only hitreg.h.
 *
 *   game record LOG [SECONDS]      plays a session and records it
 *   game rotate LOG [SECONDS]      records files of five seconds, LOG-0001 and so on
 *   game keep LOG [SECONDS]        keeps the last five seconds in memory, and writes them at the end
 *   game replay LOG -o TRACE       replays a recorded session, as every build does
 *
 * Players slide over a plane, turn, and shoot along their view. With -DBUG, shots also hit behind the shooter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hitreg.h"

enum { PLAYERS = 2, HZ = 100, TICK_US = 1000000 / HZ, ATTACK = 1, REFIRE = 25, LINK = 64 };
enum { TROUBLE = 128 };
static const float ACCELERATE = 900.0f, RANGE = 400.0f, RADIUS = 16.0f;
static float friction = 4.0f; /* the setting slide.friction */

struct body {
    float x, y, vx, vy;
    int32_t health;
    uint32_t refire; /* ticks until it may shoot again */
};
/* The fields of a body. They declare, push and restore it. */
static const hitreg_member members[] = {
    HITREG_FIELD(struct body, x, "origin.x", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION),
    HITREG_FIELD(struct body, y, "origin.y", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_POSITION),
    HITREG_FIELD(struct body, vx, "velocity.x", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_VELOCITY),
    HITREG_FIELD(struct body, vy, "velocity.y", HITREG_F32, HITREG_SCOPE_MOVEMENT, HITREG_MEANING_VELOCITY),
    HITREG_FIELD(struct body, health, "health", HITREG_I32, HITREG_SCOPE_STATUS, HITREG_MEANING_PLAIN),
    HITREG_FIELD(struct body, refire, "refire", HITREG_U32, HITREG_SCOPE_WEAPONS, HITREG_MEANING_COUNTER),
};
static const hitreg_class classes[] = {HITREG_CLASS("player", members)};
enum { CLASSES = sizeof classes / sizeof classes[0] };
struct world {
    uint32_t tick;
    struct body bodies[PLAYERS];
};
struct shot {
    uint16_t shooter;
    uint32_t command;
    int32_t target; /* -1: none */
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

/* Runs one usercmd. Returns whether it shot; `shot` has the target. */
static int run(struct world *world, uint16_t player, const hitreg_usercmd *cmd, struct shot *shot) {
    struct body *me = &world->bodies[player];
    float seconds = (float)cmd->msec / 1000.0f, turn = cmd->yaw * 3.14159265f / 180.0f;
    float ahead_x = cosf(turn), ahead_y = sinf(turn);
    me->vx -= me->vx * friction * seconds;
    me->vy -= me->vy * friction * seconds;
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

/* ---- Records of a session and of a replay. ---- */

static void run_and_record(hitreg_stream *stream, struct world *world, uint16_t player, const hitreg_usercmd *cmd,
                         int64_t now) {
    struct shot shot;
    if (run(world, player, cmd, &shot)) {
        hitreg_shot judged = {.usercmd = shot.command, .at_us = now, .weapon = hitreg_text("railgun")};
        judged.reason = shot.target < 0 ? HITREG_REASON_MISSED : HITREG_REASON_HIT;
        judged.target = shot.target;
        judged.damage = shot.damage;
        must(hitreg_push_judged(stream, player, &judged));
    }
}

static void end_tick(hitreg_stream *stream, const struct world *world, int64_t now) {
    hitreg_body bodies[PLAYERS];
    for (uint32_t p = 0; p < PLAYERS; p++) {
        bodies[p] = (hitreg_body){.entity = p, .class_number = 0, .state = &world->bodies[p]};
    }
    must(hitreg_push_tick_with_bodies(stream, world->tick, now, classes, bodies, PLAYERS));
}

/* ---- Recording: two clients, a server, and a link with delay and loss. ---- */

static uint32_t random_bits(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static hitreg_description *describe(void) {
    hitreg_description *description = hitreg_description_new("slide");
    must(hitreg_description_tick_hz(description, HZ));
    must(hitreg_description_setting(description, "slide.friction", "4"));
    must(hitreg_description_map(description, "plane", NULL, 0));
    must(hitreg_description_classes(description, classes, CLASSES));
    must(hitreg_description_player(description, "p0"));
    must(hitreg_description_player(description, "p1"));
    return description;
}

/* A bot: turns, mostly towards the other player, and shoots now and then. */
static hitreg_usercmd think(uint16_t player, uint32_t seq, const struct world *seen, uint32_t *seed) {
    const struct body *me = &seen->bodies[player], *them = &seen->bodies[1 - player];
    hitreg_usercmd cmd = {.seq = seq, .at_us = (int64_t)seq * TICK_US, .msec = 10};
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

static int record(const char *how, const char *path, uint32_t seconds) {
    hitreg_recorder *recorder = NULL;
    hitreg_stream *stream = NULL;
    hitreg_description *session = describe();
    int keeps = strcmp(how, "keep") == 0;
    /* The session runs faster than real time, so pushes wait for the recorder. */
    hitreg_options options = {.size = sizeof options, .patient = 1};
    options.rotate_s = strcmp(how, "rotate") == 0 ? 5 : 0;
    if (keeps) {
        must(hitreg_recorder_keep_last(5, session, &options, &recorder));
    } else {
        must(hitreg_recorder_create(path, session, &options, &recorder));
    }
    hitreg_description_free(session);
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
            hitreg_packet packet = {.number = tick, .at_us = now, .newest = tick, .count = 1, .bytes = 60};
            must(hitreg_push_sent(stream, p, &packet));
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
                int late = number < newest[p];
                must(hitreg_push_executed(stream, p, number, tick, late ? HITREG_HOW_LATE : HITREG_HOW_RUN));
                if (!late) {
                    run_and_record(stream, &world, p, &sent[p][number % LINK], now);
                }
                newest[p] = late ? newest[p] : number;
            }
        }
        end_tick(stream, &world, now);
    }
    if (keeps) {
        must(hitreg_recorder_save(recorder, path));
    }
    hitreg_stream_free(stream);
    hitreg_written written = {.size = sizeof written};
    must(hitreg_recorder_finish(recorder, &written));
    hitreg_recorder_free(recorder);
    printf("%llu records in %s\n", (unsigned long long)written.rows, path);
    return 0;
}

/* ---- Replaying: the recorded usercmds, in the ticks in which they ran. ---- */

static int replay(int argc, char **argv) {
    hitreg_playback *playback = NULL;
    hitreg_stream *stream = NULL;
    hitreg_step step;
    int exit_code;
    if (hitreg_playback_open(argc, (const char *const *)argv, "slide", &playback, &exit_code) != HITREG_OK) {
        fprintf(stderr, "game: %s\n", hitreg_last_error());
        return exit_code;
    }
    hitreg_description *session = describe();
    must(hitreg_playback_begin(playback, session, &stream));
    hitreg_description_free(session);
    const hitreg_log *log = hitreg_playback_log(playback);
    const char *set = hitreg_playback_setting(playback, "slide.friction");
    friction = set ? strtof(set, NULL) : friction;
    struct world world;
    hitreg_code code;
    spawn(&world);
    while ((code = hitreg_playback_next(playback, stream, &step)) == HITREG_OK) {
        hitreg_state state;
        hitreg_usercmd cmd;
        world.tick = step.tick;
        switch (step.kind) {
        case HITREG_STEP_RESTORE:
            must(hitreg_log_state(log, step.row, &state));
            must(hitreg_restore_body(log, &state, classes, CLASSES, &world.bodies[state.entity]));
            break;
        case HITREG_STEP_INPUT:
            must(hitreg_log_usercmd(log, step.player, step.row, &cmd));
            run_and_record(stream, &world, (uint16_t)step.player, &cmd, step.at_us);
            break;
        case HITREG_STEP_TICK:
            end_tick(stream, &world, step.at_us);
            break;
        case HITREG_STEP_ROW:
        case HITREG_STEP_JOIN:
        case HITREG_STEP_LEAVE:
            break; /* no tables of its own, and both players are always there */
        }
    }
    if (code != HITREG_ERROR_NO_ROW) {
        must(code);
    }
    hitreg_stream_free(stream);
    must(hitreg_playback_finish(playback));
    hitreg_playback_free(playback);
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argc >= 3 ? argv[1] : "";
    if (strcmp(how, "record") == 0 || strcmp(how, "rotate") == 0 || strcmp(how, "keep") == 0) {
        return record(how, argv[2], argc > 3 ? (uint32_t)atoi(argv[3]) : 20);
    }
    return replay(argc, argv);
}
