//! The comparison of one table.

use serde::Serialize;

use super::distributions::{CorrectionOverlap, DrawnDistance, TraceTally};
use super::divergence::Divergence;
use super::exactness::TraceComparison;
use super::fold::TableFold;
use super::follow::{DivergenceSpread, FieldDiff, SeriesDiff};
use super::hits::HitChanges;
use super::keys::{KeyCells, RowKey, TraceSide};
use super::options::{DiffError, DiffScope};
use super::shape::{ColumnDifference, unsound};
use super::steps::{ReorderTolerance, StepStop};
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{corrections, shots, views};

/// The differences in one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableDiff {
    /// Its name.
    pub name: String,
    /// The verdict on the table.
    pub status: Status,
    /// Why the table cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The columns by which rows are identified.
    pub key: Vec<String>,
    /// The differences between the columns.
    pub shape: ColumnDifference,
    /// The numbers of rows, by result.
    pub rows: RowCounts,
    /// The first difference in session time.
    pub first: Option<Divergence>,
    /// The differences by column.
    pub fields: Vec<FieldDiff>,
    /// The differences by column and by entity or player.
    pub series: Vec<SeriesDiff>,
    /// How far the divergence has spread over time.
    pub spread: Vec<DivergenceSpread>,
}

/// The verdict on one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The same rows with the same values, in any order.
    #[default]
    Same,
    /// Some values differ, all within tolerance.
    WithinTolerance,
    /// A value, row or column differs.
    Differs,
    /// B has no such table.
    OnlyInA,
    /// A has no such table.
    OnlyInB,
    /// The table cannot be judged.
    Untestable,
}

/// The numbers of rows, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowCounts {
    /// Rows in A.
    pub a: u64,
    /// Rows in B.
    pub b: u64,
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs in which a value differs.
    pub differing: u64,
    /// Pairs in which values differ only within tolerance.
    pub within_tolerance: u64,
    /// Rows that B lacks.
    pub only_in_a: u64,
    /// Rows that A lacks.
    pub only_in_b: u64,
    /// Pairs that were not compared because their times differ.
    pub other_time: u64,
}

/// A compared table, with further results from its rows.
#[derive(Default)]
pub(crate) struct ComparedTable {
    pub(crate) diff: TableDiff,
    /// Ticks whose bodies differ only within tolerance.
    pub(crate) tolerated: SortedSet<u32>,
    /// For the table of shots: the counts.
    pub(crate) hits: HitChanges,
    /// For the table of corrections: the causes in one trace only.
    pub(crate) causes: CorrectionOverlap,
    /// For the table of views: the distances.
    pub(crate) apart: DrawnDistance,
    /// Counts of each side, independent of the other side; `None` if they were not computed.
    pub(crate) tallies: Option<[TraceTally; 2]>,
}

impl ComparedTable {
    /// The result for a table that one trace lacks.
    pub(crate) fn only(side: TraceSide, name: &str, count: u64) -> ComparedTable {
        let (status, rows) = match side {
            TraceSide::A => (Status::OnlyInA, RowCounts { a: count, ..RowCounts::default() }),
            TraceSide::B => (Status::OnlyInB, RowCounts { b: count, ..RowCounts::default() }),
        };
        ComparedTable {
            diff: TableDiff { name: name.to_owned(), status, rows, ..TableDiff::default() },
            ..ComparedTable::default()
        }
    }

    /// The result for a table that a trace has more than once.
    pub(crate) fn twice(name: &str) -> ComparedTable {
        let diff = TableDiff { name: name.to_owned(), ..TableDiff::default() };
        ComparedTable::untestable(diff, "a trace has it more than once".to_owned())
    }

    fn untestable(mut diff: TableDiff, reason: String) -> ComparedTable {
        diff.status = Status::Untestable;
        diff.untestable = Some(reason);
        diff.rows.compared = 0;
        ComparedTable { diff, ..ComparedTable::default() }
    }
}

/// Compares a table that both traces have. `is_same` says that it is equal to the bit in both, at the same times.
pub(crate) fn compare(
    compared: &TraceComparison<'_>,
    [(a, rows_a), (b, rows_b)]: [(&Table, u64); 2],
    is_same: bool,
) -> Result<ComparedTable, DiffError> {
    let key = RowKey::of(a, b);
    let mut diff = TableDiff {
        name: a.name.clone(),
        key: key.columns.clone(),
        shape: ColumnDifference::of(a, b),
        ..TableDiff::default()
    };
    (diff.rows.a, diff.rows.b) = (rows_a, rows_b);
    let unkeyed = KeyCells::of(&key, &a.without_rows(), &b.without_rows()).err();
    if let Some(reason) = unsound("A", a).or_else(|| unsound("B", b)).or(unkeyed) {
        return Ok(ComparedTable::untestable(diff, reason));
    }
    if is_same {
        let is_counted = match a.name.as_str() {
            shots::NAME => !compared.options.brief || compared.options.on == DiffScope::Hits,
            corrections::NAME | views::NAME => !compared.options.brief,
            _ => false,
        };
        return TableFold::new(diff, &key, compared, false).same(is_counted, a).map_err(DiffError::Unread);
    }
    for patience in ReorderTolerance::levels(compared.traces).iter().copied() {
        for thorough in [false, true] {
            let fold = TableFold::new(diff.clone(), &key, compared, thorough);
            match fold.step_by_step([a, b], patience) {
                Ok(table) => return Ok(table),
                Err(StepStop::TimesGoBack) => {}
                Err(StepStop::OutOfOrder) => break,
                Err(StepStop::Unread(what)) => return Err(DiffError::Unread(what)),
            }
        }
    }
    Err(DiffError::Unread(format!("the rows of `{}` cannot be put in order", a.name)))
}
