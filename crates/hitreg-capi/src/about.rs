//! `hitreg_about`: what a session is, before anything happens in it.

use std::ffi::c_char;

use super::guard::hitreg_code::{self, HITREG_FINISHED, HITREG_MISFIT, HITREG_VALUE};
use super::guard::{Failure, array, fail, free, guard, handle, text};
use ::hitreg_log::record::{CellKind, Class, Field, Meaning, Scope};
use ::hitreg_log::recorder::Description;
use ::hitreg_log::units::PlayerId;

/// A description of a session. `hitreg_recorder_create` uses it up; it is freed all the same.
pub struct hitreg_about {
    /// `None` once it was used.
    about: Option<Description>,
    class: Option<Class>,
    kind: Option<(String, Vec<(String, CellKind)>)>,
}

/// What a field, or a column, holds.
pub const HITREG_F32: u32 = 0;
/// A signed number.
pub const HITREG_I32: u32 = 1;
/// An unsigned number; flags, too.
pub const HITREG_U32: u32 = 2;

/// Movement: predicted by clients, compared on ack.
pub const HITREG_MOVEMENT: u32 = 0;
/// Weapons: predicted by clients that predict weapons.
pub const HITREG_WEAPONS: u32 = 1;
/// The server's alone, such as health.
pub const HITREG_STATUS: u32 = 2;

/// A field of which no more is known than its kind.
pub const HITREG_PLAIN: u32 = 0;
/// A coordinate of a place.
pub const HITREG_POSITION: u32 = 1;
/// A component of a velocity.
pub const HITREG_VELOCITY: u32 = 2;
/// An angle in degrees.
pub const HITREG_ANGLE: u32 = 3;
/// A component of a direction of length 1.
pub const HITREG_DIRECTION: u32 = 4;
/// Something counted.
pub const HITREG_COUNTER: u32 = 5;
/// Yes or no, or several as bits.
pub const HITREG_FLAG: u32 = 6;
/// One of a few things, by number.
pub const HITREG_NAME: u32 = 7;
/// A time in milliseconds, unless it says another unit.
pub const HITREG_TIME: u32 = 8;

impl hitreg_about {
    /// The description, with the class and the kind that were begun last.
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
/// `name` and `unit` are null or text; `unit` may be null.
unsafe fn field(
    name: *const c_char,
    kind: u32,
    scope: u32,
    meaning: u32,
    unit: *const c_char,
) -> Result<Field, Failure> {
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
    // SAFETY: as this function's own.
    let name = unsafe { text(name, "the field's name") }?;
    let none = |what: &str, number: u32| fail(HITREG_VALUE, format!("there is no {what} {number} of a field"));
    let scope = SCOPES.get(scope as usize).ok_or_else(|| none("scope", scope))?;
    let meaning = MEANINGS.get(meaning as usize).ok_or_else(|| none("meaning", meaning))?;
    let field = Field::new(name, cell_kind(kind)?, *scope).meaning(*meaning);
    if unit.is_null() {
        return Ok(field);
    }
    // SAFETY: it is not null, and so it is text.
    Ok(field.in_unit(unsafe { text(unit, "the field's unit") }?))
}

/// Begins the description of a session of a game. Null when the name is no text; `hitreg_last_error` says so.
///
/// # Safety
/// `game` is null or text with a zero at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_new(game: *const c_char) -> *mut hitreg_about {
    let mut made = std::ptr::null_mut();
    guard(|| {
        // SAFETY: as this function's own.
        let about = Some(Description::new(unsafe { text(game, "game") }?));
        made = Box::into_raw(Box::new(hitreg_about { about, class: None, kind: None }));
        Ok(())
    });
    made
}

/// Frees a description; null is none.
///
/// # Safety
/// `about` is null, or a description that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_free(about: *mut hitreg_about) {
    // SAFETY: as this function's own.
    unsafe { free(about) }
}

/// How often the server ticks, 1 to 1,000 times a second.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_tick_hz(about: *mut hitreg_about, hz: u32) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { handle(about, "about") }?.change(|about| about.tick_hz(hz)))
}

/// A setting, by the game's own name for it.
///
/// # Safety
/// `about` is null or a description, `key` and `value` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_setting(
    about: *mut hitreg_about,
    key: *const c_char,
    value: *const c_char,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (key, value) = (text(key, "key")?, text(value, "value")?);
        handle(about, "about")?.change(|about| about.setting(key, value))
    })
}

/// The map: its name, and its bytes if the log is to need no other file.
///
/// # Safety
/// `about` is null or a description, `name` null or text, `bytes` null or so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_map(
    about: *mut hitreg_about,
    name: *const c_char,
    bytes: *const u8,
    length: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (name, bytes) = (text(name, "name")?, array(bytes, length, "bytes")?);
        handle(about, "about")?.change(|about| about.map(name, bytes.to_vec()))
    })
}

/// Where the game's random numbers start from.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_seed(about: *mut hitreg_about, seed: u64) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { handle(about, "about") }?.change(|about| about.seed(seed)))
}

/// The next player; the first is number 0. Give no nicknames where nobody asked for that.
///
/// # Safety
/// `about` is null or a description, `name` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_player(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(about, "about")?.change(|about| about.player(name))
    })
}

/// Begins the next class of entities; the first is number 0. Its fields follow.
///
/// # Safety
/// `about` is null or a description, `name` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_class(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (name, about) = (text(name, "name")?, handle(about, "about")?);
        match about.class.replace(Class::new(name, Vec::new())) {
            Some(before) => about.change(|about| about.class(before)),
            None => about.change(|about| about),
        }
    })
}

/// The next field of the class that was begun last: `HITREG_F32`…, `HITREG_MOVEMENT`…, `HITREG_POSITION`…; `unit` may be null.
///
/// # Safety
/// `about` is null or a description, `name` and `unit` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_field(
    about: *mut hitreg_about,
    name: *const c_char,
    kind: u32,
    scope: u32,
    meaning: u32,
    unit: *const c_char,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (field, about) = (field(name, kind, scope, meaning, unit)?, handle(about, "about")?);
        let no_class = || fail(HITREG_MISFIT, "a field comes before the first class");
        about.class.as_mut().ok_or_else(no_class)?.fields.push(field);
        Ok(())
    })
}

/// A field of the game's own that usercmds have besides the usual ones (`hitreg_push_usercmd_with`): as `hitreg_about_field`.
///
/// # Safety
/// `about` is null or a description, `name` and `unit` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmd_field(
    about: *mut hitreg_about,
    name: *const c_char,
    kind: u32,
    meaning: u32,
    unit: *const c_char,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let field = field(name, kind, HITREG_MOVEMENT, meaning, unit)?;
        handle(about, "about")?.change(|about| about.usercmd_field(field))
    })
}

/// Begins the next kind of record of the game's own; the first is number 0. Its columns follow.
///
/// # Safety
/// `about` is null or a description, `name` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_kind(about: *mut hitreg_about, name: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (name, about) = (text(name, "name")?, handle(about, "about")?);
        match about.kind.replace((name.to_owned(), Vec::new())) {
            Some((before, columns)) => about.change(|about| about.kind(before, columns)),
            None => about.change(|about| about),
        }
    })
}

/// The next column of the kind that was begun last: `HITREG_F32`, or any number.
///
/// # Safety
/// `about` is null or a description, `name` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_column(about: *mut hitreg_about, name: *const c_char, kind: u32) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (name, kind, about) = (text(name, "name")?, cell_kind(kind)?, handle(about, "about")?);
        let no_kind = || fail(HITREG_MISFIT, "a column comes before the first kind");
        about.kind.as_mut().ok_or_else(no_kind)?.1.push((name.to_owned(), kind));
        Ok(())
    })
}

/// Usercmds carry bytes of their own (`hitreg_push_usercmd_bytes`).
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmd_bytes(about: *mut hitreg_about) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { handle(about, "about") }?.change(Description::usercmd_bytes))
}

/// Usercmds are recorded by the server as they reach it.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_usercmds_as_received(about: *mut hitreg_about) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { handle(about, "about") }?.change(Description::usercmds_as_received))
}

/// The log holds one side of a session by that side's clock: `player` is the client's, or -1 for the server. All sides say the
/// same `session`.
///
/// # Safety
/// `about` is null or a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_about_side(about: *mut hitreg_about, session: u64, player: i32) -> hitreg_code {
    guard(|| {
        // SAFETY: as this function's own.
        let about = unsafe { handle(about, "about") }?;
        match (player, u16::try_from(player)) {
            (-1, _) => about.change(|about| about.server_side(session)),
            (_, Ok(player)) => about.change(|about| about.client_side(session, PlayerId(player))),
            (_, Err(_)) => Err(fail(HITREG_VALUE, format!("there is no player {player}"))),
        }
    })
}
