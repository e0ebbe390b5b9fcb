//! The schema of traces. [`tables`] declares each table once: columns with type, unit and meaning, key columns, and
//! when rows can be compared. From a declaration come a writer, a reader and the tables in docs/tables.md.
//!
//! Each table is a module named after it: a replay pushes [`shots::Row`] into a [`shots::Writer`], and a report reads
//! [`shots::Columns`]. To add a column, add its line there. The compiler then requires its value wherever rows are
//! pushed.
//!
//! A build may omit any of these tables and columns, and add custom ones. A reader finds missing ones empty. hitreg
//! compares and prints custom ones by their names alone.

mod kinds;
pub mod tables;

use std::fmt::Write;

use glam::Vec3;

pub(crate) use kinds::NONE;
pub use kinds::{
    CellType, Code, NameCells, OptionalBits, OptionalCode, OptionalMeasure, OptionalNumber, OptionalText, TextColumn,
};
pub use tables::*;

use super::{Column, Table};
use crate::record::{PacketRecord, is_frames_column};
use crate::units::{Micros, PlayerId};
use crate::usercmd::Usercmd;

/// The declaration of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Name of the table.
    pub name: &'static str,
    /// Meaning of a row.
    pub doc: &'static str,
    /// The key columns, in the order that sorts rows of equal time.
    pub key: &'static [&'static str],
    /// Whether several rows may have one key.
    pub repeats: bool,
    /// The key columns that identify a series of rows, such as one entity's or one player's.
    pub series: &'static [&'static str],
    /// When rows with equal keys can be compared.
    pub joined: JoinRule,
    /// The part of a session that the table describes.
    pub about: TableSubject,
    /// Order of causes: among differences at the same time, those of a lower rank can have caused those of a higher
    /// one. The server's state can cause anything at that time. Predictions cannot cause what the server does at the
    /// same time. Each table has a rank of its own, from 0 on.
    pub rank: usize,
    /// Whether the table counts in the digest of a trace. Otherwise, `diff` does not mind if one side lacks it.
    pub in_digest: bool,
    /// If set, the fields of the game's bodies follow as further columns, their names with this prefix.
    pub fields: Option<&'static str>,
    /// The columns, in order.
    pub columns: &'static [ColumnSchema],
}

/// The declaration of a column.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSchema {
    /// Name of the column; `at` stands for `at.x`, `at.y` and `at.z` if it has three parts.
    pub name: &'static str,
    /// Meaning of a value.
    pub doc: &'static str,
    /// Name of the type in files.
    pub kind: &'static str,
    /// Suffixes of its parts: `[""]`, or `.x`, `.y` and `.z`.
    pub parts: &'static [&'static str],
    /// Unit of the values.
    pub unit: Unit,
    /// Whether the table omits the column when no row has a value.
    pub optional: bool,
    /// Which side determines the value.
    pub role: ColumnRole,
    /// Names with fixed codes.
    pub names: &'static [&'static str],
}

/// The `index` of a usercmd's first impact in `shots`; further ones have lower indices. The shot that launched it has its own index.
pub const IMPACT: u8 = u8::MAX;

/// When rows with equal keys can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinRule {
    /// Always.
    Always,
    /// If their times are equal. Different times are a difference of their own.
    AtSameTime,
    /// If their tick or client frame has the same time on both sides.
    WithTheirTime,
}

/// The part of a session that a table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSubject {
    /// Players' input and its execution.
    Input,
    /// The server's state.
    State,
    /// Shots and hits.
    Hits,
    /// Corrected predictions.
    Corrections,
    /// What clients drew.
    Views,
    /// Effects that clients played.
    Effects,
    /// Network traffic.
    Network,
}

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No unit: a number or a name.
    None,
    /// A flag, 0 or 1.
    Flag,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// The game's unit of length.
    Units,
    /// Units of length per second.
    UnitsPerSecond,
    /// Degrees, which wrap at 360: from 355 to 0 is 5.
    Degrees,
}

/// Which side determines the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// None in particular.
    Plain,
    /// The player: part of the usercmd's input.
    Input,
    /// The client: a prediction of a value that the server also determines.
    Predicted,
    /// The server: a judgement of something that the client predicted.
    Judged,
    /// The server: the result of a shot.
    Outcome,
}

impl Unit {
    /// Returns the name of the unit; empty without a unit.
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
        repeats: false,
        series: &[],
        joined: JoinRule::WithTheirTime,
        about: TableSubject::State,
        rank: usize::MAX,
        in_digest: true,
        fields: None,
        columns: &[],
    };

    /// Returns the declaration of a table; `None` for a custom one. `bodies` declares the tables of all classes.
    pub fn of(name: &str) -> Option<&'static TableSchema> {
        let name = if is_bodies(name) { bodies::NAME } else { name };
        TABLES.iter().copied().find(|table| table.name == name)
    }

    /// Returns the declaration of a column, by its full name or by the common name of its parts; `None` for a custom
    /// one.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSchema> {
        self.columns.iter().find(|column| column.is(name))
    }

    /// Returns the names with fixed codes of a column.
    fn known(&self, column: &str) -> &'static [&'static str] {
        self.column(column).map_or(&[], |column| column.names)
    }

    /// Returns the names of the columns with a role.
    pub fn names_of(&self, role: ColumnRole) -> impl Iterator<Item = &'static str> + use<> {
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
        ColumnSchema { name, doc, kind, parts, unit: Unit::None, optional: false, role: ColumnRole::Plain, names: &[] }
    }

    fn is(&self, name: &str) -> bool {
        name.strip_prefix(self.name).is_some_and(|rest| rest.is_empty() || self.parts.contains(&rest))
    }
}

// Usercmds in the `frames` table, and their packets in the table `packets`.

/// Returns whether a log records a column of `frames`: its key and time, and the usercmd's input.
pub fn is_input(column: &Column) -> bool {
    ["player", "at_us", "command"].contains(&&*column.name)
        || frames::SCHEMA.names_of(ColumnRole::Input).any(|input| input == column.name)
        || !is_frames_column(&column.name)
}

/// Returns the columns of the usercmd fields that the game declares.
pub fn own_input(frames: &Table) -> impl Iterator<Item = &Column> {
    frames.columns.iter().filter(|column| !is_frames_column(&column.name))
}

impl frames::Row<'_> {
    /// Returns the row of a client frame with its usercmd and without any results.
    pub fn of_usercmd(player: PlayerId, at: Micros, command: &Usercmd) -> Self {
        let input = &command.input;
        frames::Row {
            player: player.0.into(),
            at_us: at.0,
            command: command.seq.0,
            lerp_msec: command.lerp_msec.into(),
            msec: input.msec.into(),
            server_time_us: command.server_time.0,
            pitch: input.viewangles.x,
            yaw: input.viewangles.y,
            roll: input.viewangles.z,
            forwardmove: input.forwardmove,
            sidemove: input.sidemove,
            upmove: input.upmove,
            buttons: input.buttons.into(),
            impulse: input.impulse.into(),
            ran: 0,
            first_effects: 0,
            has_body: 0,
            drawn: Vec3::ZERO,
        }
    }
}

impl packets::Row<'_> {
    /// Returns the row of a sent packet that has not arrived, without its size.
    pub fn of_packet(player: PlayerId, packet: &PacketRecord) -> Self {
        packets::Row {
            player: player.0.into(),
            packet: packet.number,
            at_us: packet.at.0,
            arrived: 0,
            took_ms: f32::NAN,
            newest: packet.newest.0,
            usercmds: packet.count.into(),
            ack: packet.ack.0,
            bytes: None,
        }
    }
}

/// A set of declared tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet(u16);

const _: () = assert!(TABLES.len() <= u16::BITS as usize, "a bit for each table");

impl TableSet {
    /// All declared tables.
    pub const ALL: TableSet = TableSet(u16::MAX >> (u16::BITS as usize - TABLES.len()));
    /// No table.
    pub const NONE: TableSet = TableSet(0);

    /// Returns the set of the declared tables with these names; ignores custom tables.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> TableSet {
        let tables = names.into_iter().filter_map(|name| TABLES.iter().find(|table| table.name == name));
        tables.fold(TableSet::NONE, |set, table| set.with(table))
    }

    /// Returns the set with a table added; ignores custom tables.
    #[must_use]
    pub fn with(self, table: &TableSchema) -> TableSet {
        TableSet(self.0 | TableSet::bit(table))
    }

    /// Returns whether the set contains a table.
    #[inline]
    pub fn has(self, table: &TableSchema) -> bool {
        self.0 & TableSet::bit(table) != 0
    }

    /// Returns the bit of a table; 0 for a custom one.
    #[inline]
    fn bit(table: &TableSchema) -> u16 {
        u32::try_from(table.rank).ok().and_then(|rank| 1_u16.checked_shl(rank)).unwrap_or(0)
    }
}

impl Default for TableSet {
    fn default() -> TableSet {
        TableSet::ALL
    }
}

// Generates the documentation of the trace tables in docs/tables.md.

/// Returns all tables with their columns in Markdown.
pub fn document() -> String {
    let mut text = String::new();
    for table in TABLES {
        let keys: Vec<String> = table.key.iter().map(|key| format!("`{key}`")).collect();
        let _ = write!(text, "### `{}`\n\n{}\nKey: {}.", table.name, table.doc.trim(), keys.join(", "));
        if table.repeats {
            text.push_str(" Several rows may have one key.");
        }
        text.push_str(&fields(table));
        if !table.in_digest {
            text.push_str(" Not part of a trace's digest.");
        }
        text.push_str("\n\n| column | type | unit | |\n| --- | --- | --- | --- |\n");
        for column in table.columns {
            text.push_str(&row(column));
        }
        text.push('\n');
    }
    text
}

fn fields(table: &TableSchema) -> String {
    match table.fields {
        Some("") => " The fields of the game's bodies follow, as columns of their own names.".to_owned(),
        Some(prefix) => format!(" The fields of the game's bodies follow, each after `{prefix}`."),
        None => String::new(),
    }
}

fn row(column: &ColumnSchema) -> String {
    let names: Vec<String> = column.parts.iter().map(|part| format!("`{}{part}`", column.name)).collect();
    let mut known: Vec<String> = column.names.iter().map(|name| format!("`{name}`")).collect();
    let none = format!("`{NONE}`");
    if column.optional && !known.is_empty() && !known.contains(&none) {
        // A missing value of an optional column.
        known.push(none);
    }
    let doc = column.doc.trim().trim_end_matches('.');
    let doc = if known.is_empty() { doc.to_owned() } else { format!("{doc}: {}", known.join(", ")) };
    let optional = if column.optional { "; optional" } else { "" };
    format!("| {} | {} | {} | {doc}{optional} |\n", names.join(", "), column.kind, column.unit.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_tables_that_it_names() {
        let some = TableSet::named(["shots", "ticks", "a build's own"]);
        let has: Vec<&str> = TABLES.iter().filter(|table| some.has(table)).map(|table| table.name).collect();
        assert_eq!(has, ["ticks", "shots"]);
        assert_eq!(TableSet::named(["ticks"]).with(&crate::trace::schema::shots::SCHEMA), some);
        assert!(TABLES.iter().all(|table| TableSet::ALL.has(table) && !TableSet::NONE.has(table)));
        assert_eq!(TableSet::named(TABLES.map(|table| table.name)), TableSet::ALL);
    }
}
