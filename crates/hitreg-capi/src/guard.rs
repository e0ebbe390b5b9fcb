//! What stands between C and the library: codes and sentences, pointers that may be null, structs that may be older.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::hitreg_log::recorder::{FinishError, PushError};

/// How a call went.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hitreg_code {
    /// As asked.
    HITREG_OK = 0,
    /// A handle or pointer is null.
    HITREG_NULL = 1,
    /// A struct does not say a size that this library knows: set `size` to `sizeof` it, and build with this library's header.
    HITREG_SIZE = 2,
    /// Text is not UTF-8, or an enum has no such value, or a number does not fit its field.
    HITREG_VALUE = 3,
    /// The record does not fit the description: no such player, class or kind, or another width.
    HITREG_MISFIT = 4,
    /// It comes later than the recorder's window allows.
    HITREG_LATE = 5,
    /// The recorder cannot keep up; the record is lost, and the log says so.
    HITREG_OVERRUN = 6,
    /// The recording, or the handle's work, is over.
    HITREG_FINISHED = 7,
    /// The recording cannot be written any more.
    HITREG_STOPPED = 8,
    /// The description is not one.
    HITREG_DESCRIPTION = 9,
    /// A file cannot be read or written.
    HITREG_FILE = 10,
    /// There is no such row.
    HITREG_NO_ROW = 11,
    /// The stream belongs to another thread.
    HITREG_THREAD = 12,
    /// The library has a fault. Please tell its makers.
    HITREG_PANIC = 13,
}

use hitreg_code::{
    HITREG_DESCRIPTION, HITREG_FILE, HITREG_FINISHED, HITREG_LATE, HITREG_MISFIT, HITREG_NULL, HITREG_OK,
    HITREG_OVERRUN, HITREG_PANIC, HITREG_SIZE, HITREG_STOPPED, HITREG_VALUE,
};

/// A code that is not `HITREG_OK`, and its sentence.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: hitreg_code,
    pub(super) says: String,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// A sentence about the last call of this thread that failed; empty if none has. It stays until the next that fails, or until the
/// thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn hitreg_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Runs what a function does.
#[inline]
pub(super) fn guard(does: impl FnOnce() -> Result<(), Failure>) -> hitreg_code {
    // What a panic leaves behind is not looked at again: handles that were being changed say that they are over.
    match catch_unwind(AssertUnwindSafe(does)) {
        Ok(Ok(())) => HITREG_OK,
        Ok(Err(failure)) => tell(failure),
        Err(_) => tell(fail(HITREG_PANIC, "the library has a fault: it panicked")),
    }
}

#[cold]
fn tell(failure: Failure) -> hitreg_code {
    let text = CString::new(failure.says.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    failure.code
}

#[cold]
pub(super) fn fail(code: hitreg_code, says: impl Into<String>) -> Failure {
    Failure { code, says: says.into() }
}

impl From<PushError> for Failure {
    #[cold]
    fn from(error: PushError) -> Failure {
        let code = match error {
            PushError::Late { .. } => HITREG_LATE,
            PushError::Overrun => HITREG_OVERRUN,
            PushError::Finished => HITREG_FINISHED,
            PushError::Stopped => HITREG_STOPPED,
            _ => HITREG_MISFIT,
        };
        fail(code, error.to_string())
    }
}

impl From<FinishError> for Failure {
    fn from(error: FinishError) -> Failure {
        let code = if let FinishError::Description(_) = error { HITREG_DESCRIPTION } else { HITREG_FILE };
        fail(code, error.to_string())
    }
}

impl From<::hitreg_log::store::StoreError> for Failure {
    fn from(error: ::hitreg_log::store::StoreError) -> Failure {
        fail(HITREG_FILE, error.to_string())
    }
}

/// A handle that C holds.
///
/// # Safety
/// It is null, or came from this library as this type and was not freed; nobody else uses it meanwhile.
#[inline]
pub(super) unsafe fn handle<'h, T>(pointer: *mut T, name: &str) -> Result<&'h mut T, Failure> {
    // SAFETY: as this function's own.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// The same, only looked at.
///
/// # Safety
/// As [`handle`], but others may look at it, too.
#[inline]
pub(super) unsafe fn look<'h, T>(pointer: *const T, name: &str) -> Result<&'h T, Failure> {
    // SAFETY: as this function's own.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Puts an answer where C wants it.
///
/// # Safety
/// The pointer is null or may be written to.
pub(super) unsafe fn answer<T>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null("the place for the answer"));
    }
    // SAFETY: it is not null, and may be written to; it need not be aligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

#[cold]
fn null(name: &str) -> Failure {
    fail(HITREG_NULL, format!("{name} is null"))
}

/// Text from C.
///
/// # Safety
/// The pointer is null, or leads to text with a zero at its end.
pub(super) unsafe fn text<'t>(pointer: *const c_char, name: &str) -> Result<&'t str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and there is a zero at the end of the text.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| fail(HITREG_VALUE, format!("{name} is not UTF-8")))
}

/// An array from C; null is one of no length.
///
/// # Safety
/// The pointer is null, or leads to so many values.
pub(super) unsafe fn array<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() || length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(fail(HITREG_VALUE, format!("{name} is no array of {length} values")));
    }
    // SAFETY: it is neither null nor askew, and its caller says that there are so many.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// A struct that begins with its size, all of whose bytes may have any value.
///
/// # Safety
/// A struct that consists of numbers alone, `size: u32` first, without padding.
pub(super) unsafe trait Sized32: Copy {
    /// What it measured when it first came out; a caller's may be as short, and the rest is zero.
    const FIRST: usize;
    const NAME: &'static str;
}

/// A struct from C, whose header may be older than this library.
///
/// # Safety
/// The pointer is null, or leads to as many bytes as the struct says.
#[inline]
pub(super) unsafe fn sized<T: Sized32 + Default>(pointer: *const T) -> Result<T, Failure> {
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: it is not null, and whatever version it is begins with its size.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if size < T::FIRST || size > size_of::<T>() {
        return Err(wrong_size(T::NAME, size, size_of::<T>()));
    }
    let mut value = T::default();
    // SAFETY: both hold at least `size` bytes, they do not overlap, and any bytes are a `T`.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), size) };
    Ok(value)
}

/// An array of structs from C, each as large as the first says; null is one of no length.
///
/// # Safety
/// The pointer is null, or leads to so many of them.
pub(super) unsafe fn sized_array<T: Sized32 + Default>(pointer: *const T, length: usize) -> Result<Vec<T>, Failure> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: it is not null, and whatever version it is begins with its size.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if length > isize::MAX as usize / size_of::<T>() {
        return Err(fail(HITREG_VALUE, format!("there are no {length} of {}", T::NAME)));
    }
    // SAFETY: its caller says that there are so many, one behind the other; where the size is wrong, only the first is looked at.
    (0..length).map(|place| unsafe { sized(pointer.cast::<u8>().add(place * size).cast::<T>()) }).collect()
}

/// Puts a struct where C wants it, as far as C's header knows it.
///
/// # Safety
/// The pointer is null, or leads to as many bytes as the struct says, which may be written to.
pub(super) unsafe fn fill<T: Sized32>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: it is not null, and whatever version it is begins with its size.
    let size = unsafe { to.cast::<u32>().read_unaligned() } as usize;
    if size < T::FIRST || size > size_of::<T>() {
        return Err(wrong_size(T::NAME, size, size_of::<T>()));
    }
    // SAFETY: both hold at least `size` bytes and do not overlap; the size itself stays as it was.
    unsafe { std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>().add(4), to.cast::<u8>().add(4), size - 4) };
    Ok(())
}

#[cold]
fn wrong_size(name: &str, found: usize, known: usize) -> Failure {
    let says = format!("{name}.size is {found}, and this library's is {known}: set it to sizeof the struct");
    fail(HITREG_SIZE, says)
}

/// A number that has to fit a smaller field.
#[inline]
pub(super) fn fits<T: TryFrom<u32>>(number: u32, name: &str) -> Result<T, Failure> {
    T::try_from(number).map_err(|_| fail(HITREG_VALUE, format!("{name} is {number}, which is too much for its field")))
}

/// Frees what came from this library.
///
/// # Safety
/// It is null, or came from this library as this type and was not freed.
pub(super) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it was made by `Box::into_raw`.
        let owned = unsafe { Box::from_raw(pointer) };
        // Nothing crosses the border, whatever happens while it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(owned)));
    }
}
