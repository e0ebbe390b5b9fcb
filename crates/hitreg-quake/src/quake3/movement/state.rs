//! The player state that movement reads and changes.

use glam::Vec3;

/// Bits of [`Quake3PlayerState::flags`] (bg_public.h).
pub(crate) mod flag {
    pub(crate) const DUCKED: u32 = 1;
    pub(crate) const JUMP_HELD: u32 = 2;
    pub(crate) const TIME_LAND: u32 = 32;
    pub(crate) const TIME_KNOCKBACK: u32 = 64;
    pub(crate) const TIME_WATERJUMP: u32 = 256;
    pub(crate) const RESPAWNED: u32 = 512;
    pub(crate) const GRAPPLE_PULL: u32 = 2048;
    /// The state is that of another player, whom a spectator follows.
    pub(crate) const FOLLOW: u32 = 4096;
    pub(crate) const INVULNERABLE_WIDE: u32 = 16_384;
    /// The flags that end with [`Quake3PlayerState::time_ms`](super::Quake3PlayerState::time_ms).
    pub(crate) const ALL_TIMES: u32 = TIME_LAND | TIME_KNOCKBACK | TIME_WATERJUMP;
}

/// Values of [`Quake3PlayerState::kind`].
pub(crate) mod kind {
    pub(crate) const NOCLIP: u32 = 1;
    /// From this value on, nothing can hit the player.
    pub(crate) const SPECTATOR: u32 = 2;
    /// From this value on, the player cannot steer.
    pub(crate) const DEAD: u32 = 3;
    pub(crate) const FREEZE: u32 = 4;
}

/// Button that replaces all input while the player writes a message.
pub(crate) const BUTTON_TALK: u16 = 2;
pub(crate) const BUTTON_USE: u16 = 4;
pub(crate) const BUTTON_ATTACK: u16 = 1;

/// The part of a player's state that movement uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quake3PlayerState {
    /// Time of the last executed usercmd, in ms.
    pub(crate) command_time: i32,
    pub(crate) origin: Vec3,
    pub(crate) velocity: Vec3,
    /// View angles in degrees.
    pub(crate) viewangles: Vec3,
    /// Rotation that the server adds to the view, in 65,536ths of a turn.
    pub(crate) delta_angles: [u16; 3],
    pub(crate) kind: u32,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
    /// Remaining time of the timed flags, in ms.
    pub(crate) time_ms: i32,
    /// Running speed, in units/s.
    pub(crate) speed: i32,
    /// Gravity, in units/s².
    pub(crate) gravity: i32,
    /// The entity below the player.
    pub(crate) ground: u32,
    pub(crate) viewheight: i32,
    pub(crate) health: i32,
    pub(crate) flies: bool,
    pub(crate) is_invulnerable: bool,
    pub(crate) grapple: Vec3,
}
