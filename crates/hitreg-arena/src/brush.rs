//! A convex solid, as level editors define it: all points behind all of its planes.
//! Its bounding box is large enough that a path that misses the box misses the brush, despite rounding.

use glam::{DVec3, Vec3};
use serde::{Deserialize, Serialize};

use crate::solid::{HullFace, SURFACE_GAP_UNITS, SolidHull};

/// Half the side of the cube in which boxes are reliable, in units. Sweeps that leave it test every brush.
const TRUSTED_UNITS: f32 = 65_536.0;

/// The distance at which open brushes are cut off, outside the reliable cube, in units.
const CUT_UNITS: f64 = 4.0 * TRUSTED_UNITS as f64;

/// An upper bound of single-precision rounding errors within the reliable cube, in units.
const ROUNDING_UNITS: f64 = 0.25;

/// The six axis directions.
pub(crate) const AXES: [DVec3; 6] = [DVec3::X, DVec3::NEG_X, DVec3::Y, DVec3::NEG_Y, DVec3::Z, DVec3::NEG_Z];

/// One plane of a brush: `normal · p <= distance` is its solid side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub struct Facet {
    /// The unit normal, pointing out of the brush.
    pub normal: DVec3,
    /// The distance from the world's origin along the normal, in units.
    pub distance: f64,
}

impl From<[f64; 4]> for Facet {
    fn from([x, y, z, distance]: [f64; 4]) -> Facet {
        Facet { normal: DVec3::new(x, y, z), distance }
    }
}

impl From<Facet> for [f64; 4] {
    fn from(facet: Facet) -> [f64; 4] {
        let DVec3 { x, y, z } = facet.normal;
        [x, y, z, facet.distance]
    }
}

/// The reasons why planes do not form a brush.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BrushError {
    /// A plane has an infinite or NaN number.
    #[error("plane {plane}: every number must be finite")]
    NotFinite {
        /// The index of the plane, from 0.
        plane: usize,
    },
    /// A normal does not have length 1, within a thousandth.
    #[error("plane {plane}: the normal has length {length}, it must be 1")]
    NotUnit {
        /// The index of the plane, from 0.
        plane: usize,
        /// The length of the normal.
        length: f64,
    },
    /// There are no planes, so the brush would be solid everywhere.
    #[error("a brush needs at least one plane")]
    NoPlanes,
}

/// A convex solid. It may be open on some sides; a single plane is a half space.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvexBrush {
    facets: Vec<Facet>,
}

impl ConvexBrush {
    /// Creates a brush from its planes.
    ///
    /// # Errors
    /// See [`BrushError`]. Planes that enclose nothing are valid; sweeps never hit such a brush.
    pub fn new(facets: Vec<Facet>) -> Result<ConvexBrush, BrushError> {
        if facets.is_empty() {
            return Err(BrushError::NoPlanes);
        }
        for (plane, facet) in facets.iter().enumerate() {
            if !facet.normal.is_finite() || !facet.distance.is_finite() {
                return Err(BrushError::NotFinite { plane });
            }
            let length = facet.normal.length();
            if (length - 1.0).abs() > 1e-3 {
                return Err(BrushError::NotUnit { plane, length });
            }
        }
        Ok(ConvexBrush { facets })
    }

    /// Creates an axis-aligned box from its lowest and highest corners, in units.
    pub fn cuboid(min: [f64; 3], max: [f64; 3]) -> ConvexBrush {
        let distances = (0..3).flat_map(|axis| [max[axis], -min[axis]]);
        let facets = AXES.into_iter().zip(distances).map(|(normal, distance)| Facet { normal, distance });
        ConvexBrush { facets: facets.collect() }
    }

    /// Returns the planes in their given order.
    pub fn facets(&self) -> &[Facet] {
        &self.facets
    }

    /// Returns the faces that the origin of `hull` must stay outside of.
    pub(crate) fn faces_for(&self, hull: SolidHull) -> impl Iterator<Item = HullFace> {
        // In single precision throughout, as in Half-Life.
        self.facets.iter().map(move |facet| {
            let normal = facet.normal.as_vec3();
            let support = normal.abs().dot(hull.half_extent_units());
            HullFace { normal, distance: facet.distance as f32 + support }
        })
    }

    /// Returns a box outside which no sweep of `hull` can hit this brush.
    pub(crate) fn bounds_for(&self, hull: SolidHull) -> Bounds {
        let half = hull.half_extent_units().as_dvec3();
        // Each plane moves out by the support of the hull.
        let move_out = |facet: &Facet| Facet { distance: facet.distance + facet.normal.abs().dot(half), ..*facet };
        let grown: Vec<Facet> = self.facets.iter().map(move_out).collect();
        Bounds::of_convex(&grown)
    }
}

/// An axis-aligned box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) min: Vec3,
    pub(crate) max: Vec3,
}

impl Bounds {
    /// The empty box, which adds nothing to a union.
    pub(crate) const EMPTY: Bounds = Bounds { min: Vec3::splat(f32::INFINITY), max: Vec3::splat(f32::NEG_INFINITY) };

    /// Returns the box around the path between two points.
    pub(crate) fn of_path(from: Vec3, to: Vec3) -> Bounds {
        Bounds { min: from.min(to), max: from.max(to) }
    }

    /// Returns a box around all points behind all planes, enlarged by the sweep's surface gap.
    fn of_convex(facets: &[Facet]) -> Bounds {
        let gap = f64::from(SURFACE_GAP_UNITS);
        let moved_out: Vec<Facet> = facets.iter().map(|f| Facet { distance: f.distance + gap, ..*f }).collect();
        if let Some([min, max]) = corners_of_box(&moved_out) {
            return Bounds { min: Bounds::around(min).min, max: Bounds::around(max).max };
        }
        let planes: Vec<Facet> = moved_out.into_iter().chain(cut_planes(CUT_UNITS)).collect();
        let corners = corners_of(&planes, ROUNDING_UNITS / 8.0);
        corners.fold(Bounds::EMPTY, |all, at| all.union(Bounds::around(at)))
    }

    fn around(at: DVec3) -> Bounds {
        let [min, max] = [-ROUNDING_UNITS, ROUNDING_UNITS].map(|by| (at + by).as_vec3());
        Bounds { min, max }
    }

    /// Returns whether the box contains `other` completely; false when a number is NaN.
    #[inline]
    pub(crate) fn holds(&self, other: &Bounds) -> bool {
        let Bounds { min, max } = self;
        min.x <= other.min.x
            && other.max.x <= max.x
            && min.y <= other.min.y
            && other.max.y <= max.y
            && min.z <= other.min.z
            && other.max.z <= max.z
    }

    /// Returns whether both boxes have a point in common.
    #[inline]
    pub(crate) fn touches(&self, other: &Bounds) -> bool {
        let Bounds { min, max } = self;
        min.z <= other.max.z
            && max.z >= other.min.z
            && min.x <= other.max.x
            && max.x >= other.min.x
            && min.y <= other.max.y
            && max.y >= other.min.y
    }

    pub(crate) fn union(self, other: Bounds) -> Bounds {
        Bounds { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// Returns whether the box lies in the reliable cube; false when a number is NaN.
    pub(crate) fn is_trusted(&self) -> bool {
        self.min.cmpge(Vec3::splat(-TRUSTED_UNITS)).all() && self.max.cmple(Vec3::splat(TRUSTED_UNITS)).all()
    }

    /// Returns half of the surface area.
    pub(crate) fn surface(&self) -> f32 {
        let Vec3 { x, y, z } = self.max - self.min;
        x * y + y * z + z * x
    }

    pub(crate) fn centre(&self) -> Vec3 {
        self.min * 0.5 + self.max * 0.5
    }
}

/// Returns the lowest and the highest corner of a box; `None` if the planes form another solid, or none. Most brushes are
/// boxes, and need no search for corners.
fn corners_of_box(planes: &[Facet]) -> Option<[DVec3; 2]> {
    let mut corners = [DVec3::ZERO; 2];
    let mut across_axes = 0;
    for (side, axis) in AXES.into_iter().enumerate() {
        let across = || planes.iter().filter(|plane| plane.normal == axis);
        across_axes += across().count();
        let distance = across().map(|plane| plane.distance).reduce(f64::min)?;
        let (low_or_high, sign) = if side % 2 == 0 { (1, 1.0) } else { (0, -1.0) };
        corners[low_or_high][side / 2] = sign * distance;
    }
    (across_axes == planes.len() && corners[0].cmple(corners[1]).all()).then_some(corners)
}

/// Returns the planes of a cube around everything, which give open brushes corners too.
pub(crate) fn cut_planes(distance: f64) -> impl Iterator<Item = Facet> {
    AXES.into_iter().map(move |normal| Facet { normal, distance })
}

/// Returns the points where three planes meet behind all others. Points within `tolerance_units` of a plane count as
/// behind it.
pub(crate) fn corners_of(planes: &[Facet], tolerance_units: f64) -> impl Iterator<Item = DVec3> {
    let triples = planes.iter().enumerate().flat_map(move |(i, a)| {
        let pairs = planes.iter().enumerate().skip(i + 1);
        pairs.flat_map(move |(j, b)| planes[j + 1..].iter().map(move |c| (a, b, c)))
    });
    let is_corner = move |at: &DVec3| planes.iter().all(|p| p.normal.dot(*at) <= p.distance + tolerance_units);
    triples.filter_map(|(a, b, c)| meeting_point(a, b, c)).filter(is_corner)
}

/// Returns the point on all three planes, unless two of them are nearly parallel.
fn meeting_point(a: &Facet, b: &Facet, c: &Facet) -> Option<DVec3> {
    let (bc, ca, ab) = (b.normal.cross(c.normal), c.normal.cross(a.normal), a.normal.cross(b.normal));
    let volume = a.normal.dot(bc);
    (volume.abs() > 1e-9).then(|| (bc * a.distance + ca * b.distance + ab * c.distance) / volume)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_the_bounds_of_its_corners() {
        let facets = ConvexBrush::cuboid([-8.0, 16.0, 0.5], [24.0, 17.0, 96.0]).facets().to_vec();
        let corners = corners_of_box(&facets).expect("a box");
        assert_eq!(corners, [DVec3::new(-8.0, 16.0, 0.5), DVec3::new(24.0, 17.0, 96.0)]);
        // A cut that encloses the box makes it another solid, with the same corners.
        let cut = Facet { normal: DVec3::new(0.6, 0.8, 0.0), distance: 1_000.0 };
        let cut_off: Vec<Facet> = facets.iter().copied().chain([cut]).collect();
        assert_eq!(corners_of_box(&cut_off), None);
        assert_eq!(Bounds::of_convex(&cut_off), Bounds::of_convex(&facets));
        assert_eq!(corners_of_box(&facets[..5]), None);
        let nothing = ConvexBrush::cuboid([8.0; 3], [0.0; 3]);
        assert_eq!((corners_of_box(nothing.facets()), Bounds::of_convex(nothing.facets())), (None, Bounds::EMPTY));
    }
}
