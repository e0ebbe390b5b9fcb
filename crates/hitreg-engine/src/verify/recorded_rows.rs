//! Compares a log's records with the replay of the log while both are read. If the state hashes agree but other records
//! differ, the log contradicts itself.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};

use super::replays::{Contradiction, contradicts};
use crate::engine::EngineError;
use hitreg_log::record::{EventTime, Session, SessionHeader, SessionStretch};
use hitreg_log::recorded::recorded_without;
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::schema::{executed, frames, is_bodies, ticks};
use hitreg_log::trace::{Table, Trace};
use hitreg_log::units::{Micros, Tick};

/// The chunks of a log that were not compared yet, and the replayed rows to compare them with.
pub(super) struct RecordedRows<'a> {
    header: &'a SessionHeader,
    hidden: &'a SortedSet<String>,
    /// The tables that a log records, without rows.
    recorded: Trace,
    chunks: VecDeque<SessionStretch>,
    /// The rows between the last two finished ticks, and the rows since the last one.
    before: Vec<Table>,
    rows: Vec<Table>,
    /// The last tick whose rows are complete.
    reached: Option<(Tick, Micros)>,
    /// The first contradiction.
    found: Option<Contradiction>,
}

/// A message to the comparing thread: a chunk before the replay uses it, or rows of the replay.
enum VerifyInput {
    Chunk(Box<SessionStretch>),
    Rows(Table),
}

/// The sending end of the channel to the comparing thread.
pub(super) struct VerifySender(SyncSender<VerifyInput>);

impl VerifySender {
    pub(super) fn chunk(&self, chunk: &SessionStretch) {
        // Chunks wait for the next tick. An empty chunk has nothing to compare.
        if !chunk.is_empty() {
            self.tell(VerifyInput::Chunk(Box::new(chunk.clone())));
        }
    }

    pub(super) fn rows(&self, rows: Table) {
        if is_bodies(&rows.name) || [ticks::NAME, executed::NAME, frames::NAME].contains(&&*rows.name) {
            self.tell(VerifyInput::Rows(rows));
        }
    }

    fn tell(&self, heard: VerifyInput) {
        // Sending fails only if the comparing thread panicked. The join then resumes that panic.
        let _ = self.0.send(heard);
    }
}

/// The number of chunks and row groups that may wait to be compared.
const WAITING: usize = 16;

/// Replays a log and compares its records on another thread. Returns the replay's result and the first contradiction.
pub(super) fn meanwhile<T, E: From<EngineError>>(
    mut said: RecordedRows<'_>,
    replay: impl FnOnce(&VerifySender) -> Result<T, E>,
) -> Result<(T, Option<Contradiction>), E> {
    let (telling, waiting) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let listen = move || {
            waiting.into_iter().for_each(|heard| said.add(heard));
            said
        };
        let listener = std::thread::Builder::new().name("log comparer".into()).spawn_scoped(scope, listen);
        let listener = listener.map_err(EngineError::no_thread)?;
        let telling = VerifySender(telling);
        let made = replay(&telling);
        drop(telling);
        match listener.join() {
            Ok(said) => Ok((made?, said.end())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl<'a> RecordedRows<'a> {
    pub(super) fn new(header: &'a SessionHeader, hidden: &'a SortedSet<String>) -> RecordedRows<'a> {
        let recorded = recorded_without(&Session::new(header.clone()), hidden);
        let (chunks, before, rows) = (VecDeque::new(), Vec::new(), Vec::new());
        RecordedRows { header, hidden, recorded, chunks, before, rows, reached: None, found: None }
    }

    fn add(&mut self, heard: VerifyInput) {
        if self.found.is_some() {
            return;
        }
        match heard {
            VerifyInput::Chunk(chunk) => self.chunks.push_back(*chunk),
            VerifyInput::Rows(rows) => self.rows(rows),
        }
    }

    /// Adds rows of the replay. Rows of `ticks` complete all earlier rows.
    fn rows(&mut self, mut rows: Table) {
        let recorded = self.recorded.table(&rows.name);
        rows.columns.retain(|column| recorded.is_some_and(|recorded| recorded.column(&column.name).is_some()));
        if rows.name == ticks::NAME {
            if let Some((tick, at)) = self.reached {
                let is_there = |chunk: &SessionStretch| is_before(chunk, tick, at);
                let ready = self.chunks.iter().take_while(|chunk| is_there(chunk)).count();
                self.compare(ready);
            }
            let of_rows = ticks::Columns::read(&rows);
            let last = of_rows.tick.last().zip(of_rows.at_us.last());
            self.reached = last.map(|(tick, at)| (Tick(*tick), Micros(*at))).or(self.reached);
        }
        self.rows.push(rows);
    }

    /// Compares the remaining chunks and returns the first contradiction.
    fn end(mut self) -> Option<Contradiction> {
        self.compare(self.chunks.len());
        self.found
    }

    /// Compares the first `chunks` chunks.
    fn compare(&mut self, chunks: usize) {
        let mut session = Session::new(self.header.clone());
        self.chunks.drain(..chunks).for_each(|chunk| session.append(chunk));
        session.put_in_order();
        let mut played = Trace::default();
        for rows in std::mem::take(&mut self.before).into_iter().chain(self.rows.iter().cloned()) {
            // All rows of one replay have the same columns.
            played.append(rows).unwrap_or_default();
        }
        self.found = self.found.take().or_else(|| contradicts(&recorded_without(&session, self.hidden), &played));
        self.before = std::mem::take(&mut self.rows);
    }
}

/// Whether all records of a chunk belong to this tick and time or earlier ones.
fn is_before(chunk: &SessionStretch, tick: Tick, at: Micros) -> bool {
    let is_early = |when: Option<EventTime>| match when {
        Some(EventTime::At(then)) => then <= at,
        Some(EventTime::In(then)) => then <= tick,
        None => true,
    };
    let frames = chunk.players.iter().all(|player| is_early(player.frames.last().map(|frame| EventTime::At(frame.at))));
    let executed = chunk.players.iter().all(|player| player.executed.iter().all(|done| done.tick <= tick));
    let ticks = chunk.ticks.last().is_none_or(|last| last.tick <= tick);
    frames && executed && ticks && chunk.states.keys().iter().all(|key| key.tick <= tick)
}
