//! What movement takes and gives: the rules, the player's state, the input, and what happens on the way.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use hitreg_log::units::EntityId;

/// The bit in [`MoveInput::buttons`] for firing.
pub(crate) const BUTTON_ATTACK: u16 = 1 << 0;
/// The bit in [`MoveInput::buttons`] for jumping.
pub const BUTTON_JUMP: u16 = 1 << 1;
/// The bit in [`MoveInput::buttons`] for ducking.
pub const BUTTON_DUCK: u16 = 1 << 2;

/// How high the eyes of a standing player are above the origin, in units.
pub const VIEW_HEIGHT_STANDING_UNITS: f32 = 28.0;
/// How high the eyes of a ducking player are above the origin, in units.
pub const VIEW_HEIGHT_DUCKED_UNITS: f32 = 12.0;

/// The rules of movement that a server may set. The defaults are Half-Life deathmatch's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveVars {
    /// Downward acceleration, in units per second squared.
    pub gravity: f32,
    /// Below this speed friction bites as if the player moved at it, in units per second.
    pub stopspeed: f32,
    /// The fastest that a player can ask to go, in units per second.
    pub maxspeed: f32,
    /// How quickly the asked-for speed is reached on the ground, per second.
    pub accelerate: f32,
    /// The same in the air.
    pub airaccelerate: f32,
    /// The share of speed that the ground takes, per second.
    pub friction: f32,
    /// By how much friction is multiplied before a drop.
    pub edgefriction: f32,
    /// The highest step that is climbed without jumping, in units.
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

/// Everything about a player's movement that a later step depends on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveState {
    /// The middle of the hull, in units.
    #[serde(with = "super::super::vector")]
    pub origin: Vec3,
    /// In units per second.
    #[serde(with = "super::super::vector")]
    pub velocity: Vec3,
    /// Standing on something that is not too steep.
    pub on_ground: bool,
    /// Has the small hull.
    pub ducked: bool,
    /// On the way down into the small hull.
    pub in_duck: bool,
    /// Runs down from 1,000 ms as the player begins to duck.
    pub duck_time_ms: u16,
    /// How high the eyes are above the origin, in units.
    pub view_ofs_z: f32,
    /// The buttons whose press has been acted on: jump and duck act once per press.
    pub old_buttons: u16,
    /// Speed downward at the start of the last step in the air, in units per second; 0 on the ground.
    pub fall_velocity: f32,
    /// Until the next footstep.
    pub step_time_ms: u16,
    /// The next footstep is the left foot's.
    pub step_left: bool,
}

impl MoveState {
    /// A player who appears at `origin`, standing, and finds out in the first step what is below.
    pub const fn at(origin: Vec3) -> MoveState {
        MoveState {
            origin,
            velocity: Vec3::ZERO,
            on_ground: false,
            ducked: false,
            in_duck: false,
            duck_time_ms: 0,
            view_ofs_z: VIEW_HEIGHT_STANDING_UNITS,
            old_buttons: 0,
            fall_velocity: 0.0,
            step_time_ms: 0,
            step_left: false,
        }
    }

    /// Replaces what is no number by zero, so that no comparison goes astray on it.
    pub(super) fn without_nan(self) -> MoveState {
        let zeroed = |vector: Vec3| Vec3::from_array(vector.to_array().map(|n| if n.is_nan() { 0.0 } else { n }));
        MoveState { origin: zeroed(self.origin), velocity: zeroed(self.velocity), ..self }
    }

    /// How high the eyes are above the origin, by hull and duck timer alone: what [`MoveState::view_ofs_z`] is after a
    /// step, for those who were not told it.
    pub fn eye_height_units(&self) -> f32 {
        super::duck::eye_height_units(self)
    }

    pub(super) fn run_timers(&mut self, msec: u8) {
        self.duck_time_ms = self.duck_time_ms.saturating_sub(u16::from(msec));
        self.step_time_ms = self.step_time_ms.saturating_sub(u16::from(msec));
    }
}

/// The part of a usercmd that moves a player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveInput {
    /// How long the command lasts.
    pub msec: u8,
    /// Pitch (down is positive), yaw and roll, in degrees. Movement does not read the roll.
    #[serde(with = "super::super::vector")]
    pub viewangles: Vec3,
    /// Speed asked for along the view, in units per second.
    pub forwardmove: f32,
    /// Speed asked for to the right, in units per second.
    pub sidemove: f32,
    /// Speed asked for upwards, in units per second. It only counts towards the limit of the three together.
    pub upmove: f32,
    /// `BUTTON_ATTACK`, [`BUTTON_JUMP`] and [`BUTTON_DUCK`]; movement ignores other bits.
    pub buttons: u16,
}

/// Something that happened during a step, for sounds, effects and rules of the game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MoveEvent {
    /// The player left the ground by their own legs.
    Jumped,
    /// The player came down.
    Landed {
        /// How fast, in units per second.
        fall_speed: f32,
    },
    /// A foot was put down.
    Footstep {
        /// The left foot, else the right.
        left: bool,
        /// At a run, so that others hear it; else at a walk.
        running: bool,
    },
    /// The player ran into, or stands on, something with a body. May be told more than once in a step.
    Touched {
        /// What it was.
        entity: EntityId,
    },
}
