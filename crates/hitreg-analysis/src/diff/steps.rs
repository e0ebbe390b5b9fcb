//! Reads the rows of one table of both traces in steps. Each step holds all rows that may belong together, so comparing
//! step by step joins the same rows as comparing all rows at once.
//!
//! Rows belong together by their key. The key often begins with the owner of a row. Then the second key column ascends
//! for each owner, as usercmds do. In other tables the first column ascends, as ticks do. Rows below the last number of
//! both sides are therefore complete. If a row comes too late, the comparison starts again with more [`ReorderTolerance`]. One
//! level collects a few late rows before all others; the last level reads all rows at once.

use super::join::{OwnerMap, RowKey};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::{ColumnData, NextRows, Table, TraceReadError, TraceSource};

/// Why a pass through a table stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepStop {
    #[error("a row came too late")]
    OutOfOrder,
    #[error("a row of a player or entity has an earlier time than the row before")]
    TimesGoBack,
    #[error(transparent)]
    Unread(#[from] TraceReadError),
}

/// How far rows may be out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReorderTolerance {
    /// By this many numbers of the ascending column.
    Numbers(i64),
    /// By this many numbers, except for a few rows that may come at any time.
    ButForFew(i64),
    /// Without limit: all rows make one step.
    Whole,
}

impl ReorderTolerance {
    /// The levels in the order in which they are tried. Rows in memory make one step.
    pub(crate) fn levels(traces: [&dyn TraceSource; 2]) -> &'static [ReorderTolerance] {
        const ALL: [ReorderTolerance; 4] = [
            ReorderTolerance::Numbers(0),
            ReorderTolerance::Numbers(4096),
            ReorderTolerance::ButForFew(4096),
            ReorderTolerance::Whole,
        ];
        if traces.iter().all(|trace| trace.in_memory().is_some()) { &ALL[3..] } else { &ALL }
    }
}

/// The columns that order the rows.
struct RowOrder {
    /// The owner column; `None` if the order does not depend on the owner.
    whose: Option<String>,
    ascends: String,
}

/// Reads the rows of one table of both traces in steps.
pub(crate) struct TableWalk<'t> {
    sides: [IncomingRows<'t>; 2],
    /// `None` if all rows make one step.
    order: Option<RowOrder>,
    /// By how many numbers of the ascending column rows may be out of order.
    tolerance: i64,
    /// For each owner: all rows below this number have been returned.
    returned_below: OwnerMap<i64>,
    ended: bool,
}

/// The incoming rows of one side.
struct IncomingRows<'t> {
    next: NextRows<'t>,
    shape: Table,
    waiting: Table,
    /// Late rows, which were collected in advance; `None` if no row may be late.
    late: Option<LateRows>,
    ended: bool,
    last: OwnerMap<LastNumber>,
    /// How many bytes of rows have been read.
    bytes_read: usize,
    /// An owner without a row in this many bytes is taken to be gone.
    silence_bytes: usize,
    waiting_bytes_max: usize,
}

/// The greatest number of an owner.
struct LastNumber {
    number: i64,
    /// How many bytes had been read up to the owner's last row.
    bytes_read: usize,
}

/// A complete group of rows: no other rows belong to it.
pub(super) struct RowGroup {
    pub(crate) rows: [Table; 2],
    /// For each owner: later steps hold no row below this number.
    pub(crate) returned_below: OwnerMap<i64>,
}

impl<'t> TableWalk<'t> {
    /// Starts a pass. `shapes` are the tables without their rows.
    pub(crate) fn of(
        traces: [&'t dyn TraceSource; 2],
        shapes: [&'t Table; 2],
        key: &RowKey,
        tolerance: ReorderTolerance,
    ) -> Result<TableWalk<'t>, StepStop> {
        let (order, numbers) = match tolerance {
            ReorderTolerance::Whole => (None, 0),
            ReorderTolerance::Numbers(numbers) | ReorderTolerance::ButForFew(numbers) => {
                (RowOrder::of(key, shapes), numbers)
            }
        };
        let coming = |side: usize| -> Result<IncomingRows<'t>, StepStop> {
            let (trace, shape) = (traces[side], shapes[side].without_rows());
            let late = match (tolerance, &order) {
                (ReorderTolerance::ButForFew(_), Some(order)) => Some(LateRows::of(trace, &shape, order, numbers)?),
                _ => None,
            };
            Ok(IncomingRows {
                next: trace.rows(&shapes[side].name, &[]),
                waiting: shape.clone(),
                shape,
                late,
                ended: false,
                last: OwnerMap::default(),
                bytes_read: 0,
                silence_bytes: trace.silence(),
                waiting_bytes_max: trace.most_waiting(),
            })
        };
        let sides = [coming(0)?, coming(1)?];
        Ok(TableWalk { sides, order, tolerance: numbers, returned_below: OwnerMap::default(), ended: false })
    }

    /// Whether all rows make one step.
    pub(crate) fn is_whole(&self) -> bool {
        self.order.is_none()
    }

    /// The columns of [`RowGroup::returned_below`]: the owner, and the column that ascends.
    pub(crate) fn ordered_by(&self) -> Option<(&str, &str)> {
        let order = self.order.as_ref()?;
        Some((order.whose.as_deref()?, &order.ascends))
    }

    /// Returns the next step; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<RowGroup>, StepStop> {
        while !self.ended {
            let rows = |side: &IncomingRows<'_>| (side.ended, side.waiting.rows());
            let side_with_fewer_rows = usize::from(rows(&self.sides[1]) < rows(&self.sides[0]));
            self.sides[side_with_fewer_rows].read(self.order.as_ref(), &self.returned_below)?;
            self.ended = self.sides.iter().all(|side| side.ended);
            if self.ended {
                let [a, b] = self.sides.each_mut().map(IncomingRows::take_all);
                let returned_below = std::mem::take(&mut self.returned_below);
                return Ok(Some(RowGroup { rows: [a?, b?], returned_below }));
            }
            if let Some(step) = self.take_complete()? {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }

    fn take_complete(&mut self) -> Result<Option<RowGroup>, StepStop> {
        let Some(order) = self.order.as_ref() else { return Ok(None) };
        let mut until = OwnerMap::default();
        for (whose, _) in self.sides.iter().flat_map(|side| side.last.iter()) {
            let ends = self.sides.iter().filter_map(|side| side.end(whose)).min();
            let end = ends.map_or(i64::MAX, |end| end.saturating_sub(self.tolerance));
            let before = self.returned_below.get(whose).copied().unwrap_or(i64::MIN);
            until.set(whose, end.max(before));
        }
        let [a, b] = self.sides.each_mut().map(|side| side.take(order, &until));
        let rows = [a?, b?];
        // Where an owner has no limit, only rows up to its newest number have been returned. Later numbers may still
        // come.
        let newest =
            |whose: i64| self.sides.iter().filter_map(|side| side.last.get(whose)).map(|last| last.number).max();
        for (whose, end) in until.iter() {
            let end = match *end {
                i64::MAX => newest(whose).map_or(i64::MIN, |last| last.saturating_add(1)),
                end => end,
            };
            self.returned_below.set(whose, end);
        }
        let any = rows.iter().any(|rows| rows.rows() > 0);
        Ok(any.then(|| RowGroup { rows, returned_below: self.returned_below.clone() }))
    }
}

impl RowOrder {
    /// The order of a table's rows; `None` if the key columns are not numbers in both traces.
    fn of(key: &RowKey, shapes: [&Table; 2]) -> Option<RowOrder> {
        let is_number = |name: &String| {
            let is = |data: &ColumnData| matches!(data, ColumnData::U32(_) | ColumnData::I64(_));
            shapes.iter().all(|table| table.column(name).is_some_and(|column| is(&column.data)))
        };
        if !key.series.iter().all(|place| is_number(&key.columns[*place])) {
            return None;
        }
        let (whose, ascends) = match key.series.contains(&0) {
            true => (key.columns.first().cloned(), key.columns.get(1)?.clone()),
            false => (None, key.columns.first()?.clone()),
        };
        is_number(&ascends).then_some(RowOrder { whose, ascends })
    }

    /// The owner and the number of each row.
    fn numbers(&self, rows: &Table) -> impl Iterator<Item = (i64, i64)> + use<> {
        let column = |name: &String| match rows.u32s(name) {
            [] => rows.i64s(name).to_vec(),
            narrow => narrow.iter().map(|number| i64::from(*number)).collect(),
        };
        let whose = self.whose.as_ref().map_or_else(|| vec![0; rows.rows()], column);
        whose.into_iter().zip(column(&self.ascends))
    }
}

impl IncomingRows<'_> {
    fn read(&mut self, order: Option<&RowOrder>, returned_below: &OwnerMap<i64>) -> Result<(), StepStop> {
        let Some(rows) = (self.next)()? else {
            self.ended = true;
            return Ok(());
        };
        let mut rows = self.shape.filled(rows);
        if let (Some(late), Some(order)) = (&mut self.late, order) {
            rows = late.without(rows, order);
        }
        if let Some(order) = order {
            let width = rows.row_bytes() / rows.rows().max(1);
            let mut numbers = order.numbers(&rows).peekable();
            while let Some((whose, first)) = numbers.next() {
                let (mut least, mut most, mut count) = (first, first, 1);
                while let Some((_, number)) = numbers.next_if(|(of, _)| *of == whose) {
                    (least, most, count) = (least.min(number), most.max(number), count + 1);
                }
                if returned_below.get(whose).is_some_and(|returned| least < *returned) {
                    return Err(StepStop::OutOfOrder);
                }
                self.bytes_read += width * count;
                let bytes_read = self.bytes_read;
                let last = self.last.or_insert_with(whose, || LastNumber { number: most, bytes_read });
                *last = LastNumber { number: last.number.max(most), bytes_read };
            }
        }
        self.waiting.append(rows)?;
        match self.waiting.row_bytes() > self.waiting_bytes_max {
            true => {
                Err(TraceReadError("its rows are in no order, and more than may be put in order".to_owned()).into())
            }
            false => Ok(()),
        }
    }

    /// The number up to which all of an owner's rows have been read; `None` if no more rows are expected.
    fn end(&self, whose: i64) -> Option<i64> {
        let last = self.last.get(whose);
        let silent_bytes = self.bytes_read - last.map_or(0, |last| last.bytes_read);
        (!self.ended && silent_bytes < self.silence_bytes).then_some(last.map_or(i64::MIN, |last| last.number))
    }

    /// Removes and returns the rows below these numbers.
    fn take(&mut self, order: &RowOrder, until: &OwnerMap<i64>) -> Result<Table, StepStop> {
        let mut rows = below(&mut self.waiting, &self.shape, order, until)?;
        if let Some(late) = &mut self.late {
            // Late rows follow the rows with the same key, as they did in the file.
            let late = below(&mut late.rows, &self.shape, order, until);
            late.and_then(|late| rows.append(late))?;
        }
        Ok(rows)
    }

    fn take_all(&mut self) -> Result<Table, StepStop> {
        let mut rows = std::mem::take(&mut self.waiting);
        if let Some(late) = self.late.take() {
            rows.append(late.rows)?;
        }
        Ok(rows)
    }
}

/// Removes and returns the rows of a table below these numbers.
fn below(from: &mut Table, shape: &Table, order: &RowOrder, until: &OwnerMap<i64>) -> Result<Table, TraceReadError> {
    let until = |whose: i64| until.get(whose).copied().unwrap_or(i64::MIN);
    let is_taken = |(whose, number): (i64, i64)| number < until(whose);
    // Most rows are below, up to the end of the rows that the other side has.
    let before = order.numbers(from).position(|row| !is_taken(row));
    let Some(before) = before else { return Ok(std::mem::replace(from, shape.clone())) };
    let mut rest = from.split_off(before);
    let taken: Vec<u32> = order.numbers(&rest).zip(0..).filter(|(row, _)| is_taken(*row)).map(|(_, row)| row).collect();
    let Some(last) = taken.last() else { return Ok(std::mem::replace(from, rest)) };
    let after = rest.split_off(*last as usize + 1);
    let left: Vec<u32> = (0..*last).filter(|row| taken.binary_search(row).is_err()).collect();
    let mut rows = std::mem::replace(from, rest.select(&left));
    from.append(after)?;
    rows.append(rest.select(&taken))?;
    Ok(rows)
}

/// The limit on the bytes of late rows.
const LATE_BYTES_MAX: usize = 4 << 20;

/// The late rows of one side: those that appear long after the rows that they belong to. For example, shots that were
/// never judged follow all other shots.
struct LateRows {
    /// The late rows that have not been taken yet.
    rows: Table,
    /// A row this far behind the greatest number of its owner is not late yet.
    numbers: i64,
    /// For each owner: its greatest number so far.
    last: SortedMap<i64, i64>,
}

impl LateRows {
    /// Collects the rows that appear after a row more than `numbers` ahead of them.
    fn of(trace: &dyn TraceSource, shape: &Table, order: &RowOrder, numbers: i64) -> Result<LateRows, StepStop> {
        let mut late = LateRows { rows: shape.clone(), numbers, last: SortedMap::new() };
        let mut next = trace.rows(&shape.name, &[]);
        while let Some(rows) = next()? {
            let rows = shape.filled(rows);
            let [_, of_them] = late.split(&rows, order);
            if !of_them.is_empty() {
                late.rows.append(rows.select(&of_them))?;
            }
            if late.rows.row_bytes() > LATE_BYTES_MAX {
                return Err(StepStop::OutOfOrder);
            }
        }
        // The rows are read once more, without the late ones.
        late.last = SortedMap::new();
        Ok(late)
    }

    /// Removes the late rows from the next rows.
    fn without(&mut self, rows: Table, order: &RowOrder) -> Table {
        let [others, late] = self.split(&rows, order);
        if late.is_empty() { rows } else { rows.select(&others) }
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
