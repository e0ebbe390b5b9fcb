//! Collision queries: a hull swept between two points, and the obstacle that stopped it.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use hitreg_log::units::EntityId;

/// The distance from a surface at which a sweep stops, in units, so that rounding never moves the hull into the
/// surface.
pub(crate) const SURFACE_GAP_UNITS: f32 = 1.0 / 32.0;

/// The shape of a sweep, centred on its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SolidHull {
    /// A standing player: 32 by 32 by 72 units.
    Standing,
    /// A ducked player: 32 by 32 by 36 units.
    Ducked,
    /// A point, for bullets and lines of sight.
    Point,
}

impl SolidHull {
    /// All hulls.
    pub const ALL: [SolidHull; 3] = [SolidHull::Standing, SolidHull::Ducked, SolidHull::Point];

    /// Returns half of the hull's extent along each axis, in units.
    pub const fn half_extent_units(self) -> Vec3 {
        match self {
            SolidHull::Standing => Vec3::new(16.0, 16.0, 36.0),
            SolidHull::Ducked => Vec3::new(16.0, 16.0, 18.0),
            SolidHull::Point => Vec3::ZERO,
        }
    }
}

/// The obstacle of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SweepContact {
    /// No obstacle.
    #[default]
    Nothing,
    /// The map.
    World,
    /// An entity.
    Entity(EntityId),
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepHit {
    /// The free share of the way, from 0 to 1.
    pub fraction: f32,
    /// The final position of the hull's origin.
    pub end: Vec3,
    /// The normal of the surface that stopped the hull, pointing out of the solid; zero if nothing did.
    pub normal: Vec3,
    /// Whether the hull started inside a solid.
    pub start_solid: bool,
    /// Whether the hull never left the solid that it started in. The fraction is then 0.
    pub all_solid: bool,
    /// The obstacle that stopped the hull, or that contains it.
    pub touch: SweepContact,
}

impl SweepHit {
    /// Returns the result of a sweep to `to` without obstacles.
    pub const fn free(to: Vec3) -> SweepHit {
        SweepHit {
            fraction: 1.0,
            end: to,
            normal: Vec3::ZERO,
            start_solid: false,
            all_solid: false,
            touch: SweepContact::Nothing,
        }
    }

    /// Combines the results of the same sweep against different obstacles. Returns the nearer one, or `self` if both
    /// are equally near. Starting inside either one counts.
    pub fn nearer(self, other: SweepHit) -> SweepHit {
        let other_first = match (self.all_solid, other.all_solid) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => other.fraction < self.fraction,
        };
        let first = if other_first { other } else { self };
        SweepHit { start_solid: self.start_solid || other.start_solid, ..first }
    }
}

/// The world as movement sees it. The caller chooses its contents; a wrapper may add other players to the map.
pub trait Solid {
    /// Moves `hull` in a straight line until an obstacle stops it.
    fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit;

    /// Returns what `hull` is inside of at `at`; [`SweepContact::Nothing`] when it is free.
    fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact;
}

/// Sweeps a hull against one axis-aligned box, such as another player, by the same rules as for brushes. The box grows
/// by the hull's extent, and the hull stops [`SURFACE_GAP_UNITS`] before it. A hit reports `touch`.
pub(crate) fn sweep_box(
    box_min: Vec3,
    box_max: Vec3,
    touch: SweepContact,
    hull: SolidHull,
    from: Vec3,
    to: Vec3,
) -> SweepHit {
    let half = hull.half_extent_units();
    let (high, low) = (box_max + half, half - box_min);
    let facets = [
        (Vec3::X, high.x),
        (Vec3::NEG_X, low.x),
        (Vec3::Y, high.y),
        (Vec3::NEG_Y, low.y),
        (Vec3::Z, high.z),
        (Vec3::NEG_Z, low.z),
    ]
    .map(|(normal, distance)| HullFace { normal, distance });
    let mut nearest = NearestHit::default();
    nearest.sweep_convex(0, &facets, from, to);
    nearest.into_sweep(from, to, touch)
}

/// One side of a convex solid, moved out by the support of the swept hull.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HullFace {
    pub(crate) normal: Vec3,
    pub(crate) distance: f32,
}

impl HullFace {
    fn height_of(&self, at: Vec3) -> f32 {
        self.normal.dot(at) - self.distance
    }
}

/// Returns whether a point is behind every face.
pub(crate) fn is_inside(faces: &[HullFace], at: Vec3) -> bool {
    faces.iter().all(|face| face.height_of(at) <= 0.0)
}

/// The nearest hit among convex solids, independent of the order of tests. Of equally near solids, the one with the
/// lowest number counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NearestHit {
    hit: Option<SurfaceHit>,
    start_solid: bool,
    trapped: bool,
}

#[derive(Clone, Copy, Debug)]
struct SurfaceHit {
    fraction: f32,
    solid: u32,
    normal: Vec3,
}

impl NearestHit {
    /// Tests the solid with the given number.
    pub(crate) fn sweep_convex(&mut self, solid: u32, faces: &[HullFace], from: Vec3, to: Vec3) {
        let (mut enter, mut leave) = (f32::NEG_INFINITY, f32::INFINITY);
        let mut normal = Vec3::ZERO;
        let (mut starts_outside, mut ends_outside) = (false, false);
        for face in faces {
            let before = face.height_of(from);
            let after = face.height_of(to);
            starts_outside |= before > 0.0;
            ends_outside |= after > 0.0;
            if before > 0.0 && after >= before {
                return;
            }
            if before <= 0.0 && after <= 0.0 {
                continue;
            }
            if before > after {
                let fraction = (before - SURFACE_GAP_UNITS) / (before - after);
                if fraction > enter {
                    enter = fraction;
                    normal = face.normal;
                }
            } else {
                leave = leave.min((before + SURFACE_GAP_UNITS) / (before - after));
            }
        }
        if !starts_outside {
            self.start_solid = true;
            self.trapped |= !ends_outside;
            return;
        }
        if enter < leave && enter < 1.0 {
            let fraction = enter.max(0.0);
            let nearer = self.hit.is_none_or(|hit| (fraction, solid) < (hit.fraction, hit.solid));
            if nearer {
                self.hit = Some(SurfaceHit { fraction, solid, normal });
            }
        }
    }

    pub(crate) fn into_sweep(self, from: Vec3, to: Vec3, touch: SweepContact) -> SweepHit {
        let start_solid = self.start_solid;
        if self.trapped {
            return SweepHit { fraction: 0.0, end: from, normal: Vec3::ZERO, start_solid, all_solid: true, touch };
        }
        match self.hit {
            None => SweepHit { start_solid, ..SweepHit::free(to) },
            Some(hit) => SweepHit {
                fraction: hit.fraction,
                end: from + (to - from) * hit.fraction,
                normal: hit.normal,
                start_solid,
                all_solid: false,
                touch,
            },
        }
    }
}
