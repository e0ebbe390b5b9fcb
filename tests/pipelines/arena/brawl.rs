//! Bots fight each other without a network. They see each other a tenth of a second late, as clients draw others, and
//! their shots are judged against what they saw.

use std::time::{Duration, Instant};

use hitreg::arena::{Arena, ArenaBody, ArenaBot, ArenaRules, ArenaWorld, WeaponId};
use hitreg::game::{Body, HitResult, Judge, Scene, Simulate};
use hitreg::hash::StateHasher;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Usercmd, buttons};

use super::course::TouchRecorder;
use super::shots::Events;

const MSEC: u8 = 16;
const DRAWN_TICKS_AGO: usize = 6;

/// Counts of a fight.
#[derive(Debug, Default)]
struct FightResult {
    shots: [u32; 3],
    hits: [u32; 3],
    blocked: u32,
    kills: i32,
    jumps: usize,
    ducked: u32,
    hurt_walks: u32,
    touched: usize,
    teleported: usize,
    /// How often a living player stayed at one spot for two seconds.
    loitered: u32,
    walked_units: f32,
    commands: u32,
    digest: u64,
    in_think: Duration,
    in_step: Duration,
    in_judge: Duration,
    in_world: Duration,
    judged: u32,
    ticks: u32,
}

#[expect(clippy::disallowed_methods, reason = "the test measures")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a fight. With `reloads`, saves and loads the world before each tick.
fn brawl(rules: &ArenaRules, seed: u64, players: u16, seconds: u32, reloads: bool) -> FightResult {
    let mut world = Arena::spawn(rules, Seed(seed), players);
    let mut bots = ArenaBot::crew(Seed(seed), players, rules);
    let mut past: Vec<Vec<(EntityId, ArenaBody)>> = Vec::new();
    let mut score = FightResult::default();
    let mut digest = StateHasher::new();
    let mut words = Vec::new();
    for tick in 0..seconds * 1_000 / u32::from(MSEC) {
        let time = Micros::from_ms(i64::from(tick) * i64::from(MSEC));
        if reloads && tick > 0 {
            world = Arena::load(rules, &words).unwrap().expect("it loads worlds");
        }
        past.push(Arena::entities(&world).to_vec());
        let drawn = past[past.len().saturating_sub(DRAWN_TICKS_AGO + 1)].clone();
        let mut events = Events::default();
        for (player, bot) in (0..players).map(PlayerId).zip(&mut bots) {
            let own = *world.entity(player.entity()).unwrap();
            let start = now();
            let input = bot.think(rules, &own, own.eye(), &drawn, time, MSEC);
            score.in_think += start.elapsed();
            let command = Usercmd { seq: CommandSeq(tick + 1), lerp_msec: 96, server_time: time, input };
            run(rules, &mut world, player, &own, &command, &drawn, &mut score, &mut events);
        }
        let start = now();
        Arena::step_world(rules, &mut world, Micros::from_ms(i64::from(MSEC)), &mut events);
        score.in_world += start.elapsed();
        score.ticks += 1;
        for (.., verdict) in &events.impacts {
            score.hits[WeaponId::Launcher as usize] += u32::from(verdict.reason == HitResult::Hit);
        }
        let deaths = events.effects.iter().filter(|effect| Arena::effect_name(effect.kind) == "death").count();
        score.kills += deaths as i32;
        if tick % 125 == 124 {
            let before = past[past.len().saturating_sub(125)].iter();
            let spots = before.zip(Arena::entities(&world)).take(usize::from(players));
            let still = spots.filter(|((_, a), (_, b))| a.alive && b.alive && a.origin.distance(b.origin) < 16.0);
            score.loitered += still.count() as u32;
        }
        words.clear();
        Arena::save(&world, &mut words);
        digest.words(&words);
    }
    score.digest = digest.finish();
    score
}

#[expect(clippy::too_many_arguments, reason = "the step needs the bot, its usercmd, and the whole world")]
fn run(
    rules: &ArenaRules,
    world: &mut ArenaWorld,
    player: PlayerId,
    own: &ArenaBody,
    command: &Usercmd,
    drawn: &[(EntityId, ArenaBody)],
    score: &mut FightResult,
    events: &mut Events,
) {
    let mut notes = TouchRecorder::default();
    let scene = Scene { seed: Seed(1), player, entities: Arena::entities(world), weapons: true };
    let start = now();
    let body = Arena::step_body(rules, &scene, own, command, &mut notes);
    score.in_step += start.elapsed();
    needs_no_client_only_field(rules, &scene, own, command, &body);
    score.commands += 1;
    score.walked_units += body.origin.distance(own.origin).min(64.0);
    score.ducked += u32::from(command.input.buttons & buttons::DUCK != 0);
    score.hurt_walks += u32::from(body.health < 35 && body.alive);
    score.touched += notes.touched.len();
    score.jumps += notes.effects.iter().filter(|effect| Arena::effect_name(effect.kind) == "jump").count();
    score.teleported += notes.effects.iter().filter(|effect| Arena::effect_name(effect.kind) == "teleport").count();
    world.entities_mut()[usize::from(player.0)].1 = body;
    for fire in &notes.fires {
        score.shots[fire.weapon as usize] += 1;
        let start = now();
        let verdict = Arena::judge(rules, fire, drawn);
        if !fire.flies {
            score.in_judge += start.elapsed();
            score.judged += 1;
        }
        score.hits[fire.weapon as usize] += u32::from(verdict.reason == HitResult::Hit);
        score.blocked += u32::from(verdict.reason == HitResult::HitWorld);
        Arena::apply(rules, world, player, command, fire, &verdict, events);
    }
}

/// Fields that are never sent have no effect: a usercmd on the state as sent gives the same result and restores them.
fn needs_no_client_only_field(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    own: &ArenaBody,
    command: &Usercmd,
    expected: &ArenaBody,
) {
    let mut sent = *own;
    sent.strip_client_only();
    let body = Arena::step_body(rules, scene, &sent, command, &mut TouchRecorder::default());
    let healed = ArenaBody { view_ofs_z: expected.view_ofs_z, ..body };
    assert_eq!(healed, *expected);
    assert!(own.in_duck || !own.alive || body.view_ofs_z == expected.view_ofs_z);
}

fn report(name: &str, score: &FightResult) {
    let ns = |time: Duration, count: u32| time.as_nanos() / u128::from(count.max(1));
    eprintln!("{name}: {score:?}");
    eprintln!(
        "{name}: step_body {} ns, judge {} ns, step_world {} ns, think {} ns",
        ns(score.in_step, score.commands),
        ns(score.in_judge, score.judged),
        ns(score.in_world, score.ticks),
        ns(score.in_think, score.commands),
    );
}

#[test]
fn four_bots_fight_within_ten_seconds() {
    let rules = ArenaRules::default();
    for seed in 1..=6 {
        let score = brawl(&rules, seed, 4, 10, false);
        report(&format!("4 bots, 10 s, seed {seed}"), &score);
        assert!(score.shots.iter().sum::<u32>() >= 20, "seed {seed}: {score:?}");
        assert!(score.hits.iter().sum::<u32>() >= 3, "seed {seed}: {score:?}");
        assert!(score.shots.iter().all(|&shots| shots > 0), "seed {seed}: {score:?}");
    }
}

#[test]
fn four_bots_exercise_everything_within_a_minute() {
    let rules = ArenaRules::default();
    let score = brawl(&rules, 1, 4, 60, false);
    report("4 bots, 60 s", &score);
    assert!(score.shots.iter().all(|&shots| shots > 5), "{score:?}");
    assert!(score.hits.iter().all(|&hits| hits > 0), "{score:?}");
    assert!(score.kills > 3 && score.blocked > 0 && score.jumps > 5 && score.ducked > 50, "{score:?}");
}

#[test]
fn sixteen_bots_fight_the_same_in_reloaded_worlds() {
    let rules = ArenaRules::default();
    let score = brawl(&rules, 2, 16, 60, false);
    report("16 bots, 60 s", &score);
    assert!(score.kills > 20 && score.touched > 0, "{score:?}");
    assert!(score.loitered < 30, "bots get stuck: {score:?}");
    let speed_units_s = score.walked_units * 1_000.0 / (score.commands * u32::from(MSEC)) as f32;
    assert!(speed_units_s > 150.0, "bots do not move: {speed_units_s} units/s");
    let again = brawl(&rules, 2, 16, 20, false);
    assert_eq!(brawl(&rules, 2, 16, 20, true).digest, again.digest);
    assert_ne!(brawl(&rules, 3, 16, 20, false).digest, again.digest);
}
