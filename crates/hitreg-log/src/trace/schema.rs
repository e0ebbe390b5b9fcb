//! The tables of a trace, each declared once in [`tables`]: its columns with type, unit and meaning, what tells its rows
//! apart, and when two rows may be compared. From a declaration come a writer, a reader and the tables in docs/format.md.
//!
//! Each table is a module named after it: a replay pushes [`shots::Row`] into a
//! [`shots::Writer`], and a report reads [`shots::Columns`]. To add a
//! column, add its line there, and the compiler asks for its value wherever rows are pushed.
//!
//! A build may leave out any of these tables and columns, and have others of its own: a reader finds nothing where there
//! is nothing, and what is unknown here is compared and shown by its name alone.

mod declare;
mod document;
mod kinds;
mod set;
pub mod tables;
mod usercmd;

pub use document::document;
pub(crate) use kinds::NONE;
pub use kinds::{
    Code, Kind, NameCells, OptionalBits, OptionalCode, OptionalMeasure, OptionalNumber, OptionalText, Text,
};
pub use set::TableSet;
pub use tables::*;

/// One table, as it is declared.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// The columns that tell its rows apart, in the order in which rows of the same time are sorted.
    pub key: &'static [&'static str],
    /// Those of them that say whose row it is: a series of rows is one entity's, or one player's.
    pub series: &'static [&'static str],
    /// When rows with the same key may be compared.
    pub joined: Joined,
    /// What of a session it is about.
    pub about: About,
    /// Of differences in one moment, those of a table with a lower rank may have led to those of a higher one. Predictions
    /// cannot lead to anything that the server did in the same moment; the server's state can.
    pub rank: usize,
    /// Since which format of traces, as [`ColumnSchema::since`]. One that came later than the first is written where it is asked for.
    pub since: (u16, u16),
    /// The fields of the game's bodies follow the columns, each name after this prefix.
    pub fields: Option<&'static str>,
    /// The columns, in their order.
    pub columns: &'static [ColumnSchema],
}

/// One column, as it is declared.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSchema {
    /// Its name; `at` is `at.x`, `at.y` and `at.z` if it has three parts.
    pub name: &'static str,
    /// What a value is.
    pub doc: &'static str,
    /// Its type in files.
    pub kind: &'static str,
    /// Its parts: `[""]`, or `.x`, `.y` and `.z`.
    pub parts: &'static [&'static str],
    /// What it is measured in.
    pub unit: Unit,
    /// Since which format of traces, major and minor. What came later than the first may be lacking in the trace of an older
    /// build, and that is no difference.
    pub since: (u16, u16),
    /// Whether it is left out where no row has a value.
    pub optional: bool,
    /// Whose word it is.
    pub role: Role,
    /// The names in it that are known beforehand.
    pub names: &'static [&'static str],
}

/// The `index` that a projectile's impact has in `shots`; its shot has one of its own.
pub const IMPACT: u8 = u8::MAX;

/// The first format of traces.
pub const FIRST: (u16, u16) = (1, 0);

/// When rows with the same key may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Always.
    Always,
    /// When they are of the same time; that they are not is a difference of its own.
    AtSameTime,
    /// When what they hang on (their tick, their client frame) is of the same time.
    WithTheirTime,
}

/// What of a session a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// What players did, and what ran of it.
    Input,
    /// The server's state.
    State,
    /// Who was hit.
    Hits,
    /// Predictions that the server corrected.
    Corrections,
    /// What clients drew.
    Views,
    /// What clients played.
    Effects,
    /// What went over the network.
    Network,
}

/// What the values of a column are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nothing: a number, a name.
    None,
    /// Yes or no.
    Flag,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// The game's units of length.
    Units,
    /// The same in a second.
    UnitsPerSecond,
    /// Degrees, which come round again: from 355 to 0 it is 5.
    Degrees,
}

/// Whose word the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The row's.
    Plain,
    /// The player's: what the usercmd asks for.
    Input,
    /// The client's, about something that the server may see otherwise.
    Predicted,
    /// The server's, about something that the client predicted.
    Judged,
    /// The same, and what became of a shot.
    Outcome,
}

impl Unit {
    /// Its name; empty for what has none.
    pub fn name(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Flag => "0 or 1",
            Unit::Micros => "µs",
            Unit::Millis => "ms",
            Unit::Units => "units",
            Unit::UnitsPerSecond => "units/s",
            Unit::Degrees => "degrees",
        }
    }
}

impl TableSchema {
    const PLAIN: TableSchema = TableSchema {
        name: "",
        doc: "",
        key: &[],
        series: &[],
        joined: Joined::WithTheirTime,
        about: About::State,
        rank: usize::MAX,
        since: FIRST,
        fields: None,
        columns: &[],
    };

    /// The declaration of a table; `None` for a build's own.
    pub fn of(name: &str) -> Option<&'static TableSchema> {
        TABLES.iter().copied().find(|table| table.name == name)
    }

    /// The declaration of a column, by its whole name or that of its parts together; `None` for a build's own.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        self.columns.iter().find(|column| column.is(name))
    }

    /// The names that a column is known to have, whether they come up or not.
    fn known(&self, column: &str) -> &'static [&'static str] {
        self.column(column).map_or(&[], |column| column.names)
    }

    /// The whole names of the columns that have a role.
    pub fn names_of(&self, role: Role) -> impl Iterator<Item = &'static str> + use<> {
        self.columns.iter().filter(move |column| column.role == role).map(|column| column.name)
    }
}

impl ColumnSchema {
    const fn plain(
        name: &'static str,
        doc: &'static str,
        kind: &'static str,
        parts: &'static [&'static str],
    ) -> ColumnSchema {
        ColumnSchema {
            name,
            doc,
            kind,
            parts,
            unit: Unit::None,
            since: FIRST,
            optional: false,
            role: Role::Plain,
            names: &[],
        }
    }

    fn is(&self, name: &str) -> bool {
        name.strip_prefix(self.name).is_some_and(|rest| rest.is_empty() || self.parts.contains(&rest))
    }
}
