//! What is kept of a session while it runs: its records, on one channel from all threads, and counters.
//!
//! A thread writes down what it did before anyone can see it. So the channel holds causes before effects, and a log that
//! is cut off anywhere replays up to there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, OnceLock, PoisonError};

use hitreg_log::record::Record;
use hitreg_log::units::{Micros, PlayerId};
use hitreg_netcode::session::RecordSink;
use hitreg_netcode::wire::Notice;

/// Of a session in which more is said than this, the rest is not kept.
const HEARD_MAX: usize = 10_000;

/// Records that may wait for the log. A disk that is slower than that for long holds the session up.
pub(super) const WAITING_RECORDS: usize = 1 << 16;

/// One thread's end of the channel.
#[derive(Clone, Debug)]
pub(super) struct RecordSender(pub(super) SyncSender<Record>);

impl RecordSink for RecordSender {
    fn record(&mut self, record: Record) {
        // Whoever keeps the log has stopped only after an error of its own, and ends the session with it.
        let _ = self.0.send(record);
    }
}

/// Something that goes up while a session runs.
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

/// The counters of a session, for everybody to add to.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// When the session began, once it has.
    pub(super) began_at: OnceLock<Micros>,
    /// How many players are ready.
    pub(super) ready: Counter,
    /// How many the session waits for; 0 while that is not known.
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
    /// What was to be told to clients who had not heard so much before that there was no room for it.
    pub(super) notices_lost: Counter,
    /// What they heard, in the order in which they did.
    pub(super) heard: Mutex<Vec<(PlayerId, Notice)>>,
}

impl Counters {
    /// Keeps what a client heard.
    pub(super) fn hear(&self, player: PlayerId, notices: Vec<Notice>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEARD_MAX.saturating_sub(heard.len());
        heard.extend(notices.into_iter().take(room).map(|notice| (player, notice)));
    }

    /// What clients have heard.
    pub(super) fn take_heard(&self) -> Vec<(PlayerId, Notice)> {
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
