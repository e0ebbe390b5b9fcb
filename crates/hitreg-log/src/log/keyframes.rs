//! Keyframes in logs: each is a chunk of its own, and a row of its own table in the index.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::chunk::{self, SessionSlice};
use super::chunks::Chunks;
use super::container::{ChunkSink, NextChunk};
use super::error::{CHUNK_BYTES_MAX, LogError, WriteError};
use super::header;
use super::index::PartRows;
use super::writer::WriterOptions;
use crate::record::Keyframe;
use crate::units::{Micros, Tick};

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

fn encode(of: &Keyframe, NextChunk { index, before }: NextChunk) -> Result<Vec<u8>, super::WriteError> {
    super::chunk::to_messagepack(&KeyframeChunk {
        index,
        before: Some(before),
        tick: of.tick.0,
        at_us: of.at.0,
        keyframe: ByteBuf::from(of.content.clone()),
    })
}

/// Returns the keyframe in a chunk's content; `None` for any other chunk.
pub(super) fn keyframe_in(content: &[u8], next_chunk: usize) -> Option<Keyframe> {
    if content.len() > CHUNK_BYTES_MAX {
        return None;
    }
    let KeyframeChunk { tick, at_us, keyframe, .. } = crate::serial::from_msgpack(content).ok()?;
    Some(Keyframe { tick: Tick(tick), at: Micros(at_us), next_chunk, content: keyframe.into_vec() })
}

/// The table of keyframes in an index, and the key of a keyframe's content in its chunk.
pub(super) const KEYFRAME: &str = "keyframe";

/// Returns what the chunk of a keyframe has.
pub(super) fn keyframe_rows(keyframe: &Keyframe) -> PartRows {
    let Micros(at) = keyframe.at;
    PartRows::of_log(KEYFRAME, 1, Some((at, at)))
}

/// The least zstd level of a keyframe. Keyframes are few, and at this level 7 % smaller than at level 9.
const KEYFRAME_LEVEL: i32 = 15;

/// Why a log was not copied.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// Reading the log failed.
    #[error(transparent)]
    Read(#[from] LogError),
    /// Writing the copy failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Another program wrote the log in another layout.
    #[error(
        "the chunks are not in hitreg's order ({0}). To rewrite the log, run: hitreg recover FILE -o ordered.hitlog"
    )]
    Layout(&'static str),
}

/// Copies a log with these keyframes in place of its own. The keyframes must be in the order of `next_chunk`.
///
/// # Errors
/// When reading or writing fails, or the chunks are not in the order that this library writes.
pub fn write_keyframes<W: Write>(
    from: impl Read,
    out: W,
    keyframes: &[Keyframe],
    options: WriterOptions,
) -> Result<W, RewriteError> {
    let mut sink = ChunkSink::new(out, options.level)?;
    let mut first = Vec::new();
    let (mut chunks, (header, schema)) = Chunks::open(from, |content| {
        first = content.to_vec();
        header::decode_log(content)
    })?;
    sink.write_header(&first, options.header_level)?;
    let mut keyframes = keyframes.iter().peekable();
    let mut number = 0;
    loop {
        let next = chunks.next()?;
        while let Some(keyframe) = keyframes.next_if(|keyframe| keyframe.next_chunk <= number || next.is_none()) {
            let content = encode(keyframe, sink.next())?;
            let level = Some(options.level.max(KEYFRAME_LEVEL));
            sink.write_chunk("a keyframe", &content, level, vec![keyframe_rows(keyframe)])?;
        }
        let Some(content) = next else { break };
        if keyframe_in(&content.bytes, number).is_none() {
            let moved = moved(&content.bytes, sink.next()).ok_or(RewriteError::Layout("a chunk's place"))?;
            let decoded = chunk::decode(&content.bytes, &header, &schema).map_err(|what| content.corrupt(what))?;
            let rows = chunk::rows_by_table(&SessionSlice::whole(&decoded), &header);
            sink.write_chunk(chunk::CONTENT, &moved, None, rows)?;
        }
        number += 1;
    }
    Ok(sink.finish()?)
}

/// Passes all keyframes of a log to `to`, in order.
///
/// # Errors
/// When the log cannot be read.
pub fn keyframes_of(from: impl Read, to: &mut dyn FnMut(Keyframe)) -> Result<(), LogError> {
    let (mut chunks, _) = Chunks::open(from, header::decode_log)?;
    let mut number = 0;
    while let Some(content) = chunks.next()? {
        keyframe_in(&content.bytes, number).into_iter().for_each(&mut *to);
        number += 1;
    }
    Ok(())
}

/// Returns a chunk's content for another position in the file. The content is a map that begins with `index` and
/// `before`.
fn moved(content: &[u8], next: NextChunk) -> Option<Vec<u8>> {
    let head = match content.first()? {
        0x80..=0x8F => 1,
        0xDE => 3,
        0xDF => 5,
        _ => return None,
    };
    let (map, entries) = content.split_at_checked(head)?;
    let after_index = after_number(entries.strip_prefix(b"\xA5index")?)?;
    let rest = after_number(after_index.strip_prefix(b"\xA6before")?)?;
    let mut moved = map.to_vec();
    moved.extend_from_slice(b"\xA5index\xCE");
    moved.extend_from_slice(&next.index.to_be_bytes());
    moved.extend_from_slice(b"\xA6before\xCF");
    moved.extend_from_slice(&next.before.to_be_bytes());
    moved.extend_from_slice(rest);
    Some(moved)
}

/// Returns the bytes after a MessagePack number that is not negative.
fn after_number(bytes: &[u8]) -> Option<&[u8]> {
    let length = match bytes.first()? {
        0x00..=0x7F => 1,
        0xCC => 2,
        0xCD => 3,
        0xCE => 5,
        0xCF => 9,
        _ => return None,
    };
    bytes.get(length..)
}
