//! The record types of a session, independent of any game's types and of the storage format.
//!
//! A game's own data is opaque here: its rules are bytes, and its entity states are rows of 32-bit cells whose names
//! are in the header. All times are session times unless a field says otherwise.

mod header;
mod outline;
mod schema;
mod session;
mod state;
mod stream;
mod texts;
mod unanswered;
mod unknown;

use glam::Vec3;
use serde::{Deserialize, Serialize};

pub use header::{
    LogContents, Origin, PlayerInfo, RecordedSide, SessionHeader, SessionId, StoredRules, player_of, split_of_player,
    value_of_setting,
};
pub use outline::{Outline, PlayerOutline, leave_times, lowest_and_highest, widest};
pub(crate) use schema::is_frames_column;
pub use schema::{
    CellKind, Class, ClassId, FieldSchema, Meaning, Scope, TakenName, cells_of, floats_of, usercmd_fields,
};
pub(crate) use session::BEGINS_AFTER_TICK;
pub use session::{MisplacedRecord, Session, SessionChunk};
pub use state::{RecentChunkStates, StateKey, StateRecord, StateSource, States, viewer_specific_fields};
pub(crate) use stream::OF_SESSION;
pub use stream::{ClockOwner, EventTime, OF_PLAYERS, PlayerRecords, Record, RecordStream, RecordType, each_stream};
pub use texts::{SESSION_TEXT_BYTES_MAX, TextCode, TextError, Texts};
pub use unanswered::{ReplayScope, UnansweredSettings};
pub use unknown::{CustomRow, NumberForm, OwnValue, UnknownColumn, UnknownKind, UnknownRecords};

use crate::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick, named};
use crate::usercmd::Usercmd;

/// One client frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameRecord {
    /// Time at which the client made the usercmd.
    pub at: Micros,
    /// The usercmd.
    pub command: Usercmd,
    /// Bytes that the application adds to the usercmd, if [`SessionHeader::usercmd_bytes`].
    pub bytes: Box<[u8]>,
}

/// One packet from a client. It carries the usercmds `newest - count + 1 ..= newest`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRecord {
    /// Packet number, counted per client from 1.
    pub number: u32,
    /// Send time.
    pub at: Micros,
    /// The newest usercmd in it.
    pub newest: CommandSeq,
    /// Number of usercmds in it: the newest and repeats of those before it.
    pub count: u8,
    /// The newest snapshot that the client had received.
    pub ack: SnapshotSeq,
    /// Total bytes of its datagrams, with seals, without UDP/IP headers; 0 if unknown. Nominal if `wire.sizes` says so.
    pub bytes: u16,
}

/// The arrival of a packet. A duplicated packet arrives twice, a lost one never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Number of the packet: [`PacketRecord::number`] or [`SnapshotRecord::seq`].
    pub number: u32,
    /// Arrival time.
    pub at: Micros,
}

/// The most usercmds in a recorded packet. The wire format has room for half as many.
pub const HEARD_COMMANDS_MAX: usize = 32;

/// One packet from a client as the server received it, with its claims unchecked. Such packets let a server's log replay
/// without the clients' logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeardRecord {
    /// Packet number, as in its [`ArrivalRecord`].
    pub number: u32,
    /// Arrival time.
    pub at: Micros,
    /// The newest snapshot that the client acks.
    pub ack: SnapshotSeq,
    /// Acks of the 32 snapshots before that, one bit each; the lowest bit is the snapshot just before.
    pub received_before: u32,
    /// Its usercmds, oldest first, with consecutive numbers.
    pub commands: Vec<Usercmd>,
}

impl HeardRecord {
    /// Returns whether a log can hold the packet: at most [`HEARD_COMMANDS_MAX`] usercmds with consecutive numbers.
    pub(crate) fn is_sound(&self) -> bool {
        let follows = |pair: &[Usercmd]| pair[0].seq.0.checked_add(1) == Some(pair[1].seq.0);
        self.commands.len() <= HEARD_COMMANDS_MAX && self.commands.windows(2).all(follows)
    }

    /// Returns the number of its newest usercmd; 0 without usercmds.
    pub(crate) fn newest(&self) -> CommandSeq {
        self.commands.last().map(|command| command.seq).unwrap_or_default()
    }
}

/// How the server handled one usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionRecord {
    /// The usercmd.
    pub command: CommandSeq,
    /// The tick in which the usercmd was due.
    pub tick: Tick,
    /// The result.
    pub how: Execution,
}

named! {
    /// How the server handled a usercmd.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Execution {
        /// The server ran it.
        #[default]
        Run = "run",
        /// It never arrived; the server ran the previous usercmd again in its place.
        StoodIn = "stood_in",
        /// It never arrived, and the server ran nothing in its place.
        Missing = "missing",
        /// It arrived after a later usercmd had run, and the server dropped it.
        Late = "late",
        /// The player had used up the simulation time that the server allows.
        OverBudget = "over_budget",
    }
}

/// A snapshot that the server sent to a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotRecord {
    /// Snapshot number, counted per client from 1.
    pub seq: SnapshotSeq,
    /// The tick whose state it carries.
    pub tick: Tick,
    /// Send time at the server. An imported recording does not know it and has the arrival time instead.
    pub at: Micros,
    /// The server time in the snapshot.
    pub server_time: Micros,
    /// The newest usercmd that had run, was refused or was given up.
    pub ack: CommandSeq,
    /// Total bytes of its datagrams, with seals, without UDP/IP headers; 0 if unknown. Nominal if `wire.sizes` says so.
    pub bytes: u16,
    /// Number of updates that the client's rate limit held back before this one.
    pub choked: u8,
    /// The entities in it, ascending. Their states are the [`StateRecord`]s of the tick: those for
    /// this client if there are any, otherwise the shared ones.
    pub entities: Vec<EntityId>,
    /// Sounds and visual effects in the snapshot.
    pub effects: Vec<Effect>,
    /// Other data of the game (messages, changed movement constants), opaque.
    pub extra: Vec<u8>,
    /// Feedback on the client's timing, where usercmds run on their tick. Boxed, because most sessions have none and
    /// records are moved often.
    pub timing: Option<Box<Timing>>,
}

/// A snapshot's feedback on when the client's input arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many milliseconds before its tick the client's input arrives; `None` while the server does not know.
    pub helper_ms: Option<i16>,
    /// Usercmds that arrived too late or too early to run on their tick.
    pub warnings: Vec<OutOfSequence>,
}

impl Timing {
    /// Returns `None` when there is no feedback.
    pub fn new(helper_ms: Option<i16>, warnings: Vec<OutOfSequence>) -> Option<Box<Timing>> {
        let says = helper_ms.is_some() || !warnings.is_empty();
        says.then(|| Box::new(Timing { helper_ms, warnings }))
    }
}

/// NeREIDS's `OUT_OF_SEQ_WARNING`: a usercmd arrived after its tick or too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSequence {
    /// The newest usercmd of the packet.
    pub command: CommandSeq,
    /// Number of ticks by which the usercmd was ahead of the server's next tick. Below 0 it was too late; by more than
    /// 1.024 s it was too early.
    pub difference: i16,
}

/// The end of a server tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickRecord {
    /// The tick.
    pub tick: Tick,
    /// Server time of the tick.
    pub at: Micros,
    /// Hash of the state after the tick; `None` for a tick without one. A hash of 0 is none, and logs do not keep it.
    pub hash: Option<u64>,
}

impl RecordType for ExecutionRecord {
    fn when(&self) -> EventTime {
        EventTime::In(self.tick)
    }
}

/// A player joined or left the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceRecord {
    /// The first tick with the player, or the first without.
    pub tick: Tick,
    /// Time of the change.
    pub at: Micros,
    /// Whether the player joined or left.
    pub change: Presence,
}

named! {
    /// Whether a player joined or left.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Presence {
        /// The player joined.
        #[default]
        Joined = "joined",
        /// The player left.
        Left = "left",
    }
}

/// A shot, as the shooter's client predicted it or as the server judged it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShotRecord {
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// Time of the client frame, or of the server's tick.
    pub at: Micros,
    /// Index among the shots of that usercmd, from 0; impacts have indices of their own. Shots of one usercmd with one
    /// index get the next free ones in tables.
    pub index: u8,
    /// The result.
    pub reason: HitResult,
    /// The entity that was hit, or that took the most damage; `None` for a miss.
    pub target: Option<EntityId>,
    /// The part of the body that was hit, in the game's numbering.
    pub hitgroup: u8,
    /// Damage of the hit, in health points.
    pub damage: i32,
    /// How far the server rewound the targets for this shot; zero for a prediction.
    pub rewound: Micros,
    /// The name of the weapon, from [`Stream::text`](crate::recorder::Stream::text); the empty text if unknown.
    pub weapon: TextCode,
    /// Whether this is the impact of a projectile, which a shot of the same usercmd launched.
    pub impact: bool,
    /// Number of pellets that hit, in one record for all pellets of a shot; `None` if the game does not count them.
    pub pellets: Option<u8>,
}

named! {
    /// The result of a shot.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum HitResult {
        /// It hit a target.
        Hit = "hit",
        /// The map blocked a shot that would have hit a target.
        HitWorld = "hit the world",
        /// Its line meets no target.
        #[default]
        Missed = "missed",
        /// It hit a target that is already dead at present; no damage.
        AlreadyDead = "already dead",
        /// It launched a projectile; the impact has its own record.
        Launched = "launched",
    }
}

/// An entity lost health.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DamageRecord {
    /// The tick of the damage.
    pub tick: Tick,
    /// Time of that tick.
    pub at: Micros,
    /// The entity that lost health.
    pub victim: EntityId,
    /// The player who caused it; `None` for other causes, such as a fall.
    pub attacker: Option<PlayerId>,
    /// Lost health points.
    pub amount: i32,
    /// The name of the weapon, from [`Stream::text`](crate::recorder::Stream::text); the empty text if unknown.
    pub weapon: TextCode,
    /// Armour points lost besides the health; `None` if the game has no armour.
    pub armour: Option<u16>,
    /// The push of the damage, as the change of the victim's velocity in units/s; `None` if unknown.
    pub force: Option<Vec3>,
}

/// A span with missing records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    /// Time of the last record before the gap.
    pub from: Micros,
    /// Time of the first record after the gap.
    pub to: Micros,
    /// The player whose records are missing; `None` when any player's may be.
    pub player: Option<PlayerId>,
    /// The cause of the gap.
    pub why: GapCause,
}

impl GapRecord {
    /// Returns whether records of this player may be missing.
    pub fn concerns(&self, player: PlayerId) -> bool {
        self.player.is_none_or(|of| of == player)
    }

    /// Returns the gaps of one player's log, for a session with other logs.
    pub(crate) fn of_log(gaps: Vec<GapRecord>, player: PlayerId) -> Vec<GapRecord> {
        let of_player = gaps.into_iter().filter(|gap| gap.concerns(player));
        of_player.map(|gap| GapRecord { player: Some(player), ..gap }).collect()
    }

    /// Returns the gaps that end after the first tick and in which a replay lacks records. Gaps before the first tick are
    /// outside the session.
    pub fn all_after(gaps: &[GapRecord], first_tick: Option<Micros>) -> impl Iterator<Item = &GapRecord> {
        let first = first_tick.unwrap_or(Micros(i64::MIN));
        gaps.iter().filter(move |gap| gap.to > first && gap.why != GapCause::BeganLate)
    }

    /// Returns the first of the gaps [after the first tick](GapRecord::all_after). A replay is unreliable from there on.
    pub fn first_after(gaps: &[GapRecord], first_tick: Option<Micros>) -> Option<&GapRecord> {
        GapRecord::all_after(gaps, first_tick).min_by_key(|gap| gap.from)
    }
}

named! {
    /// The cause of missing records.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GapCause {
        /// Part of the file was damaged.
        #[default]
        Damaged = "damaged",
        /// The recorder was too slow.
        Overrun = "overrun",
        /// Recording was paused on purpose.
        Paused = "paused",
        /// The recorder was disconnected.
        Disconnected = "disconnected",
        /// A client's log begins late. Its usercmds before are those of the server's log, so a replay lacks nothing.
        BeganLate = "began_late",
    }
}

/// A one-shot sound or visual effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Number of the effect in the game's numbering; `Simulate::effect_name`
    /// names it.
    pub kind: u8,
    /// The entity that causes it. The server does not send a client that predicts effects the
    /// [predictable](Effect::predictable) ones of its own entity.
    pub entity: EntityId,
    /// Position, in units.
    pub at: Vec3,
    /// Whether shared code causes the effect, so that its player's client can predict it.
    pub predictable: bool,
}

impl RecordType for GapRecord {
    fn when(&self) -> EventTime {
        EventTime::At(self.to)
    }

    fn move_by(&mut self, by: Micros) {
        self.from += by;
        self.to += by;
    }
}

/// The state of a replay just after a tick. Only the replay interprets the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyframe {
    /// The tick before the keyframe.
    pub tick: Tick,
    /// Time of that tick.
    pub at: Micros,
    /// Index of the first chunk that a replay from this keyframe reads, from 0. The keyframe precedes that chunk in the
    /// file.
    pub next_chunk: usize,
    /// The state, in the replay's own encoding.
    pub content: Vec<u8>,
}

/// The arrivals of all packets in one direction, by packet number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalTable {
    /// (number, arrival) in ascending order.
    arrivals: Vec<(u32, Micros)>,
}

impl ArrivalTable {
    /// Builds the index from arrivals in the order of time.
    pub fn new(arrivals: &[ArrivalRecord]) -> ArrivalTable {
        let mut arrivals: Vec<(u32, Micros)> = arrivals.iter().map(|a| (a.number, a.at)).collect();
        arrivals.sort_unstable();
        ArrivalTable { arrivals }
    }

    /// Returns the arrivals of a packet: none if it was lost, several if it was duplicated.
    pub fn of(&self, number: u32) -> impl Iterator<Item = Micros> + '_ {
        let start = self.arrivals.partition_point(|&(n, _)| n < number);
        self.arrivals[start..].iter().take_while(move |&&(n, _)| n == number).map(|&(_, at)| at)
    }
}

/// A straight piece of a wall. All lengths are in units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall {
    /// Start, as x and y.
    pub from: [f32; 2],
    /// End, as x and y.
    pub to: [f32; 2],
    /// Height of the lower edge.
    pub bottom: f32,
    /// Height of the upper edge.
    pub top: f32,
    /// The entity that the wall moves with, such as a door. The wall is displaced by that entity's origin.
    pub of: Option<EntityId>,
}

named! {
    /// Why a prediction was wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Cause {
        /// A usercmd never reached the server. The server ran another usercmd in its place, or none.
        InputLost = "input_lost",
        /// A usercmd or a snapshot arrived late.
        InputLate = "input_late",
        /// The server refused a usercmd, because the player had used up its simulation time.
        InputRefused = "input_refused",
        /// The server moved the player to another place at once.
        Teleport = "teleport",
        /// The player died or respawned.
        SpawnOrDeath = "spawn_or_death",
        /// A shot pushed the player.
        Knockback = "knockback",
        /// Another player was in the way, or was in another place than the client had it.
        OtherPlayer = "other_player",
        /// A moving part of the map was in the way.
        Mover = "mover",
        /// The body crossed the surface of water.
        WaterEdge = "water_edge",
        /// The recorded state is rounded, and the rounding changed the result.
        Quantisation = "quantisation",
        /// No other cause has evidence.
        Unknown = "unknown",
    }
}

// The three ways to run a session under other settings than its own. They give different counts of hits, so pages name
// the way beside each count (docs/what-if.md).

named! {
    /// How to apply other settings to a session.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum WhatIf {
        /// The recorded input runs through pipelines with the other settings.
        #[default]
        Replay = "replay",
        /// The session runs under its own settings, and each of its shots is also judged under the other settings.
        Rejudge = "rejudge",
        /// Bots play the session again under the other settings, from many seeds.
        Rerecord = "rerecord",
    }
}

/// The settings and groups of settings that only affect the judging of shots. [`WhatIf::Rejudge`] accepts only these.
pub const REJUDGED: [&str; 2] = ["lag_compensation.", "interpolation.lerp_ms"];

impl WhatIf {
    /// Returns the meaning of its counts of hits: sentences without the last period.
    pub fn meaning(self) -> &'static str {
        match self {
            WhatIf::Replay => {
                "Same input, other settings. Players aimed under the recorded settings, so hits favour those"
            }
            WhatIf::Rejudge => "Only the hit test changed. Deaths and later events are as recorded",
            WhatIf::Rerecord => "Bots play again under each setting, over the recorded links, from several seeds",
        }
    }
}
