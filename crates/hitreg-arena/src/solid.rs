//! How the game asks what is solid: a hull swept from one point to another, and what stopped it.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use hitreg_log::units::EntityId;

/// How far from a surface a sweep stops, in units, so that rounding never carries the hull into it.
pub(crate) const SURFACE_GAP_UNITS: f32 = 1.0 / 32.0;

/// The shape that is moved, always centred on its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hull {
    /// A player on their feet: 32 by 32 by 72 units.
    Standing,
    /// A ducking player: 32 by 32 by 36 units.
    Ducked,
    /// No extent: bullets, and what only looks.
    Point,
}

impl Hull {
    /// Every hull.
    pub const ALL: [Hull; 3] = [Hull::Standing, Hull::Ducked, Hull::Point];

    /// Half of the hull's extent along each axis, in units.
    pub const fn half_extent_units(self) -> Vec3 {
        match self {
            Hull::Standing => Vec3::new(16.0, 16.0, 36.0),
            Hull::Ducked => Vec3::new(16.0, 16.0, 18.0),
            Hull::Point => Vec3::ZERO,
        }
    }

    /// The hull's place in [`Hull::ALL`].
    pub(crate) const fn index(self) -> usize {
        match self {
            Hull::Standing => 0,
            Hull::Ducked => 1,
            Hull::Point => 2,
        }
    }
}

/// What a sweep ran into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Touch {
    /// Nothing was in the way.
    #[default]
    Nothing,
    /// The map.
    World,
    /// Something with a body.
    Entity(EntityId),
}

/// What came of moving a hull along a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep {
    /// How much of the way was free, from 0 to 1.
    pub fraction: f32,
    /// Where the hull's origin came to rest.
    pub end: Vec3,
    /// The surface that stopped it, pointing away from what is solid; zero if nothing did.
    pub normal: Vec3,
    /// The hull began inside something.
    pub start_solid: bool,
    /// The hull never left what it began inside of. The fraction is 0 then.
    pub all_solid: bool,
    /// What stopped the hull, or what holds it.
    pub touch: Touch,
}

impl Sweep {
    /// A sweep that met nothing on its way to `to`.
    pub const fn free(to: Vec3) -> Sweep {
        Sweep {
            fraction: 1.0,
            end: to,
            normal: Vec3::ZERO,
            start_solid: false,
            all_solid: false,
            touch: Touch::Nothing,
        }
    }

    /// Both results of the same sweep against different things as one: the nearer of the two, and `self` if they are
    /// equally near. Being inside either counts.
    pub fn nearer(self, other: Sweep) -> Sweep {
        let other_first = match (self.all_solid, other.all_solid) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => other.fraction < self.fraction,
        };
        let first = if other_first { other } else { self };
        Sweep { start_solid: self.start_solid || other.start_solid, ..first }
    }
}

/// The world as movement sees it. Whoever moves chooses what is in it: a wrapper may add other players to the map.
pub trait Solid {
    /// Moves `hull` in a straight line until something stops it.
    fn sweep(&self, hull: Hull, from: Vec3, to: Vec3) -> Sweep;

    /// What `hull` is inside of when its origin is `at`; [`Touch::Nothing`] where it is free.
    fn inside(&self, hull: Hull, at: Vec3) -> Touch;
}

/// Sweeps a hull against one axis-aligned box in space, such as another player, by the rules that hold for brushes:
/// the box grows by the hull's extent, and the hull stops [`SURFACE_GAP_UNITS`] short of it.
/// `touch` is what the sweep reports if it hits.
pub(crate) fn sweep_box(box_min: Vec3, box_max: Vec3, touch: Touch, hull: Hull, from: Vec3, to: Vec3) -> Sweep {
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
    .map(|(normal, distance)| Face { normal, distance });
    let mut nearest = Nearest::default();
    nearest.sweep_convex(0, &facets, from, to);
    nearest.into_sweep(from, to, touch)
}

/// One side of a convex solid, moved out by the support of the hull that it is tested with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Face {
    pub(crate) normal: Vec3,
    pub(crate) distance: f32,
}

impl Face {
    fn height_of(&self, at: Vec3) -> f32 {
        self.normal.dot(at) - self.distance
    }
}

/// Whether a point is behind every face.
pub(crate) fn is_inside(faces: &[Face], at: Vec3) -> bool {
    faces.iter().all(|face| face.height_of(at) <= 0.0)
}

/// The nearest hit among convex solids, whatever the order in which they are tried: of equally near ones the one with
/// the lowest number counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nearest {
    hit: Option<Hit>,
    start_solid: bool,
    trapped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hit {
    fraction: f32,
    solid: u32,
    normal: Vec3,
}

impl Nearest {
    /// Tries the solid with the given number.
    pub(crate) fn sweep_convex(&mut self, solid: u32, faces: &[Face], from: Vec3, to: Vec3) {
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
                self.hit = Some(Hit { fraction, solid, normal });
            }
        }
    }

    pub(crate) fn into_sweep(self, from: Vec3, to: Vec3, touch: Touch) -> Sweep {
        let start_solid = self.start_solid;
        if self.trapped {
            return Sweep { fraction: 0.0, end: from, normal: Vec3::ZERO, start_solid, all_solid: true, touch };
        }
        match self.hit {
            None => Sweep { start_solid, ..Sweep::free(to) },
            Some(hit) => Sweep {
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
