//! `hitreg_about`: the description of a session, before its first record.

use std::ffi::c_char;

use super::guard::hitreg_code::{self, HITREG_FINISHED, HITREG_MISFIT, HITREG_VALUE};
use super::guard::{Failure, array, fail, free, guard, handle, text};
use ::hitreg_log::record::{CellKind, Class, FieldSchema, Meaning, Scope};
use ::hitreg_log::recorder::Description;
use ::hitreg_log::units::PlayerId;

/// A description of a session. The functions that start a recorder consume it, but the caller still frees it.
pub struct hitreg_about {
    /// `None` once a recorder has consumed it.
    about: Option<Description>,
    class: Option<Class>,
    kind: Option<(String, Vec<(String, CellKind)>)>,
}

/// Field type: 32-bit float.
pub const HITREG_F32: u32 = 0;
/// Field type: signed integer.
pub const HITREG_I32: u32 = 1;
/// Field type: unsigned integer; also flags.
pub const HITREG_U32: u32 = 2;

/// Scope: movement, predicted by clients and compared on an ack.
pub const HITREG_MOVEMENT: u32 = 0;
/// Scope: weapons, predicted by clients that predict weapons.
pub const HITREG_WEAPONS: u32 = 1;
/// Scope: server only, such as health.
pub const HITREG_STATUS: u32 = 2;

/// Meaning: none of the others.
pub const HITREG_PLAIN: u32 = 0;
/// Meaning: a coordinate of a position.
pub const HITREG_POSITION: u32 = 1;
/// Meaning: a component of a velocity.
pub const HITREG_VELOCITY: u32 = 2;
/// Meaning: an angle in degrees.
pub const HITREG_ANGLE: u32 = 3;
/// Meaning: a component of a unit vector.
pub const HITREG_DIRECTION: u32 = 4;
/// Meaning: a counter.
pub const HITREG_COUNTER: u32 = 5;
/// Meaning: a flag, or a set of flags as bits.
pub const HITREG_FLAG: u32 = 6;
/// Meaning: an enumeration value.
pub const HITREG_NAME: u32 = 7;
/// Meaning: a time, in milliseconds unless the field has another unit.
pub const HITREG_TIME: u32 = 8;

impl hitreg_about {
    /// Takes the description, including the latest class and kind.
    pub(super) fn take(&mut self) -> Result<Description, Failure> {
        let mut about = self.about.take().ok_or_else(used)?;
        if let Some(class) = self.class.take() {
            about = about.class(class);
        }
        if let Some((name, columns)) = self.kind.take() {
            about = about.kind(name, columns);
        }
        Ok(about)
    }

    fn change(&mut self, with: impl FnOnce(Description) -> Description) -> Result<(), Failure> {
        self.about = Some(with(self.about.take().ok_or_else(used)?));
        Ok(())
    }
}

fn used() -> Failure {
    fail(HITREG_FINISHED, "this description was used already")
}

fn cell_kind(kind: u32) -> Result<CellKind, Failure> {
    match kind {
        HITREG_F32 => Ok(CellKind::F32),
        HITREG_I32 => Ok(CellKind::I32),
        HITREG_U32 => Ok(CellKind::U32),
        other => Err(fail(HITREG_VALUE, format!("there is no kind of field {other}"))),
    }
}

/// # Safety
/// `name` and `unit` are null or a C string; `unit` may be null.
unsafe fn field(
    name: *const c_char,
    kind: u32,
    scope: u32,
    meaning: u32,
    unit: *const c_char,
) -> Result<FieldSchema, Failure> {
    const SCOPES: [Scope; 3] = [Scope::Movement, Scope::Weapons, Scope::Status];
    const MEANINGS: [Meaning; 9] = [
        Meaning::Plain,
        Meaning::Position,
        Meaning::Velocity,
        Meaning::Angle,
        Meaning::Direction,
        Meaning::Counter,
        Meaning::Flag,
        Meaning::Name,
        Meaning::Time,
    ];
    // SAFETY: the caller upholds this function's contract.
    let name = unsafe { text(name, "the field's name") }?;
    let none = |what: &str, number: u32| fail(HITREG_VALUE, format!("there is no {what} {number} of a field"));
    let scope = SCOPES.get(scope as usize).ok_or_else(|| none("scope", scope))?;
    let meaning = MEANINGS.get(meaning as usize).ok_or_else(|| none("meaning", meaning))?;
    let field = FieldSchema::new(name, cell_kind(kind)?, *scope).meaning(*meaning);
    if unit.is_null() {
        return Ok(field);
    }
    // SAFETY: the caller guarantees that a non-null `unit` is a C string.
    Ok(field.in_unit(unsafe { text(unit, "the field's unit") }?))
}

/// Creates the description of a session of a game. Returns null on an error; `hitreg_last_error` has the message.
///
/// # Safety
/// `game` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_new(game: *const c_char) -> *mut hitreg_about {
    let mut made = std::ptr::null_mut();
    guard(|| {
        // SAFETY: the caller upholds this function's contract.
        let about = Some(Description::new(unsafe { text(game, "game") }?));
        made = Box::into_raw(Box::new(hitreg_about { about, class: None, kind: None }));
        Ok(())
    });
    made
}

/// Frees a description; does nothing for null.
///
/// # Safety
/// `about` is null, or a description that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_free(about: *mut hitreg_about) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(about) }
}

/// Sets the server's tick rate, 1 to 1,000 Hz.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_tick_hz(about: *mut hitreg_about, hz: u32) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(about, "about") }?.change(|about| about.tick_hz(hz)))
}

/// Adds a setting under the game's own name.
///
/// # Safety
/// `about` is null or a description, `key` and `value` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_setting(
    about: *mut hitreg_about,
    key: *const c_char,
    value: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (key, value) = (text(key, "key")?, text(value, "value")?);
        handle(about, "about")?.change(|about| about.setting(key, value))
    })
}

/// Sets the map's name and its bytes. Pass no bytes when the replay loads the map from its own files.
///
/// # Safety
/// `about` is null or a description, `name` null or a C string, `bytes` null or `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_map(
    about: *mut hitreg_about,
    name: *const c_char,
    bytes: *const u8,
    length: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, bytes) = (text(name, "name")?, array(bytes, length, "bytes")?);
        handle(about, "about")?.change(|about| about.map(name, bytes.to_vec()))
    })
}

/// Sets the random seed of the session.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_seed(about: *mut hitreg_about, seed: u64) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(about, "about") }?.change(|about| about.seed(seed)))
}

/// Adds the next player, numbered from 0. Pass a pseudonym unless players agreed to be recorded by name.
///
/// # Safety
/// `about` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_player(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(about, "about")?.change(|about| about.player(name))
    })
}

/// Starts the next class of entities, numbered from 0. `hitreg_about_field` adds its fields.
///
/// # Safety
/// `about` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_class(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, about) = (text(name, "name")?, handle(about, "about")?);
        match about.class.replace(Class::new(name, Vec::new())) {
            Some(before) => about.change(|about| about.class(before)),
            None => about.change(|about| about),
        }
    })
}

/// Adds a field to the latest class. `kind` is `HITREG_F32`…, `scope` `HITREG_MOVEMENT`…, `meaning` `HITREG_POSITION`…;
/// `unit` may be null.
///
/// # Safety
/// `about` is null or a description, `name` and `unit` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_field(
    about: *mut hitreg_about,
    name: *const c_char,
    kind: u32,
    scope: u32,
    meaning: u32,
    unit: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (field, about) = (field(name, kind, scope, meaning, unit)?, handle(about, "about")?);
        let no_class = || fail(HITREG_MISFIT, "a field comes before the first class");
        about.class.as_mut().ok_or_else(no_class)?.fields.push(field);
        Ok(())
    })
}

/// Adds a game-defined field to all usercmds, for `hitreg_push_usercmd_with`. The arguments are those of
/// `hitreg_about_field`.
///
/// # Safety
/// `about` is null or a description, `name` and `unit` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmd_field(
    about: *mut hitreg_about,
    name: *const c_char,
    kind: u32,
    meaning: u32,
    unit: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let field = field(name, kind, HITREG_MOVEMENT, meaning, unit)?;
        handle(about, "about")?.change(|about| about.usercmd_field(field))
    })
}

/// Starts the next custom record kind, numbered from 0. `hitreg_about_column` adds its columns.
///
/// # Safety
/// `about` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_kind(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, about) = (text(name, "name")?, handle(about, "about")?);
        match about.kind.replace((name.to_owned(), Vec::new())) {
            Some((before, columns)) => about.change(|about| about.kind(before, columns)),
            None => about.change(|about| about),
        }
    })
}

/// Adds a column to the latest custom kind: `HITREG_F32` for floats, any other type for integers.
///
/// # Safety
/// `about` is null or a description, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_column(about: *mut hitreg_about, name: *const c_char, kind: u32) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, kind, about) = (text(name, "name")?, cell_kind(kind)?, handle(about, "about")?);
        let no_kind = || fail(HITREG_MISFIT, "a column comes before the first kind");
        about.kind.as_mut().ok_or_else(no_kind)?.1.push((name.to_owned(), kind));
        Ok(())
    })
}

/// Declares that usercmds carry extra bytes, for `hitreg_push_usercmd_bytes`.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmd_bytes(about: *mut hitreg_about) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(about, "about") }?.change(Description::usercmd_bytes))
}

/// Declares that the server records usercmds on arrival.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmds_as_received(about: *mut hitreg_about) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { handle(about, "about") }?.change(Description::usercmds_as_received))
}

/// Declares that the log holds one side of a session, by that side's clock. `player` is the client's player, or -1 for
/// the server. All sides pass the same `session`.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_side(about: *mut hitreg_about, session: u64, player: i32) -> hitreg_code {
    guard(|| {
        // SAFETY: the caller upholds this function's contract.
        let about = unsafe { handle(about, "about") }?;
        match (player, u16::try_from(player)) {
            (-1, _) => about.change(|about| about.server_side(session)),
            (_, Ok(player)) => about.change(|about| about.client_side(session, PlayerId(player))),
            (_, Err(_)) => Err(fail(HITREG_VALUE, format!("there is no player {player}"))),
        }
    })
}
