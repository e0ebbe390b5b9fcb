//! What is kept of a session while it runs: its records, on one channel from all threads, and counts.
//!
//! A thread writes down what it did before anyone can see it. So the channel holds causes before effects, and a log that
//! is cut off anywhere replays up to there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use crate::record::Record;
use crate::session::RecordSink;
use crate::units::Micros;

/// Records that may wait for the log. A disk that is slower than that for long holds the session up.
pub(super) const WAITING_RECORDS: usize = 1 << 16;

/// One thread's end of the channel.
#[derive(Clone, Debug)]
pub(super) struct Books(pub(super) SyncSender<Record>);

impl RecordSink for Books {
    fn record(&mut self, record: Record) {
        // Whoever keeps the log has stopped only after an error of its own, and ends the session with it.
        let _ = self.0.send(record);
    }
}

/// Something that goes up while a session runs.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
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

/// The counts of a session, for everybody to add to.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// When the session began, once it has.
    pub(super) began_at: OnceLock<Micros>,
    /// How many players are ready.
    pub(super) ready: Count,
    /// How many the session waits for; 0 while that is not known.
    pub(super) seats: Count,
    pub(super) ticks: Count,
    pub(super) ticks_left_out: Count,
    pub(super) usercmds: Count,
    pub(super) up_datagrams: Count,
    pub(super) up_bytes: Count,
    pub(super) up_arrived: Count,
    pub(super) down_datagrams: Count,
    pub(super) down_bytes: Count,
    pub(super) down_arrived: Count,
    pub(super) snapshots: Count,
    pub(super) snapshots_whole: Count,
    pub(super) snapshots_in_fragments: Count,
    pub(super) snapshots_used: Count,
    pub(super) down_duplicates: Count,
    pub(super) down_partial: Count,
    pub(super) down_undecodable: Count,
    pub(super) refused: Count,
    pub(super) perceived: Count,
    pub(super) perceived_right: Count,
}
