//! A trace whose rows are read in parts, from memory or from a file. Code that must handle traces of any length takes
//! one.

use std::sync::Arc;

use super::schema::is_bodies;
use super::{Table, Trace, TraceHeader};
use crate::sorted::SortedMap;
use crate::store::TraceFile;

/// Why a trace, or the log beside it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceReadError(pub String);

impl From<String> for TraceReadError {
    fn from(reason: String) -> TraceReadError {
        TraceReadError(reason)
    }
}

/// Returns the next rows of a table; `None` after the last.
pub type NextRows<'s> = Box<dyn FnMut() -> Result<Option<Table>, TraceReadError> + 's>;

/// A trace with shared ownership, for repeated use.
pub type SharedTrace = Arc<dyn TraceSource + Send>;

/// A span of a column's values, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpan<'c> {
    /// Name of the column, such as `at_us` or `tick`.
    pub column: &'c str,
    /// The least value.
    pub first: i64,
    /// The greatest value.
    pub last: i64,
}

/// A trace that can be read table by table, any number of times.
pub trait TraceSource: Sync {
    /// Returns the trace's header.
    fn header(&self) -> &TraceHeader;

    /// Returns the tables with all their columns and their numbers of rows. The tables need not contain rows.
    fn tables(&self) -> Vec<(&Table, u64)>;

    /// Returns the rows of a table from the first; none if the table does not exist. With column names in `only`, the
    /// source may omit other columns. With `span`, it may omit rows outside it.
    fn rows_between<'s>(&'s self, table: &'s str, only: &'s [&'s str], span: Option<ColumnSpan<'s>>) -> NextRows<'s>;

    /// Returns all rows of a table, as [`TraceSource::rows_between`] does.
    fn rows<'s>(&'s self, table: &'s str, only: &'s [&'s str]) -> NextRows<'s> {
        self.rows_between(table, only, None)
    }

    /// Returns the trace, if it is in memory.
    fn in_memory(&self) -> Option<&Trace> {
        None
    }

    /// Returns the file of the trace, if it is in one.
    fn in_file(&self) -> Option<&TraceFile> {
        None
    }

    /// Returns a shared handle for later use; `None` if the caller should keep its results instead.
    fn shared(&self) -> Option<SharedTrace> {
        None
    }

    /// Returns how many bytes of rows may wait in memory for rows that belong to them.
    fn most_waiting(&self) -> usize {
        usize::MAX
    }

    /// Returns after how many bytes of rows without a player's own that player counts as gone. A later row of the
    /// player revokes this.
    fn silence(&self) -> usize {
        16 << 20
    }
}

impl TraceSource for Trace {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.tables.iter().map(|table| (table, table.rows() as u64)).collect()
    }

    fn rows_between<'s>(&'s self, table: &'s str, _: &'s [&'s str], _: Option<ColumnSpan<'s>>) -> NextRows<'s> {
        let mut table = self.table(table);
        Box::new(move || Ok(table.take().cloned()))
    }

    fn in_memory(&self) -> Option<&Trace> {
        Some(self)
    }
}

/// Returns the rows that `select` takes from the parts of a table; none if the table does not exist. `only` and `span`
/// are those of [`TraceSource::rows_between`].
///
/// # Errors
/// When the rows cannot be read.
pub fn select_rows(
    trace: &dyn TraceSource,
    table: &str,
    (only, span): (&[&str], Option<ColumnSpan<'_>>),
    select: &dyn Fn(&Table) -> Table,
) -> Result<Table, TraceReadError> {
    let mut all = Table::new(table, Vec::new());
    each_part(trace, table, (only, span), &mut |rows| all.append(select(rows)))?;
    all.columns.iter_mut().for_each(|column| column.data.shrink_to_fit());
    Ok(all)
}

/// Returns the names of the tables that hold the states of entities.
pub fn body_tables(trace: &dyn TraceSource) -> Vec<String> {
    let names = trace.tables().into_iter().map(|(table, _)| &table.name);
    names.filter(|name| is_bodies(name)).cloned().collect()
}

/// Passes the rows of a table to `to`, part by part. `only` and `span` are those of [`TraceSource::rows_between`].
///
/// # Errors
/// When the rows cannot be read, or the error of `to`.
pub fn each_part(
    trace: &dyn TraceSource,
    table: &str,
    (only, span): (&[&str], Option<ColumnSpan<'_>>),
    to: &mut dyn FnMut(&Table) -> Result<(), TraceReadError>,
) -> Result<(), TraceReadError> {
    if let Some(trace) = trace.in_memory() {
        return trace.table(table).map_or(Ok(()), to);
    }
    let mut rows = trace.rows_between(table, only, span);
    while let Some(rows) = rows()? {
        to(&rows)?;
    }
    Ok(())
}

/// Rows grouped by one or two key columns; each group is sorted by another column.
#[derive(Clone, Debug, Default)]
pub struct Series<'t> {
    of: SortedMap<[u32; 2], Vec<u32>>,
    order: &'t [u32],
}

impl<'t> Series<'t> {
    /// Groups rows by two columns and sorts each group by a third.
    pub fn of_two(whose: [&[u32]; 2], order: &'t [u32]) -> Series<'t> {
        let [first, second] = whose;
        Series::collect(first.iter().zip(second).map(|(first, second)| [*first, *second]), order)
    }

    /// Groups rows by one column and sorts each group by another.
    pub fn of_one(whose: &[u32], order: &'t [u32]) -> Series<'t> {
        Series::collect(whose.iter().map(|whose| [*whose, 0]), order)
    }

    fn collect(keys: impl Iterator<Item = [u32; 2]>, order: &'t [u32]) -> Series<'t> {
        let mut of: SortedMap<[u32; 2], Vec<u32>> = SortedMap::new();
        for (row, key) in (0..order.len() as u32).zip(keys) {
            of.entry(key).or_default().push(row);
        }
        let ascends = |rows: &[u32]| rows.is_sorted_by_key(|row| order[*row as usize]);
        for rows in of.values_mut().filter(|rows| !ascends(rows)) {
            rows.sort_unstable_by_key(|row| (order[*row as usize], *row));
        }
        Series { of, order }
    }

    /// Iterates over the groups with their keys; the second key is 0 when there is one key column.
    pub fn iter(&self) -> impl Iterator<Item = ([u32; 2], &[u32])> {
        self.of.iter().map(|(whose, rows)| (*whose, &rows[..]))
    }

    /// Returns the rows of a group.
    pub fn rows(&self, whose: [u32; 2]) -> &[u32] {
        self.of.get(&whose).map_or(&[], Vec::as_slice)
    }

    /// Returns the rows of a group with this value in the sort column.
    pub fn at(&self, whose: [u32; 2], value: u32) -> impl Iterator<Item = usize> + '_ {
        let rows = self.rows(whose);
        let start = rows.partition_point(|row| self.order[*row as usize] < value);
        let of_value = rows[start..].iter().take_while(move |row| self.order[**row as usize] == value);
        of_value.map(|row| *row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_any_order() {
        let (player, entity, command) = ([1, 0, 1, 1], [2, 2, 2, 3], [9, 4, 3, 9]);
        let series = Series::of_two([&player, &entity], &command);
        assert_eq!(series.rows([1, 2]), [2, 0]);
        assert_eq!(series.at([1, 2], 9).collect::<Vec<_>>(), [0]);
        assert_eq!(series.at([1, 2], 4).count() + series.rows([7, 7]).len(), 0);
        assert_eq!(series.iter().count(), 3);
        assert_eq!(Series::of_one(&player, &command).at([1, 0], 9).collect::<Vec<_>>(), [0, 3]);
    }
}
