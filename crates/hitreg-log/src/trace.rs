//! What one replay put out: a set of tables that name their own columns, so that a build in any language can write
//! one, and every table can be compared, exported and read without knowing the game.
//!
//! A build fills tables that hitreg knows ([`schema`]) and tables of its own, which say what tells their rows apart:
//!
//! ```
//! use hitreg_log::trace::{Column, Data, Table, Trace, TraceHeader, schema::ticks};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut ticks = ticks::Writer::default();
//! for tick in 1..=3 {
//!     ticks.push(ticks::Row { tick, at_us: i64::from(tick) * 16_667, hash: 0x1234 });
//! }
//! let spells = vec![
//!     Column::new("tick", Data::U32(vec![1, 1, 2])),
//!     Column::new("player", Data::U32(vec![0, 1, 0])),
//!     Column::new("range", Data::F32(vec![300.0, 250.0, 310.0])).in_unit("units"),
//! ];
//! let trace = Trace {
//!     header: TraceHeader { game: "mygame".into(), mode: "closed".into(), ..TraceHeader::default() },
//!     tables: vec![ticks.finish(vec![]), Table::new("spells", spells).keyed_by(["tick", "player"])],
//! };
//! let file = hitreg_log::log::write_trace(Vec::new(), &trace)?;
//! assert_eq!(hitreg_log::log::read_trace(&file[..])?, trace);
//! # Ok(())
//! # }
//! ```

mod data;
pub mod digest;
pub mod schema;
mod series;
mod source;

pub use data::Data;
use data::no_values;
pub use digest::{Digest, TableDigest};
pub use series::Series;
pub use source::{NextRows, SharedTrace, TraceSource};
pub use source::{each_part, gathered};

use serde::{Deserialize, Serialize};

use crate::units::{ClockTime, Micros};

/// The tables of one replay of one log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What was replayed, and how.
    pub header: TraceHeader,
    /// The tables, each name once.
    pub tables: Vec<Table>,
}

/// What was replayed, and how. None of it counts in the [`Trace::digest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The game of the log.
    pub game: String,
    /// `closed` or `open`.
    pub mode: String,
    /// Digest of the log that was replayed, in hexadecimal.
    pub log_digest: String,
    /// The settings in force.
    pub settings: Vec<(String, String)>,
    /// From when to when, which is no part of it any more, where it is not of the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<[Micros; 2]>,
}

impl Trace {
    /// Appends rows to the table of their name, which begins with them where there is none.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub fn append(&mut self, rows: Table) -> Result<(), String> {
        match self.tables.iter_mut().find(|table| table.name == rows.name) {
            Some(table) => table.append(rows),
            None => {
                self.tables.push(rows);
                Ok(())
            }
        }
    }
}

impl TraceHeader {
    /// Whether clients were replayed alone: player by player, without a server and its ticks.
    pub fn is_open(&self) -> bool {
        self.mode.starts_with("open")
    }

    /// `0:20 to 0:30.5` where it is of that part alone.
    pub fn part_shown(&self) -> Option<String> {
        self.part.map(|[from, to]| format!("{} to {}", ClockTime(from), ClockTime(to)))
    }
}

/// Rows of named, typed columns, all of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// One of those in [`schema::TABLES`], or a build's own.
    pub name: String,
    /// The columns that tell the rows of a build's own table apart; empty where that is not said, and all columns do. It does
    /// not count in the [`Trace::digest`].
    pub key: Vec<String>,
    /// The columns in order.
    pub columns: Vec<Column>,
}

/// One named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name: `at_us`, `view_error_units`.
    pub name: String,
    /// What its values are measured in; empty where that is not said. Degrees come round again ([`Column::is_angle`]).
    /// It does not count in the [`Trace::digest`].
    pub unit: String,
    /// Its values.
    pub data: Data,
}

/// A column of names as it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'t> {
    /// The names.
    pub names: &'t [String],
    /// A code for each row.
    pub codes: &'t [u32],
}

impl<'t> Names<'t> {
    /// The name in a row; empty where there is none.
    pub fn get(self, row: usize) -> &'t str {
        self.codes.get(row).map_or("", |code| self.name_of(*code))
    }

    /// The names of all rows.
    pub fn iter(self) -> impl Iterator<Item = &'t str> {
        self.codes.iter().map(move |code| self.name_of(*code))
    }

    fn name_of(self, code: u32) -> &'t str {
        self.names.get(code as usize).map_or("", String::as_str)
    }
}

impl Column {
    /// A column that does not say its unit.
    pub fn new(name: impl Into<String>, data: Data) -> Column {
        Column { name: name.into(), unit: String::new(), data }
    }

    /// The same column, measured in something.
    #[must_use]
    pub fn in_unit(self, unit: impl Into<String>) -> Column {
        Column { unit: unit.into(), ..self }
    }

    /// Whether its values come round again after 360: it says that they are degrees, or does not say and is named as an
    /// angle, which is how traces before 1.2 tell.
    pub fn is_angle(&self) -> bool {
        if self.unit.is_empty() { named_as_angle(&self.name) } else { self.unit == "degrees" }
    }
}

/// Whether a column or field that does not say its unit is an angle by its name: `pitch`, `yaw`, `roll`, `angles.x`,
/// `own.viewangles.y`.
pub fn named_as_angle(name: &str) -> bool {
    name.split('.').any(|part| matches!(part, "viewangles" | "angles" | "pitch" | "yaw" | "roll"))
}

impl Table {
    /// A table that does not say what tells its rows apart.
    pub fn new(name: impl Into<String>, columns: Vec<Column>) -> Table {
        Table { name: name.into(), key: Vec::new(), columns }
    }

    /// The same table, whose rows are told apart by these columns.
    #[must_use]
    pub fn keyed_by<'k>(self, key: impl IntoIterator<Item = &'k str>) -> Table {
        Table { key: key.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// The number of rows: the length of the shortest column.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(|c| c.data.len()).min().unwrap_or(0)
    }

    /// Appends rows that come later. A column of names may have more of them by now; one that was left out because no row had a
    /// value has none in the rows that lack it.
    ///
    /// # Errors
    /// When they are rows of another table.
    pub fn append(&mut self, later: Table) -> Result<(), String> {
        if later.rows() == 0 {
            return Ok(());
        }
        if self.rows() == 0 {
            *self = later;
            return Ok(());
        }
        let (before, count) = (self.rows(), later.rows());
        for (place, column) in later.columns.into_iter().enumerate() {
            if self.columns.get(place).is_none_or(|known| known.name != column.name)
                && self.column(&column.name).is_none()
            {
                let none = Column { data: no_values(&column.data, before), ..column.clone() };
                self.columns.insert(place.min(self.columns.len()), none);
            }
            let known = self.columns.iter_mut().find(|known| known.name == column.name);
            let name = &column.name;
            let fits = known.is_some_and(|known| known.data.append(column.data));
            if !fits {
                return Err(format!("column {name:?} has another type or other names here than where it began"));
            }
        }
        for column in self.columns.iter_mut().filter(|column| column.data.len() == before) {
            let none = no_values(&column.data, count);
            column.data.append(none);
        }
        let all = |column: &Column| column.data.len() == before + count;
        if self.columns.iter().all(all) {
            return Ok(());
        }
        Err(format!("table {:?} has other columns here than where it began", self.name))
    }

    /// Adds the columns, and their names, that more rows of a table have: those of a table without rows are theirs alone.
    pub fn widen(&mut self, more: Table, first: bool) {
        if first {
            self.columns = more.columns;
            return;
        }
        for (place, column) in more.columns.into_iter().enumerate() {
            match self.columns.iter_mut().find(|known| known.name == column.name) {
                Some(known) => match (&mut known.data, column.data) {
                    (Data::Name { names, .. }, Data::Name { names: more, .. }) if more.len() > names.len() => {
                        *names = more;
                    }
                    _ => {}
                },
                None => self.columns.insert(place.min(self.columns.len()), column),
            }
        }
    }

    /// The table and its columns, and none of its rows.
    pub fn without_rows(&self) -> Table {
        let none = |data: &Data| match data {
            Data::U32(_) => Data::U32(Vec::new()),
            Data::U64(_) => Data::U64(Vec::new()),
            Data::I64(_) => Data::I64(Vec::new()),
            Data::F32(_) => Data::F32(Vec::new()),
            Data::Name { names, .. } => Data::Name { names: names.clone(), codes: Vec::new() },
        };
        let columns = self.columns.iter().map(|column| Column {
            name: column.name.clone(),
            unit: column.unit.clone(),
            data: none(&column.data),
        });
        Table { name: self.name.clone(), key: self.key.clone(), columns: columns.collect() }
    }

    /// Rows of this table with all its columns, those that they lack without values.
    pub fn filled(&self, rows: Table) -> Table {
        let count = rows.rows();
        let mut columns = rows.columns;
        for (place, known) in self.columns.iter().enumerate() {
            if !columns.iter().any(|column| column.name == known.name) {
                let none = Column { data: no_values(&known.data, count), ..known.clone() };
                columns.insert(place.min(columns.len()), none);
            }
        }
        Table { columns, ..rows }
    }

    /// Some of its rows.
    pub fn select(&self, rows: &[u32]) -> Table {
        let columns = self.columns.iter().map(|c| Column {
            data: c.data.select(rows),
            ..Column::new(&c.name, Data::U32(Vec::new())).in_unit(&c.unit)
        });
        Table { name: self.name.clone(), key: self.key.clone(), columns: columns.collect() }
    }

    /// What its rows take in memory, in bytes.
    pub fn row_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.data.len() * column.data.width()).sum()
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// A column of type `u32`; empty where there is none of this name and type.
    pub fn u32s(&self, name: &str) -> &[u32] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::U32(values)) => values,
            _ => &[],
        }
    }

    /// The same of type `u64`.
    pub fn u64s(&self, name: &str) -> &[u64] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::U64(values)) => values,
            _ => &[],
        }
    }

    /// The same of type `i64`.
    pub fn i64s(&self, name: &str) -> &[i64] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::I64(values)) => values,
            _ => &[],
        }
    }

    /// The same of type `f32`.
    pub fn f32s(&self, name: &str) -> &[f32] {
        match self.column(name).map(|c| &c.data) {
            Some(Data::F32(values)) => values,
            _ => &[],
        }
    }

    /// The same of type `name`.
    pub fn names(&self, name: &str) -> Names<'_> {
        match self.column(name).map(|c| &c.data) {
            Some(Data::Name { names, codes }) => Names { names, codes },
            _ => Names::default(),
        }
    }
}

impl Trace {
    /// A table by name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_told_by_their_unit_and_else_by_their_name() {
        let column = |name: &str, unit: &str| Column::new(name, Data::F32(Vec::new())).in_unit(unit);
        for name in ["yaw", "pitch", "viewangles.x", "own.viewangles.z"] {
            assert!(column(name, "").is_angle(), "{name}");
        }
        assert!(column("heading", "degrees").is_angle() && !column("heading", "").is_angle());
        assert!(!column("yaw", "rad").is_angle() && !column("aim_off_degrees", "").is_angle());
    }
}
