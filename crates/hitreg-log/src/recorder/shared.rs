//! State that a recorder, its streams and its thread share.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use rtrb::Consumer;

use super::flight::FlightRecording;
use super::tick_order::TickOrder;
use super::{CustomKind, PushError, RecordingSummary};
use crate::log::QueuePolicy;
use crate::record::{GapCause, GapRecord, Record, SessionHeader, TextCode, TextError, Texts, TickRecord};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// One item in a stream's ring.
#[derive(Clone, Debug)]
pub(super) struct RingEntry {
    pub(super) at: RecordTime,
    pub(super) item: Item,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RecordTime {
    At(Micros),
    /// The item has no time of its own. It takes the time of the stream's previous item, if there is one, but no earlier
    /// time than the stream's previous item without one.
    After(Option<Micros>),
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    Record(Record),
    /// The extra bytes of a usercmd.
    Bytes(Box<(PlayerId, CommandSeq, Vec<u8>)>),
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
    pub(super) records: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) dropped_chunks: AtomicU64,
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
    pub(super) fn new(header: SessionHeader, kinds: Vec<CustomKind>, when_full: QueuePolicy) -> RecorderShared {
        RecorderShared {
            header,
            kinds,
            when_full,
            state: AtomicU8::new(RecorderState::Open as u8),
            released: AtomicI64::new(i64::MIN),
            records: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            dropped_chunks: AtomicU64::new(0),
            late: AtomicU64::new(0),
            missing_from: AtomicI64::new(i64::MAX),
            missing_to: AtomicI64::new(i64::MIN),
            ticks: None,
            added: Mutex::default(),
            save_requests: Mutex::new(Some(Vec::new())),
            texts: Mutex::default(),
            thread: OnceLock::new(),
        }
    }

    /// Refuses ticks whose numbers contradict their times.
    pub(super) fn with_tick_order(self) -> RecorderShared {
        RecorderShared { ticks: Some(Mutex::default()), ..self }
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

    pub(super) fn take_added(&self) -> Vec<Consumer<RingEntry>> {
        std::mem::take(&mut *self.added.lock().unwrap_or_else(PoisonError::into_inner))
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
    pub(super) fn take_save_requests(&self, is_last: bool) -> Vec<Sender<FlightRecording>> {
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

    pub(super) fn failed(&self) {
        self.state.store(RecorderState::Failed as u8, Ordering::Release);
    }

    pub(super) fn release(&self, before: Micros) {
        self.released.store(before.0, Ordering::Relaxed);
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
    pub(super) fn lose_late(&self, at: Micros) {
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
    pub(super) fn take_gap(&self) -> Option<GapRecord> {
        let first = self.missing_from.swap(i64::MAX, Ordering::AcqRel);
        let last = self.missing_to.swap(i64::MIN, Ordering::AcqRel).max(first);
        let [from, to] = [first.saturating_sub(1), last.saturating_add(1)].map(Micros);
        (first != i64::MAX).then_some(GapRecord { from, to, player: None, why: GapCause::Overrun })
    }

    pub(super) fn written(&self) -> RecordingSummary {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordingSummary {
            records: of(&self.records),
            lost_records: of(&self.lost),
            dropped_chunks: of(&self.dropped_chunks),
            late_records: of(&self.late),
        }
    }
}
