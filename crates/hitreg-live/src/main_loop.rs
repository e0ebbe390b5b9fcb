//! The thread that keeps a live session: hands the records of all others on, makes them safe once a second, and tells
//! how it goes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::clock::Clock;
use super::counters::Counters;
use super::report::{LiveSink, Rates};
use hitreg_log::record::{Header, Record};
use hitreg_log::units::Micros;

/// How long it waits before it looks whether the session is to end.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);
/// How often progress is shown.
const SHOW_EVERY: Micros = Micros::from_ms(100);
/// How often the log is made safe.
const SAVE_EVERY: Micros = Micros::from_s(1);

/// What there is to look at while a session is kept.
pub(super) struct MainLoop<'a> {
    pub(super) clock: Clock,
    pub(super) counters: &'a Counters,
    /// Set by whoever wants the session to end early.
    pub(super) stop: &'a AtomicBool,
    /// Set when server and clients are to end.
    pub(super) ending: &'a AtomicBool,
}

impl MainLoop<'_> {
    /// Waits until all players are ready, or nobody waits for them any more, and for what the session is played by then;
    /// `None` when there is none to be played.
    pub(super) fn wait<T>(&self, sink: &mut dyn LiveSink, begun: &Receiver<T>) -> Option<T> {
        loop {
            match begun.recv_timeout(LOOK_UP_EVERY) {
                Ok(begun) => return Some(begun),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            sink.show(&Rates::new(self.counters, self.clock.now()));
            if self.stop.load(Ordering::Relaxed) {
                self.ending.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Begins the log.
    pub(super) fn begin(&self, sink: &mut dyn LiveSink, header: &Header) {
        if sink.begin(header).is_break() {
            self.ending.store(true, Ordering::Relaxed);
        }
    }

    /// Hands records on until all who make them are gone.
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
                sink.show(&Rates::new(self.counters, now));
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
