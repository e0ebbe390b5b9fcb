//! One usercmd of one player: movement, teleporters, weapons. Server and prediction change a player's body by usercmds
//! only through this code.

use glam::Vec3;

use crate::body::ArenaBody;
use crate::brush::Bounds;
use crate::game::ArenaEffect;
use crate::pmove::{MoveEvent, eye_height_units, pmove};
use crate::rules::{ArenaRules, Muzzle, WeaponId};
use crate::shot::ArenaFire;
use crate::solid::{Solid, SolidHull, SweepContact, SweepHit, sweep_box};
use crate::world::NearbyBrushes;
use hitreg_log::units::EntityId;
use hitreg_log::usercmd::{Input, Usercmd, buttons};
use hitreg_netcode::game::{Scene, Sink, Touch as Met};

/// A margin in units. Nearly all collision queries of a usercmd lie within this distance of the player's path; it
/// covers steps up or down and acceleration.
const NEAR_UNITS: f32 = 24.0;

/// The time between dry-fire clicks in ms, as in Half-Life.
const DRY_FIRE_MS: u16 = 200;

/// Players farther away than this along an axis, in addition to the path, are out of reach, in units. It covers two
/// hulls, a step up, the ground probe, and room to get unstuck.
const REACH_UNITS: f32 = 192.0;

/// Paths and boxes this far apart along an axis never touch, whatever the rounding, in units. It is several times the
/// surface gap of sweeps.
const APART_UNITS: f32 = 1.0;

/// Moves a player among the map and the other players.
pub(crate) fn walk(
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
pub(crate) fn teleport(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    body: &mut ArenaBody,
    out: &mut impl Sink<ArenaFire>,
) {
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
        return Crowd { map, near: &[], mover: me };
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

/// Runs the weapons' part of a usercmd: timers, switching, reloading, firing.
pub(crate) fn wield(
    rules: &ArenaRules,
    scene: &Scene<'_, ArenaBody>,
    body: &mut ArenaBody,
    command: &Usercmd,
    out: &mut impl Sink<ArenaFire>,
) {
    let me = scene.player.entity();
    run_timers(rules, body, command.input.msec);
    if let Some(wanted) = WeaponId::selected_by(command.input.impulse).filter(|wanted| *wanted != body.next_weapon) {
        select(rules, body, wanted);
        out.effect(ArenaEffect::Switch.by(me, body.origin));
    }
    if body.switch_ms == 0 && body.next_weapon != body.weapon {
        body.weapon = body.next_weapon;
        body.switch_ms = rules.weapon(body.weapon).deploy_ms;
    }
    if body.switch_ms > 0 || body.reload_ms > 0 || body.next_attack_ms > 0 {
        return;
    }
    let loaded = body.clip.of(body.weapon);
    let can_reload = loaded < rules.weapon(body.weapon).clip && body.reserve.of(body.weapon) > 0;
    let attacks = command.input.buttons & buttons::ATTACK != 0;
    let asks_to_reload = command.input.buttons & buttons::RELOAD != 0;
    if attacks && loaded > 0 {
        *body.clip.of_mut(body.weapon) -= 1;
        body.next_attack_ms = rules.weapon(body.weapon).interval_ms;
        let shot = match body.weapon {
            WeaponId::Pistol => ArenaEffect::Pistol,
            WeaponId::Shotgun => ArenaEffect::Shotgun,
            WeaponId::Launcher => ArenaEffect::Launcher,
        };
        out.effect(shot.by(me, body.origin));
        out.fire(ArenaFire {
            shooter: scene.player,
            weapon: body.weapon,
            flies: matches!(rules.weapon(body.weapon).shot, Muzzle::Rocket { .. } | Muzzle::Arrow { .. }),
            muzzle: body.eye(),
            viewangles: body.viewangles,
            seed: scene.seed,
            command: command.seq,
        });
    } else if (asks_to_reload || loaded == 0) && can_reload {
        body.reload_ms = rules.weapon(body.weapon).reload_ms;
        out.effect(ArenaEffect::Reload.by(me, body.origin));
    } else if attacks {
        body.next_attack_ms = DRY_FIRE_MS;
        out.effect(ArenaEffect::DryFire.by(me, body.origin));
    }
}

fn run_timers(rules: &ArenaRules, body: &mut ArenaBody, msec: u8) {
    let msec = u16::from(msec);
    body.switch_ms = body.switch_ms.saturating_sub(msec);
    body.next_attack_ms = body.next_attack_ms.saturating_sub(msec);
    let was_reloading = body.reload_ms > 0;
    body.reload_ms = body.reload_ms.saturating_sub(msec);
    if was_reloading && body.reload_ms == 0 {
        let room = rules.weapon(body.weapon).clip.saturating_sub(body.clip.of(body.weapon));
        let moved = room.min(body.reserve.of(body.weapon));
        *body.clip.of_mut(body.weapon) += moved;
        *body.reserve.of_mut(body.weapon) -= moved;
    }
}

/// Starts to put the weapon in hand away, or keeps it if it is the requested one. Cancels a reload.
fn select(rules: &ArenaRules, body: &mut ArenaBody, wanted: WeaponId) {
    let in_hand = rules.weapon(body.weapon);
    body.switch_ms = if wanted == body.weapon { in_hand.deploy_ms } else { in_hand.holster_ms };
    body.reload_ms = 0;
    body.next_weapon = wanted;
}

/// A map, and those living players who are near enough to matter for one usercmd of another.
struct Crowd<'a> {
    map: NearbyBrushes<'a>,
    /// The range from the first to the last near player; usually empty.
    near: &'a [(EntityId, ArenaBody)],
    mover: EntityId,
}

impl<'a> Crowd<'a> {
    /// Creates the map with the players that `mover`, at `origin`, can meet within `way_units`.
    fn around(
        map: NearbyBrushes<'a>,
        entities: &'a [(EntityId, ArenaBody)],
        mover: EntityId,
        origin: Vec3,
        way_units: f32,
    ) -> Crowd<'a> {
        let reach = REACH_UNITS + way_units;
        let is_near = |(id, body): &(EntityId, ArenaBody)| {
            let off = body.origin - origin;
            off.x.abs() <= reach && off.y.abs() <= reach && off.z.abs() <= reach && is_obstacle(*id, body, mover)
        };
        // Mostly nobody is near.
        let near = entities.iter().position(is_near).map_or(0..0, |first| {
            let last = entities.iter().rposition(is_near).unwrap_or(first);
            first..last + 1
        });
        Crowd { map, near: &entities[near], mover }
    }

    fn obstacles(&self) -> impl Iterator<Item = (EntityId, Vec3, Vec3)> {
        let mover = self.mover;
        self.near.iter().filter(move |(id, body)| is_obstacle(*id, body, mover)).map(|(id, body)| {
            let half = body.hull().half_extent_units();
            (*id, body.origin - half, body.origin + half)
        })
    }
}

pub(crate) fn is_obstacle(id: EntityId, body: &ArenaBody, mover: EntityId) -> bool {
    id != mover && body.is_target()
}

impl Solid for Crowd<'_> {
    fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
        let mut nearest = self.map.sweep(hull, from, to);
        if self.near.is_empty() {
            return nearest;
        }
        let half = hull.half_extent_units() + Vec3::splat(APART_UNITS);
        let path = Bounds::of_path(from, to);
        let (low, high) = (path.min - half, path.max + half);
        for (id, min, max) in self.obstacles() {
            if !(min.cmpgt(high) | max.cmplt(low)).any() {
                nearest = nearest.nearer(sweep_box(min, max, SweepContact::Entity(id), hull, from, to));
            }
        }
        nearest
    }

    fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact {
        let held = self.map.inside(hull, at);
        if held != SweepContact::Nothing {
            return held;
        }
        let half = hull.half_extent_units();
        self.obstacles()
            .find(|(_, min, max)| at.cmple(*max + half).all() && at.cmpge(*min - half).all())
            .map_or(SweepContact::Nothing, |(id, ..)| SweepContact::Entity(id))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::world::CollisionWorld;

    fn a_place() -> impl Strategy<Value = Vec3> {
        let coordinate = prop_oneof![(-6_400_i32..6_400).prop_map(|n| n as f32 / 32.0), -200.0_f32..200.0];
        prop::array::uniform3(coordinate).prop_map(Vec3::from_array)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// A player skipped as too far from a path would not have been met.
        #[test]
        fn a_crowd_is_swept_as_each_of_its_boxes(
            others in prop::collection::vec((a_place(), any::<bool>()), 1..5),
            paths in prop::collection::vec((a_place(), a_place(), any::<bool>()), 8),
        ) {
            let world = CollisionWorld::new(&[]);
            let body = |(origin, ducked)| ArenaBody { origin, ducked, alive: true, ..ArenaBody::default() };
            let others: Vec<_> = (1..).map(EntityId).zip(others.into_iter().map(body)).collect();
            for (from, to, is_short) in paths {
                let to = if is_short { from + (to - from) / 16.0 } else { to };
                let map = world.nearby(SolidHull::Standing, Bounds { min: from, max: from });
                let crowd = Crowd::around(map, &others, EntityId(0), from, 400.0);
                for hull in SolidHull::ALL {
                    let each = others.iter().map(|(id, body)| {
                        let half = body.hull().half_extent_units();
                        sweep_box(body.origin - half, body.origin + half, SweepContact::Entity(*id), hull, from, to)
                    });
                    let plain = each.fold(SweepHit::free(to), SweepHit::nearer);
                    prop_assert_eq!(crowd.sweep(hull, from, to), plain, "{} to {}", from, to);
                }
            }
        }
    }
}
