//! Arrows. The server decides at launch whom an arrow will hit, and announces place and time to all clients immediately
//! ("this arrow WILL hit that guy"). The shooter's own client shows the launch without waiting for the server.

use glam::Vec3;

use super::body::{ArenaBody, BodyKind};
use super::crowd::sweep_projectile;
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::harm::{generic_wound, hurt};
use super::rules::ArenaRules;
use super::solid::SweepContact;
use super::state::{ArenaWorld, ProjectileFlight};
use super::weapon::Muzzle;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_netcode::game::{Reason, ShotVerdict, WorldSink};

/// How long an arrow sticks where it hit, in µs. This is longer than the announcement may take to any client.
const STICKS_US: u32 = 2_000_000;

/// Returns the arrow of a shot at launch, and the one of `players` that it will hit. Returns `None` for weapons that
/// shoot no arrows.
pub(crate) fn loose(
    rules: &ArenaRules,
    fire: &ArenaFire,
    players: &[(EntityId, ArenaBody)],
) -> Option<(ArenaBody, Option<EntityId>)> {
    let Muzzle::Arrow { speed_units_s, reach_units, .. } = rules.weapon(fire.weapon).shot else { return None };
    let line = fire.centre();
    let end = line.from + line.direction * reach_units;
    let nearest = sweep_projectile(rules, players, fire.shooter.entity(), [line.from, end]);
    let target = match nearest.touch {
        SweepContact::Entity(id) => Some(id),
        SweepContact::World | SweepContact::Nothing => None,
    };
    let takes_s = nearest.end.distance(line.from) / speed_units_s.max(1.0);
    let body = ArenaBody {
        kind: BodyKind::Arrow,
        origin: line.from,
        velocity: line.direction * speed_units_s,
        viewangles: fire.viewangles,
        alive: true,
        goal: nearest.end,
        // Even a point-blank arrow flies for a moment, because every hit must be announced first.
        event_in_us: ((takes_s * 1e6) as i32).max(1),
        teleports: launch_of(fire.shooter, fire.command),
        ..ArenaBody::default()
    };
    Some((body, target))
}

/// Launches an arrow.
pub(crate) fn launch(rules: &ArenaRules, world: &mut ArenaWorld, fire: &ArenaFire) {
    let Some((body, target)) = loose(rules, fire, world.player_bodies()) else { return };
    let target = target.and_then(|id| world.entity(id).map(|body| (id, body.teleports)));
    world.launch(fire.flight(STICKS_US, target), body);
}

/// Moves all arrows in flight, applies the hits that are due, and removes arrows that have stuck long enough.
pub(crate) fn fly(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
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
        let arrow = simulate(&ArenaBody { goal: goal.unwrap_or(arrow.goal), ..arrow }, dt);
        world.entities[first + at].1 = arrow;
        world.flights[at] = flight;
        if has_landed(&arrow) {
            landed.push((id, arrow, flight));
        }
    }
    for (id, arrow, flight) in landed {
        out.effect(ArenaEffect::ArrowHit.by(id, arrow.origin));
        let verdict = hit(rules, world, &arrow, flight, out);
        out.impact(flight.shooter, flight.command, flight.weapon.name(), verdict);
    }
    world.clear_flights(|body, flight| body.kind == BodyKind::Arrow && flight.life_us == 0);
}

fn hit(
    rules: &ArenaRules,
    world: &mut ArenaWorld,
    arrow: &ArenaBody,
    flight: ProjectileFlight,
    out: &mut impl WorldSink,
) -> ShotVerdict {
    let Muzzle::Arrow { damage, .. } = rules.weapon(flight.weapon).shot else {
        return ShotVerdict::miss(Reason::Missed);
    };
    let Some((target, _)) = flight.target else { return ShotVerdict::miss(Reason::Missed) };
    let direction = super::fire::axes(arrow.viewangles).forward;
    hurt(rules, world, flight.shooter, target, damage, direction, out);
    ShotVerdict { reason: Reason::Hit, wounds: vec![generic_wound(target, damage)] }
}

/// Returns the arrow after `dt`, on its way to its goal or at it.
pub(crate) fn simulate(arrow: &ArenaBody, dt: Micros) -> ArenaBody {
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

/// The number of a launch's bits that hold the usercmd.
const COMMAND_BITS: u32 = 24;

/// Returns the launch id, which identifies a projectile by shooter and usercmd. Usercmd numbers repeat after 16 million
/// (72 hours at 64 per second).
pub(crate) fn launch_of(shooter: PlayerId, command: CommandSeq) -> u32 {
    u32::from(shooter.0) << COMMAND_BITS | command.0 & ((1 << COMMAND_BITS) - 1)
}

/// Returns the shooter of a projectile, and the usercmd that launched it.
pub(crate) fn came_from(arrow: &ArenaBody) -> (PlayerId, CommandSeq) {
    let (shooter, command) = (arrow.teleports >> COMMAND_BITS, arrow.teleports & ((1 << COMMAND_BITS) - 1));
    (PlayerId(shooter as u16), CommandSeq(command))
}
