//! Boxes around brushes, generous enough that what misses the box misses the brush whatever the rounding.

use glam::Vec3;

use super::brush::Facet;
use super::solid::SURFACE_GAP_UNITS;

/// Half the side of the cube in which boxes are trusted, in units. Sweeps that leave it are tried against everything.
pub(crate) const TRUSTED_UNITS: f32 = 65_536.0;

/// Where an open brush is cut off: outside of the trusted cube, so that the cut shows nowhere.
const CUT_UNITS: f64 = 4.0 * TRUSTED_UNITS as f64;

/// What single precision may be off by inside of the trusted cube, with room to spare.
const ROUNDING_UNITS: f64 = 0.25;

/// A box with its sides along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) min: Vec3,
    pub(crate) max: Vec3,
}

impl Bounds {
    /// The box that holds nothing, and adds nothing to a union.
    pub(crate) const EMPTY: Bounds = Bounds { min: Vec3::splat(f32::INFINITY), max: Vec3::splat(f32::NEG_INFINITY) };

    /// The box around the path from one point to another.
    pub(crate) fn of_path(from: Vec3, to: Vec3) -> Bounds {
        Bounds { min: from.min(to), max: from.max(to) }
    }

    /// The box around everywhere that is behind all planes or within the sweep's surface gap of that.
    pub(crate) fn of_convex(facets: &[Facet]) -> Bounds {
        let gap = f64::from(SURFACE_GAP_UNITS);
        let moved_out = |facet: &Facet| Facet { distance: facet.distance + gap, ..*facet };
        let planes: Vec<Facet> = facets.iter().map(moved_out).chain(cut_planes()).collect();
        let mut corners = Bounds::EMPTY;
        for (i, a) in planes.iter().enumerate() {
            for (j, b) in planes.iter().enumerate().skip(i + 1) {
                for c in planes.iter().skip(j + 1) {
                    let corner = meeting_point(a, b, c).filter(|&at| {
                        planes.iter().all(|facet| dot(facet.normal, at) <= facet.distance + ROUNDING_UNITS / 8.0)
                    });
                    if let Some(at) = corner {
                        corners = corners.union(Bounds::around(at));
                    }
                }
            }
        }
        corners
    }

    fn around(at: [f64; 3]) -> Bounds {
        let [min, max] = [-ROUNDING_UNITS, ROUNDING_UNITS].map(|by| Vec3::from_array(at.map(|n| (n + by) as f32)));
        Bounds { min, max }
    }

    /// Whether all of another box lies in it; false where a number is none.
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

    /// Whether both have a point in common.
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

    /// Whether the box lies in the cube in which boxes are trusted; false where a number is none.
    pub(crate) fn is_trusted(&self) -> bool {
        self.min.cmpge(Vec3::splat(-TRUSTED_UNITS)).all() && self.max.cmple(Vec3::splat(TRUSTED_UNITS)).all()
    }

    /// Half of the surface's area.
    pub(crate) fn surface(&self) -> f32 {
        let Vec3 { x, y, z } = self.max - self.min;
        x * y + y * z + z * x
    }

    pub(crate) fn centre(&self) -> Vec3 {
        self.min * 0.5 + self.max * 0.5
    }
}

/// A cube around everything, so that open brushes have corners too.
fn cut_planes() -> impl Iterator<Item = Facet> {
    (0..6).map(|side| {
        let mut normal = [0.0; 3];
        normal[side / 2] = if side % 2 == 0 { 1.0 } else { -1.0 };
        Facet { normal, distance: CUT_UNITS }
    })
}

/// The point that lies on all three planes, unless two of them are as good as parallel.
pub(crate) fn meeting_point(a: &Facet, b: &Facet, c: &Facet) -> Option<[f64; 3]> {
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
