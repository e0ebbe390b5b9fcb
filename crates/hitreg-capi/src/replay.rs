//! The replay side of an engine: `hitreg_playback` gives the steps of a log, and `hitreg_trace` writes the trace of a
//! build's replay.

use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::path::Path;

use ::hitreg_log::record::Execution;
use ::hitreg_log::recorder::{Playback, PlaybackError, PlaybackStep};
use ::hitreg_log::sorted::SortedMap;
use ::hitreg_log::store::{self, FileType, Targets};
use ::hitreg_log::trace::{Column, ColumnData, Table, Trace, TraceHeader};

use crate::guard::hitreg_code::{
    self, HITREG_ERROR_FILE, HITREG_ERROR_FINISHED, HITREG_ERROR_MISFIT, HITREG_ERROR_NO_ROW, HITREG_ERROR_VALUE,
};
use crate::guard::{Failure, OwnProcess, answer, array, fail, free, guard, handle, look, place, text};
use crate::hitreg_table::HITREG_TABLE_CUSTOM;
use crate::recorder::{new_stream, own};
use crate::{hitreg_description, hitreg_how, hitreg_log, hitreg_log_setting, hitreg_stream, hitreg_type};

/// A log that a build replays into a trace. One thread uses it.
pub struct hitreg_playback {
    /// `None` after `hitreg_playback_finish`.
    playback: Option<Playback>,
    process: OwnProcess,
    log: hitreg_log,
    /// The settings that were asked for.
    settings: Vec<(String, CString)>,
    /// For each table of its own and each series: the next row.
    rows: SortedMap<(usize, u32), usize>,
}

/// What a server does next in a recorded session.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum hitreg_step_kind {
    /// Restore a body that exists before the first tick: row `row` of `hitreg_log_state`. Only in a log that begins
    /// within a session, after the players who are present have joined.
    HITREG_STEP_RESTORE = 0,
    /// `player` joins. A body that the game spawns here is restored if the player was present before the first tick.
    HITREG_STEP_JOIN = 1,
    /// `player` leaves.
    HITREG_STEP_LEAVE = 2,
    /// Run a usercmd of `player`: row `row` of `hitreg_log_usercmd`.
    HITREG_STEP_INPUT = 3,
    /// End the tick: simulate, then push the tick and its bodies.
    HITREG_STEP_TICK = 4,
    /// A row of a table of your own: row `row` of series `player` of table `table`, for `hitreg_log_row`. Rows come
    /// first in a tick, by their times. Games without a table of what happens, in its order, ignore them.
    HITREG_STEP_ROW = 5,
}

/// A step of a playback.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hitreg_step {
    /// What to do.
    pub kind: hitreg_step_kind,
    /// The tick in which the step happens.
    pub tick: u32,
    /// Time of the tick.
    pub at_us: i64,
    /// The player, or the series of a row; 0 for steps without one.
    pub player: u32,
    /// The row to read; 0 for steps without one.
    pub row: usize,
    /// For usercmds: `HITREG_HOW_RUN`, or `HITREG_HOW_STOOD_IN` for one that runs again in place of a lost one.
    pub how: hitreg_how,
    /// For rows: the table.
    pub table: u32,
}

/// Opens the log that the arguments of `main` name: `replay LOG -o TRACE`, and any number of `--set KEY=VALUE`. On an
/// error, `exit_code` is the code for `main`: 125 for other arguments or a log of another game, 128 for other trouble.
///
/// # Safety
/// `argv` is null or points to `argc` C strings, `game` is null or a C string, `playback` and `exit_code` null or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_open(
    argc: c_int,
    argv: *const *const c_char,
    game: *const c_char,
    playback: *mut *mut hitreg_playback,
    exit_code: *mut c_int,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(exit_code, 128)?;
        place(playback)?;
        let given = array(argv, usize::try_from(argc).unwrap_or_default(), "argv")?;
        let args = given.iter().skip(1).map(|arg| Ok(OsString::from(text(*arg, "an argument")?)));
        let args = args.collect::<Result<Vec<_>, Failure>>()?;
        let opened = Playback::from_args(args, text(game, "game")?)
            .map_err(|error| (error.exit_code(), fail(HITREG_ERROR_FILE, error.to_string())));
        let opened = match opened {
            Ok(opened) => opened,
            Err((code, failure)) => {
                answer(exit_code, c_int::from(code))?;
                return Err(failure);
            }
        };
        answer(exit_code, 0)?;
        let (session, digest) = opened.shared();
        let settings = opened.changed().iter();
        let settings = settings.map(|(key, value)| (key.clone(), CString::new(&**value).unwrap_or_default())).collect();
        let log = hitreg_log::of(session, digest);
        answer(
            playback,
            Box::into_raw(Box::new(hitreg_playback {
                playback: Some(opened),
                process: OwnProcess::current(),
                log,
                settings,
                rows: SortedMap::new(),
            })),
        )
    })
}

/// Returns the log of a playback, which is valid until the playback is freed; null for null.
///
/// # Safety
/// `playback` is null or a playback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_log(playback: *const hitreg_playback) -> *const hitreg_log {
    // SAFETY: the caller upholds this function's contract.
    unsafe { look(playback, "playback") }.map_or(std::ptr::null(), |playback| &raw const playback.log)
}

/// Returns a setting of this replay: as asked for with `--set`, or as recorded. Returns null if the session has no
/// setting of this name.
///
/// # Safety
/// `playback` is null or a playback, `key` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_setting(
    playback: *const hitreg_playback,
    key: *const c_char,
) -> *const c_char {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let (Ok(playback), Ok(name)) = (look(playback, "playback"), text(key, "key")) else { return std::ptr::null() };
        let changed = playback.settings.iter().rev().find(|(known, _)| known == name);
        match changed {
            Some((_, value)) => value.as_ptr(),
            None => hitreg_log_setting(&raw const playback.log, key),
        }
    }
}

/// Starts the trace, with the description that the game also records with, and returns the stream for its rows. Call it
/// once; a second call returns `HITREG_ERROR_VALUE`. Free the stream before `hitreg_playback_finish`.
///
/// # Safety
/// `playback` is null or a playback, `description` null or a description, `stream` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_begin(
    playback: *mut hitreg_playback,
    description: *mut hitreg_description,
    stream: *mut *mut hitreg_stream,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        place(stream)?;
        let about = handle(description, "description")?.description.clone();
        let begun = handle(playback, "playback")?.running()?.begin(about).map_err(failed)?;
        answer(stream, new_stream(begun))
    })
}

/// Returns the next step, and pushes the recorded usercmds and executions before it. Returns `HITREG_ERROR_NO_ROW` after
/// the last tick, and `HITREG_ERROR_MISFIT` for a stream that `hitreg_playback_begin` did not return.
///
/// # Safety
/// `playback` is null or a playback, `stream` null or the stream of `hitreg_playback_begin`, `step` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_next(
    playback: *mut hitreg_playback,
    stream: *mut hitreg_stream,
    step: *mut hitreg_step,
) -> hitreg_code {
    use hitreg_step_kind::*;
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        place(step)?;
        let stream = own(stream)?;
        let of = handle(playback, "playback")?;
        let playback = of.running()?;
        let next = playback.next(stream)?;
        let now = playback.now();
        let next = next.ok_or_else(|| fail(HITREG_ERROR_NO_ROW, "the log has no more ticks"))?;
        let run = hitreg_how::HITREG_HOW_RUN;
        let (kind, player, row, how) = match next {
            PlaybackStep::Row { kind, row } => {
                let session = playback.session();
                let name = &session.header.unknown[kind].name;
                let records = session.unknown.iter().find(|records| records.kind == *name);
                let series = records.map_or(0, |records| records.series[row]);
                let next = of.rows.entry((kind, series)).or_default();
                *next += 1;
                let (row, table) = (*next - 1, HITREG_TABLE_CUSTOM as u32 + kind as u32);
                let (kind, tick, at_us) = (HITREG_STEP_ROW, now.tick.0, now.at.0);
                return answer(step, hitreg_step { kind, tick, at_us, player: series, row, how: run, table });
            }
            PlaybackStep::Restore(row) => (HITREG_STEP_RESTORE, 0, row, run),
            PlaybackStep::Join(player) => (HITREG_STEP_JOIN, player.0, 0, run),
            PlaybackStep::Leave(player) => (HITREG_STEP_LEAVE, player.0, 0, run),
            PlaybackStep::Input { player, frame, how: Execution::StoodIn } => {
                (HITREG_STEP_INPUT, player.0, frame, hitreg_how::HITREG_HOW_STOOD_IN)
            }
            PlaybackStep::Input { player, frame, .. } => (HITREG_STEP_INPUT, player.0, frame, run),
            PlaybackStep::Tick => (HITREG_STEP_TICK, 0, 0, run),
            other => return Err(fail(HITREG_ERROR_VALUE, format!("this library has no step for {other:?}"))),
        };
        answer(step, hitreg_step { kind, tick: now.tick.0, at_us: now.at.0, player: player.into(), row, how, table: 0 })
    })
}

/// Writes the trace of the steps so far. The playback can then only be freed. Returns `HITREG_ERROR_VALUE`, and does
/// not end the playback, if `hitreg_playback_begin` has not started a trace.
///
/// # Safety
/// `playback` is null or a playback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_finish(playback: *mut hitreg_playback) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let of = handle(playback, "playback")?;
        if !of.running()?.has_begun() {
            return Err(failed(PlaybackError::NotBegun));
        }
        of.playback.take().ok_or_else(over)?.finish().map_err(failed)
    })
}

/// Frees a playback and its log; does nothing for null, or in a child process of a fork.
///
/// # Safety
/// `playback` is null, or a playback that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_playback_free(playback: *mut hitreg_playback) {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        if playback.as_ref().is_some_and(|playback| playback.process.is_current()) {
            free(playback);
        }
    }
}

impl hitreg_playback {
    /// Returns the playback, if this process opened it and `hitreg_playback_finish` has not ended it.
    fn running(&mut self) -> Result<&mut Playback, Failure> {
        self.process.check("playback")?;
        self.playback.as_mut().ok_or_else(over)
    }
}

fn over() -> Failure {
    fail(HITREG_ERROR_FINISHED, "this playback is finished")
}

fn failed(error: PlaybackError) -> Failure {
    match error {
        PlaybackError::Push(error) => error.into(),
        PlaybackError::Finish(error) => error.into(),
        PlaybackError::Begun | PlaybackError::NotBegun => fail(HITREG_ERROR_VALUE, error.to_string()),
        other => fail(HITREG_ERROR_FILE, other.to_string()),
    }
}

const BOOL: u32 = hitreg_type::HITREG_BOOL as u32;
const F32: u32 = hitreg_type::HITREG_F32 as u32;
const F64: u32 = hitreg_type::HITREG_F64 as u32;
const I64: u32 = hitreg_type::HITREG_I64 as u32;
const U32: u32 = hitreg_type::HITREG_U32 as u32;
const U64: u32 = hitreg_type::HITREG_U64 as u32;

/// A trace under construction: a sequence of tables with their columns. One thread at a time.
pub struct hitreg_trace {
    trace: Trace,
}

/// Creates the trace of a log. `mode` is "closed" if the build ran the server, "open" if clients ran on recorded
/// snapshots.
///
/// # Safety
/// `log` is null or a log, `mode` null or a C string, `trace` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_new(
    log: *const hitreg_log,
    mode: *const c_char,
    trace: *mut *mut hitreg_trace,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        place(trace)?;
        let (log, mode) = (look(log, "log")?, text(mode, "mode")?);
        if !matches!(mode, "closed" | "open") {
            return Err(fail(HITREG_ERROR_VALUE, format!("the mode of a trace is closed or open, not {mode:?}")));
        }
        let header = TraceHeader { log_digest: log.digest.to_string(), ..TraceHeader::of(&log.session, mode) };
        answer(trace, Box::into_raw(Box::new(hitreg_trace { trace: Trace { header, tables: Vec::new() } })))
    })
}

/// Frees a trace; does nothing for null.
///
/// # Safety
/// `trace` is null, or a trace that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_free(trace: *mut hitreg_trace) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(trace) }
}

/// Sets a setting of the replay that differs from the log's, as given by `--set`.
///
/// # Safety
/// `trace` is null or a trace, `key` and `value` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_setting(
    trace: *mut hitreg_trace,
    key: *const c_char,
    value: *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (key, value) = (text(key, "key")?, text(value, "value")?.to_owned());
        let settings = &mut handle(trace, "trace")?.trace.header.settings;
        match settings.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => settings.push((key.to_owned(), value)),
        }
        Ok(())
    })
}

/// Starts the next table: one that hitreg defines, such as `ticks` or `bodies`, or one of your own. Columns follow.
///
/// # Safety
/// `trace` is null or a trace, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_table(trace: *mut hitreg_trace, name: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(trace, "trace")?.trace.tables.push(Table::new(name, Vec::new()));
        Ok(())
    })
}

/// Names a key column of the latest table, if hitreg does not define the table. The key columns together identify a
/// row; call it once for each.
///
/// # Safety
/// `trace` is null or a trace, `column` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_key(trace: *mut hitreg_trace, column: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let column = text(column, "column")?.to_owned();
        table(handle(trace, "trace")?)?.key.push(column);
        Ok(())
    })
}

fn table(trace: &mut hitreg_trace) -> Result<&mut Table, Failure> {
    trace.trace.tables.last_mut().ok_or_else(|| fail(HITREG_ERROR_MISFIT, "a column comes before the first table"))
}

/// # Safety
/// `trace` is null or a trace, `name` and `unit` null or a C string.
unsafe fn add(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    data: ColumnData,
) -> Result<(), Failure> {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let unit = if unit.is_null() { "" } else { text(unit, "unit")? };
        let column = Column::new(text(name, "name")?, data).in_unit(unit);
        table(handle(trace, "trace")?)?.columns.push(column);
    }
    Ok(())
}

/// Adds a column to the latest table: `rows` values of a `hitreg_type`, one for each row. The type is `HITREG_U32`,
/// `HITREG_U64`, `HITREG_I64`, `HITREG_F32`, `HITREG_F64` or `HITREG_BOOL`; flags are bytes, 0 or 1. `unit` may be null.
///
/// # Safety
/// `trace` is null or a trace, `name` and `unit` null or a C string, `values` null or `rows` values of the type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_column(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    value_type: u32,
    values: *const c_void,
    rows: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let data = match value_type {
            U32 => ColumnData::U32(array(values.cast(), rows, "values")?.to_vec()),
            U64 => ColumnData::U64(array(values.cast(), rows, "values")?.to_vec()),
            I64 => ColumnData::I64(array(values.cast(), rows, "values")?.to_vec()),
            F32 => ColumnData::F32(array(values.cast(), rows, "values")?.to_vec()),
            F64 => ColumnData::F64(array(values.cast(), rows, "values")?.to_vec()),
            BOOL => {
                ColumnData::Bool(array::<u8>(values.cast(), rows, "values")?.iter().map(|flag| *flag != 0).collect())
            }
            other => return Err(fail(HITREG_ERROR_VALUE, format!("no column of a trace has type {other}"))),
        };
        add(trace, name, unit, data)
    })
}

/// Adds a column of names to the latest table. `codes` has the index in `names` of each row's name.
///
/// # Safety
/// `trace` is null or a trace, `name` null or a C string, `names` null or `count` C strings, `codes` null or `rows`
/// numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_names(
    trace: *mut hitreg_trace,
    name: *const c_char,
    names: *const *const c_char,
    count: usize,
    codes: *const u32,
    rows: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let list = array(names, count, "names")?.iter().map(|name| text(*name, "one of the names").map(str::to_owned));
        let names = list.collect::<Result<Vec<_>, _>>()?;
        let codes = array(codes, rows, "codes")?.to_vec();
        add(trace, name, std::ptr::null(), ColumnData::Name { names, codes })
    })
}

/// Writes the trace to a file. It replaces an existing trace, but no other file.
///
/// # Safety
/// `trace` is null or a trace, `path` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_write(trace: *const hitreg_trace, path: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (trace, path) = (look(trace, "trace")?, text(path, "path")?);
        let target = Targets::default().replacing_recordings().file(Path::new(path), FileType::Trace)?;
        Ok(store::save_trace(&target, &trace.trace)?)
    })
}
