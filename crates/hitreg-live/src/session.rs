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

/// The final report of a session, with the counts of each side that ran in this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveReport {
    /// What the server counted.
    pub server: Option<ServerReport>,
    /// What the clients counted, all together.
    pub clients: Option<ClientsReport>,
}

/// What a server counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerReport {
    /// The number of ticks.
    pub ticks: u64,
    /// The number of ticks skipped because the machine was busy for longer than a tick.
    pub ticks_left_out: u64,
    /// The lateness of the ticks.
    pub lateness: Option<LatenessSummary>,
    /// The number of the clients' datagrams that arrived and were used.
    pub received: u64,
    /// The number of the clients' datagrams that arrived once more.
    pub repeated: u64,
    /// Datagrams that were ignored: of other protocols, forged, modified or repeated.
    pub refused: u64,
    /// Traffic to the clients.
    pub sent: TrafficCounts,
    /// The snapshots that were sent.
    pub snapshots: SnapshotCounts,
    /// The comparison of the clients' predicted avatars with the server's.
    pub perceived: Perception,
    /// Notices that were dropped because a client had not acked earlier ones.
    pub notices_lost: u64,
}

/// What clients counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientsReport {
    /// The number of usercmds that the clients made.
    pub usercmds: u64,
    /// Traffic to the server.
    pub sent: TrafficCounts,
    /// The number of the server's datagrams that arrived and were used.
    pub received: u64,
    /// Snapshots that arrived complete and were used.
    pub snapshots: u64,
    /// Snapshots that arrived once more.
    pub repeated: u64,
    /// Snapshots that arrived too late to be decoded.
    pub undecodable: u64,
    /// Datagrams that were ignored: of other protocols, forged, modified or repeated.
    pub refused: u64,
}

/// The comparison of the avatars that clients predict with the server's results for the same usercmds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Perception {
    /// The number of avatars compared: those after usercmds that a snapshot acked.
    pub compared: u64,
    /// The number of avatars within an eighth of a unit of the server's origin.
    pub right: u64,
}

/// What a side sent on all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficCounts {
    /// The number of datagrams sent.
    pub datagrams: u64,
    /// Their payload in bytes. UDP and IP add 28 bytes to each.
    pub bytes: u64,
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
        let LiveReport { server, clients } = state.report.clone();
        let (server, clients) = (server.unwrap_or_default(), clients.unwrap_or_default());
        let at = state.began_at.map(|began| now - began);
        let seconds = at.map_or(0.0, Micros::as_s_f64).max(0.1);
        let per_s = |number: u64| number as f64 / seconds;
        SessionRates {
            at,
            ready: state.ready,
            places: state.places,
            usercmds_per_s: per_s(clients.usercmds),
            ticks_per_s: per_s(server.ticks),
            // A standalone client or server knows only those datagrams of the other side that arrived.
            datagrams_per_s: per_s(
                clients.sent.datagrams.max(server.received) + server.sent.datagrams.max(clients.received),
            ),
            bytes_per_s: per_s(clients.sent.bytes + server.sent.bytes),
        }
    }
}
