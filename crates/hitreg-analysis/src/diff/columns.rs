//! The columns of a table in both traces: which there are, and how exactly their values are compared.

use serde::Serialize;

use super::EqualTables;
use super::cell::{CellComparison, CellPair, DifferenceClass, NumberComparison};
use super::clock::TickTimes;
use super::distributions::Relocations;
use super::options::{DiffOptions, DiffScope};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{
    ColumnRole, ColumnSchema, NO_SERVER, NOT_PREDICTED, NOT_RUN, effects, errors, frames, shots, ticks,
};
use hitreg_log::trace::{ColumnData, Table, TraceSource, named_as_angle};

/// Two traces, and the tolerances and rules by which their tables are compared.
pub(crate) struct TraceComparison<'a> {
    pub(crate) traces: [&'a dyn TraceSource; 2],
    pub(crate) clocks: [&'a TickTimes; 2],
    pub(crate) options: &'a DiffOptions,
    pub(super) equal: EqualTables<'a>,
    /// The fields of bodies that have a unit, each with whether it is an angle.
    pub(crate) fields: SortedMap<String, bool>,
    /// Ticks whose bodies differ only within tolerance. Their state hashes differ as a consequence.
    pub(crate) tolerated_ticks: SortedSet<u32>,
    /// The spawns and teleports in each trace.
    pub(crate) relocations: [Relocations; 2],
}

impl TraceComparison<'_> {
    /// How the values of a column are compared.
    pub(crate) fn of_column(&self, column: &hitreg_log::trace::Column) -> NumberComparison {
        NumberComparison {
            within: self.options.tolerances.of(&column.name),
            is_angle: column.is_angle(),
            has_size: !column.is_hash(),
        }
    }

    /// How the values of a body's field are compared in a column that holds many fields.
    pub(crate) fn of_field(&self, field: &str) -> NumberComparison {
        let is_angle = self.fields.get(field).copied().unwrap_or_else(|| named_as_angle(field));
        NumberComparison { within: self.options.tolerances.of(field), is_angle, has_size: true }
    }
}

/// A column of both traces, with the rule by which its cells are equal.
pub(crate) struct ColumnPair<'a> {
    pub(crate) cells: CellPair<'a>,
    pub(crate) rule: Rule<'a>,
    kinds: Vec<[RowKind<'a>; 2]>,
}

/// When two cells are equal.
pub(crate) enum Rule<'a> {
    /// Within the column's own tolerance, if it has one.
    Plain(NumberComparison),
    /// State hashes, with the ticks of A. A tick without a hash on one side is not compared.
    Hash { ticks: &'a [u32], tolerated: &'a SortedSet<u32> },
    /// Values of many fields, with the field codes of A. Each value has the tolerance of its field.
    ByField { codes: &'a [u32], measures: Vec<NumberComparison> },
    /// The bits of another column's values. They count only if the values themselves show no difference.
    BitsOf { values: CellPair<'a>, codes: &'a [u32], measures: Vec<NumberComparison> },
}

impl<'a> ColumnPair<'a> {
    /// Pairs a column of both traces; `None` if a trace lacks it or has it as another type.
    pub(crate) fn of(
        a: &'a Table,
        b: &'a Table,
        name: &str,
        compared: &'a TraceComparison<'_>,
    ) -> Option<ColumnPair<'a>> {
        let cells = CellPair::of(&a.column(name)?.data, &b.column(name)?.data)?;
        let rule = match (a.name.as_str(), a.column("field").map(|c| &c.data)) {
            (errors::NAME, Some(ColumnData::Name { names, codes })) => {
                let measures = names.iter().map(|field| compared.of_field(field)).collect();
                let values = name.strip_suffix("_bits").and_then(|value| both(a, b, value));
                match values {
                    Some(values) => Rule::BitsOf { values, codes, measures },
                    None => Rule::ByField { codes, measures },
                }
            }
            (ticks::NAME, _) if name == "hash" => {
                Rule::Hash { ticks: a.u32s("tick"), tolerated: &compared.tolerated_ticks }
            }
            _ => Rule::Plain(compared.of_column(a.column(name)?)),
        };
        Some(ColumnPair { cells, rule, kinds: RowKind::all(a, b, name) })
    }

    /// Whether rows are equal to the bit on both sides, from row `i` of A and row `j` of B on. A false result does not
    /// mean that they differ.
    pub(crate) fn same_bits(&self, i: usize, j: usize, rows: usize) -> bool {
        self.cells.same_bits(i..i + rows, j..j + rows)
    }

    /// Whether row `i` of A and row `j` of B are of the same kind, so that their values are compared.
    #[inline]
    pub(crate) fn is_compared(&self, i: usize, j: usize) -> bool {
        self.kinds.is_empty() || self.is_same_kind(i, j)
    }

    #[inline(never)]
    fn is_same_kind(&self, i: usize, j: usize) -> bool {
        self.kinds.iter().all(|[a, b]| a.of(i) == b.of(j))
    }

    /// Compares row `i` of A with row `j` of B, which are of the same kind.
    pub(crate) fn compare(&self, i: usize, j: usize) -> CellComparison {
        let of_field = |codes: &[u32], measures: &[NumberComparison]| {
            codes.get(i).and_then(|code| measures.get(*code as usize)).copied().unwrap_or_default()
        };
        match &self.rule {
            Rule::Plain(measure) => self.cells.compare(i, j, *measure),
            Rule::ByField { codes, measures } => self.cells.compare(i, j, of_field(codes, measures)),
            Rule::Hash { .. } if self.cells.lacks_hash(i, j) => CellComparison::Same,
            Rule::Hash { ticks, tolerated } => match self.cells.compare(i, j, NumberComparison::default()) {
                CellComparison::Differs { .. } if ticks.get(i).is_some_and(|tick| tolerated.contains(tick)) => {
                    CellComparison::Within
                }
                compared => compared,
            },
            Rule::BitsOf { values, codes, measures } => match self.cells.compare(i, j, NumberComparison::default()) {
                CellComparison::Same | CellComparison::Within => CellComparison::Same,
                CellComparison::Differs { .. } => {
                    let measure = of_field(codes, measures);
                    match values.compare(i, j, measure) {
                        // Numbers that no float represents exactly. A tolerance applies to the floats.
                        CellComparison::Same if measure.within.is_none() => {
                            CellComparison::Differs { class: DifferenceClass::Difference, error: None }
                        }
                        CellComparison::Same | CellComparison::Within => CellComparison::Within,
                        // The column of the values already reports it.
                        CellComparison::Differs { .. } => CellComparison::Same,
                    }
                }
            },
        }
    }
}

fn both<'a>(a: &'a Table, b: &'a Table, name: &str) -> Option<CellPair<'a>> {
    CellPair::of(&a.column(name)?.data, &b.column(name)?.data)
}

/// How rows of two kinds are distinguished.
#[derive(Clone, Copy)]
enum RowKind<'a> {
    /// By whether a number is zero.
    Number(&'a [u32]),
    /// By whether a name is one of two.
    Name { codes: &'a [u32], of: [Option<u32>; 2] },
}

impl<'a> RowKind<'a> {
    /// The kinds that must be equal in the rows of A and B before a column's values are compared.
    pub(crate) fn all(a: &'a Table, b: &'a Table, column: &str) -> Vec<[RowKind<'a>; 2]> {
        let number = |by: &str| Some([RowKind::number(a, by)?, RowKind::number(b, by)?]);
        let name = |by: &str, of: [&str; 2]| Some([RowKind::name(a, by, of)?, RowKind::name(b, by, of)?]);
        let kinds = match a.name.as_str() {
            // Before a client has its own body there is nothing to compare. In a frame without a new usercmd, the
            // client shows the body that the server last confirmed.
            frames::NAME if column.starts_with("own.") || column.starts_with("drawn.") => {
                [number("has_body"), number("ran")]
            }
            effects::NAME if column != "predicted" => [number("predicted"), None],
            shots::NAME if !["predicted_reason", "reason"].contains(&column) => match shots::SCHEMA.column(column) {
                Some(ColumnSchema { role: ColumnRole::Plain | ColumnRole::Input, .. }) => [None, None],
                Some(ColumnSchema { role: ColumnRole::Predicted, .. }) => {
                    [name("predicted_reason", [NOT_PREDICTED; 2]), None]
                }
                // A column that a build adds counts as a value from the server.
                Some(ColumnSchema { role: ColumnRole::Judged | ColumnRole::Outcome, .. }) | None => {
                    [name("reason", [NOT_RUN, NO_SERVER]), None]
                }
            },
            _ => [None, None],
        };
        kinds.into_iter().flatten().collect()
    }

    /// Which of the two kinds a row has.
    pub(crate) fn of(&self, row: usize) -> bool {
        match self {
            RowKind::Number(numbers) => numbers.get(row).is_some_and(|number| *number != 0),
            RowKind::Name { codes, of } => codes.get(row).is_some_and(|code| of.contains(&Some(*code))),
        }
    }

    fn number(table: &'a Table, column: &str) -> Option<RowKind<'a>> {
        let numbers = table.u32s(column);
        (numbers.len() == table.rows()).then_some(RowKind::Number(numbers))
    }

    fn name(table: &'a Table, column: &str, of: [&str; 2]) -> Option<RowKind<'a>> {
        let ColumnData::Name { names, codes } = &table.column(column)?.data else { return None };
        let code = |name: &str| names.iter().position(|known| known == name).and_then(|code| u32::try_from(code).ok());
        Some(RowKind::Name { codes, of: of.map(code) })
    }
}

/// The differences between the columns of two tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ColumnDifference {
    /// Columns that B lacks.
    pub only_in_a: Vec<String>,
    /// Columns that A lacks.
    pub only_in_b: Vec<String>,
    /// Columns whose type differs in B; they are not compared.
    pub other_type: Vec<String>,
}

impl ColumnDifference {
    pub(crate) fn of(a: &Table, b: &Table) -> ColumnDifference {
        let lacking = |from: &Table, other: &Table| -> Vec<String> {
            from.columns.iter().filter(|c| other.column(&c.name).is_none()).map(|c| c.name.clone()).collect()
        };
        let retyped = |name: &&String| match (a.column(name), b.column(name)) {
            (Some(a), Some(b)) => a.data.type_name() != b.data.type_name(),
            _ => false,
        };
        ColumnDifference {
            only_in_a: lacking(a, b),
            only_in_b: lacking(b, a),
            other_type: a.columns.iter().map(|c| &c.name).filter(retyped).cloned().collect(),
        }
    }

    /// Whether a table lacks a column that counts.
    pub(crate) fn lacks(&self, on: DiffScope) -> bool {
        self.only_in_a.iter().chain(&self.only_in_b).any(|name| on.has_column(name))
    }

    pub(crate) fn types_differ(&self, on: DiffScope) -> bool {
        self.other_type.iter().any(|name| on.has_column(name))
    }
}

/// Why a table is inconsistent; `None` if it is consistent.
pub(crate) fn unsound(side: &str, table: &Table) -> Option<String> {
    let rows = table.rows();
    for (index, column) in table.columns.iter().enumerate() {
        let length = column.data.len();
        if length != rows {
            return Some(format!("in {side} its column `{}` has {length} values, and others have {rows}", column.name));
        }
        if table.columns[..index].iter().any(|before| before.name == column.name) {
            return Some(format!("in {side} it has two columns `{}`", column.name));
        }
        if let ColumnData::Name { names, codes } = &column.data
            && let Some(row) = codes.iter().position(|code| *code as usize >= names.len())
        {
            let (code, known) = (codes[row], names.len());
            return Some(format!("in {side} row {row} of `{}` has the name {code}, of {known}", column.name));
        }
    }
    None
}
