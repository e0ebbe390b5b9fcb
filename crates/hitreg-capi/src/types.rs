//! Structs and enums of the C ABI, the tables that hitreg defines with their columns, and the values of rows that a caller
//! pushes or reads.
//!
//! Structs of options and results begin with their size, so that callers with an older header work with a newer
//! library. They contain only numbers, have no padding, and only ever grow. Rows grow by columns.

use std::ffi::{CStr, c_char, c_void};

use ::hitreg_log::record::{CellKind, OwnValue, TextCode};
use ::hitreg_log::recorder::Stream;
use ::hitreg_log::units::{EntityId, PlayerId};

use self::hitreg_table::*;
use self::hitreg_value_kind::{
    HITREG_VALUE_LIST, HITREG_VALUE_NONE, HITREG_VALUE_NUMBER, HITREG_VALUE_REAL, HITREG_VALUE_REAL64,
    HITREG_VALUE_TEXT,
};
use crate::guard::hitreg_code::{HITREG_ERROR_MISFIT, HITREG_ERROR_NULL, HITREG_ERROR_SIZE, HITREG_ERROR_VALUE};
use crate::guard::{Failure, Sized32, array, fail, fits, text};

/// Options of a recorder. Zero selects the default of each field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_options {
    /// `sizeof(hitreg_options)`.
    pub size: u32,
    /// Reorder window in milliseconds: how much older than the newest row a row may be; 250 by default.
    pub window_ms: u32,
    /// Capacity of each stream, in rows, at most 1048576; 4096 by default.
    pub ring: u32,
    /// 1: wait instead of dropping rows or chunks, for sessions that do not run in real time.
    pub patient: u32,
    /// Seconds of session time after which a new file (`NAME-0001.hitlog` and so on) starts; 0 for no limit. With both
    /// limits 0, there is one file, without a number. A flight recorder ignores both limits.
    pub rotate_s: u32,
    /// MiB after which a new file starts; 0 for no limit. Chunks that wait for the disk still go into the old file.
    pub rotate_mib: u32,
}

/// Counters of a recorder.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_written {
    /// `sizeof(hitreg_written)`.
    pub size: u32,
    /// Reserved; 0.
    pub reserved: u32,
    /// Rows in the file so far. A flight recorder and a trace count the rows that they received.
    pub rows: u64,
    /// Rows lost because a stream was full.
    pub lost_rows: u64,
    /// Chunks dropped because the disk was too slow. Gaps in the log mark when.
    pub dropped_chunks: u64,
    /// Rows refused because they were older than the reorder window. Gaps in the log mark when.
    pub late_rows: u64,
}

/// A field of an entity's state, or of a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hitreg_field {
    /// Name, unique in its class. Components of a vector share the first part: `origin.x`, `origin.y`.
    pub name: *const c_char,
    /// A `hitreg_type`.
    pub value_type: u32,
    /// A `hitreg_scope`.
    pub scope: u32,
    /// A `hitreg_meaning`.
    pub meaning: u32,
    /// The unit; null for the default of the meaning.
    pub unit: *const c_char,
}

/// A column of a table of your own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hitreg_column {
    /// Name, unique in its table; not `at_us`.
    pub name: *const c_char,
    /// A `hitreg_type`.
    pub value_type: u32,
}

/// A table of a log, with the columns of its rows in order. Every row also has a time, `at_us`. The series of a row is
/// its player, and 0 in `TICKS`, `STATES` and `DAMAGE`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hitreg_table {
    /// Usercmds: seq, server_time_us, lerp_ms, msec, pitch, yaw, roll, forwardmove, sidemove, upmove, buttons, impulse,
    /// bytes, fields. Angles and moves are floats. `bytes` is a list of bytes, `fields` of `hitreg_value`.
    HITREG_TABLE_FRAMES = 0,
    /// Shots as clients predicted them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
    /// pellets. `weapon` is a text or a number; it and `pellets` may be empty.
    HITREG_TABLE_PREDICTED = 1,
    /// Shots as the server judged them: usercmd, index, reason, target, hitgroup, damage, rewound_us, weapon, impact,
    /// pellets.
    HITREG_TABLE_JUDGED = 2,
    /// Packets that clients sent: number, newest, count, ack, bytes.
    HITREG_TABLE_SENT = 3,
    /// Packets that reached the server: number.
    HITREG_TABLE_REACHED = 4,
    /// How the server handled usercmds: usercmd, tick, how. Rows take the time of the previous push.
    HITREG_TABLE_EXECUTED = 5,
    /// Players who joined or left: tick, presence.
    HITREG_TABLE_PRESENCE = 6,
    /// Snapshots that the server sent: seq, tick, server_time_us, ack, bytes, choked, entities, effects. `entities` is
    /// a list of `uint16_t`, `effects` of `hitreg_effect`.
    HITREG_TABLE_SNAPSHOTS = 7,
    /// Snapshots that reached their client: seq.
    HITREG_TABLE_RECEIVED = 8,
    /// Ends of server ticks: tick, hash. `hash` may be empty.
    HITREG_TABLE_TICKS = 9,
    /// States of entities after a tick: tick, viewer, entity, class_number, cells. `cells` is a list of `uint32_t`.
    /// Rows take the time of the previous push.
    HITREG_TABLE_STATES = 10,
    /// Damage to entities: tick, victim, attacker, amount, weapon, armour, force_x, force_y, force_z. `weapon`, `armour`
    /// and the force may be empty.
    HITREG_TABLE_DAMAGE = 11,
    /// The first table of your own; see `hitreg_table_custom`. It has the columns of `hitreg_description_table`.
    HITREG_TABLE_CUSTOM = 256,
}

/// The state of an entity after a tick.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_state {
    /// The tick. In a log that begins inside a session, states of tick 0 say where entities were.
    pub tick: u32,
    /// The only player who was sent this state; -1 for all.
    pub viewer: i32,
    /// The entity, up to 65,535; players first.
    pub entity: u32,
    /// The class of the entity: 0 for the first `hitreg_description_class`.
    pub class_number: u32,
    /// One cell for each field of the class, floats as their bits (`memcpy`). Fields of 64 bits have two cells:
    /// `hitreg_put_64`, `hitreg_put_f64`, `hitreg_put_text`.
    pub cells: *const u32,
    /// Number of cells.
    pub cell_count: u32,
}

/// How the server handled a usercmd.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_how {
    /// The server ran it.
    HITREG_HOW_RUN = 0,
    /// It never arrived; the server ran the previous usercmd again in its place.
    HITREG_HOW_STOOD_IN = 1,
    /// It never arrived, and the server ran nothing in its place.
    HITREG_HOW_MISSING = 2,
    /// It arrived after a later usercmd had run, and the server dropped it.
    HITREG_HOW_LATE = 3,
    /// The player had used up the simulation time that the server allows.
    HITREG_HOW_OVER_BUDGET = 4,
}

/// The result of a shot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_reason {
    /// It hit a target.
    HITREG_REASON_HIT = 0,
    /// The map blocked a shot that would have hit a target.
    HITREG_REASON_HIT_WORLD = 1,
    /// Its line meets no target.
    HITREG_REASON_MISSED = 2,
    /// It hit a target that is already dead at present; no damage.
    HITREG_REASON_ALREADY_DEAD = 3,
    /// It launched a projectile; the impact has its own row.
    HITREG_REASON_LAUNCHED = 4,
}

/// Whether a player joined or left.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_presence {
    /// The player joined.
    HITREG_PRESENCE_JOINED = 0,
    /// The player left.
    HITREG_PRESENCE_LEFT = 1,
}

/// A sound or a visual effect in a snapshot, which happens once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct hitreg_effect {
    /// Number of the effect in the game's numbering, up to 255.
    pub kind: u32,
    /// The entity that causes it, up to 65,535.
    pub entity: u32,
    /// 1: shared code causes the effect, so that its player's client can predict it; 0: it does not.
    pub predictable: u32,
    /// Position, in units.
    pub x: f32,
    /// Position, in units.
    pub y: f32,
    /// Position, in units.
    pub z: f32,
}

/// The kind of a value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_value_kind {
    /// No value.
    HITREG_VALUE_NONE = 0,
    /// An integer: `data.number`.
    HITREG_VALUE_NUMBER = 1,
    /// A float: `data.real`.
    HITREG_VALUE_REAL = 2,
    /// A list: `count` items of `item_bytes` bytes at `data.items`.
    HITREG_VALUE_LIST = 3,
    /// A 64-bit float: `data.real64`.
    HITREG_VALUE_REAL64 = 4,
    /// A text: `data.text`.
    HITREG_VALUE_TEXT = 5,
}

/// The content of a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hitreg_value_data {
    /// An integer; a `u64` and a hash as their bits.
    pub number: i64,
    /// A float.
    pub real: f32,
    /// A 64-bit float.
    pub real64: f64,
    /// A text, ended by a zero byte. Texts of a log stay valid until the log is freed.
    pub text: *const c_char,
    /// The first item of a list; null if it is empty.
    pub items: *const c_void,
}

/// One value of a row. Make it with `hitreg_number`, `hitreg_real`, `hitreg_real64`, `hitreg_text`,
/// `hitreg_list` or `hitreg_none`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_value {
    /// A `hitreg_value_kind`.
    pub kind: u16,
    /// Size of an item of a list, in bytes.
    pub item_bytes: u16,
    /// Number of items of a list.
    pub count: u32,
    /// The content.
    pub data: hitreg_value_data,
}

// SAFETY: the struct contains only numbers, `size` first. Its size equals the sum of its fields, so there is no padding.
unsafe impl Sized32 for hitreg_options {
    const FIRST: usize = 24;
    const NAME: &'static str = "hitreg_options";
}

// SAFETY: as for `hitreg_options`.
unsafe impl Sized32 for hitreg_written {
    const FIRST: usize = 40;
    const NAME: &'static str = "hitreg_written";
}

/// A struct only grows.
const _: () = assert!(
    size_of::<hitreg_options>() >= hitreg_options::FIRST && size_of::<hitreg_written>() >= hitreg_written::FIRST
);

const NONE: u16 = HITREG_VALUE_NONE as u16;
const NUMBER: u16 = HITREG_VALUE_NUMBER as u16;
const REAL: u16 = HITREG_VALUE_REAL as u16;
const LIST: u16 = HITREG_VALUE_LIST as u16;
const REAL64: u16 = HITREG_VALUE_REAL64 as u16;
const TEXT: u16 = HITREG_VALUE_TEXT as u16;

/// The tables that hitreg defines: their names in a log, and their columns. The header repeats the columns. A later
/// version may add tables, and columns at the end of a table.
const TABLES: [(hitreg_table, &str, &[&str]); 12] = [
    (HITREG_TABLE_FRAMES, "frames", FRAME),
    (HITREG_TABLE_PREDICTED, "predicted", SHOT),
    (HITREG_TABLE_JUDGED, "judged", SHOT),
    (HITREG_TABLE_SENT, "sent", &["number", "newest", "count", "ack", "bytes"]),
    (HITREG_TABLE_REACHED, "reached", &["number"]),
    (HITREG_TABLE_EXECUTED, "executed", &["usercmd", "tick", "how"]),
    (HITREG_TABLE_PRESENCE, "presence", &["tick", "presence"]),
    (HITREG_TABLE_SNAPSHOTS, "snapshots", SNAPSHOT),
    (HITREG_TABLE_RECEIVED, "received", &["seq"]),
    (HITREG_TABLE_TICKS, "ticks", &["tick", "hash"]),
    (HITREG_TABLE_STATES, "states", &["tick", "viewer", "entity", "class_number", "cells"]),
    (HITREG_TABLE_DAMAGE, "damage", DAMAGE),
];
#[rustfmt::skip]
const FRAME: &[&str] = &[
    "seq", "server_time_us", "lerp_ms", "msec", "pitch", "yaw", "roll", "forwardmove", "sidemove", "upmove", "buttons",
    "impulse", "bytes", "fields",
];
const SNAPSHOT: &[&str] = &["seq", "tick", "server_time_us", "ack", "bytes", "choked", "entities", "effects"];
#[rustfmt::skip]
const SHOT: &[&str] = &[
    "usercmd", "index", "reason", "target", "hitgroup", "damage", "rewound_us", "weapon", "impact", "pellets",
];
#[rustfmt::skip]
const DAMAGE: &[&str] = &[
    "tick", "victim", "attacker", "amount", "weapon", "armour", "force_x", "force_y", "force_z",
];

/// A table by its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum TableNumber {
    Known(hitreg_table, &'static str, &'static [&'static str]),
    /// A table of the caller's own, numbered from 0.
    Custom(usize),
}

impl TableNumber {
    #[inline]
    pub(super) fn of(number: u32) -> Result<TableNumber, Failure> {
        if let Some((table, name, columns)) = TABLES.get(number as usize) {
            return Ok(TableNumber::Known(*table, name, columns));
        }
        let custom = number.checked_sub(HITREG_TABLE_CUSTOM as u32);
        let none = || fail(HITREG_ERROR_VALUE, format!("there is no table {number}"));
        Ok(TableNumber::Custom(custom.ok_or_else(none)? as usize))
    }
}

/// Returns the player of a row by its series.
#[inline]
pub(super) fn player(series: u32) -> Result<PlayerId, Failure> {
    Ok(PlayerId(fits(series, "player")?))
}

/// Checks the series of a row in a table of the whole session.
#[inline]
pub(super) fn no_series(table: &str, series: u32) -> Result<(), Failure> {
    if series == 0 {
        return Ok(());
    }
    Err(fail(HITREG_ERROR_VALUE, format!("series is {series}, and the rows of `{table}` have no series but 0")))
}

/// Returns the values of a row, one for each column of its table.
#[inline]
pub(super) fn values_of<'v, const COLUMNS: usize>(
    table: &str,
    columns: &[&str],
    values: &'v [hitreg_value],
) -> Result<&'v [hitreg_value; COLUMNS], Failure> {
    values.try_into().map_err(|_| wrong_count(table, values.len(), columns))
}

/// Values that a caller pushes. `column` is for error messages.
impl hitreg_value {
    #[inline]
    fn bits(&self, column: &str) -> Result<i64, Failure> {
        if self.kind != NUMBER {
            return Err(wrong_kind(column, "a number"));
        }
        // SAFETY: the kind is a number, and any bits are one.
        Ok(unsafe { self.data.number })
    }

    #[inline]
    pub(super) fn read_number<T: TryFrom<i64>>(&self, column: &str) -> Result<T, Failure> {
        fits(self.bits(column)?, column)
    }

    /// Returns a number in which -1 means none.
    #[inline]
    pub(super) fn read_number_or_none<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, Failure> {
        let number = self.bits(column)?;
        if number == -1 { Ok(None) } else { Ok(Some(fits(number, column)?)) }
    }

    /// Returns a number; `None` without a value.
    #[inline]
    pub(super) fn read_optional_number<T: TryFrom<i64>>(&self, column: &str) -> Result<Option<T>, Failure> {
        if self.kind == NONE { Ok(None) } else { Ok(Some(self.read_number(column)?)) }
    }

    /// Returns a float; `None` without a value.
    #[inline]
    pub(super) fn read_optional_real(&self, column: &str) -> Result<Option<f32>, Failure> {
        if self.kind == NONE { Ok(None) } else { Ok(Some(self.read_real(column)?)) }
    }

    /// Returns the code of a name: a text, or a number as digits; the empty text without a value.
    ///
    /// # Safety
    /// A text is null or a C string.
    #[inline]
    pub(super) unsafe fn read_name(&self, stream: &mut Stream, column: &str) -> Result<TextCode, Failure> {
        match self.kind {
            NONE => Ok(TextCode::default()),
            NUMBER => Ok(stream.text(&self.bits(column)?.to_string())?),
            // SAFETY: the kind is a text, and the caller guarantees it.
            TEXT => Ok(stream.text(unsafe { text(self.data.text, column) }?)?),
            _ => Err(wrong_kind(column, "a text or a number")),
        }
    }

    #[inline]
    pub(super) fn read_real(&self, column: &str) -> Result<f32, Failure> {
        if self.kind != REAL {
            return Err(wrong_kind(column, "a float"));
        }
        // SAFETY: the kind is a float, and any bits are one.
        Ok(unsafe { self.data.real })
    }

    /// Returns the value of an enum by its number.
    #[inline]
    pub(super) fn read_one_of<T: Copy>(&self, list: &[T], column: &str) -> Result<T, Failure> {
        let number = self.bits(column)?;
        let found = usize::try_from(number).ok().and_then(|number| list.get(number));
        found.copied().ok_or_else(|| fail(HITREG_ERROR_VALUE, format!("there is no {column} {number}")))
    }

    /// Returns a list; no value is an empty list.
    ///
    /// # Safety
    /// The value is no list, or has null or `count` items, which outlive the result. Any bits are a valid `T`.
    #[inline]
    pub(super) unsafe fn read_list<T>(&self, column: &str) -> Result<&[T], Failure> {
        match self.kind {
            NONE => return Ok(&[]),
            LIST if self.count == 0 => return Ok(&[]),
            LIST if usize::from(self.item_bytes) == size_of::<T>() => {}
            LIST => return Err(wrong_items(column, self.item_bytes, size_of::<T>())),
            _ => return Err(wrong_kind(column, "a list")),
        }
        // SAFETY: the kind is a list, and the caller guarantees its items.
        unsafe { array(self.data.items.cast(), self.count as usize, column) }
    }
}

#[cold]
fn wrong_count(table: &str, found: usize, columns: &[&str]) -> Failure {
    let says = format!("a row of `{table}` has {} values ({}), not {found}", columns.len(), columns.join(", "));
    fail(HITREG_ERROR_MISFIT, says)
}

#[cold]
fn wrong_kind(column: &str, wanted: &str) -> Failure {
    fail(HITREG_ERROR_MISFIT, format!("{column} is not {wanted}"))
}

#[cold]
fn wrong_items(column: &str, found: u16, wanted: usize) -> Failure {
    fail(HITREG_ERROR_SIZE, format!("the items of {column} have {found} bytes, not {wanted}"))
}

/// Converts the values of a table of the caller's own, or of usercmd fields. Numbers are not yet those of
/// [`read_bits`].
///
/// # Safety
/// A text is null or a C string.
pub(super) unsafe fn own_values(stream: &mut Stream, values: &[hitreg_value]) -> Result<Vec<OwnValue>, Failure> {
    let value = |value: &hitreg_value| match value.kind {
        // SAFETY: the kind says which of the contents it is, and any bits are valid.
        NUMBER => Ok(OwnValue::Number(unsafe { value.data.number })),
        // SAFETY: as above.
        REAL => Ok(OwnValue::Float(unsafe { value.data.real })),
        // SAFETY: as above.
        REAL64 => Ok(OwnValue::Double(unsafe { value.data.real64 })),
        // SAFETY: as above, and the caller guarantees the text.
        TEXT => Ok(OwnValue::Text(stream.text(unsafe { text(value.data.text, "a text") }?)?)),
        _ => Err(fail(HITREG_ERROR_MISFIT, "a value of your own is a number, a float or a text")),
    };
    values.iter().map(value).collect()
}

/// Reads the numbers of `u64` columns as their bits.
pub(super) fn read_bits(values: &mut [OwnValue], columns: impl Iterator<Item = CellKind>) {
    for (value, kind) in values.iter_mut().zip(columns) {
        if let (OwnValue::Number(bits), CellKind::U64) = (*value, kind) {
            *value = OwnValue::Unsigned(bits as u64);
        }
    }
}

/// Values that a caller reads.
impl hitreg_value {
    pub(super) const fn none() -> hitreg_value {
        hitreg_value { kind: NONE, item_bytes: 0, count: 0, data: hitreg_value_data { number: 0 } }
    }

    pub(super) fn number(number: impl Into<i64>) -> hitreg_value {
        hitreg_value { kind: NUMBER, data: hitreg_value_data { number: number.into() }, ..hitreg_value::none() }
    }

    pub(super) fn number_or_none(number: Option<impl Into<i64>>) -> hitreg_value {
        number.map_or(hitreg_value::none(), hitreg_value::number)
    }

    pub(super) fn real(real: f32) -> hitreg_value {
        hitreg_value { kind: REAL, data: hitreg_value_data { real }, ..hitreg_value::none() }
    }

    pub(super) fn real64(real64: f64) -> hitreg_value {
        hitreg_value { kind: REAL64, data: hitreg_value_data { real64 }, ..hitreg_value::none() }
    }

    /// The text must outlive the value.
    pub(super) fn text(text: &CStr) -> hitreg_value {
        hitreg_value { kind: TEXT, data: hitreg_value_data { text: text.as_ptr() }, ..hitreg_value::none() }
    }

    pub(super) fn list<T>(items: &[T]) -> hitreg_value {
        let first: *const c_void = if items.is_empty() { std::ptr::null() } else { items.as_ptr().cast() };
        let (item_bytes, count) = (size_of::<T>() as u16, items.len() as u32);
        hitreg_value { kind: LIST, item_bytes, count, data: hitreg_value_data { items: first } }
    }
}

/// Writes the first `count` values of a row to the caller's array.
///
/// # Safety
/// `values` is null or writable for `count` values.
pub(super) unsafe fn put(
    table: &str,
    row: &[hitreg_value],
    values: *mut hitreg_value,
    count: usize,
) -> Result<(), Failure> {
    if count > row.len() {
        let says = format!("a row of `{table}` has {} values, and there is room for {count}", row.len());
        return Err(fail(HITREG_ERROR_MISFIT, says));
    }
    if values.is_null() && count > 0 {
        return Err(fail(HITREG_ERROR_NULL, "values is null"));
    }
    for (place, value) in row[..count].iter().enumerate() {
        // SAFETY: the array has `count` values; it need not be aligned.
        unsafe { values.add(place).write_unaligned(*value) };
    }
    Ok(())
}

/// Returns the number of an enum's value.
pub(super) fn number_of<T: PartialEq>(value: &T, list: &[T]) -> hitreg_value {
    let place = list.iter().position(|known| known == value);
    place.map_or(hitreg_value::none(), |place| hitreg_value::number(place as i64))
}

/// The header declares these sizes of list items, and any bits are a valid item.
const _: () =
    assert!(size_of::<hitreg_effect>() == 24 && size_of::<hitreg_value>() == 16 && size_of::<EntityId>() == 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_numbers() {
        assert!(TABLES.iter().enumerate().all(|(place, (table, ..))| *table as usize == place));
    }

    #[test]
    fn the_header_documents_every_column() {
        let header = include_str!("../include/hitreg.h");
        for (table, name, columns) in TABLES {
            let (before, _) = header.split_once(&format!("  {table:?} = ")).expect("the constant of a table");
            let comment: Vec<&str> = before.lines().rev().take_while(|line| line.starts_with("  // ")).collect();
            let comment: Vec<&str> = comment.iter().rev().map(|line| &line[5..]).collect();
            let comment = comment.join(" ");
            assert!(comment.contains(&format!(": {}.", columns.join(", "))), "`{name}`: {comment}");
        }
    }
}
