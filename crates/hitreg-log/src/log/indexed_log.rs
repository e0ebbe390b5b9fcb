//! A log with its index, whose chunks are read in any order.

use std::io::{Read, Seek, SeekFrom};

use super::chunk;
use super::chunk::ChunkPosition;
use super::chunks::{ChunkContent, Chunks, place};
use super::container::Chain;
use super::error::LogError;
use super::frames::FileFrame;
use super::index::{FileIndex, IndexedRows, chunk_at, read_index};
use super::keyframes::{KEYFRAME, keyframe_in};
use super::reader::{LogReader, rows_of};
use super::schema::Schema;
use crate::record::{GapRecord, Keyframe, Session, SessionHeader, SessionStretch};
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, Tick};

/// A log with its index.
pub struct IndexedLog<R> {
    from: R,
    header: SessionHeader,
    schema: Schema,
    sealed: bool,
    index: FileIndex,
}

/// A log that is read from a keyframe on.
pub struct SeekResult<R> {
    /// The keyframe. Its `stretch` is 0, the number of the reader's next chunk.
    pub keyframe: Keyframe,
    /// Reads the chunks after the keyframe.
    pub reader: LogReader<R>,
}

/// Which keyframe to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyframeQuery {
    /// The first keyframe.
    First,
    /// The last keyframe at or before a time.
    At(Micros),
}

impl<R: Read + Seek> IndexedLog<R> {
    /// Opens a log. It reads only the header and the index, or the whole log if it has no index.
    ///
    /// # Errors
    /// When the log cannot be read, or what is read of it is damaged.
    pub fn open(mut from: R) -> Result<IndexedLog<R>, LogError> {
        let LogReader { chunks, header, schema, .. } = LogReader::new(&mut from)?;
        let sealed = chunks.sealed;
        let index = if sealed && let Some(index) = read_index(&mut from)? {
            index
        } else {
            from.seek(SeekFrom::Start(0))?;
            LogReader::new(&mut from)?.build_index()?
        };
        Ok(IndexedLog { from, header, schema, sealed, index })
    }

    /// Returns the log's header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns the index.
    pub fn index(&self) -> &FileIndex {
        &self.index
    }

    /// Reads the records of a chunk.
    ///
    /// # Errors
    /// When the chunk cannot be read, is damaged, or has other rows than the index lists.
    pub fn chunk(&mut self, chunk: u32) -> Result<SessionStretch, LogError> {
        let (_, content) = self.content(chunk)?;
        let decoded = chunk::decode(&content.bytes, &self.header, &self.schema);
        let stretch = decoded.map_err(|what| content.corrupt(what))?;
        self.index.check(&content, &rows_of(&content, &stretch, &self.header), &|table| {
            chunk::is_declared(table, &self.schema, self.header.classes.len())
        })?;
        Ok(stretch)
    }

    /// Returns the numbers of the chunks that may have records between two times, ascending.
    pub fn chunks_between(&self, first: Micros, last: Micros) -> SortedSet<u32> {
        let tables = self.index.tables().iter().filter(|known| known.table.name != KEYFRAME);
        let parts = tables.flat_map(|known| &known.parts);
        let is_near = |part: &&IndexedRows| part.times.is_some_and(|(from, to)| from <= last.0 && first.0 <= to);
        parts.filter(is_near).map(|part| part.chunk).collect()
    }

    /// Reads the records of the chunks that may have records between two times.
    ///
    /// # Errors
    /// As [`IndexedLog::chunk`].
    pub fn records_between(&mut self, first: Micros, last: Micros) -> Result<Session, LogError> {
        let chunks = self.chunks_between(first, last);
        let mut session = Session::new(self.header.clone());
        for chunk in chunks {
            session.append(self.chunk(chunk)?);
        }
        session.put_in_order();
        Ok(session)
    }

    fn content(&mut self, chunk: u32) -> Result<(FileFrame, ChunkContent), LogError> {
        chunk_at(&mut self.from, &self.index, chunk)
    }

    /// Returns the time of a tick; `None` if the log has no such tick.
    ///
    /// # Errors
    /// As [`IndexedLog::chunk`].
    pub fn time_of(&mut self, tick: Tick) -> Result<Option<Micros>, LogError> {
        let chunks = self.index.table("ticks").iter().flat_map(|table| &table.parts).map(|part| part.chunk).collect();
        self.find(chunks, |stretch| {
            let found = stretch.ticks.iter().find(|record| record.tick == tick).map(|record| record.at);
            (found, stretch.ticks.first().is_some_and(|first| first.tick < tick))
        })
    }

    /// Searches chunks in ascending order of what is sought. `look` returns the time that it finds in a chunk, or else
    /// whether the chunk begins before what is sought. Half of the chunks need not be read.
    fn find(
        &mut self,
        chunks: Vec<u32>,
        look: impl Fn(&SessionStretch) -> (Option<Micros>, bool),
    ) -> Result<Option<Micros>, LogError> {
        let (mut low, mut high) = (0, chunks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match look(&self.chunk(chunks[middle])?) {
                (Some(found), _) => return Ok(Some(found)),
                (None, true) => low = middle + 1,
                (None, false) => high = middle,
            }
        }
        Ok(None)
    }

    /// Returns the time at which a player made a usercmd; `None` if the log has no client frame of it.
    ///
    /// # Errors
    /// As [`IndexedLog::chunk`].
    pub fn time_of_usercmd(&mut self, player: u16, command: CommandSeq) -> Result<Option<Micros>, LogError> {
        let parts = self.index.table("frames").map_or(&[][..], |table| &table.parts);
        let of_player = parts.iter().filter(|part| self.index.players(part).contains(&player));
        let chunks = of_player.map(|part| part.chunk).collect();
        self.find(chunks, |stretch| {
            let frames = stretch.players.get(usize::from(player)).map_or(&[][..], |records| &records.frames);
            let found = frames.iter().find(|frame| frame.command.seq == command).map(|frame| frame.at);
            (found, frames.first().is_some_and(|first| first.command.seq < command))
        })
    }

    /// Finds a keyframe; `None` if no keyframe matches.
    ///
    /// # Errors
    /// When the keyframe cannot be read, or is damaged.
    pub fn seek(mut self, sought: KeyframeQuery) -> Result<Option<SeekResult<R>>, LogError> {
        let Some((keyframe, chunk)) = self.keyframe(sought)? else { return Ok(None) };
        let (frame, content) = self.content(chunk)?;
        let ChunkPosition { before, .. } = place(&content.bytes).map_err(|what| content.corrupt(what))?;
        let mut chain = Chain(before.unwrap_or_default());
        chain.add(&frame.bytes);
        let IndexedLog { mut from, header, schema, sealed, index } = self;
        let next = frame.offset + frame.bytes.len() as u64;
        from.seek(SeekFrom::Start(next))?;
        let chunks = Chunks::within(from, (sealed, next, frame.offset), (index.sizes.before(chunk + 1), chain));
        Ok(Some(SeekResult { keyframe, reader: LogReader::within(chunks, header, schema) }))
    }

    /// Returns the first missing part of the session, see [`GapRecord::first_after`].
    ///
    /// # Errors
    /// As [`IndexedLog::chunk`].
    pub fn first_hole(&mut self) -> Result<Option<GapRecord>, LogError> {
        let chunks = |table: &str| -> Vec<u32> {
            self.index.table(table).map_or(Vec::new(), |known| known.parts.iter().map(|part| part.chunk).collect())
        };
        let (of_gaps, of_ticks) = (chunks("gaps"), chunks("ticks"));
        let mut gaps = Vec::new();
        for chunk in of_gaps {
            gaps.extend(self.chunk(chunk)?.gaps);
        }
        let first_tick = match of_ticks.first().filter(|_| !gaps.is_empty()) {
            Some(chunk) => self.chunk(*chunk)?.ticks.first().map(|tick| tick.at),
            None => None,
        };
        Ok(GapRecord::first_after(&gaps, first_tick).cloned())
    }

    /// Returns the times of the keyframes' ticks, ascending.
    pub fn keyframe_times(&self) -> Vec<Micros> {
        let parts = self.index.table(KEYFRAME).map_or(&[][..], |known| &known.parts);
        parts.iter().filter_map(|part| part.times).map(|(_, at)| Micros(at)).collect()
    }

    /// Reads a keyframe, and returns the number of its chunk, too; `None` if no keyframe matches.
    ///
    /// # Errors
    /// As [`IndexedLog::seek`].
    pub fn keyframe(&mut self, sought: KeyframeQuery) -> Result<Option<(Keyframe, u32)>, LogError> {
        let parts = self.index.table(KEYFRAME).map_or(&[][..], |known| &known.parts);
        let is_before = |part: &&IndexedRows| match (sought, part.times) {
            (KeyframeQuery::First, _) => true,
            (KeyframeQuery::At(sought), Some((_, at))) => at <= sought.0,
            (KeyframeQuery::At(_), None) => false,
        };
        let mut those = parts.iter().filter(is_before);
        let wanted = if sought == KeyframeQuery::First { those.next() } else { those.next_back() };
        let Some(&IndexedRows { chunk, times, .. }) = wanted else { return Ok(None) };
        let (_, content) = self.content(chunk)?;
        match keyframe_in(&content.bytes, 0).filter(|found| times == Some((found.at.0, found.at.0))) {
            Some(keyframe) => Ok(Some((keyframe, chunk))),
            None => Err(content.corrupt("it is not the keyframe that the last chunk lists")),
        }
    }
}
