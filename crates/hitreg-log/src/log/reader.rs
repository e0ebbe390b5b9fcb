//! Reads logs: chunk by chunk in bounded memory, a whole session at once, or in any order by the index.

use std::io::{Read, Seek, SeekFrom};

use super::chunk::{self, ChunkPosition, KindFilter, SessionSlice};
use super::chunks::{ChunkContent, Chunks, read_position};
use super::container::{Chain, FileFrame};
use super::error::{CHUNK_MEMORY_BYTES_MAX, LogError, Truncation};
use super::header::{self, FormatVersion, Schema};
use super::index::{ChunkRows, FileIndex, IndexBuilder, IndexCheck, IndexedRows, chunk_at, read_index};
use super::keyframes::{KEYFRAME, keyframe_in, keyframe_rows};
use crate::memory::MemoryLimit;
use crate::record::{GapRecord, Keyframe, Outline, Session, SessionChunk, SessionHeader};
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// Reads a log of any length chunk by chunk.
///
/// zstd's checksum covers each returned chunk. The digest of a chunk's bytes in the file comes with the next chunk. So
/// only a log that was read to its end without an error is exactly the written one.
pub struct LogReader<R> {
    pub(super) chunks: Chunks<R>,
    pub(super) header: SessionHeader,
    pub(super) schema: Schema,
    check: IndexCheck,
}

crate::partial_debug!([R] LogReader<R> { header });

impl<R: Read> LogReader<R> {
    /// Opens a log and reads its header. The reads are small, so `from` should be buffered.
    ///
    /// # Errors
    /// When the file is not a log that this build reads, or its header is damaged.
    pub fn new(from: R) -> Result<LogReader<R>, LogError> {
        let (chunks, (header, schema)) = Chunks::open(from, header::decode_log)?;
        Ok(LogReader::within(chunks, header, schema))
    }

    /// Returns a reader that continues a log with these chunks.
    pub(super) fn within(chunks: Chunks<R>, header: SessionHeader, schema: Schema) -> LogReader<R> {
        LogReader { chunks, header, schema, check: IndexCheck::default() }
    }

    /// Reads the log to its end, and returns its index.
    pub(super) fn build_index(mut self) -> Result<FileIndex, LogError> {
        let mut index = IndexBuilder::default();
        while let Some(content) = self.next_content()? {
            let (rows, _) = self.decode(&content)?;
            self.check.add(&content, &rows);
            index.add(content.index, rows);
        }
        Ok(index.finish(self.chunks.table))
    }

    fn next_content(&mut self) -> Result<Option<ChunkContent>, LogError> {
        let is_read = |table: &str| chunk::is_declared(table, &self.schema, self.header.classes.len());
        self.check.next(&mut self.chunks, &|table| table == KEYFRAME || is_read(table))
    }

    /// Decodes a chunk. Returns what it has of each table, too.
    fn decode(&self, content: &ChunkContent) -> Result<(ChunkRows, SessionChunk), LogError> {
        let decoded = chunk::decode(&content.bytes, &self.header, &self.schema);
        let chunk = decoded.map_err(|what| content.corrupt(what))?;
        Ok((rows_of(content, &chunk, &self.header), chunk))
    }

    /// Returns the log's header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns the version of the log's format.
    pub fn format(&self) -> FormatVersion {
        self.schema.version
    }

    /// Returns the records of the next chunk; `None` at the end of a complete, undamaged log.
    ///
    /// # Errors
    /// When the log is cut off or damaged here. Chunks returned earlier are good.
    pub fn next_chunk(&mut self) -> Result<Option<SessionChunk>, LogError> {
        let Some(content) = self.next_content()? else { return Ok(None) };
        let (rows, chunk) = self.decode(&content)?;
        self.check.add(&content, &rows);
        Ok(Some(chunk))
    }

    /// Returns only the records of the next chunk that a replay of clients needs, which is faster: states, frames,
    /// snapshots, snapshot arrivals, ticks and executed usercmds.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`].
    #[doc(hidden)]
    pub fn next_chunk_of_clients(&mut self) -> Result<Option<SessionChunk>, LogError> {
        let Some(content) = self.next_content()? else { return Ok(None) };
        let clients = KindFilter::OfClients;
        let decoded = chunk::decode_within(CHUNK_MEMORY_BYTES_MAX, &content.bytes, &self.header, clients, &self.schema);
        decoded.map(Some).map_err(|what| content.corrupt(what))
    }

    /// Returns the next chunk of a log that the caller holds in memory; `used` counts the bytes so far. Over the
    /// limit, the method reads the rest of the log, so that the error states the memory needed.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`], and when the log needs more memory than the limit.
    #[doc(hidden)]
    pub fn next_held(&mut self, limit: MemoryLimit, used: &mut usize) -> Result<Option<SessionChunk>, LogError> {
        let each = self.schema.empty_chunk_bytes(&self.header);
        while let Some(chunk) = self.next_chunk()? {
            *used = used.saturating_add(each + chunk.bytes());
            if limit.check(*used).is_ok() {
                return Ok(Some(chunk));
            }
        }
        limit.check(*used)?;
        Ok(None)
    }

    /// Returns the next few chunks, decoded in parallel; none at the end of a complete, undamaged log. `keyframe` gets
    /// each keyframe among them. A keyframe's chunk is empty, and `next_chunk` is its number.
    ///
    /// # Errors
    /// When the log is cut off or damaged in these chunks. Chunks returned earlier are good.
    pub fn next_chunks(&mut self, keyframe: &mut dyn FnMut(Keyframe)) -> Result<Vec<SessionChunk>, LogError> {
        const AT_ONCE: usize = 8;
        let mut contents = Vec::with_capacity(AT_ONCE);
        while contents.len() < AT_ONCE
            && let Some(content) = self.next_content()?
        {
            // Chunk 0 is the header.
            keyframe_in(&content.bytes, content.index as usize - 1).into_iter().for_each(&mut *keyframe);
            contents.push(content);
        }
        let (header, schema) = (&self.header, &self.schema);
        let decode = |content: &ChunkContent| {
            let share = CHUNK_MEMORY_BYTES_MAX / AT_ONCE;
            let made = chunk::decode_within(share, &content.bytes, header, KindFilter::All, schema)?;
            Ok::<_, String>((rows_of(content, &made, header), made))
        };
        let decoded = in_parallel(&contents, &decode);
        let mut chunks = Vec::with_capacity(contents.len());
        for (made, content) in decoded.into_iter().zip(&contents) {
            // A chunk over its share of the memory is decoded alone.
            let (rows, made) = made.or_else(|_| self.decode(content))?;
            self.check.add(content, &rows);
            chunks.push(made);
        }
        Ok(chunks)
    }

    /// Reads to the end of the log, or to where it is cut off.
    fn read_all(mut self, limit: MemoryLimit) -> Result<(Session, Option<Truncation>), LogError> {
        let mut session = Session::new(self.header.clone());
        let mut used = 0;
        let torn = loop {
            match self.next_held(limit, &mut used) {
                Ok(Some(chunk)) => session.append(chunk),
                Ok(None) => break None,
                Err(LogError::Torn(torn)) => break Some(torn),
                Err(error) => return Err(error),
            }
        };
        limit.check(used)?;
        session.put_in_order();
        Ok((session, torn))
    }
}

/// Returns what a decoded chunk has of each table.
pub(super) fn rows_of(content: &ChunkContent, chunk: &SessionChunk, header: &SessionHeader) -> ChunkRows {
    match chunk.is_empty() {
        true => keyframe_in(&content.bytes, 0).map(|keyframe| keyframe_rows(&keyframe)).into_iter().collect(),
        false => chunk::rows_by_table(&SessionSlice::whole(chunk), header),
    }
}

/// Applies a function to all items, on as many threads as the machine runs at once. The calling thread takes the share
/// of a thread that cannot be started.
fn in_parallel<T: Sync, U: Send>(items: &[T], function: &(impl Fn(&T) -> U + Sync)) -> Vec<U> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let mut shares = items.chunks(share);
        let own = shares.next().unwrap_or_default();
        let start = |share| {
            let all = move |share: &[T]| share.iter().map(function).collect::<Vec<U>>();
            (share, std::thread::Builder::new().spawn_scoped(scope, move || all(share)))
        };
        let others: Vec<(&[T], _)> = shares.map(start).collect();
        let mut made: Vec<U> = own.iter().map(function).collect();
        for (share, other) in others {
            match other {
                Ok(other) => made.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
                Err(_) => made.extend(share.iter().map(function)),
            }
        }
        made
    })
}

impl<R: Read + Send> LogReader<R> {
    /// Passes the outline of each chunk to `to`, up to the end or to where the log is cut off. Outlines need little
    /// decoding. Another thread reads and unpacks the file.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn outlines(self, to: &mut dyn FnMut(Outline)) -> Result<Option<Truncation>, LogError> {
        const QUEUED_CHUNKS_MAX: usize = 16;
        let LogReader { mut chunks, header, schema, .. } = self;
        let (sender, waiting) = std::sync::mpsc::sync_channel(QUEUED_CHUNKS_MAX);
        let read = move || -> Result<(), LogError> {
            while let Some(content) = chunks.next()? {
                // The receiver only stops early with an error of its own.
                if sender.send(content).is_err() {
                    break;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("log reader".into());
            let thread = thread.spawn_scoped(scope, read).map_err(super::no_thread)?;
            for content in waiting {
                let outline = chunk::outline(&content.bytes, &header, &schema).map_err(|what| content.corrupt(what))?;
                to(outline);
            }
            match thread.join() {
                Ok(Ok(())) => Ok(None),
                Ok(Err(LogError::Torn(torn))) => Ok(Some(torn)),
                Ok(Err(error)) => Err(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Reads only a log's header.
///
/// # Errors
/// As [`LogReader::new`].
pub fn read_header(from: impl Read) -> Result<SessionHeader, LogError> {
    LogReader::new(from).map(|reader| reader.header)
}

/// Reads a whole session, bit for bit the written one.
///
/// # Errors
/// When the bytes are not a log that this build reads, when any bit changed, or when the file is cut off.
/// Also when the file needs more memory than the default limit ([`MemoryLimit`]).
pub fn read_session(from: impl Read) -> Result<Session, LogError> {
    read_session_within(MemoryLimit::default(), from)
}

/// Reads a whole session within another memory limit.
///
/// # Errors
/// As [`read_session`].
pub fn read_session_within(limit: MemoryLimit, from: impl Read) -> Result<Session, LogError> {
    match read_prefix_within(limit, from)? {
        (session, None) => Ok(session),
        (_, Some(torn)) => Err(LogError::Torn(torn)),
    }
}

/// Reads a session that may be cut off, up to the last complete chunk. Returns the place of the cut, if any.
///
/// # Errors
/// As [`read_session`], except for a cut after the header.
pub fn read_prefix(from: impl Read) -> Result<(Session, Option<Truncation>), LogError> {
    read_prefix_within(MemoryLimit::default(), from)
}

/// Reads a session that may be cut off, within another memory limit.
///
/// # Errors
/// As [`read_prefix`].
pub fn read_prefix_within(limit: MemoryLimit, from: impl Read) -> Result<(Session, Option<Truncation>), LogError> {
    LogReader::new(from)?.read_all(limit)
}

/// A log with its index.
pub struct IndexedLog<R> {
    from: R,
    header: SessionHeader,
    schema: Schema,
    sealed: bool,
    index: FileIndex,
}

crate::partial_debug!([R] IndexedLog<R> { header });

/// A log that is read from a keyframe on.
#[derive(Debug)]
pub struct SeekResult<R> {
    /// The keyframe. Its `chunk` is 0, the number of the reader's next chunk.
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
    pub fn chunk(&mut self, chunk: u32) -> Result<SessionChunk, LogError> {
        let (_, content) = self.content(chunk)?;
        let decoded = chunk::decode(&content.bytes, &self.header, &self.schema);
        let chunk = decoded.map_err(|what| content.corrupt(what))?;
        self.index.check(&content, &rows_of(&content, &chunk, &self.header), &|table| {
            chunk::is_declared(table, &self.schema, self.header.classes.len())
        })?;
        Ok(chunk)
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
        self.find(chunks, |chunk| {
            let found = chunk.ticks.iter().find(|record| record.tick == tick).map(|record| record.at);
            (found, chunk.ticks.first().is_some_and(|first| first.tick < tick))
        })
    }

    /// Searches chunks in ascending order of what is sought. `look` returns the time that it finds in a chunk, or else
    /// whether the chunk begins before what is sought. Half of the chunks need not be read.
    fn find(
        &mut self,
        chunks: Vec<u32>,
        look: impl Fn(&SessionChunk) -> (Option<Micros>, bool),
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
    pub fn time_of_usercmd(&mut self, player: PlayerId, command: CommandSeq) -> Result<Option<Micros>, LogError> {
        let parts = self.index.table("frames").map_or(&[][..], |table| &table.parts);
        let of_player = parts.iter().filter(|part| self.index.players(part).contains(&player.0));
        let chunks = of_player.map(|part| part.chunk).collect();
        self.find(chunks, |chunk| {
            let frames = chunk.players.get(usize::from(player.0)).map_or(&[][..], |records| &records.frames);
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
        let ChunkPosition { before, .. } = read_position(&content.bytes).map_err(|what| content.corrupt(what))?;
        let IndexedLog { mut from, header, schema, sealed, index } = self;
        let (table, chain) = (index.sizes.before(chunk), Chain(before.unwrap_or_default()));
        from.seek(SeekFrom::Start(frame.offset + frame.bytes.len() as u64))?;
        let chunks = Chunks::after(&frame, table, chain, from, sealed);
        Ok(Some(SeekResult { keyframe, reader: LogReader::within(chunks, header, schema) }))
    }

    /// Returns the first missing part of the session, see [`GapRecord::first_after`].
    ///
    /// # Errors
    /// As [`IndexedLog::chunk`].
    pub fn first_gap(&mut self) -> Result<Option<GapRecord>, LogError> {
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

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_bytes::ByteBuf;

    use super::*;
    use crate::log::chunk::to_messagepack;
    use crate::log::container::{ChunkSink, NextChunk};
    use crate::log::index::PartRows;
    use crate::record::{CellKind, Class, FieldSchema, Origin, Scope};
    use crate::units::Seed;

    /// A chunk that this library's writers would not make.
    #[derive(Serialize)]
    struct CraftedChunk {
        index: u32,
        before: u64,
        states: (Vec<u32>, Vec<u32>, Vec<ByteBuf>),
    }

    fn header() -> SessionHeader {
        let field = |i: u32| FieldSchema::new(format!("cell{i}"), CellKind::U32, Scope::Status);
        SessionHeader {
            game: "disc".into(),
            rules: Vec::new().into(),
            map: String::new(),
            seed: Seed(0),
            settings: Vec::new(),
            preset: None,
            players: Vec::new(),
            origin: Origin::Synthetic,
            side: None,
            classes: Class::only((0..12).map(field).collect()),
            usercmd: Vec::new(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        }
    }

    /// Returns an undamaged file whose chunks claim many rows of zeros in a few bytes each.
    fn crafted(chunks: u32, rows: u32) -> Vec<u8> {
        let mut sink = ChunkSink::new(Vec::new(), 3).unwrap();
        sink.write_header(&header::encode_log(&header()).unwrap(), 1).unwrap();
        for _ in 0..chunks {
            let NextChunk { index, before } = sink.next();
            let states = (vec![0], vec![rows], vec![ByteBuf::new(); 14]);
            let content = to_messagepack(&CraftedChunk { index, before, states }).unwrap();
            let part = PartRows::of_log("states", rows as usize, None);
            sink.write_chunk("records", &content, None, vec![part]).unwrap();
        }
        sink.finish().unwrap()
    }

    #[test]
    fn a_chunk_that_claims_too_many_rows_is_refused_before_they_are_allocated() {
        assert_eq!(read_session(&crafted(2, 1_000)[..]).unwrap().states.len(), 2_000);
        for rows in [1_000_000, u32::MAX] {
            let error = read_session(&crafted(1, rows)[..]).unwrap_err();
            assert!(matches!(&error, LogError::Corrupt { what, .. } if what.contains("MiB of memory")), "{error}");
        }
    }

    #[test]
    fn many_small_chunks_cannot_become_a_giant_session() {
        let bomb = crafted(60, 100_000);
        assert!(bomb.len() < 20_000);
        let limit = MemoryLimit::of_bytes(80 << 20);
        let read = LogReader::new(&bomb[..]).unwrap().read_all(limit).map(|_| ()).unwrap_err();
        let LogError::NeedsMemory(needs) = read else { panic!("{read}") };
        let recovered = crate::log::recover::recover_within(limit, &bomb);
        assert!(matches!(recovered, Err(LogError::NeedsMemory(recovered)) if recovered == needs));
        let suffices = MemoryLimit::of_bytes(needs.needed_bytes);
        assert_eq!(LogReader::new(&bomb[..]).unwrap().read_all(suffices).unwrap().0.states.len(), 6_000_000);
        let mut reader = LogReader::new(&bomb[..]).unwrap();
        let mut rows = 0;
        while let Some(chunk) = reader.next_chunk().unwrap() {
            rows += chunk.states.len();
        }
        assert_eq!(rows, 6_000_000, "chunk by chunk it can be read");
    }

    /// Every position in this file looks like the start of a chunk that continues to the end.
    #[test]
    fn recovery_reads_each_byte_only_a_few_times() {
        let session = Session::new(header());
        let mut file = crate::log::write_session(Vec::new(), &session, crate::log::WriterOptions::whole()).unwrap();
        file.truncate(file.len() - 100);
        // A frame of 12 bytes that announces a block of 16 KiB; the block contains more such frames.
        let bait = [0x28, 0xB5, 0x2F, 0xFD, 0xA4, 0, 0, 0x10, 0, 0, 0, 2];
        (0..400_000).for_each(|_| file.extend(bait));
        let (found, damage) = crate::log::recover(&file).unwrap();
        assert_eq!(found.header, session.header);
        assert!(damage.parts.iter().any(|part| part.what.contains("look like chunks")), "{:?}", damage.parts);
    }
}
