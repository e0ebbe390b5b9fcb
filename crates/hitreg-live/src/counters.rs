//! The shared state of a running session: one channel for the records of all threads, and counters.
//!
//! A thread records an action before any other thread can see its effect. The channel therefore holds causes before
//! effects, and a log that is cut at any point replays up to that point.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::report::{ClientsReport, LatenessSummary, LiveReport, ServerReport};
use hitreg_log::record::Record;
use hitreg_log::units::Micros;
use hitreg_netcode::session::RecordSink;
use hitreg_netcode::wire::Notice;

/// The most notices kept in a session; further ones are dropped.
const HEARD_MAX: usize = 10_000;

/// The most records that may wait to be written to the log. When the disk stays too slow, the session blocks.
pub(super) const WAITING_RECORDS: usize = 1 << 16;

/// One thread's end of the channel.
#[derive(Clone, Debug)]
pub(super) struct RecordSender(pub(super) SyncSender<Record>);

impl RecordSink for RecordSender {
    fn record(&mut self, record: Record) {
        // The receiver ends early only after an error, which ends the session.
        let _ = self.0.send(record);
    }
}

/// What all threads know of a running session.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// The time at which the session began.
    pub(super) began_at: Option<Micros>,
    /// The number of ready players.
    pub(super) ready: u64,
    /// The number of players that the session waits for; 0 while unknown.
    pub(super) places: u64,
    /// The counters of the report.
    pub(super) report: LiveReport,
    /// The notices that clients received, in order.
    heard: Vec<Notice>,
}

/// The state of a session, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<SessionState>);

impl Counters {
    pub(super) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the counters of the server.
    pub(super) fn count_server(&self, add: impl FnOnce(&mut ServerReport)) {
        add(self.lock().report.server.get_or_insert_default());
    }

    /// Adds to the counters of the clients.
    pub(super) fn count_clients(&self, add: impl FnOnce(&mut ClientsReport)) {
        add(self.lock().report.clients.get_or_insert_default());
    }

    /// Keeps notices that a client received.
    pub(super) fn add_notices(&self, notices: Vec<Notice>) {
        let heard = &mut self.lock().heard;
        let room = HEARD_MAX.saturating_sub(heard.len());
        heard.extend(notices.into_iter().take(room));
    }

    /// Takes the notices that clients received.
    pub(super) fn take_heard(&self) -> Vec<Notice> {
        std::mem::take(&mut self.lock().heard)
    }

    /// Returns the report, with the lateness of the ticks in µs.
    pub(super) fn report(&self, lateness_us: Vec<u32>) -> LiveReport {
        let mut report = self.lock().report.clone();
        if let Some(server) = &mut report.server {
            server.lateness = LatenessSummary::of(lateness_us);
        }
        report
    }
}
