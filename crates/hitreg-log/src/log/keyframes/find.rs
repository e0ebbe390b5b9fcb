//! Finds a keyframe without reading the chunks before it. It reads the header, the seek table, the last chunk with its
//! list of keyframes, and the keyframe.

use std::io::{Read, Seek, SeekFrom};

use super::super::chunk::ChunkPosition;
use super::super::chunks::{Chunks, place};
use super::super::container::{Chain, SEEK_FOOTER_MAGIC, SEEK_TABLE_MAGIC, SeekTable};
use super::super::error::LogError;
use super::super::frames::{FileFrame, FileFrames, FrameKind, unpack};
use super::super::reader::LogReader;
use super::super::version::FormatVersion;
use super::{KeyframeIndex, corrupt, keyframe_in};
use crate::record::{Keyframe, SessionHeader};
use crate::units::{Micros, Tick};

/// A log that is read from a keyframe on.
pub struct SeekResult<R> {
    /// The log's header.
    pub header: SessionHeader,
    /// The version of its format.
    pub format: FormatVersion,
    /// The keyframe. Its `stretch` is 0, the number of the reader's next chunk.
    pub keyframe: Keyframe,
    /// Reads the chunks after the keyframe.
    pub reader: LogReader<R>,
    /// The length of the whole file, in bytes.
    pub bytes: u64,
}

/// Which keyframe to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyframeQuery {
    /// The first keyframe.
    First,
    /// The last keyframe at or before a time.
    At(Micros),
    /// The last keyframe before a tick.
    Before(Tick),
}

impl KeyframeQuery {
    fn may_be(self, tick: Tick, at: Micros) -> bool {
        match self {
            KeyframeQuery::First => true,
            KeyframeQuery::At(sought) => at <= sought,
            KeyframeQuery::Before(sought) => tick < sought,
        }
    }
}

/// The most bytes of a seek table.
const TABLE_BYTES_MOST: u64 = 16 << 20;

/// Finds a keyframe of a log. Returns `None` if no keyframe matches, or if the file does not end like a log with
/// keyframes.
///
/// # Errors
/// When the log cannot be read, or the way to the keyframe is damaged.
pub fn find_keyframe<R: Read + Seek>(mut from: R, sought: KeyframeQuery) -> Result<Option<SeekResult<R>>, LogError> {
    let (header, schema, sealed) = {
        let reader = LogReader::new(&mut from)?;
        reader.opened()
    };
    let bytes = from.seek(SeekFrom::End(0))?;
    let Some(entries) = seek_table(&mut from, bytes)?.filter(|_| sealed) else { return Ok(None) };
    // The first entry is the header, and the last one the seal.
    let Some(last) = entries.len().checked_sub(2).filter(|last| *last > 0) else { return Ok(None) };
    let offset_of = |chunk: usize| entries[..chunk].iter().map(|(packed, _)| u64::from(*packed)).sum::<u64>();
    let frame = frame_at(&mut from, offset_of(last), entries[last])?;
    let content = unpack(&frame).map_err(|what| corrupt(frame.offset, "the last chunk", what))?;
    let wrong = |error| corrupt(frame.offset, "the last chunk", format!("it is not a chunk's map ({error})"));
    let KeyframeIndex { index, before, end, keyframes } = crate::serial::from_msgpack(&content).map_err(wrong)?;
    if !end || index as usize != last {
        return Err(corrupt(frame.offset, "the last chunk", "another one is in its place"));
    }
    let mut chain = Chain(before.unwrap_or_default());
    chain.add(&frame.bytes);
    let mut table = SeekTable::default();
    entries[..=last].iter().for_each(|(packed, content)| table.add(*packed as usize, *content as usize));
    let tail = table.tail(chain);
    from.seek(SeekFrom::Start(offset_of(last + 1)))?;
    let mut found = Vec::new();
    (&mut from).take(tail.len() as u64 + 1).read_to_end(&mut found)?;
    if found != tail {
        return Err(corrupt(frame.offset, "the end", "the last chunk, the seal and the seek table do not agree"));
    }
    let mut those = keyframes.iter().filter(|(at, tick, _)| sought.may_be(Tick(*tick), Micros(*at)));
    let wanted = if sought == KeyframeQuery::First { those.next() } else { those.next_back() };
    let Some((_, _, chunk)) = wanted else { return Ok(None) };
    let chunk = *chunk as usize;
    if chunk == 0 || chunk >= last {
        return Err(corrupt(frame.offset, "the last chunk", format!("it names chunk {chunk} as a keyframe")));
    }
    let frame = frame_at(&mut from, offset_of(chunk), entries[chunk])?;
    let part = format!("chunk {chunk}");
    let content = unpack(&frame).map_err(|what| corrupt(frame.offset, &part, what))?;
    let ChunkPosition { index, before, .. } = place(&content).map_err(|what| corrupt(frame.offset, &part, what))?;
    let keyframe = keyframe_in(&content, 0).filter(|_| index as usize == chunk);
    let Some(keyframe) = keyframe.filter(|keyframe| sought.may_be(keyframe.tick, keyframe.at)) else {
        return Err(corrupt(frame.offset, &part, "it is not the keyframe that the last chunk names"));
    };
    let mut table = SeekTable::default();
    entries[..=chunk].iter().for_each(|(packed, content)| table.add(*packed as usize, *content as usize));
    let mut chain = Chain(before.unwrap_or_default());
    chain.add(&frame.bytes);
    let next = frame.offset + frame.bytes.len() as u64;
    from.seek(SeekFrom::Start(next))?;
    let format = schema.version();
    let reader = LogReader::within(Chunks::within(from, next, frame.offset, (table, chain)), header.clone(), schema);
    Ok(Some(SeekResult { header, format, keyframe, reader, bytes }))
}

/// Returns the sizes of all frames but the seek table; `None` if the file has no valid seek table at its end.
fn seek_table(from: &mut (impl Read + Seek), bytes: u64) -> Result<Option<Vec<(u32, u32)>>, LogError> {
    const FOOTER: u64 = 9;
    if bytes < FOOTER {
        return Ok(None);
    }
    from.seek(SeekFrom::Start(bytes - FOOTER))?;
    let mut footer = [0u8; FOOTER as usize];
    from.read_exact(&mut footer)?;
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    let frames = u64::from(word(&footer));
    let length = frames * 8 + FOOTER;
    if word(&footer[5..]) != SEEK_FOOTER_MAGIC || length + 8 > bytes.min(TABLE_BYTES_MOST) {
        return Ok(None);
    }
    from.seek(SeekFrom::Start(bytes - length - 8))?;
    let mut table = vec![0; (length + 8) as usize];
    from.read_exact(&mut table)?;
    if word(&table) != SEEK_TABLE_MAGIC || u64::from(word(&table[4..])) != length {
        return Ok(None);
    }
    Ok(Some(table[8..8 + frames as usize * 8].chunks_exact(8).map(|entry| (word(entry), word(&entry[4..]))).collect()))
}

fn frame_at(from: &mut (impl Read + Seek), offset: u64, (packed, content): (u32, u32)) -> Result<FileFrame, LogError> {
    let wrong = || corrupt(offset, "a chunk", "the seek table disagrees");
    from.seek(SeekFrom::Start(offset))?;
    let frame = FileFrames::new(from, offset).next().map_err(|_| wrong())?.ok_or_else(wrong)?;
    let is_it =
        frame.kind == FrameKind::Chunk { content_bytes: content as usize } && frame.bytes.len() == packed as usize;
    if is_it { Ok(frame) } else { Err(wrong()) }
}
