//! Bounding boxes of brushes. They are large enough that a path that misses the box misses the brush, despite rounding.

use glam::Vec3;

use super::brush::Facet;
use super::solid::SURFACE_GAP_UNITS;

/// Half the side of the cube in which boxes are reliable, in units. Sweeps that leave it test every brush.
pub(crate) const TRUSTED_UNITS: f32 = 65_536.0;

/// The distance at which open brushes are cut off, outside the reliable cube, in units.
const CUT_UNITS: f64 = 4.0 * TRUSTED_UNITS as f64;

/// An upper bound of single-precision rounding errors within the reliable cube, in units.
const ROUNDING_UNITS: f64 = 0.25;

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
    pub(crate) fn of_convex(facets: &[Facet]) -> Bounds {
        let gap = f64::from(SURFACE_GAP_UNITS);
        let moved_out: Vec<Facet> = facets.iter().map(|f| Facet { distance: f.distance + gap, ..*f }).collect();
        if let Some([min, max]) = corners_of_box(&moved_out) {
            return Bounds { min: Bounds::around(min).min, max: Bounds::around(max).max };
        }
        let planes: Vec<Facet> = moved_out.into_iter().chain(cut_planes(CUT_UNITS)).collect();
        let corners = corners_of(&planes, ROUNDING_UNITS / 8.0);
        corners.fold(Bounds::EMPTY, |all, at| all.union(Bounds::around(at)))
    }

    fn around(at: [f64; 3]) -> Bounds {
        let [min, max] = [-ROUNDING_UNITS, ROUNDING_UNITS].map(|by| Vec3::from_array(at.map(|n| (n + by) as f32)));
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

/// Returns the six axis directions.
pub(crate) fn axes() -> impl Iterator<Item = [f64; 3]> {
    (0..6).map(|side| {
        let mut axis = [0.0; 3];
        axis[side / 2] = if side % 2 == 0 { 1.0 } else { -1.0 };
        axis
    })
}

/// Returns the lowest and the highest corner of a box; `None` if the planes form another solid, or none. Most brushes are
/// boxes, and need no search for corners.
fn corners_of_box(planes: &[Facet]) -> Option<[[f64; 3]; 2]> {
    let mut corners = [[0.0; 3]; 2];
    let mut across_axes = 0;
    for (side, axis) in axes().enumerate() {
        let across = || planes.iter().filter(|plane| plane.normal == axis);
        across_axes += across().count();
        let distance = across().map(|plane| plane.distance).reduce(f64::min)?;
        let (low_or_high, sign) = if side % 2 == 0 { (1, 1.0) } else { (0, -1.0) };
        corners[low_or_high][side / 2] = sign * distance;
    }
    let is_solid = (0..3).all(|axis| corners[0][axis] <= corners[1][axis]);
    (across_axes == planes.len() && is_solid).then_some(corners)
}

/// Returns the planes of a cube around everything, which give open brushes corners too.
pub(crate) fn cut_planes(distance: f64) -> impl Iterator<Item = Facet> {
    axes().map(move |normal| Facet { normal, distance })
}

/// Returns the points where three planes meet behind all others. Points within `tolerance_units` of a plane count as
/// behind it.
pub(crate) fn corners_of(planes: &[Facet], tolerance_units: f64) -> impl Iterator<Item = [f64; 3]> {
    let triples = planes.iter().enumerate().flat_map(move |(i, a)| {
        let pairs = planes.iter().enumerate().skip(i + 1);
        pairs.flat_map(move |(j, b)| planes[j + 1..].iter().map(move |c| (a, b, c)))
    });
    let is_corner = move |at: &[f64; 3]| planes.iter().all(|p| dot(p.normal, *at) <= p.distance + tolerance_units);
    triples.filter_map(|(a, b, c)| meeting_point(a, b, c)).filter(is_corner)
}

/// Returns the point on all three planes, unless two of them are nearly parallel.
fn meeting_point(a: &Facet, b: &Facet, c: &Facet) -> Option<[f64; 3]> {
    let (bc, ca, ab) = (cross(b.normal, c.normal), cross(c.normal, a.normal), cross(a.normal, b.normal));
    let volume = dot(a.normal, bc);
    let along = |axis: usize| (bc[axis] * a.distance + ca[axis] * b.distance + ab[axis] * c.distance) / volume;
    (volume.abs() > 1e-9).then(|| [along(0), along(1), along(2)])
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::super::brush::ConvexBrush;
    use super::*;

    #[test]
    fn a_box_has_the_bounds_of_its_corners() {
        let facets = ConvexBrush::cuboid([-8.0, 16.0, 0.5], [24.0, 17.0, 96.0]).facets().to_vec();
        let corners = corners_of_box(&facets).expect("a box");
        assert_eq!(corners, [[-8.0, 16.0, 0.5], [24.0, 17.0, 96.0]]);
        // A cut that encloses the box makes it another solid, with the same corners.
        let cut = Facet { normal: [0.6, 0.8, 0.0], distance: 1_000.0 };
        let cut_off: Vec<Facet> = facets.iter().copied().chain([cut]).collect();
        assert_eq!(corners_of_box(&cut_off), None);
        assert_eq!(Bounds::of_convex(&cut_off), Bounds::of_convex(&facets));
        assert_eq!(corners_of_box(&facets[..5]), None);
        let nothing = ConvexBrush::cuboid([8.0; 3], [0.0; 3]);
        assert_eq!((corners_of_box(nothing.facets()), Bounds::of_convex(nothing.facets())), (None, Bounds::EMPTY));
    }
}
