//! Round trips for the page: over time, and by player.

use serde::Serialize;

use super::PageInput;
use super::packed::{PackedColumn, PageColumns, whole};
use super::series::{PlayerSeries, TIME_UNIT_US, at_share};
use crate::round_trips::each_snapshot_trip;
use hitreg_log::record::Outline;
use hitreg_log::round_trips::SnapshotRoundTrips;
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

/// The round trips as `info` counts them, by the snapshots that arrived. Without snapshots, those of `of_acks`.
pub(super) fn round_trips_of(shown: &PageInput<'_>, most: usize, of_acks: RoundTrips) -> Result<RoundTrips, String> {
    let mut trips = RoundTrips::new(most);
    match shown.log {
        Some(log) => {
            let mut finders: SortedMap<u32, SnapshotRoundTrips> = SortedMap::new();
            log.each(&mut |stretch| {
                for (player, outline) in (0..).zip(&Outline::of(stretch).players) {
                    finders.entry(player).or_default().add(outline, &mut |at, took| {
                        if log.shows(at) {
                            trips.push(player, at.0, took.0);
                        }
                    });
                }
            })?;
        }
        None => each_snapshot_trip(shown.trace, &mut |player, at, took| trips.push(player, at.0, took.0))?,
    }
    Ok(if trips.of.is_empty() { of_acks } else { trips })
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
    use crate::page::usercmds::acks_of;
    use crate::page::world::TrackPrecision;
    use hitreg_log::sorted::SortedSet;
    use hitreg_log::trace::schema::{corrections, frames, snapshots};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    #[test]
    fn percentiles_count_every_round_trip() {
        let mut trips = RoundTripCounts::default();
        assert_eq!(trips.percentile_us(0.5), None);
        for n in 1..=200 {
            trips.add(n * 1_000 - 1);
        }
        assert_eq!([0.5, 0.95].map(|share| trips.percentile_us(share)), [Some(99_999), Some(189_999)]);
    }

    /// The client uses the first two snapshots. The third repeats an ack, the fourth comes late, and the fifth is lost.
    #[test]
    fn late_and_repeated_acks_end_no_round_trip() {
        let column = |name: &str, cells: &[u32]| Column::new(name, ColumnData::U32(cells.into()));
        let times = |cells: &[i64]| Column::new("at_us", ColumnData::I64(cells.into()));
        let made = vec![column("player", &[3, 3]), column("command", &[1, 2]), times(&[10_000, 20_000])];
        let acked = vec![column("player", &[3, 3]), column("command", &[1, 2]), times(&[60_000, 80_000])];
        let sent = vec![
            column("player", &[3; 5]),
            column("snapshot", &[1, 2, 4, 3, 5]),
            times(&[30_000, 50_000, 90_000, 70_000, 95_000]),
            Column::new("took_ms", ColumnData::F32(vec![30.0, 30.0, 30.0, 60.0, f32::NAN])),
            column("ack", &[1, 2, 2, 2, 2]),
        ];
        let of_tables = |tables: Vec<Table>| {
            let trace = Trace { tables, ..Trace::default() };
            let shown = PageInput { name: "", map: "", trace: &trace, log: None, rejudged: &[], notes: &[] };
            let (_, of_acks) = acks_of(&trace, TrackPrecision::of_world(1.0), 100, &mut SortedSet::new()).unwrap();
            let trips = round_trips_of(&shown, 100, of_acks).unwrap();
            let took_us = |(_, trips): (u32, &[RoundTrip])| trips.iter().map(|trip| trip.took_us).collect::<Vec<_>>();
            trips.over_time.iter().flat_map(took_us).collect::<Vec<_>>()
        };
        let tables = || vec![Table::new(frames::NAME, made.clone()), Table::new(corrections::NAME, acked.clone())];
        assert_eq!(of_tables(tables()), [50_000, 60_000]);
        let without_acks = vec![Table::new(frames::NAME, made.clone()), Table::new(snapshots::NAME, sent)];
        assert_eq!(of_tables(without_acks), [50_000, 60_000]);
    }
}
