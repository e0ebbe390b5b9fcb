//! Destinations of a recorder's records: a file, any writer, memory, or a trace.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FinishError;
use super::cut::{FlightCut, PartStart};
use crate::log::{self, BackgroundLogWriter, QueuePolicy, RecordCounter, WriteError, WriterOptions};
use crate::record::{EventTime, GapCause, GapRecord, Record, SessionChunk, SessionHeader, Texts};
use crate::recorded;
use crate::store::{self, FileType, Recording, RecordingClaim, Target, Targets};
use crate::trace::Digest;
use crate::units::Micros;

/// A destination of records. They come in time order, except those that are older than the reorder window. It counts the
/// records that it has written or holds.
pub(super) trait RecordOutput: Send {
    /// Returns whether the output takes records that are older than the reorder window.
    fn takes_late_records(&self) -> bool {
        false
    }

    fn push(&mut self, record: Record) -> Result<(), FinishError>;

    /// Receives the texts of the next records.
    fn texts(&mut self, texts: &Texts);

    /// Writes everything received so far.
    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(())
    }

    /// Returns the number of dropped chunks.
    fn dropped_chunks(&self) -> u64 {
        0
    }

    /// Returns the records that a flight recorder holds in memory; `None` for outputs that write at once.
    fn kept(&self) -> Option<FlightRecording> {
        None
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError>;
}

/// Implements the trait for writers of logs, which have methods of the same names.
macro_rules! output {
    ($($writer:ty),*) => { $(
        impl RecordOutput for $writer {
            fn push(&mut self, record: Record) -> Result<(), FinishError> {
                Ok(<$writer>::push(self, record)?)
            }

            fn texts(&mut self, texts: &Texts) {
                self.set_texts(texts);
            }

            fn flush(&mut self) -> Result<(), FinishError> {
                Ok(<$writer>::flush(self)?)
            }

            fn dropped_chunks(&self) -> u64 {
                <$writer>::dropped_chunks(self)
            }

            fn finish(self: Box<Self>) -> Result<(), FinishError> {
                <$writer>::finish(*self)?;
                Ok(())
            }
        }
    )* };
}
output!(Recording, BackgroundLogWriter<Box<dyn Write + Send>>);

// A recording as a series of files, each a complete log, for servers that run for weeks.

/// Limits of one file; one hour or 1 GiB by default. The recorder starts a new file after the first tick that reaches
/// either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The longest session time in one file.
    pub after: Micros,
    /// The size at which a file is full, in bytes. Up to 4 MiB of records may still wait to be packed and written to it.
    pub bytes: u64,
}

impl Default for Rotation {
    /// One hour or 1 GiB.
    fn default() -> Rotation {
        Rotation { after: Micros::from_s(3600), bytes: 1 << 30 }
    }
}

pub(super) struct RotatingFiles {
    path: PathBuf,
    header: SessionHeader,
    how: (log::WriterOptions, QueuePolicy),
    rotation: Rotation,
    cut: FlightCut,
    /// `None` only while the recorder replaces one file by the next.
    file: Option<Recording>,
    number: u32,
    texts: Texts,
    /// Time of the first record in this file.
    begun: Option<Micros>,
    is_full: bool,
    /// The number of dropped chunks of the earlier files.
    dropped_chunks: u64,
    records: RecordCounter,
}

impl RotatingFiles {
    /// Starts the first file, numbered after the existing ones.
    pub(super) fn begin(
        path: PathBuf,
        header: SessionHeader,
        rotation: Rotation,
        how: (log::WriterOptions, QueuePolicy),
        records: RecordCounter,
    ) -> Result<RotatingFiles, FinishError> {
        let number = Recording::last_number(&path)? + 1;
        let (cut, file, texts) = (FlightCut::default(), None, Texts::default());
        let (begun, is_full, dropped_chunks) = (None, false, 0);
        let files = RotatingFiles {
            path,
            header,
            how,
            rotation,
            cut,
            file,
            number,
            texts,
            begun,
            is_full,
            dropped_chunks,
            records,
        };
        let first = files.begin_file(&PartStart::default())?;
        Ok(RotatingFiles { file: Some(first), ..files })
    }

    fn begin_file(&self, beginning: &PartStart) -> Result<Recording, FinishError> {
        let (number, (chunks, when_full)) = (self.number, self.how);
        let target = Targets::default().file(&Recording::numbered(&self.path, number), FileType::Log)?;
        let begun = RecordingClaim::new(&target)?.begin(&beginning.header(&self.header, number), chunks, when_full)?;
        Ok(begun.count_records(self.records.clone()))
    }

    /// Finishes the current file and starts the next one.
    fn start_next(&mut self) -> Result<(), FinishError> {
        self.dropped_chunks = RecordOutput::dropped_chunks(self);
        self.file.take().map_or(Ok(()), Recording::finish)?;
        self.number += 1;
        let beginning = self.cut.beginning();
        let mut file = self.begin_file(&beginning)?;
        RecordOutput::texts(&mut file, &self.texts);
        file.begin_with(beginning.records)?;
        (self.file, self.begun, self.is_full) = (Some(file), None, false);
        Ok(())
    }

    fn file(&mut self) -> Result<&mut Recording, FinishError> {
        Ok(self.file.as_mut().ok_or(WriteError::Abandoned)?)
    }
}

impl RecordOutput for RotatingFiles {
    fn push(&mut self, record: Record) -> Result<(), FinishError> {
        if self.is_full && self.cut.may_split_before(&record) {
            self.start_next()?;
        }
        if let EventTime::At(at) = record.when() {
            let begun = *self.begun.get_or_insert(at);
            self.is_full |= at - begun >= self.rotation.after;
        }
        self.cut.update(&record);
        let most = self.rotation.bytes;
        let file = self.file()?;
        file.push(record)?;
        let is_full = file.written_bytes() >= most;
        self.is_full |= is_full;
        Ok(())
    }

    fn texts(&mut self, texts: &Texts) {
        self.texts.clone_from(texts);
        if let Some(file) = &mut self.file {
            RecordOutput::texts(file, texts);
        }
    }

    fn flush(&mut self) -> Result<(), FinishError> {
        Ok(self.file()?.flush()?)
    }

    fn dropped_chunks(&self) -> u64 {
        self.dropped_chunks + self.file.as_ref().map_or(0, Recording::dropped_chunks)
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        self.file.map_or(Ok(()), |file| Ok(file.finish()?))
    }
}

/// The number of parts in the kept span. The recorder keeps up to one part more than the span.
const PARTS_KEPT: i64 = 12;

/// The shortest part.
const PART_DURATION_MIN: Micros = Micros::from_s(1);

pub(super) struct FlightBuffer {
    kept: FlightRecording,
    cut: FlightCut,
    /// First time in the current part.
    begun: Option<Micros>,
    records: RecordCounter,
}

/// A complete part, packed as a log.
#[derive(Clone)]
struct FlightPart {
    beginning: Arc<PartStart>,
    log: Arc<Vec<u8>>,
    last: Micros,
}

/// The kept data. A save request gets a copy.
#[derive(Clone)]
pub(super) struct FlightRecording {
    header: SessionHeader,
    keep: Micros,
    /// Complete parts, packed as logs.
    parts: VecDeque<FlightPart>,
    beginning: Arc<PartStart>,
    current: SessionChunk,
    /// Last time in `current`.
    newest: Option<Micros>,
    /// Time of the session's first record.
    first: Option<Micros>,
    /// Number of parts dropped because they were too old, and the last time in them.
    forgotten: Option<(u32, Micros)>,
}

impl FlightBuffer {
    pub(super) fn new(header: SessionHeader, keep: Micros, records: RecordCounter) -> FlightBuffer {
        let current = SessionChunk::of(&header);
        let (parts, beginning, newest, first, forgotten) = (VecDeque::new(), Arc::default(), None, None, None);
        let kept = FlightRecording { header, keep, parts, beginning, current, newest, first, forgotten };
        FlightBuffer { kept, cut: FlightCut::default(), begun: None, records }
    }

    /// Packs the full part, starts the next, and drops parts older than the kept span.
    fn start_next(&mut self) -> Result<(), FinishError> {
        let kept = &mut self.kept;
        let Some(last) = kept.newest.take() else { return Ok(()) };
        self.begun = None;
        let next = SessionChunk { texts: kept.current.texts.clone(), ..SessionChunk::of(&kept.header) };
        let full = std::mem::replace(&mut kept.current, next);
        let log = log::write_session(Vec::new(), &full.with_header(kept.header.clone()), WriterOptions::live())?;
        let beginning = std::mem::replace(&mut kept.beginning, Arc::new(self.cut.beginning()));
        kept.parts.push_back(FlightPart { beginning, log: Arc::new(log), last });
        kept.forget(last);
        Ok(())
    }
}

impl RecordOutput for FlightBuffer {
    fn push(&mut self, record: Record) -> Result<(), FinishError> {
        let part = Micros(self.kept.keep.0 / PARTS_KEPT).max(PART_DURATION_MIN);
        let is_full = self.begun.zip(self.kept.newest).is_some_and(|(begun, newest)| newest - begun >= part);
        if is_full && self.cut.may_split_before(&record) {
            self.start_next()?;
        }
        if let EventTime::At(at) = record.when() {
            self.kept.first.get_or_insert(at);
            self.begun.get_or_insert(at);
        }
        self.cut.update(&record);
        let counts = RecordCounter::counts(&record);
        self.kept.add(record)?;
        self.records.add(counts.into());
        Ok(())
    }

    fn texts(&mut self, texts: &Texts) {
        self.kept.current.texts.clone_from(texts);
    }

    fn kept(&self) -> Option<FlightRecording> {
        Some(self.kept.clone())
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        Ok(())
    }
}

impl FlightRecording {
    /// Drops the parts that end before the kept span. A part that extends into it stays.
    fn forget(&mut self, newest: Micros) {
        while let Some(part) = self.parts.pop_front_if(|part| part.last <= newest - self.keep) {
            self.forgotten = Some((self.forgotten.map_or(1, |(parts, _)| parts + 1), part.last));
        }
    }

    /// Adds a record to the current part.
    pub(super) fn add(&mut self, record: Record) -> Result<(), FinishError> {
        if let EventTime::At(at) = record.when() {
            self.newest = self.newest.max(Some(at));
        }
        Ok(self.current.push(record, &self.header).map_err(WriteError::from)?)
    }

    /// Writes the kept data as a log.
    pub(super) fn save(mut self, path: &Path) -> Result<(), FinishError> {
        let target = Targets::default().file(path, FileType::Log)?;
        self.newest.into_iter().for_each(|newest| self.forget(newest));
        let begins = self.parts.front().map_or(&self.beginning, |part| &part.beginning);
        let header = begins.header(&self.header, self.forgotten.map_or(1, |(parts, _)| parts + 1));
        let mut session = begins.chunk(&self.header)?.with_header(header);
        if let Some((_, to)) = self.forgotten {
            let from = self.first.unwrap_or(to);
            session.gaps.push(GapRecord { from, to, player: None, why: GapCause::Paused });
        }
        for part in &self.parts {
            let part = log::read_session(&part.log[..]).map_err(|source| FinishError::Kept { source })?;
            session.append(part.without_header());
        }
        session.append(self.current);
        session.put_in_order();
        Ok(store::save_log(&target, &session, WriterOptions::live())?)
    }
}

/// Collects all records in memory and writes the trace at the end.
pub(super) struct PendingTrace {
    target: Target,
    log: Digest,
    capabilities: Vec<String>,
    header: SessionHeader,
    pending: SessionChunk,
    records: RecordCounter,
}

impl PendingTrace {
    pub(super) fn new(
        target: Target,
        log: Digest,
        capabilities: Vec<String>,
        header: SessionHeader,
        records: RecordCounter,
    ) -> PendingTrace {
        PendingTrace { target, log, capabilities, pending: SessionChunk::of(&header), header, records }
    }
}

impl RecordOutput for PendingTrace {
    // A replay is not live. `finish` sorts the records.
    fn takes_late_records(&self) -> bool {
        true
    }

    fn push(&mut self, record: Record) -> Result<(), FinishError> {
        self.pending.push(record, &self.header).map_err(WriteError::from)?;
        // A replay has no gaps, and loses no record.
        self.records.add(1);
        Ok(())
    }

    fn texts(&mut self, texts: &Texts) {
        self.pending.texts.clone_from(texts);
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        let mut session = self.pending.with_header(self.header);
        session.sort_by_time();
        session.put_in_order();
        let mut trace = recorded::all_records(&session);
        // The build ran its server.
        trace.header.mode = "closed".to_owned();
        (trace.header.log_digest, trace.header.capabilities) = (self.log.to_string(), self.capabilities);
        Ok(store::save_trace(&self.target, &trace)?)
    }
}
