//! What a player can collide with at one time: the map, its moving brush models at their positions, and other players.

use glam::Vec3;

use crate::bsp::SweepTrace;
use crate::bsp::quake::trace::{HullTree, SweepRule, TraceNode, box_tree};
use crate::bsp::quake::{EMPTY, MissingWall, QuakeMap, SOLID};

/// Lowest corner of a player's box relative to the origin, in units.
pub(crate) const PLAYER_MINS: [f32; 3] = [-16.0, -16.0, -24.0];
/// Highest corner of a player's box relative to the origin, in units.
pub(crate) const PLAYER_MAXS: [f32; 3] = [16.0, 16.0, 32.0];
/// The most solids besides the world; servers ignore further ones, and so does hitreg.
pub(crate) const SOLIDS_MAX: usize = 31;

/// A solid besides the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WorldSolid {
    /// A brush model of the map, displaced by `origin`.
    Mover {
        /// Submodel number, from 1.
        model: u16,
        /// Displacement from its position in the map, in units.
        origin: [f32; 3],
        /// The part of the displacement since the state from which the commands start, in units.
        moved: [f32; 3],
    },
    /// Another player's standing box.
    Player {
        /// Slot of the player.
        slot: u8,
        /// Origin of the player, in units.
        origin: [f32; 3],
    },
    /// A wall that the played map has and the given one lacks.
    Wall(MissingWall),
}

/// The surroundings of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// The map.
    pub(crate) map: &'a QuakeMap,
    /// Solids besides the world; only the first `SOLIDS_MAX` count.
    pub(crate) solids: &'a [WorldSolid],
}

/// The obstacle of a sweep: nothing, the world, or a solid by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SolidHit {
    Nothing,
    World,
    Solid(u8),
}

/// Returns all offsets with these steps along each axis. Along x they vary fastest, along z slowest.
pub(crate) fn offsets<const N: usize>(steps: [f32; N]) -> impl Iterator<Item = Vec3> {
    let plane = move |z: f32| steps.into_iter().flat_map(move |y| steps.map(move |x| Vec3::new(x, y, z)));
    steps.into_iter().flat_map(plane)
}

impl Surroundings<'_> {
    fn solids(&self) -> &[WorldSolid] {
        &self.solids[..self.solids.len().min(SOLIDS_MAX)]
    }

    /// Sweeps a player's box from one origin to another. The first obstacle counts; of equal ones, the world before the
    /// solids.
    pub(crate) fn sweep(&self, rule: SweepRule, start: Vec3, end: Vec3) -> (SweepTrace, SolidHit) {
        let world = HullTree::clip(self.map, self.map.models[0].clip_root).sweep(rule, start, end);
        let hit = if world.fraction < 1.0 { SolidHit::World } else { SolidHit::Nothing };
        let mut best = (world, hit);
        if hit == SolidHit::Nothing {
            best.0.normal = Vec3::ZERO;
            best.0.end = end;
            (best.0.starts_solid, best.0.all_solid) = (false, false);
        }
        let (low, high) = (start.min(end) - 1.0, start.max(end) + 1.0);
        for (index, solid) in self.solids().iter().enumerate() {
            let Some((box_low, box_high, origin)) = self.bounds(solid) else { continue };
            if low.cmpgt(box_high).any() || high.cmplt(box_low).any() {
                continue;
            }
            let mut sweep = match *solid {
                WorldSolid::Mover { model, .. } => {
                    let Some(model) = self.map.model(model) else { continue };
                    HullTree::clip(self.map, model.clip_root).sweep(rule, start - origin, end - origin)
                }
                WorldSolid::Player { .. } => HullTree::of_box(&PLAYER_TREE).sweep(rule, start - origin, end - origin),
                WorldSolid::Wall(wall) => HullTree::of_wall(&wall.tree()).sweep(rule, start, end),
            };
            if sweep.fraction < best.0.fraction {
                sweep.end += origin;
                best = (sweep, SolidHit::Solid(index as u8));
            }
        }
        best
    }

    /// Returns whether a player fits at the origin `p`.
    pub(crate) fn has_room(&self, p: Vec3) -> bool {
        if HullTree::clip(self.map, self.map.models[0].clip_root).contents(p) == SOLID {
            return false;
        }
        self.solids().iter().all(|solid| {
            let Some((low, high, origin)) = self.bounds(solid) else { return true };
            if p.cmpgt(high).any() || p.cmplt(low).any() {
                return true;
            }
            match *solid {
                WorldSolid::Mover { model, .. } => self
                    .map
                    .model(model)
                    .is_none_or(|model| HullTree::clip(self.map, model.clip_root).contents(p - origin) != SOLID),
                WorldSolid::Player { .. } => HullTree::of_box(&PLAYER_TREE).contents(p - origin) != SOLID,
                WorldSolid::Wall(wall) => HullTree::of_wall(&wall.tree()).contents(p) != SOLID,
            }
        })
    }

    /// Returns the contents at the point `p` in the world alone.
    pub(crate) fn contents(&self, p: Vec3) -> i32 {
        HullTree::points(self.map, self.map.models[0].point_root).contents(p)
    }

    /// Returns the contents at the point `p` in the world and its moving models.
    pub(crate) fn contents_with_movers(&self, p: Vec3) -> i32 {
        let mut found = self.contents(p);
        for solid in self.solids() {
            if let WorldSolid::Mover { model, origin, .. } = *solid
                && let Some(model) = self.map.model(model)
            {
                let contents = HullTree::points(self.map, model.point_root).contents(p - Vec3::from_array(origin));
                if contents == SOLID {
                    return SOLID;
                }
                if found == EMPTY {
                    found = contents;
                }
            }
        }
        found
    }

    /// Returns the corners within which a player's origin touches the solid, and the solid's own origin.
    fn bounds(&self, solid: &WorldSolid) -> Option<(Vec3, Vec3, Vec3)> {
        let (mins, maxs, origin) = match *solid {
            WorldSolid::Mover { model, origin, .. } => {
                let model = self.map.model(model)?;
                (model.mins, model.maxs, origin)
            }
            WorldSolid::Player { origin, .. } => (PLAYER_MINS, PLAYER_MAXS, origin),
            WorldSolid::Wall(MissingWall { low, high, .. }) => {
                return Some((Vec3::from_array(low) - 1.0, Vec3::from_array(high) + 1.0, Vec3::ZERO));
            }
        };
        let origin = Vec3::from_array(origin);
        let low = Vec3::from_array(mins) - Vec3::from_array(PLAYER_MAXS) + origin;
        let high = Vec3::from_array(maxs) - Vec3::from_array(PLAYER_MINS) + origin;
        Some((low - 1.0, high + 1.0, origin))
    }
}

/// Another player's box as an origin collides with it: the sum of both players' boxes.
static PLAYER_TREE: [TraceNode; 6] = box_tree([-32.0, -32.0, -56.0], [32.0, 32.0, 56.0]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::tests::{STANDING_Z, quake_bytes};

    #[test]
    fn the_nearest_solid_stops_first() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let player = WorldSolid::Player { slot: 4, origin: [60.0, 0.0, STANDING_Z] };
        let lift = WorldSolid::Mover { model: 1, origin: [-100.0, 0.0, 40.0], moved: [0.0; 3] };
        let solids = [player, lift];
        let world = Surroundings { map: &map, solids: &solids };
        let start = Vec3::new(0.0, 0.0, STANDING_Z);
        let (sweep, hit) = world.sweep(SweepRule::Classic, start, start + Vec3::X * 200.0);
        assert_eq!((hit, sweep.end.x, sweep.normal), (SolidHit::Solid(0), 60.0 - 32.0 - 0.031_25, -Vec3::X));
        let (sweep, hit) = world.sweep(SweepRule::Classic, start, start - Vec3::X * 200.0);
        assert_eq!(hit, SolidHit::Solid(1));
        assert!((sweep.end.x - (-100.0 + 48.0 + 0.031_25)).abs() < 1e-4, "{}", sweep.end.x);
        let empty = Surroundings { map: &map, solids: &[] };
        let (sweep, hit) = empty.sweep(SweepRule::Classic, start, start + Vec3::X * 200.0);
        assert_eq!((hit, sweep.end.x), (SolidHit::World, 100.0 - 0.031_25));
        assert!(world.has_room(start) && !world.has_room(Vec3::new(50.0, 0.0, STANDING_Z)));
    }

    #[test]
    fn a_model_missing_in_the_map_is_ignored() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let solids = [WorldSolid::Mover { model: 77, origin: [0.0; 3], moved: [0.0; 3] }];
        let world = Surroundings { map: &map, solids: &solids };
        assert!(world.has_room(Vec3::new(0.0, 0.0, STANDING_Z)));
        assert_eq!(world.contents_with_movers(Vec3::ZERO), EMPTY);
    }
}
