//! Pucks, a game with its own rules. Seen from above, pucks glide on a square of ice, bounce off its edges, and shoot
//! along their view. Each hit scores.

use std::marker::PhantomData;

use glam::Vec3;
use hitreg::game::{
    BadCells, Categorize, DamageShare, Effect, HitResult, Judge, PlayerCommand, Reconcile, Scene, ShotVerdict,
    Simulate, Sink, WorldSink, body,
};
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

/// A shot's line hits within this distance of a puck's middle, in units.
const RADIUS_UNITS: f32 = 16.0;
/// Time between two shots.
const REFIRE_MS: u32 = 250;

body! {
    /// A puck.
    pub(crate) struct Puck {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Weapons refire_ms: u32 as Time,
        Status teleports: u32,
        Status alive: bool,
        Status hits_taken: u32,
        Status score: u32,
    }
}

/// The difference between builds.
pub(crate) trait PucksVersion: std::fmt::Debug + Send + Sync + 'static {
    /// Whether a shot also hits pucks behind the shooter, which is a bug.
    fn shoots_backwards() -> bool;
}

/// One version of the game.
#[derive(Debug)]
pub(crate) struct Pucks<V>(PhantomData<V>);

/// The world.
#[derive(Clone, Debug)]
pub(crate) struct Ice {
    pucks: Vec<(EntityId, Puck)>,
}

/// The settings of a session.
#[derive(serde::Serialize, serde::Deserialize, Clone, Debug)]
pub(crate) struct PucksRules {
    /// The distance of the edges from the middle, in units.
    pub(crate) edge_units: f32,
    /// How fast a puck reaches the speed of its input, in 1/s.
    pub(crate) grip_per_s: f32,
}

impl Default for PucksRules {
    fn default() -> PucksRules {
        PucksRules { edge_units: 512.0, grip_per_s: 4.0 }
    }
}

/// A shot.
#[derive(Clone, Debug)]
pub(crate) struct PuckShot {
    from: Vec3,
    direction: Vec3,
    shooter: EntityId,
}

impl<V: PucksVersion> Simulate for Pucks<V> {
    const NAME: &'static str = "pucks";
    type Rules = PucksRules;
    type World = Ice;
    type Body = Puck;
    type Input = Input;
    type Fire = PuckShot;

    fn map_name(rules: &PucksRules) -> String {
        format!("ice of {} units", 2.0 * rules.edge_units)
    }

    fn spawn(_: &PucksRules, _: Seed, players: u16) -> Ice {
        let puck = |p| Puck { origin: start_of(p), alive: true, ..Puck::default() };
        Ice { pucks: (0..players).map(|p| (EntityId(p), puck(p))).collect() }
    }

    fn step_body(
        rules: &PucksRules,
        scene: &Scene<'_, Puck>,
        body: &Puck,
        command: &Usercmd,
        out: &mut impl Sink<PuckShot>,
    ) -> Puck {
        let input = &command.input;
        let mut next = *body;
        next.viewangles = input.viewangles;
        let seconds = f32::from(input.msec) / 1000.0;
        let share = (seconds * rules.grip_per_s).min(1.0);
        let wanted = Vec3::new(input.forwardmove, input.sidemove, 0.0);
        next.velocity += (wanted - next.velocity) * share;
        next.origin += next.velocity * seconds;
        (next.origin.x, next.velocity.x) = bounced(next.origin.x, next.velocity.x, rules.edge_units);
        (next.origin.y, next.velocity.y) = bounced(next.origin.y, next.velocity.y, rules.edge_units);
        if scene.weapons {
            next.refire_ms = body.refire_ms.saturating_sub(u32::from(input.msec));
            if input.buttons & buttons::ATTACK != 0 && next.refire_ms == 0 {
                next.refire_ms = REFIRE_MS;
                let shooter = scene.player.entity();
                out.effect(Effect { kind: 0, entity: shooter, at: next.origin, predictable: true });
                out.fire(PuckShot { from: next.origin, direction: facing(input.viewangles), shooter });
            }
        }
        next
    }

    fn entities(world: &Ice) -> &[(EntityId, Puck)] {
        &world.pucks
    }

    fn run(run: &PlayerCommand<'_, Self>, world: &mut Ice, out: &mut impl Sink<PuckShot>) {
        run.step_in_place(&mut world.pucks, out);
    }

    fn step_world(_: &PucksRules, _: &mut Ice, _: Micros, _: &mut impl WorldSink) {}

    fn blend(from: &Puck, to: &Puck, fraction: f32) -> Puck {
        Puck { origin: from.origin.lerp(to.origin, fraction), ..*to }
    }

    fn save(world: &Ice, words: &mut Vec<u32>) {
        use hitreg::game::Body;
        for (_, puck) in &world.pucks {
            let start = words.len();
            words.resize(start + Puck::CELLS, 0);
            puck.write(&mut words[start..]);
        }
    }

    fn load(_: &PucksRules, words: &[u32]) -> Result<Option<Ice>, BadCells> {
        use hitreg::game::Body;
        let pucks = words.chunks(Puck::CELLS).map(Puck::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Ice { pucks: (0..).map(EntityId).zip(pucks).collect() }))
    }

    fn effect_name(kind: u8) -> &'static str {
        ["shot", "ouch"].get(usize::from(kind)).copied().unwrap_or("unknown")
    }
}

impl<V: PucksVersion> Judge for Pucks<V> {
    fn judge(_: &PucksRules, fire: &PuckShot, targets: &[(EntityId, Puck)]) -> ShotVerdict {
        let met = |(id, puck): &&(EntityId, Puck)| {
            let to = puck.origin - fire.from;
            let ahead = V::shoots_backwards() || to.dot(fire.direction) > 0.0;
            *id != fire.shooter && puck.alive && ahead && to.cross(fire.direction).length() < RADIUS_UNITS
        };
        let distance = |(_, puck): &&(EntityId, Puck)| puck.origin.distance(fire.from);
        let nearest = targets.iter().filter(met).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        match nearest {
            Some((target, _)) => ShotVerdict {
                reason: HitResult::Hit,
                wounds: vec![DamageShare { target: *target, hitgroup: 0, damage: 1, pellets: 1 }],
            },
            None => ShotVerdict::miss(HitResult::Missed),
        }
    }

    fn aim(fire: &PuckShot) -> (Vec3, Vec3) {
        (fire.from, fire.direction)
    }

    fn apply(
        _: &PucksRules,
        world: &mut Ice,
        shooter: PlayerId,
        _: &Usercmd,
        _: &PuckShot,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        for wound in &verdict.wounds {
            if let Some((id, target)) = world.pucks.get_mut(usize::from(wound.target.0)) {
                target.hits_taken += 1;
                out.effect(Effect { kind: 1, entity: *id, at: target.origin, predictable: false });
            }
            if let Some((_, puck)) = world.pucks.get_mut(usize::from(shooter.0)) {
                puck.score += 1;
            }
        }
    }

    fn hitgroup_name(_: u8) -> &'static str {
        "puck"
    }

    fn weapon_name(_: &PuckShot) -> &'static str {
        "line"
    }
}

impl<V: PucksVersion> Categorize for Pucks<V> {}

impl<V: PucksVersion> Reconcile for Pucks<V> {
    fn was_hurt(before: &Puck, after: &Puck) -> bool {
        before.hits_taken != after.hits_taken
    }
}

fn start_of(number: u16) -> Vec3 {
    Vec3::new(f32::from(number % 4) * 192.0 - 288.0, f32::from(number / 4) * 192.0 - 288.0, 0.0)
}

/// A puck's position and speed after a possible bounce, which halves the speed.
fn bounced(at: f32, speed: f32, edge: f32) -> (f32, f32) {
    if at > edge {
        (edge + edge - at, speed * -0.5)
    } else if at < -edge {
        (-edge - edge - at, speed * -0.5)
    } else {
        (at, speed)
    }
}

fn facing(angles: Vec3) -> Vec3 {
    let yaw = angles.y.to_radians();
    Vec3::new(libm::cosf(yaw), libm::sinf(yaw), 0.0)
}
