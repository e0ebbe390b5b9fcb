//! What a live session tells about itself: while it runs, and at its end.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use serde::Serialize;

use super::counters::Counters;
use hitreg_log::record::{Header, Record};
use hitreg_log::stats::percentile;
use hitreg_log::units::Micros;

/// Keeps the records of a live session. Called on one thread, in an order in which causes come before effects.
pub trait LiveSink {
    /// Called once before the first record, when the header of the log is known. To break off is to end the session.
    fn begin(&mut self, header: &Header) -> ControlFlow<()> {
        let _ = header;
        ControlFlow::Continue(())
    }

    /// Called once with how long the session is to be, where that is known only then.
    fn expecting(&mut self, length: Micros) {
        let _ = length;
    }

    /// Called once with the address that a server listens at.
    fn listening(&mut self, address: SocketAddr) {
        let _ = address;
    }

    /// Takes a record. To break off is to end the session.
    fn record(&mut self, record: &Record) -> ControlFlow<()>;

    /// Called once a second: what was recorded should be safe from a kill now. To break off is to end the session.
    fn every_second(&mut self) -> ControlFlow<()>;

    /// Called several times a second, for progress bars.
    fn show(&mut self, rates: &Rates);
}

/// How a session is going.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The time since the session began; `None` while players are still waited for.
    pub at: Option<Micros>,
    /// How many players are ready.
    pub ready: u64,
    /// How many the session waits for; 0 while that is not known.
    pub places: u64,
    /// Usercmds of the clients of this process, in each second so far.
    pub usercmds_per_s: f64,
    /// Ticks in each second so far.
    pub ticks_per_s: f64,
    /// Datagrams of all clients, both ways, in each second so far.
    pub datagrams_per_s: f64,
    /// Bytes that were sent by this process, in each second so far.
    pub bytes_per_s: f64,
}

/// How a session went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveReport {
    /// How many ticks there were.
    pub ticks: u64,
    /// How many were left out because the machine was busy for longer than a tick.
    pub ticks_left_out: u64,
    /// How late they were.
    pub lateness: Option<Lateness>,
    /// How many usercmds the clients made.
    pub usercmds: u64,
    /// From the clients.
    pub up: Traffic,
    /// From the server.
    pub down: Traffic,
    /// Snapshots: all that the server sent, and what became of them.
    pub snapshots: Snapshots,
    /// Snapshots that arrived a second time.
    pub down_duplicates: u64,
    /// Snapshots that came without all of their entities, because a message has no room for more; clients do not use them.
    pub down_partial: u64,
    /// Snapshots that came too late to be made sense of.
    pub down_undecodable: u64,
    /// Datagrams that were not acted on: of other protocols, made up, changed, or repeated.
    pub refused: u64,
    /// Where clients saw their avatars, held against where the server had them.
    pub perceived: Perception,
    /// What there was no room to tell clients who had not heard what they were told before.
    pub notices_lost: u64,
}

/// What clients say of their avatars with their input, against what the server made of the same usercmds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Perception {
    /// How many avatars were compared: those after usercmds that a snapshot acked.
    pub compared: u64,
    /// How many of them were where the server had them, to an eighth of a unit.
    pub right: u64,
}

/// One direction of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Datagrams that left.
    pub datagrams: u64,
    /// Their payload, in bytes; UDP and IP add 28 to each.
    pub bytes: u64,
    /// Datagrams that arrived and were used.
    pub arrived: u64,
}

/// What became of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshots {
    /// Sent.
    pub sent: u64,
    /// Those of them that had room for all that their client did not know yet.
    pub whole: u64,
    /// Those that took more than one datagram.
    pub in_fragments: u64,
    /// Those that arrived whole and that a client used.
    pub used: u64,
}

/// How late ticks were, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: u32,
    /// Of 20 ticks one is later.
    pub p95_us: u32,
    /// Of 100 ticks one is later.
    pub p99_us: u32,
    /// The latest.
    pub max_us: u32,
}

impl Lateness {
    /// Of single ones, in µs; `None` without any.
    pub(super) fn of(mut lateness_us: Vec<u32>) -> Option<Lateness> {
        lateness_us.sort_unstable();
        let at = |percent| percentile(&lateness_us, percent);
        match (at(50.0), at(95.0), at(99.0), at(100.0)) {
            (Some(p50_us), Some(p95_us), Some(p99_us), Some(max_us)) => {
                Some(Lateness { p50_us, p95_us, p99_us, max_us })
            }
            _ => None,
        }
    }
}

impl LiveReport {
    pub(super) fn new(counters: &Counters, lateness_us: Vec<u32>) -> LiveReport {
        let lateness = Lateness::of(lateness_us);
        let up = (&counters.up_datagrams, &counters.up_bytes, &counters.up_arrived);
        let down = (&counters.down_datagrams, &counters.down_bytes, &counters.down_arrived);
        let [up, down] = [up, down].map(|(datagrams, bytes, arrived)| Traffic {
            datagrams: datagrams.get(),
            bytes: bytes.get(),
            arrived: arrived.get(),
        });
        LiveReport {
            ticks: counters.ticks.get(),
            ticks_left_out: counters.ticks_left_out.get(),
            lateness,
            usercmds: counters.usercmds.get(),
            up,
            down,
            snapshots: Snapshots {
                sent: counters.snapshots.get(),
                whole: counters.snapshots_whole.get(),
                in_fragments: counters.snapshots_in_fragments.get(),
                used: counters.snapshots_used.get(),
            },
            down_duplicates: counters.down_duplicates.get(),
            down_partial: counters.down_partial.get(),
            down_undecodable: counters.down_undecodable.get(),
            refused: counters.refused.get(),
            perceived: Perception { compared: counters.perceived.get(), right: counters.perceived_right.get() },
            notices_lost: counters.notices_lost.get(),
        }
    }
}

impl Rates {
    pub(super) fn new(counters: &Counters, now: Micros) -> Rates {
        let at = counters.began_at.get().map(|began| now - *began);
        let seconds = at.map_or(0.0, Micros::as_s_f64).max(0.1);
        let per_s = |numbers: &[u64]| numbers.iter().sum::<u64>() as f64 / seconds;
        Rates {
            at,
            ready: counters.ready.get(),
            places: counters.places.get(),
            usercmds_per_s: per_s(&[counters.usercmds.get()]),
            ticks_per_s: per_s(&[counters.ticks.get()]),
            // A side alone knows of the other side's datagrams only those that arrived.
            datagrams_per_s: per_s(&[
                counters.up_datagrams.get().max(counters.up_arrived.get()),
                counters.down_datagrams.get().max(counters.down_arrived.get()),
            ]),
            bytes_per_s: per_s(&[counters.up_bytes.get(), counters.down_bytes.get()]),
        }
    }
}
