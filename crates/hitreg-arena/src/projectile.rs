//! Rockets and arrows.
//!
//! A rocket flies through the present world and hits what it meets there. For an arrow, the server decides at launch whom
//! it will hit, and announces place and time to all clients immediately ("this arrow WILL hit that guy"). The shooter's
//! own client shows a launch without waiting for the server.

use glam::Vec3;

use crate::body::{ArenaBody, BodyKind};
use crate::game::ArenaEffect;
use crate::rules::{ArenaRules, Muzzle};
use crate::shot::{ArenaFire, Hitgroup, axes, hurt};
use crate::solid::{Solid, SolidHull, SweepContact, SweepHit, sweep_box};
use crate::state::{ArenaWorld, ProjectileFlight};
use crate::step::is_obstacle;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_netcode::game::{DamageShare, HitResult, ShotVerdict, WorldSink};

/// How long an arrow sticks where it hit, in µs. This is longer than the announcement may take to any client.
const STICKS_US: u32 = 2_000_000;

/// How far before an obstacle a rocket explodes, in units, so that the surface itself does not shield anyone.
const BURST_GAP_UNITS: f32 = 1.0;

/// The number of a launch's bits that hold the usercmd.
const COMMAND_BITS: u32 = 24;

/// Returns the projectile of a shot at launch, and the one of `players` that an arrow will hit. Returns `None` for
/// weapons that shoot bullets.
pub(crate) fn loose(
    rules: &ArenaRules,
    fire: &ArenaFire,
    players: &[(EntityId, ArenaBody)],
) -> Option<(ArenaBody, Option<EntityId>)> {
    let line = fire.centre();
    let body = ArenaBody {
        origin: line.from,
        viewangles: fire.viewangles,
        alive: true,
        // The launch id identifies a projectile by shooter and usercmd. Usercmd numbers repeat after 16 million (72 hours
        // at 64 per second).
        teleports: u32::from(fire.shooter.0) << COMMAND_BITS | fire.command.0 & ((1 << COMMAND_BITS) - 1),
        ..ArenaBody::default()
    };
    match rules.weapon(fire.weapon).shot {
        Muzzle::Bullets { .. } => None,
        Muzzle::Rocket { speed_units_s, .. } => {
            let velocity = line.direction * speed_units_s;
            Some((ArenaBody { kind: BodyKind::Rocket, velocity, ..body }, None))
        }
        Muzzle::Arrow { speed_units_s, reach_units, .. } => {
            let end = line.from + line.direction * reach_units;
            let nearest = sweep_projectile(rules, players, fire.shooter.entity(), [line.from, end]);
            let target = match nearest.touch {
                SweepContact::Entity(id) => Some(id),
                SweepContact::World | SweepContact::Nothing => None,
            };
            let takes_s = nearest.end.distance(line.from) / speed_units_s.max(1.0);
            let arrow = ArenaBody {
                kind: BodyKind::Arrow,
                velocity: line.direction * speed_units_s,
                goal: nearest.end,
                // Even a point-blank arrow flies for a moment, because every hit must be announced first.
                event_in_us: ((takes_s * 1e6) as i32).max(1),
                ..body
            };
            Some((arrow, target))
        }
    }
}

/// Launches the projectile of a shot.
pub(crate) fn launch(rules: &ArenaRules, world: &mut ArenaWorld, fire: &ArenaFire) {
    let Some((body, target)) = loose(rules, fire, world.player_bodies()) else { return };
    let life_us = match rules.weapon(fire.weapon).shot {
        Muzzle::Rocket { life_ms, .. } => u32::from(life_ms) * 1_000,
        Muzzle::Arrow { .. } | Muzzle::Bullets { .. } => STICKS_US,
    };
    let target = target.and_then(|id| world.entity(id).map(|body| (id, body.teleports)));
    let &ArenaFire { shooter, command, weapon, .. } = fire;
    world.launch(ProjectileFlight { shooter, command, weapon, life_us, target }, body);
}

/// Returns the shooter of a projectile, and the usercmd that launched it.
pub(crate) fn came_from(projectile: &ArenaBody) -> (PlayerId, CommandSeq) {
    let (shooter, command) = (projectile.teleports >> COMMAND_BITS, projectile.teleports & ((1 << COMMAND_BITS) - 1));
    (PlayerId(shooter as u16), CommandSeq(command))
}

/// Moves all arrows in flight, applies the hits that are due, and removes arrows that have stuck long enough.
pub(crate) fn fly_arrows(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let first = world.first_flight();
    let mut landed = Vec::new();
    for at in 0..world.flights.len() {
        let (id, arrow) = world.entities[first + at];
        let mut flight = world.flights[at];
        if arrow.kind != BodyKind::Arrow {
            continue;
        }
        if has_landed(&arrow) {
            flight.life_us = flight.life_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
            world.flights[at] = flight;
            continue;
        }
        // The goal follows the target as long as the target lives the same life.
        let goal = flight.target.and_then(|(id, life)| {
            world.entity(id).filter(|body| body.is_target() && body.teleports == life).map(|body| body.origin)
        });
        flight.target = flight.target.filter(|_| goal.is_some());
        let arrow = simulate_arrow(&ArenaBody { goal: goal.unwrap_or(arrow.goal), ..arrow }, dt);
        world.entities[first + at].1 = arrow;
        world.flights[at] = flight;
        if has_landed(&arrow) {
            landed.push((id, arrow, flight));
        }
    }
    for (id, arrow, flight) in landed {
        out.effect(ArenaEffect::ArrowHit.by(id, arrow.origin));
        let verdict = match (rules.weapon(flight.weapon).shot, flight.target) {
            (Muzzle::Arrow { damage, .. }, Some((target, _))) => {
                let direction = axes(arrow.viewangles).forward;
                hurt(rules, world, flight.shooter, target, damage, direction, out);
                ShotVerdict { reason: HitResult::Hit, wounds: vec![generic_wound(target, damage)] }
            }
            _ => ShotVerdict::miss(HitResult::Missed),
        };
        out.impact(flight.shooter, flight.command, flight.weapon.name(), verdict);
    }
    world.clear_flights(|body, flight| body.kind == BodyKind::Arrow && flight.life_us == 0);
}

/// Returns the arrow after `dt`, on its way to its goal or at it.
pub(crate) fn simulate_arrow(arrow: &ArenaBody, dt: Micros) -> ArenaBody {
    let left_us = arrow.event_in_us;
    let dt_us = i32::try_from(dt.0.max(0)).unwrap_or(i32::MAX);
    if dt_us >= left_us {
        return ArenaBody { origin: arrow.goal, velocity: Vec3::ZERO, event_in_us: 0, ..*arrow };
    }
    let way = arrow.goal - arrow.origin;
    ArenaBody {
        origin: arrow.origin + way * (dt_us as f32 / left_us as f32),
        velocity: way / Micros(i64::from(left_us)).as_s_f64() as f32,
        event_in_us: left_us - dt_us,
        ..*arrow
    }
}

fn has_landed(arrow: &ArenaBody) -> bool {
    arrow.event_in_us <= 0
}

/// Moves all rockets. A rocket explodes when it hits something, or at the end of its lifetime.
pub(crate) fn fly_rockets(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let first = world.first_flight();
    let mut bursts = Vec::new();
    for at in 0..world.flights.len() {
        let (id, rocket) = world.entities[first + at];
        let mut flight = world.flights[at];
        if rocket.kind != BodyKind::Rocket {
            continue;
        }
        let to = rocket.origin + rocket.velocity * dt.as_s_f64() as f32;
        let way = [rocket.origin, to];
        let SweepHit { end, touch: met, .. } =
            sweep_projectile(rules, world.player_bodies(), flight.shooter.entity(), way);
        flight.life_us = flight.life_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        world.flights[at] = flight;
        world.entities[first + at].1.origin = end;
        if met != SweepContact::Nothing || flight.life_us == 0 {
            let centre = end - rocket.velocity.normalize_or_zero() * BURST_GAP_UNITS;
            bursts.push((id, flight, centre, met));
        }
    }
    for (id, flight, centre, met) in bursts {
        if let Ok(at) = world.entities.binary_search_by_key(&id, |(id, _)| *id) {
            world.entities.remove(at);
            world.flights.remove(at - first);
        }
        out.effect(ArenaEffect::Explosion.by(id, centre));
        let verdict = explode(rules, world, flight, centre, met, out);
        out.impact(flight.shooter, flight.command, flight.weapon.name(), verdict);
    }
}

/// Damages every player within the radius; `met` is the obstacle that the rocket hit. The verdict covers other players;
/// damage to the shooter is not a hit.
fn explode(
    rules: &ArenaRules,
    world: &mut ArenaWorld,
    flight: ProjectileFlight,
    centre: Vec3,
    met: SweepContact,
    out: &mut impl WorldSink,
) -> ShotVerdict {
    let mut verdict = ShotVerdict::miss(HitResult::Missed);
    let Muzzle::Rocket { damage, radius_units, .. } = rules.weapon(flight.weapon).shot else { return verdict };
    for number in 0..usize::from(world.players) {
        let (target, body) = world.entities[number];
        if !body.is_target() {
            continue;
        }
        let own = target == flight.shooter.entity();
        let mut worth = damage;
        if met != SweepContact::Entity(target) {
            let half = body.hull().half_extent_units();
            let nearest = centre.clamp(body.origin - half, body.origin + half);
            let left = 1.0 - nearest.distance(centre) / radius_units;
            worth = (damage as f32 * left) as i32;
            if worth <= 0 {
                continue;
            }
            let is_shielded = [body.origin, body.eye()].into_iter().all(|at| !rules.map.is_clear(centre, at));
            if is_shielded {
                if !own && verdict.wounds.is_empty() {
                    verdict.reason = HitResult::HitWorld;
                }
                continue;
            }
        }
        let taken = if own { (worth as f32 * rules.own_burst_factor) as i32 } else { worth };
        let direction = (body.origin - centre).normalize_or_zero();
        hurt(rules, world, flight.shooter, target, taken, direction, out);
        if !own {
            verdict.reason = HitResult::Hit;
            verdict.wounds.push(generic_wound(target, taken));
        }
    }
    verdict
}

/// Sweeps a projectile among the map and the living players, except its shooter.
fn sweep_projectile(
    rules: &ArenaRules,
    players: &[(EntityId, ArenaBody)],
    shooter: EntityId,
    [from, to]: [Vec3; 2],
) -> SweepHit {
    let mut nearest = rules.map.solid().sweep(SolidHull::Point, from, to);
    for (id, body) in players.iter().filter(|(id, body)| is_obstacle(*id, body, shooter)) {
        let half = body.hull().half_extent_units();
        let (min, max) = (body.origin - half, body.origin + half);
        nearest = nearest.nearer(sweep_box(min, max, SweepContact::Entity(*id), SolidHull::Point, from, to));
    }
    nearest
}

/// Returns a wound of no specific part of the body.
fn generic_wound(target: EntityId, damage: i32) -> DamageShare {
    DamageShare { target, hitgroup: Hitgroup::Generic as u8, damage, pellets: 1 }
}
