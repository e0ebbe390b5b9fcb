//! The usercmd: one client frame's input, as Bernier 2001 lays it out, with what the pipelines stamp on it.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use crate::units::{CommandSeq, Micros};

/// What a player's hands did in one client frame. Replaying a session under other settings keeps this fixed and
/// lets the pipelines stamp everything else anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// How much time the command covers, in milliseconds.
    pub msec: u8,
    /// View angles in degrees: pitch (down is positive), yaw (counter-clockwise from +x), roll.
    pub viewangles: Vec3,
    /// Intended forward speed, in units/s.
    pub forwardmove: f32,
    /// Intended speed to the right, in units/s.
    pub sidemove: f32,
    /// Intended upward speed (swimming, flying), in units/s.
    pub upmove: f32,
    /// Pressed buttons, one bit each; the game says which ([`buttons`] has the usual ones).
    pub buttons: u16,
    /// A one-shot request, weapon selection first of all; 0 asks for nothing, as in Quake.
    pub impulse: u8,
    /// Input of the game's own that the fields above have no room for; opaque to the pipelines.
    pub extra: u32,
}

impl Input {
    /// Whether a key is down, a button pressed, or something asked for: whether there is anything in it to come out otherwise.
    pub fn is_active(&self) -> bool {
        let moves = [self.forwardmove, self.sidemove, self.upmove].iter().any(|speed| *speed != 0.0);
        moves || self.buttons != 0 || self.impulse != 0 || self.extra != 0
    }
}

/// One [`Input`] on its way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usercmd {
    /// Its number: 1 for the player's first.
    pub seq: CommandSeq,
    /// How far behind [`Usercmd::server_time`] the client drew the others, in milliseconds (Bernier's `lerp_msec`).
    pub lerp_msec: u16,
    /// The server time that the client's clock showed when the command was made, as in Quake III's usercmd.
    /// The server holds it against the latency that it measures itself before it believes it.
    pub server_time: Micros,
    /// The player's part.
    pub input: Input,
}

impl Usercmd {
    /// The server time at which the client drew the others while the command was made.
    pub fn drawn_at(&self) -> Micros {
        self.server_time - Micros::from_ms(i64::from(self.lerp_msec))
    }
}

/// The button bits that the built-in games share; Half-Life's values.
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
