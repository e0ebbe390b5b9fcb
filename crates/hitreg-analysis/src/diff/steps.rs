//! Both traces' rows of one table, in steps that hold all rows that may belong together: whoever compares step by step joins the
//! same rows as one who has them all.
//!
//! Rows belong together by their key. Where the key begins with whose a row is, the second column of it ascends for each of
//! these, as usercmds do; else the first does, as ticks do. So what is below the last of both sides is complete. Rows that come later than
//! they should are noticed, and then it is begun again with more patience: with the few that are late looked for before all others,
//! and at last with all of them at once.

use std::collections::BTreeMap;

use super::keys::Key;
use super::late::Late;
use hitreg_log::trace::{Data, NextRows, Table, TraceSource};

/// Why a way through a table stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A row came too late.
    OutOfOrder,
    /// Rows of one player or entity are of earlier times than those before.
    TimesGoBack,
    /// It cannot be read.
    Unread(String),
}

/// How far rows may be from their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// So many numbers of the column that ascends.
    Numbers(i64),
    /// As many, but for a few rows that come at any time.
    ButForFew(i64),
    /// As far as may be: all rows make one step.
    Whole,
}

impl Patience {
    /// What is tried, one after the other.
    pub(crate) const ALL: [Patience; 4] =
        [Patience::Numbers(0), Patience::Numbers(4096), Patience::ButForFew(4096), Patience::Whole];
}

/// Which columns order the rows.
pub(super) struct Order {
    /// Whose they are; `None` where that does not matter.
    whose: Option<String>,
    ascends: String,
}

/// Goes through both traces' rows of one table.
pub(crate) struct Steps<'t> {
    sides: [Coming<'t>; 2],
    /// `None` where all rows make one step.
    order: Option<Order>,
    patience: i64,
    /// Below this rows have been given out.
    given: BTreeMap<i64, i64>,
    ended: bool,
}

/// One side's rows as they come.
struct Coming<'t> {
    next: NextRows<'t>,
    shape: Table,
    waiting: Table,
    /// Rows that come late, and are known beforehand; `None` where none may.
    late: Option<Late>,
    ended: bool,
    /// For each of those whose rows there are the last number, and how much had come by then.
    last: BTreeMap<i64, (i64, usize)>,
    /// How many bytes of rows have come.
    came: usize,
    silence: usize,
    most_waiting: usize,
}

/// Rows that belong together, and no others do.
pub(crate) struct Step {
    pub(crate) rows: [Table; 2],
    /// What comes later is not below this, by whose it is.
    pub(crate) given: BTreeMap<i64, i64>,
}

impl<'t> Steps<'t> {
    /// `shapes` are the tables without their rows.
    pub(crate) fn of(
        traces: [&'t dyn TraceSource; 2],
        shapes: [&'t Table; 2],
        key: &Key,
        patience: Patience,
    ) -> Result<Steps<'t>, Stop> {
        let (order, numbers) = match patience {
            Patience::Whole => (None, 0),
            Patience::Numbers(numbers) | Patience::ButForFew(numbers) => (Order::of(key, shapes), numbers),
        };
        let coming = |side: usize| {
            let (trace, shape) = (traces[side], shapes[side].without_rows());
            let late = match (patience, &order) {
                (Patience::ButForFew(_), Some(order)) => Some(Late::of(trace, &shape, order, numbers)?),
                _ => None,
            };
            Ok(Coming {
                next: trace.rows(&shapes[side].name, &[]),
                waiting: shape.clone(),
                shape,
                late,
                ended: false,
                last: BTreeMap::new(),
                came: 0,
                silence: trace.silence(),
                most_waiting: trace.most_waiting(),
            })
        };
        let sides = [coming(0)?, coming(1)?];
        Ok(Steps { sides, order, patience: numbers, given: BTreeMap::new(), ended: false })
    }

    /// Whether all rows make one step.
    pub(crate) fn is_whole(&self) -> bool {
        self.order.is_none()
    }

    /// The columns by which what has been given out is told: whose, and the one that ascends.
    pub(crate) fn ordered_by(&self) -> Option<(&str, &str)> {
        let order = self.order.as_ref()?;
        Some((order.whose.as_deref()?, &order.ascends))
    }

    /// The next rows that belong together; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Step>, Stop> {
        while !self.ended {
            let rows = |side: &Coming<'_>| (side.ended, side.waiting.rows());
            let behind = usize::from(rows(&self.sides[1]) < rows(&self.sides[0]));
            self.sides[behind].read(self.order.as_ref(), &self.given)?;
            self.ended = self.sides.iter().all(|side| side.ended);
            if self.ended {
                let [a, b] = self.sides.each_mut().map(Coming::take_all);
                return Ok(Some(Step { rows: [a?, b?], given: std::mem::take(&mut self.given) }));
            }
            if let Some(step) = self.complete()? {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }

    fn complete(&mut self) -> Result<Option<Step>, Stop> {
        let Some(order) = self.order.as_ref() else { return Ok(None) };
        let mut until = BTreeMap::new();
        for whose in self.sides.iter().flat_map(|side| side.last.keys()) {
            let ends = self.sides.iter().filter_map(|side| side.end(*whose)).min();
            let end = ends.map_or(i64::MAX, |end| end.saturating_sub(self.patience));
            let before = self.given.get(whose).copied().unwrap_or(i64::MIN);
            until.insert(*whose, end.max(before));
        }
        let [a, b] = self.sides.each_mut().map(|side| side.take(order, &until));
        let rows = [a?, b?];
        // What has been given out is known as far as there was something; a number that may still come is not.
        let newest =
            |whose: &i64| self.sides.iter().filter_map(|side| side.last.get(whose)).map(|(last, _)| *last).max();
        for (whose, end) in &mut until {
            if *end == i64::MAX {
                *end = newest(whose).map_or(i64::MIN, |last| last.saturating_add(1));
            }
        }
        self.given.extend(until);
        let any = rows.iter().any(|rows| rows.rows() > 0);
        Ok(any.then(|| Step { rows, given: self.given.clone() }))
    }
}

impl Order {
    /// `None` where rows have no order that both sides can tell.
    fn of(key: &Key, shapes: [&Table; 2]) -> Option<Order> {
        let is_number = |name: &String| {
            let is = |data: &Data| matches!(data, Data::U32(_) | Data::I64(_));
            shapes.iter().all(|table| table.column(name).is_some_and(|column| is(&column.data)))
        };
        if !key.series.iter().all(|place| is_number(&key.columns[*place])) {
            return None;
        }
        let (whose, ascends) = match key.series.contains(&0) {
            true => (key.columns.first().cloned(), key.columns.get(1)?.clone()),
            false => (None, key.columns.first()?.clone()),
        };
        is_number(&ascends).then_some(Order { whose, ascends })
    }

    /// For each row whose it is, and its number.
    pub(super) fn numbers<'r>(&self, rows: &'r Table) -> impl Iterator<Item = (i64, i64)> + use<'r> {
        let whose = self.whose.as_ref().map(|name| (rows.u32s(name), rows.i64s(name)));
        let of = (rows.u32s(&self.ascends), rows.i64s(&self.ascends));
        let at = |(narrow, wide): (&[u32], &[i64]), row: usize| match narrow.get(row) {
            Some(number) => i64::from(*number),
            None => wide[row],
        };
        (0..rows.rows()).map(move |row| (whose.map_or(0, |whose| at(whose, row)), at(of, row)))
    }
}

impl Coming<'_> {
    fn read(&mut self, order: Option<&Order>, given: &BTreeMap<i64, i64>) -> Result<(), Stop> {
        let Some(rows) = (self.next)().map_err(Stop::Unread)? else {
            self.ended = true;
            return Ok(());
        };
        let mut rows = self.shape.filled(rows);
        if let (Some(late), Some(order)) = (&mut self.late, order) {
            rows = late.without(rows, order);
        }
        if let Some(order) = order {
            let width = rows.row_bytes() / rows.rows().max(1);
            let mut known: Option<(i64, i64)> = None;
            for (whose, number) in order.numbers(&rows) {
                self.came += width;
                let given = match known {
                    Some((of, given)) if of == whose => given,
                    _ => given.get(&whose).copied().unwrap_or(i64::MIN),
                };
                known = Some((whose, given));
                if number < given {
                    return Err(Stop::OutOfOrder);
                }
                let (last, after) = self.last.entry(whose).or_insert((number, 0));
                (*last, *after) = ((*last).max(number), self.came);
            }
        }
        self.waiting.append(rows).map_err(Stop::Unread)?;
        match self.waiting.row_bytes() > self.most_waiting {
            true => Err(Stop::Unread("its rows are in no order, and more than may be put in order".to_owned())),
            false => Ok(()),
        }
    }

    /// Up to which number all that there is has come; `None` where nothing more is to be waited for.
    fn end(&self, whose: i64) -> Option<i64> {
        let (last, after) = self.last.get(&whose).copied().unwrap_or((i64::MIN, 0));
        (!self.ended && self.came - after < self.silence).then_some(last)
    }

    /// Takes out the rows below these numbers.
    fn take(&mut self, order: &Order, until: &BTreeMap<i64, i64>) -> Result<Table, Stop> {
        let mut rows = below(&mut self.waiting, &self.shape, order, until);
        if let Some(late) = &mut self.late {
            // They stand behind those with the same key that they came after.
            rows.append(below(&mut late.rows, &self.shape, order, until)).map_err(Stop::Unread)?;
        }
        Ok(rows)
    }

    fn take_all(&mut self) -> Result<Table, Stop> {
        let mut rows = std::mem::take(&mut self.waiting);
        if let Some(late) = self.late.take() {
            rows.append(late.rows).map_err(Stop::Unread)?;
        }
        Ok(rows)
    }
}

/// Takes the rows below these numbers out of a table.
fn below(from: &mut Table, shape: &Table, order: &Order, until: &BTreeMap<i64, i64>) -> Table {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let mut known: Option<(i64, i64)> = None;
    for ((whose, number), row) in order.numbers(from).zip(0u32..) {
        let until = match known {
            Some((of, until)) if of == whose => until,
            _ => until.get(&whose).copied().unwrap_or(i64::MIN),
        };
        known = Some((whose, until));
        if number < until { taken.push(row) } else { left.push(row) }
    }
    if taken.is_empty() {
        return shape.clone();
    }
    let rows = from.select(&taken);
    *from = if left.is_empty() { shape.clone() } else { from.select(&left) };
    rows
}
