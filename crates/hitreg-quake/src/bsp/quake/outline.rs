//! Finds the map's walls in plan view. It searches the tree for points: a wall is where one side of a steep plane is
//! solid and the other is not.

use glam::DVec3;

use super::level::{QuakeMap, SOLID};
use hitreg_log::units::EntityId;
use hitreg_netcode::game::Wall;
use hitreg_netcode::geometry::Polygon;

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
    use crate::bsp::tests::quake_bytes;

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
