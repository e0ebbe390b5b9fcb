//! The index of a file: the rows of each table in each chunk. The last chunk holds it. For a file without one, readers
//! build the same index from the chunks.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};
use xxhash_rust::xxh3::xxh3_64;

use super::chunk::to_messagepack;
use super::chunks::{ChunkContent, Chunks};
use super::column;
use super::container::{
    Chain, FileFrame, FrameKind, NextChunk, SEEK_FOOTER_MAGIC, SEEK_TABLE_MAGIC, SeekEntry, SeekTable, frame_of, unpack,
};
use super::error::{CHUNK_BYTES_MAX, LOG_PLAYERS_MAX, LogError, WriteError};
use super::keyframes::KEYFRAME;
use super::table::PackedTable;
use super::trace_file::{TableMap, empty_table, table_map};
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::Table;

/// The most entries of an index. A log of 16 hours has fewer. A writer leaves out a larger index, and a reader builds
/// it.
const INDEX_ENTRIES_MAX: usize = 1 << 20;

/// How the file stores that a part has no times.
const NO_TIMES: (i64, i64) = (0, -1);

/// The tables of a log or a trace, and which of their rows each chunk has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileIndex {
    tables: Vec<IndexedTable>,
    /// The different lists of players.
    players: Vec<Vec<u16>>,
    /// The places and sizes of all chunks.
    pub(super) sizes: SeekTable,
}

/// A table in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedTable {
    /// The table without rows. That of a log has no columns, because the log's header declares them.
    pub table: Table,
    /// Its rows in each chunk that has any, in the order of the file.
    pub parts: Vec<IndexedRows>,
}

/// The rows of one table in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedRows {
    /// The number of the chunk.
    pub chunk: u32,
    /// The number of rows.
    pub rows: u32,
    /// The least and the greatest time, or tick in a table that has ticks alone; `None` without either.
    pub times: Option<(i64, i64)>,
    /// The place of the list of players.
    players: u32,
}

impl IndexedTable {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.rows)).sum()
    }
}

impl FileIndex {
    /// Returns the tables, in the order of their first rows.
    pub fn tables(&self) -> &[IndexedTable] {
        &self.tables
    }

    /// Returns a table by name.
    pub fn table(&self, name: &str) -> Option<&IndexedTable> {
        self.tables.iter().find(|known| known.table.name == name)
    }

    /// Returns the players who have the rows, ascending. Only tables of players' records have them.
    pub fn players(&self, rows: &IndexedRows) -> &[u16] {
        self.players.get(rows.players as usize).map_or(&[], |players| players)
    }

    /// Returns the digest of what a chunk has of these tables.
    fn digest_of(&self, chunk: u32, of: &dyn Fn(&str) -> bool) -> u64 {
        let tables = self.tables.iter().filter(|known| of(&known.table.name));
        let parts = tables.filter_map(|known| {
            let part = &known.parts[known.parts.binary_search_by_key(&chunk, |part| part.chunk).ok()?];
            Some(digest(&known.table.name, part.rows, part.times, self.players(part)))
        });
        parts.fold(0, u64::wrapping_add)
    }

    /// Compares what a chunk has with the index. `is_read` selects the tables that the reader knows.
    pub(super) fn check(
        &self,
        content: &ChunkContent,
        rows: &ChunkRows,
        is_read: &dyn Fn(&str) -> bool,
    ) -> Result<(), LogError> {
        let is_same = self.digest_of(content.index, is_read) == digest_of(rows);
        if is_same { Ok(()) } else { Err(content.corrupt(OTHER_ROWS)) }
    }

    /// Compares the number of rows of a table in a chunk with the index.
    pub(super) fn check_count(&self, content: &ChunkContent, table: &str, rows: u64) -> Result<(), LogError> {
        let parts = self.table(table).into_iter().flat_map(|known| &known.parts);
        let known: u64 = parts.filter(|part| part.chunk == content.index).map(|part| u64::from(part.rows)).sum();
        if known == rows { Ok(()) } else { Err(content.corrupt(OTHER_ROWS)) }
    }

    fn encode(&self) -> IndexMap<TableMap<'_, ByteBuf>, ByteBuf> {
        let parts = || self.tables.iter().flat_map(|table| &table.parts);
        let series: Vec<usize> = self.tables.iter().map(|table| table.parts.len()).collect();
        let whole = |value: &dyn Fn(&IndexedRows) -> i64| -> Vec<i64> { parts().map(value).collect() };
        let first = whole(&|part| part.times.unwrap_or(NO_TIMES).0);
        let last = whole(&|part| part.times.unwrap_or(NO_TIMES).1);
        let columns = vec![
            column::encode(&whole(&|part| part.chunk.into()), &series),
            column::encode(&whole(&|part| part.rows.into()), &series),
            column::encode(&first, &series),
            column::encode_relative(&last, &first, &series),
            column::encode(&whole(&|part| part.players.into()), &series),
        ];
        let ids = (0..).take(self.tables.len()).collect();
        let columns = columns.into_iter().map(ByteBuf::from).collect();
        IndexMap {
            tables: self.tables.iter().map(|known| table_map(&known.table)).collect(),
            players: self.players.clone(),
            parts: PackedTable::trimmed(ids, &series, columns),
        }
    }

    /// Decodes the index of a file with this many chunks. The result lacks their sizes.
    fn decode(map: &IndexMap<TableMap<'_, &Bytes>, &Bytes>, chunks: u32) -> Result<FileIndex, String> {
        let PackedTable(ids, rows, columns) = &map.parts;
        let all: usize = rows.iter().map(|rows| *rows as usize).sum();
        if all > INDEX_ENTRIES_MAX {
            return Err(format!("its index has {all} entries, and may have {INDEX_ENTRIES_MAX}"));
        }
        if ids.len() != rows.len() || !ids.iter().copied().eq((0..).take(map.tables.len())) {
            return Err("its index has other tables than entries".into());
        }
        let lists = |players: &Vec<u16>| {
            players.windows(2).all(|pair| pair[0] < pair[1])
                && players.last().is_none_or(|last| usize::from(*last) < LOG_PLAYERS_MAX)
        };
        if !map.players.iter().all(lists) {
            return Err("its index has a list of players that no session has".into());
        }
        let series: Vec<usize> = rows.iter().map(|rows| *rows as usize).collect();
        let packed = |place: usize| columns.get(place).map_or(&[][..], |column| column);
        let numbers = |place| column::decode(packed(place), &series, None);
        let (chunk, rows, first) = (numbers(0)?, numbers(1)?, numbers(2)?);
        let last = column::decode(packed(3), &series, Some(&first))?;
        let players = numbers(4)?;
        let wrong = |row: usize| format!("entry {row} of its index is that of no chunk");
        let part = |row: usize| {
            let times = match (first[row], last[row]) {
                NO_TIMES => None,
                (first, last) if first <= last => Some((first, last)),
                _ => return Err(wrong(row)),
            };
            let chunk = u32::try_from(chunk[row]).ok().filter(|chunk| (1..chunks.saturating_sub(1)).contains(chunk));
            let rows = u32::try_from(rows[row]).ok().filter(|rows| *rows > 0);
            let players = u32::try_from(players[row]).ok().filter(|place| (*place as usize) < map.players.len());
            match (chunk, rows, players) {
                (Some(chunk), Some(rows), Some(players)) => Ok(IndexedRows { chunk, rows, times, players }),
                _ => Err(wrong(row)),
            }
        };
        let mut tables: Vec<IndexedTable> = Vec::with_capacity(map.tables.len());
        let mut at = 0;
        for (of, rows) in map.tables.iter().zip(series) {
            let table = empty_table(of)?;
            let parts: Vec<IndexedRows> = (at..at + rows).map(part).collect::<Result<_, _>>()?;
            at += rows;
            if parts.windows(2).any(|pair| pair[0].chunk >= pair[1].chunk) {
                return Err(format!("its index lists chunks of table {:?} out of order", table.name));
            }
            tables.push(IndexedTable { table, parts });
        }
        let mut names = SortedSet::new();
        match tables.iter().find(|known| !names.insert(&*known.table.name)) {
            Some(twice) => Err(format!("its index lists table {:?} twice", twice.table.name)),
            None => Ok(FileIndex { tables, players: map.players.clone(), ..FileIndex::default() }),
        }
    }
}

/// The index in the last chunk. The series of `parts` are the tables, and its columns `chunk`, `rows`, `first`, `last`
/// and `players`.
#[derive(Serialize, Deserialize)]
struct IndexMap<T, C> {
    tables: Vec<T>,
    players: Vec<Vec<u16>>,
    parts: PackedTable<C>,
}

/// The last chunk.
#[derive(Serialize, Deserialize)]
struct EndMap<M> {
    index: u32,
    #[serde(default)]
    before: Option<u64>,
    #[serde(default)]
    end: bool,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    contents: Option<M>,
}

/// The error of a chunk that is not as its file's index says.
const OTHER_ROWS: &str = "its rows are not those that the last chunk lists";

/// What one chunk has of one table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartRows {
    /// The table with its columns and without rows. That of a log has no columns.
    pub(super) table: Table,
    pub(super) rows: u32,
    pub(super) times: Option<(i64, i64)>,
    /// The players who have rows, ascending.
    pub(super) players: Vec<u16>,
}

impl PartRows {
    /// Returns rows of a log's table, without players.
    pub(super) fn of_log(table: impl Into<String>, rows: usize, times: Option<(i64, i64)>) -> PartRows {
        PartRows { table: Table::new(table, Vec::new()), rows: rows as u32, times, players: Vec::new() }
    }
}

/// What a chunk has of each table.
pub(super) type ChunkRows = Vec<PartRows>;

/// Returns the digest of what a chunk has. It does not depend on the order of the tables.
fn digest_of(rows: &ChunkRows) -> u64 {
    let parts = rows.iter().map(|part| digest(&part.table.name, part.rows, part.times, &part.players));
    parts.fold(0, u64::wrapping_add)
}

/// Returns the digest of what a chunk has of one table. Those of a chunk's tables are added up.
fn digest(table: &str, rows: u32, times: Option<(i64, i64)>, players: &[u16]) -> u64 {
    let (first, last) = times.unwrap_or(NO_TIMES);
    let mut bytes = Vec::with_capacity(table.len() + 24 + 2 * players.len());
    bytes.extend_from_slice(&rows.to_le_bytes());
    bytes.extend_from_slice(&first.to_le_bytes());
    bytes.extend_from_slice(&last.to_le_bytes());
    players.iter().for_each(|player| bytes.extend_from_slice(&player.to_le_bytes()));
    bytes.extend_from_slice(table.as_bytes());
    xxh3_64(&bytes)
}

/// Builds an index from chunks in the order of the file.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    tables: Vec<IndexedTable>,
    places: SortedMap<String, usize>,
    players: SortedMap<Vec<u16>, u32>,
    parts: usize,
}

impl IndexBuilder {
    /// Adds the rows of a chunk. A table without rows is known from then on.
    pub(super) fn add(&mut self, chunk: u32, rows: ChunkRows) {
        for PartRows { table, rows, times, players } in rows {
            let next = self.tables.len();
            let place = *self.places.entry(table.name.clone()).or_insert(next);
            if place == next {
                self.tables.push(IndexedTable { table, parts: Vec::new() });
            } else if rows > 0 {
                let known = &mut self.tables[place];
                known.table.widen(table, known.parts.is_empty());
            }
            if rows > 0 {
                let next = self.players.len() as u32;
                let players = *self.players.entry(players).or_insert(next);
                self.tables[place].parts.push(IndexedRows { chunk, rows, times, players });
                self.parts += 1;
            }
        }
    }

    /// Returns a table that was added.
    pub(super) fn table(&self, name: &str) -> Option<&IndexedTable> {
        self.places.get(name).map(|place| &self.tables[*place])
    }

    /// Returns the index of a file whose chunks have these sizes.
    pub(super) fn finish(self, sizes: SeekTable) -> FileIndex {
        let mut players: Vec<(Vec<u16>, u32)> = self.players.into_iter().collect();
        players.sort_unstable_by_key(|(_, place)| *place);
        let players = players.into_iter().map(|(list, _)| list).collect();
        FileIndex { tables: self.tables, players, sizes }
    }

    /// Encodes the last chunk. An index that does not fit is left out.
    pub(super) fn encode_end(self, NextChunk { index, before }: NextChunk) -> Result<Vec<u8>, WriteError> {
        if self.parts <= INDEX_ENTRIES_MAX {
            let known = self.finish(SeekTable::default());
            let end = EndMap { index, before: Some(before), end: true, contents: Some(known.encode()) };
            let content = to_messagepack(&end)?;
            if content.len() <= CHUNK_BYTES_MAX
                && crate::serial::count_values(crate::serial::VALUES_MAX, &content).is_ok()
            {
                return Ok(content);
            }
        }
        to_messagepack(&EndMap::<()> { index, before: Some(before), end: true, contents: None })
    }
}

// Reads the index at the end of a file, and compares an index with the chunks.

/// The most bytes of a seek table.
const SEEK_TABLE_BYTES_MAX: u64 = 16 << 20;

/// Reads the index of a sealed file: the seek table, and the last chunk. Returns `None` if the file does not end like
/// one with an index.
///
/// # Errors
/// When the file cannot be read, or its end is damaged.
pub(super) fn read_index(from: &mut (impl Read + Seek)) -> Result<Option<FileIndex>, LogError> {
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
pub(super) fn keyframes_in(content: &[u8]) -> Vec<u32> {
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
    if word(&footer[5..]) != SEEK_FOOTER_MAGIC || length + 8 > bytes.min(SEEK_TABLE_BYTES_MAX) {
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
pub(super) fn content_of(frame: &FileFrame, chunk: u32) -> Result<ChunkContent, LogError> {
    let offset = frame.offset;
    let bytes = unpack(frame).map_err(|what| LogError::corrupt_chunk(offset, chunk, what))?;
    let content = ChunkContent { offset, index: chunk, bytes };
    let position = crate::log::chunks::read_position(&content.bytes).map_err(|what| content.corrupt(what))?;
    match position.index == chunk && !position.end {
        true => Ok(content),
        false => Err(content.corrupt(format!("chunk {} is in its place", position.index))),
    }
}

/// Reads and unpacks a chunk. Returns its frame, too.
///
/// # Errors
/// When the file cannot be read, or the chunk is damaged or is not the one that the index names.
pub(super) fn chunk_at(
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
pub(super) fn frame_at(from: &mut (impl Read + Seek), sizes: &SeekTable, chunk: u32) -> Result<FileFrame, LogError> {
    let SeekEntry { offset, compressed_bytes, content_bytes } = sizes.entry(chunk).unwrap_or_default();
    let (packed, content_bytes) = (compressed_bytes as usize, content_bytes as usize);
    let wrong = || LogError::corrupt_chunk(offset, chunk, "the seek table disagrees");
    if !(1..=CHUNK_BYTES_MAX).contains(&packed) {
        return Err(wrong());
    }
    from.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; packed];
    match from.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(wrong()),
        read => read?,
    }
    let is_it = |frame: &FileFrame| frame.kind == FrameKind::Chunk { content_bytes } && frame.bytes.len() == packed;
    frame_of(bytes, offset).filter(is_it).ok_or_else(wrong)
}

/// Compares chunks with the index of their file, which may come after them.
#[derive(Debug, Default)]
pub(super) struct IndexCheck {
    /// The number, offset and digest of each chunk read.
    read: Vec<(u32, u64, u64)>,
}

impl IndexCheck {
    /// Notes what a chunk has.
    pub(super) fn add(&mut self, content: &ChunkContent, rows: &ChunkRows) {
        self.read.push((content.index, content.offset, digest_of(rows)));
    }

    /// Returns the next chunk of a file. After the last, compares all chunks with its index, if it has one. `is_read`
    /// selects the tables that the reader knows.
    pub(super) fn next<R: Read>(
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
