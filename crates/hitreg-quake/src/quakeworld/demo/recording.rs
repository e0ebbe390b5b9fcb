//! What a client demo holds once it is read: the usercmds as sent and the server's packets as received, in typed form.
//! Names and chat never get this far.

use serde::{Deserialize, Serialize};

use super::origin_wire::OriginWire;
use super::protocol::{Extensions, ServerExtensions};
use crate::quakeworld::movement::UserCmd;
use crate::quakeworld::movement::{Dialect, MoveVars};

/// A whole recording. [`Demo::parse`] makes it, and every index in it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Demo {
    /// Who recorded.
    pub by: RecordedBy,
    /// Which server, which rules.
    pub server: Server,
    /// The levels played, in order; packets refer to them by index.
    pub levels: Vec<Level>,
    /// Usercmds in the order of sending; sequence numbers rise by one.
    pub commands: Vec<SentCommand>,
    /// Packets in the order of arrival.
    pub packets: Vec<ServerPacket>,
    /// States of other players, packet by packet; see [`ServerPacket::others`].
    pub others: Vec<OtherPlayer>,
    /// Brush models in sight, packet by packet; see [`ServerPacket::movers`].
    pub movers: Vec<Mover>,
    /// What happened, packet by packet; see [`ServerPacket::events`].
    pub events: Vec<Event>,
    /// Movement rules in the order in which they came into force; packets refer to them by index.
    pub move_vars: Vec<MoveVars>,
    /// Who was hurt by whom: a server's recording tells.
    pub hits: Vec<Hit>,
    /// Usercmds that a server ran, where its recording tells: whose, and the packet in whose time it was.
    pub ran: Vec<(u8, u32, UserCmd)>,
    /// Why the recording stops where it does.
    pub end: DemoEnd,
    /// What is missing of the file.
    pub cut: Option<Cut>,
}

/// Who made a recording, and so what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedBy {
    /// A player: usercmds, and states of its own that they led to.
    #[default]
    Player,
    /// Somebody who watched: the others' states alone.
    Spectator,
    /// The server: all players' states.
    Server,
}

/// One player hurt another, or somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Index of the packet in whose time it was.
    pub packet: u32,
    /// Slot; none where no player did it.
    pub attacker: Option<u8>,
    /// Slot.
    pub victim: u8,
    /// Points.
    pub damage: u16,
}

/// A file that stops inside a frame, or was packed and cut off then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where that frame begins, as unpacked: everything before it is there.
    pub offset: usize,
    /// How many bytes of it are there; of what was packed, there may be none.
    pub bytes: usize,
}

impl Demo {
    /// The commands sent after `after`, up to and with `until`, as indices into the list; empty if there are none.
    pub fn commands_between(&self, after: i32, until: i32) -> std::ops::Range<usize> {
        let at = |seq: i32| self.commands.partition_point(|sent| sent.seq <= seq);
        at(after)..at(until).max(at(after))
    }

    /// Milliseconds of those commands.
    pub fn msec_between(&self, after: i32, until: i32) -> u32 {
        self.commands[self.commands_between(after, until)].iter().map(|sent| u32::from(sent.cmd.msec)).sum()
    }
}

/// What the server said of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// `*version` of the server info, such as `2.30` or `MVDSV 1.20-dev`; empty when it sent none.
    pub version: String,
    /// How messages are laid out.
    pub extensions: Extensions,
    /// Optional behaviours.
    pub server_extensions: ServerExtensions,
    /// Which movement code the server runs.
    pub dialect: Dialect,
}

impl Server {
    /// How origins stand on this server's wire.
    pub fn origin_wire(&self) -> OriginWire {
        match self.dialect {
            _ if self.extensions.float_origins() => OriginWire::Float,
            Dialect::Classic { .. } => OriginWire::Cut,
            Dialect::Reworked { .. } => OriginWire::Rounded,
        }
    }
}

/// One level of the recording. A server that restarts its level starts another one with the same map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The map's file, such as `maps/dm3.bsp`; empty while the server has not named it.
    pub map: String,
    /// The recording player's slot, 0 to 31.
    pub player: u8,
}

/// A usercmd as it left the client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentCommand {
    /// Sequence number of its packet; the handshake's first can be below 1.
    pub seq: i32,
    /// Client time, in seconds.
    pub time_s: f32,
    /// The input.
    pub cmd: UserCmd,
}

/// A half-open range into one of the demo's flat lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First index.
    pub start: u32,
    /// One past the last index.
    pub end: u32,
}

impl Span {
    /// The items of `list` in this range; none where the range does not fit.
    pub fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start as usize..self.end as usize).unwrap_or(&[])
    }
}

/// One server packet that the client accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerPacket {
    /// Client time of arrival, in seconds.
    pub time_s: f32,
    /// The server's sequence number.
    pub sequence: u32,
    /// Index of the level that it is about.
    pub level: u16,
    /// The last usercmd that the server had received.
    pub ack: i32,
    /// The recording player's state; none before spawning or when the packet carries no entities.
    pub own: Option<OwnState>,
    /// Other players in sight.
    pub others: Span,
    /// Brush models in sight.
    pub movers: Span,
    /// What happened since the last packet.
    pub events: Span,
    /// Index of the movement rules in force after this packet.
    pub move_vars: u16,
}

/// A player state as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnState {
    /// Units; multiples of 1/8 but where floats were negotiated. Always that of a standing box, a head's too.
    pub origin: [f32; 3],
    /// Whole units/s, truncated toward zero by the server.
    pub velocity: [i16; 3],
    /// No health left.
    pub dead: bool,
    /// The body is a head: its box differs.
    pub gib: bool,
    /// Dead and done falling: the last frame of a death is shown, or the body is a head.
    pub lies: bool,
    /// Whether jump is held, where the server says so.
    pub jump_held: Option<bool>,
    /// Whether the player can move at all, where the server says so.
    pub movable: bool,
    /// The level is over: players are shown an intermission, and nothing touches anybody any more.
    pub over: bool,
}

/// Another player as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherPlayer {
    /// Slot, 0 to 31.
    pub slot: u8,
    /// Units.
    pub origin: [f32; 3],
    /// Whole units/s. A server's recording does not tell it: it is what the places before and after say.
    pub velocity: [i16; 3],
    /// Pitch, yaw, roll in degrees: of the last usercmd, as far as that is known.
    pub angles: [f32; 3],
    /// How old the state was when sent, in ms (255 means that or more).
    pub age_ms: u8,
    /// No health left: does not block.
    pub dead: bool,
    /// The body is a head.
    pub gib: bool,
    /// The last usercmd that the server ran for this player; fire is never set.
    pub command: Option<UserCmd>,
    /// Run by the game itself, without a client: only the place is known, and it is always alive.
    pub bot: bool,
}

/// A brush model (door, lift, ...) as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mover {
    /// Submodel number in the map, from 1.
    pub model: u16,
    /// Displacement from the place where the map has it, in units.
    pub origin: [f32; 3],
}

/// Something that a packet tells beside states.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The player was hurt: points taken by armour and by health, and where from.
    Damage {
        /// Points the armour took.
        armor: u8,
        /// Points the health took.
        health: u8,
        /// Middle of what hurt, in units.
        from: [f32; 3],
    },
    /// The server turned the view: a teleporter, a spawn, an intermission.
    SetAngle {
        /// Pitch, yaw, roll in degrees.
        angles: [f32; 3],
    },
    /// The server left out this many packets for want of bandwidth.
    Choked(u8),
    /// The level is over; bodies no longer move.
    Intermission,
    /// The game stands still, or goes on.
    Pause(bool),
    /// The player's health, when it changed.
    Health(i16),
    /// The player's armour has become so many points less.
    ArmorLost(i16),
    /// Something flashed, flew apart or bled.
    Effect {
        /// What.
        kind: EffectKind,
        /// Where, in units.
        origin: [f32; 3],
    },
}

/// Which short-lived effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectKind {
    /// A rocket or grenade went off.
    Explosion,
    /// Somebody arrived through a teleporter, or spawned.
    Teleport,
    /// A pellet or nail hit a body.
    Blood,
    /// Lightning hit a body.
    LightningBlood,
    /// Shot hit a wall. Some games let players see explosions so.
    Gunshot,
}

/// Why a demo stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DemoEnd {
    /// The file is over.
    File,
    /// The client stopped recording or the server dropped it.
    Disconnect,
}
