//! Measures over time: acks, how many usercmds ran in each frame, and usercmds that did not run. A long session has more
//! values than a page can draw, so neighbouring values are merged, or only every n-th is kept.

use serde::Serialize;

use super::clock::StepTimes;
use super::network::RoundTrips;
use super::packed::{PackedColumn, PageColumns, whole};
use super::tracks::TrackPrecision;
use crate::round_trips::{ACKS_WITH_COUNTS, each_ack};
use crate::summary::is_relocation;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::executed;
use hitreg_log::trace::{TraceReadError, TraceSource, each_part};

/// The rounding of the times of packets and acks, in microseconds.
pub(super) const TIME_UNIT_US: i64 = 50;

/// Values that are merged in pairs once there are too many. All series of one kind merge equally many values.
#[derive(Debug)]
pub(super) struct PlayerSeries<T> {
    of: SortedMap<u32, (Vec<T>, usize)>,
    /// How many values are merged into one.
    pub(super) merged: usize,
    most: usize,
    kept: usize,
    merge: fn(&mut T, &T),
}

impl<T> PlayerSeries<T> {
    /// At most `most` values of all players. `merge` adds a later value to an earlier one.
    pub(super) fn new(most: usize, merge: fn(&mut T, &T)) -> PlayerSeries<T> {
        PlayerSeries { of: SortedMap::new(), merged: 1, most, kept: 0, merge }
    }

    pub(super) fn push(&mut self, player: u32, value: T) {
        let (values, count) = self.of.entry(player).or_default();
        match values.last_mut().filter(|_| !count.is_multiple_of(self.merged)) {
            Some(last) => (self.merge)(last, &value),
            None => {
                values.push(value);
                self.kept += 1;
            }
        }
        *count += 1;
        // A page without merging shows every value.
        if self.kept > self.most {
            self.merge_pairs();
        }
    }

    fn merge_pairs(&mut self) {
        self.merged *= 2;
        self.kept = 0;
        for (values, _) in self.of.values_mut() {
            let mut merged: Vec<T> = Vec::with_capacity(values.len().div_ceil(2));
            for (place, value) in values.drain(..).enumerate() {
                match merged.last_mut().filter(|_| place % 2 == 1) {
                    Some(last) => (self.merge)(last, &value),
                    None => merged.push(value),
                }
            }
            *values = merged;
            self.kept += values.len();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[T])> {
        self.of.iter().map(|(player, (values, _))| (*player, &values[..]))
    }
}

/// One ack, or several merged ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) at_us: i64,
    /// The prediction error; `None` if it is not known. The largest of merged acks.
    pub(super) error: Option<i64>,
    /// Whether the error is from a spawn, a death or a teleport, which do not measure prediction.
    pub(super) is_relocation: bool,
}

impl Ack {
    pub(super) fn merge(&mut self, later: &Ack) {
        if later.error > self.error {
            (self.error, self.is_relocation) = (later.error, later.is_relocation);
        }
    }
}

/// The least of some counted values that at least this share of them does not exceed; `None` without values.
pub(super) fn at_share<V: Copy>(counts: &SortedMap<V, u64>, share: f64) -> Option<V> {
    let all: u64 = counts.values().sum();
    let rank = (libm::ceil(share * all as f64) as u64).max(1);
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += **count;
        seen >= rank
    });
    found.map(|(value, _)| *value)
}

/// Every n-th of some items.
#[derive(Debug)]
pub(super) struct Sample<T> {
    pub(super) items: Vec<T>,
    pub(super) every: usize,
    count: usize,
}

impl<T> Default for Sample<T> {
    fn default() -> Sample<T> {
        Sample { items: Vec::new(), every: 1, count: 0 }
    }
}

impl<T> Sample<T> {
    pub(super) fn push(&mut self, item: T) {
        if self.count.is_multiple_of(self.every) {
            self.items.push(item);
        }
        self.count += 1;
    }

    pub(super) fn thin(&mut self) {
        self.every *= 2;
        let mut places = 0..;
        self.items.retain(|_| places.next().is_some_and(|place: usize| place.is_multiple_of(2)));
    }

    /// Keeps every second of the items so far, and as many of the later ones.
    fn thin_over(&mut self, most: usize) {
        while self.items.len() > most {
            self.thin();
        }
    }
}

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
) -> Result<(PlayerSeries<Ack>, RoundTrips), TraceReadError> {
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
    ) -> Result<UnrunRows, TraceReadError> {
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
        let mut column = |place: usize| columns.push(self.rows.items.iter().map(|row| i64::from(row[place])), 1.0);
        let [player, step, how] = [0, 1, 2].map(&mut column);
        Some(UnrunUsercmds { player, step, how, names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::network::RoundTrip;
    use crate::round_trips::each_round_trip;
    use hitreg_log::trace::schema::{corrections, frames};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    fn ack(at_us: i64, error: i64) -> Ack {
        Ack { at_us, error: Some(error), is_relocation: error > 500 }
    }

    /// Both sides of the limit: at it every value stays, above it neighbours are merged.
    #[test]
    fn values_over_the_limit_are_merged_and_the_largest_stays() {
        for (values, merged, kept) in [(100, 1, 100), (101, 2, 51), (201, 4, 51), (1000, 16, 63)] {
            let mut series = PlayerSeries::new(100, Ack::merge);
            (0..values).for_each(|n| series.push(3, ack(n, if n == 77 { 900 } else { 50 })));
            let (_, of_player) = series.iter().next().expect("a player");
            assert_eq!((series.merged, of_player.len()), (merged, kept), "{values}");
            let largest = of_player.iter().max_by_key(|ack| ack.error).expect("an ack");
            assert_eq!((largest.error, largest.is_relocation), (Some(900), true));
            assert_eq!(of_player.iter().filter(|ack| ack.is_relocation).count(), 1);
            assert!(of_player.iter().enumerate().all(|(n, ack)| ack.at_us == (n * merged) as i64));
        }
    }

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
