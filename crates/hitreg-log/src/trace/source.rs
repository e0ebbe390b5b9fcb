//! A trace whose rows come stretch by stretch, in memory or not: what goes through a trace however long it is asks for one.

use std::sync::Arc;

use super::{Table, Trace, TraceHeader};

/// Gives out the next rows of a table; `None` after the last. What keeps them from being read is said in words.
pub type NextRows<'s> = Box<dyn FnMut() -> Result<Option<Table>, String> + 's>;

/// A trace for whoever comes back to it.
pub type SharedTrace = Arc<dyn TraceSource + Send>;

/// A trace that can be gone through table by table, and as often as need be.
pub trait TraceSource: Sync {
    /// What was replayed, and how.
    fn header(&self) -> &TraceHeader;

    /// Its tables with all their columns and how many rows each has. The rows themselves need not be there.
    fn tables(&self) -> Vec<(&Table, u64)>;

    /// The rows of a table from its first on; none of a table that it does not have. Where columns are named, the others may be
    /// left out.
    fn rows<'s>(&'s self, table: &'s str, only: &'s [&'s str]) -> NextRows<'s>;

    /// All of it, where it is in memory.
    fn in_memory(&self) -> Option<&Trace> {
        None
    }

    /// The same for whoever goes through it later; `None` where what comes of it is to be kept instead.
    fn shared(&self) -> Option<SharedTrace> {
        None
    }

    /// How many bytes of rows may wait for those that belong to them.
    fn most_waiting(&self) -> usize {
        usize::MAX
    }

    /// A player of whom so many bytes of rows say nothing is taken to be gone, until a row says otherwise.
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

    fn rows<'s>(&'s self, table: &'s str, _: &'s [&'s str]) -> NextRows<'s> {
        let mut table = self.table(table);
        Box::new(move || Ok(table.take().cloned()))
    }

    fn in_memory(&self) -> Option<&Trace> {
        Some(self)
    }
}

/// Some rows of a table, put together: those that `keep` lets pass. Without a table of that name there are none.
///
/// # Errors
/// In words, what keeps them from being read.
pub fn gathered(
    trace: &dyn TraceSource,
    table: &str,
    only: &[&str],
    keep: &dyn Fn(&Table) -> Vec<u32>,
) -> Result<Table, String> {
    let mut all = Table::new(table, Vec::new());
    each_part(trace, table, only, &mut |rows| all.append(rows.select(&keep(rows))))?;
    Ok(all)
}

/// Goes through the rows of a table.
///
/// # Errors
/// In words, what keeps them from being read, and what `to` says.
pub fn each_part(
    trace: &dyn TraceSource,
    table: &str,
    only: &[&str],
    to: &mut dyn FnMut(&Table) -> Result<(), String>,
) -> Result<(), String> {
    if let Some(trace) = trace.in_memory() {
        return trace.table(table).map_or(Ok(()), to);
    }
    let mut rows = trace.rows(table, only);
    while let Some(rows) = rows()? {
        to(&rows)?;
    }
    Ok(())
}
