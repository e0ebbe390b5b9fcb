//! Walls of a map: those that the played map had and the given map lacks, as far as a recording shows them, and all walls in
//! plan view. The search for the latter uses the tree for points: a wall is where one side of a steep plane is solid and the
//! other is not.

use glam::DVec3;
use serde::{Deserialize, Serialize};

use super::trace::{TraceNode, box_tree};
use super::{QuakeMap, SOLID};
use hitreg_log::units::EntityId;
use hitreg_netcode::game::Wall;
use hitreg_netcode::geometry::Polygon;

/// A wall that the given map lacks: a box that no player's origin can enter. With a leaning face, only the part of the
/// box behind the face is solid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingWall {
    /// Lowest corner, in units.
    pub low: [f32; 3],
    /// Highest corner, in units.
    pub high: [f32; 3],
    /// The face, if it is not axis-aligned. Logs without leaning faces do not have this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face: Option<LeaningFace>,
}

/// A plane that is not axis-aligned. Players can be in front of it, where `normal . p >= dist`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaningFace {
    /// Unit normal.
    pub normal: [f32; 3],
    /// Distance from the map's origin, in units.
    pub dist: f32,
}

impl MissingWall {
    /// Returns whether a position is within `reach` units of the wall along each axis.
    pub(crate) fn is_near(&self, at: [f32; 3], reach: f32) -> bool {
        (0..3).all(|n| at[n] + reach > self.low[n] && at[n] - reach < self.high[n])
    }

    /// Returns the tree of planes for [`HullTree::of_wall`](super::trace::HullTree::of_wall).
    pub(crate) fn tree(&self) -> [TraceNode; 7] {
        let [a, b, c, d, e, f] = box_tree(self.low, self.high);
        let face = self.face.map_or(a, |face| TraceNode::in_front_of_box(face.normal, face.dist));
        [a, b, c, d, e, f, face]
    }

    pub(crate) fn is_finite(&self) -> bool {
        let face = self.face.iter().flat_map(|face| face.normal.iter().chain([&face.dist]));
        self.low.iter().chain(&self.high).chain(face).all(|number| number.is_finite())
    }
}

impl LeaningFace {
    /// Returns the distance of a position in front of the face, in units.
    pub(crate) fn distance(&self, at: [f32; 3]) -> f32 {
        (0..3).map(|n| self.normal[n] * at[n]).sum::<f32>() - self.dist
    }

    /// Returns the largest change of the distance when each coordinate changes by one.
    pub(crate) fn slack(&self) -> f32 {
        self.normal.iter().map(|n| n.abs()).sum()
    }
}

impl QuakeMap {
    /// Returns every face that is not axis-aligned, moved to where it stops the origin of a player with this box. Some
    /// faces may be out of reach.
    pub(crate) fn leaning_faces(&self, mins: [f32; 3], maxs: [f32; 3]) -> Vec<LeaningFace> {
        let mut planes: Vec<u16> = self.point_nodes.iter().map(|node| node.plane).collect();
        planes.sort_unstable();
        planes.dedup();
        let planes = planes.into_iter().map(|index| &self.planes[usize::from(index)]);
        let sides = planes.filter(|plane| plane.axis.is_none()).flat_map(|plane| {
            let back = LeaningFace { normal: plane.normal.map(|n| -n), dist: -plane.dist };
            [LeaningFace { normal: plane.normal, dist: plane.dist }, back]
        });
        let met = |face: LeaningFace| {
            let reach = |n: usize| -face.normal[n] * if face.normal[n] > 0.0 { mins[n] } else { maxs[n] };
            LeaningFace { dist: face.dist + reach(0) + reach(1) + reach(2), ..face }
        };
        sides.map(met).collect()
    }
}

/// Planes with a larger z component of the normal are floors, roofs or ramps.
const STEEP: f32 = 0.7;

/// Larger than the extent of any map.
const REACH_UNITS: f64 = 16_384.0;

/// A plane, and whether the region is in front of it.
type HalfSpace = (DVec3, f64, bool);

impl QuakeMap {
    /// Returns the walls of the world, and of each moving model with its entity.
    pub(crate) fn walls(&self, entity_of: impl Fn(u16) -> Option<EntityId>) -> Vec<Wall> {
        let moving = self.moving.iter().filter_map(|moving| Some((moving.model, entity_of(moving.model)?)));
        let models = [(0, None)].into_iter().chain(moving.map(|(model, entity)| (model, Some(entity))));
        let mut walls = Vec::new();
        for (model, entity) in models {
            if let Some(model) = self.model(model) {
                self.walls_below(model.point_root, &mut Vec::new(), entity, &mut walls);
            }
        }
        walls
    }

    /// Adds the walls below a node. The map reader limits the depth of the recursion.
    fn walls_below(&self, node: i32, within: &mut Vec<HalfSpace>, of: Option<EntityId>, walls: &mut Vec<Wall>) {
        let Some((normal, distance, children)) = self.plane_of(node) else { return };
        if normal.z.abs() < f64::from(STEEP) {
            let cut = |side: Option<Polygon>, (normal, distance, in_front): &HalfSpace| {
                let [front, behind] = side?.cut(*normal, *distance);
                if *in_front { front } else { behind }
            };
            let side = within.iter().fold(Some(Polygon::on_plane(normal, distance, REACH_UNITS)), cut);
            let mut parts = Vec::new();
            side.into_iter()
                .for_each(|side| self.sort(children[0], side, &mut |part, solid| parts.push((part, solid))));
            for (part, is_solid) in parts {
                self.sort(children[1], part, &mut |part, other| {
                    if let (true, Some((from, to, bottom, top))) = (is_solid != other, part.seen_from_above(normal)) {
                        walls.push(Wall { from, to, bottom, top, of });
                    }
                });
            }
        }
        for (child, in_front) in children.into_iter().zip([true, false]) {
            within.push((normal, distance, in_front));
            self.walls_below(child, within, of, walls);
            within.pop();
        }
    }

    fn plane_of(&self, node: i32) -> Option<(DVec3, f64, [i32; 2])> {
        let node = self.point_nodes.get(usize::try_from(node).ok()?)?;
        let plane = self.planes.get(usize::from(node.plane))?;
        Some((glam::Vec3::from(plane.normal).as_dvec3(), f64::from(plane.dist), node.children))
    }

    /// Sorts a polygon into the leaves below a node and reports for each part whether the leaf is solid.
    fn sort(&self, node: i32, polygon: Polygon, found: &mut dyn FnMut(Polygon, bool)) {
        let Some((normal, distance, children)) = self.plane_of(node) else { return found(polygon, node == SOLID) };
        let parts = polygon.cut(normal, distance);
        if let [None, None] = parts {
            // The polygon lies in the plane. Either side is valid, if the choice is consistent.
            return self.sort(children[0], polygon, found);
        }
        for (part, child) in parts.into_iter().zip(children) {
            if let Some(part) = part {
                self.sort(child, part, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bsp::quake::trace::{HullTree, SweepRule};
    use crate::bsp::tests::quake_bytes;
    use glam::Vec3;

    /// A wall that leans towards a player who comes along y from below.
    fn leaning() -> MissingWall {
        let face = LeaningFace { normal: [0.0, -0.8, -0.6], dist: -10.0 };
        MissingWall { low: [-50.0, 0.0, -20.0], high: [50.0, 40.0, 20.0], face: Some(face) }
    }

    #[test]
    fn a_leaning_wall_stops_players_only_at_its_face() {
        let tree = leaning().tree();
        for rule in [SweepRule::Classic, SweepRule::Reworked] {
            let sweep =
                |z: f32| HullTree::of_wall(&tree).sweep(rule, Vec3::new(0.0, -30.0, z), Vec3::new(0.0, 30.0, z));
            for z in [0.0, 10.0, -10.0] {
                let met = (10.0 - 0.6 * z) / 0.8;
                let sweep = sweep(z);
                assert!((sweep.end.y - met).abs() < 0.1 && sweep.end.y < met, "{rule:?} {z}: {sweep:?}");
                assert_eq!(sweep.normal, Vec3::new(0.0, -0.8, -0.6), "{rule:?} {z}");
            }
            assert_eq!(sweep(21.0).fraction, 1.0, "above the box");
        }
        let upright = MissingWall { face: None, ..leaning() };
        let sweep = HullTree::of_wall(&upright.tree()).sweep(SweepRule::Classic, Vec3::Y * -30.0, Vec3::Y * 30.0);
        assert_eq!((sweep.end.y, sweep.normal), (-0.031_25, -Vec3::Y));
    }

    #[test]
    fn a_wall_without_a_face_keeps_its_old_encoding() {
        let upright = MissingWall { face: None, ..leaning() };
        let before = rmp_serde::to_vec(&(upright.low, upright.high)).expect("plain data");
        assert_eq!(rmp_serde::to_vec(&upright).expect("plain data"), before);
        for wall in [upright, leaning()] {
            let bytes = rmp_serde::to_vec(&wall).expect("plain data");
            assert_eq!(rmp_serde::from_slice::<MissingWall>(&bytes).expect("read"), wall);
        }
        let face = LeaningFace { normal: [f32::NAN, 0.0, 1.0], dist: 0.0 };
        assert!(leaning().is_finite() && !MissingWall { face: Some(face), ..leaning() }.is_finite());
    }

    #[test]
    fn walls_are_between_solid_and_open_space() {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let walls = map.walls(|model| Some(EntityId(32 + model)));
        for wall in &walls {
            let along = glam::Vec2::from(wall.to) - glam::Vec2::from(wall.from);
            let beside = along.perp().normalize() * 0.5;
            let middle = (glam::Vec2::from(wall.from) + along * 0.5, (wall.bottom + wall.top) / 2.0);
            let root = wall.of.map_or(0, |of| map.models[usize::from(of.0 - 32)].point_root);
            let hull = crate::bsp::quake::trace::HullTree::points(&map, root);
            let solid = [beside, -beside].map(|off| hull.contents((middle.0 + off).extend(middle.1)) == SOLID);
            assert_ne!(solid[0], solid[1], "{wall:?}");
        }
        assert!(!walls.is_empty());
    }
}
