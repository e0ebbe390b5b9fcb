//! The log's vocabulary: what a recorded session consists of, free of any game's types and of how it is stored.
//!
//! A game's own payloads are opaque here: its rules are bytes, its bodies rows of 32-bit cells that the header names.
//! All times are session times unless a field says otherwise.

mod fate;
mod side;

use serde::{Deserialize, Serialize};

pub use fate::Fates;
pub use side::{Holds, SessionId, Side};

use crate::game::{Effect, Field};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use crate::usercmd::Usercmd;

/// What is known before the first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`Game::NAME`](crate::game::Game::NAME).
    pub game: String,
    /// The game's rules in MessagePack, maps included: a log needs no other file to replay.
    #[serde(with = "serde_bytes")]
    pub rules: Vec<u8>,
    /// The map's name, for people.
    pub map: String,
    /// Where all random numbers start from.
    pub seed: Seed,
    /// The settings in force, every one of them, as `settings` prints them.
    pub settings: Vec<(String, String)>,
    /// The preset that the settings came from.
    pub preset: Option<String>,
    /// Who plays; a player's number is the place in this list.
    pub players: Vec<PlayerInfo>,
    /// Where the session came from.
    pub origin: Origin,
    /// Set when the log holds one side of the session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The cells of a body, in order.
    pub fields: Vec<Field>,
}

/// One player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerInfo {
    /// A name made by the recorder (`p0`, `p1`); real nicknames only when they were asked for.
    pub name: String,
    /// True when the log holds this player's own usercmds; in an imported client recording only one player's are known.
    pub recorded: bool,
}

/// Where a session came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Run in virtual time.
    Synthetic,
    /// Recorded by hitreg's own server and clients over real sockets.
    Live,
    /// A real game's recording: one client's view. It has no server ticks and replays open loop only.
    Imported {
        /// The format that it came in, such as `qwd`.
        format: String,
    },
}

/// One thing that happened. Within one player (and within the server) records come in the order of their times.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A client made a usercmd.
    Frame(PlayerId, FrameRecord),
    /// A client sent a packet.
    Sent(PlayerId, PacketRecord),
    /// A client's packet reached the server.
    Reached(PlayerId, ArrivalRecord),
    /// The server ran, replaced or refused a usercmd.
    Executed(PlayerId, ExecutionRecord),
    /// The server sent a snapshot to a client.
    Snapshot(PlayerId, SnapshotRecord),
    /// A snapshot reached its client; its number is the snapshot's.
    Received(PlayerId, ArrivalRecord),
    /// The server finished a tick.
    Tick(TickRecord),
    /// An entity's state after a tick; all the snapshots of that tick share it.
    State(StateRecord),
}

/// One client frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameRecord {
    /// When the client made the usercmd.
    pub at: Micros,
    /// The usercmd.
    pub command: Usercmd,
}

/// One packet from a client. It carries the usercmds `newest - count + 1 ..= newest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Its number, counted per client from 1.
    pub number: u32,
    /// When it left.
    pub at: Micros,
    /// The newest usercmd in it.
    pub newest: CommandSeq,
    /// How many usercmds it carries, the newest and repeats of those before it.
    pub count: u8,
    /// The newest snapshot that the client had.
    pub ack: SnapshotSeq,
    /// The bytes of its datagrams, seals included, UDP/IP headers not; nominal where `wire.sizes` says so or is missing.
    pub bytes: u16,
}

/// The arrival of a packet; a duplicated packet arrives twice, a lost one never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalRecord {
    /// Which packet: [`PacketRecord::number`] or [`SnapshotRecord::seq`].
    pub number: u32,
    /// When it arrived.
    pub at: Micros,
}

/// What the server did about one usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionRecord {
    /// The usercmd.
    pub command: CommandSeq,
    /// The tick in which it was due.
    pub tick: Tick,
    /// What was done.
    pub how: Execution,
}

/// How the server dealt with a usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Execution {
    /// It ran.
    Run,
    /// It never came; the last one ran again in its place.
    StoodIn,
    /// It never came, and nothing ran in its place.
    Missing,
    /// It came after something later had run, and was dropped.
    Late,
    /// The player had used up the time that may be simulated.
    OverBudget,
}

impl Execution {
    /// The names that traces use, in the order of the variants.
    pub const NAMES: [&'static str; 5] = ["run", "stood_in", "missing", "late", "over_budget"];

    /// The variant with this place in [`Execution::NAMES`].
    pub fn from_code(code: u8) -> Option<Execution> {
        [Self::Run, Self::StoodIn, Self::Missing, Self::Late, Self::OverBudget].get(usize::from(code)).copied()
    }
}

/// One snapshot that a server sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRecord {
    /// Its number, counted per client from 1.
    pub seq: SnapshotSeq,
    /// The tick whose state it carries.
    pub tick: Tick,
    /// When it left the server. In an imported recording the server's clock is unknown: this is its arrival.
    pub at: Micros,
    /// The server time that it tells its client.
    pub server_time: Micros,
    /// The newest usercmd that had run.
    pub ack: CommandSeq,
    /// The bytes of its datagrams, seals included, UDP/IP headers not; nominal where `wire.sizes` says so or is missing.
    pub bytes: u16,
    /// How many updates were held back before it because the client's rate was used up.
    pub choked: u8,
    /// The entities in it, ascending; their states are the tick's [`StateRecord`]s.
    pub entities: Vec<EntityId>,
    /// Sounds and sights that it tells.
    pub effects: Vec<Effect>,
    /// What else the game put into it (messages, changed movement constants), opaque.
    pub extra: Vec<u8>,
    /// What it says of the client's timing, where usercmds run on their tick. In a box, because most sessions have none and
    /// every record is moved more than once.
    pub timing: Option<Box<Timing>>,
}

/// What a snapshot tells its client of when its input comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many ms before its tick the client's input arrives; `None` while the server cannot tell.
    pub helper_ms: Option<i16>,
    /// Usercmds that came at a time when they could not be used.
    pub warnings: Vec<OutOfSequence>,
}

impl Timing {
    /// `None` where there is nothing to say.
    pub fn new(helper_ms: Option<i16>, warnings: Vec<OutOfSequence>) -> Option<Box<Timing>> {
        let says = helper_ms.is_some() || !warnings.is_empty();
        says.then(|| Box::new(Timing { helper_ms, warnings }))
    }
}

/// NeREIDS's `OUT_OF_SEQ_WARNING`: a usercmd whose tick was over, or too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSequence {
    /// The newest usercmd of the packet.
    pub command: CommandSeq,
    /// How many ticks it was ahead of the server's next tick: below 0 too late, above 32 too early.
    pub difference: i16,
}

/// The end of a server tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRecord {
    /// Which.
    pub tick: Tick,
    /// Its time on the server.
    pub at: Micros,
    /// The hash of the world after it; `None` where a real game's recording has no world to hash.
    pub hash: Option<u64>,
}

/// An entity after a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRecord {
    /// The tick; in an imported recording, the number of the snapshot.
    pub tick: Tick,
    /// The entity.
    pub entity: EntityId,
    /// Its cells, as many as [`Header::fields`]; those that only clients know are 0.
    pub cells: Vec<u32>,
}

/// A whole session in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// What is known before the first record.
    pub header: Header,
    /// Each player's part, in the order of [`Header::players`].
    pub players: Vec<PlayerRecords>,
    /// The server's ticks in order.
    pub ticks: Vec<TickRecord>,
    /// Entity states in the order of (tick, entity).
    pub states: States,
}

/// One player's part of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayerRecords {
    /// Client frames in order.
    pub frames: Vec<FrameRecord>,
    /// Packets that the client sent, in order.
    pub sent: Vec<PacketRecord>,
    /// Their arrivals at the server, in the order of arrival.
    pub reached: Vec<ArrivalRecord>,
    /// What the server did about each usercmd, in the order of doing.
    pub executed: Vec<ExecutionRecord>,
    /// Snapshots sent to the client, in order.
    pub snapshots: Vec<SnapshotRecord>,
    /// Their arrivals at the client, in the order of arrival.
    pub received: Vec<ArrivalRecord>,
}

/// Entity states, held flat: `cells` has a row of as many words as the header has fields for each key.
///
/// Ticks count from 1. Rows of tick 0, one for each player, are what a session begins with that was cut out of another;
/// without them it begins with what the game spawns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// (tick, entity) of each row, ascending.
    pub keys: Vec<(Tick, EntityId)>,
    /// The rows, one after the other.
    pub cells: Vec<u32>,
    /// Words in a row.
    pub width: usize,
}

impl States {
    /// The row of an entity after a tick.
    pub fn row(&self, tick: Tick, entity: EntityId) -> Option<&[u32]> {
        let index = self.keys.binary_search(&(tick, entity)).ok()?;
        self.cells.get(index * self.width..(index + 1) * self.width)
    }

    /// The entities that have a row for a tick, with their rows.
    pub fn of_tick(&self, tick: Tick) -> impl Iterator<Item = (EntityId, &[u32])> {
        let begin = self.keys.partition_point(|(t, _)| *t < tick);
        let keys = self.keys[begin..].iter().take_while(move |(t, _)| *t == tick);
        // A body without fields has no cells to go through.
        let cells = self.cells.chunks_exact(self.width.max(1)).skip(begin);
        keys.map(|(_, entity)| *entity).zip(cells)
    }
}

impl Session {
    /// A session in which nothing has happened yet.
    pub fn new(header: Header) -> Session {
        let players = header.players.iter().map(|_| PlayerRecords::default()).collect();
        let states = States { width: header.fields.len(), ..States::default() };
        Session { header, players, ticks: Vec::new(), states }
    }

    /// Adds one record. A record of a player that the header does not have, or a state of another width, is not added.
    ///
    /// # Errors
    /// Says what does not fit the header.
    pub fn push(&mut self, record: Record) -> Result<(), Misfit> {
        let players = self.players.len();
        let player = |id: PlayerId| Misfit::Player { id, players };
        match record {
            Record::Frame(id, r) => self.of(id).ok_or_else(|| player(id))?.frames.push(r),
            Record::Sent(id, r) => self.of(id).ok_or_else(|| player(id))?.sent.push(r),
            Record::Reached(id, r) => self.of(id).ok_or_else(|| player(id))?.reached.push(r),
            Record::Executed(id, r) => self.of(id).ok_or_else(|| player(id))?.executed.push(r),
            Record::Snapshot(id, r) => self.of(id).ok_or_else(|| player(id))?.snapshots.push(r),
            Record::Received(id, r) => self.of(id).ok_or_else(|| player(id))?.received.push(r),
            Record::Tick(r) => self.ticks.push(r),
            Record::State(r) => {
                if r.cells.len() != self.states.width {
                    return Err(Misfit::Cells { found: r.cells.len(), fields: self.states.width });
                }
                self.states.keys.push((r.tick, r.entity));
                self.states.cells.extend_from_slice(&r.cells);
            }
        }
        Ok(())
    }

    /// One player's part.
    pub fn of(&mut self, player: PlayerId) -> Option<&mut PlayerRecords> {
        self.players.get_mut(usize::from(player.0))
    }

    /// From the first record to the last, whichever they are.
    pub fn duration(&self) -> Micros {
        let frames = self.players.iter().flat_map(|p| [p.frames.first(), p.frames.last()]).flatten().map(|f| f.at);
        let arrivals = self.players.iter().filter_map(|p| p.received.last()).map(|a| a.at);
        let ticks = [self.ticks.first(), self.ticks.last()].into_iter().flatten().map(|t| t.at);
        let (mut first, mut last) = (Micros(i64::MAX), Micros(i64::MIN));
        for at in frames.chain(arrivals).chain(ticks) {
            first = first.min(at);
            last = last.max(at);
        }
        if first > last { Micros::ZERO } else { last - first }
    }
}

/// A record that does not belong to the session that it was added to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Nobody has that number.
    #[error("a record of player {id}, but the session has {players} players")]
    Player {
        /// The number.
        id: PlayerId,
        /// How many there are.
        players: usize,
    },
    /// The row has another width.
    #[error("a state of {found} cells, but the session's bodies have {fields}")]
    Cells {
        /// The row's.
        found: usize,
        /// The header's.
        fields: usize,
    },
}
