//! Measures over time: acks, how many usercmds ran in each frame, and usercmds that did not run. A long session has more
//! values than a page can draw, so neighbouring values are merged, or only every n-th is drawn.

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
        self.merged = self.merged.saturating_mul(2);
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

/// Items of several kinds. With more items than a page draws, every n-th item of the most frequent kind is kept. The first
/// item of each player and kind always stays.
#[derive(Debug)]
pub(super) struct KindSamples<K, T> {
    of: SortedMap<K, PlayerSeries<T>>,
    kept: usize,
    most: usize,
}

impl<K: Ord, T> KindSamples<K, T> {
    /// At most `most` items of all kinds and players.
    pub(super) fn new(most: usize) -> KindSamples<K, T> {
        KindSamples { of: SortedMap::new(), kept: 0, most }
    }

    pub(super) fn push(&mut self, kind: K, player: u32, item: T) {
        let of_kind = self.of.entry(kind).or_insert_with(|| PlayerSeries::new(usize::MAX, |_, _| {}));
        let before = of_kind.kept;
        of_kind.push(player, item);
        self.kept += of_kind.kept - before;
        if self.kept > self.most {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let Some(most_frequent) = self.of.values_mut().max_by_key(|of_kind| of_kind.kept) else { return };
        let before = most_frequent.kept;
        most_frequent.merge_pairs();
        self.kept -= before - most_frequent.kept;
        // First items alone may exceed the limit.
        if most_frequent.kept == before {
            self.most *= 2;
        }
    }

    /// The kept items of a player and kind.
    pub(super) fn of(&self, kind: &K, player: u32) -> &[T] {
        self.of.get(kind).and_then(|of_kind| of_kind.of.get(&player)).map_or(&[], |(items, _)| items)
    }

    /// The kinds, each with n if every n-th item is kept.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&K, usize)> {
        self.of.iter().map(|(kind, of_kind)| (kind, of_kind.merged))
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

/// A player's usercmds with one outcome on the server, other than `run`.
#[derive(Debug, Serialize)]
pub(super) struct UnrunUsercmds {
    player: u32,
    how: String,
    /// The number of all of them.
    count: u64,
    /// The steps of the server's clock, of those that are drawn.
    step: PackedColumn,
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

/// The usercmds that did not run, by outcome and player.
pub(super) struct UnrunRows {
    counts: SortedMap<(String, u32), u64>,
    /// The steps of the server's clock.
    pub(super) steps: KindSamples<String, u32>,
    /// Whether the trace has outcomes.
    is_known: bool,
}

impl UnrunRows {
    pub(super) fn of(
        trace: &dyn TraceSource,
        server: &StepTimes,
        most: usize,
        players: &mut SortedSet<u32>,
    ) -> Result<UnrunRows, TraceReadError> {
        let mut unrun = UnrunRows { counts: SortedMap::new(), steps: KindSamples::new(most), is_known: false };
        each_part(trace, executed::NAME, (&["player", "tick", "how"], None), &mut |rows| {
            let table = executed::Columns::read(rows);
            unrun.is_known |= table.rows > 0;
            players.extend(table.player);
            for (row, how) in table.how.iter().enumerate().filter(|(_, how)| !matches!(*how, "run" | "")) {
                let player = table.player[row];
                *unrun.counts.entry((how.to_owned(), player)).or_default() += 1;
                if let Some(step) = table.tick.get(row).and_then(|tick| server.step_of(*tick)) {
                    unrun.steps.push(how.to_owned(), player, step.index);
                }
            }
            Ok(())
        })?;
        Ok(unrun)
    }

    pub(super) fn pack(self, columns: &mut PageColumns) -> Option<Vec<UnrunUsercmds>> {
        let of_player = |((how, player), count): ((String, u32), u64)| {
            let steps = self.steps.of(&how, player).iter().map(|step| i64::from(*step));
            UnrunUsercmds { player, count, step: columns.push(steps, 1.0), how }
        };
        self.is_known.then(|| self.counts.into_iter().map(of_player).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::network::RoundTrip;
    use crate::round_trips::each_round_trip;
    use hitreg_log::trace::schema::{corrections, frames, ticks};
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

    /// A rare outcome is drawn beside a frequent one, and the counts are those of all usercmds, also at unknown ticks.
    #[test]
    fn unrun_usercmds_over_the_limit_are_thinned_by_outcome_and_counted_exactly() {
        let table = |name: &str, columns: Vec<(&str, ColumnData)>| {
            Table::new(name, columns.into_iter().map(|(name, data)| Column::new(name, data)).collect())
        };
        let ticks = [("tick", ColumnData::U32((0..300).collect())), ("at_us", ColumnData::I64((0..300).collect()))];
        let codes: Vec<u32> =
            (0..302).map(|row| [1, 2, 0][usize::from(row == 299) + 2 * usize::from(row < 20)]).collect();
        let executed = vec![
            ("player", ColumnData::U32((0..302).map(|row| u32::from(row > 297)).collect())),
            ("tick", ColumnData::U32((0..302).collect())),
            ("how", ColumnData::Name { names: ["run", "stood_in", "over_budget"].map(Into::into).into(), codes }),
        ];
        let trace = Trace {
            tables: vec![table(ticks::NAME, ticks.into()), table(executed::NAME, executed)],
            ..Trace::default()
        };
        let (server, _) = StepTimes::of_server(&trace).unwrap();
        for (most, every) in [(280, 1), (279, 2), (10, 64)] {
            let mut columns = PageColumns::default();
            let unrun = UnrunRows::of(&trace, &server, most, &mut SortedSet::new()).unwrap();
            let [over_budget, stood_in] = ["over_budget", "stood_in"].map(str::to_owned);
            assert_eq!(unrun.steps.kinds().collect::<Vec<_>>(), [(&over_budget, 1), (&stood_in, every)]);
            let found = unrun
                .pack(&mut columns)
                .expect("outcomes")
                .into_iter()
                .map(|of| (of.how.clone(), of.player, of.count, of.step.restored(&columns).len()));
            let kept = 278usize.div_ceil(every);
            let expected = [(&over_budget, 1, 1, 1), (&stood_in, 0, 278, kept), (&stood_in, 1, 3, 1)];
            assert_eq!(
                found.collect::<Vec<_>>(),
                expected.map(|(how, player, count, drawn)| (how.clone(), player, count, drawn))
            );
        }
    }

    /// The first items of many players and kinds stay, also when they exceed the limit.
    #[test]
    fn first_items_of_all_players_and_kinds_stay() {
        for (players, kinds) in [(200, 3), (1, 600), (20, 30)] {
            let mut samples = KindSamples::new(100);
            for number in 0..5 * players * kinds {
                samples.push(number / players % kinds, number % players, number);
            }
            for (kind, player) in (0..kinds).flat_map(|kind| (0..players).map(move |player| (kind, player))) {
                assert_eq!(samples.of(&kind, player).first(), Some(&(kind * players + player)), "{players} {kinds}");
            }
            let kept: usize =
                samples.of.values().flat_map(|of_kind| of_kind.of.values()).map(|(items, _)| items.len()).sum();
            assert_eq!(samples.kept, kept);
            assert!(kept <= samples.most && samples.most <= 1600, "{kept} of {}", samples.most);
        }
    }

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
