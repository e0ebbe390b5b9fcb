//! The usercmds of a page over time: their acks, how many ran in each frame, and those that did not run.

use serde::Serialize;

use super::clock::StepTimes;
use super::packed::{PackedColumn, PageColumns, whole};
use super::round_trips::RoundTrips;
use super::series::{Ack, PlayerSeries, Sample, TIME_UNIT_US};
use super::world::TrackPrecision;
use crate::round_trips::{ACKS_WITH_COUNTS, each_ack};
use crate::summary::is_relocation;
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::schema::executed;
use hitreg_log::trace::{TraceSource, each_part};

/// A player's acks.
#[derive(Debug, Serialize)]
pub(super) struct AckColumns {
    player: u32,
    at_us: PackedColumn,
    /// Negative if it is not known.
    error_units: PackedColumn,
    /// The rows whose error is from a spawn, a death or a teleport.
    relocations: PackedColumn,
}

/// A player's column, with a value for each step of its clock, or for so many steps.
#[derive(Debug, Serialize)]
pub(super) struct PlayerColumn {
    player: u32,
    values: PackedColumn,
    steps: usize,
}

/// Usercmds whose outcome on the server is not `run`.
#[derive(Debug, Serialize)]
pub(super) struct UnrunUsercmds {
    player: PackedColumn,
    /// The step of the server's clock.
    step: PackedColumn,
    how: PackedColumn,
    names: Vec<String>,
}

/// Reads all acks, and the round trips that follow from them.
pub(super) fn acks_of(
    trace: &dyn TraceSource,
    exactness: TrackPrecision,
    most: usize,
    players: &mut SortedSet<u32>,
) -> Result<(PlayerSeries<Ack>, RoundTrips), String> {
    let (mut acks, mut trips) = (PlayerSeries::new(most, Ack::merge), RoundTrips::new(most));
    let columns = [&ACKS_WITH_COUNTS[..], &["error_units", "cause"]].concat();
    each_ack(trace, &columns, &mut |table, row, trip_us| {
        let (player, at_us) = (table.player[row], table.at_us[row]);
        players.insert(player);
        let error = table.error_units.get(row).copied().filter(|error| error.is_finite() && *error >= 0.0);
        let error = error.map(|error| whole(error, exactness.unit / 4.0));
        acks.push(player, Ack { at_us, error, is_relocation: is_relocation(table.cause.get(row)) });
        trip_us.into_iter().for_each(|took_us| trips.push(player, at_us, took_us));
    })?;
    Ok((acks, trips))
}

pub(super) fn pack_acks(
    acks: &PlayerSeries<Ack>,
    exactness: TrackPrecision,
    columns: &mut PageColumns,
) -> Vec<AckColumns> {
    let of_player = |(player, acked): (u32, &[Ack])| AckColumns {
        player,
        at_us: columns.push_steady(acked.iter().map(|ack| ack.at_us / TIME_UNIT_US), TIME_UNIT_US as f64),
        error_units: columns.push(acked.iter().map(|ack| ack.error.unwrap_or(-1)), exactness.unit / 4.0),
        relocations: columns.push((0..).zip(acked).filter(|(_, ack)| ack.is_relocation).map(|(row, _)| row), 1.0),
    };
    acks.iter().map(of_player).collect()
}

pub(super) fn pack_ran(ran: &PlayerSeries<u32>, columns: &mut PageColumns) -> Vec<PlayerColumn> {
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
                    unrun.rows.push([table.player[row], step.index, *code]);
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
    use crate::page::round_trips::RoundTrip;
    use crate::round_trips::each_round_trip;
    use hitreg_log::trace::schema::{corrections, frames};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    /// Several packets may arrive at one time.
    #[test]
    fn acks_at_one_time_keep_their_own_errors() {
        let names = ["none", "spawn_or_death"].map(Into::into).into();
        let columns = [
            ("player", ColumnData::U32(vec![4; 5])),
            ("command", ColumnData::U32((1..=5).collect())),
            ("at_us", ColumnData::I64(vec![50_000; 5])),
            ("cause", ColumnData::Name { names, codes: vec![0, 1, 0, 0, 0] }),
            ("error_units", ColumnData::F32(vec![0.5, 1500.0, 0.25, f32::NAN, f32::INFINITY])),
        ];
        let columns = columns.map(|(name, data)| Column::new(name, data)).into();
        let packed = |table: Table| {
            let trace = Trace { tables: vec![table], ..Trace::default() };
            let exactness = TrackPrecision::of_world(65_536.0);
            let (acks, _) = acks_of(&trace, exactness, 100, &mut SortedSet::new()).unwrap();
            let mut columns = PageColumns::default();
            let of_player = pack_acks(&acks, exactness, &mut columns).remove(0);
            [of_player.error_units, of_player.relocations].map(|column| column.restored(&columns))
        };
        let mut table = Table::new(corrections::NAME, columns);
        assert_eq!(packed(table.clone()), [vec![0.5, 1500.0, 0.25, -0.25, -0.25], vec![1.0]]);
        table.columns.retain(|column| column.name != "error_units");
        assert_eq!(packed(table), [vec![-0.25; 5], vec![1.0]]);
    }

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
}
