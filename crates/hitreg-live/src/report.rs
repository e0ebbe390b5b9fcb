//! The progress and the final report of a live session.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use serde::Serialize;

use super::counters::Counters;
use hitreg_log::record::{Record, SessionHeader};
use hitreg_log::stats::percentile;
use hitreg_log::units::Micros;

/// Receives the records of a live session. All calls come from one thread, and causes come before effects.
pub trait LiveSink {
    /// Called once before the first record, when the log's header is known. A break ends the session.
    fn begin(&mut self, header: &SessionHeader) -> ControlFlow<()> {
        let _ = header;
        ControlFlow::Continue(())
    }

    /// Called once with the session's length, when it becomes known only at that time.
    fn expecting(&mut self, length: Micros) {
        let _ = length;
    }

    /// Called once with the address on which a server listens.
    fn listening(&mut self, address: SocketAddr) {
        let _ = address;
    }

    /// Takes a record. A break ends the session.
    fn record(&mut self, record: &Record) -> ControlFlow<()>;

    /// Called once a second. The sink should now make all records safe against a kill. A break ends the session.
    fn every_second(&mut self) -> ControlFlow<()>;

    /// Called several times a second, for progress bars.
    fn show(&mut self, rates: &SessionRates);
}

/// The progress of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionRates {
    /// The time since the session began; `None` while it waits for players.
    pub at: Option<Micros>,
    /// The number of ready players.
    pub ready: u64,
    /// The number of players that the session waits for; 0 while unknown.
    pub places: u64,
    /// Usercmds per second from the clients of this process, averaged over the session so far.
    pub usercmds_per_s: f64,
    /// Ticks per second, averaged over the session so far.
    pub ticks_per_s: f64,
    /// Datagrams per second of all clients, both directions, averaged over the session so far.
    pub datagrams_per_s: f64,
    /// Bytes per second that this process sent, averaged over the session so far.
    pub bytes_per_s: f64,
}

/// The final report of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveReport {
    /// The number of ticks.
    pub ticks: u64,
    /// The number of ticks skipped because the machine was busy for longer than a tick.
    pub ticks_left_out: u64,
    /// The lateness of the ticks.
    pub lateness: Option<LatenessSummary>,
    /// The number of usercmds that the clients made.
    pub usercmds: u64,
    /// Traffic from the clients.
    pub up: TrafficCounts,
    /// Traffic from the server.
    pub down: TrafficCounts,
    /// Snapshots: how many the server sent, and what happened to them.
    pub snapshots: SnapshotCounts,
    /// Snapshots that arrived a second time.
    pub down_duplicates: u64,
    /// Snapshots that arrived too late to be decoded.
    pub down_undecodable: u64,
    /// Datagrams that were ignored: of other protocols, forged, modified or repeated.
    pub refused: u64,
    /// The comparison of the clients' predicted avatars with the server's.
    pub perceived: Perception,
    /// Notices that were dropped because a client had not acked earlier ones.
    pub notices_lost: u64,
}

/// The comparison of the avatars that clients predict with the server's results for the same usercmds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Perception {
    /// The number of avatars compared: those after usercmds that a snapshot acked.
    pub compared: u64,
    /// The number of avatars within an eighth of a unit of the server's origin.
    pub right: u64,
}

/// The traffic of all connections in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficCounts {
    /// The number of datagrams sent.
    pub datagrams: u64,
    /// Their payload in bytes. UDP and IP add 28 bytes to each.
    pub bytes: u64,
    /// The number of datagrams that arrived and were used.
    pub arrived: u64,
}

/// The number of snapshots by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotCounts {
    /// Snapshots sent.
    pub sent: u64,
    /// Sent snapshots with room for every change that the client did not know yet.
    pub whole: u64,
    /// Sent snapshots that took more than one datagram.
    pub in_fragments: u64,
    /// Snapshots that arrived complete and that a client used.
    pub used: u64,
}

/// The distribution of lateness in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessSummary {
    /// The median, in µs.
    pub p50_us: u32,
    /// The 95th percentile, in µs.
    pub p95_us: u32,
    /// The 99th percentile, in µs.
    pub p99_us: u32,
    /// The maximum, in µs.
    pub max_us: u32,
}

impl LatenessSummary {
    /// Computes the distribution; `None` without values.
    pub(super) fn of(mut lateness_us: Vec<u32>) -> Option<LatenessSummary> {
        lateness_us.sort_unstable();
        let at = |percent| percentile(&lateness_us, percent);
        match (at(50.0), at(95.0), at(99.0), at(100.0)) {
            (Some(p50_us), Some(p95_us), Some(p99_us), Some(max_us)) => {
                Some(LatenessSummary { p50_us, p95_us, p99_us, max_us })
            }
            _ => None,
        }
    }
}

impl SessionRates {
    pub(super) fn new(counters: &Counters, now: Micros) -> SessionRates {
        let state = counters.lock();
        let LiveReport { ticks, usercmds, up, down, .. } = state.report;
        let at = state.began_at.map(|began| now - began);
        let seconds = at.map_or(0.0, Micros::as_s_f64).max(0.1);
        let per_s = |number: u64| number as f64 / seconds;
        SessionRates {
            at,
            ready: state.ready,
            places: state.places,
            usercmds_per_s: per_s(usercmds),
            ticks_per_s: per_s(ticks),
            // A standalone client or server knows only those datagrams of the other side that arrived.
            datagrams_per_s: per_s(up.datagrams.max(up.arrived) + down.datagrams.max(down.arrived)),
            bytes_per_s: per_s(up.bytes + down.bytes),
        }
    }
}
