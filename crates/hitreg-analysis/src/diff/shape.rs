//! Checks that tables are consistent, and compares their columns.

use serde::Serialize;

use super::options::DiffScope;
use hitreg_log::trace::{ColumnData, Table};

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
