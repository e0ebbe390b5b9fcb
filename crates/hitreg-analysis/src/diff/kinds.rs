//! The kind of a row's values, such as predicted or reported by the server, judged or not judged. Values of different
//! kinds are never compared. The column that holds the kind shows the difference.

use hitreg_log::trace::schema::{ColumnRole, ColumnSchema, NO_SERVER, NOT_RUN, effects, frames, shots};
use hitreg_log::trace::{ColumnData, Table};

/// How rows of two kinds are distinguished.
#[derive(Clone, Copy)]
pub(crate) enum RowKind<'a> {
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
                    [name("predicted_reason", ["not predicted"; 2]), None]
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
