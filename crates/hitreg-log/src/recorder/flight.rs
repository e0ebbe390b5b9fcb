//! The flight recorder: it keeps the last part of a recording in memory and saves it on request.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::FinishError;
use super::cut::{FlightCut, PartStart};
use super::output::RecordOutput;
use crate::log::{self, WriteError, WriterOptions};
use crate::record::{EventTime, GapCause, GapRecord, Record, Session, SessionHeader, SessionStretch, Texts};
use crate::store::{self, FileType, Targets};
use crate::units::{Micros, Tick};

/// The number of parts in the kept span. The recorder keeps up to one part more than the span.
const PARTS: i64 = 12;

/// The shortest part.
const SHORTEST: Micros = Micros::from_s(1);

pub(super) struct FlightBuffer {
    header: SessionHeader,
    keep: Micros,
    cut: FlightCut,
    /// Complete parts, packed as logs.
    parts: VecDeque<FlightPart>,
    beginning: Arc<PartStart>,
    current: SessionStretch,
    /// First and last time in `current`.
    span: Option<(Micros, Micros)>,
    /// Time of the session's first record.
    first: Option<Micros>,
    /// Number of parts dropped because they were too old.
    forgotten: u32,
}

/// A complete part, packed as a log.
#[derive(Clone)]
struct FlightPart {
    beginning: Arc<PartStart>,
    log: Arc<Vec<u8>>,
    last: Micros,
}

/// A copy of the kept data at the time of a save request.
pub(super) struct FlightRecording {
    header: SessionHeader,
    parts: VecDeque<FlightPart>,
    beginning: Arc<PartStart>,
    current: SessionStretch,
    keep: Micros,
    first: Option<Micros>,
    newest: Option<Micros>,
    forgotten: u32,
}

impl FlightBuffer {
    pub(super) fn new(header: SessionHeader, cut: FlightCut, keep: Micros) -> FlightBuffer {
        let current = SessionStretch::of(&header);
        let (parts, beginning) = (VecDeque::new(), Arc::default());
        FlightBuffer { header, keep, cut, parts, beginning, current, span: None, first: None, forgotten: 0 }
    }

    /// Packs the full part, starts the next, and drops parts older than the kept span.
    fn start_next(&mut self) -> Result<(), FinishError> {
        let Some((_, last)) = self.span.take() else { return Ok(()) };
        let next = SessionStretch { texts: self.current.texts.clone(), ..SessionStretch::of(&self.header) };
        let full = std::mem::replace(&mut self.current, next);
        let log = log::write_session(Vec::new(), &whole(self.header.clone(), full), WriterOptions::live())?;
        let beginning = std::mem::replace(&mut self.beginning, Arc::new(self.cut.beginning()));
        self.parts.push_back(FlightPart { beginning, log: Arc::new(log), last });
        self.forgotten += forget(&mut self.parts, last - self.keep);
        Ok(())
    }
}

/// Drops the parts that end at or before a time and returns their number. A part that extends past the time stays.
fn forget(parts: &mut VecDeque<FlightPart>, before: Micros) -> u32 {
    let old = parts.iter().take_while(|part| part.last <= before).count();
    parts.drain(..old).count() as u32
}

impl RecordOutput for FlightBuffer {
    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        let part = Micros(self.keep.0 / PARTS).max(SHORTEST);
        if self.span.is_some_and(|(begun, last)| last - begun >= part) && self.cut.may_split_before(record) {
            self.start_next()?;
        }
        if let EventTime::At(at) = record.when() {
            self.first.get_or_insert(at);
            self.span = Some(self.span.map_or((at, at), |(begun, last)| (begun, last.max(at))));
        }
        self.cut.update(record);
        Ok(self.current.push(record, &self.header).map_err(WriteError::from)?)
    }

    fn texts(&mut self, texts: &Texts) {
        self.current.texts.clone_from(texts);
    }

    fn kept(&self) -> Option<FlightRecording> {
        Some(FlightRecording {
            header: self.header.clone(),
            parts: self.parts.clone(),
            beginning: Arc::clone(&self.beginning),
            current: self.current.clone(),
            keep: self.keep,
            first: self.first,
            newest: self.span.map(|(_, last)| last),
            forgotten: self.forgotten,
        })
    }

    fn finish(self: Box<Self>) -> Result<(), FinishError> {
        Ok(())
    }
}

impl FlightRecording {
    /// Adds a record that still waits in the reorder window.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), FinishError> {
        if let EventTime::At(at) = record.when() {
            self.newest = self.newest.max(Some(at));
        }
        Ok(self.current.push(record, &self.header).map_err(WriteError::from)?)
    }

    /// Writes the kept data as a log.
    pub(super) fn save(mut self, path: &Path) -> Result<(), FinishError> {
        let target = Targets::new([], false).file(path, FileType::Log)?;
        if let Some(newest) = self.newest {
            self.forgotten += forget(&mut self.parts, newest - self.keep);
        }
        let begins = self.parts.front().map_or(&self.beginning, |part| &part.beginning);
        let header = begins.header(&self.header, self.forgotten + 1);
        let mut session = whole(header, begins.stretch(&self.header)?);
        if begins.after.tick > Tick(0) {
            let (from, to) = (self.first.unwrap_or(begins.after.at), begins.after.at);
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

fn whole(header: SessionHeader, stretch: SessionStretch) -> Session {
    let mut session = Session::new(header);
    session.append(stretch);
    session
}
