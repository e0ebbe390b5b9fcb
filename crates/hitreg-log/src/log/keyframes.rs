//! Keyframes in logs: each is a chunk of its own, and a row of its own table in the index.

mod rewrite;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::container::Chain;
use super::index::PartRows;
use super::limits::MAX_CHUNK_BYTES;
use crate::record::Keyframe;
use crate::units::{Micros, Tick};

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

/// The table of keyframes in an index, and the key of a keyframe's content in its chunk.
pub(super) const KEYFRAME: &str = "keyframe";

/// Returns what the chunk of a keyframe has.
pub(super) fn keyframe_rows(keyframe: &Keyframe) -> PartRows {
    let Micros(at) = keyframe.at;
    PartRows::of_log(KEYFRAME, 1, Some((at, at)))
}
