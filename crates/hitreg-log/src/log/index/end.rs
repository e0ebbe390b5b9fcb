//! Reads the index at the end of a file, and compares an index with the chunks.

use std::io::{Read, Seek, SeekFrom};

use serde_bytes::Bytes;

use super::{ChunkRows, EndMap, FileIndex, IndexMap, OTHER_ROWS, digest_of};
use crate::log::chunks::{ChunkContent, Chunks};
use crate::log::container::{Chain, SEEK_FOOTER_MAGIC, SEEK_TABLE_MAGIC, SeekTable};
use crate::log::error::LogError;
use crate::log::frames::{FileFrame, FrameKind, frame_of, unpack};
use crate::log::keyframes::KEYFRAME;
use crate::log::limits::MAX_CHUNK_BYTES;
use crate::log::trace_file::TableMap;

/// The most bytes of a seek table.
const TABLE_BYTES_MOST: u64 = 16 << 20;

/// Reads the index of a sealed file: the seek table, and the last chunk. Returns `None` if the file does not end like
/// one with an index.
///
/// # Errors
/// When the file cannot be read, or its end is damaged.
pub(in crate::log) fn read_index(from: &mut (impl Read + Seek)) -> Result<Option<FileIndex>, LogError> {
    let Some(sizes) = seek_table(from)? else { return Ok(None) };
    let Some(last) = sizes.len().checked_sub(1).filter(|last| *last > 0) else { return Ok(None) };
    let frame = frame_at(from, &sizes, last)?;
    let corrupt = |what: String| LogError::corrupt(frame.offset, "the last chunk", what);
    let content = unpack(&frame).map_err(corrupt)?;
    let (index, before, known) = decode_end(&content, sizes.clone()).map_err(corrupt)?;
    if index != Some(last) {
        return Err(corrupt("another one is in its place".to_owned()));
    }
    let mut chain = Chain(before.unwrap_or_default());
    chain.add(&frame.bytes);
    let tail = sizes.tail(chain);
    from.seek(SeekFrom::Start(frame.offset + frame.bytes.len() as u64))?;
    let mut found = Vec::new();
    from.take(tail.len() as u64 + 1).read_to_end(&mut found)?;
    let what = "the last chunk, the seal and the seek table do not agree";
    if found == tail { Ok(known) } else { Err(LogError::corrupt(frame.offset, "the end", what)) }
}

type Contents<'a> = IndexMap<TableMap<'a, &'a Bytes>, &'a Bytes>;

type DecodedEnd = (Option<u32>, Option<u64>, Option<FileIndex>);

/// Decodes the last chunk: its number, the chain before it, and the index. Any other chunk has no number here.
fn decode_end(content: &[u8], sizes: SeekTable) -> Result<DecodedEnd, String> {
    let EndMap { index, before, end, contents }: EndMap<Contents<'_>> =
        crate::serial::from_msgpack(content).map_err(|error| format!("it is not a chunk's map ({error})"))?;
    let known = contents.map(|map| FileIndex::decode(&map, sizes.len())).transpose()?;
    let known = known.map(|known| FileIndex { sizes, ..known });
    Ok((end.then_some(index), before, known))
}

/// Returns the numbers of the keyframes' chunks by the content of a log's last chunk. They may be those of chunks that
/// are gone.
pub(in crate::log) fn keyframes_in(content: &[u8]) -> Vec<u32> {
    let known = crate::serial::from_msgpack(content).map(|EndMap { contents, .. }: EndMap<Contents<'_>>| contents);
    let known = known.ok().flatten().and_then(|map| FileIndex::decode(&map, u32::MAX).ok());
    let keyframes = known.iter().filter_map(|known| known.table(KEYFRAME));
    keyframes.flat_map(|table| &table.parts).map(|part| part.chunk).collect()
}

/// Reads the sizes of all chunks; `None` if the file has no valid seek table at its end.
fn seek_table(from: &mut (impl Read + Seek)) -> Result<Option<SeekTable>, LogError> {
    const FOOTER: u64 = 9;
    let bytes = from.seek(SeekFrom::End(0))?;
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
    let mut sizes = SeekTable::default();
    // The last entry is the seal.
    for entry in table[8..].chunks_exact(8).take(frames.saturating_sub(1) as usize) {
        sizes.add(word(entry) as usize, word(&entry[4..]) as usize);
    }
    Ok(Some(sizes))
}

/// Unpacks the frame of a chunk.
///
/// # Errors
/// When the chunk is damaged, or is not the one that the index names.
pub(in crate::log) fn content_of(frame: &FileFrame, chunk: u32) -> Result<ChunkContent, LogError> {
    let offset = frame.offset;
    let bytes = unpack(frame).map_err(|what| LogError::corrupt_chunk(offset, chunk, what))?;
    let content = ChunkContent { offset, index: chunk, bytes };
    let place = crate::log::chunks::place(&content.bytes).map_err(|what| content.corrupt(what))?;
    match place.index == chunk && !place.end {
        true => Ok(content),
        false => Err(content.corrupt(format!("chunk {} is in its place", place.index))),
    }
}

/// Reads and unpacks a chunk. Returns its frame, too.
///
/// # Errors
/// When the file cannot be read, or the chunk is damaged or is not the one that the index names.
pub(in crate::log) fn chunk_at(
    from: &mut (impl Read + Seek),
    index: &FileIndex,
    chunk: u32,
) -> Result<(FileFrame, ChunkContent), LogError> {
    let frame = frame_at(from, &index.sizes, chunk)?;
    let content = content_of(&frame, chunk)?;
    Ok((frame, content))
}

/// Reads the frame of a chunk.
///
/// # Errors
/// When the file cannot be read, or has no such chunk.
pub(in crate::log) fn frame_at(
    from: &mut (impl Read + Seek),
    sizes: &SeekTable,
    chunk: u32,
) -> Result<FileFrame, LogError> {
    let (offset, packed, content) = sizes.of(chunk).unwrap_or_default();
    let wrong = || LogError::corrupt_chunk(offset, chunk, "the seek table disagrees");
    if !(1..=MAX_CHUNK_BYTES).contains(&packed) {
        return Err(wrong());
    }
    from.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::with_capacity(packed);
    from.take(packed as u64).read_to_end(&mut bytes)?;
    let is_it =
        |frame: &FileFrame| frame.kind == FrameKind::Chunk { content_bytes: content } && frame.bytes.len() == packed;
    frame_of(bytes, offset).filter(is_it).ok_or_else(wrong)
}

/// Compares chunks with the index of their file, which may come after them.
#[derive(Debug, Default)]
pub(in crate::log) struct IndexCheck {
    /// The number, offset and digest of each chunk read.
    read: Vec<(u32, u64, u64)>,
}

impl IndexCheck {
    /// Notes what a chunk has.
    pub(in crate::log) fn add(&mut self, content: &ChunkContent, rows: &ChunkRows) {
        self.read.push((content.index, content.offset, digest_of(rows)));
    }

    /// Returns the next chunk of a file. After the last, compares all chunks with its index, if it has one. `is_read`
    /// selects the tables that the reader knows.
    pub(in crate::log) fn next<R: Read>(
        &self,
        chunks: &mut Chunks<R>,
        is_read: &dyn Fn(&str) -> bool,
    ) -> Result<Option<ChunkContent>, LogError> {
        let has_ended = chunks.end.is_some();
        let next = chunks.next()?;
        let (None, false, Some(last)) = (&next, has_ended, &chunks.end) else { return Ok(next) };
        let (_, _, known) = decode_end(&last.bytes, chunks.table.clone()).map_err(|what| last.corrupt(what))?;
        let Some(known) = known else { return Ok(None) };
        let differs = |(chunk, _, digest): &&(u32, u64, u64)| known.digest_of(*chunk, is_read) != *digest;
        match self.read.iter().find(differs) {
            Some((chunk, offset, _)) => Err(LogError::corrupt_chunk(*offset, *chunk, OTHER_ROWS)),
            None => Ok(None),
        }
    }
}
