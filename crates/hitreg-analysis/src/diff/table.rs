//! One table of both traces.

use std::collections::BTreeSet;

use serde::Serialize;

use super::clock::{Clock, Times};
use super::distributions::{Apart, Distinct, Tally};
use super::divergence::Divergence;
use super::exactness::Exactness;
use super::fold::Fold;
use super::follow::{FieldDiff, Growth, SeriesDiff};
use super::hits::Hits;
use super::keys::{Key, KeyCells, Side};
use super::options::{DiffError, DiffOptions};
use super::shape::{Shape, unsound};
use super::steps::{Patience, Stop};
use hitreg_log::trace::{Table, TraceSource};

/// One table of both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableDiff {
    /// Its name.
    pub name: String,
    /// The judgement.
    pub status: Status,
    /// Why it cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The columns by which its rows are told apart.
    pub key: Vec<String>,
    /// Where their columns are not the same.
    pub shape: Shape,
    /// How many rows there are, and what became of them.
    pub rows: Rows,
    /// The first difference in session time.
    pub first: Option<Divergence>,
    /// What differs, by column.
    pub fields: Vec<FieldDiff>,
    /// What differs, by column and entity or player.
    pub series: Vec<SeriesDiff>,
    /// How far it has spread by which time.
    pub spread: Vec<Growth>,
}

/// The judgement on one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The same rows with the same values, whatever their order.
    #[default]
    Same,
    /// Some values differ, all of them within tolerance.
    WithinTolerance,
    /// It differs.
    Differs,
    /// B has no such table.
    OnlyInA,
    /// A has no such table.
    OnlyInB,
    /// It cannot be judged.
    Untestable,
}

/// How many rows there are, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// In A.
    pub a: u64,
    /// In B.
    pub b: u64,
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs of which a value differs.
    pub differing: u64,
    /// Pairs of which values differ within tolerance only.
    pub within_tolerance: u64,
    /// Rows that B lacks.
    pub only_in_a: u64,
    /// Rows that A lacks.
    pub only_in_b: u64,
    /// Pairs that are not compared because they are of different times.
    pub other_time: u64,
}

/// A compared table, with what is told of its rows besides.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) diff: TableDiff,
    /// Ticks whose bodies differ, and all of them within tolerance.
    pub(crate) tolerated: BTreeSet<u32>,
    /// Of shots.
    pub(crate) hits: Hits,
    /// Of corrections.
    pub(crate) causes: Distinct,
    /// Of views.
    pub(crate) apart: Apart,
    /// What each side has, whatever the other has; `None` where that has not been looked at.
    pub(crate) tallies: Option<[Tally; 2]>,
}

impl Compared {
    /// A table that is the same to the bit in both traces.
    pub(crate) fn same(table: &Table, key: &Key) -> Compared {
        let count = table.rows() as u64;
        let rows = Rows { a: count, b: count, compared: count, ..Rows::default() };
        let diff = TableDiff { name: table.name.clone(), key: key.columns.clone(), rows, ..TableDiff::default() };
        match unsound("A", table) {
            Some(reason) => Compared::untestable(diff, reason),
            None => Compared { apart: Apart::of_same(table), diff, ..Compared::default() },
        }
    }

    /// A table that one trace lacks.
    pub(crate) fn only(side: Side, name: &str, count: u64) -> Compared {
        let (status, rows) = match side {
            Side::A => (Status::OnlyInA, Rows { a: count, ..Rows::default() }),
            Side::B => (Status::OnlyInB, Rows { b: count, ..Rows::default() }),
        };
        Compared {
            diff: TableDiff { name: name.to_owned(), status, rows, ..TableDiff::default() },
            ..Compared::default()
        }
    }

    /// A table that a trace has more than once.
    pub(crate) fn twice(name: &str) -> Compared {
        let diff = TableDiff { name: name.to_owned(), ..TableDiff::default() };
        Compared::untestable(diff, "a trace has it more than once".to_owned())
    }

    fn untestable(mut diff: TableDiff, reason: String) -> Compared {
        diff.status = Status::Untestable;
        diff.untestable = Some(reason);
        diff.rows.compared = 0;
        Compared { diff, ..Compared::default() }
    }
}

/// Compares a table that both traces have.
pub(crate) fn compare(
    traces: [&dyn TraceSource; 2],
    [(a, rows_a), (b, rows_b)]: [(&Table, u64); 2],
    clocks: [&Clock; 2],
    options: &DiffOptions,
    exactness: &Exactness<'_>,
) -> Result<Compared, DiffError> {
    let key = Key::of(a, b, options);
    let mut diff =
        TableDiff { name: a.name.clone(), key: key.columns.clone(), shape: Shape::of(a, b), ..TableDiff::default() };
    (diff.rows.a, diff.rows.b) = (rows_a, rows_b);
    let keyed = KeyCells::of(&key, &a.without_rows(), &b.without_rows());
    if let Some(reason) = unsound("A", a).or_else(|| unsound("B", b)).or(keyed.err()) {
        return Ok(Compared::untestable(diff, reason));
    }
    if let [Some(_), Some(_)] = traces.map(TraceSource::in_memory) {
        let times = [0, 1].map(|side| Times::of(traces[side], clocks[side], [a, b][side], true));
        let mut fold = Fold::new(diff, &key, clocks, options, exactness, false);
        fold.add([a, b], [&times[0], &times[1]], true);
        return Ok(fold.compared());
    }
    for patience in Patience::ALL {
        for thorough in [false, true] {
            let fold = Fold::new(diff.clone(), &key, clocks, options, exactness, thorough);
            match fold.step_by_step(traces, [a, b], patience) {
                Ok(compared) => return Ok(compared),
                Err(Stop::TimesGoBack) => {}
                Err(Stop::OutOfOrder) => break,
                Err(Stop::Unread(what)) => return Err(DiffError::Unread(what)),
            }
        }
    }
    Err(DiffError::Unread(format!("the rows of `{}` cannot be put in order", a.name)))
}
