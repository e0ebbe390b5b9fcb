//! The rows of one table in both traces: joined, timed, and in the order in which they happened. Marks and places describe
//! rows after the rows themselves are dropped.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use serde::Serialize;

use super::cell::{CellComparison, CellPair, CellValue, NumberComparison};
use super::clock::{RowTimes, TickTimes, UNKNOWN, known};
use super::join::{KeyCells, RowJoin, RowKey, TraceSide};
use super::options::DiffOptions;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{JoinRule, TableSchema, is_judged, shots};

/// A row of one trace, or a pair of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowSpot {
    /// The session time in microseconds. If the traces differ, the earlier time, or that of the server that judged a shot.
    pub(crate) at_us: Option<i64>,
    /// The row in A.
    pub(crate) a: Option<u32>,
    /// The row in B.
    pub(crate) b: Option<u32>,
}

/// The rows of one table in both traces.
pub(crate) struct Pairing<'a> {
    pub(crate) a: &'a Table,
    pub(crate) b: &'a Table,
    pub(crate) key: &'a RowKey,
    pub(crate) keys: KeyCells<'a>,
    pub(crate) join: RowJoin,
    /// The session time of each row, in microseconds; [`UNKNOWN`] for none.
    pub(crate) times: [Cow<'a, [i64]>; 2],
    /// Whether a server judged each shot; `None` for other tables.
    judged: Option<[Vec<bool>; 2]>,
    /// How many rows of the tables precede these rows.
    before: [u64; 2],
    /// The row numbers, if these rows are a selection.
    numbers: Option<[Vec<u32>; 2]>,
}

impl<'a> Pairing<'a> {
    /// # Errors
    /// When a table has no usable key; the error is a text.
    pub(crate) fn of(
        [a, b]: [&'a Table; 2],
        before: [u64; 2],
        key: &'a RowKey,
        times: [&RowTimes<'_>; 2],
    ) -> Result<Pairing<'a>, String> {
        let keys = KeyCells::of(key, a, b)?;
        let mut join = RowJoin::of(&keys, a.rows(), b.rows());
        // Rows of a build's own table may have any key.
        let repeats = TableSchema::of(&a.name).is_none_or(|schema| schema.repeats);
        if repeats && keys.may_repeat([a.rows(), b.rows()]) {
            let cells: Vec<CellPair<'_>> = a
                .columns
                .iter()
                .filter_map(|column| CellPair::of(&column.data, &b.column(&column.name)?.data))
                .collect();
            let is_same = |pair: CellComparison| pair == CellComparison::Same;
            let exactly = NumberComparison::default();
            join = join.prefer_equal(&keys, |i, j| cells.iter().all(|cells| is_same(cells.compare(i, j, exactly))));
        }
        let times = [times[0].of_rows(a), times[1].of_rows(b)];
        let of_table = |table: &Table| {
            let shots = shots::Columns::read(table);
            (0..table.rows()).map(|row| is_judged(shots.reason.get(row))).collect()
        };
        let judged = (a.name == shots::NAME).then(|| [a, b].map(of_table));
        Ok(Pairing { a, b, key, keys, join, times, judged, before, numbers: None })
    }

    pub(crate) fn table(&self, side: TraceSide) -> &'a Table {
        match side {
            TraceSide::A => self.a,
            TraceSide::B => self.b,
        }
    }

    /// Sets the row numbers, for rows that are a selection.
    pub(crate) fn numbered(self, numbers: [Vec<u32>; 2]) -> Pairing<'a> {
        Pairing { numbers: Some(numbers), ..self }
    }

    pub(crate) fn spot(&self, pair: usize) -> RowSpot {
        let (i, j) = self.join.pair(pair);
        RowSpot { at_us: known(self.time(i, j)), a: Some(i as u32), b: Some(j as u32) }
    }

    /// The time of a pair: the earlier one of its rows. A shot that only one server judged has the time of that judgement,
    /// because the other time is that of the client's frame.
    #[inline]
    pub(crate) fn time(&self, i: usize, j: usize) -> i64 {
        let [a, b] = [self.times[0][i], self.times[1][j]];
        match self.judged.as_ref().map(|[of_a, of_b]| (of_a[i], of_b[j])) {
            Some((true, false)) => a,
            Some((false, true)) => b,
            _ => a.min(b),
        }
    }

    /// Rows that one trace lacks. With [`DiffOptions::overlap_only`] they are no difference, so there are none.
    pub(crate) fn lone(&self, options: &DiffOptions) -> impl Iterator<Item = RowSpot> {
        let sides = [(TraceSide::A, &self.join.only_a), (TraceSide::B, &self.join.only_b)];
        let sides = sides.into_iter().filter(|_| !options.overlap_only);
        sides.flat_map(move |(side, rows)| rows.iter().map(move |row| self.spot_of(side, *row)))
    }

    fn spot_of(&self, side: TraceSide, row: u32) -> RowSpot {
        let at_us = known(self.times[side as usize][row as usize]);
        match side {
            TraceSide::A => RowSpot { at_us, a: Some(row), b: None },
            TraceSide::B => RowSpot { at_us, a: None, b: Some(row) },
        }
    }

    /// The mark of a spot, which remains valid after these rows are dropped.
    pub(crate) fn mark(&self, spot: &RowSpot, clocks: [&TickTimes; 2]) -> RowMark {
        RowMark { rank: self.rank(spot), place: RowPlace::of(self, clocks, spot) }
    }

    /// The sort key of a spot.
    pub(crate) fn rank(&self, spot: &RowSpot) -> RowRank {
        let (key, row) = match spot.row() {
            Some((side, row)) => {
                let number = self.numbers.as_ref().map_or(row as u64, |numbers| numbers[side as usize][row].into());
                (self.keys.of_row(side, row), self.before[side as usize] + number)
            }
            None => (Vec::new(), 0),
        };
        RowRank { at_us: spot.at_us, key, is_pair: spot.is_pair(), row }
    }

    /// Whether the rows of a pair have the same time. True if a time is unknown or does not matter.
    pub(crate) fn same_time(&self, i: usize, j: usize) -> bool {
        let (a, b) = (self.times[0][i], self.times[1][j]);
        self.key.join_rule == JoinRule::Always || a == b || a == UNKNOWN || b == UNKNOWN
    }

    /// The order in which rows happened: by time, then by key. Rows of unknown time come last.
    pub(crate) fn cmp(&self, x: &RowSpot, y: &RowSpot) -> Ordering {
        by_time(x.at_us, y.at_us).then_with(|| match (x.row(), y.row()) {
            // For equal keys, a pair comes before an unpaired row.
            (Some(p), Some(q)) => self.keys.cmp(p, q).then(y.is_pair().cmp(&x.is_pair())).then(p.1.cmp(&q.1)),
            (p, q) => p.is_none().cmp(&q.is_none()),
        })
    }

    /// The owner of a row, from the key columns.
    pub(crate) fn owner(&self, spot: &RowSpot) -> Owner {
        spot.row().map_or(Owner::default(), |(side, row)| self.owner_in(side, row))
    }

    fn owner_in(&self, side: TraceSide, row: usize) -> Owner {
        let part = |place: usize| Some(self.keys.part(*self.key.series.get(place)?, side, row));
        Owner { first: part(0), second: part(1) }
    }

    /// Reads one of the two numbers of the owners of rows of A; 0 if the table lacks it.
    pub(crate) fn read_owners(&self, place: usize, rows: Range<usize>, numbers: &mut Vec<i64>) {
        numbers.clear();
        match self.key.series.get(place) {
            Some(part) => self.keys.read(*part, TraceSide::A, rows, numbers),
            None => numbers.resize(rows.len(), 0),
        }
    }

    /// The owner with these numbers.
    pub(crate) fn owner_of_parts(&self, (first, second): (i64, i64)) -> Owner {
        let count = self.key.series.len();
        Owner { first: (count > 0).then_some(first), second: (count > 1).then_some(second) }
    }
}

/// The owner of a row: an entity, a player, or an entity on a player's screen. Its numbers are those of the key columns
/// [`RowKey::series`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) first: Option<i64>,
    pub(crate) second: Option<i64>,
}

impl RowSpot {
    fn is_pair(&self) -> bool {
        self.a.is_some() && self.b.is_some()
    }

    /// The row in A, or in B if A lacks it.
    pub(crate) fn row(&self) -> Option<(TraceSide, usize)> {
        match (self.a, self.b) {
            (Some(a), _) => Some((TraceSide::A, a as usize)),
            (None, Some(b)) => Some((TraceSide::B, b as usize)),
            (None, None) => None,
        }
    }
}

/// A row of one trace, or a pair of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowMark {
    pub(crate) rank: RowRank,
    pub(crate) place: RowPlace,
}

/// The sort key of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowRank {
    /// The session time in microseconds; the earlier time if the traces differ.
    pub(crate) at_us: Option<i64>,
    pub(crate) key: Vec<KeyPart>,
    /// Whether both traces have the row.
    pub(crate) is_pair: bool,
    /// The row number in A, or in B if A lacks the row.
    pub(crate) row: u64,
}

/// A cell of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyPart {
    Number(i64),
    Name(String),
}

impl RowMark {
    /// The session time, in microseconds.
    pub(crate) fn at_us(&self) -> Option<i64> {
        self.rank.at_us
    }

    /// Compares the ranks.
    pub(crate) fn cmp(&self, other: &RowMark) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl RowRank {
    /// The order in which rows happened: by time, then by key. Rows of unknown time come last. For equal keys, a pair
    /// comes before an unpaired row.
    pub(crate) fn cmp(&self, other: &RowRank) -> Ordering {
        by_time(self.at_us, other.at_us)
            .then_with(|| self.key.cmp(&other.key))
            .then_with(|| other.is_pair.cmp(&self.is_pair))
            .then_with(|| self.row.cmp(&other.row))
    }
}

/// Compares by time. Unknown times come last.
pub(crate) fn by_time(x: Option<i64>, y: Option<i64>) -> Ordering {
    match (x, y) {
        (Some(x), Some(y)) => x.cmp(&y),
        (x, y) => x.is_none().cmp(&y.is_none()),
    }
}

/// The place of a row in a session. Values that are unknown or do not apply to the table are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RowPlace {
    /// The session time, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_us: Option<i64>,
    /// The tick; for a row of a client, the server's last tick before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<u32>,
    /// The player whose row it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<u32>,
    /// The player's usercmd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<u32>,
    /// The entity that the row describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// The other columns of the row's key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<NamedValue>,
}

/// A value with its column's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedValue {
    /// The column.
    pub name: String,
    /// The value.
    pub value: CellValue,
}

/// A whole row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDump {
    /// Its table.
    pub table: String,
    /// Where it is.
    pub place: RowPlace,
    /// The values that are not part of the place.
    pub values: Vec<NamedValue>,
}

impl RowPlace {
    pub(crate) fn of(pairing: &Pairing<'_>, clocks: [&TickTimes; 2], spot: &RowSpot) -> RowPlace {
        let at_spot = |(side, row): (TraceSide, Option<u32>)| {
            let row = row? as usize;
            let (table, clock) = (pairing.table(side), clocks[side as usize]);
            let is_at_spot = known(pairing.times[side as usize][row]) == spot.at_us;
            is_at_spot.then(|| RowPlace::of_row(table, row, &pairing.key.columns, spot.at_us, clock))
        };
        // The later row of a pair has another tick and another time.
        let places = [(TraceSide::A, spot.a), (TraceSide::B, spot.b)].into_iter().filter_map(at_spot);
        places.min_by_key(|place| place.tick.unwrap_or(u32::MAX)).unwrap_or_default()
    }

    pub(crate) fn of_row(table: &Table, row: usize, key: &[String], at_us: Option<i64>, clock: &TickTimes) -> RowPlace {
        let mut place = RowPlace { at_us, ..RowPlace::default() };
        for name in key.iter().map(String::as_str) {
            let Some(value) = table.column(name).and_then(|column| CellValue::at(column, row)) else { continue };
            match (name, value.number()) {
                ("tick", Some(n)) => place.tick = Some(n),
                ("player" | "shooter", Some(n)) => place.player = Some(n),
                ("command", Some(n)) => place.command = Some(n),
                ("entity", Some(n)) => place.entity = Some(n),
                ("at_us", _) => {}
                _ => place.key.push(NamedValue { name: name.to_owned(), value }),
            }
        }
        if place.tick.is_none() {
            let own = table.column("tick").and_then(|column| CellValue::at(column, row)).and_then(|v| v.number());
            place.tick = own.filter(|tick| *tick > 0).or_else(|| at_us.and_then(|at| clock.tick_at(at)));
        }
        place
    }
}

impl RowDump {
    /// A row of a table. `skip` names the columns that the place already holds.
    pub(crate) fn of(table: &Table, row: usize, place: RowPlace, skip: &[String]) -> RowDump {
        let shown = table.columns.iter().filter(|c| !skip.contains(&c.name) && c.name != "at_us");
        let values = shown.filter_map(|c| Some(NamedValue { name: c.name.clone(), value: CellValue::at(c, row)? }));
        RowDump { table: table.name.clone(), place, values: values.collect() }
    }

    /// A value by column name.
    pub fn get(&self, name: &str) -> Option<&CellValue> {
        self.values.iter().find(|named| named.name == name).map(|named| &named.value)
    }
}

#[cfg(test)]
mod tests {
    use crate::diff::{DiffOptions, TableStatus, diff};
    use hitreg_log::trace::schema::{effects, errors, ticks};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    /// The effects of one shot, by their x.
    fn trace(all: &[f32]) -> Trace {
        let mut rows = effects::Writer::default();
        for x in all {
            let at = glam::Vec3::new(*x, 0.0, 0.0);
            rows.push(effects::Row { player: 0, at_us: 10_000, kind: "spark", entity: 0, at, predicted: 1 });
        }
        let mut ticks = ticks::Writer::default();
        ticks.push(ticks::Row { tick: 1, at_us: 10_000, hash: 7 });
        Trace { tables: vec![ticks.finish(Vec::new()), rows.finish(Vec::new())], ..Trace::default() }
    }

    /// The trace of acks of one usercmd that corrected the same field, by the predicted values.
    fn corrected(all: &[f32]) -> Trace {
        let mut rows = errors::Writer::default();
        for predicted in all {
            rows.push(errors::Row {
                player: 0,
                command: 5,
                field: "origin.x",
                predicted: *predicted,
                authoritative: 0.0,
                predicted_bits: predicted.to_bits(),
                authoritative_bits: 0,
            });
        }
        let mut trace = trace(&[]);
        trace.tables.push(rows.finish(Vec::new()));
        trace
    }

    #[test]
    fn effects_of_one_shot_are_paired_by_their_places() {
        let compare = |a: &[f32], b: &[f32]| {
            let found = diff(&trace(a), &trace(b), &DiffOptions::default()).unwrap();
            let table = found.tables.into_iter().find(|table| table.name == effects::NAME).unwrap();
            (table.status, [table.rows.compared, table.rows.differing, table.rows.only_in_a, table.rows.only_in_b])
        };
        assert_eq!(compare(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), (TableStatus::Same, [3, 0, 0, 0]));
        assert_eq!(compare(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), (TableStatus::Same, [3, 0, 0, 0]), "in any order");
        assert_eq!(compare(&[1.0, 2.0, 3.0], &[2.0, 3.0]), (TableStatus::Differs, [2, 0, 1, 0]), "one is missing");
        assert_eq!(compare(&[1.0, 2.0, 3.0], &[2.0, 3.0, 9.0]), (TableStatus::Differs, [3, 1, 0, 0]), "one has moved");
    }

    /// A snapshot that repeats an ack may correct the body, too.
    #[test]
    fn corrected_fields_of_a_repeated_ack_are_paired_by_their_values() {
        let compare = |a: &[f32], b: &[f32]| {
            let found = diff(&corrected(a), &corrected(b), &DiffOptions::default()).unwrap();
            let table = found.tables.into_iter().find(|table| table.name == errors::NAME).unwrap();
            [table.rows.compared, table.rows.differing, table.rows.only_in_a, table.rows.only_in_b]
        };
        assert_eq!(compare(&[1.0, 2.0], &[1.0, 2.0]), [2, 0, 0, 0]);
        assert_eq!(compare(&[1.0, 2.0], &[2.0]), [1, 0, 1, 0], "only the repeated ack corrects in B");
        assert_eq!(compare(&[1.0], &[3.0, 1.0]), [1, 0, 0, 1], "only the first ack corrects in A");
    }

    #[test]
    fn rows_of_a_builds_own_table_with_equal_keys_are_paired_by_their_values() {
        let own = |ranges: &[f32]| {
            let tick = Column::new("tick", ColumnData::U32(vec![1; ranges.len()]));
            let range = Column::new("range", ColumnData::F32(ranges.to_vec()));
            let mut trace = trace(&[]);
            trace.tables.push(Table::new("spells", vec![tick, range]).keyed_by(["tick"]));
            trace
        };
        let compare = |a: &[f32], b: &[f32]| {
            let found = diff(&own(a), &own(b), &DiffOptions::default()).unwrap();
            let table = found.tables.into_iter().find(|table| table.name == "spells").unwrap();
            (table.status, table.rows.differing)
        };
        assert_eq!(compare(&[1.0, 2.0], &[2.0, 1.0]), (TableStatus::Same, 0));
        assert_eq!(compare(&[1.0, 2.0], &[2.0, 3.0]), (TableStatus::Differs, 1));
    }
}
