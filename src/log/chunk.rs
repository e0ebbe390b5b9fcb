//! One chunk of a log: a stretch of a session, laid out by column, that decodes without any other chunk.

mod players;
mod snapshots;
mod states;
mod table;

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::container::Chain;
use super::error::WriteError;
use super::limits::{Budget, MAX_CHUNK_MEMORY};
use crate::game::Field;
use crate::record::{
    ArrivalRecord, ExecutionRecord, FrameRecord, Header, Misfit, PacketRecord, PlayerRecords, Record, Session,
    SnapshotRecord, States, TickRecord,
};
use crate::units::{EntityId, PlayerId, Tick};
use table::Table;

/// A stretch of a session: what one chunk holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Each player's part, in the order of the header's players.
    pub players: Vec<PlayerRecords>,
    /// The server's ticks in order.
    pub ticks: Vec<TickRecord>,
    /// Entity states in the order in which they were recorded.
    pub states: States,
}

impl Chunk {
    pub(crate) fn new(header: &Header) -> Chunk {
        let players = header.players.iter().map(|_| PlayerRecords::default()).collect();
        let states = States { width: header.fields.len(), ..States::default() };
        Chunk { players, ticks: Vec::new(), states }
    }

    /// An empty chunk with room for as much as another holds.
    pub(crate) fn like(other: &Chunk, header: &Header) -> Chunk {
        let mut chunk = Chunk::new(header);
        for (to, from) in chunk.players.iter_mut().zip(&other.players) {
            to.frames.reserve(from.frames.len());
            to.sent.reserve(from.sent.len());
            to.reached.reserve(from.reached.len());
            to.executed.reserve(from.executed.len());
            to.snapshots.reserve(from.snapshots.len());
            to.received.reserve(from.received.len());
        }
        chunk.ticks.reserve(other.ticks.len());
        chunk.states.keys.reserve(other.states.keys.len());
        chunk.states.cells.reserve(other.states.cells.len());
        chunk
    }

    /// Forgets the records, and keeps the room.
    pub(crate) fn clear(&mut self) {
        for player in &mut self.players {
            player.frames.clear();
            player.sent.clear();
            player.reached.clear();
            player.executed.clear();
            player.snapshots.clear();
            player.received.clear();
        }
        self.ticks.clear();
        self.states.keys.clear();
        self.states.cells.clear();
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        let nobody_did_anything = self.players.iter().all(|player| {
            player.frames.is_empty()
                && player.sent.is_empty()
                && player.reached.is_empty()
                && player.executed.is_empty()
                && player.snapshots.is_empty()
                && player.received.is_empty()
        });
        nobody_did_anything && self.ticks.is_empty() && self.states.keys.is_empty()
    }

    /// Adds a record; what does not fit the header is not added.
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Misfit> {
        match record {
            Record::Frame(id, r) => self.of(*id)?.frames.push(*r),
            Record::Sent(id, r) => self.of(*id)?.sent.push(*r),
            Record::Reached(id, r) => self.of(*id)?.reached.push(*r),
            Record::Executed(id, r) => self.of(*id)?.executed.push(*r),
            Record::Snapshot(id, r) => self.of(*id)?.snapshots.push(r.clone()),
            Record::Received(id, r) => self.of(*id)?.received.push(*r),
            Record::Tick(r) => self.ticks.push(*r),
            Record::State(r) if r.cells.len() != self.states.width => {
                return Err(Misfit::Cells { found: r.cells.len(), fields: self.states.width });
            }
            Record::State(r) => {
                self.states.keys.push((r.tick, r.entity));
                self.states.cells.extend_from_slice(&r.cells);
            }
        }
        Ok(())
    }

    fn of(&mut self, id: PlayerId) -> Result<&mut PlayerRecords, Misfit> {
        let players = self.players.len();
        self.players.get_mut(usize::from(id.0)).ok_or(Misfit::Player { id, players })
    }

    /// Appends this stretch to the session that it continues.
    pub(crate) fn append_to(self, session: &mut Session) {
        for (to, from) in session.players.iter_mut().zip(self.players) {
            to.frames.extend(from.frames);
            to.sent.extend(from.sent);
            to.reached.extend(from.reached);
            to.executed.extend(from.executed);
            to.snapshots.extend(from.snapshots);
            to.received.extend(from.received);
        }
        session.ticks.extend(self.ticks);
        session.states.keys.extend(self.states.keys);
        session.states.cells.extend(self.states.cells);
    }

    /// All of it; `fields` are the header's.
    pub(crate) fn as_stretch<'a>(&'a self, fields: &'a [Field]) -> Stretch<'a> {
        let players = self.players.iter().map(PlayerStretch::whole).collect();
        let States { keys, cells, .. } = &self.states;
        Stretch { players, ticks: &self.ticks, keys, cells, fields }
    }
}

/// A stretch of a session that lies elsewhere: in a [`Chunk`], or in a whole [`Session`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch<'a> {
    pub(crate) players: Vec<PlayerStretch<'a>>,
    pub(crate) ticks: &'a [TickRecord],
    pub(crate) keys: &'a [(Tick, EntityId)],
    pub(crate) cells: &'a [u32],
    pub(crate) fields: &'a [Field],
}

/// One player's part of a [`Stretch`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlayerStretch<'a> {
    pub(crate) frames: &'a [FrameRecord],
    pub(crate) sent: &'a [PacketRecord],
    pub(crate) reached: &'a [ArrivalRecord],
    pub(crate) executed: &'a [ExecutionRecord],
    pub(crate) snapshots: &'a [SnapshotRecord],
    pub(crate) received: &'a [ArrivalRecord],
}

impl<'a> PlayerStretch<'a> {
    fn whole(records: &'a PlayerRecords) -> PlayerStretch<'a> {
        PlayerStretch {
            frames: &records.frames,
            sent: &records.sent,
            reached: &records.reached,
            executed: &records.executed,
            snapshots: &records.snapshots,
            received: &records.received,
        }
    }
}

/// A chunk's MessagePack map. Tables without rows are left out.
#[derive(Serialize, Deserialize)]
struct ChunkMap<C> {
    index: u32,
    before: u64,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    frames: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    sent: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    reached: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    executed: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    snapshots: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    received: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    ticks: Option<Table<C>>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    states: Option<Table<C>>,
}

fn none<T>() -> Option<T> {
    None
}

/// What every chunk after the first begins with, in logs and traces alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Its number; the header is chunk 0.
    pub(crate) index: u32,
    /// The digest of all chunks before it; files by foreign writers may lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<u64>,
    /// True for the last chunk, which holds nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) end: bool,
}

/// The last chunk.
pub(crate) fn encode_end((index, before): (u32, Chain)) -> Result<Vec<u8>, WriteError> {
    to_messagepack(&Place { index, before: Some(before.0), end: true })
}

pub(crate) fn to_messagepack(map: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    rmp_serde::to_vec_named(map).map_err(|error| WriteError::Io(std::io::Error::other(error)))
}

/// Lays a stretch out.
pub(crate) fn encode(stretch: &Stretch<'_>, (index, before): (u32, Chain)) -> Result<Vec<u8>, WriteError> {
    let map: ChunkMap<ByteBuf> = ChunkMap {
        index,
        before: before.0,
        frames: players::encode_frames(stretch),
        sent: players::encode_sent(stretch),
        reached: players::encode_reached(stretch),
        executed: players::encode_executed(stretch),
        snapshots: snapshots::encode(stretch),
        received: players::encode_received(stretch),
        ticks: states::encode_ticks(stretch.ticks),
        states: states::encode(stretch),
    };
    to_messagepack(&map)
}

/// Reads a chunk of a log with this header. The memory that it takes is added to what `budget` has spent.
pub(crate) fn decode(content: &[u8], header: &Header) -> Result<(Chunk, usize), String> {
    let map: ChunkMap<&Bytes> = rmp_serde::from_slice(content).map_err(|e| format!("it is not a chunk's map ({e})"))?;
    let mut budget = Budget::new(MAX_CHUNK_MEMORY);
    let mut chunk = Chunk::new(header);
    if let Some(table) = &map.frames {
        players::decode_frames(table, &mut chunk, &mut budget)?;
    }
    if let Some(table) = &map.sent {
        players::decode_sent(table, &mut chunk, &mut budget)?;
    }
    if let Some(table) = &map.reached {
        players::decode_reached(table, &mut chunk, &mut budget)?;
    }
    if let Some(table) = &map.executed {
        players::decode_executed(table, &mut chunk, &mut budget)?;
    }
    if let Some(table) = &map.ticks {
        chunk.ticks = states::decode_ticks(table, &mut budget)?;
    }
    if let Some(table) = &map.states {
        chunk.states = states::decode(table, header.fields.len(), &mut budget)?;
    }
    if let Some(table) = &map.snapshots {
        snapshots::decode(table, &mut chunk, &mut budget)?;
    }
    if let Some(table) = &map.received {
        players::decode_received(table, &mut chunk, &mut budget)?;
    }
    Ok((chunk, budget.spent()))
}
