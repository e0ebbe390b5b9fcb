//! A trace whose rows are read in parts, from memory or from a file. Code that must handle traces of any length takes
//! one.

use std::sync::Arc;

use super::schema::is_bodies;
use super::{Table, Trace, TraceHeader};
use crate::store::TraceFile;

/// Returns the next rows of a table; `None` after the last. The error is a message.
pub type NextRows<'s> = Box<dyn FnMut() -> Result<Option<Table>, String> + 's>;

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
/// A message when the rows cannot be read.
pub fn select_rows(
    trace: &dyn TraceSource,
    table: &str,
    (only, span): (&[&str], Option<ColumnSpan<'_>>),
    select: &dyn Fn(&Table) -> Table,
) -> Result<Table, String> {
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
/// A message when the rows cannot be read, or the error of `to`.
pub fn each_part(
    trace: &dyn TraceSource,
    table: &str,
    (only, span): (&[&str], Option<ColumnSpan<'_>>),
    to: &mut dyn FnMut(&Table) -> Result<(), String>,
) -> Result<(), String> {
    if let Some(trace) = trace.in_memory() {
        return trace.table(table).map_or(Ok(()), to);
    }
    let mut rows = trace.rows_between(table, only, span);
    while let Some(rows) = rows()? {
        to(&rows)?;
    }
    Ok(())
}
