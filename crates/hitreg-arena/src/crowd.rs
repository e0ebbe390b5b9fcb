//! The map together with the other players, as movement meets them.

use glam::Vec3;

use super::body::ArenaBody;
use super::bounds::Bounds;
use super::rules::ArenaRules;
use super::solid::{Solid, SolidHull, SweepContact, SweepHit, sweep_box};
use super::world::NearbyBrushes;
use hitreg_log::units::EntityId;

/// Players farther away than this along an axis, in addition to the path, are out of reach, in units. It covers two
/// hulls, a step up, the ground probe, and room to get unstuck.
const REACH_UNITS: f32 = 192.0;

/// Paths and boxes this far apart along an axis never touch, whatever the rounding, in units. It is several times the
/// surface gap of sweeps.
const APART_UNITS: f32 = 1.0;

/// A map, and those living players who are near enough to matter for one usercmd of another.
pub(crate) struct Crowd<'a> {
    map: NearbyBrushes<'a>,
    /// The range from the first to the last near player; usually empty.
    near: &'a [(EntityId, ArenaBody)],
    mover: EntityId,
}

impl<'a> Crowd<'a> {
    /// Creates the map without players.
    pub(crate) fn nobody(map: NearbyBrushes<'a>, mover: EntityId) -> Crowd<'a> {
        Crowd { map, near: &[], mover }
    }

    /// Creates the map with the players that `mover`, at `origin`, can meet within `way_units`.
    pub(crate) fn around(
        map: NearbyBrushes<'a>,
        entities: &'a [(EntityId, ArenaBody)],
        mover: EntityId,
        origin: Vec3,
        way_units: f32,
    ) -> Crowd<'a> {
        let reach = REACH_UNITS + way_units;
        let mut near = entities.len()..0;
        for (place, (id, body)) in entities.iter().enumerate() {
            // Axes are tested one by one, because the first one excludes most players.
            let off = body.origin - origin;
            if off.x.abs() <= reach && off.y.abs() <= reach && off.z.abs() <= reach && is_obstacle(*id, body, mover) {
                near = near.start.min(place)..place + 1;
            }
        }
        Crowd { map, near: entities.get(near).unwrap_or(&[]), mover }
    }

    fn obstacles(&self) -> impl Iterator<Item = (EntityId, Vec3, Vec3)> {
        let mover = self.mover;
        self.near.iter().filter(move |(id, body)| is_obstacle(*id, body, mover)).map(|(id, body)| {
            let half = body.hull().half_extent_units();
            (*id, body.origin - half, body.origin + half)
        })
    }
}

fn is_obstacle(id: EntityId, body: &ArenaBody, mover: EntityId) -> bool {
    id != mover && body.is_target()
}

/// Sweeps a projectile among the map and the living players, except its shooter.
pub(crate) fn sweep_projectile(
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

    use super::super::world::CollisionWorld;
    use super::*;

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
