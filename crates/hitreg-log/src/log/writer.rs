//! Writes logs: record by record while a session runs, or a whole session at once.

mod background;
mod stretches;

use std::io::Write;

pub use background::{BackgroundLogWriter, QueuePolicy};
pub use stretches::StretchWriter;

use super::chunk::{self, Bucket, SessionSlice};
use super::container::ChunkSink;
use super::error::WriteError;
use super::header;
use super::timeline::{ChunkFill, Timeline};
use crate::record::{MisplacedRecord, Record, Session, SessionHeader, Texts};
use crate::units::Micros;

/// The size of chunks, and the compression level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The zstd level, 1 to 22.
    pub level: i32,
    /// The zstd level of the header. A file has one header, but in a short log it is a large part of the file, so a
    /// higher level pays.
    pub header_level: i32,
    /// The most session time in a chunk.
    pub span: Micros,
    /// The most bytes of records in memory in a chunk. Values over `MAX_RECORD_BYTES` count as that.
    pub bytes: usize,
}

/// At level 19 a header takes five times as long to compress, and is 0.5 % smaller.
const HEADER_LEVEL: i32 = 15;

impl WriterOptions {
    /// Returns the options for recording: at most one second or 256 KiB of session is unwritten at any time.
    pub const fn live() -> WriterOptions {
        WriterOptions { level: 3, header_level: HEADER_LEVEL, span: Micros::from_s(1), bytes: 256 << 10 }
    }

    /// Returns the options for data that is stored elsewhere, as in `import` and `recover`: long chunks compress
    /// better.
    pub const fn whole() -> WriterOptions {
        WriterOptions { level: 15, header_level: HEADER_LEVEL, span: Micros::from_s(60), bytes: 4 << 20 }
    }
}

/// Writes a log while its session runs.
///
/// [`LogWriter::push`] appends to columns in memory, and compresses and writes a chunk when it is full.
/// [`BackgroundLogWriter`] does that on another thread. A writer dropped without [`LogWriter::finish`] leaves a
/// cut-off log, as a crash would.
pub struct LogWriter<W> {
    header: SessionHeader,
    bucket: Bucket,
    filling: ChunkFill,
    sink: ChunkSink<W>,
}

impl<W: Write> LogWriter<W> {
    /// Writes the header of a new log.
    ///
    /// # Errors
    /// When writing fails, or the header does not fit into a chunk.
    pub fn new(out: W, header: &SessionHeader, options: WriterOptions) -> Result<LogWriter<W>, WriteError> {
        let sink = begin(out, header, options)?;
        Ok(LogWriter { header: header.clone(), bucket: Bucket::new(header), filling: ChunkFill::new(options), sink })
    }

    /// Adds a record. The writer refuses a record that does not fit the header, and can continue.
    ///
    /// # Errors
    /// When the record does not fit, or writing a full chunk fails. After a failed write, every call fails.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        if self.filling.add(record.when(), record.bytes())? {
            self.write_chunk()?;
        }
        Ok(self.bucket.push(record, &self.header)?)
    }

    /// Sets the texts of the records: their text codes stand for these. A code without a text is written as an empty
    /// text.
    pub fn set_texts(&mut self, texts: &Texts) {
        self.bucket.stretch.texts.clone_from(texts);
    }

    /// Writes the records so far as a chunk of their own.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.filling.restart();
        self.write_chunk()
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When writing fails; the log is then cut off.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        self.sink.finish()
    }

    fn write_chunk(&mut self) -> Result<(), WriteError> {
        if self.bucket.stretch.is_empty() {
            return Ok(());
        }
        write_part(&mut self.sink, &SessionSlice::whole(&self.bucket.stretch), &self.header)?;
        self.bucket.clear();
        Ok(())
    }
}

/// Writes the header of a new log.
fn begin<W: Write>(out: W, header: &SessionHeader, options: WriterOptions) -> Result<ChunkSink<W>, WriteError> {
    let mut sink = ChunkSink::new(out, options.level)?;
    sink.header(&header::encode_log(header)?, options.header_level)?;
    Ok(sink)
}

fn write_part<W: Write>(
    sink: &mut ChunkSink<W>,
    part: &SessionSlice<'_>,
    header: &SessionHeader,
) -> Result<(), WriteError> {
    let content = chunk::encode(part, header, sink.next())?;
    sink.chunk(chunk::CONTENT, &content, None, chunk::rows_by_table(part, header))
}

/// Writes a whole session, with the players' records merged in time order.
///
/// # Errors
/// When writing fails, or the session does not fit its own header.
pub fn write_session<W: Write>(out: W, session: &Session, options: WriterOptions) -> Result<W, WriteError> {
    check(session, &session.header)?;
    let mut sink = begin(out, &session.header, options)?;
    let mut timeline = Timeline::whole(session, &session.header.unknown, options);
    write_rest(&mut sink, &mut timeline, session, &session.header)?;
    sink.finish()
}

/// Writes all parts of a session that a timeline has not passed on yet.
fn write_rest<W: Write, H>(
    sink: &mut ChunkSink<W>,
    timeline: &mut Timeline,
    session: &Session<H>,
    header: &SessionHeader,
) -> Result<(), WriteError> {
    while let Some(part) = timeline.next(session, None)? {
        write_part(sink, &part, header)?;
    }
    timeline.last(session).map_or(Ok(()), |part| write_part(sink, &part, header))
}

/// Checks whether a session fits its header.
fn check<H>(session: &Session<H>, header: &SessionHeader) -> Result<(), MisplacedRecord> {
    let players = header.players.len();
    if session.players.len() != players {
        let id = crate::units::PlayerId(u16::try_from(session.players.len().max(1) - 1).unwrap_or(u16::MAX));
        return Err(MisplacedRecord::Player { id, players });
    }
    session.states.iter().try_for_each(|(key, cells)| key.check(cells.len(), header))
}
