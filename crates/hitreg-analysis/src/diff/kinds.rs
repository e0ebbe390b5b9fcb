//! What kind of value a row has: predicted or told by the server, judged or not. Values of different kinds are never compared;
//! that the kinds differ shows in the column that tells them apart.

use hitreg_log::trace::schema::{ColumnSchema, Role, effects, frames, shots};
use hitreg_log::trace::{Data, Table};

/// What tells two kinds of rows apart.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// A number that is zero or not.
    Number(&'a [u32]),
    /// One name or any other.
    Name { codes: &'a [u32], name: Option<u32> },
}

impl<'a> Kind<'a> {
    /// What the rows of A and of B must have in common for a column of theirs to be compared.
    pub(crate) fn all(a: &'a Table, b: &'a Table, column: &str) -> Vec<[Kind<'a>; 2]> {
        let number = |by: &str| Some([Kind::number(a, by)?, Kind::number(b, by)?]);
        let name = |by: &str, name: &str| Some([Kind::name(a, by, name)?, Kind::name(b, by, name)?]);
        let kinds = match a.name.as_str() {
            // Where one run has no body of its own yet, there is nothing to compare with. Where it ran no usercmd for a frame it
            // shows what the server last confirmed.
            frames::NAME if column.starts_with("own.") || column.starts_with("drawn.") => {
                [number("has_body"), number("ran")]
            }
            effects::NAME if column != "predicted" => [number("predicted"), None],
            shots::NAME if !["predicted_reason", "reason"].contains(&column) => match shots::SCHEMA.column(column) {
                Some(ColumnSchema { role: Role::Plain | Role::Input, .. }) => [None, None],
                Some(ColumnSchema { role: Role::Predicted, .. }) => [name("predicted_reason", "not predicted"), None],
                // What a build has of its own is taken for the server's word.
                Some(ColumnSchema { role: Role::Judged | Role::Outcome, .. }) | None => {
                    [name("reason", "not run"), None]
                }
            },
            _ => [None, None],
        };
        kinds.into_iter().flatten().collect()
    }

    /// Of which of the two kinds a row is.
    pub(crate) fn of(&self, row: usize) -> bool {
        match self {
            Kind::Number(numbers) => numbers.get(row).is_some_and(|number| *number != 0),
            Kind::Name { codes, name } => name.is_some() && codes.get(row).copied() == *name,
        }
    }

    fn number(table: &'a Table, column: &str) -> Option<Kind<'a>> {
        let numbers = table.u32s(column);
        (numbers.len() == table.rows()).then_some(Kind::Number(numbers))
    }

    fn name(table: &'a Table, column: &str, name: &str) -> Option<Kind<'a>> {
        let Data::Name { names, codes } = &table.column(column)?.data else { return None };
        let code = names.iter().position(|known| known == name).and_then(|code| u32::try_from(code).ok());
        Some(Kind::Name { codes, name: code })
    }
}
