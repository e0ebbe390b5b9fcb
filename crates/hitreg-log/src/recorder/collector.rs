//! The recorder's thread: empties the streams, puts what they held into the order of its times, and hands it on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rtrb::Consumer;

use super::flight::Kept;
use super::output::{Output, Told};
use super::shared::{Entry, Item, Moment, Shared, State};
use super::{FinishError, OwnKind, description};
use crate::log::WhenFull;
use crate::record::{GapCause, GapRecord, Record};
use crate::units::Micros;

/// How long the thread sleeps when there is nothing to do. A stream that fills up wakes it.
const TURN: Duration = Duration::from_millis(10);

/// How often what is ready is written. With the window, this is how much a kill may cost: less than a second.
const FLUSH: Duration = Duration::from_millis(400);

pub(super) struct Collector {
    shared: Arc<Shared>,
    out: Box<dyn Output>,
    window: Micros,
    streams: Vec<Consumer<Entry>>,
    /// What may still be overtaken by something older.
    held: Vec<(Micros, Item)>,
    newest: Micros,
    released: Micros,
    /// Records that were lost, and that a gap has been written for.
    gaps_for: u64,
}

impl Collector {
    pub(super) fn new(shared: Arc<Shared>, out: Box<dyn Output>, window: Micros) -> Collector {
        let (newest, released) = (Micros(i64::MIN), Micros(i64::MIN));
        let (streams, held, gaps_for) = (Vec::new(), Vec::new(), 0);
        Collector { shared, out, window, streams, held, newest, released, gaps_for }
    }

    /// Runs until the recording ends.
    pub(super) fn run(self) -> Result<(), FinishError> {
        let shared = Arc::clone(&self.shared);
        let done = self.collect();
        // Whoever asks from here on is told that it is over.
        drop(shared.take_asked(true));
        done
    }

    #[expect(clippy::disallowed_methods, reason = "how often a real recording is written is a matter of real time")]
    fn collect(mut self) -> Result<(), FinishError> {
        let (mut flushed, mut newest_then) = (Instant::now(), self.newest);
        loop {
            // Asked first: what was pushed before the end is in the streams by then.
            let state = self.shared.state();
            let asked = self.shared.take_asked(false);
            // Everything that was pushed when the newest of the last turn was there is taken in this one. So what is pushed
            // from here on is older than that only by as much as its caller is behind.
            let mut until = self.newest - self.window;
            let came = self.take();
            self.answer(asked)?;
            if state != State::Open {
                return self.end(state == State::Finished);
            }
            let flush = flushed.elapsed() >= FLUSH;
            if flush {
                // What has waited since the last time is not held back any longer, whatever its time. A session that does not
                // run in real time may stand still for so long.
                if self.shared.when_full == WhenFull::Drop {
                    until = until.max(newest_then);
                }
                (flushed, newest_then) = (Instant::now(), self.newest);
            }
            let done = self.release(until).and_then(|()| if flush { self.out.flush() } else { Ok(()) });
            if let Err(error) = done {
                self.shared.failed();
                // The writer's own error says more than that it has stopped.
                return Err(self.out.finish().err().unwrap_or(error));
            }
            self.shared.dropped_chunks.store(self.out.dropped_chunks(), Ordering::Relaxed);
            if !came {
                std::thread::park_timeout(TURN);
            }
        }
    }

    /// Empties the streams; says whether there was anything.
    fn take(&mut self) -> bool {
        self.streams.extend(self.shared.take_added());
        let before = self.held.len();
        for stream in &mut self.streams {
            // No more than what is there now, so that a stream that never ends does not starve the others.
            for _ in 0..stream.slots() {
                let Ok(Entry { at, item }) = stream.pop() else { break };
                let at = match at {
                    Moment::At(at) => at,
                    Moment::After(at) => at.unwrap_or(self.newest - self.window).max(self.released),
                };
                self.newest = self.newest.max(at);
                self.held.push((at, item));
            }
        }
        self.streams.retain(|stream| !stream.is_abandoned() || !stream.is_empty());
        // Each stream is in order by itself, mostly: the sort finds its runs.
        self.held.sort_by_key(|(at, _)| *at);
        self.held.len() > before
    }

    /// Hands what is kept to those who have asked for it, with what still waits for its place.
    fn answer(&self, asked: Vec<Sender<Kept>>) -> Result<(), FinishError> {
        for asked in asked {
            let Some(mut kept) = self.out.kept() else { continue };
            for (at, item) in &self.held {
                told(&self.shared.kinds, *at, item.clone(), &mut |told| kept.add(told))?;
            }
            // Whoever has gone meanwhile does not want it.
            let _ = asked.send(kept);
        }
        Ok(())
    }

    /// Hands on all that is before a time.
    fn release(&mut self, until: Micros) -> Result<(), FinishError> {
        self.hand_on_first(self.held.partition_point(|(at, _)| *at < until))?;
        if until > self.released {
            self.released = until;
            self.shared.release(until);
        }
        Ok(())
    }

    fn hand_on_first(&mut self, count: usize) -> Result<(), FinishError> {
        let mut handed = 0;
        let later = self.held.split_off(count);
        for (at, item) in std::mem::replace(&mut self.held, later) {
            handed += self.hand_on(at, item)?;
        }
        self.shared.records.fetch_add(handed, Ordering::Relaxed);
        Ok(())
    }

    /// Says how many records it was.
    fn hand_on(&mut self, at: Micros, item: Item) -> Result<u64, FinishError> {
        if at < self.released && !matches!(item, Item::Lost(..)) {
            self.shared.late.fetch_add(1, Ordering::Relaxed);
            return Ok(0);
        }
        if let Item::Lost(records, from) = item {
            self.gaps_for += records;
            self.gap(from.unwrap_or(at).min(at), at)?;
            return Ok(0);
        }
        told(&self.shared.kinds, at, item, &mut |told| self.out.told(told))?;
        Ok(1)
    }

    fn gap(&mut self, from: Micros, to: Micros) -> Result<(), FinishError> {
        self.out.told(&Told::Record(gap(from, to)))
    }

    fn end(mut self, whole: bool) -> Result<(), FinishError> {
        let mut done = self.hand_on_first(self.held.len());
        if done.is_ok() && self.shared.lost.load(Ordering::Relaxed) > self.gaps_for {
            // Nothing came after the loss that would have said so.
            let last = self.newest;
            done = self.gap(last, last);
        }
        if done.is_ok() && !whole {
            done = self.out.flush();
        }
        self.shared.dropped_chunks.store(self.out.dropped_chunks(), Ordering::Relaxed);
        match (done, whole) {
            (Ok(()), false) => Ok(()),
            (Ok(()), true) => self.out.finish(),
            (Err(error), _) => Err(self.out.finish().err().unwrap_or(error)),
        }
    }
}

/// Says an item as outputs are told it.
fn told(
    kinds: &[OwnKind],
    at: Micros,
    item: Item,
    to: &mut dyn FnMut(&Told) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    match item {
        Item::Record(record) => to(&Told::Record(record)),
        Item::Row(row, of) => to(&Told::Row(at, *row, of.map(|of| *of))),
        Item::Bytes(bytes) => {
            let (player, command, bytes) = *bytes;
            let mut rows = description::rows_of_bytes(kinds, player, command, at, &bytes);
            rows.try_for_each(|row| to(&Told::Row(at, row, None)))
        }
        Item::Lost(_, from) => to(&Told::Record(gap(from.unwrap_or(at).min(at), at))),
    }
}

fn gap(from: Micros, to: Micros) -> Record {
    Record::Gap(GapRecord { from, to, player: None, why: GapCause::Overrun })
}
