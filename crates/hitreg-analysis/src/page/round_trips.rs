//! Round trips for the page: over time, and by player.

use serde::Serialize;

use super::packed::{PackedColumn, PageColumns, whole};
use super::series::{PlayerSeries, TIME_UNIT_US, at_share};
use hitreg_log::sorted::SortedMap;

/// A player's round trips, by the times at which the acks arrived.
#[derive(Debug, Serialize)]
pub(super) struct RoundTripColumns {
    player: u32,
    at_us: PackedColumn,
    /// Rounded for the chart, unlike the figures of all round trips.
    took_us: PackedColumn,
    all: AllRoundTrips,
}

/// The figures of all round trips of a player.
#[derive(Debug, Serialize)]
struct AllRoundTrips {
    p50_us: Option<i64>,
    p95_us: Option<i64>,
    /// The largest jitter of merged round trips; `None` if none are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter_us: Option<PackedColumn>,
}

/// One round trip, or several merged ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// When the ack arrived.
    pub(super) at_us: i64,
    /// Time from making the usercmd to its ack. The longest of merged ones.
    pub(super) took_us: i64,
    /// The jitter at this ack, in microseconds. The largest of merged ones.
    pub(super) jitter_us: i64,
}

impl RoundTrip {
    pub(super) fn merge(&mut self, later: &RoundTrip) {
        self.took_us = self.took_us.max(later.took_us);
        self.jitter_us = self.jitter_us.max(later.jitter_us);
    }
}

/// The round trips of all players.
#[derive(Debug)]
pub(super) struct RoundTrips {
    pub(super) over_time: PlayerSeries<RoundTrip>,
    pub(super) of: SortedMap<u32, RoundTripCounts>,
}

impl RoundTrips {
    pub(super) fn new(most: usize) -> RoundTrips {
        RoundTrips { over_time: PlayerSeries::new(most, RoundTrip::merge), of: SortedMap::new() }
    }

    /// Adds the next round trip of a player. Clocks that disagree may give a negative one, which is left out.
    pub(super) fn push(&mut self, player: u32, at_us: i64, took_us: i64) {
        if took_us >= 0 {
            let jitter_us = self.of.entry(player).or_default().add(took_us);
            self.over_time.push(player, RoundTrip { at_us, took_us, jitter_us });
        }
    }

    /// These round trips, or others if there are none.
    pub(super) fn or(self, others: RoundTrips) -> RoundTrips {
        if self.of.is_empty() { others } else { self }
    }
}

/// The round trips of a player: all of them by length, and the jitter.
#[derive(Debug, Default)]
pub(super) struct RoundTripCounts {
    /// By their microseconds.
    counts: SortedMap<i64, u64>,
    last_us: Option<i64>,
    jitter_us: f64,
}

impl RoundTripCounts {
    /// Adds a round trip, and returns the jitter as in RTP: a sixteenth of each change from one round trip to the next.
    fn add(&mut self, took_us: i64) -> i64 {
        *self.counts.entry(took_us).or_default() += 1;
        if let Some(last) = self.last_us.replace(took_us) {
            self.jitter_us += (took_us.abs_diff(last) as f64 - self.jitter_us) / 16.0;
        }
        self.jitter_us as i64
    }

    /// A percentile in microseconds; `None` without round trips.
    pub(super) fn percentile_us(&self, share: f64) -> Option<i64> {
        at_share(&self.counts, share)
    }
}

pub(super) fn pack_round_trips(trips: &RoundTrips, columns: &mut PageColumns) -> Vec<RoundTripColumns> {
    let unit = TIME_UNIT_US as f64;
    let percentile_us = |player, share| trips.of.get(&player).and_then(|counts| counts.percentile_us(share));
    let of_player = |(player, over_time): (u32, &[RoundTrip])| RoundTripColumns {
        player,
        at_us: columns.push_steady(over_time.iter().map(|trip| trip.at_us / TIME_UNIT_US), unit),
        took_us: columns.push(over_time.iter().map(|trip| whole(trip.took_us as f64, unit)), unit),
        all: AllRoundTrips {
            p50_us: percentile_us(player, 0.5),
            p95_us: percentile_us(player, 0.95),
            jitter_us: (trips.over_time.merged > 1)
                .then(|| columns.push(over_time.iter().map(|trip| trip.jitter_us), 1.0)),
        },
    };
    trips.over_time.iter().map(of_player).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_every_round_trip() {
        let mut trips = RoundTripCounts::default();
        assert_eq!(trips.percentile_us(0.5), None);
        for n in 1..=200 {
            trips.add(n * 1_000 - 1);
        }
        assert_eq!([0.5, 0.95].map(|share| trips.percentile_us(share)), [Some(99_999), Some(189_999)]);
    }
}
