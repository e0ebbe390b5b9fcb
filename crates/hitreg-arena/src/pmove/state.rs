//! The rules of movement, its buttons and its events.

use serde::{Deserialize, Serialize};

use hitreg_log::units::EntityId;

/// The bit in the buttons of a usercmd for firing.
pub(crate) const BUTTON_ATTACK: u16 = 1 << 0;
/// The bit in the buttons of a usercmd for jumping.
pub const BUTTON_JUMP: u16 = 1 << 1;
/// The bit in the buttons of a usercmd for ducking.
pub const BUTTON_DUCK: u16 = 1 << 2;

/// The eye height of a standing player above the origin, in units.
pub const VIEW_HEIGHT_STANDING_UNITS: f32 = 28.0;
/// The eye height of a ducked player above the origin, in units.
pub const VIEW_HEIGHT_DUCKED_UNITS: f32 = 12.0;

/// The rules of movement that a server may set. The defaults are those of Half-Life deathmatch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveVars {
    /// Downward acceleration, in units per second squared.
    pub gravity: f32,
    /// Below this speed, friction is as strong as at this speed, in units per second.
    pub stopspeed: f32,
    /// The greatest wished speed, in units per second.
    pub maxspeed: f32,
    /// The acceleration towards the wished speed on the ground, per second.
    pub accelerate: f32,
    /// The acceleration in the air, per second.
    pub airaccelerate: f32,
    /// The share of speed that friction takes, per second.
    pub friction: f32,
    /// The factor of friction before an edge.
    pub edgefriction: f32,
    /// The highest step that can be climbed without jumping, in units.
    pub stepsize: f32,
    /// The limit of velocity along each axis, in units per second.
    pub maxvelocity: f32,
}

impl Default for MoveVars {
    fn default() -> MoveVars {
        MoveVars {
            gravity: 800.0,
            stopspeed: 100.0,
            maxspeed: 270.0,
            accelerate: 10.0,
            airaccelerate: 10.0,
            friction: 4.0,
            edgefriction: 2.0,
            stepsize: 18.0,
            maxvelocity: 2000.0,
        }
    }
}

/// An event of movement, for sounds, effects and game rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MoveEvent {
    /// The player jumped.
    Jumped,
    /// The player landed.
    Landed {
        /// The fall speed in units per second.
        fall_speed: f32,
    },
    /// A footstep.
    Footstep {
        /// True for the left foot, false for the right.
        left: bool,
        /// True for running, which others can hear; false for walking.
        running: bool,
    },
    /// The player ran into an entity or stands on it. May occur more than once per step.
    Touched {
        /// The entity.
        entity: EntityId,
    },
}
