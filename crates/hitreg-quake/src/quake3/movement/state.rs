//! What movement reads and changes of a player, and the usercmd that it runs.

use glam::Vec3;

/// Bits of [`PlayerState::flags`] (bg_public.h).
pub(crate) mod flag {
    pub(crate) const DUCKED: u32 = 1;
    pub(crate) const JUMP_HELD: u32 = 2;
    pub(crate) const TIME_LAND: u32 = 32;
    pub(crate) const TIME_KNOCKBACK: u32 = 64;
    pub(crate) const TIME_WATERJUMP: u32 = 256;
    pub(crate) const RESPAWNED: u32 = 512;
    pub(crate) const GRAPPLE_PULL: u32 = 2048;
    pub(crate) const INVULNERABLE_WIDE: u32 = 16_384;
    /// Those that end with [`PlayerState::time_ms`](super::PlayerState::time_ms).
    pub(crate) const ALL_TIMES: u32 = TIME_LAND | TIME_KNOCKBACK | TIME_WATERJUMP;
}

/// Values of [`PlayerState::kind`].
pub(crate) mod kind {
    pub(crate) const NOCLIP: u32 = 1;
    pub(crate) const SPECTATOR: u32 = 2;
    /// From here on nobody steers.
    pub(crate) const DEAD: u32 = 3;
    pub(crate) const FREEZE: u32 = 4;
}

/// A button that stands for all input while somebody writes.
pub(crate) const BUTTON_TALK: u16 = 2;
pub(crate) const BUTTON_USE: u16 = 4;
pub(crate) const BUTTON_ATTACK: u16 = 1;

/// A player, as far as movement goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlayerState {
    /// The time of the last usercmd that was run, in ms.
    pub(crate) command_time: i32,
    pub(crate) origin: Vec3,
    pub(crate) velocity: Vec3,
    /// Degrees.
    pub(crate) viewangles: Vec3,
    /// What the server turned the view by, in 65,536ths of a turn.
    pub(crate) delta_angles: [u16; 3],
    pub(crate) kind: u32,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
    /// How long the flags' times go on, in ms.
    pub(crate) time_ms: i32,
    /// Units/s.
    pub(crate) speed: i32,
    /// Units/s².
    pub(crate) gravity: i32,
    /// What the player stands on.
    pub(crate) ground: u32,
    pub(crate) viewheight: i32,
    pub(crate) health: i32,
    pub(crate) flies: bool,
    pub(crate) is_invulnerable: bool,
    pub(crate) grapple: Vec3,
}

/// A usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// In ms.
    pub(crate) server_time: i32,
    pub(crate) angles: [u16; 3],
    pub(crate) forward: i32,
    pub(crate) right: i32,
    pub(crate) up: i32,
    pub(crate) buttons: u16,
}
