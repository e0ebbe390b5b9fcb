//! Structs of a game as states: the members of a struct declare, push and restore the fields of a class.

use std::ffi::{c_char, c_void};

use ::hitreg_log::record::{CellKind, ClassId, Record, StateRecord, TextCode, TickRecord};
use ::hitreg_log::recorder::Stream;
use ::hitreg_log::units::{EntityId, Micros, Tick};

use crate::about::cell_kind;
use crate::guard::hitreg_code::{self, HITREG_ERROR_MISFIT, HITREG_ERROR_SIZE, HITREG_ERROR_VALUE};
use crate::guard::{Failure, array, fail, fits, guard, look, null, text};
use crate::recorder::own;
use crate::{
    hitreg_description, hitreg_description_class, hitreg_field, hitreg_log, hitreg_state, hitreg_stream, hitreg_type,
};

/// A member of a struct as a field of a class. Make it with HITREG_FIELD.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_member {
    /// The field.
    pub field: hitreg_field,
    /// Bytes before the member in the struct.
    pub offset: u32,
    /// Bytes of the member.
    pub size: u32,
}

impl hitreg_member {
    /// Returns the type of the field. Refuses a member of a size that the type does not have.
    ///
    /// # Safety
    /// The name of the field is null or a C string.
    #[inline]
    unsafe fn kind(&self) -> Result<CellKind, Failure> {
        let kind = cell_kind(self.field.value_type)?;
        let (fits, sizes) = match kind {
            CellKind::F32 => (self.size == 4, "4"),
            CellKind::F64 => (self.size == 8, "8"),
            CellKind::I32 | CellKind::U32 | CellKind::Bool => (matches!(self.size, 1 | 2 | 4), "1, 2 or 4"),
            CellKind::I64 | CellKind::U64 => (matches!(self.size, 1 | 2 | 4 | 8), "1, 2, 4 or 8"),
            CellKind::Text => (self.size > 0, "at least 1"),
        };
        if fits {
            return Ok(kind);
        }
        // SAFETY: the caller upholds this function's contract.
        Err(wrong_size(unsafe { text(self.field.name, "the field's name") }?, self.size, kind, sizes))
    }

    /// Returns the bits of a number, with the sign of signed types.
    ///
    /// # Safety
    /// `body` has the member, which has 1, 2, 4 or 8 bytes.
    #[inline]
    unsafe fn read(&self, kind: CellKind, body: *const u8) -> u64 {
        // SAFETY: the caller upholds this function's contract; members need not be aligned.
        let bits = unsafe {
            let at = body.add(self.offset as usize);
            match self.size {
                1 => u64::from(at.read()),
                2 => u64::from(at.cast::<u16>().read_unaligned()),
                4 => u64::from(at.cast::<u32>().read_unaligned()),
                _ => at.cast::<u64>().read_unaligned(),
            }
        };
        let unused = 64 - 8 * self.size;
        let is_signed = matches!(kind, CellKind::I32 | CellKind::I64);
        if is_signed { ((bits << unused).cast_signed() >> unused).cast_unsigned() } else { bits }
    }

    /// Writes the low bits of a number.
    ///
    /// # Safety
    /// `body` has the member, which is writable and has 1, 2, 4 or 8 bytes.
    unsafe fn write(&self, body: *mut u8, bits: u64) {
        // SAFETY: the caller upholds this function's contract; members need not be aligned.
        unsafe {
            let to = body.add(self.offset as usize);
            match self.size {
                1 => to.write(bits as u8),
                2 => to.cast::<u16>().write_unaligned(bits as u16),
                4 => to.cast::<u32>().write_unaligned(bits as u32),
                _ => to.cast::<u64>().write_unaligned(bits),
            }
        }
    }

    /// Returns the text of an array of char: up to its first zero byte, or all of the array.
    ///
    /// # Safety
    /// `body` has the member and outlives the result.
    unsafe fn read_text<'b>(&self, body: *const u8) -> Result<&'b str, Failure> {
        // SAFETY: the caller upholds this function's contract.
        let bytes = unsafe { std::slice::from_raw_parts(body.add(self.offset as usize), self.size as usize) };
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).map_err(|_| fail(HITREG_ERROR_VALUE, "the text of a member is not UTF-8"))
    }

    /// Writes a text into an array of char, and zero bytes behind it. A text that is longer than the array is cut, so
    /// that it ends with a zero byte.
    ///
    /// # Safety
    /// `body` has the member, which is writable.
    unsafe fn write_text(&self, body: *mut u8, text: &[u8]) {
        let size = self.size as usize;
        let length = if text.len() > size { size - 1 } else { text.len() };
        // SAFETY: the caller upholds this function's contract, and `length` is at most `size`.
        unsafe {
            let to = body.add(self.offset as usize);
            to.write_bytes(0, size);
            to.copy_from_nonoverlapping(text.as_ptr(), length);
        }
    }
}

#[cold]
fn wrong_size(name: &str, found: u32, kind: CellKind, sizes: &str) -> Failure {
    let kind = kind.name().to_uppercase();
    fail(HITREG_ERROR_SIZE, format!("the member of field `{name}` has {found} bytes, and HITREG_{kind} takes {sizes}"))
}

/// A class of entities whose states are structs. Make it with HITREG_CLASS.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_class {
    /// Name of the class.
    pub name: *const c_char,
    /// The members of its structs.
    pub members: *const hitreg_member,
    /// Number of members.
    pub count: u32,
}

/// An entity and the struct with its state.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hitreg_body {
    /// The entity, up to 65,535; players first.
    pub entity: u32,
    /// Index of its class in the array of classes.
    pub class_number: u32,
    /// The struct.
    pub state: *const c_void,
}

/// Declares a class whose fields are the members of a struct. Returns `HITREG_ERROR_SIZE` if the type of a field does
/// not have the size of its member.
///
/// # Safety
/// `description` is null or a description, `name` null or a C string, `members` null or `count` members, whose names
/// and units are null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_description_struct(
    description: *mut hitreg_description,
    name: *const c_char,
    members: *const hitreg_member,
    count: u32,
) -> hitreg_code {
    let mut fields = Vec::new();
    let checked = guard(|| {
        // SAFETY: the caller upholds this function's contract.
        for member in unsafe { array(members, count as usize, "members") }? {
            // SAFETY: as above.
            unsafe { member.kind() }?;
            fields.push(member.field);
        }
        Ok(())
    });
    match checked {
        // SAFETY: the caller upholds this function's contract.
        hitreg_code::HITREG_OK => unsafe { hitreg_description_class(description, name, fields.as_ptr(), fields.len()) },
        refused => refused,
    }
}

/// Pushes the state of an entity from a struct; see `hitreg_push_body`. Signed types extend a smaller member with its
/// sign, unsigned types with zeros. Returns `HITREG_ERROR_SIZE` if the type of a field does not have the size of its
/// member.
///
/// # Safety
/// `stream` is null or a stream, `members` null or `count` members, whose names are null or a C string. `body` is null
/// or a struct that has the members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_struct(
    stream: *mut hitreg_stream,
    tick: u32,
    entity: u32,
    class_number: u32,
    body: *const c_void,
    members: *const hitreg_member,
    count: u32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, members) = (own(stream)?, array(members, count as usize, "members")?);
        let state = state_of(stream, tick, hitreg_body { entity, class_number, state: body }, members)?;
        Ok(stream.push(Record::State(state))?)
    })
}

/// Continues a hash over the members of a struct: texts up to their end, other members as their bytes. Begin with 0.
///
/// # Safety
/// `members` is null or `count` members. `body` is null or a struct that has the members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_hash_struct(
    hash: u64,
    body: *const c_void,
    members: *const hitreg_member,
    count: u32,
) -> u64 {
    // SAFETY: the caller upholds this function's contract.
    match unsafe { array(members, count as usize, "members") } {
        // SAFETY: as above.
        Ok(members) if !body.is_null() => unsafe { hash_of(hash, body.cast(), members) },
        _ => hash,
    }
}

/// # Safety
/// `body` has the members.
unsafe fn hash_of(hash: u64, body: *const u8, members: &[hitreg_member]) -> u64 {
    let add = |hash: u64, number: u64| (hash ^ number).wrapping_mul(1_099_511_628_211);
    members.iter().fold(hash, |hash, member| {
        let is_text = member.field.value_type == hitreg_type::HITREG_TEXT as u32;
        // SAFETY: the caller upholds this function's contract.
        let bytes = unsafe { std::slice::from_raw_parts(body.add(member.offset as usize), member.size as usize) };
        let bytes = bytes.iter().take_while(|byte| !is_text || **byte != 0);
        add(bytes.fold(hash, |hash, byte| add(hash, u64::from(*byte))), 256)
    })
}

/// Pushes the end of a tick, with a hash of all bodies, and then the state of each. The order of the bodies does not
/// matter. `classes` are those of the description. If a body is refused, nothing is pushed.
///
/// # Safety
/// `stream` is null or a stream. `classes` is null or has the classes of the description, each with `count` members.
/// `bodies` is null or `count` bodies. The state of each is null or a struct that has the members of its class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_tick_with_bodies(
    stream: *mut hitreg_stream,
    tick: u32,
    at_us: i64,
    classes: *const hitreg_class,
    bodies: *const hitreg_body,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, bodies) = (own(stream)?, array(bodies, count, "bodies")?);
        if classes.is_null() {
            return Err(null("classes"));
        }
        let class_count = stream.classes().len();
        let (mut hash, mut states) = (0_u64, Vec::with_capacity(count));
        for body in bodies {
            let members = members_of((classes, class_count), body.class_number)?;
            states.push(state_of(stream, tick, *body, members)?);
            hash = hash.wrapping_add(hash_of(body.entity.into(), body.state.cast(), members));
        }
        // A hash of 0 is none, and a tick without bodies has one, too.
        let tick = TickRecord { tick: Tick(tick), at: Micros(at_us), hash: Some(hash.max(1)) };
        Ok(stream.tick_with_states(tick, states)?)
    })
}

/// Returns the members of a class.
///
/// # Safety
/// `classes` is null or has `count` classes, each with null or its number of members.
unsafe fn members_of<'c>(
    (classes, count): (*const hitreg_class, usize),
    number: u32,
) -> Result<&'c [hitreg_member], Failure> {
    if classes.is_null() {
        return Err(null("classes"));
    }
    if number as usize >= count {
        return Err(fail(HITREG_ERROR_MISFIT, format!("there is no class {number}: there are {count} classes")));
    }
    // SAFETY: the caller upholds this function's contract, and the class exists.
    unsafe {
        let class = classes.add(number as usize).read_unaligned();
        array(class.members, class.count as usize, "members")
    }
}

/// Returns the state of an entity after a tick.
///
/// # Safety
/// The body's struct is null or has the members. Their names are null or a C string.
#[inline]
unsafe fn state_of(
    stream: &mut Stream,
    tick: u32,
    body: hitreg_body,
    members: &[hitreg_member],
) -> Result<StateRecord, Failure> {
    if body.state.is_null() {
        return Err(null("body"));
    }
    // SAFETY: the caller upholds this function's contract.
    let cells = unsafe { cells_of(stream, body.state.cast(), members) }?;
    let (entity, class) = (EntityId(fits(body.entity, "entity")?), ClassId(fits(body.class_number, "class_number")?));
    Ok(StateRecord { tick: Tick(tick), viewer: None, entity, class, cells })
}

/// Returns the cells of a struct's state.
///
/// # Safety
/// `body` has the members. Their names are null or a C string.
#[inline]
unsafe fn cells_of(stream: &mut Stream, body: *const u8, members: &[hitreg_member]) -> Result<Vec<u32>, Failure> {
    let mut cells = Vec::with_capacity(2 * members.len());
    for member in members {
        // SAFETY: the caller upholds this function's contract, and `kind` checks the size.
        let (kind, bits) = unsafe {
            match member.kind()? {
                CellKind::Text => (CellKind::Text, stream.text(member.read_text(body)?)?.0),
                kind => (kind, member.read(kind, body)),
            }
        };
        cells.push(bits as u32);
        if kind.cells() == 2 {
            cells.push((bits >> 32) as u32);
        }
    }
    Ok(cells)
}

/// Writes a state into a struct, member by member. The members are those with which the state was pushed. A text fills
/// an array of its own length without a zero byte; a longer text is cut.
///
/// # Safety
/// `log` is null or a log, `state` null or a state, whose cells are null or `cell_count` numbers. `members` is null or
/// `count` members, whose names are null or a C string. `body` is null or a writable struct that has the members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_restore_struct(
    log: *const hitreg_log,
    state: *const hitreg_state,
    body: *mut c_void,
    members: *const hitreg_member,
    count: u32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { restore(log, look(state, "state")?, body, array(members, count as usize, "members")?) })
}

/// Writes a state into a struct of its class; see `hitreg_push_tick_with_bodies`.
///
/// # Safety
/// `log` is null or a log, `state` null or a state, whose cells are null or `cell_count` numbers. `classes` is null or
/// `class_count` classes, each with `count` members. `body` is null or a writable struct that has the members.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_restore_body(
    log: *const hitreg_log,
    state: *const hitreg_state,
    classes: *const hitreg_class,
    class_count: u32,
    body: *mut c_void,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let state = look(state, "state")?;
        restore(log, state, body, members_of((classes, class_count as usize), state.class_number)?)
    })
}

/// # Safety
/// `log` is null or a log, and `state` has null or `cell_count` cells. `body` is null or writable and has the members.
unsafe fn restore(
    log: *const hitreg_log,
    state: &hitreg_state,
    body: *mut c_void,
    members: &[hitreg_member],
) -> Result<(), Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let (log, cells) = (look(log, "log")?, array(state.cells, state.cell_count as usize, "cells")?);
        let kinds = members.iter().map(|member| member.kind()).collect::<Result<Vec<_>, Failure>>()?;
        let wanted: usize = kinds.iter().map(|kind| kind.cells()).sum();
        if wanted != cells.len() {
            let says = format!("the state has {} cells, and the members take {wanted}", cells.len());
            return Err(fail(HITREG_ERROR_MISFIT, says));
        }
        if body.is_null() {
            return Err(null("body"));
        }
        let (body, mut cells) = (body.cast::<u8>(), cells.iter().map(|cell| u64::from(*cell)));
        let mut next = || cells.next().unwrap_or_default();
        for (member, kind) in members.iter().zip(kinds) {
            let bits = if kind.cells() == 2 { next() | next() << 32 } else { next() };
            match kind {
                CellKind::Text => member.write_text(body, log.text(TextCode(bits)).to_bytes()),
                _ => member.write(body, bits),
            }
        }
    }
    Ok(())
}
