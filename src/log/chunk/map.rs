//! A chunk's MessagePack map.

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::table::Table;
use super::{Chunk, Stretch, players, snapshots, states};
use crate::log::container::Chain;
use crate::log::error::WriteError;
use crate::log::limits::{Budget, MAX_CHUNK_MEMORY};
use crate::record::Header;

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

/// Reads a chunk of a log with this header.
pub(crate) fn decode(content: &[u8], header: &Header) -> Result<Chunk, String> {
    let map: ChunkMap<&Bytes> =
        crate::serial::from_msgpack(content).map_err(|e| format!("it is not a chunk's map ({e})"))?;
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
    Ok(chunk)
}
