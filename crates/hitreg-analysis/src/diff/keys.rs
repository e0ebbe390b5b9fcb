//! The key of a table's rows. Rows are joined by key, never by position.

use std::borrow::Cow;

use super::cell::{ordered, ordered_double};
use super::mark::KeyPart;
use super::pairing::Owner;
use hitreg_log::trace::schema::{JoinRule, TableSchema};
use hitreg_log::trace::{Column, ColumnData, Table};

/// The columns that identify the rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// The columns, in the order in which rows of the same time are sorted.
    pub(crate) columns: Vec<String>,
    /// Indices in `columns` of the owner: the entity or player whose row it is. The rows of one owner form a series.
    pub(crate) series: Vec<usize>,
    /// When rows with the same key may be compared.
    pub(crate) joined: JoinRule,
}

/// Owner columns in tables that a build adds.
const WHOSE: [&str; 3] = ["entity", "player", "shooter"];

impl RowKey {
    /// The key of a table that both traces have. An added table that names no key uses all its columns in order.
    pub(crate) fn of(a: &Table, b: &Table) -> RowKey {
        let known = TableSchema::of(&a.name);
        let columns = match (known, [a, b].into_iter().find(|table| !table.key.is_empty())) {
            (Some(known), _) => known.key.iter().map(|column| (*column).to_owned()).collect(),
            (None, Some(says)) => says.key.clone(),
            (None, None) => common_columns(a, b),
        };
        let whose = |name: &String| match known {
            Some(known) => known.series.contains(&name.as_str()),
            None => WHOSE.contains(&name.as_str()),
        };
        let series = (0..columns.len()).filter(|&i| whose(&columns[i])).take(2).collect();
        let joined = match known.map_or(JoinRule::WithTheirTime, |known| known.joined) {
            // The time of such rows is a value of their own, which is compared like the others.
            JoinRule::WithTheirTime if [a, b].iter().all(|table| table.column("at_us").is_some()) => JoinRule::Always,
            joined => joined,
        };
        RowKey { columns, series, joined }
    }
}

fn common_columns(a: &Table, b: &Table) -> Vec<String> {
    let common = a.columns.iter().filter(|c| b.column(&c.name).is_some());
    common.map(|c| c.name.clone()).collect()
}

/// The keys of all rows of a table in both traces, as numbers with the same order on both sides.
pub(crate) struct KeyCells<'t> {
    /// For each key column: the numbers of A and B. For a name column, also the names that the numbers index.
    parts: Vec<(KeyNumbers<'t>, Option<Vec<String>>)>,
}

/// The numbers of A and of B in one key column.
enum KeyNumbers<'t> {
    Narrow([&'t [u32]; 2]),
    Wide([Cow<'t, [i64]>; 2]),
}

impl KeyNumbers<'_> {
    #[inline]
    fn get(&self, side: TraceSide, row: usize) -> i64 {
        match self {
            KeyNumbers::Narrow(numbers) => numbers[side as usize][row].into(),
            KeyNumbers::Wide(numbers) => numbers[side as usize][row],
        }
    }

    /// How many of `rows` rows are equal, from row `i` of A and row `j` of B on.
    fn common_run(&self, i: usize, j: usize, rows: usize) -> usize {
        fn common<T: PartialEq>(a: &[T], b: &[T]) -> usize {
            if a == b { a.len() } else { a.iter().zip(b).take_while(|(a, b)| a == b).count() }
        }
        match self {
            KeyNumbers::Narrow([a, b]) => common(&a[i..][..rows], &b[j..][..rows]),
            KeyNumbers::Wide([a, b]) => common(&a[i..][..rows], &b[j..][..rows]),
        }
    }
}

/// One of the two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceSide {
    /// The first trace.
    A,
    /// The second trace.
    B,
}

impl<'t> KeyCells<'t> {
    /// # Errors
    /// When a table lacks a column of the key, or the column's type cannot be a key; the error is a text.
    pub(crate) fn of(key: &RowKey, a: &'t Table, b: &'t Table) -> Result<KeyCells<'t>, String> {
        let mut parts = Vec::with_capacity(key.columns.len());
        for name in &key.columns {
            let missing = |side| format!("{side} lacks the key column `{name}`");
            let column_a = a.column(name).ok_or_else(|| missing("A"))?;
            let column_b = b.column(name).ok_or_else(|| missing("B"))?;
            parts.push(numbers(column_a, column_b)?);
        }
        Ok(KeyCells { parts })
    }

    pub(crate) fn part(&self, part: usize, side: TraceSide, row: usize) -> i64 {
        self.parts[part].0.get(side, row)
    }

    /// The rows of one owner, whose parts of the key have these indices, among the first rows of a side.
    pub(crate) fn rows_of(&self, side: TraceSide, rows: usize, series: &[usize], owner: Owner) -> Vec<u32> {
        let parts: Vec<(usize, Option<i64>)> = series.iter().copied().zip([owner.0, owner.1]).collect();
        let is_of = |row: &u32| parts.iter().all(|(part, of)| Some(self.part(*part, side, *row as usize)) == *of);
        (0..rows as u32).filter(is_of).collect()
    }

    /// The whole key of a row.
    pub(crate) fn of_row(&self, side: TraceSide, row: usize) -> Vec<KeyPart> {
        let part = |(numbers, names): &(KeyNumbers<'_>, Option<Vec<String>>)| {
            let number = numbers.get(side, row);
            let name = names.as_ref().and_then(|names| names.get(usize::try_from(number).ok()?));
            name.map_or(KeyPart::Number(number), |name| KeyPart::Name(name.clone()))
        };
        self.parts.iter().map(part).collect()
    }

    /// How many of `rows` rows have the same keys on both sides, from row `i` of A and row `j` of B on.
    pub(crate) fn common_run(&self, i: usize, j: usize, rows: usize) -> usize {
        // Longer and longer parts, so that a short run does not cost a look at all rows.
        let (mut same, mut more) = (0, 16);
        while same < rows {
            let part = more.min(rows - same);
            let common = |so_far, (numbers, _): &(KeyNumbers<'_>, _)| numbers.common_run(i + same, j + same, so_far);
            let found = self.parts.iter().fold(part, common);
            same += found;
            if found < part {
                break;
            }
            more *= 4;
        }
        same
    }

    #[inline]
    pub(crate) fn cmp(&self, x: (TraceSide, usize), y: (TraceSide, usize)) -> std::cmp::Ordering {
        let mut parts = self.parts.iter().map(|(part, _)| part.get(x.0, x.1).cmp(&part.get(y.0, y.1)));
        parts.find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    }
}

fn numbers<'t>(a: &'t Column, b: &'t Column) -> Result<(KeyNumbers<'t>, Option<Vec<String>>), String> {
    if let (ColumnData::Name { names: names_a, codes: codes_a }, ColumnData::Name { names: names_b, codes: codes_b }) =
        (&a.data, &b.data)
    {
        let mut names: Vec<&String> = names_a.iter().chain(names_b).collect();
        names.sort_unstable();
        names.dedup();
        let place = |name: &String| names.binary_search(&name).map_or(-1, |i| i as i64);
        let number = |list: &[String], codes: &[u32]| -> Vec<i64> {
            let places: Vec<i64> = list.iter().map(place).collect();
            codes.iter().map(|c| places.get(*c as usize).copied().unwrap_or(-1)).collect()
        };
        let numbers = [number(names_a, codes_a), number(names_b, codes_b)].map(Cow::Owned);
        return Ok((KeyNumbers::Wide(numbers), Some(names.into_iter().cloned().collect())));
    }
    if let (ColumnData::U32(a), ColumnData::U32(b)) = (&a.data, &b.data) {
        return Ok((KeyNumbers::Narrow([a, b]), None));
    }
    match (plain(&a.data), plain(&b.data)) {
        (Some((kind_a, a)), Some((kind_b, b))) if kind_a == kind_b => Ok((KeyNumbers::Wide([a, b]), None)),
        _ => Err(format!("its key `{}` is {} in A and {} in B", a.name, a.data.type_name(), b.data.type_name())),
    }
}

/// Converts a column to comparable numbers. Integers of any width compare with each other, and floats with floats of
/// their width.
fn plain(data: &ColumnData) -> Option<(u8, Cow<'_, [i64]>)> {
    Some(match data {
        ColumnData::U32(v) => (0, v.iter().map(|x| i64::from(*x)).collect()),
        ColumnData::I64(v) => (0, Cow::Borrowed(v)),
        ColumnData::U64(v) => (0, v.iter().map(|x| *x as i64).collect()),
        ColumnData::F32(v) => (1, v.iter().map(|x| if x.is_nan() { i64::MAX } else { ordered(*x) }).collect()),
        ColumnData::F64(v) => (2, v.iter().map(|x| if x.is_nan() { i64::MAX } else { ordered_double(*x) }).collect()),
        ColumnData::Bool(v) => (0, v.iter().map(|x| i64::from(*x)).collect()),
        ColumnData::Name { .. } => return None,
    })
}
