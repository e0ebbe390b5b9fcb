//! Finds tables that are equal in both traces without a comparison of their rows.

use rayon::prelude::*;

use super::cell::CellPair;
use super::keys::RowKey;
use super::{DiffScope, TableList, find};
use hitreg_log::trace::schema::{JoinRule, bodies, frames, ticks};
use hitreg_log::trace::{Table, Trace, TraceSource};

/// The tables that are equal to the bit in both traces, with the same rows in the same order.
pub(super) struct EqualTables<'t> {
    names: Vec<&'t str>,
    /// Whether the ticks and client frames of both traces have the same times, row by row.
    anchored: bool,
}

impl<'t> EqualTables<'t> {
    /// Compares whole columns in memory, and packed chunks in files. Tables of other sources are not known to be equal.
    pub(super) fn of(
        traces: [&dyn TraceSource; 2],
        [left, right]: [&TableList<'t>; 2],
        on: DiffScope,
    ) -> EqualTables<'t> {
        let with_times = [ticks::NAME, frames::NAME, bodies::NAME];
        let asked = |name: &str| on.has_table(name) || with_times.contains(&name);
        let of_both = left.par_iter().filter(|(table, _)| asked(&table.name));
        let of_both = of_both.filter_map(|(table, _)| Some((*table, find(right, &table.name)?.0)));
        let names = |is_same: &(dyn Fn(&Table, &Table) -> bool + Sync)| -> Vec<&'t str> {
            of_both.clone().filter(|(a, b)| is_same(a, b)).map(|(a, _)| a.name.as_str()).collect()
        };
        match (traces.map(TraceSource::in_memory), traces.map(TraceSource::in_file)) {
            ([Some(a), Some(b)], _) => EqualTables { names: names(&same_bits), anchored: have_same_times(a, b) },
            (_, [Some(a), Some(b)]) => {
                // A file that cannot be read is reported when its rows are read.
                let names = names(&|table, _| a.has_same_rows(b, &table.name).unwrap_or(false));
                let same = |name: &str| match (find(left, name), find(right, name)) {
                    (None, None) => true,
                    _ => names.contains(&name),
                };
                EqualTables { anchored: same(ticks::NAME) && same(frames::NAME), names }
            }
            _ => EqualTables { names: Vec::new(), anchored: false },
        }
    }

    /// Whether a table is equal.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether a table is equal, and its rows have the same times in both traces.
    pub(super) fn has_at_same_times(&self, name: &str, key: &RowKey) -> bool {
        self.has(name) && (key.joined != JoinRule::WithTheirTime || self.anchored)
    }
}

fn have_same_times(a: &Trace, b: &Trace) -> bool {
    let same = |name: &str, columns: &[&str]| match (a.table(name), b.table(name)) {
        (Some(a), Some(b)) => columns.iter().all(|column| match (a.column(column), b.column(column)) {
            (Some(a), Some(b)) => a.data == b.data,
            (a, b) => a.is_none() && b.is_none(),
        }),
        (a, b) => a.is_none() && b.is_none(),
    };
    same(ticks::NAME, &["tick", "at_us"]) && same(frames::NAME, &["player", "command", "at_us"])
}

fn same_bits(a: &Table, b: &Table) -> bool {
    a.columns.len() == b.columns.len()
        && a.columns.iter().zip(&b.columns).all(|(a, b)| {
            let rows = 0..a.data.len();
            let same = |cells: CellPair<'_>| cells.same_bits(rows.clone(), rows);
            a.name == b.name && a.data.len() == b.data.len() && CellPair::of(&a.data, &b.data).is_some_and(same)
        })
}
