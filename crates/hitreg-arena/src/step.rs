//! One usercmd of one player: movement, teleporters, weapons. Server and prediction change a player's body by usercmds
//! only through this code.

use glam::Vec3;

use super::body::ArenaBody;
use super::bounds::Bounds;
use super::crowd::Crowd;
use super::effect::ArenaEffect;
use super::fire::ArenaFire;
use super::pmove::{MoveEvent, eye_height_units, pmove};
use super::rules::ArenaRules;
use super::solid::{Solid, SolidHull, SweepContact};
use super::wield::wield;
use super::world::NearbyBrushes;
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::game::{Scene, Sink, Touch as Met};

/// A margin in units. Nearly all collision queries of a usercmd lie within this distance of the player's path; it
/// covers steps up or down and acceleration.
const NEAR_UNITS: f32 = 24.0;

pub(crate) fn step_body(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    body: &ArenaBody,
    command: &Usercmd,
    out: &mut impl Sink<ArenaFire>,
) -> ArenaBody {
    // A NaN or infinite angle would spread into shots and from there into the world.
    let viewangles = command.input.viewangles.map(|angle| if angle.is_finite() { angle } else { 0.0 });
    let mut next = ArenaBody { viewangles, ..*body };
    // Dead players fall and slide, but their input is ignored.
    let input = match body.alive {
        true => Input { viewangles, ..command.input.clone() },
        false => Input { msec: command.input.msec, ..Input::default() },
    };
    walk(rules, scene, &mut next, &input, out);
    if next.alive {
        teleport(rules, scene, &mut next, out);
        if scene.weapons {
            wield(rules, scene, &mut next, command, out);
        }
    }
    next
}

fn walk(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    body: &mut ArenaBody,
    input: &Input,
    out: &mut impl Sink<ArenaFire>,
) {
    let me = scene.player.entity();
    let start = body.origin;
    let mut on = |event: MoveEvent| match event {
        MoveEvent::Jumped => out.effect(ArenaEffect::Jump.by(me, start)),
        MoveEvent::Landed { .. } => out.effect(ArenaEffect::Land.by(me, start)),
        MoveEvent::Footstep { running: true, .. } => out.effect(ArenaEffect::Footstep.by(me, start)),
        MoveEvent::Footstep { running: false, .. } => {}
        MoveEvent::Touched { entity } => out.touch(Met::Player(entity)),
    };
    let solid = crowd(rules, scene, body, input.msec);
    // The first state received lacks the client-only eye height.
    if !body.in_duck {
        body.view_ofs_z = eye_height_units(body);
    }
    *body = pmove(&rules.movement, &solid, body, input, &mut on);
}

/// Teleports a player who has walked into a teleporter, unless another player blocks the destination. The velocity
/// becomes zero.
fn teleport(rules: &ArenaRules, scene: &Scene<'_, ArenaBody>, body: &mut ArenaBody, out: &mut impl Sink<ArenaFire>) {
    let hull = body.hull();
    let Some(teleporter) = rules.map.teleporters().iter().find(|t| t.holds(hull, body.origin)) else {
        return;
    };
    out.touch(Met::Teleporter);
    let there = ArenaBody { origin: teleporter.to.origin, velocity: Vec3::ZERO, on_ground: false, ..*body };
    if crowd(rules, scene, &there, 0).inside(SolidHull::Standing, there.origin) != SweepContact::Nothing {
        return;
    }
    let me = scene.player.entity();
    out.effect(ArenaEffect::Teleport.by(me, body.origin));
    *body = ArenaBody { teleports: body.teleports.wrapping_add(1), fall_velocity: 0.0, ..there };
    out.effect(ArenaEffect::Teleport.by(me, body.origin));
}

fn crowd<'a>(rules: &'a ArenaRules, scene: &Scene<'a, ArenaBody>, body: &ArenaBody, msec: u8) -> Crowd<'a> {
    let me = scene.player.entity();
    let seconds = f32::from(msec) / 1_000.0;
    let map = nearby(rules, body.hull(), body.origin, body.velocity * seconds);
    if !rules.player_collision {
        return Crowd::nobody(map, me);
    }
    // The greatest speed of movement along each axis.
    let way_units = rules.movement.maxvelocity * seconds;
    Crowd::around(map, scene.entities, me, body.origin, way_units)
}

/// Returns the part of the map that a player can meet in a usercmd that moves the player by `way`.
pub(crate) fn nearby(rules: &ArenaRules, hull: SolidHull, origin: Vec3, way: Vec3) -> NearbyBrushes<'_> {
    let near = way.abs() + Vec3::splat(NEAR_UNITS);
    rules.map.solid().nearby(hull, Bounds { min: origin - near, max: origin + near })
}
