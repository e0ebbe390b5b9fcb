//! Rows that come long after those that they belong with, such as the shots that were never judged, which stand behind all others.

use std::collections::BTreeMap;

use super::steps::{Order, Stop};
use hitreg_log::trace::{Table, TraceSource};

/// As many bytes of rows may be late.
const MOST_BYTES: usize = 4 << 20;

/// The rows of one side that come late.
pub(super) struct Late {
    /// Those of them that have not been taken.
    pub(super) rows: Table,
    lag: Lag,
}

impl Late {
    /// Those that come when one has come that is more than so many numbers ahead.
    pub(super) fn of(trace: &dyn TraceSource, shape: &Table, order: &Order, numbers: i64) -> Result<Late, Stop> {
        let (mut late, mut lag) = (shape.clone(), Lag::new(numbers));
        let mut next = trace.rows(&shape.name, &[]);
        while let Some(rows) = next().map_err(Stop::Unread)? {
            let rows = shape.filled(rows);
            let [_, of_them] = lag.split(&rows, order);
            if !of_them.is_empty() {
                late.append(rows.select(&of_them)).map_err(Stop::Unread)?;
            }
            if late.row_bytes() > MOST_BYTES {
                return Err(Stop::OutOfOrder);
            }
        }
        Ok(Late { rows: late, lag: Lag::new(numbers) })
    }

    /// The others of the rows that come next.
    pub(super) fn without(&mut self, rows: Table, order: &Order) -> Table {
        let [others, late] = self.lag.split(&rows, order);
        if late.is_empty() { rows } else { rows.select(&others) }
    }
}

/// How far rows are behind those before them.
struct Lag {
    numbers: i64,
    /// For each of those whose rows there are the greatest number.
    last: BTreeMap<i64, i64>,
}

impl Lag {
    fn new(numbers: i64) -> Lag {
        Lag { numbers, last: BTreeMap::new() }
    }

    /// Which rows are in time, and which are late.
    fn split(&mut self, rows: &Table, order: &Order) -> [Vec<u32>; 2] {
        let mut split = [Vec::new(), Vec::new()];
        for ((whose, number), row) in order.numbers(rows).zip(0u32..) {
            let last = self.last.entry(whose).or_insert(number);
            split[usize::from(number < last.saturating_sub(self.numbers))].push(row);
            *last = number.max(*last);
        }
        split
    }
}
