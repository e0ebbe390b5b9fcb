//! What one replay put out: a set of tables that name their own columns, so that a build in any language can write
//! one, and every table can be compared, exported and read without knowing the game.
//!
//! A build fills tables that hitreg knows ([`schema`]) and tables of its own, which say what tells their rows apart:
//!
//! ```
//! use hitreg::trace::{Column, Data, Table, Trace, TraceHeader, schema::ticks};
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
//! let file = hitreg::log::write_trace(Vec::new(), &trace)?;
//! assert_eq!(hitreg::log::read_trace(&file[..])?, trace);
//! # Ok(())
//! # }
//! ```

pub mod schema;
mod series;

pub use series::Series;

#[cfg(feature = "pipelines")]
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use schema::{FIRST, TableSchema};

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

/// A column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Counts, numbers, flags.
    U32(Vec<u32>),
    /// Hashes.
    U64(Vec<u64>),
    /// Times in microseconds, and signed numbers.
    I64(Vec<i64>),
    /// Measures. NaN where there is none.
    F32(Vec<f32>),
    /// One of some names; a code is the name's place in the list.
    Name {
        /// The names.
        names: Vec<String>,
        /// A code for each row.
        codes: Vec<u32>,
    },
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

impl Data {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Data::U32(v) => v.len(),
            Data::U64(v) => v.len(),
            Data::I64(v) => v.len(),
            Data::F32(v) => v.len(),
            Data::Name { codes, .. } => codes.len(),
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type's name in files: `u32`, `u64`, `i64`, `f32`, `name`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Data::U32(_) => "u32",
            Data::U64(_) => "u64",
            Data::I64(_) => "i64",
            Data::F32(_) => "f32",
            Data::Name { .. } => "name",
        }
    }
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

    /// The digest of one table: XXH3-128 over its name, its number of columns, and for each column its name, its type's
    /// name, its number of values and its values, little endian. Names are followed by a zero byte, numbers are 64 bits
    /// wide, and a `name` column has its list of names before its codes, which are bytes unless there are more than 256 names.
    pub fn digest(&self) -> Digest {
        let mut hasher = Xxh3Default::new();
        text(&mut hasher, &self.name);
        number(&mut hasher, self.columns.len());
        for column in &self.columns {
            text(&mut hasher, &column.name);
            text(&mut hasher, column.data.type_name());
            number(&mut hasher, column.data.len());
            values(&mut hasher, &column.data);
        }
        Digest(hasher.digest128())
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

    /// The digest of all tables but those that are written only where they are asked for, so that it is the same whoever asks: XXH3-128 over the tables' own digests in order, 16 bytes each, little endian.
    /// How a trace is stored does not change it.
    pub fn digest(&self) -> Digest {
        let asked_for = |table: &&Table| TableSchema::of(&table.name).is_some_and(|declared| declared.since != FIRST);
        #[cfg(feature = "pipelines")]
        let tables = self.tables.par_iter();
        #[cfg(not(feature = "pipelines"))]
        let tables = self.tables.iter();
        let digests: Vec<Digest> = tables.filter(|table| !asked_for(table)).map(Table::digest).collect();
        let mut hasher = Xxh3Default::new();
        for digest in digests {
            hasher.update(&digest.0.to_le_bytes());
        }
        Digest(hasher.digest128())
    }
}

/// A 128-bit digest, shown in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of plain bytes: XXH3-128.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(xxhash_rust::xxh3::xxh3_128(bytes))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

fn text(hasher: &mut Xxh3Default, text: &str) {
    hasher.update(text.as_bytes());
    hasher.update(&[0]);
}

fn number(hasher: &mut Xxh3Default, number: usize) {
    hasher.update(&(number as u64).to_le_bytes());
}

fn values(hasher: &mut Xxh3Default, data: &Data) {
    match data {
        Data::U32(v) => little_endian(hasher, v, |x| x.to_le_bytes()),
        Data::U64(v) => little_endian(hasher, v, |x| x.to_le_bytes()),
        Data::I64(v) => little_endian(hasher, v, |x| x.to_le_bytes()),
        Data::F32(v) => little_endian(hasher, v, |x| x.to_bits().to_le_bytes()),
        Data::Name { names, codes } => {
            number(hasher, names.len());
            for name in names {
                text(hasher, name);
            }
            // As they were when no column had room for more.
            if names.len() <= 256 {
                little_endian(hasher, codes, |code| [code as u8]);
            } else {
                little_endian(hasher, codes, u32::to_le_bytes);
            }
        }
    }
}

fn little_endian<T: Copy, const N: usize>(hasher: &mut Xxh3Default, values: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let mut block = [0u8; 1024];
    for part in values.chunks(1024 / N) {
        for (to, value) in block.chunks_exact_mut(N).zip(part) {
            to.copy_from_slice(&bytes(*value));
        }
        hasher.update(&block[..part.len() * N]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(data: Data) -> Trace {
        let columns = vec![Column::new("c", data)];
        Trace { tables: vec![Table::new("t", columns)], ..Trace::default() }
    }

    #[test]
    fn the_digest_sees_values_types_and_signs_of_zero() {
        let digests = [
            trace(Data::U32(vec![0])),
            trace(Data::U32(vec![0, 0])),
            trace(Data::F32(vec![0.0])),
            trace(Data::F32(vec![-0.0])),
            trace(Data::Name { names: vec!["a".into()], codes: vec![0] }),
            trace(Data::Name { names: vec!["b".into()], codes: vec![0] }),
        ]
        .map(|t| t.digest());
        let mut unique = digests.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), digests.len());
    }

    #[test]
    fn angles_are_told_by_their_unit_and_else_by_their_name() {
        let column = |name: &str, unit: &str| Column::new(name, Data::F32(Vec::new())).in_unit(unit);
        for name in ["yaw", "pitch", "viewangles.x", "own.viewangles.z"] {
            assert!(column(name, "").is_angle(), "{name}");
        }
        assert!(column("heading", "degrees").is_angle() && !column("heading", "").is_angle());
        assert!(!column("yaw", "rad").is_angle() && !column("aim_off_degrees", "").is_angle());
    }

    #[test]
    fn the_header_does_not_count() {
        let mut other = trace(Data::U64(vec![7]));
        other.header.mode = "open".into();
        assert_eq!(other.digest(), trace(Data::U64(vec![7])).digest());
    }
}
