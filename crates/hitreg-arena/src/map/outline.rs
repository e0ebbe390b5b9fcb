//! The map's walls in top view.

use glam::DVec3;

use super::super::brush::{ConvexBrush, Facet};
use super::ArenaMap;
use hitreg_netcode::game::Wall;
use hitreg_netcode::geometry::Polygon;

/// Sides whose normal is more vertical than this count as floor, roof or ramp.
const STEEP: f64 = 0.7;

/// A distance that no map reaches, in units.
const REACH_UNITS: f64 = 65_536.0;

impl ArenaMap {
    /// Returns the steep sides of all brushes.
    pub fn walls(&self) -> Vec<Wall> {
        self.brushes().iter().flat_map(walls_of).collect()
    }
}

fn walls_of(brush: &ConvexBrush) -> impl Iterator<Item = Wall> {
    let steep = brush.facets().iter().enumerate().filter(|(_, facet)| facet.normal[2].abs() < STEEP);
    steep.filter_map(|(index, facet)| {
        let normal = DVec3::from(facet.normal);
        let others = brush.facets().iter().enumerate().filter(|(other, _)| *other != index);
        let cut = |side: Option<Polygon>, (_, other): (usize, &Facet)| {
            let [_, behind] = side?.cut(DVec3::from(other.normal), other.distance);
            behind
        };
        let side = others.fold(Some(Polygon::on_plane(normal, facet.distance, REACH_UNITS)), cut)?;
        let (from, to, bottom, top) = side.seen_from_above(normal)?;
        Some(Wall { from, to, bottom, top, of: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_four_walls() {
        let walls: Vec<Wall> = walls_of(&ConvexBrush::cuboid([0.0, 10.0, 20.0], [100.0, 50.0, 70.0])).collect();
        assert_eq!(walls.len(), 4);
        assert!(walls.iter().all(|wall| (wall.bottom, wall.top) == (20.0, 70.0)), "{walls:?}");
        let length: f32 = walls.iter().map(|w| (w.to[0] - w.from[0]).abs() + (w.to[1] - w.from[1]).abs()).sum();
        assert_eq!(length, 280.0);
        assert!(ArenaMap::courtyard().walls().len() > 50);
    }
}
