//! The usercmd: one client frame's input, laid out as in Bernier 2001, with the fields that the pipelines add.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::units::{CommandSeq, Micros};

/// The player's input of one client frame. A replay under other settings keeps this input and recomputes the other
/// fields of [`Usercmd`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Duration of the client frame, in milliseconds.
    pub msec: u8,
    /// View angles in degrees: pitch (down is positive), yaw (counter-clockwise from +x), roll.
    pub viewangles: Vec3,
    /// Intended forward speed, in units/s.
    pub forwardmove: f32,
    /// Intended speed to the right, in units/s.
    pub sidemove: f32,
    /// Intended upward speed (swimming, flying), in units/s.
    pub upmove: f32,
    /// Pressed buttons, one bit each. The game defines the bits; [`buttons`] has the usual ones.
    pub buttons: u16,
    /// A one-shot request, such as a weapon change; 0 means no request, as in Quake.
    pub impulse: u8,
    /// Game-defined input that no other field holds; opaque to the pipelines.
    pub extra: u32,
}

impl Input {
    /// Returns whether the input moves, presses a button or makes a request. View angles alone do not count.
    pub fn is_active(&self) -> bool {
        let moves = [self.forwardmove, self.sidemove, self.upmove].iter().any(|speed| *speed != 0.0);
        moves || self.buttons != 0 || self.impulse != 0 || self.extra != 0
    }
}

/// One [`Input`] with its number and the client's times, as sent to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usercmd {
    /// Sequence number per player, from 1.
    pub seq: CommandSeq,
    /// How far behind [`Usercmd::server_time`] the client drew the others, in milliseconds (Bernier's `lerp_msec`).
    pub lerp_msec: u16,
    /// The server time that the client's clock showed when the command was made, as in Quake III's usercmd. The server
    /// checks it against the latency that the server measures.
    pub server_time: Micros,
    /// The player's input.
    pub input: Input,
}

impl Usercmd {
    /// Returns the server time at which the client drew other players while the command was made.
    pub fn drawn_at(&self) -> Micros {
        self.server_time - Micros::from_ms(i64::from(self.lerp_msec))
    }
}

/// Button bits of the built-in games; the values are Half-Life's.
pub mod buttons {
    /// Fires the active weapon.
    pub const ATTACK: u16 = 1;
    /// Jumps.
    pub const JUMP: u16 = 2;
    /// Ducks while held.
    pub const DUCK: u16 = 4;
    /// Reloads the active weapon.
    pub const RELOAD: u16 = 8;
}
