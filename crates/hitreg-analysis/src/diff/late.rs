//! Rows that appear long after the rows that they belong to. For example, shots that were never judged follow all other
//! shots.

use std::collections::BTreeMap;

use super::steps::{RowOrder, StepStop};
use hitreg_log::trace::{Table, TraceSource};

/// The limit on the bytes of late rows.
const MOST_BYTES: usize = 4 << 20;

/// The late rows of one side.
pub(super) struct LateRows {
    /// The late rows that have not been taken yet.
    pub(super) rows: Table,
    lag: RowLag,
}

impl LateRows {
    /// Collects the rows that appear after a row more than `numbers` ahead of them.
    pub(super) fn of(
        trace: &dyn TraceSource,
        shape: &Table,
        order: &RowOrder,
        numbers: i64,
    ) -> Result<LateRows, StepStop> {
        let (mut late, mut lag) = (shape.clone(), RowLag::new(numbers));
        let mut next = trace.rows(&shape.name, &[]);
        while let Some(rows) = next().map_err(StepStop::Unread)? {
            let rows = shape.filled(rows);
            let [_, of_them] = lag.split(&rows, order);
            if !of_them.is_empty() {
                late.append(rows.select(&of_them)).map_err(StepStop::Unread)?;
            }
            if late.row_bytes() > MOST_BYTES {
                return Err(StepStop::OutOfOrder);
            }
        }
        Ok(LateRows { rows: late, lag: RowLag::new(numbers) })
    }

    /// Removes the late rows from the next rows.
    pub(super) fn without(&mut self, rows: Table, order: &RowOrder) -> Table {
        let [others, late] = self.lag.split(&rows, order);
        if late.is_empty() { rows } else { rows.select(&others) }
    }
}

/// Measures how far rows are behind the rows before them.
struct RowLag {
    numbers: i64,
    /// For each owner: its greatest number.
    last: BTreeMap<i64, i64>,
}

impl RowLag {
    fn new(numbers: i64) -> RowLag {
        RowLag { numbers, last: BTreeMap::new() }
    }

    /// Splits rows into timely rows and late rows.
    fn split(&mut self, rows: &Table, order: &RowOrder) -> [Vec<u32>; 2] {
        let mut split = [Vec::new(), Vec::new()];
        for ((whose, number), row) in order.numbers(rows).zip(0u32..) {
            let last = self.last.entry(whose).or_insert(number);
            split[usize::from(number < last.saturating_sub(self.numbers))].push(row);
            *last = number.max(*last);
        }
        split
    }
}
