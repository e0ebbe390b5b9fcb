//! Rows: the tables that hitreg defines with their columns, the values that a caller pushes, and the values that a
//! caller reads.

use std::ffi::{CStr, c_void};

use super::guard::hitreg_code::{HITREG_ERROR_MISFIT, HITREG_ERROR_NULL, HITREG_ERROR_SIZE, HITREG_ERROR_VALUE};
use super::guard::{Failure, array, fail, fits, text};
use super::hitreg_table::{self, *};
use super::hitreg_value_kind::{
    HITREG_VALUE_LIST, HITREG_VALUE_NONE, HITREG_VALUE_NUMBER, HITREG_VALUE_REAL, HITREG_VALUE_REAL64,
    HITREG_VALUE_TEXT,
};
use super::{hitreg_effect, hitreg_value, hitreg_value_data};
use ::hitreg_log::record::{OwnValue, TextCode};
use ::hitreg_log::recorder::Stream;
use ::hitreg_log::units::{EntityId, PlayerId};

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

    /// Returns the bits of a hash; `None` without a value.
    #[inline]
    pub(super) fn read_hash(&self, column: &str) -> Result<Option<u64>, Failure> {
        if self.kind == NONE { Ok(None) } else { Ok(Some(self.bits(column)?.cast_unsigned())) }
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

/// Converts the values of a table of the caller's own, or of usercmd fields.
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
