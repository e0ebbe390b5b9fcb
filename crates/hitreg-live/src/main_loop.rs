//! The main thread of a live session. It passes on the records of all threads, saves them once a second, and reports
//! progress.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use super::clock::MonotonicClock;
use super::counters::Counters;
use super::report::{LiveSink, SessionRates};
use super::socket::LOOK_UP_EVERY;
use hitreg_log::record::{Record, SessionHeader};
use hitreg_log::units::Micros;

/// The interval between progress updates.
pub(super) const SHOW_EVERY: Micros = Micros::from_ms(100);
/// The interval between saves of the log.
pub(super) const SAVE_EVERY: Micros = Micros::from_s(1);

/// The state that the main thread watches.
pub(super) struct MainLoop<'a> {
    pub(super) clock: MonotonicClock,
    pub(super) counters: &'a Counters,
    /// Set from outside to end the session early.
    pub(super) stop: &'a AtomicBool,
    /// Set when server and clients are to end.
    pub(super) ending: &'a AtomicBool,
}

impl MainLoop<'_> {
    /// Waits until all players are ready, and returns the value that the server sends then. Returns `None` when the
    /// session ends before it begins.
    pub(super) fn wait<T>(&self, sink: &mut dyn LiveSink, begun: &Receiver<T>) -> Option<T> {
        loop {
            match begun.recv_timeout(LOOK_UP_EVERY) {
                Ok(begun) => return Some(begun),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            sink.show(&SessionRates::new(self.counters, self.clock.now()));
            if self.stop.load(Ordering::Relaxed) {
                self.ending.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Starts the log.
    pub(super) fn begin(&self, sink: &mut dyn LiveSink, header: &SessionHeader) {
        if sink.begin(header).is_break() {
            self.ending.store(true, Ordering::Relaxed);
        }
    }

    /// Passes records on until all their senders have ended.
    pub(super) fn run(&self, sink: &mut dyn LiveSink, recorded: &Receiver<Record>) {
        let (mut show_at, mut save_at) = (Micros::ZERO, SAVE_EVERY);
        let mut kept = ControlFlow::Continue(());
        loop {
            match recorded.recv_timeout(LOOK_UP_EVERY) {
                Ok(record) if kept.is_continue() => kept = sink.record(&record),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            if now >= show_at {
                show_at = now + SHOW_EVERY;
                sink.show(&SessionRates::new(self.counters, now));
            }
            if now >= save_at && kept.is_continue() {
                save_at = now + SAVE_EVERY;
                kept = sink.every_second();
            }
            if kept.is_break() || self.stop.load(Ordering::Relaxed) {
                self.ending.store(true, Ordering::Relaxed);
            }
        }
    }
}
