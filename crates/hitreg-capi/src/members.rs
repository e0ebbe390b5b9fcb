//! Structs of a game as states: the members of a struct declare, push and restore the fields of a class.

use std::ffi::{c_char, c_void};

use ::hitreg_log::record::{CellKind, ClassId, Record, StateRecord, TextCode};
use ::hitreg_log::recorder::Stream;
use ::hitreg_log::units::{EntityId, Tick};

use crate::about::cell_kind;
use crate::guard::hitreg_code::{self, HITREG_ERROR_MISFIT, HITREG_ERROR_SIZE, HITREG_ERROR_VALUE};
use crate::guard::{Failure, array, fail, fits, guard, look, null, text};
use crate::recorder::own;
use crate::{hitreg_description, hitreg_description_class, hitreg_field, hitreg_log, hitreg_state, hitreg_stream};

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
        if body.is_null() {
            return Err(null("body"));
        }
        let cells = cells_of(stream, body.cast(), members)?;
        let (entity, class) = (EntityId(fits(entity, "entity")?), ClassId(fits(class_number, "class_number")?));
        Ok(stream.push(Record::State(StateRecord { tick: Tick(tick), viewer: None, entity, class, cells }))?)
    })
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
    guard(|| unsafe {
        let (log, state) = (look(log, "log")?, look(state, "state")?);
        let (cells, members) =
            (array(state.cells, state.cell_count as usize, "cells")?, array(members, count as usize, "members")?);
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
        Ok(())
    })
}
