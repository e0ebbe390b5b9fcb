//! The shared state of a running session: one channel for the records of all threads, and counters.
//!
//! A thread records an action before any other thread can see its effect. The channel therefore holds causes before
//! effects, and a log that is cut at any point replays up to that point.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, OnceLock, PoisonError};

use hitreg_log::record::Record;
use hitreg_log::units::{Micros, PlayerId};
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

/// A counter that increases while a session runs.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(super) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a session, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The time at which the session began.
    pub(super) began_at: OnceLock<Micros>,
    /// The number of ready players.
    pub(super) ready: Counter,
    /// The number of players that the session waits for; 0 while unknown.
    pub(super) places: Counter,
    pub(super) ticks: Counter,
    pub(super) ticks_left_out: Counter,
    pub(super) usercmds: Counter,
    pub(super) up_datagrams: Counter,
    pub(super) up_bytes: Counter,
    pub(super) up_arrived: Counter,
    pub(super) down_datagrams: Counter,
    pub(super) down_bytes: Counter,
    pub(super) down_arrived: Counter,
    pub(super) snapshots: Counter,
    pub(super) snapshots_whole: Counter,
    pub(super) snapshots_in_fragments: Counter,
    pub(super) snapshots_used: Counter,
    pub(super) down_duplicates: Counter,
    pub(super) down_partial: Counter,
    pub(super) down_undecodable: Counter,
    pub(super) refused: Counter,
    pub(super) perceived: Counter,
    pub(super) perceived_right: Counter,
    /// Notices that were dropped because a client had not acked earlier ones.
    pub(super) notices_lost: Counter,
    /// The notices that clients received, in order.
    pub(super) heard: Mutex<Vec<(PlayerId, Notice)>>,
}

impl Counters {
    /// Keeps notices that a client received.
    pub(super) fn add_notices(&self, player: PlayerId, notices: Vec<Notice>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEARD_MAX.saturating_sub(heard.len());
        heard.extend(notices.into_iter().take(room).map(|notice| (player, notice)));
    }

    /// Takes the notices that clients received.
    pub(super) fn take_heard(&self) -> Vec<(PlayerId, Notice)> {
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
