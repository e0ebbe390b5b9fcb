//! `hitreg_recorder` and `hitreg_stream`: a log that is being written, and a thread's handle for its rows. `push` has
//! `hitreg_push_row`.

use std::ffi::c_char;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::guard::hitreg_code::{
    self, HITREG_ERROR_FINISHED, HITREG_ERROR_NULL, HITREG_ERROR_THREAD, HITREG_ERROR_VALUE,
};
use super::guard::{Failure, answer, fail, fill, free, guard, handle, look, sized, text};
use super::{hitreg_description, hitreg_log, hitreg_options, hitreg_written};
use ::hitreg_log::recorder::{Recorder, RecorderOptions, Rotation, Stream};
use ::hitreg_log::units::Micros;

/// A log that is being written. Any thread may use it, one at a time.
pub struct hitreg_recorder {
    /// `None` after `hitreg_recorder_finish`.
    recorder: Option<Recorder>,
}

/// A handle for one thread to push rows. It belongs to the first thread that pushes; `hitreg_stream_release` makes
/// it free for another.
pub struct hitreg_stream {
    /// The owning thread's number; 0 without an owner.
    owner: AtomicU64,
    stream: Stream,
}

/// Starts a log at `path`, which is called `PATH.part` until `hitreg_recorder_finish`. `options` may be null.
///
/// # Safety
/// `path` is null or a C string, `description` null or a description, `options` null or a struct of its `size`, `recorder`
/// null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_create(
    path: *const c_char,
    description: *mut hitreg_description,
    options: *const hitreg_options,
    recorder: *mut *mut hitreg_recorder,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(recorder, std::ptr::null_mut())?;
        let (path, options) = (text(path, "path")?, asked(options)?);
        made(recorder, Recorder::create(Path::new(path), handle(description, "description")?.get(), options)?)
    })
}

/// Starts a flight recorder: it keeps the last `seconds`, from 1 to 1000000, of a session in memory for
/// `hitreg_recorder_save`. `options` may be null.
///
/// # Safety
/// `description` is null or a description, `options` null or a struct of its `size`, `recorder` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_keep_last(
    seconds: u32,
    description: *mut hitreg_description,
    options: *const hitreg_options,
    recorder: *mut *mut hitreg_recorder,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(recorder, std::ptr::null_mut())?;
        let (span, options) = (Micros::from_s(seconds.into()), asked(options)?);
        made(recorder, Recorder::keep_last(span, handle(description, "description")?.get(), options)?)
    })
}

/// Writes what `hitreg_recorder_keep_last` holds in memory, including everything pushed before this call, as a log that
/// begins after a tick. The recording goes on.
///
/// # Safety
/// `recorder` is null or a recorder, `path` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_save(recorder: *const hitreg_recorder, path: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (recorder, path) = (look(recorder, "recorder")?, text(path, "path")?);
        Ok(recorder.recorder.as_ref().ok_or_else(over)?.save(Path::new(path))?)
    })
}

/// Starts a trace. A build that replays a log pushes the same rows as when it records a session.
/// `hitreg_recorder_finish` writes the tables. It replaces an existing trace.
///
/// # Safety
/// `path` is null or a C string, `description` null or a description, `log` null or a log, `recorder` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_trace(
    path: *const c_char,
    description: *mut hitreg_description,
    log: *const hitreg_log,
    recorder: *mut *mut hitreg_recorder,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(recorder, std::ptr::null_mut())?;
        let (path, digest) = (text(path, "path")?, look(log, "log")?.digest);
        made(recorder, Recorder::trace(Path::new(path), handle(description, "description")?.get(), digest)?)
    })
}

/// # Safety
/// `recorder` is writable.
unsafe fn made(recorder: *mut *mut hitreg_recorder, made: Recorder) -> Result<(), Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe { answer(recorder, Box::into_raw(Box::new(hitreg_recorder { recorder: Some(made) }))) }
}

/// # Safety
/// `options` is null or a struct of its `size`.
unsafe fn asked(options: *const hitreg_options) -> Result<RecorderOptions, Failure> {
    // SAFETY: the caller upholds this function's contract.
    let asked = if options.is_null() { hitreg_options::default() } else { unsafe { sized(options) }? };
    let mut options = if asked.patient == 0 { RecorderOptions::default() } else { RecorderOptions::patient() };
    if asked.window_ms > 0 {
        options.window = Micros::from_ms(asked.window_ms.into());
    }
    if asked.ring > 1 << 20 {
        return Err(fail(HITREG_ERROR_VALUE, "a ring may have 1048576 places"));
    }
    if asked.ring > 0 {
        options.ring = asked.ring as usize;
    }
    if asked.rotate_s > 0 || asked.rotate_mib > 0 {
        let or_never = |asked: u32| if asked == 0 { i64::MAX } else { i64::from(asked) };
        let after = Micros(or_never(asked.rotate_s).saturating_mul(1_000_000));
        let bytes = (or_never(asked.rotate_mib) as u64).saturating_mul(1 << 20);
        options.rotation = Some(Rotation { after, bytes });
    }
    Ok(options)
}

/// Ends the log: writes everything pushed before and renames the file. `written` may be null. The caller still frees
/// the handle.
///
/// # Safety
/// `recorder` is null or a recorder, `written` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_finish(
    recorder: *mut hitreg_recorder,
    written: *mut hitreg_written,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let recorder = handle(recorder, "recorder")?;
        if !written.is_null() {
            // Check the struct's size first, so that a bad one does not end the recording.
            fill(written, hitreg_written::default())?;
        }
        let done = recorder.recorder.take().ok_or_else(over)?.finish()?;
        if !written.is_null() {
            fill(written, figures(done))?;
        }
        Ok(())
    })
}

/// Returns the recorder's counters so far; `HITREG_ERROR_FINISHED` after `hitreg_recorder_finish`, which returns the
/// last ones.
///
/// # Safety
/// `recorder` is null or a recorder, `written` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_written(
    recorder: *const hitreg_recorder,
    written: *mut hitreg_written,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let recorder = look(recorder, "recorder")?;
        fill(written, figures(recorder.recorder.as_ref().ok_or_else(counted)?.written()))
    })
}

fn figures(written: ::hitreg_log::recorder::RecordingSummary) -> hitreg_written {
    hitreg_written {
        size: size_of::<hitreg_written>() as u32,
        reserved: 0,
        rows: written.records,
        lost_rows: written.lost_records,
        dropped_chunks: written.dropped_chunks,
        late_rows: written.late_records,
    }
}

fn counted() -> Failure {
    fail(HITREG_ERROR_FINISHED, "the recording is finished: `hitreg_recorder_finish` returned its last counters")
}

fn over() -> Failure {
    fail(HITREG_ERROR_FINISHED, "the recording is finished: nothing more is recorded")
}

/// Frees a recorder; does nothing for null. Without a finish, `PATH.part` keeps everything recorded so far.
///
/// # Safety
/// `recorder` is null, or a recorder that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_free(recorder: *mut hitreg_recorder) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(recorder) }
}

/// Creates a stream for one thread to push into. A recorder can have any number of streams. A stream may outlive its
/// recorder; free both.
///
/// # Safety
/// `recorder` is null or a recorder, `stream` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_stream_new(
    recorder: *const hitreg_recorder,
    stream: *mut *mut hitreg_stream,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(stream, std::ptr::null_mut())?;
        let made = look(recorder, "recorder")?.recorder.as_ref().ok_or_else(over)?.stream();
        answer(stream, new_stream(made))
    })
}

pub(super) fn new_stream(stream: Stream) -> *mut hitreg_stream {
    Box::into_raw(Box::new(hitreg_stream { owner: AtomicU64::new(0), stream }))
}

/// Gives up ownership of the stream, so that another thread can push. Only the owner may call it.
///
/// # Safety
/// `stream` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_stream_release(stream: *mut hitreg_stream) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        own(stream)?;
        owner(stream)?.store(0, Ordering::Release);
        Ok(())
    })
}

/// Frees a stream; its rows stay in the log. Does nothing for null.
///
/// # Safety
/// `stream` is null, or a stream that was not freed and that no thread is using.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_stream_free(stream: *mut hitreg_stream) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(stream) }
}

static THREADS: AtomicU64 = AtomicU64::new(1);
thread_local! {
    static THIS: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the owner of a stream. Any thread may call it.
///
/// # Safety
/// `stream` is null or a stream.
#[inline]
unsafe fn owner<'s>(stream: *mut hitreg_stream) -> Result<&'s AtomicU64, Failure> {
    if stream.is_null() {
        return Err(fail(HITREG_ERROR_NULL, "stream is null"));
    }
    // SAFETY: it points to a stream, and all references to its `owner` are shared.
    Ok(unsafe { &(*stream).owner })
}

/// Returns the stream, if this thread owns it or takes ownership of an unowned one.
///
/// # Safety
/// `stream` is null or a stream.
#[inline]
pub(super) unsafe fn own<'s>(stream: *mut hitreg_stream) -> Result<&'s mut Stream, Failure> {
    // SAFETY: the caller upholds this function's contract.
    let owner = unsafe { owner(stream) }?;
    let this = THIS.with(|this| *this);
    let mine = owner.load(Ordering::Relaxed) == this
        || owner.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !mine {
        let says = "this stream belongs to another thread: take one for each, or release it there first";
        return Err(fail(HITREG_ERROR_THREAD, says));
    }
    // SAFETY: only the owner reaches this line, and it runs one function at a time.
    Ok(unsafe { &mut (*stream).stream })
}
