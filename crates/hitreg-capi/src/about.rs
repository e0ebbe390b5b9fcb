//! `hitreg_description`: the description of a session, before its first record.

use std::ffi::c_char;

use ::hitreg_log::record::{CellKind, Class, FieldSchema, Meaning, Scope};
use ::hitreg_log::recorder::Description;
use ::hitreg_log::units::PlayerId;

use crate::guard::hitreg_code::{self, HITREG_ERROR_VALUE};
use crate::guard::{Failure, array, fail, free, guard, handle, text};
use crate::{hitreg_column, hitreg_field};

/// What a session is: its game, players, settings, and the fields of its entities. It can describe several recorders;
/// free it afterwards.
pub struct hitreg_description {
    pub(super) description: Description,
}

/// The type of a field or a column. Columns of traces take all but `HITREG_I32`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_type {
    /// 32-bit float.
    HITREG_F32 = 0,
    /// Signed 32-bit integer.
    HITREG_I32 = 1,
    /// Unsigned 32-bit integer; also flags and counters.
    HITREG_U32 = 2,
    /// Signed 64-bit integer.
    HITREG_I64 = 3,
    /// Unsigned 64-bit integer; also ids and hashes.
    HITREG_U64 = 4,
    /// 64-bit float.
    HITREG_F64 = 5,
    /// A flag: 0 or 1. Rows refuse other numbers. States keep them, and exports show them as true.
    HITREG_BOOL = 6,
    /// A text that repeats, such as the name of a weapon. Columns of traces: `hitreg_trace_names`.
    HITREG_TEXT = 7,
}

/// Who determines the value of a field, and so what a client does with it on an ack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_scope {
    /// Movement: clients predict it, and compare it on an ack.
    HITREG_SCOPE_MOVEMENT = 0,
    /// Weapons: clients that predict weapons predict it, and compare it on an ack.
    HITREG_SCOPE_WEAPONS = 1,
    /// Only the server, such as health: clients adopt it on an ack.
    HITREG_SCOPE_STATUS = 2,
}

/// What a field measures.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub enum hitreg_meaning {
    /// None of the others.
    HITREG_MEANING_PLAIN = 0,
    /// A coordinate of a position; in units by default.
    HITREG_MEANING_POSITION = 1,
    /// A component of a velocity; in units/s by default.
    HITREG_MEANING_VELOCITY = 2,
    /// An angle in degrees, which wraps at 360. Three consecutive angles are pitch, yaw and roll.
    HITREG_MEANING_ANGLE = 3,
    /// A component of a unit vector.
    HITREG_MEANING_DIRECTION = 4,
    /// A counter: any change means that an event happened, whatever its size.
    HITREG_MEANING_COUNTER = 5,
    /// A flag, or a set of flags as bits.
    HITREG_MEANING_FLAG = 6,
    /// A value of an enumeration.
    HITREG_MEANING_NAME = 7,
    /// A point in time or a duration; in milliseconds by default.
    HITREG_MEANING_TIME = 8,
}

impl hitreg_description {
    fn change(&mut self, with: impl FnOnce(Description) -> Description) -> Result<(), Failure> {
        self.description = with(std::mem::replace(&mut self.description, Description::new("")));
        Ok(())
    }
}

pub(super) fn cell_kind(number: u32) -> Result<CellKind, Failure> {
    use CellKind::{Bool, F32, F64, I32, I64, Text, U32, U64};
    const KINDS: [CellKind; 8] = [F32, I32, U32, I64, U64, F64, Bool, Text];
    let none = || fail(HITREG_ERROR_VALUE, format!("there is no type {number} of a field"));
    KINDS.get(number as usize).copied().ok_or_else(none)
}

/// Converts fields from C.
///
/// # Safety
/// `fields` is null or `count` fields; their names and units are null or a C string.
unsafe fn fields(fields: *const hitreg_field, count: usize) -> Result<Vec<FieldSchema>, Failure> {
    const SCOPES: [Scope; 3] = [Scope::Movement, Scope::Weapons, Scope::Status];
    use Meaning::{Angle, Counter, Direction, Flag, Name, Plain, Position, Time, Velocity};
    const MEANINGS: [Meaning; 9] = [Plain, Position, Velocity, Angle, Direction, Counter, Flag, Name, Time];
    let none = |what: &str, number: u32| fail(HITREG_ERROR_VALUE, format!("there is no {what} {number} of a field"));
    let field = |c: &hitreg_field| {
        // SAFETY: the caller guarantees that the name is null or a C string.
        let name = unsafe { text(c.name, "the field's name") }?;
        let scope = SCOPES.get(c.scope as usize).ok_or_else(|| none("scope", c.scope))?;
        let meaning = MEANINGS.get(c.meaning as usize).ok_or_else(|| none("meaning", c.meaning))?;
        let field = FieldSchema::new(name, cell_kind(c.value_type)?, *scope).meaning(*meaning);
        if c.unit.is_null() {
            return Ok(field);
        }
        // SAFETY: the caller guarantees that a non-null unit is a C string.
        Ok(field.in_unit(unsafe { text(c.unit, "the field's unit") }?))
    };
    // SAFETY: the caller upholds this function's contract.
    unsafe { array(fields, count, "fields") }?.iter().map(field).collect()
}

/// Creates the description of a session of a game. Returns null on an error; `hitreg_last_error` has the message.
///
/// # Safety
/// `game` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_new(game: *const c_char) -> *mut hitreg_description {
    let mut made = std::ptr::null_mut();
    guard(|| {
        // SAFETY: the caller upholds this function's contract.
        let description = Description::new(unsafe { text(game, "game") }?);
        made = Box::into_raw(Box::new(hitreg_description { description }));
        Ok(())
    });
    made
}

/// Frees a description; does nothing for null.
///
/// # Safety
/// `description` is null, or a description that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_free(description: *mut hitreg_description) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(description) }
}

/// Adds the next player, numbered from 0. Pass a pseudonym unless players agreed to be recorded by name.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_player(
    description: *mut hitreg_description,
    name: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(description, "description")?.change(|description| description.player(name))
    })
}

/// Sets the server's tick rate, 1 to 1,000 Hz.
///
/// # Safety
/// `description` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_tick_hz(description: *mut hitreg_description, hz: u32) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(description, "description") }?.change(|description| description.tick_hz(hz)))
}

/// Sets the map's name and its bytes, at most 11 MiB. Pass no bytes (null, 0) when the replay loads the map from its own
/// files.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string, `bytes` null or `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_map(
    description: *mut hitreg_description,
    name: *const c_char,
    bytes: *const u8,
    length: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, bytes) = (text(name, "name")?, array(bytes, length, "bytes")?);
        handle(description, "description")?.change(|description| description.map(name, bytes.to_vec()))
    })
}

/// Sets the random seed of the session.
///
/// # Safety
/// `description` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_seed(description: *mut hitreg_description, seed: u64) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(description, "description") }?.change(|description| description.seed(seed)))
}

/// Adds a setting under the game's own name, such as `mygame.friction`. The last value of a name counts.
///
/// # Safety
/// `description` is null or a description, `key` and `value` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_setting(
    description: *mut hitreg_description,
    key: *const c_char,
    value: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (key, value) = (text(key, "key")?, text(value, "value")?);
        handle(description, "description")?.change(|description| description.setting(key, value))
    })
}

/// Declares an optional command of this build: `step` or `record` (docs/builds.md). Only traces store it.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_capability(
    description: *mut hitreg_description,
    name: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(description, "description")?.change(|description| description.capability(name))
    })
}

/// Declares that the log holds one side of a session, by that side's clock. `player` is the client's player, or -1 for
/// the server. All sides pass the same `session`; `hitreg merge` combines their logs.
///
/// # Safety
/// `description` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_side(
    description: *mut hitreg_description,
    session: u64,
    player: i32,
) -> hitreg_code {
    guard(|| {
        // SAFETY: the caller upholds this function's contract.
        let description = unsafe { handle(description, "description") }?;
        match (player, u16::try_from(player)) {
            (-1, _) => description.change(|description| description.server_side(session)),
            (_, Ok(player)) => description.change(|description| description.client_side(session, PlayerId(player))),
            (_, Err(_)) => Err(fail(HITREG_ERROR_VALUE, format!("there is no player {player}"))),
        }
    })
}

/// Adds the next class of entities, numbered from 0, with the fields of their states.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string, `fields` null or `count` fields, whose names and
/// units are null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_class(
    description: *mut hitreg_description,
    name: *const c_char,
    fields: *const hitreg_field,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let class = Class::new(text(name, "name")?, self::fields(fields, count)?);
        handle(description, "description")?.change(|description| description.class(class))
    })
}

/// Adds fields of your own to all usercmds, for `hitreg_usercmd.fields`. `scope` has no effect.
///
/// # Safety
/// `description` is null or a description, `fields` null or `count` fields, whose names and units are null or a C
/// string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_usercmd_fields(
    description: *mut hitreg_description,
    fields: *const hitreg_field,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let fields = self::fields(fields, count)?;
        let add = |description| fields.into_iter().fold(description, Description::usercmd_field);
        handle(description, "description")?.change(add)
    })
}

/// Declares that usercmds carry bytes of your own, for `hitreg_usercmd.bytes`.
///
/// # Safety
/// `description` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_usercmd_bytes(description: *mut hitreg_description) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(description, "description") }?.change(Description::usercmd_bytes))
}

/// Adds the next table of your own, numbered from 0; see `hitreg_table_custom`. Each row has a time, a series (such as
/// a player) and these columns.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string, `columns` null or `count` columns, whose names
/// are null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_table(
    description: *mut hitreg_description,
    name: *const c_char,
    columns: *const hitreg_column,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let name = text(name, "name")?;
        let column = |c: &hitreg_column| {
            let (name, kind) = (text(c.name, "the column's name")?, cell_kind(c.value_type)?);
            Ok((name.to_owned(), kind))
        };
        let columns = array(columns, count, "columns")?.iter().map(column).collect::<Result<Vec<_>, Failure>>()?;
        handle(description, "description")?.change(|description| description.kind(name, columns))
    })
}
