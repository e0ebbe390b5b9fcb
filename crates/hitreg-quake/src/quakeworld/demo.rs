//! Demos: the content of a recording, as sent usercmds and received packets in typed form. It contains neither names nor
//! chat. [`QuakeWorldDemo::parse`] reads `.qwd` and `.mvd` files.

mod entities;
mod gather;
mod mvd;
mod players;
mod qwd;
mod svc;
mod wire;

use serde::{Deserialize, Serialize};

use super::movement::{Dialect, QuakeWorldMoveVars, QuakeWorldUsercmd};

/// A complete recording. [`QuakeWorldDemo::parse`] creates it, and all its indices are valid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuakeWorldDemo {
    /// Who made the recording.
    pub recorded_by: RecordedBy,
    /// The server's version and rules.
    pub server: ServerDescription,
    /// The levels played, in order, all on one map; packets refer to them by index.
    pub levels: Vec<DemoLevel>,
    /// Usercmds in sending order; their sequence numbers increase by one.
    pub commands: Vec<SentCommand>,
    /// Packets in arrival order.
    pub packets: Vec<ServerPacket>,
    /// Movement settings in the order of their use; packets refer to them by index.
    pub move_vars: Vec<QuakeWorldMoveVars>,
    /// Damage events, from a server's recording.
    pub hits: Vec<DemoHit>,
    /// Usercmds that the server ran, if its recording has them.
    pub executed: Vec<ExecutedUsercmd>,
    /// What the file holds of levels on other maps.
    pub other_levels: OtherLevels,
    /// Why the recording ends.
    pub end: DemoEnd,
    /// Truncation of the file, or its first damaged frame, if any.
    pub cut: Option<DemoCut>,
    /// The damage in that frame, unless the file is truncated.
    pub damage: Option<QwdError>,
    /// Offset of the bytes after the end of the demo, if any, in the uncompressed file.
    pub after_end: Option<usize>,
    /// Number of packets that ack usercmds which the demo does not have yet. Frames before them are missing.
    pub acks_ahead: u64,
    /// Number of frames whose times ran backward or jumped, and were replaced.
    pub repaired_times: u64,
}

/// A usercmd that the server ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutedUsercmd {
    /// The player's slot.
    pub slot: u8,
    /// Index of the packet that shows its result.
    pub packet: u32,
    /// The usercmd.
    pub cmd: QuakeWorldUsercmd,
}

/// Who made a recording, which determines its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedBy {
    /// A player: the recording has its usercmds and the resulting own states.
    #[default]
    Player,
    /// A spectator: the recording has only the other players' states.
    Spectator,
    /// The server: the recording has all players' states.
    Server,
}

/// The content of a demo that belongs to levels on other maps than the first played one. It is not read into types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherLevels {
    /// The number of levels.
    pub levels: u64,
    /// The number of packets.
    pub packets: u64,
    /// The number of usercmds.
    pub usercmds: u64,
}

/// A damage event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoHit {
    /// Index of the packet at that time.
    pub packet: u32,
    /// Slot of the attacker; `None` if no player caused the damage.
    pub attacker: Option<u8>,
    /// Slot of the victim.
    pub victim: u8,
    /// Damage in points.
    pub damage: u16,
}

/// The part of a file that is not read: from its truncation, inside a frame or inside its compressed data, or from its
/// first damaged frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoCut {
    /// Offset of the incomplete or damaged frame in the uncompressed file; everything before it is complete.
    pub offset: usize,
    /// Number of bytes from there on; 0 is possible for compressed files.
    pub bytes: usize,
}

impl QuakeWorldDemo {
    /// Returns the index range of the commands after `after`, up to and including `until`.
    pub fn commands_between(&self, after: i32, until: i32) -> std::ops::Range<usize> {
        let at = |seq: i32| self.commands.partition_point(|sent| sent.seq <= seq);
        at(after)..at(until).max(at(after))
    }

    /// Returns the total milliseconds of those commands.
    pub fn msec_between(&self, after: i32, until: i32) -> u32 {
        self.commands[self.commands_between(after, until)].iter().map(|sent| u32::from(sent.cmd.msec)).sum()
    }
}

/// Properties of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// `*version` of the server info, such as `2.30` or `MVDSV 1.20-dev`; empty when the server sent none.
    pub version: String,
    /// Extensions that change the layout of messages.
    pub extensions: Extensions,
    /// Optional behaviours.
    pub server_extensions: ServerExtensions,
    /// The movement code that the server runs.
    pub dialect: Dialect,
}

impl ServerDescription {
    /// Returns how this server sends origins.
    pub fn origin_wire(&self) -> OriginWire {
        match self.dialect {
            _ if self.extensions.float_origins() => OriginWire::Float,
            Dialect::Classic { .. } => OriginWire::Cut,
            Dialect::Reworked { .. } => OriginWire::Rounded,
        }
    }
}

/// One level of the recording. When a server restarts its level, a new one with the same map begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemoLevel {
    /// File of the map, such as `maps/dm3.bsp`; empty until the server names it.
    pub map: String,
    /// The recording player's slot, 0 to 31.
    pub player: u8,
}

/// A usercmd as the client sent it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentCommand {
    /// Sequence number of its packet; the first numbers of the handshake can be below 1.
    pub seq: i32,
    /// Client time, in seconds.
    pub time_s: f32,
    /// The input.
    pub cmd: QuakeWorldUsercmd,
}

/// A server packet that the client accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPacket {
    /// Client time of arrival, in seconds.
    pub time_s: f32,
    /// The server's sequence number.
    pub sequence: u32,
    /// Index of the level.
    pub level: u16,
    /// The newest usercmd that the server had received.
    pub ack: i32,
    /// The recording player's state; `None` before spawning, or if the packet carries no entities.
    pub own: Option<OwnState>,
    /// Other visible players.
    pub others: Vec<OtherPlayer>,
    /// Visible brush models.
    pub movers: Vec<Mover>,
    /// Events since the previous packet.
    pub events: Vec<DemoEvent>,
    /// Index of the movement settings in force after this packet.
    pub move_vars: u16,
}

/// The own player's state in a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnState {
    /// Origin in units; multiples of 1/8 unless floats were negotiated. It refers to a standing box, also for a head.
    pub origin: [f32; 3],
    /// Velocity in whole units/s, truncated toward zero by the server.
    pub velocity: [i16; 3],
    /// Whether the player is dead.
    pub dead: bool,
    /// Whether the body is a gibbed head, whose box differs.
    pub gib: bool,
    /// Whether the player is dead and has finished falling: the last frame of a death is shown, or the body is a head.
    pub lies: bool,
    /// Whether jump is held, if the server reports it.
    pub jump_held: Option<bool>,
    /// Whether the player can move, if the server reports it; otherwise true.
    pub movable: bool,
    /// Whether the level is over. Players then see an intermission, and nothing acts on them.
    pub over: bool,
}

/// Another player as the server sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OtherPlayer {
    /// Slot, 0 to 31.
    pub slot: u8,
    /// Origin in units.
    pub origin: [f32; 3],
    /// Velocity in whole units/s. In a server's recording it is derived from consecutive positions.
    pub velocity: [i16; 3],
    /// Pitch, yaw and roll of the last usercmd in degrees, as far as known.
    pub angles: [f32; 3],
    /// Age of the state when it was sent, in ms (255 means that or more).
    pub age_ms: u8,
    /// Whether the player is dead. Dead players do not block.
    pub dead: bool,
    /// Whether the body is a gibbed head.
    pub gib: bool,
    /// The last usercmd that the server ran for this player; fire is never set.
    pub command: Option<QuakeWorldUsercmd>,
    /// Whether the player is a bot without a client: only its position is known, and it is always alive.
    pub bot: bool,
}

/// A brush model (door, lift, ...) as the server sent it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mover {
    /// Submodel number in the map, from 1.
    pub model: u16,
    /// Displacement from its position in the map, in units.
    pub origin: [f32; 3],
}

/// An event in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum DemoEvent {
    /// The player took damage.
    Damage {
        /// Lost armour, in points.
        armor: u8,
        /// Lost health, in points.
        health: u8,
        /// Centre of the damage source, in units.
        from: [f32; 3],
    },
    /// The server turned the view: a teleporter, a spawn or an intermission.
    SetAngle {
        /// Pitch, yaw and roll in degrees.
        angles: [f32; 3],
    },
    /// Number of packets that the server skipped because of the rate limit.
    Choked(u8),
    /// The level is over; bodies no longer move.
    Intermission,
    /// The game was paused or resumed.
    Pause(bool),
    /// The player's new health.
    Health(i16),
    /// Lost armour, in points.
    ArmorLost(i16),
    /// A short-lived visual effect.
    Effect {
        /// Kind of the effect.
        kind: EffectKind,
        /// Position, in units.
        origin: [f32; 3],
    },
}

/// Kinds of short-lived effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectKind {
    /// A rocket or grenade exploded.
    Explosion,
    /// A player arrived through a teleporter or spawned.
    Teleport,
    /// A pellet or nail hit a body.
    Blood,
    /// Lightning hit a body.
    LightningBlood,
    /// A shot hit a wall. Some games show explosions this way.
    Gunshot,
}

/// Why a demo ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DemoEnd {
    /// The file ends.
    #[default]
    File,
    /// The client stopped recording, or the server dropped it.
    Disconnect,
}

/// Extension flags in force. All zero is the original protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extensions {
    /// FTE's first word.
    pub fte: u32,
    /// FTE's second word.
    pub fte2: u32,
    /// MVDSV's word.
    pub mvd1: u32,
}

/// An extension that the reader knows: an MVDSV flag, or one of FTE's first word. Other flags either do not affect a
/// client demo, or lead to a [`super::QwdError`] that names the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Entities with a transparency.
    Transparency = 0x0000_0008,
    /// More than 256 models.
    Models = 0x0000_1000,
    /// Every coordinate is a float, and every angle has 16 bits.
    FloatCoords = 0x0000_8000,
    Colour = 0x0008_0000,
    SpawnStatic = 0x0040_0000,
    ChunkedDownloads = 0x2000_0000,
}

impl Extensions {
    const MVD1_FLOAT_COORDS: u32 = 1;
    const HIGH_LAG_TELEPORT: u32 = 2;
    const WEAPON_PREDICTION: u32 = 1 << 7;

    /// Returns whether an extension of FTE is in force.
    pub(crate) fn has(self, extension: Extension) -> bool {
        self.fte & extension as u32 != 0
    }

    /// Returns whether origins of players and entities are floats, while other coordinates stay short.
    pub fn float_origins(self) -> bool {
        self.mvd1 & Self::MVD1_FLOAT_COORDS != 0 || self.has(Extension::FloatCoords)
    }
}

/// Optional behaviours that a server announces as `*z_ext` in its server info.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerExtensions(pub u32);

impl ServerExtensions {
    /// Returns whether the player's flags report a held jump.
    pub fn says_jump_held(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Step of an encoded origin, in units.
pub(crate) const ORIGIN_STEP: f32 = 0.125;

/// How a server rounds an origin before it sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginWire {
    /// Truncated toward zero, to 1/8 unit (id's servers).
    Cut,
    /// Rounded to the nearest 1/8 unit (ZQuake and its descendants).
    Rounded,
    /// Sent as a float.
    Float,
}

impl OriginWire {
    /// Returns the range of values that `wire` can stand for.
    pub(crate) fn cell(self, wire: f32) -> (f32, f32) {
        match self {
            OriginWire::Cut => cut_cell(wire, ORIGIN_STEP),
            OriginWire::Rounded => (wire - ORIGIN_STEP * 0.499, wire + ORIGIN_STEP * 0.499),
            OriginWire::Float => (wire, wire),
        }
    }
}

/// Returns the range of values that truncate toward zero to `wire` in steps of `step`.
pub(crate) fn cut_cell(wire: f32, step: f32) -> (f32, f32) {
    let inner = step * 0.999;
    match wire {
        w if w > 0.0 => (w, w + inner),
        w if w < 0.0 => (w - inner, w),
        _ => (-inner, inner),
    }
}

/// Why a demo could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QwdError {
    /// The file ends inside a frame, or a message ends inside a value.
    #[error("byte {offset}: the data ends in the middle of a value")]
    Truncated {
        /// Offset of the value.
        offset: usize,
    },
    /// The file has something that no demo of QuakeWorld has.
    #[error("byte {offset}: {problem}")]
    Invalid {
        /// Offset of the value at fault.
        offset: usize,
        /// The problem.
        problem: String,
    },
    /// A proxy took the server's place in the recording.
    #[error("byte {offset}: this demo was recorded through the proxy {name}: its acks are not the server's")]
    Proxy {
        /// Offset of the message that shows it.
        offset: usize,
        /// The proxy.
        name: &'static str,
    },
    /// The file contains no game: no server data, or no player.
    #[error("this demo has no {missing}, so there is nothing to import")]
    Nothing {
        /// The missing part.
        missing: &'static str,
    },
}

impl QwdError {
    fn invalid(offset: usize, problem: impl Into<String>) -> QwdError {
        QwdError::Invalid { offset, problem: problem.into() }
    }

    /// Returns the error for a number that must be below `limit`.
    fn out_of_bounds(offset: usize, what: &str, value: impl Into<i64>, limit: impl Into<i64>) -> QwdError {
        let (value, limit) = (value.into(), limit.into());
        QwdError::invalid(offset, format!("{what} is {value}, and must be below {limit}"))
    }

    fn not_finite(offset: usize, what: &str) -> QwdError {
        QwdError::invalid(offset, format!("{what} is not a finite number"))
    }

    /// Returns the error for a message that QuakeWorld 2.x and its known extensions do not define.
    fn unknown_message(offset: usize, kind: u8) -> QwdError {
        let problem = format!("{kind} is not a known message: the demo is damaged, or of a modified protocol");
        QwdError::invalid(offset, problem)
    }
}

/// What a reader of a demo returns.
type QwdResult<T = ()> = Result<T, QwdError>;
