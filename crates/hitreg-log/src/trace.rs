//! The output of one replay: a set of tables that describe their own columns. A build in any language can write a
//! trace. hitreg can compare, export and print every table without knowing the game.
//!
//! A build fills the tables that hitreg declares ([`schema`]) and custom tables, which declare their own key columns:
//!
//! ```
//! use hitreg_log::trace::{Column, ColumnData, Table, Trace, TraceHeader, schema::ticks};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut ticks = ticks::Writer::default();
//! for tick in 1..=3 {
//!     ticks.push(ticks::Row { tick, at_us: i64::from(tick) * 16_667, hash: 0x1234 });
//! }
//! let spells = vec![
//!     Column::new("tick", ColumnData::U32(vec![1, 1, 2])),
//!     Column::new("player", ColumnData::U32(vec![0, 1, 0])),
//!     Column::new("range", ColumnData::F32(vec![300.0, 250.0, 310.0])).in_unit("units"),
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

pub mod digest;
pub mod schema;
mod source;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use digest::{Digest, TableDigest};
pub use source::{
    ColumnSpan, NextRows, Series, SharedTrace, TraceReadError, TraceSource, body_tables, each_part, select_rows,
};

use crate::record::{CellKind, GapRecord, Origin, ReplayScope, Session, SessionHeader, SessionId, TextCode, Texts};
use crate::recorder::Y_AXIS;
use crate::sorted::{SortedMap, SortedSet};
use crate::units::{ClockTime, Micros, Seed};
use schema::NONE;

/// The tables of one replay of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The replayed log and the replay's mode and settings.
    pub header: TraceHeader,
    /// The tables, each name once.
    pub tables: Vec<Table>,
}

/// The replayed log and the replay's mode and settings. It does not count in the [`Trace::digest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// Name of the log's game.
    pub game: String,
    /// How the rows came about: `closed` (a replay with the server), `open` (clients alone) or `recorded` (a log's own
    /// records). `, open` or `, rejudged` may follow.
    pub mode: String,
    /// [`Digest`] of the log's bytes, in hexadecimal. Empty if the build did not write it. See
    /// [`TraceHeader::is_of_same_log`].
    pub log_digest: String,
    /// The settings of the replay.
    pub settings: Vec<(String, String)>,
    /// Start and end (exclusive) of the replayed part; `None` for the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<[Micros; 2]>,
    /// The recorded session; `None` if the build did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionSource>,
    /// The missing parts of the session; empty if there are none, or if the build did not write them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapRecord>,
    /// The optional commands of the build that wrote the trace, such as [`STEP`] and [`RECORD`]. hitreg calls no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// The capability to run single usercmds: `BUILD step LOG … -o FILE`.
pub const STEP: &str = "step";
/// The capability to record a replay as a log: `BUILD replay LOG --record LOG`.
pub const RECORD: &str = "record";

impl Trace {
    /// Appends rows to the table of their name. If there is no such table, the rows become it.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub fn append(&mut self, rows: Table) -> Result<(), TraceReadError> {
        match self.tables.iter_mut().find(|table| table.name == rows.name) {
            Some(table) => table.append(rows),
            None => {
                self.tables.push(rows);
                Ok(())
            }
        }
    }

    /// Returns a table by name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

impl TraceHeader {
    /// Returns the header of a trace of all of a session, without the digest of its log.
    pub fn of(session: &Session, mode: &str) -> TraceHeader {
        TraceHeader {
            game: session.header.game.clone(),
            mode: mode.to_owned(),
            settings: session.header.settings.clone(),
            session: Some(SessionSource::of(&session.header)),
            gaps: session.gaps_after_start(),
            ..TraceHeader::default()
        }
    }

    /// Returns whether two traces are of one log; `None` if one of them does not say of which log it is.
    pub fn is_of_same_log(&self, other: &TraceHeader) -> Option<bool> {
        let [log, other] = [&self.log_digest, &other.log_digest];
        (!log.is_empty() && !other.is_empty()).then(|| log == other)
    }

    /// Returns whether y points down in the game's world (`Description::y_down`).
    pub fn is_y_down(&self) -> bool {
        self.settings.iter().any(|(key, value)| key == Y_AXIS && value == "down")
    }

    /// Returns whether the build that wrote the trace has an optional command.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }

    /// Returns whether the trace is without a server and its ticks: of a replay in open loop, player by player, or of the
    /// records of a client's log.
    pub fn is_open(&self) -> bool {
        self.mode.split(", ").any(|word| word == "open")
    }

    /// Returns what the replay ran. The rows say whether it judged shots, and which players' clients ran.
    pub fn scope(&self, has_judged_shots: bool, clients: Option<SortedSet<u32>>) -> ReplayScope {
        let is_rejudged = self.mode.split(", ").any(|word| word == "rejudged");
        ReplayScope { is_open: self.is_open(), is_rejudged, has_judged_shots, clients }
    }

    /// Returns whether the trace has the records of a log, and is of no replay.
    pub fn is_recorded(&self) -> bool {
        self.mode.split(", ").any(|word| word == "recorded")
    }

    /// Returns whether the trace is of one client's own log, whose times are those of the client's clock.
    pub fn is_of_one_client(&self) -> bool {
        self.is_open() && self.session.as_ref().is_some_and(|session| session.id.is_some())
    }

    /// Returns the replayed part as text, such as `0:20 to 0:30.5`; `None` for the whole session.
    pub fn part_shown(&self) -> Option<String> {
        self.part.map(|[from, to]| format!("{} to {}", ClockTime(from), ClockTime(to)))
    }
}

/// A table of named, typed columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name of the table: one in [`schema::TABLES`], or a custom one.
    pub name: String,
    /// The key columns of a custom table. Without key columns, all columns together are the key. The key does not count
    /// in the [`Trace::digest`].
    pub key: Vec<String>,
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column: `at_us`, `view_error_units`.
    pub name: String,
    /// Unit of the values; empty if unknown. Degrees wrap at 360 ([`Column::is_angle`]). The unit does not count in the
    /// [`Trace::digest`].
    pub unit: String,
    /// The values.
    pub data: ColumnData,
}

/// A view of a column of names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameColumn<'t> {
    /// The distinct names.
    pub names: &'t [String],
    /// Index of each row's name in `names`.
    pub codes: &'t [u32],
}

impl<'t> NameColumn<'t> {
    /// Returns the name in a row; empty if the row or the name does not exist.
    pub fn get(self, row: usize) -> &'t str {
        self.codes.get(row).map_or("", |code| self.name_of(*code))
    }

    /// Iterates over the names of all rows.
    pub fn iter(self) -> impl Iterator<Item = &'t str> {
        self.codes.iter().map(move |code| self.name_of(*code))
    }

    fn name_of(self, code: u32) -> &'t str {
        self.names.get(code as usize).map_or("", String::as_str)
    }
}

impl Column {
    /// Returns a column without a unit.
    pub fn new(name: impl Into<String>, data: ColumnData) -> Column {
        Column { name: name.into(), unit: String::new(), data }
    }

    /// Returns the column with a unit.
    #[must_use]
    pub fn in_unit(self, unit: impl Into<String>) -> Column {
        Column { unit: unit.into(), ..self }
    }

    /// Returns whether the values wrap at 360. Either the unit is degrees, or there is no unit and the name denotes an
    /// angle.
    pub fn is_angle(&self) -> bool {
        if self.unit.is_empty() { named_as_angle(&self.name) } else { self.unit == "degrees" }
    }

    /// Returns whether the values are hashes: they have type `u64`, and `hash` as their unit or as a word of their name.
    /// Hashes are shown in hexadecimal, and no difference between two of them has a size.
    pub fn is_hash(&self) -> bool {
        let is_named = || self.name.split(['.', '_']).any(|word| word == "hash");
        matches!(self.data, ColumnData::U64(_)) && (self.unit == "hash" || self.unit.is_empty() && is_named())
    }

    /// Returns whether a row has no value: a float that is NaN, or a hash of 0.
    pub fn is_missing(&self, row: usize) -> bool {
        match &self.data {
            ColumnData::F32(values) => values[row].is_nan(),
            ColumnData::F64(values) => values[row].is_nan(),
            ColumnData::U64(values) => values[row] == schema::NO_HASH && self.is_hash(),
            _ => false,
        }
    }
}

/// Returns whether the name of a column or field without a unit denotes an angle: `pitch`, `yaw`, `roll`, `angles.x`,
/// `own.viewangles.y`.
pub fn named_as_angle(name: &str) -> bool {
    name.split('.').any(|part| matches!(part, "viewangles" | "angles" | "pitch" | "yaw" | "roll"))
}

macro_rules! typed_values {
    ($($name:ident $variant:ident $type:ident),*) => { $(
        #[doc = concat!("Returns the values of a `", stringify!($type), "` column; empty if there is none of this name and type.")]
        pub fn $name(&self, name: &str) -> &[$type] {
            match self.column(name).map(|column| &column.data) {
                Some(ColumnData::$variant(values)) => values,
                _ => &[],
            }
        }
    )* };
}

impl Table {
    /// Returns a table without key columns.
    pub fn new(name: impl Into<String>, columns: Vec<Column>) -> Table {
        Table { name: name.into(), key: Vec::new(), columns }
    }

    /// Returns the table with these key columns.
    #[must_use]
    pub fn keyed_by<'k>(self, key: impl IntoIterator<Item = &'k str>) -> Table {
        Table { key: key.into_iter().map(str::to_owned).collect(), ..self }
    }

    /// Returns the number of rows: the length of the shortest column.
    pub fn rows(&self) -> usize {
        self.columns.iter().map(|c| c.data.len()).min().unwrap_or(0)
    }

    /// Appends later rows. A column of names may have gained names. An optional column that only one of the parts has
    /// gets the value `none` in the rows of the other.
    ///
    /// # Errors
    /// When the rows have columns that do not fit this table.
    pub fn append(&mut self, later: Table) -> Result<(), TraceReadError> {
        if later.rows() == 0 {
            return Ok(());
        }
        if self.rows() == 0 {
            *self = later;
            return Ok(());
        }
        self.check_columns(&later)?;
        let later = self.filled(later);
        self.add_columns(&later, self.rows());
        for column in later.columns {
            if let Some(known) = self.columns.iter_mut().find(|known| known.name == column.name) {
                known.data.append(column.data);
            }
        }
        Ok(())
    }

    /// Checks whether more rows may have these columns. Only columns of names may appear, disappear, or get more names.
    pub(crate) fn check_columns(&self, more: &Table) -> Result<(), String> {
        for column in &more.columns {
            let fits = match (self.column(&column.name).map(|known| &known.data), &column.data) {
                (Some(ColumnData::Name { names, .. }), ColumnData::Name { names: more, .. }) => {
                    let common = names.len().min(more.len());
                    names[..common] == more[..common]
                }
                (Some(known), data) => known.type_name() == data.type_name(),
                (None, data) => matches!(data, ColumnData::Name { .. }),
            };
            if !fits {
                let name = &column.name;
                return Err(format!("column {name:?} has another type or other names here than where it began"));
            }
        }
        let is_lacking =
            |known: &Column| !matches!(known.data, ColumnData::Name { .. }) && more.column(&known.name).is_none();
        match self.columns.iter().any(is_lacking) {
            true => Err(format!("table {:?} has other columns here than where it began", self.name)),
            false => Ok(()),
        }
    }

    /// Adds the columns of other rows that these rows lack, without values.
    fn add_columns(&mut self, others: &Table, rows: usize) {
        for (place, column) in others.columns.iter().enumerate() {
            if self.column(&column.name).is_none() {
                let none = Column { data: no_values(&column.data, rows), ..column.clone() };
                self.columns.insert(place.min(self.columns.len()), none);
            }
        }
    }

    /// Adds the columns and names of further rows. With `first`, the table takes the columns of the rows.
    #[doc(hidden)]
    pub fn widen(&mut self, more: Table, first: bool) {
        if first {
            self.columns = more.columns;
            return;
        }
        self.add_columns(&more, 0);
        for column in more.columns {
            let known = self.columns.iter_mut().find(|known| known.name == column.name).map(|known| &mut known.data);
            if let (Some(ColumnData::Name { names, .. }), ColumnData::Name { names: more, .. }) = (known, column.data)
                && more.len() > names.len()
            {
                *names = more;
            }
        }
    }

    /// Returns the table with its columns and without rows.
    #[doc(hidden)]
    pub fn without_rows(&self) -> Table {
        self.select(&[])
    }

    /// Returns rows of this table with all its columns; missing columns have no values.
    #[doc(hidden)]
    pub fn filled(&self, mut rows: Table) -> Table {
        rows.add_columns(self, rows.rows());
        rows
    }

    /// Removes and returns the rows from this one on.
    ///
    /// # Panics
    /// When `row` is over the number of rows.
    pub fn split_off(&mut self, row: usize) -> Table {
        let columns = self.columns.iter_mut();
        let columns = columns.map(|c| Column::new(&c.name, c.data.split_off(row)).in_unit(&c.unit));
        Table { name: self.name.clone(), key: self.key.clone(), columns: columns.collect() }
    }

    /// Returns a copy with only these rows.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn select(&self, rows: &[u32]) -> Table {
        let columns = self.columns.iter().map(|c| Column::new(&c.name, c.data.select(rows)).in_unit(&c.unit));
        Table { name: self.name.clone(), key: self.key.clone(), columns: columns.collect() }
    }

    /// Returns a copy with only the rows whose value `keep` accepts. `values` has one value for each row.
    pub fn select_where<T>(&self, values: impl Iterator<Item = T>, keep: impl Fn(T) -> bool) -> Table {
        let rows: Vec<u32> = (0..).zip(values).filter_map(|(row, value)| keep(value).then_some(row)).collect();
        self.select(&rows)
    }

    /// Returns the column with the times of the rows: the first column of times whose name ends with `at_us`, or else the
    /// ticks. A [`TraceSource`] finds rows by it.
    pub fn time_column(&self) -> Option<&Column> {
        let is_time = |column: &&Column| column.name.ends_with("at_us") && matches!(column.data, ColumnData::I64(_));
        let is_tick = |column: &&Column| column.name == "tick" && matches!(column.data, ColumnData::U32(_));
        self.columns.iter().find(is_time).or_else(|| self.columns.iter().find(is_tick))
    }

    /// Returns the size of the rows in memory, in bytes.
    pub fn row_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.data.len() * column.data.width()).sum()
    }

    /// Returns a column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// Returns a column of positions or angles in single precision, for drawing; empty if it is missing or holds no floats.
    pub fn floats(&self, name: &str) -> Cow<'_, [f32]> {
        match self.column(name).map(|column| &column.data) {
            Some(ColumnData::F32(values)) => Cow::Borrowed(values),
            Some(ColumnData::F64(values)) => values.iter().map(|value| *value as f32).collect(),
            _ => Cow::default(),
        }
    }

    typed_values! { u32s U32 u32, u64s U64 u64, i64s I64 i64, f32s F32 f32, f64s F64 f64 }

    /// Returns a column of names; empty if there is none of this name and type.
    pub fn names(&self, name: &str) -> NameColumn<'_> {
        match self.column(name).map(|c| &c.data) {
            Some(ColumnData::Name { names, codes }) => NameColumn { names, codes },
            _ => NameColumn::default(),
        }
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Counts, numbers, flags.
    U32(Vec<u32>),
    /// Ids and hashes ([`Column::is_hash`]).
    U64(Vec<u64>),
    /// Times in microseconds, and signed numbers.
    I64(Vec<i64>),
    /// Measurements; NaN for none.
    F32(Vec<f32>),
    /// Measurements in double precision; NaN for none.
    F64(Vec<f64>),
    /// Flags.
    Bool(Vec<bool>),
    /// Names, stored as indices into a list.
    Name {
        /// The distinct names.
        names: Vec<String>,
        /// Index of each row's name.
        codes: Vec<u32>,
    },
}

impl ColumnData {
    /// Returns values of this type, given as [numbers](CellKind::number). `texts` are those of the session.
    pub fn of_numbers(kind: CellKind, numbers: Vec<i64>, texts: &Texts) -> ColumnData {
        fn all<V>(numbers: Vec<i64>, value: impl Fn(i64) -> V) -> Vec<V> {
            numbers.into_iter().map(value).collect()
        }
        match kind {
            CellKind::F32 => ColumnData::F32(all(numbers, |bits| f32::from_bits(bits as u32))),
            CellKind::F64 => ColumnData::F64(all(numbers, |bits| f64::from_bits(bits as u64))),
            CellKind::I32 | CellKind::I64 => ColumnData::I64(numbers),
            CellKind::U32 => ColumnData::U32(all(numbers, |number| number as u32)),
            CellKind::U64 => ColumnData::U64(all(numbers, |number| number as u64)),
            CellKind::Bool => ColumnData::Bool(all(numbers, |number| number != 0)),
            CellKind::Text => {
                let (mut places, mut names) = (SortedMap::new(), Vec::new());
                let mut code = |number: i64| {
                    *places.entry(number).or_insert_with(|| {
                        names.push(texts.get(TextCode(number as u64)).to_owned());
                        (names.len() - 1) as u32
                    })
                };
                let codes = numbers.into_iter().map(&mut code).collect();
                ColumnData::Name { names, codes }
            }
        }
    }

    /// Returns a column of texts. Its names are sorted.
    pub(crate) fn of_texts(texts: impl Iterator<Item = String>) -> ColumnData {
        let texts: Vec<String> = texts.collect();
        let names: SortedSet<&String> = texts.iter().collect();
        let places: SortedMap<&String, u32> = names.into_iter().zip(0..).collect();
        let codes = texts.iter().map(|text| places[text]).collect();
        ColumnData::Name { names: places.keys().map(|name| (*name).clone()).collect(), codes }
    }

    /// Returns whether a row has no value, or one whose bits are all 0; for names, the empty one.
    pub fn is_zero(&self, row: usize) -> bool {
        match self {
            ColumnData::U32(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::U64(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::I64(v) => v.get(row).is_none_or(|v| *v == 0),
            ColumnData::F32(v) => v.get(row).is_none_or(|v| v.to_bits() == 0),
            ColumnData::F64(v) => v.get(row).is_none_or(|v| v.to_bits() == 0),
            ColumnData::Bool(v) => !v.get(row).is_some_and(|v| *v),
            ColumnData::Name { names, codes } => {
                codes.get(row).and_then(|code| names.get(*code as usize)).is_none_or(String::is_empty)
            }
        }
    }

    /// Returns the value of a row in a column of floats of either precision.
    pub fn real(&self, row: usize) -> Option<f64> {
        match self {
            ColumnData::F32(values) => values.get(row).copied().map(f64::from),
            ColumnData::F64(values) => values.get(row).copied(),
            _ => None,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::U32(v) => v.len(),
            ColumnData::U64(v) => v.len(),
            ColumnData::I64(v) => v.len(),
            ColumnData::F32(v) => v.len(),
            ColumnData::F64(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::Name { codes, .. } => codes.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends values of the same type. One of two lists of names is a prefix of the other.
    fn append(&mut self, later: ColumnData) {
        match (self, later) {
            (ColumnData::U32(to), ColumnData::U32(from)) => to.extend(from),
            (ColumnData::U64(to), ColumnData::U64(from)) => to.extend(from),
            (ColumnData::I64(to), ColumnData::I64(from)) => to.extend(from),
            (ColumnData::F32(to), ColumnData::F32(from)) => to.extend(from),
            (ColumnData::F64(to), ColumnData::F64(from)) => to.extend(from),
            (ColumnData::Bool(to), ColumnData::Bool(from)) => to.extend(from),
            (ColumnData::Name { names, codes }, ColumnData::Name { names: others, codes: from }) => {
                if others.len() > names.len() {
                    *names = others;
                }
                codes.extend(from);
            }
            _ => {}
        }
    }

    /// Frees the room for more values.
    fn shrink_to_fit(&mut self) {
        match self {
            ColumnData::U32(v) | ColumnData::Name { codes: v, .. } => v.shrink_to_fit(),
            ColumnData::U64(v) => v.shrink_to_fit(),
            ColumnData::I64(v) => v.shrink_to_fit(),
            ColumnData::F32(v) => v.shrink_to_fit(),
            ColumnData::F64(v) => v.shrink_to_fit(),
            ColumnData::Bool(v) => v.shrink_to_fit(),
        }
    }

    /// Returns the size of one value, in bytes.
    pub(crate) fn width(&self) -> usize {
        match self {
            ColumnData::U32(_) | ColumnData::F32(_) | ColumnData::Name { .. } => 4,
            ColumnData::U64(_) | ColumnData::I64(_) | ColumnData::F64(_) => 8,
            ColumnData::Bool(_) => 1,
        }
    }

    /// Removes and returns the values from a row on.
    fn split_off(&mut self, row: usize) -> ColumnData {
        match self {
            ColumnData::U32(v) => ColumnData::U32(v.split_off(row)),
            ColumnData::U64(v) => ColumnData::U64(v.split_off(row)),
            ColumnData::I64(v) => ColumnData::I64(v.split_off(row)),
            ColumnData::F32(v) => ColumnData::F32(v.split_off(row)),
            ColumnData::F64(v) => ColumnData::F64(v.split_off(row)),
            ColumnData::Bool(v) => ColumnData::Bool(v.split_off(row)),
            ColumnData::Name { names, codes } => ColumnData::Name { names: names.clone(), codes: codes.split_off(row) },
        }
    }

    /// Returns the values of some rows.
    fn select(&self, rows: &[u32]) -> ColumnData {
        fn of<V: Copy>(values: &[V], rows: &[u32]) -> Vec<V> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        match self {
            ColumnData::U32(v) => ColumnData::U32(of(v, rows)),
            ColumnData::U64(v) => ColumnData::U64(of(v, rows)),
            ColumnData::I64(v) => ColumnData::I64(of(v, rows)),
            ColumnData::F32(v) => ColumnData::F32(of(v, rows)),
            ColumnData::F64(v) => ColumnData::F64(of(v, rows)),
            ColumnData::Bool(v) => ColumnData::Bool(of(v, rows)),
            ColumnData::Name { names, codes } => ColumnData::Name { names: names.clone(), codes: of(codes, rows) },
        }
    }

    /// Returns the name of the type in files: `u32`, `u64`, `i64`, `f32`, `f64`, `bool`, `name`.
    pub fn type_name(&self) -> &'static str {
        match self {
            ColumnData::U32(_) => "u32",
            ColumnData::U64(_) => "u64",
            ColumnData::I64(_) => "i64",
            ColumnData::F32(_) => "f32",
            ColumnData::F64(_) => "f64",
            ColumnData::Bool(_) => "bool",
            ColumnData::Name { .. } => "name",
        }
    }
}

/// Returns rows with the value `none` for a column of names; an empty column for all other types, and without rows.
fn no_values(like: &ColumnData, rows: usize) -> ColumnData {
    let (ColumnData::Name { names, .. }, 1..) = (like, rows) else { return like.select(&[]) };
    let mut names = names.clone();
    let none = names.iter().position(|name| name == NONE).unwrap_or_else(|| {
        names.push(NONE.to_owned());
        names.len() - 1
    });
    ColumnData::Name { names, codes: vec![none as u32; rows] }
}

/// What a log and its traces say about the identity of the recorded session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSource {
    /// Name of the map; empty if unknown.
    pub map: String,
    /// Random seed of the session.
    pub seed: Seed,
    /// Whether the session was simulated in virtual time, so that seed and settings determine it.
    pub synthetic: bool,
    /// The session that both sides recorded; only if the log holds one side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SessionId>,
    /// The name of each player; no names if all are the numbers of players.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub players: Vec<String>,
}

impl SessionSource {
    /// Returns the identity of a log's session.
    pub fn of(header: &SessionHeader) -> SessionSource {
        let has_names = header.players.iter().zip(0..).any(|(of, player)| is_nickname(&of.name, player));
        let names = header.players.iter().map(|of| of.name.clone());
        SessionSource {
            players: if has_names { names.collect() } else { Vec::new() },
            map: header.map.clone(),
            seed: header.seed,
            synthetic: header.origin == Origin::Synthetic,
            id: header.side.map(|side| side.session),
        }
    }

    /// Returns the names of players that have one besides their number: `p2 is Ann, p3 is Bob`; `None` without any.
    pub fn names_of(&self, players: impl IntoIterator<Item = u32>) -> Option<String> {
        let named = |player: u32| {
            let name = self.players.get(player as usize).filter(|name| is_nickname(name, player))?;
            Some(format!("p{player} is {name}"))
        };
        let names: Vec<String> = players.into_iter().filter_map(named).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Whether a player's name is more than its number.
fn is_nickname(name: &str, player: u32) -> bool {
    !name.is_empty() && name != format!("p{player}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_texts_may_begin_later_and_miss_in_between() {
        let rows = |names: &[&str], codes: &[u32]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let text = Column::new("text", ColumnData::Name { names, codes: codes.to_vec() });
            let text = (!codes.is_empty()).then_some(text);
            let number = Column::new("number", ColumnData::U32(vec![1; codes.len().max(1)]));
            Table::new("t", text.into_iter().chain([number]).collect())
        };
        let mut all = rows(&[], &[]);
        for part in [rows(&["none", "a"], &[1]), rows(&[], &[]), rows(&["none", "a", "b"], &[0, 2])] {
            all.append(part).expect("the same columns");
        }
        assert_eq!(all.names("text").iter().collect::<Vec<_>>(), ["none", "a", "none", "none", "b"]);
    }

    #[test]
    fn angles_are_recognized_by_unit_or_name() {
        let column = |name: &str, unit: &str| Column::new(name, ColumnData::F32(Vec::new())).in_unit(unit);
        for name in ["yaw", "pitch", "viewangles.x", "own.viewangles.z"] {
            assert!(column(name, "").is_angle(), "{name}");
        }
        assert!(column("heading", "degrees").is_angle() && !column("heading", "").is_angle());
        assert!(!column("yaw", "rad").is_angle() && !column("aim_off_degrees", "").is_angle());
    }
}
