//! The progress and the final report of a live session, and what all its threads share: the clock, the counters, and one
//! channel for their records.
//!
//! A thread records an action before any other thread can see its effect. The channel therefore holds causes before
//! effects, and a log that is cut at any point replays up to that point.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::socket::LOOK_UP_EVERY;
use hitreg_log::record::{Record, SessionHeader};
use hitreg_log::stats::percentile;
use hitreg_log::units::{Hz, Micros};
use hitreg_netcode::session::RecordSink;
use hitreg_netcode::wire::Notice;

/// The most notices kept in a session; further ones are dropped.
const HEARD_MAX: usize = 10_000;

/// The most records that may wait to be written to the log. When the disk stays too slow, the session blocks.
pub(super) const WAITING_RECORDS: usize = 1 << 16;

/// The interval between progress updates.
const SHOW_EVERY: Micros = Micros::from_ms(100);

/// The interval between saves of the log.
const SAVE_EVERY: Micros = Micros::from_s(1);

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
    fn record(&mut self, record: Record) -> ControlFlow<()>;

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
    pub slots: u64,
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
        Some(LatenessSummary { p50_us: at(50.0)?, p95_us: at(95.0)?, p99_us: at(99.0)?, max_us: at(100.0)? })
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
            slots: state.slots,
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
    pub(super) slots: u64,
    /// The counters of the report.
    pub(super) report: LiveReport,
    /// The notices that clients received, in order.
    pub(super) heard: Vec<Notice>,
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

    /// Returns the report, with the lateness of the ticks in µs.
    pub(super) fn report(&self, lateness_us: Vec<u32>) -> LiveReport {
        let mut report = self.lock().report.clone();
        if let Some(server) = &mut report.server {
            server.lateness = LatenessSummary::of(lateness_us);
        }
        report
    }
}

/// The progress updates and the saves of a session.
pub(super) struct Upkeep {
    show_at: Micros,
    save_at: Micros,
}

impl Default for Upkeep {
    fn default() -> Upkeep {
        Upkeep { show_at: Micros::ZERO, save_at: SAVE_EVERY }
    }
}

impl Upkeep {
    /// Shows the progress and saves the log when it is time. Returns `kept`, or the result of a save.
    pub(super) fn run(
        &mut self,
        sink: &mut dyn LiveSink,
        now: Micros,
        kept: ControlFlow<()>,
        rates: impl FnOnce() -> SessionRates,
    ) -> ControlFlow<()> {
        if now >= self.show_at {
            self.show_at = now + SHOW_EVERY;
            sink.show(&rates());
        }
        if now >= self.save_at && kept.is_continue() {
            self.save_at = now + SAVE_EVERY;
            return sink.every_second();
        }
        kept
    }
}

/// The main thread of a live session. It passes on the records of all threads, saves them once a second, and reports
/// progress.
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
        let mut upkeep = Upkeep::default();
        let mut kept = ControlFlow::Continue(());
        loop {
            match recorded.recv_timeout(LOOK_UP_EVERY) {
                Ok(record) if kept.is_continue() => kept = sink.record(record),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            kept = upkeep.run(sink, now, kept, || SessionRates::new(self.counters, now));
            if kept.is_break() || self.stop.load(Ordering::Relaxed) {
                self.ending.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// A monotonic clock. Its copies show the same time on all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonotonicClock {
    started: Instant,
}

impl MonotonicClock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "the clock of live sessions reads the system time")]
    pub(super) fn start() -> MonotonicClock {
        MonotonicClock { started: Instant::now() }
    }

    pub(super) fn now(self) -> Micros {
        Micros(self.started.elapsed().as_micros() as i64)
    }

    /// Returns a unique time for one event. The function returns only after that time has passed. Everything that the
    /// event causes, on any thread, therefore gets a later time. A replay orders events by these times alone.
    pub(super) fn stamp(self) -> Micros {
        let stamp = self.now();
        while self.now() <= stamp {
            std::hint::spin_loop();
        }
        stamp
    }

    /// Returns the duration until `then`; zero when it has passed.
    pub(super) fn until(self, then: Micros) -> Duration {
        Duration::from_micros((then - self.now()).0.max(0).unsigned_abs())
    }
}

/// Finds pauses of this program, such as a stopped process, in which it could not receive what others sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PauseDetector {
    looked_at: Micros,
}

/// A program that runs looks at its clock more often than this.
const LOOK_EVERY_MAX: Micros = Micros::from_s(1);

impl PauseDetector {
    pub(super) fn new(now: Micros) -> PauseDetector {
        PauseDetector { looked_at: now }
    }

    /// Returns the length of the pause since the last look, beyond the time that may pass between two looks.
    pub(super) fn pause(&mut self, now: Micros) -> Micros {
        let since = now - std::mem::replace(&mut self.looked_at, now);
        (since - LOOK_EVERY_MAX).max(Micros::ZERO)
    }
}

/// A periodic schedule that skips missed turns instead of catching up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    first: Micros,
    hz: Hz,
    turn: i64,
}

impl Schedule {
    /// Creates a schedule with `hz` turns per second, starting at `first`.
    pub(super) fn new(first: Micros, hz: Hz) -> Schedule {
        Schedule { first, hz, turn: 0 }
    }

    /// Returns the time of the next turn.
    pub(super) fn due(&self) -> Micros {
        self.first + self.hz.period_start(self.turn)
    }

    /// Delays the next turn and all later ones by `late`.
    pub(super) fn delay(&mut self, late: Micros) {
        self.first += late;
    }

    /// Moves to the first turn after `now`. Returns the number of turns skipped.
    pub(super) fn advance(&mut self, now: Micros) -> u64 {
        self.turn += 1;
        let next = self.hz.periods_in(now - self.first) + 1;
        let missed = (next - self.turn).max(0);
        self.turn += missed;
        missed.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_times_are_in_the_past() {
        let clock = MonotonicClock::start();
        let mut last = Micros(-1);
        for _ in 0..1_000 {
            let stamp = clock.stamp();
            assert!(last < stamp && stamp < clock.now());
            last = stamp;
        }
    }

    #[test]
    fn missed_turns_are_skipped() {
        let mut schedule = Schedule::new(Micros(500), "64".parse().expect("a rate"));
        assert_eq!(schedule.due(), Micros(500));
        assert_eq!(schedule.advance(Micros(600)), 0);
        assert_eq!(schedule.due(), Micros(500 + 15_625));
        assert_eq!(schedule.advance(Micros(500 + 3 * 15_625 + 1)), 2);
        assert_eq!(schedule.due(), Micros(500 + 4 * 15_625));
        schedule.delay(Micros(70));
        assert_eq!(schedule.due(), Micros(570 + 4 * 15_625));
        assert_eq!(schedule.advance(Micros(600 + 4 * 15_625)), 0);
        assert_eq!(schedule.due(), Micros(570 + 5 * 15_625));
    }
}
