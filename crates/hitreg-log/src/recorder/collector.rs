//! The recorder's thread, and the state that it shares with the recorder and its streams. The thread empties the
//! streams, sorts their records by time, and passes them to the output.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rtrb::Consumer;

use super::output::{FlightRecording, RecordOutput};
use super::{CustomKind, FinishError, PushError, RecordingSummary};
use crate::log::{QueuePolicy, RecordCounter};
use crate::record::{GapCause, GapRecord, Record, SessionHeader, TextCode, TextError, Texts, TickRecord};
use crate::sorted::SortedMap;
use crate::units::{Micros, Tick};

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
    /// Records that still wait in the reorder window.
    held: Vec<(Micros, Record)>,
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
                .and_then(|()| if flush { self.out.flush() } else { Ok(()) });
            if let Err(error) = done {
                self.shared.state.store(RecorderState::Failed as u8, Ordering::Release);
                // What was written stays readable. The first error is the cause of any other.
                let _ = self.mark_missing().and_then(|()| self.out.finish());
                return Err(error);
            }
            self.shared.set_dropped(self.out.dropped_chunks());
            if !took_any {
                std::thread::park_timeout(TURN);
            }
        }
    }

    /// Empties the streams; returns whether they held anything.
    fn take(&mut self) -> bool {
        let mut added = self.shared.added.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams.extend(added.drain(..).map(|stream| (stream, Micros(i64::MIN))));
        drop(added);
        let before = self.held.len();
        for (stream, last) in &mut self.streams {
            // A bounded number of pops, so that a busy stream does not starve the others.
            for _ in 0..stream.slots() {
                let Ok(RingEntry { at, record }) = stream.pop() else { break };
                let at = match at {
                    RecordTime::At(at) => at,
                    // Records without an own time keep their order, whatever times come between them.
                    RecordTime::After(at) => {
                        *last = at.unwrap_or(self.newest - self.window).max(self.released).max(*last);
                        *last
                    }
                };
                self.newest = self.newest.max(at);
                self.held.push((at, record));
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

    /// Answers save requests with the kept data and the records that still wait in the reorder window.
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
            self.held.iter().try_for_each(|(_, record)| kept.add(record.clone()))?;
            // A send fails only if the caller has given up.
            let _ = request.send(kept);
        }
        Ok(())
    }

    /// Passes on all records before a time. A gap comes before the records that are later than the missing ones, so that
    /// no file has those without it.
    fn release(&mut self, until: Micros) -> Result<(), FinishError> {
        if self.shared.missing_from.load(Ordering::Acquire) < until.0 {
            self.mark_missing()?;
        }
        self.write_first(self.held.partition_point(|(at, _)| *at < until))?;
        if until > self.released && !self.out.takes_late_records() {
            self.released = until;
            self.shared.released.store(until.0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_first(&mut self, count: usize) -> Result<(), FinishError> {
        let later = self.held.split_off(count);
        for (at, record) in std::mem::replace(&mut self.held, later) {
            if at < self.released {
                self.shared.lose_late(at);
            } else {
                self.out.push(record)?;
            }
        }
        Ok(())
    }

    /// Writes a gap for the lost and late records since the last one.
    fn mark_missing(&mut self) -> Result<(), FinishError> {
        self.shared.take_gap().map_or(Ok(()), |gap| self.out.push(Record::Gap(gap)))
    }

    fn end(mut self, whole: bool) -> Result<(), FinishError> {
        let mut done = self.write_first(self.held.len()).and_then(|()| self.mark_missing());
        if done.is_ok() && !whole {
            done = self.out.flush();
        }
        self.shared.set_dropped(self.out.dropped_chunks());
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

/// One record in a stream's ring.
#[derive(Clone, Debug)]
pub(super) struct RingEntry {
    pub(super) at: RecordTime,
    pub(super) record: Record,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RecordTime {
    At(Micros),
    /// The record has no time of its own. It takes the time of the stream's previous record, if there is one, but no
    /// earlier time than the stream's previous record without one.
    After(Option<Micros>),
}

/// The state of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecorderState {
    Open,
    /// The thread writes everything and finishes the log.
    Finished,
    /// The thread writes everything and leaves the log unfinished.
    Left,
    /// A write error stopped the recording.
    Failed,
}

pub(super) struct RecorderShared {
    pub(super) header: SessionHeader,
    pub(super) kinds: Vec<CustomKind>,
    pub(super) when_full: QueuePolicy,
    state: AtomicU8,
    /// Records before this time, in microseconds, have been passed to the output.
    released: AtomicI64,
    records: RecordCounter,
    pub(super) lost: AtomicU64,
    dropped_chunks: AtomicU64,
    late: AtomicU64,
    /// The times of the first and the last lost or late record that no gap covers yet, in microseconds.
    missing_from: AtomicI64,
    missing_to: AtomicI64,
    /// The recent ticks, whose order is checked; `None` if it is not. Only pushes of ticks take this lock.
    ticks: Option<Mutex<TickOrder>>,
    /// Streams that the thread has not seen yet. Pushing never takes this lock.
    added: Mutex<Vec<Consumer<RingEntry>>>,
    /// Pending save requests; `None` after the thread has ended.
    save_requests: Mutex<Option<Vec<Sender<FlightRecording>>>>,
    /// The texts that streams have codes of. A stream takes this lock once for each text.
    texts: Mutex<Texts>,
    thread: OnceLock<Thread>,
}

impl std::fmt::Debug for RecorderShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("game", &self.header.game).field("state", &self.state()).finish_non_exhaustive()
    }
}

impl RecorderShared {
    /// The output counts in `records`. With `ticks`, refuses ticks whose numbers contradict their times.
    pub(super) fn new(
        header: SessionHeader,
        kinds: Vec<CustomKind>,
        records: RecordCounter,
        when_full: QueuePolicy,
        ticks: Option<Mutex<TickOrder>>,
    ) -> RecorderShared {
        RecorderShared {
            header,
            kinds,
            when_full,
            state: AtomicU8::new(RecorderState::Open as u8),
            released: AtomicI64::new(i64::MIN),
            records,
            lost: AtomicU64::new(0),
            dropped_chunks: AtomicU64::new(0),
            late: AtomicU64::new(0),
            missing_from: AtomicI64::new(i64::MAX),
            missing_to: AtomicI64::new(i64::MIN),
            ticks,
            added: Mutex::default(),
            save_requests: Mutex::new(Some(Vec::new())),
            texts: Mutex::default(),
            thread: OnceLock::new(),
        }
    }

    /// Checks a tick against the ticks so far, and adds it.
    pub(super) fn add_tick(&self, tick: TickRecord) -> Result<(), PushError> {
        let Some(ticks) = &self.ticks else { return Ok(()) };
        let released = Micros(self.released.load(Ordering::Relaxed));
        ticks.lock().unwrap_or_else(PoisonError::into_inner).add(tick, released)
    }

    /// Removes a tick that the ring did not take.
    pub(super) fn remove_tick(&self, tick: Tick) {
        if let Some(ticks) = &self.ticks {
            ticks.lock().unwrap_or_else(PoisonError::into_inner).remove(tick);
        }
    }

    pub(super) fn set_thread(&self, thread: Thread) {
        // `set` cannot fail: it runs once, right after the thread starts.
        let _ = self.thread.set(thread);
    }

    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(super) fn add(&self, stream: Consumer<RingEntry>) {
        self.added.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    pub(super) fn add_text(&self, text: &str) -> Result<TextCode, TextError> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).add(text)
    }

    pub(super) fn texts(&self) -> Texts {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests the kept data; `None` when the recording has ended.
    pub(super) fn ask(&self) -> Option<Receiver<FlightRecording>> {
        let (answer, kept) = channel();
        self.save_requests.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.push(answer);
        self.wake();
        Some(kept)
    }

    /// Takes the pending save requests. With `is_last`, later requests fail at once.
    fn take_save_requests(&self, is_last: bool) -> Vec<Sender<FlightRecording>> {
        let mut save_requests = self.save_requests.lock().unwrap_or_else(PoisonError::into_inner);
        let all = save_requests.take().unwrap_or_default();
        if !is_last {
            *save_requests = Some(Vec::new());
        }
        all
    }

    pub(super) fn state(&self) -> RecorderState {
        match self.state.load(Ordering::Acquire) {
            0 => RecorderState::Open,
            1 => RecorderState::Finished,
            2 => RecorderState::Left,
            _ => RecorderState::Failed,
        }
    }

    /// Ends the recording, unless it has ended already.
    pub(super) fn end(&self, whole: bool) {
        let to = if whole { RecorderState::Finished } else { RecorderState::Left };
        // A recording that has ended keeps its first end state.
        let _ = self.state.compare_exchange(RecorderState::Open as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
        self.wake();
    }

    /// Checks that the recording is open and that `at` is within the reorder window.
    pub(super) fn check(&self, at: Option<Micros>) -> Result<(), PushError> {
        match self.state() {
            RecorderState::Open => {}
            RecorderState::Finished | RecorderState::Left => return Err(PushError::Finished),
            RecorderState::Failed => return Err(PushError::Stopped),
        }
        let released = Micros(self.released.load(Ordering::Relaxed));
        match at {
            Some(at) if at < released => {
                self.lose_late(at);
                Err(PushError::Late { at, released })
            }
            _ => Ok(()),
        }
    }

    /// Counts a record that is too late.
    fn lose_late(&self, at: Micros) {
        self.late.fetch_add(1, Ordering::Relaxed);
        self.miss(at);
    }

    /// Counts a record whose ring is full. A record without a time, of a stream that has none, is missing from the first
    /// record on that is not yet in the log.
    pub(super) fn lose_overrun(&self, at: Option<Micros>) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        let is_first = self.miss(at.unwrap_or_else(|| Micros(self.released.load(Ordering::Relaxed).max(0))));
        if is_first {
            self.wake();
        }
    }

    /// Adds a time to the missing span; returns whether it is the first one.
    fn miss(&self, at: Micros) -> bool {
        self.missing_to.fetch_max(at.0, Ordering::AcqRel);
        self.missing_from.fetch_min(at.0, Ordering::AcqRel) == i64::MAX
    }

    /// Takes the gap of the lost and late records since the last call; `None` without such records. Its ends are beyond
    /// the times of the missing records.
    fn take_gap(&self) -> Option<GapRecord> {
        let first = self.missing_from.swap(i64::MAX, Ordering::AcqRel);
        let last = self.missing_to.swap(i64::MIN, Ordering::AcqRel).max(first);
        let [from, to] = [first.saturating_sub(1), last.saturating_add(1)].map(Micros);
        (first != i64::MAX).then_some(GapRecord { from, to, player: None, why: GapCause::Overrun })
    }

    fn set_dropped(&self, chunks: u64) {
        self.dropped_chunks.store(chunks, Ordering::Relaxed);
    }

    pub(super) fn written(&self) -> RecordingSummary {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordingSummary {
            records: self.records.get(),
            lost_records: of(&self.lost),
            dropped_chunks: of(&self.dropped_chunks),
            late_records: of(&self.late),
        }
    }
}

// Refuses ticks whose numbers contradict their times. Readers take states and usercmds of a tick by its number.

/// The recorded ticks that another tick may still precede, and the last one before them.
#[derive(Debug, Default)]
pub(super) struct TickOrder {
    at: SortedMap<Tick, Micros>,
}

impl TickOrder {
    /// Adds a tick that is not before `released`. Ticks may come in any order.
    ///
    /// # Errors
    /// When an earlier or simultaneous tick has a higher number, a later one has a lower number, or the number is known.
    pub(super) fn add(&mut self, tick: TickRecord, released: Micros) -> Result<(), PushError> {
        let before = self.at.range(..=tick.tick).next_back();
        let contradicts = |(number, at): &(&Tick, &Micros)| **number == tick.tick || **at > tick.at;
        let after = || self.at.range(tick.tick..).next().filter(|(_, at)| **at <= tick.at);
        if let Some((number, at)) = before.filter(contradicts).or_else(after) {
            return Err(PushError::TickOrder { tick, other: TickRecord { tick: *number, at: *at, hash: None } });
        }
        self.at.insert(tick.tick, tick.at);
        while self.at.values().nth(1).is_some_and(|at| *at < released) {
            self.at.pop_first();
        }
        Ok(())
    }

    /// Removes a tick that could not be recorded.
    pub(super) fn remove(&mut self, tick: Tick) {
        self.at.remove(&tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_in_any_order_and_only_contradictions_are_refused() {
        let mut order = TickOrder::default();
        let mut add = |number: u32, ms: i64| {
            let tick = TickRecord { tick: Tick(number), at: Micros::from_ms(ms), hash: None };
            match order.add(tick, Micros::from_ms(100)) {
                Ok(()) => None,
                Err(PushError::TickOrder { other, .. }) => Some(other.tick.0),
                Err(error) => panic!("{error}"),
            }
        };
        // The first tick of a log may have any number. Ticks of one frame have equal times.
        let pushed = [(5, 110), (7, 120), (6, 115), (8, 120), (20, 400)];
        assert_eq!(pushed.map(|(number, ms)| add(number, ms)), [None; 5]);
        // The number again, a later number with an earlier time, an earlier number with a later time, a restart.
        assert_eq!(
            [(7, 120), (9, 119), (6, 130), (1, 500)].map(|(number, ms)| add(number, ms)),
            [7, 8, 6, 5].map(Some)
        );
        assert_eq!([(9, 121), (21, 401)].map(|(number, ms)| add(number, ms)), [None; 2], "refused ticks do no harm");
    }

    /// Keeps the records that it receives.
    #[derive(Clone, Default)]
    struct Received(Arc<Mutex<Vec<Record>>>);

    impl RecordOutput for Received {
        fn push(&mut self, record: Record) -> Result<(), FinishError> {
            self.0.lock().unwrap().push(record);
            Ok(())
        }

        fn texts(&mut self, _: &crate::record::Texts) {}

        fn finish(self: Box<Self>) -> Result<(), FinishError> {
            Ok(())
        }
    }

    #[test]
    fn a_gap_comes_before_the_records_after_the_missing_ones() {
        let (header, kinds) = crate::recorder::Description::new("mygame").player("p0").into_header().unwrap();
        let shared = Arc::new(RecorderShared::new(header, kinds, RecordCounter::default(), QueuePolicy::Drop, None));
        let received = Received::default();
        let mut collector = Collector::new(Arc::clone(&shared), Box::new(received.clone()), Micros::ZERO);
        let tick = |number: u32| {
            let at = Micros::from_ms(i64::from(number));
            (at, Record::Tick(TickRecord { tick: Tick(number), at, hash: None }))
        };
        collector.held.extend([1, 2, 4].map(tick));
        shared.lose_overrun(Some(Micros::from_ms(3)));
        collector.release(Micros::from_ms(3)).unwrap();
        assert_eq!(received.0.lock().unwrap().len(), 2, "the missing record may not be the last one");
        collector.release(Micros::from_ms(5)).unwrap();
        let received = received.0.lock().unwrap();
        let gap = GapRecord { from: Micros(2_999), to: Micros(3_001), player: None, why: GapCause::Overrun };
        assert_eq!(received[2..], [Record::Gap(gap), tick(4).1]);
    }

    #[test]
    fn ticks_before_the_window_are_forgotten_except_the_last() {
        let mut order = TickOrder::default();
        for number in 1..=10_000u32 {
            let at = Micros::from_ms(10 * i64::from(number));
            let tick = TickRecord { tick: Tick(number), at, hash: None };
            order.add(tick, at - Micros::from_ms(250)).unwrap();
            assert!(order.at.len() <= 27, "{} ticks", order.at.len());
        }
        let at = Micros::from_ms(200_000);
        let other = TickRecord { tick: Tick(10_000 - 25 - 1), at: Micros::from_ms(99_740), hash: None };
        let tick = TickRecord { tick: Tick(1), at, hash: None };
        assert_eq!(order.add(tick, at), Err(PushError::TickOrder { tick, other }));
        order.remove(Tick(10_000));
        assert_eq!(order.add(TickRecord { tick: Tick(10_000), ..tick }, at), Ok(()));
    }
}
