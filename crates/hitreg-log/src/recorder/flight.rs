//! The flight recorder: it keeps the last part of a recording in memory and saves it on request.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::FinishError;
use super::cut::{FlightCut, PartStart};
use super::output::RecordOutput;
use crate::log::{self, WriteError, WriterOptions};
use crate::record::{EventTime, GapCause, GapRecord, Record, SessionHeader, SessionStretch, Texts};
use crate::store::{self, FileType, Targets};
use crate::units::{Micros, Tick};

/// The number of parts in the kept span. The recorder keeps up to one part more than the span.
const PARTS: i64 = 12;

/// The shortest part.
const SHORTEST: Micros = Micros::from_s(1);

pub(super) struct FlightBuffer {
    kept: FlightRecording,
    cut: FlightCut,
    /// First time in the current part.
    begun: Option<Micros>,
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
    current: SessionStretch,
    /// Last time in `current`.
    newest: Option<Micros>,
    /// Time of the session's first record.
    first: Option<Micros>,
    /// Number of parts dropped because they were too old.
    forgotten: u32,
}

impl FlightBuffer {
    pub(super) fn new(header: SessionHeader, cut: FlightCut, keep: Micros) -> FlightBuffer {
        let current = SessionStretch::of(&header);
        let (parts, beginning, newest, first, forgotten) = (VecDeque::new(), Arc::default(), None, None, 0);
        let kept = FlightRecording { header, keep, parts, beginning, current, newest, first, forgotten };
        FlightBuffer { kept, cut, begun: None }
    }

    /// Packs the full part, starts the next, and drops parts older than the kept span.
    fn start_next(&mut self) -> Result<(), FinishError> {
        let kept = &mut self.kept;
        let Some(last) = kept.newest.take() else { return Ok(()) };
        self.begun = None;
        let next = SessionStretch { texts: kept.current.texts.clone(), ..SessionStretch::of(&kept.header) };
        let full = std::mem::replace(&mut kept.current, next);
        let log = log::write_session(Vec::new(), &full.with_header(kept.header.clone()), WriterOptions::live())?;
        let beginning = std::mem::replace(&mut kept.beginning, Arc::new(self.cut.beginning()));
        kept.parts.push_back(FlightPart { beginning, log: Arc::new(log), last });
        kept.forget(last);
        Ok(())
    }
}

impl RecordOutput for FlightBuffer {
    fn push(&mut self, record: &Record) -> Result<(), FinishError> {
        let part = Micros(self.kept.keep.0 / PARTS).max(SHORTEST);
        let is_full = self.begun.zip(self.kept.newest).is_some_and(|(begun, newest)| newest - begun >= part);
        if is_full && self.cut.may_split_before(record) {
            self.start_next()?;
        }
        if let EventTime::At(at) = record.when() {
            self.kept.first.get_or_insert(at);
            self.begun.get_or_insert(at);
        }
        self.cut.update(record);
        self.kept.add(record)
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
        let old = self.parts.iter().take_while(|part| part.last <= newest - self.keep).count();
        self.forgotten += self.parts.drain(..old).count() as u32;
    }

    /// Adds a record to the current part.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), FinishError> {
        if let EventTime::At(at) = record.when() {
            self.newest = self.newest.max(Some(at));
        }
        Ok(self.current.push(record, &self.header).map_err(WriteError::from)?)
    }

    /// Writes the kept data as a log.
    pub(super) fn save(mut self, path: &Path) -> Result<(), FinishError> {
        let target = Targets::new([], false).file(path, FileType::Log)?;
        self.newest.into_iter().for_each(|newest| self.forget(newest));
        let begins = self.parts.front().map_or(&self.beginning, |part| &part.beginning);
        let header = begins.header(&self.header, self.forgotten + 1);
        let mut session = begins.stretch(&self.header)?.with_header(header);
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
