//! Keyframes in logs: each is a chunk of its own, and the last chunk lists them by time.

mod find;
mod rewrite;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::container::Chain;
use super::error::LogError;
use super::limits::MAX_CHUNK_BYTES;
use crate::record::Keyframe;
use crate::units::{Micros, Tick};

pub use find::{KeyframeQuery, SeekResult, find_keyframe};
pub use rewrite::{RewriteError, keyframes_of, write_keyframes};

/// A chunk with a keyframe and no records.
#[derive(Serialize, Deserialize)]
struct KeyframeChunk {
    index: u32,
    #[serde(default)]
    before: Option<u64>,
    tick: u32,
    at_us: i64,
    keyframe: ByteBuf,
}

/// The last chunk of a log with keyframes.
#[derive(Serialize, Deserialize)]
struct KeyframeIndex {
    index: u32,
    #[serde(default)]
    before: Option<u64>,
    end: bool,
    /// The time in µs, tick and chunk number of each keyframe, ascending.
    #[serde(default)]
    keyframes: Vec<(i64, u32, u32)>,
}

fn encode(of: &Keyframe, (index, before): (u32, Chain)) -> Result<Vec<u8>, super::WriteError> {
    super::chunk::to_messagepack(&KeyframeChunk {
        index,
        before: Some(before.0),
        tick: of.tick.0,
        at_us: of.at.0,
        keyframe: ByteBuf::from(of.content.clone()),
    })
}

/// Returns the keyframe in a chunk's content; `None` for any other chunk.
pub(super) fn keyframe_in(content: &[u8], stretch: usize) -> Option<Keyframe> {
    if content.len() > MAX_CHUNK_BYTES {
        return None;
    }
    let KeyframeChunk { tick, at_us, keyframe, .. } = crate::serial::from_msgpack(content).ok()?;
    Some(Keyframe { tick: Tick(tick), at: Micros(at_us), stretch, content: keyframe.into_vec() })
}

fn corrupt(offset: u64, part: &str, what: impl Into<String>) -> LogError {
    LogError::Corrupt { offset, part: part.to_owned(), what: what.into() }
}
