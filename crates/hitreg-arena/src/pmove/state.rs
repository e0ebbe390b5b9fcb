//! The inputs and outputs of movement: rules, state, input and events.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use hitreg_log::units::EntityId;

/// The bit in [`MoveInput::buttons`] for firing.
pub(crate) const BUTTON_ATTACK: u16 = 1 << 0;
/// The bit in [`MoveInput::buttons`] for jumping.
pub const BUTTON_JUMP: u16 = 1 << 1;
/// The bit in [`MoveInput::buttons`] for ducking.
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

/// The part of a player's state that movement depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveState {
    /// The middle of the hull, in units.
    #[serde(with = "super::super::vector")]
    pub origin: Vec3,
    /// The velocity in units per second.
    #[serde(with = "super::super::vector")]
    pub velocity: Vec3,
    /// Whether the player stands on a surface that is not too steep.
    pub on_ground: bool,
    /// Whether the player has the small hull.
    pub ducked: bool,
    /// Whether the player is ducking but does not have the small hull yet.
    pub in_duck: bool,
    /// The duck timer in ms; runs down from 1,000 when ducking begins.
    pub duck_time_ms: u16,
    /// The height of the eyes above the origin, in units.
    pub view_ofs_z: f32,
    /// Held buttons whose press has already been handled; jump and duck act once per press.
    pub old_buttons: u16,
    /// Speed downward at the start of the last step in the air, in units per second; 0 on the ground.
    pub fall_velocity: f32,
    /// The time until the next footstep, in ms.
    pub step_time_ms: u16,
    /// Whether the next footstep is the left foot's.
    pub step_left: bool,
}

impl MoveState {
    /// Creates the state of a standing player at `origin`. The first step finds the ground.
    pub fn at(origin: Vec3) -> MoveState {
        MoveState { origin, view_ofs_z: VIEW_HEIGHT_STANDING_UNITS, ..MoveState::default() }
    }

    /// Replaces NaN by zero, so that comparisons behave.
    pub(super) fn without_nan(self) -> MoveState {
        let zeroed = |vector: Vec3| Vec3::from_array(vector.to_array().map(|n| if n.is_nan() { 0.0 } else { n }));
        MoveState { origin: zeroed(self.origin), velocity: zeroed(self.velocity), ..self }
    }

    /// Returns the height of the eyes above the origin, from hull and duck timer alone. It equals
    /// [`MoveState::view_ofs_z`] after a step, for a state that lacks this field.
    pub fn eye_height_units(&self) -> f32 {
        super::duck::eye_height_units(self)
    }

    pub(super) fn run_timers(&mut self, msec: u8) {
        self.duck_time_ms = self.duck_time_ms.saturating_sub(u16::from(msec));
        self.step_time_ms = self.step_time_ms.saturating_sub(u16::from(msec));
    }
}

/// The part of a usercmd that movement uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveInput {
    /// The duration of the usercmd in ms.
    pub msec: u8,
    /// Pitch (down is positive), yaw and roll, in degrees. Movement does not read the roll.
    #[serde(with = "super::super::vector")]
    pub viewangles: Vec3,
    /// The wished speed along the view, in units per second.
    pub forwardmove: f32,
    /// The wished speed to the right, in units per second.
    pub sidemove: f32,
    /// The wished upward speed, in units per second. It counts only towards the limit of all three speeds.
    pub upmove: f32,
    /// `BUTTON_ATTACK`, [`BUTTON_JUMP`] and [`BUTTON_DUCK`]; movement ignores other bits.
    pub buttons: u16,
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
