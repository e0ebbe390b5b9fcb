//! A convex solid, as level editors define it: all points behind all of its planes.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::bounds::{Bounds, axes};
use super::solid::{HullFace, SolidHull};

/// One plane of a brush: `normal · p <= distance` is its solid side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub struct Facet {
    /// The unit normal, pointing out of the brush.
    pub normal: [f64; 3],
    /// The distance from the world's origin along the normal, in units.
    pub distance: f64,
}

impl From<[f64; 4]> for Facet {
    fn from([x, y, z, distance]: [f64; 4]) -> Facet {
        Facet { normal: [x, y, z], distance }
    }
}

impl From<Facet> for [f64; 4] {
    fn from(facet: Facet) -> [f64; 4] {
        let [x, y, z] = facet.normal;
        [x, y, z, facet.distance]
    }
}

impl Facet {
    /// Returns the plane moved out by the support of `hull`: the position of the hull's origin when the hull touches
    /// the plane.
    fn moved_out(&self, hull: SolidHull) -> Facet {
        let half = hull.half_extent_units().to_array();
        let support: f64 = std::iter::zip(self.normal, half).map(|(n, half)| n.abs() * f64::from(half)).sum();
        Facet { normal: self.normal, distance: self.distance + support }
    }

    /// Returns the moved plane for sweeps, in single precision throughout, as in Half-Life.
    fn face_for(&self, hull: SolidHull) -> HullFace {
        let normal = Vec3::from_array(self.normal.map(|n| n as f32));
        let support = normal.abs().dot(hull.half_extent_units());
        HullFace { normal, distance: self.distance as f32 + support }
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
            if !facet.normal.iter().chain([&facet.distance]).all(|n| n.is_finite()) {
                return Err(BrushError::NotFinite { plane });
            }
            let length = libm::sqrt(facet.normal.iter().map(|n| n * n).sum());
            if (length - 1.0).abs() > 1e-3 {
                return Err(BrushError::NotUnit { plane, length });
            }
        }
        Ok(ConvexBrush { facets })
    }

    /// Creates an axis-aligned box from its lowest and highest corners, in units.
    pub fn cuboid(min: [f64; 3], max: [f64; 3]) -> ConvexBrush {
        let distances = (0..3).flat_map(|axis| [max[axis], -min[axis]]);
        let facets = axes().zip(distances).map(|(normal, distance)| Facet { normal, distance });
        ConvexBrush { facets: facets.collect() }
    }

    /// Returns the planes in their given order.
    pub fn facets(&self) -> &[Facet] {
        &self.facets
    }

    /// Returns the faces that the origin of `hull` must stay outside of.
    pub(crate) fn faces_for(&self, hull: SolidHull) -> impl Iterator<Item = HullFace> {
        self.facets.iter().map(move |facet| facet.face_for(hull))
    }

    /// Returns a box outside which no sweep of `hull` can hit this brush.
    pub(crate) fn bounds_for(&self, hull: SolidHull) -> Bounds {
        let grown: Vec<Facet> = self.facets.iter().map(|facet| facet.moved_out(hull)).collect();
        Bounds::of_convex(&grown)
    }
}
