//! The boundary to C: error codes and messages, null pointers, and structs of older headers.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::hitreg_log::recorder::{FinishError, PushError};

use self::hitreg_code::{
    HITREG_ERROR_DESCRIPTION, HITREG_ERROR_FILE, HITREG_ERROR_FINISHED, HITREG_ERROR_LATE, HITREG_ERROR_MISFIT,
    HITREG_ERROR_NULL, HITREG_ERROR_OVERRUN, HITREG_ERROR_PANIC, HITREG_ERROR_SIZE, HITREG_ERROR_STOPPED,
    HITREG_ERROR_THREAD, HITREG_ERROR_VALUE, HITREG_OK,
};

/// Result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hitreg_code {
    /// Success.
    HITREG_OK = 0,
    /// A handle or pointer is null.
    HITREG_ERROR_NULL = 1,
    /// The `size` of a struct, or the size of a list's items, is unknown to this library. Set it to `sizeof`, and build
    /// with this library's header. Or the type of a field does not have the size of its member.
    HITREG_ERROR_SIZE = 2,
    /// Text is not UTF-8, an enum value does not exist, or a number does not fit its column.
    HITREG_ERROR_VALUE = 3,
    /// The row does not fit its table or the description: an unknown player, class or table, a wrong number of values,
    /// a value of a wrong kind, or a tick that contradicts another one. Or the stream is not that of the playback.
    HITREG_ERROR_MISFIT = 4,
    /// The row is older than the reorder window.
    HITREG_ERROR_LATE = 5,
    /// The recorder cannot keep up. The row is lost, and a gap in the log marks it.
    HITREG_ERROR_OVERRUN = 6,
    /// The recording or the playback has ended.
    HITREG_ERROR_FINISHED = 7,
    /// A write error stopped the recording.
    HITREG_ERROR_STOPPED = 8,
    /// The description is invalid.
    HITREG_ERROR_DESCRIPTION = 9,
    /// A file cannot be read or written.
    HITREG_ERROR_FILE = 10,
    /// The row does not exist.
    HITREG_ERROR_NO_ROW = 11,
    /// The stream belongs to another thread, or the recorder or playback to the parent process.
    HITREG_ERROR_THREAD = 12,
    /// The library panicked. Please report it.
    HITREG_ERROR_PANIC = 13,
}

/// An error code with its message.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: hitreg_code,
    pub(super) says: String,
}

/// The process that created a handle. In a child process of a fork, the handle is a copy: the threads behind it are
/// missing, so they cannot end.
pub(super) struct OwnProcess(u32);

impl OwnProcess {
    pub(super) fn current() -> OwnProcess {
        OwnProcess(std::process::id())
    }

    pub(super) fn is_current(&self) -> bool {
        self.0 == std::process::id()
    }

    /// Refuses a call in a child process. `what` names the handle.
    pub(super) fn check(&self, what: &str) -> Result<(), Failure> {
        match self.is_current() {
            true => Ok(()),
            false => Err(fail(
                HITREG_ERROR_THREAD,
                format!("this {what} belongs to the parent process: a child process must not use it"),
            )),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the version of this library, such as `0.1.0`. The text is valid until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn hitreg_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}

/// Returns the message of the last failed call of this thread; empty without one. It is valid until the next failed
/// call of the thread or until the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn hitreg_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Runs the body of a C function and converts errors and panics to a code.
#[inline]
pub(super) fn guard(does: impl FnOnce() -> Result<(), Failure>) -> hitreg_code {
    // Unwind safety: a handle that was being changed during a panic reports that it has ended.
    match catch_unwind(AssertUnwindSafe(does)) {
        Ok(Ok(())) => HITREG_OK,
        Ok(Err(failure)) => tell(failure),
        Err(_) => tell(fail(HITREG_ERROR_PANIC, "the library has a fault: it panicked")),
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
            PushError::Late { .. } => HITREG_ERROR_LATE,
            PushError::Overrun => HITREG_ERROR_OVERRUN,
            PushError::Finished => HITREG_ERROR_FINISHED,
            PushError::Stopped => HITREG_ERROR_STOPPED,
            _ => HITREG_ERROR_MISFIT,
        };
        fail(code, error.to_string())
    }
}

impl From<FinishError> for Failure {
    fn from(error: FinishError) -> Failure {
        let code = match error {
            FinishError::Description(_) => HITREG_ERROR_DESCRIPTION,
            FinishError::Span { .. } => HITREG_ERROR_VALUE,
            _ => HITREG_ERROR_FILE,
        };
        fail(code, error.to_string())
    }
}

impl From<::hitreg_log::store::StoreError> for Failure {
    fn from(error: ::hitreg_log::store::StoreError) -> Failure {
        fail(HITREG_ERROR_FILE, error.to_string())
    }
}

/// Returns the object of a handle.
///
/// # Safety
/// It is null, or came from this library as this type and was not freed. No other thread uses it at the same time.
#[inline]
pub(super) unsafe fn handle<'h, T>(pointer: *mut T, name: &str) -> Result<&'h mut T, Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// Returns the object of a handle for reading.
///
/// # Safety
/// As [`handle`], but other threads may read it at the same time.
#[inline]
pub(super) unsafe fn look<'h, T>(pointer: *const T, name: &str) -> Result<&'h T, Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Checks the caller's variable for a result, before the call changes anything.
pub(super) fn place<T>(to: *mut T) -> Result<(), Failure> {
    if to.is_null() { Err(null("the place for the answer")) } else { Ok(()) }
}

/// Writes a result to the caller's variable.
///
/// # Safety
/// The pointer is null or writable.
pub(super) unsafe fn answer<T>(to: *mut T, value: T) -> Result<(), Failure> {
    place(to)?;
    // SAFETY: it is not null and writable; it need not be aligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

#[cold]
pub(super) fn null(name: &str) -> Failure {
    fail(HITREG_ERROR_NULL, format!("{name} is null"))
}

/// Returns text from C.
///
/// # Safety
/// The pointer is null or points to a C string.
pub(super) unsafe fn text<'t>(pointer: *const c_char, name: &str) -> Result<&'t str, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and the text ends with a zero byte.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| fail(HITREG_ERROR_VALUE, format!("{name} is not UTF-8")))
}

/// Returns an array from C; null is valid for length 0.
///
/// # Safety
/// The pointer is null or points to `length` values.
pub(super) unsafe fn array<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() || length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(fail(HITREG_ERROR_VALUE, format!("{name} is no array of {length} values")));
    }
    // SAFETY: it is not null and aligned, and the caller guarantees the length.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// A struct that begins with its size and is valid for any bytes.
///
/// # Safety
/// The struct contains only numbers, `size: u32` first, without padding.
pub(super) unsafe trait Sized32: Copy {
    /// Size of the struct in its first released version. Callers may pass this size or more; missing fields are zero.
    const FIRST: usize;
    const NAME: &'static str;
}

/// Returns a struct from C. The caller's header may be older than this library.
///
/// # Safety
/// The pointer is null or points to as many bytes as the struct's `size`.
#[inline]
pub(super) unsafe fn sized<T: Sized32 + Default>(pointer: *const T) -> Result<T, Failure> {
    // SAFETY: the caller upholds this function's contract.
    let size = unsafe { declared_size(pointer) }?;
    let mut value = T::default();
    // SAFETY: both hold at least `size` bytes, they do not overlap, and any bytes are a valid `T`.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), size) };
    Ok(value)
}

/// Returns the size of the caller's struct, which an older header may have declared.
///
/// # Safety
/// The pointer is null or points to as many bytes as the struct's `size`.
#[inline]
pub(super) unsafe fn declared_size<T: Sized32>(pointer: *const T) -> Result<usize, Failure> {
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    // SAFETY: it is not null, and every version of the struct begins with its size.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if size < T::FIRST || size > size_of::<T>() {
        return Err(wrong_size(T::NAME, size, size_of::<T>()));
    }
    Ok(size)
}

/// Writes a struct to the caller's, up to the size that the caller's header declares.
///
/// # Safety
/// The pointer is null or points to as many writable bytes as the struct's `size`.
pub(super) unsafe fn fill<T: Sized32>(to: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: the caller upholds this function's contract.
    let size = unsafe { declared_size(to) }?;
    // SAFETY: both hold at least `size` bytes and do not overlap. `size` itself is not written.
    unsafe { std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>().add(4), to.cast::<u8>().add(4), size - 4) };
    Ok(())
}

#[cold]
fn wrong_size(name: &str, found: usize, known: usize) -> Failure {
    let says = format!("{name}.size is {found}, and this library's is {known}: set it to sizeof the struct");
    fail(HITREG_ERROR_SIZE, says)
}

/// Converts a number to a smaller type.
#[inline]
pub(super) fn fits<N: Copy + std::fmt::Display, T: TryFrom<N>>(number: N, name: &str) -> Result<T, Failure> {
    let bits = size_of::<T>() * 8;
    let too_large = |_| fail(HITREG_ERROR_VALUE, format!("{name} is {number}, which does not fit in {bits} bits"));
    T::try_from(number).map_err(too_large)
}

/// Frees an object that this library created.
///
/// # Safety
/// It is null, or came from this library as this type and was not freed.
pub(super) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: `Box::into_raw` created it.
        let owned = unsafe { Box::from_raw(pointer) };
        // A panic in `drop` must not unwind into C.
        let _ = catch_unwind(AssertUnwindSafe(move || drop(owned)));
    }
}
