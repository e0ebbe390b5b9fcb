//! Writes logs: record by record while a session runs, or a whole session at once.

mod background;
mod stretches;

use std::io::Write;

pub use background::{BackgroundLogWriter, WhenFull};
pub use stretches::StretchWriter;

use super::chunk::{self, Bucket, Part};
use super::container::ChunkSink;
use super::error::WriteError;
use super::header;
use super::timeline::{Filling, Timeline};
use crate::record::{Header, Misfit, Record, Session};
use crate::units::Micros;

/// How much goes into a chunk, and how hard zstd tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// zstd's level, 1 to 22.
    pub level: i32,
    /// zstd's level for the header. There is one, and in a short log it is a good part of the file, so that it is worth more
    /// than the rest.
    pub header_level: i32,
    /// How much time of the session a chunk spans at most.
    pub span: Micros,
    /// How many bytes of records in memory a chunk holds at most; more than `MAX_RECORD_BYTES`
    /// is never used.
    pub bytes: usize,
}

const HEADER_LEVEL: i32 = 19;

impl Options {
    /// For recording: at most one second or 256 KiB of session is unwritten at any time.
    pub const fn live() -> Options {
        Options { level: 3, header_level: HEADER_LEVEL, span: Micros::from_s(1), bytes: 256 << 10 }
    }

    /// For data that is already safe elsewhere, as in `import` and `recover`: long chunks compress better.
    pub const fn whole() -> Options {
        Options { level: 15, header_level: HEADER_LEVEL, span: Micros::from_s(60), bytes: 4 << 20 }
    }
}

/// Writes a log while its session runs.
///
/// [`LogWriter::push`] appends to columns in memory; when a chunk is full it is compressed and written in that call.
/// [`BackgroundLogWriter`] does that on another thread. A writer that is dropped without [`LogWriter::finish`] leaves
/// a torn log, as a crash would.
pub struct LogWriter<W> {
    header: Header,
    bucket: Bucket,
    filling: Filling,
    sink: ChunkSink<W>,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log: writes its header.
    ///
    /// # Errors
    /// When that cannot be written, or does not fit into a chunk.
    pub fn new(out: W, header: &Header, options: Options) -> Result<LogWriter<W>, WriteError> {
        let mut sink = ChunkSink::new(out, options.level)?;
        sink.header(&header::encode_log(header)?, options.header_level)?;
        Ok(LogWriter { header: header.clone(), bucket: Bucket::new(header), filling: Filling::new(options), sink })
    }

    /// Adds a record. One that does not fit the header is refused and harms nothing.
    ///
    /// # Errors
    /// When the record does not fit, or a full chunk could not be written; after the latter nothing more is written.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        if self.filling.add(record.when(), record.bytes())? {
            self.write_chunk()?;
        }
        Ok(self.bucket.push(record, &self.header)?)
    }

    /// Writes what has been added so far, as a chunk of its own.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.filling.restart();
        self.write_chunk()
    }

    /// How many bytes have been written; what is still in memory does not count.
    pub fn written_bytes(&self) -> u64 {
        self.sink.written()
    }

    /// Ends the log: writes the last chunks, the seal and the seek table.
    ///
    /// # Errors
    /// When they could not be written: then the log is torn.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        write_end(self.sink)
    }

    fn write_chunk(&mut self) -> Result<(), WriteError> {
        if self.bucket.stretch().is_empty() {
            return Ok(());
        }
        write_part(&mut self.sink, &Part::whole(self.bucket.stretch()), &self.header)?;
        self.bucket.clear();
        Ok(())
    }
}

fn write_part<W: Write, H>(sink: &mut ChunkSink<W>, part: &Part<'_, H>, header: &Header) -> Result<(), WriteError> {
    let content = chunk::encode(part, header, sink.next())?;
    sink.chunk("a stretch of records", &content)
}

fn write_end<W: Write>(mut sink: ChunkSink<W>) -> Result<W, WriteError> {
    let end = chunk::encode_end(sink.next())?;
    sink.chunk("the end", &end)?;
    sink.finish()
}

/// Writes a whole session, the players' records merged in time order.
///
/// # Errors
/// When it could not be written, or the session does not fit its own header.
pub fn write_session<W: Write>(out: W, session: &Session, options: Options) -> Result<W, WriteError> {
    check(session, &session.header)?;
    let mut sink = ChunkSink::new(out, options.level)?;
    sink.header(&header::encode_log(&session.header)?, options.header_level)?;
    let kinds = &session.header.unknown;
    let mut timeline = Timeline::whole(session, kinds, options);
    while let Some(part) = timeline.next(session, kinds, None)? {
        write_part(&mut sink, &part, &session.header)?;
    }
    if let Some(part) = timeline.last(session) {
        write_part(&mut sink, &part, &session.header)?;
    }
    write_end(sink)
}

/// Whether a session that was put together by hand fits its header.
fn check<H>(session: &Session<H>, header: &Header) -> Result<(), Misfit> {
    let players = header.players.len();
    if session.players.len() != players {
        let id = crate::units::PlayerId(u16::try_from(session.players.len().max(1) - 1).unwrap_or(u16::MAX));
        return Err(Misfit::Player { id, players });
    }
    session.states.iter().try_for_each(|(key, cells)| key.check(cells.len(), header))
}
