//! The map with the other players in it, as movement meets them.

use glam::Vec3;

use super::body::ArenaBody;
use super::solid::{Hull, Solid, Sweep, Touch, sweep_box};
use super::world::CollisionWorld;
use crate::units::EntityId;

/// Farther away than this along an axis, besides the way that is covered, another player is out of reach, in units:
/// two hulls on end, the step up, the ground probe, and room to struggle free.
const REACH_UNITS: f32 = 192.0;

/// A map and those living players who are near enough to matter for one usercmd of one of them.
pub(crate) struct Crowd<'a> {
    map: &'a CollisionWorld,
    /// From the first to the last who is near. Most often nobody is.
    near: &'a [(EntityId, ArenaBody)],
    mover: EntityId,
}

impl<'a> Crowd<'a> {
    /// The map alone.
    pub(crate) fn nobody(map: &'a CollisionWorld, mover: EntityId) -> Crowd<'a> {
        Crowd { map, near: &[], mover }
    }

    /// The map and whoever `mover`, who is at `origin`, can meet on a way of `way_units`.
    pub(crate) fn around(
        map: &'a CollisionWorld,
        entities: &'a [(EntityId, ArenaBody)],
        mover: EntityId,
        origin: Vec3,
        way_units: f32,
    ) -> Crowd<'a> {
        let reach = Vec3::splat(REACH_UNITS + way_units);
        let is_near = |(id, body): &(EntityId, ArenaBody)| {
            (body.origin - origin).abs().cmple(reach).all() && is_obstacle(*id, body, mover)
        };
        let near = match (entities.iter().position(is_near), entities.iter().rposition(is_near)) {
            (Some(first), Some(last)) => &entities[first..=last],
            _ => &[],
        };
        Crowd { map, near, mover }
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

impl Solid for Crowd<'_> {
    fn sweep(&self, hull: Hull, from: Vec3, to: Vec3) -> Sweep {
        let mut nearest = self.map.sweep(hull, from, to);
        for (id, min, max) in self.obstacles() {
            nearest = nearest.nearer(sweep_box(min, max, Touch::Entity(id), hull, from, to));
        }
        nearest
    }

    fn inside(&self, hull: Hull, at: Vec3) -> Touch {
        let held = self.map.inside(hull, at);
        if held != Touch::Nothing {
            return held;
        }
        let half = hull.half_extent_units();
        self.obstacles()
            .find(|(_, min, max)| at.cmple(*max + half).all() && at.cmpge(*min - half).all())
            .map_or(Touch::Nothing, |(id, ..)| Touch::Entity(id))
    }
}
