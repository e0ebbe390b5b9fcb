//! A game small enough to compute results by hand: discs on an endless plane that obey their input and shoot along
//! their view. It differs from the built-in game, so the tests show that the pipelines do not depend on that.

use std::sync::atomic::{AtomicU64, Ordering};

use glam::Vec3;
use hitreg::game::{
    BadCells, Body, Bots, Categorize, DamageShare, Effect, HitResult, Judge, PlacedBody, PlayerCommand, Reconcile,
    Scene, ShotVerdict, Simulate, Sink, Touch, WorldSink, body,
};
use hitreg::rng::Rng;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

/// The radius within which a shot's line hits, in units.
pub(crate) const RADIUS_UNITS: f32 = 16.0;
/// The impulse that teleports a disc.
pub(crate) const TELEPORT: u8 = 9;
/// The impulse that makes one shot two.
pub(crate) const DOUBLE: u8 = 8;
/// The distance of a teleport.
pub(crate) const TELEPORT_UNITS: f32 = 1000.0;
/// Time between two shots.
const REFIRE_MS: u32 = 200;

body! {
    /// A disc.
    pub(crate) struct Disc {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Weapons refire_ms: u32 as Time,
        Status teleports: u32,
        Status alive: bool,
        Status hits_taken: u32,
        ClientOnly odometer: f32,
    }
}

#[derive(Debug)]
pub(crate) struct Discs;

#[derive(Clone, Debug)]
pub(crate) struct Plane {
    pub(crate) entities: Vec<(EntityId, Disc)>,
    /// A counter in the saved state that affects only the hash.
    pub(crate) forgotten: u32,
}

#[derive(serde::Serialize, serde::Deserialize, Default, Debug)]
pub(crate) struct DiscRules {
    /// Leaves a field out of the save, as a game with a bug would.
    pub(crate) forgets: bool,
    /// Lets discs pass through each other.
    pub(crate) ghosts: bool,
    /// A blocked disc reports no touch.
    #[serde(default)]
    pub(crate) quiet: bool,
    /// Discs beyond this x are out of sight of all players, in units.
    pub(crate) curtain_x: Option<f32>,
    /// Predictions collide with the drawn positions of others.
    pub(crate) drawn_in_the_way: bool,
    /// The server's world ends with a panic, as a contradictory one does.
    #[serde(default)]
    pub(crate) panics: bool,
    /// Allows a session to begin only at its spawn.
    pub(crate) rooted: bool,
    /// How far a hit pushes its target, in units.
    pub(crate) push_units: f32,
    /// Counts the usercmds that run, in a counter of one test.
    #[serde(default)]
    pub(crate) counter: Option<StepCounter>,
}

/// A counter of usercmds. Tests run at the same time, so each has its own.
#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, Debug)]
pub(crate) enum StepCounter {
    Keyframes,
    Legs,
    Corrections,
}

static STEPS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

impl StepCounter {
    fn add(self) {
        STEPS[self as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of usercmds that ran so far.
    pub(crate) fn steps(self) -> u64 {
        STEPS[self as usize].load(Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DiscLine {
    from: Vec3,
    direction: Vec3,
    shooter: EntityId,
}

impl Simulate for Discs {
    const NAME: &'static str = "discs";
    type Rules = DiscRules;
    type World = Plane;
    type Body = Disc;
    type Input = Input;
    type Fire = DiscLine;

    fn map_name(_: &DiscRules) -> String {
        "plane".to_owned()
    }

    fn spawn(_: &DiscRules, _: Seed, players: u16) -> Plane {
        let disc = |p| Disc { origin: Vec3::new(0.0, 300.0 * f32::from(p), 0.0), alive: true, ..Disc::default() };
        Plane { entities: (0..players).map(|p| (EntityId(p), disc(p))).collect(), forgotten: 0 }
    }

    fn begin(rules: &DiscRules, _: Seed, players: &[(EntityId, Disc)]) -> Option<Plane> {
        (!rules.rooted).then(|| Plane { entities: players.to_vec(), forgotten: 0 })
    }

    fn step_body(
        rules: &DiscRules,
        scene: &Scene<'_, Disc>,
        body: &Disc,
        command: &Usercmd,
        out: &mut impl Sink<DiscLine>,
    ) -> Disc {
        if let Some(counter) = rules.counter {
            counter.add();
        }
        let input = &command.input;
        let mut next = *body;
        next.viewangles = input.viewangles;
        next.velocity = Vec3::new(input.forwardmove, input.sidemove, 0.0);
        let step = next.velocity * (f32::from(input.msec) / 1000.0);
        next.origin += step;
        next.odometer += step.length();
        if input.impulse == TELEPORT {
            next.origin.x += TELEPORT_UNITS;
            next.teleports += 1;
        }
        if let Some((id, _)) = scene.entities.iter().find(|(id, other)| {
            !rules.ghosts && *id != scene.player.entity() && other.origin.distance(next.origin) < 2.0 * RADIUS_UNITS
        }) {
            if !rules.quiet {
                out.touch(Touch::Player(*id));
            }
            next.origin = body.origin;
        }
        if scene.weapons {
            next.refire_ms = body.refire_ms.saturating_sub(u32::from(input.msec));
            if input.buttons & buttons::ATTACK != 0 && next.refire_ms == 0 {
                next.refire_ms = REFIRE_MS;
                let direction = facing(input.viewangles);
                let entity = scene.player.entity();
                out.effect(Effect { kind: 0, entity, at: next.origin, predictable: true });
                for _ in 0..if input.impulse == DOUBLE { 2 } else { 1 } {
                    out.fire(DiscLine { from: next.origin, direction, shooter: entity });
                }
            }
        }
        next
    }

    fn collides_where_drawn(rules: &DiscRules, _: EntityId) -> bool {
        rules.drawn_in_the_way
    }

    fn entities(world: &Plane) -> &[(EntityId, Disc)] {
        &world.entities
    }

    fn run(run: &PlayerCommand<'_, Discs>, world: &mut Plane, out: &mut impl Sink<DiscLine>) {
        run.step_in_place(&mut world.entities, out);
    }

    fn step_world(rules: &DiscRules, world: &mut Plane, _: Micros, _: &mut impl WorldSink) {
        world.forgotten += 1;
        assert!(!rules.panics, "two discs have one number");
        if rules.forgets {
            world.entities[0].1.hits_taken = world.forgotten;
        }
    }

    fn blend(from: &Disc, to: &Disc, fraction: f32) -> Disc {
        Disc { origin: from.origin.lerp(to.origin, fraction), ..*to }
    }

    fn save(world: &Plane, words: &mut Vec<u32>) {
        words.push(world.entities.len() as u32);
        for (_, disc) in &world.entities {
            let start = words.len();
            words.resize(start + Disc::CELLS, 0);
            disc.write(&mut words[start..]);
        }
    }

    fn load(_: &DiscRules, words: &[u32]) -> Result<Option<Plane>, BadCells> {
        let discs = words[1..].chunks(Disc::CELLS).map(Disc::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Plane { entities: (0..).map(EntityId).zip(discs).collect(), forgotten: 0 }))
    }

    fn effect_name(kind: u8) -> &'static str {
        ["shot", "ouch"][usize::from(kind)]
    }
}

impl Judge for Discs {
    fn judge(_: &DiscRules, fire: &DiscLine, targets: &[(EntityId, Disc)]) -> ShotVerdict {
        let hit = targets.iter().filter(|(id, body)| *id != fire.shooter && body.alive).find(|(_, body)| {
            let to = body.origin - fire.from;
            to.dot(fire.direction) > 0.0 && to.cross(fire.direction).length() < RADIUS_UNITS
        });
        match hit {
            Some((target, _)) => ShotVerdict {
                reason: HitResult::Hit,
                wounds: vec![DamageShare { target: *target, hitgroup: 0, damage: 1, pellets: 1 }],
            },
            None => ShotVerdict::miss(HitResult::Missed),
        }
    }

    fn sees(rules: &DiscRules, _: Vec3, body: &Disc) -> Option<bool> {
        rules.curtain_x.map(|x| body.origin.x < x)
    }

    fn aim(fire: &DiscLine) -> (Vec3, Vec3) {
        (fire.from, fire.direction)
    }

    fn apply(
        rules: &DiscRules,
        world: &mut Plane,
        _: PlayerId,
        _: &Usercmd,
        fire: &DiscLine,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        for wound in &verdict.wounds {
            let target = &mut world.entities[usize::from(wound.target.0)].1;
            target.hits_taken += 1;
            target.origin += fire.direction * rules.push_units;
            out.effect(Effect { kind: 1, entity: wound.target, at: target.origin, predictable: false });
        }
    }

    fn hitgroup_name(_: u8) -> &'static str {
        "disc"
    }

    fn weapon_name(_: &DiscLine) -> &'static str {
        "line"
    }
}

impl Categorize for Discs {}

impl Reconcile for Discs {
    fn was_hurt(before: &Disc, after: &Disc) -> bool {
        before.hits_taken != after.hits_taken
    }
}

impl hitreg::pipeline::Netcode for Discs {
    type Server = hitreg::server::Server<Discs>;
    type Client = hitreg::client::Client<Discs>;
}

/// Walks in a seeded zigzag and shoots at the nearest other disc on its screen.
pub(crate) struct Zigzag {
    rng: Rng,
    turn_at: Micros,
    input: Input,
}

impl Bots for Discs {
    type Bot = Zigzag;

    fn bot(_: &DiscRules, seed: Seed, player: PlayerId) -> Zigzag {
        Zigzag { rng: Rng::new(seed, u64::from(player.0)), turn_at: Micros::ZERO, input: Input::default() }
    }

    fn think(
        bot: &mut Zigzag,
        _: &DiscRules,
        own: Option<&Disc>,
        others: &[(EntityId, PlacedBody<Disc>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        if now >= bot.turn_at {
            bot.turn_at = now + Micros::from_ms(150 + bot.rng.below(400) as i64);
            bot.input.forwardmove = bot.rng.signed_f32() * 300.0;
            bot.input.sidemove = bot.rng.signed_f32() * 300.0;
        }
        bot.input.msec = msec;
        let Some(own) = own else { return bot.input.clone() };
        let nearest =
            others.iter().map(|(_, p)| p.body.origin - own.origin).min_by(|a, b| a.length().total_cmp(&b.length()));
        if let Some(to) = nearest {
            bot.input.viewangles.y = libm::atan2f(to.y, to.x).to_degrees();
            bot.input.buttons = if bot.rng.chance(0.3) { buttons::ATTACK } else { 0 };
        }
        bot.input.clone()
    }
}

fn facing(angles: Vec3) -> Vec3 {
    let yaw = angles.y.to_radians();
    Vec3::new(libm::cosf(yaw), libm::sinf(yaw), 0.0)
}
