//! Reads logs: chunk by chunk in bounded memory, or a whole session at once.

use std::io::Read;

use super::chunk;
use super::chunk::{Kinds, SessionSlice};
use super::chunks::ChunkContent;
use super::chunks::Chunks;
use super::error::{LogError, Truncation};
use super::header;
use super::index::{ChunkRows, FileIndex, IndexBuilder, IndexCheck};
use super::keyframes::{KEYFRAME, keyframe_in, keyframe_rows};
use super::limits::MAX_CHUNK_MEMORY;
use super::schema::Schema;
use super::version::FormatVersion;
use crate::memory::MemoryLimit;
use crate::record::Keyframe;
use crate::record::{Outline, Session, SessionHeader, SessionStretch};

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
    fn decode(&self, content: &ChunkContent) -> Result<(ChunkRows, SessionStretch), LogError> {
        let decoded = chunk::decode(&content.bytes, &self.header, &self.schema);
        let stretch = decoded.map_err(|what| content.corrupt(what))?;
        Ok((rows_of(content, &stretch, &self.header), stretch))
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
    pub fn next_chunk(&mut self) -> Result<Option<SessionStretch>, LogError> {
        let Some(content) = self.next_content()? else { return Ok(None) };
        let (rows, stretch) = self.decode(&content)?;
        self.check.add(&content, &rows);
        Ok(Some(stretch))
    }

    /// Returns only the states, frames, snapshots and snapshot arrivals of the next chunk, which is faster.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`].
    pub fn next_chunk_of_clients(&mut self) -> Result<Option<SessionStretch>, LogError> {
        let Some(content) = self.next_content()? else { return Ok(None) };
        let of = (&self.header, Kinds::OfClients);
        let decoded = chunk::decode_within(MAX_CHUNK_MEMORY, &content.bytes, of, &self.schema);
        decoded.map(Some).map_err(|what| content.corrupt(what))
    }

    /// Returns the next chunk of a log that the caller holds in memory; `used` counts the bytes so far. Over the
    /// limit, the method reads the rest of the log, so that the error states the memory needed.
    ///
    /// # Errors
    /// As [`LogReader::next_chunk`], and when the log needs more memory than the limit.
    pub fn next_held(&mut self, limit: MemoryLimit, used: &mut usize) -> Result<Option<SessionStretch>, LogError> {
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
    /// each keyframe among them. A keyframe's chunk is empty, and `stretch` is its number.
    ///
    /// # Errors
    /// When the log is cut off or damaged in these chunks. Chunks returned earlier are good.
    pub fn next_chunks(&mut self, keyframe: &mut dyn FnMut(Keyframe)) -> Result<Vec<SessionStretch>, LogError> {
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
            let share = MAX_CHUNK_MEMORY / AT_ONCE;
            let made = chunk::decode_within(share, &content.bytes, (header, Kinds::All), schema)?;
            Ok::<_, String>((rows_of(content, &made, header), made))
        };
        let decoded = in_parallel(&contents, &decode);
        let mut stretches = Vec::with_capacity(contents.len());
        for (made, content) in decoded.into_iter().zip(&contents) {
            // A chunk over its share of the memory is decoded alone.
            let (rows, made) = made.or_else(|_| self.decode(content))?;
            self.check.add(content, &rows);
            stretches.push(made);
        }
        Ok(stretches)
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
pub(super) fn rows_of(content: &ChunkContent, stretch: &SessionStretch, header: &SessionHeader) -> ChunkRows {
    match stretch.is_empty() {
        true => keyframe_in(&content.bytes, 0).map(|keyframe| keyframe_rows(&keyframe)).into_iter().collect(),
        false => chunk::rows_by_table(&SessionSlice::whole(stretch), header),
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
        const AHEAD: usize = 16;
        let LogReader { mut chunks, header, schema, .. } = self;
        let (sender, waiting) = std::sync::mpsc::sync_channel(AHEAD);
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

#[cfg(test)]
mod tests;
