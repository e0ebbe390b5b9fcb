//! The recorder's thread: it empties the streams, sorts their records by time, and passes them to the output.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rtrb::Consumer;

use super::flight::FlightRecording;
use super::output::RecordOutput;
use super::shared::{Item, RecordTime, RecorderShared, RecorderState, RingEntry};
use super::{CustomKind, FinishError, description};
use crate::log::QueuePolicy;
use crate::record::Record;
use crate::units::Micros;

/// How long the thread sleeps when the streams are empty. A stream that fills up wakes it.
const TURN: Duration = Duration::from_millis(10);

/// The interval between writes of finished records. Together with the reorder window it bounds the loss after a kill:
/// under a second.
const FLUSH: Duration = Duration::from_millis(400);

pub(super) struct Collector {
    shared: Arc<RecorderShared>,
    out: Box<dyn RecordOutput>,
    window: Micros,
    /// The streams, each with the time of its last record without an own time.
    streams: Vec<(Consumer<RingEntry>, Micros)>,
    /// Items that still wait in the reorder window.
    held: Vec<(Micros, Item)>,
    newest: Micros,
    released: Micros,
    /// How many texts the output knows.
    texts: usize,
}

impl Collector {
    pub(super) fn new(shared: Arc<RecorderShared>, out: Box<dyn RecordOutput>, window: Micros) -> Collector {
        let (newest, released) = (Micros(i64::MIN), Micros(i64::MIN));
        Collector { shared, out, window, streams: Vec::new(), held: Vec::new(), newest, released, texts: 0 }
    }

    /// Runs until the recording ends.
    pub(super) fn run(self) -> Result<(), FinishError> {
        let shared = Arc::clone(&self.shared);
        let done = self.collect();
        // Dropping the pending save requests makes their callers return an error.
        drop(shared.take_save_requests(true));
        done
    }

    #[expect(clippy::disallowed_methods, reason = "flushes of a live recording follow real time")]
    fn collect(mut self) -> Result<(), FinishError> {
        let (mut flushed, mut newest_then) = (Instant::now(), self.newest);
        loop {
            // The state is read before the streams are emptied, so that the streams hold everything pushed before the
            // end.
            let state = self.shared.state();
            let requests = self.shared.take_save_requests(false);
            // This pass takes every record that was pushed before the last pass saw its newest one. Records pushed
            // later are older than that only if their caller is late.
            let mut until = self.newest - self.window;
            let took_any = self.take();
            let answered = self.answer(requests);
            if state != RecorderState::Open {
                answered?;
                return self.end(state == RecorderState::Finished);
            }
            let flush = flushed.elapsed() >= FLUSH;
            if flush {
                // Records that have waited since the last flush are released, whatever their time. Recorders that wait
                // are exempt: their sessions do not run in real time and may pause for longer.
                if self.shared.when_full == QueuePolicy::Drop {
                    until = until.max(newest_then);
                }
                (flushed, newest_then) = (Instant::now(), self.newest);
            }
            let done = answered
                .and_then(|()| self.release(until))
                .and_then(|()| if flush { self.mark_missing().and_then(|()| self.out.flush()) } else { Ok(()) });
            if let Err(error) = done {
                self.shared.failed();
                // What was written stays readable. The first error is the cause of any other.
                let _ = self.out.finish();
                return Err(error);
            }
            self.shared.dropped_chunks.store(self.out.dropped_chunks(), Ordering::Relaxed);
            if !took_any {
                std::thread::park_timeout(TURN);
            }
        }
    }

    /// Empties the streams; returns whether they held anything.
    fn take(&mut self) -> bool {
        self.streams.extend(self.shared.take_added().into_iter().map(|stream| (stream, Micros(i64::MIN))));
        let before = self.held.len();
        for (stream, last) in &mut self.streams {
            // A bounded number of pops, so that a busy stream does not starve the others.
            for _ in 0..stream.slots() {
                let Ok(RingEntry { at, item }) = stream.pop() else { break };
                let at = match at {
                    RecordTime::At(at) => at,
                    // Records without an own time keep their order, whatever times come between them.
                    RecordTime::After(at) => {
                        *last = at.unwrap_or(self.newest - self.window).max(self.released).max(*last);
                        *last
                    }
                };
                self.newest = self.newest.max(at);
                self.held.push((at, item));
            }
        }
        // A stream adds a text before the first record that has it.
        let texts = self.shared.texts();
        if texts.len() > self.texts {
            self.texts = texts.len();
            self.out.texts(&texts);
        }
        self.streams.retain(|(stream, _)| !stream.is_abandoned() || !stream.is_empty());
        // Each stream is mostly sorted already, and the sort exploits such runs.
        self.held.sort_by_key(|(at, _)| *at);
        self.held.len() > before
    }

    /// Answers save requests with the kept data and the items that still wait in the reorder window.
    fn answer(&mut self, requests: Vec<Sender<FlightRecording>>) -> Result<(), FinishError> {
        if !requests.is_empty() {
            // A second pass completes what the first one saw, however many records it found.
            let complete = self.newest - self.window;
            self.take();
            self.release(complete)?;
            self.mark_missing()?;
        }
        for request in requests {
            let Some(mut kept) = self.out.kept() else { continue };
            for (at, item) in &self.held {
                records_of(&self.shared.kinds, *at, item.clone(), &mut |record| kept.add(record))?;
            }
            // A send fails only if the caller has given up.
            let _ = request.send(kept);
        }
        Ok(())
    }

    /// Passes on all items before a time.
    fn release(&mut self, until: Micros) -> Result<(), FinishError> {
        self.write_first(self.held.partition_point(|(at, _)| *at < until))?;
        if until > self.released && !self.out.takes_late_records() {
            self.released = until;
            self.shared.release(until);
        }
        Ok(())
    }

    fn write_first(&mut self, count: usize) -> Result<(), FinishError> {
        let mut handed = 0;
        let later = self.held.split_off(count);
        for (at, item) in std::mem::replace(&mut self.held, later) {
            handed += self.write_item(at, item)?;
        }
        self.shared.records.fetch_add(handed, Ordering::Relaxed);
        Ok(())
    }

    /// Passes on one item and returns the number of records written.
    fn write_item(&mut self, at: Micros, item: Item) -> Result<u64, FinishError> {
        if at < self.released {
            self.shared.lose_late(at);
            return Ok(0);
        }
        records_of(&self.shared.kinds, at, item, &mut |record| self.out.push(record))?;
        Ok(1)
    }

    /// Writes a gap for the lost and late records since the last one.
    fn mark_missing(&mut self) -> Result<(), FinishError> {
        self.shared.take_gap().map_or(Ok(()), |gap| self.out.push(&Record::Gap(gap)))
    }

    fn end(mut self, whole: bool) -> Result<(), FinishError> {
        let mut done = self.write_first(self.held.len()).and_then(|()| self.mark_missing());
        if done.is_ok() && !whole {
            done = self.out.flush();
        }
        self.shared.dropped_chunks.store(self.out.dropped_chunks(), Ordering::Relaxed);
        match (done, whole) {
            (Ok(()), false) => Ok(()),
            (Ok(()), true) => self.out.finish(),
            (Err(error), _) => {
                let _ = self.out.finish();
                Err(error)
            }
        }
    }
}

/// Passes the records of an item to `to`.
fn records_of(
    kinds: &[CustomKind],
    at: Micros,
    item: Item,
    to: &mut dyn FnMut(&Record) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    match item {
        Item::Record(record) => to(&record),
        Item::Bytes(bytes) => {
            let (player, command, bytes) = *bytes;
            let mut rows = description::rows_of_bytes(kinds, player, command, at, &bytes);
            rows.try_for_each(|row| to(&Record::Row(at, row)))
        }
    }
}
