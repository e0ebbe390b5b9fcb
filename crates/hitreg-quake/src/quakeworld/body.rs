//! A body that covers every entity of a QuakeWorld recording: the recording player, other players and brush models.
//! Each can be rebuilt exactly from its cells.

use glam::Vec3;

use super::demo::{Mover, OriginWire, OtherPlayer, OwnState};
use super::movement::{QuakeWorldPlayerState, QuakeWorldUsercmd};
use crate::bsp::quake::EMPTY;
use hitreg_log::units::EntityId;
use hitreg_log::usercmd::Input;
use hitreg_netcode::game::body;

/// First entity number of brush models: the map's model `n` is entity `32 + n`. Lower numbers are player slots.
pub(crate) const FIRST_MODEL: EntityId = EntityId(32);

body! {
    /// The state of a player or a brush model. Unused cells are 0.
    pub struct QuakeWorldBody {
        /// Origin in units. For a brush model, the displacement from its position in the map. For the recording player as
        /// a gibbed head, 24 units above the recorded one ([`flag::GIB`]).
        Movement origin: Vec3,
        /// Velocity in units/s; whole numbers as recorded.
        Movement velocity: Vec3,
        /// View angles in degrees: of another player's last usercmd, or of the own usercmd that ran last. 0 for the own
        /// body as recorded.
        Status viewangles: Vec3,
        /// Number of teleports. The importer finds them as jumps that no speed explains, because the protocol does not
        /// mark them.
        Status teleports: u32,
        /// False for dead players.
        Status alive: bool,
        /// Bits of [`flag`].
        Status flags: u32 as Flag,
        /// Age of another player's state when it was sent, in ms (255 means that or more).
        Status age_ms: u8 as Time,
        /// Another player's last usercmd: duration in ms.
        Status command_msec: u8 as Time,
        /// Another player's last usercmd: wished speed forward, in units/s.
        Status forwardmove: i32 as Velocity,
        /// Another player's last usercmd: wished speed to the right, in units/s.
        Status sidemove: i32 as Velocity,
        /// Another player's last usercmd: wished speed upwards, in units/s.
        Status upmove: i32 as Velocity,
        /// Another player's last usercmd: buttons; fire is never set.
        Status buttons: u8 as Flag,
        /// Another player's last usercmd: weapon or other request.
        Status impulse: u8 as Name,
        /// Index of the movement settings in force, in the log's rules.
        Status move_vars: u16 as Name,
        /// Whether the player stood on walkable ground after the last step.
        ClientOnly on_ground: bool,
        /// Whether jump has been held since it was pressed.
        ClientOnly jump_held: bool,
        /// Whether the player is dead and has finished falling.
        ClientOnly corpse: bool,
        /// Whether the server turned the view and has not sent it yet.
        ClientOnly view_fixed: bool,
        /// Water level: 0 dry, 1 feet, 2 waist, 3 eyes.
        ClientOnly water_level: u8,
        /// Kind of liquid: 0 for none, otherwise the map's contents number times -1, less 1.
        ClientOnly liquid: u32 as Name,
        /// Remaining time in seconds during which the player cannot steer.
        ClientOnly water_jump_s: f32 as Time("s"),
        /// Upward speed at the end of the last usercmd, in units/s.
        ClientOnly fall_speed: f32 as Velocity,
    }
}

/// The bits of [`QuakeWorldBody::flags`].
pub mod flag {
    /// The body is a gibbed head. The game's box of a head starts at its origin, that of a player 24 units below. The
    /// importer raises the recording player's head by 24 units, so that both move with one box.
    pub const GIB: u32 = 1;
    /// The last usercmd is known.
    pub const COMMAND: u32 = 2;
    /// The server reports whether jump is held.
    pub const JUMP_TOLD: u32 = 4;
    /// Jump is held, according to the server.
    pub const JUMP_HELD: u32 = 8;
    /// The player cannot move, according to the server.
    pub const FIXED: u32 = 16;
    /// The server sends origins as floats.
    pub const FLOAT_ORIGIN: u32 = 32;
    /// The server rounds origins to the nearest 1/8 unit. Without this flag and `FLOAT_ORIGIN` it truncates them.
    pub const ROUNDED_ORIGIN: u32 = 64;
    /// The level is over.
    pub const OVER: u32 = 256;
    /// A brush model that the packet lacks; its position is interpolated.
    pub const UNSENT: u32 = 4096;
    /// The entity is a brush model.
    pub const MODEL: u32 = 2048;
    /// The player is a bot that the game runs without a client.
    pub const BOT: u32 = 1024;
    /// The player is dead and has finished falling, as the server shows.
    pub const LIES: u32 = 512;
}

impl QuakeWorldBody {
    /// Returns the recording player's body.
    pub(crate) fn of_own(own: &OwnState, wire: OriginWire) -> QuakeWorldBody {
        let wire = match wire {
            OriginWire::Cut => 0,
            OriginWire::Rounded => flag::ROUNDED_ORIGIN,
            OriginWire::Float => flag::FLOAT_ORIGIN,
        };
        let jump = match own.jump_held {
            None => 0,
            Some(false) => flag::JUMP_TOLD,
            Some(true) => flag::JUMP_TOLD | flag::JUMP_HELD,
        };
        QuakeWorldBody {
            origin: Vec3::from_array(own.origin),
            velocity: Vec3::from_array(own.velocity.map(f32::from)),
            alive: !own.dead,
            flags: wire
                | jump
                | bit(own.gib, flag::GIB)
                | bit(!own.movable, flag::FIXED)
                | bit(own.over, flag::OVER)
                | bit(own.lies, flag::LIES),
            ..QuakeWorldBody::default()
        }
    }

    /// Returns another player's body.
    pub(crate) fn of_other(other: &OtherPlayer) -> QuakeWorldBody {
        let command = other.command.unwrap_or_default();
        QuakeWorldBody {
            origin: Vec3::from_array(other.origin),
            velocity: Vec3::from_array(other.velocity.map(f32::from)),
            viewangles: Vec3::from_array(other.angles),
            alive: !other.dead,
            flags: bit(other.bot, flag::BOT) | bit(other.gib, flag::GIB) | bit(other.command.is_some(), flag::COMMAND),
            age_ms: other.age_ms,
            command_msec: command.msec,
            forwardmove: i32::from(command.forward),
            sidemove: i32::from(command.side),
            upmove: i32::from(command.up),
            buttons: command.buttons,
            impulse: command.impulse,
            ..QuakeWorldBody::default()
        }
    }

    /// Returns a brush model's body.
    pub(crate) fn of_mover(mover: &Mover) -> QuakeWorldBody {
        QuakeWorldBody {
            origin: Vec3::from_array(mover.origin),
            alive: true,
            flags: flag::MODEL,
            ..QuakeWorldBody::default()
        }
    }

    /// Returns the last usercmd that the server ran for another player, if known.
    pub(crate) fn last_command(&self) -> Option<QuakeWorldUsercmd> {
        self.has(flag::COMMAND).then(|| QuakeWorldUsercmd {
            msec: self.command_msec,
            angles: self.viewangles.to_array(),
            forward: self.forwardmove as i16,
            side: self.sidemove as i16,
            up: self.upmove as i16,
            buttons: self.buttons,
            impulse: self.impulse,
        })
    }

    /// Returns the body in the form that movement uses.
    pub(crate) fn player_state(&self) -> QuakeWorldPlayerState {
        QuakeWorldPlayerState {
            origin: self.origin.to_array(),
            velocity: self.velocity.to_array(),
            water_jump_s: self.water_jump_s,
            jump_held: if self.has(flag::JUMP_TOLD) { self.has(flag::JUMP_HELD) } else { self.jump_held },
            dead: !self.alive,
            corpse: self.corpse,
            on_ground: self.on_ground,
            over: self.has(flag::OVER),
            view_fixed: self.view_fixed,
            fall_speed: self.fall_speed,
            water_level: self.water_level,
            water_type: EMPTY.saturating_sub_unsigned(self.liquid),
        }
    }

    /// Returns the body after movement changed it to `state`. The state is newer than what the server last reported on
    /// jump.
    pub(crate) fn moved(&self, state: &QuakeWorldPlayerState) -> QuakeWorldBody {
        QuakeWorldBody {
            origin: Vec3::from_array(state.origin),
            velocity: Vec3::from_array(state.velocity),
            alive: !state.dead,
            flags: self.flags & !(flag::JUMP_TOLD | flag::JUMP_HELD),
            on_ground: state.on_ground,
            jump_held: state.jump_held,
            corpse: state.corpse,
            view_fixed: state.view_fixed,
            water_level: state.water_level,
            liquid: EMPTY.abs_diff(state.water_type),
            water_jump_s: state.water_jump_s,
            fall_speed: state.fall_speed,
            ..*self
        }
    }

    /// Returns how the server sent this body's origin.
    pub(crate) fn origin_wire(&self) -> OriginWire {
        if self.has(flag::FLOAT_ORIGIN) {
            OriginWire::Float
        } else if self.has(flag::ROUNDED_ORIGIN) {
            OriginWire::Rounded
        } else {
            OriginWire::Cut
        }
    }

    /// Returns whether the level is over.
    pub(crate) fn over(&self) -> bool {
        self.has(flag::OVER)
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether position and velocity are finite, so that movement can run.
    pub(crate) fn is_finite(&self) -> bool {
        self.origin.is_finite() && self.velocity.is_finite()
    }
}

/// Converts a usercmd to the pipelines' form.
pub(crate) fn input_of(cmd: &QuakeWorldUsercmd) -> Input {
    Input {
        msec: cmd.msec,
        viewangles: Vec3::from_array(cmd.angles),
        forwardmove: f32::from(cmd.forward),
        sidemove: f32::from(cmd.side),
        upmove: f32::from(cmd.up),
        buttons: u16::from(cmd.buttons),
        impulse: cmd.impulse,
        ..Input::default()
    }
}

/// Converts a usercmd back; the inverse of [`input_of`].
pub(crate) fn command_of(input: &Input) -> QuakeWorldUsercmd {
    QuakeWorldUsercmd {
        msec: input.msec,
        angles: input.viewangles.to_array(),
        forward: input.forwardmove as i16,
        side: input.sidemove as i16,
        up: input.upmove as i16,
        buttons: input.buttons as u8,
        impulse: input.impulse,
    }
}

fn bit(set: bool, bit: u32) -> u32 {
    if set { bit } else { 0 }
}
