//! The usercmds of a page over time: their acks, how many ran in each frame, and those that did not run.

use serde::Serialize;

use super::PageInput;
use super::clock::StepTimes;
use super::packed::{ColumnSpan, PageColumns, whole};
use super::series::{Ack, RoundTrip, RoundTrips, Sample, Series, TIME_UNIT_US};
use super::tracks::TrackPrecision;
use crate::round_trips::{each_ack, each_snapshot_trip};
use hitreg_log::record::Outline;
use hitreg_log::round_trips::SnapshotRoundTrips;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::executed;
use hitreg_log::trace::{TraceSource, each_part};

/// A player's acks.
#[derive(Debug, Serialize)]
pub(super) struct AckColumns {
    player: u32,
    at_us: ColumnSpan,
    error_units: ColumnSpan,
}

/// A player's round trips, by the times at which the acks arrived.
#[derive(Debug, Serialize)]
pub(super) struct RoundTripColumns {
    player: u32,
    at_us: ColumnSpan,
    took_us: ColumnSpan,
    /// The figures of all round trips, if several are merged into one.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AllRoundTrips>,
}

/// The figures of all round trips of a player.
#[derive(Debug, Serialize)]
struct AllRoundTrips {
    p50_us: Option<i64>,
    p95_us: Option<i64>,
    /// The largest jitter of the merged round trips.
    jitter_us: ColumnSpan,
}

/// A player's column, with a value for each step of its clock, or for so many steps.
#[derive(Debug, Serialize)]
pub(super) struct PlayerColumn {
    player: u32,
    values: ColumnSpan,
    steps: usize,
}

/// Usercmds whose outcome on the server is not `run`.
#[derive(Debug, Serialize)]
pub(super) struct UnrunUsercmds {
    player: ColumnSpan,
    /// The step of the server's clock.
    step: ColumnSpan,
    how: ColumnSpan,
    names: Vec<String>,
}

/// Reads all acks, and the round trips that follow from them.
pub(super) fn acks_of(
    trace: &dyn TraceSource,
    exactness: TrackPrecision,
    most: usize,
    players: &mut SortedSet<u32>,
) -> Result<(Series<Ack>, RoundTrips), String> {
    let (mut acks, mut trips) = (Series::new(most, Ack::merge), RoundTrips::new(most));
    each_ack(trace, &["player", "command", "at_us", "error_units"], &mut |table, row, trip_us| {
        let (player, at_us) = (table.player[row], table.at_us[row]);
        players.insert(player);
        let error = whole(table.error_units.get(row).copied().unwrap_or_default(), exactness.unit / 4.0);
        acks.push(player, Ack { at_us, error });
        trip_us.into_iter().for_each(|took_us| trips.push(player, at_us, took_us));
    })?;
    Ok((acks, trips))
}

/// The round trips as `info` counts them: those of all snapshots that arrived. Without snapshots, those of `acks`, which
/// lack late and repeated acks.
pub(super) fn round_trips_of(shown: &PageInput<'_>, most: usize, of_acks: RoundTrips) -> Result<RoundTrips, String> {
    let mut trips = RoundTrips::new(most);
    match shown.log {
        Some(log) => {
            let mut finders: SortedMap<u32, SnapshotRoundTrips> = SortedMap::new();
            log.each(&mut |stretch| {
                for (player, outline) in (0..).zip(&Outline::of(stretch, &[]).players) {
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

pub(super) fn pack_acks(acks: &Series<Ack>, exactness: TrackPrecision, columns: &mut PageColumns) -> Vec<AckColumns> {
    let of_player = |(player, acked): (u32, &[Ack])| AckColumns {
        player,
        at_us: columns.push_steady(acked.iter().map(|ack| ack.at_us / TIME_UNIT_US), TIME_UNIT_US as f64),
        error_units: columns.push(acked.iter().map(|ack| ack.error), exactness.unit / 4.0),
    };
    acks.iter().map(of_player).collect()
}

pub(super) fn pack_round_trips(trips: &RoundTrips, columns: &mut PageColumns) -> Vec<RoundTripColumns> {
    let unit = TIME_UNIT_US as f64;
    let percentile_us = |player, share| trips.of.get(&player).and_then(|counts| counts.percentile_us(share));
    let of_player = |(player, over_time): (u32, &[RoundTrip])| RoundTripColumns {
        player,
        at_us: columns.push_steady(over_time.iter().map(|trip| trip.at_us / TIME_UNIT_US), unit),
        took_us: columns.push(over_time.iter().map(|trip| trip.took_us / TIME_UNIT_US), unit),
        all: (trips.over_time.merged > 1).then(|| AllRoundTrips {
            p50_us: percentile_us(player, 0.5),
            p95_us: percentile_us(player, 0.95),
            jitter_us: columns.push(over_time.iter().map(|trip| trip.jitter_us), 1.0),
        }),
    };
    trips.over_time.iter().map(of_player).collect()
}

pub(super) fn pack_ran(ran: &Series<u32>, columns: &mut PageColumns) -> Vec<PlayerColumn> {
    let of_player = |(player, values): (u32, &[u32])| {
        let values = columns.push(values.iter().map(|ran| i64::from(*ran)), 1.0);
        PlayerColumn { player, values, steps: ran.merged }
    };
    ran.iter().map(of_player).collect()
}

/// The usercmds that did not run: the player, the step of the server's clock, and the code of the outcome.
pub(super) struct UnrunRows {
    pub(super) rows: Sample<[u32; 3]>,
    /// The names of outcomes; `None` if the trace has no outcomes.
    names: Option<Vec<String>>,
}

impl UnrunRows {
    pub(super) fn of(
        trace: &dyn TraceSource,
        server: &StepTimes,
        most: usize,
        players: &mut SortedSet<u32>,
    ) -> Result<UnrunRows, String> {
        let mut unrun = UnrunRows { rows: Sample::default(), names: None };
        each_part(trace, executed::NAME, (&["player", "tick", "how"], None), &mut |rows| {
            let table = executed::Columns::read(rows);
            if table.rows > 0 && unrun.names.as_ref().is_none_or(|names| names.len() < table.how.names.len()) {
                unrun.names = Some(table.how.names.to_vec());
            }
            players.extend(table.player);
            let is_unrun: Vec<bool> = table.how.names.iter().map(|how| !matches!(&**how, "run" | "")).collect();
            for (row, code) in table.how.codes.iter().enumerate() {
                if is_unrun.get(*code as usize).is_some_and(|is_unrun| *is_unrun)
                    && let Some(step) = table.tick.get(row).and_then(|tick| server.step_of(*tick))
                {
                    unrun.rows.push([table.player[row], step, *code]);
                    unrun.rows.thin_over(most);
                }
            }
            Ok(())
        })?;
        Ok(unrun)
    }

    pub(super) fn pack(self, columns: &mut PageColumns) -> Option<UnrunUsercmds> {
        let names = self.names?;
        let mut column = |place: usize| columns.push(self.rows.iter().map(|row| i64::from(row[place])), 1.0);
        let [player, step, how] = [0, 1, 2].map(&mut column);
        Some(UnrunUsercmds { player, step, how, names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_trips::each_round_trip;
    use hitreg_log::trace::schema::{corrections, frames, snapshots};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    /// A player who rejoins after 20 s uses number 1 again.
    #[test]
    fn a_page_has_the_round_trips_of_fairness() {
        let table = |name: &str, rows: [(u32, i64); 2]| {
            let columns = [
                ("player", ColumnData::U32(vec![0; 2])),
                ("command", ColumnData::U32(rows.map(|row| row.0).into())),
                ("at_us", ColumnData::I64(rows.map(|row| row.1).into())),
            ];
            Table::new(name, columns.map(|(name, data)| Column::new(name, data)).into())
        };
        let frames = table(frames::NAME, [(1, 10_000), (1, 20_000_000)]);
        let acks = table(corrections::NAME, [(1, 20_050_000), (7, 20_060_000)]);
        let trace = Trace { tables: vec![frames, acks], ..Trace::default() };
        let (_, trips) = acks_of(&trace, TrackPrecision::of_world(1.0), 100, &mut SortedSet::new()).unwrap();
        let took_us = |(_, trips): (u32, &[RoundTrip])| trips.iter().map(|trip| trip.took_us).collect::<Vec<_>>();
        assert_eq!(trips.over_time.iter().flat_map(took_us).collect::<Vec<_>>(), [50_000]);
        let mut found = Vec::new();
        each_round_trip(&trace, &mut |trip| found.push(trip.ms)).unwrap();
        assert_eq!(found, [50.0]);
    }

    /// The client uses the first two snapshots. The third repeats an ack, the fourth comes late, and the fifth is lost.
    #[test]
    fn late_and_repeated_acks_are_round_trips() {
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
        let with_snapshots = tables().into_iter().chain([Table::new(snapshots::NAME, sent)]).collect();
        assert_eq!(of_tables(with_snapshots), [50_000, 60_000, 100_000, 110_000]);
    }
}
