//! Converts the planes of a level editor's brush to a solid for sweeps.

use super::super::bounds::{axes, corners_of, cross, cut_planes, dot};
use super::super::brush::{BrushError, ConvexBrush, Facet};
use super::MOST_SIDES;

/// The greatest distance of a brush from the world's origin, in units.
const REACH_UNITS: f64 = 32_768.0;

/// The least thickness of a brush across each of its sides, in units.
const THINNEST_UNITS: f64 = 1.0 / 8.0;

/// Corners nearer to a plane than this count as on it, in units.
const ON_PLANE_UNITS: f64 = 1.0 / 1_024.0;

/// The reasons why an editor's brush is not a valid solid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// The three points of a side lie on one line.
    #[error("side {side}: its three points span no plane")]
    NoPlane {
        /// The index of the side, from 0.
        side: usize,
    },
    /// The solid has fewer than four sides.
    #[error("it has {sides} sides, a solid needs at least 4")]
    TooFewSides {
        /// The number of sides.
        sides: usize,
    },
    /// The solid has too many sides.
    #[error("it has {sides} sides, the most is {MOST_SIDES}")]
    TooManySides {
        /// The number of sides.
        sides: usize,
    },
    /// The planes enclose no volume, or too little.
    #[error("its sides enclose nothing")]
    Degenerate,
    /// The solid is open, or reaches too far out.
    #[error("it is open, or reaches more than {REACH_UNITS} units from the origin")]
    TooLarge,
    /// A plane is invalid.
    #[error(transparent)]
    Brush(#[from] BrushError),
}

/// Returns the plane through three points, which are clockwise as seen from outside.
pub(super) fn plane_through(points: [[f64; 3]; 3], side: usize) -> Result<Facet, ShapeError> {
    let [a, b, c] = points;
    let from_b = |to: [f64; 3]| std::array::from_fn(|axis| to[axis] - b[axis]);
    let across = cross(from_b(a), from_b(c));
    let length = libm::sqrt(dot(across, across));
    if !length.is_finite() || length < 1e-6 {
        return Err(ShapeError::NoPlane { side });
    }
    // Adding zero turns a negative zero into a positive one.
    let normal = across.map(|n| n / length + 0.0);
    Ok(Facet { normal, distance: dot(normal, b) + 0.0 })
}

/// Creates a closed solid, and adds axis-aligned sides where it has none. Sweeps move each side out by the hull's
/// support. Without axis-aligned sides, that would extend the sharp end of a wedge far beyond its tip.
pub(super) fn closed_brush(mut sides: Vec<Facet>) -> Result<ConvexBrush, ShapeError> {
    if sides.len() < 4 {
        return Err(ShapeError::TooFewSides { sides: sides.len() });
    }
    if sides.len() > MOST_SIDES - 6 {
        return Err(ShapeError::TooManySides { sides: sides.len() });
    }
    // Open solids are cut off beyond the limit.
    let planes: Vec<Facet> = sides.iter().copied().chain(cut_planes(REACH_UNITS * 2.0)).collect();
    let corners: Vec<[f64; 3]> = corners_of(&planes, ON_PLANE_UNITS).collect();
    if corners.len() < 4 {
        return Err(ShapeError::Degenerate);
    }
    let is_thick = |side: &Facet| {
        let depth = corners.iter().map(|at| side.distance - dot(side.normal, *at)).fold(0.0, f64::max);
        depth >= THINNEST_UNITS
    };
    if !sides.iter().all(is_thick) {
        return Err(ShapeError::Degenerate);
    }
    if corners.iter().any(|at| at.iter().any(|n| n.abs() > REACH_UNITS)) {
        return Err(ShapeError::TooLarge);
    }
    for axis in axes() {
        if !sides.iter().any(|side| dot(side.normal, axis) > 1.0 - 1e-9) {
            let distance = corners.iter().map(|at| dot(*at, axis)).fold(f64::NEG_INFINITY, f64::max);
            sides.push(Facet { normal: axis, distance });
        }
    }
    Ok(ConvexBrush::new(sides)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(normal: [f64; 3], distance: f64) -> Facet {
        let length = libm::sqrt(dot(normal, normal));
        Facet { normal: normal.map(|n| n / length), distance: distance / length }
    }

    fn cube() -> Vec<Facet> {
        ConvexBrush::cuboid([-8.0; 3], [8.0; 3]).facets().to_vec()
    }

    #[test]
    fn a_cube_is_unchanged() {
        assert_eq!(closed_brush(cube()).unwrap().facets(), cube());
    }

    #[test]
    fn a_wedge_gets_an_upright_end() {
        let floor = side([0.0, 0.0, -1.0], 0.0);
        let back = side([0.0, 1.0, 0.0], 64.0);
        let slope = side([0.0, -1.0, 1.0], 0.0);
        let (east, west) = (side([1.0, 0.0, 0.0], 16.0), side([-1.0, 0.0, 0.0], 16.0));
        let brush = closed_brush(vec![floor, back, slope, east, west]).unwrap();
        let added = &brush.facets()[5..];
        assert_eq!(added.iter().map(|side| side.normal).collect::<Vec<_>>(), [[0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]);
        assert!(added[0].distance.abs() < 1e-9 && (added[1].distance - 64.0).abs() < 1e-9);
    }

    #[test]
    fn a_brush_without_volume_is_refused() {
        let mut inside_out = cube();
        inside_out[0].distance = -20.0;
        assert_eq!(closed_brush(inside_out), Err(ShapeError::Degenerate));
        let mut flat = cube();
        flat[0].distance = -7.95;
        assert_eq!(closed_brush(flat), Err(ShapeError::Degenerate));
        let open = cube()[..5].to_vec();
        assert_eq!(closed_brush(open), Err(ShapeError::TooLarge));
        assert_eq!(closed_brush(cube()[..3].to_vec()), Err(ShapeError::TooFewSides { sides: 3 }));
        let line = [[0.0; 3], [1.0; 3], [2.0; 3]];
        assert_eq!(plane_through(line, 4), Err(ShapeError::NoPlane { side: 4 }));
    }
}
