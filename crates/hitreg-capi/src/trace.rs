//! `hitreg_trace`: writes the trace of a build's replay.

use std::ffi::{c_char, c_void};
use std::path::Path;

use super::guard::hitreg_code::{self, HITREG_ERROR_MISFIT, HITREG_ERROR_VALUE};
use super::guard::{Failure, answer, array, fail, free, guard, handle, look, text};
use super::{hitreg_log, hitreg_type};
use ::hitreg_log::store::{self, FileType, Targets};
use ::hitreg_log::trace::{Column, ColumnData, SessionSource, Table, Trace, TraceHeader};

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
        answer(trace, std::ptr::null_mut())?;
        let (log, mode) = (look(log, "log")?, text(mode, "mode")?);
        if !matches!(mode, "closed" | "open") {
            return Err(fail(HITREG_ERROR_VALUE, format!("the mode of a trace is closed or open, not {mode:?}")));
        }
        let header = TraceHeader {
            game: log.session.header.game.clone(),
            mode: mode.to_owned(),
            log_digest: log.digest.to_string(),
            settings: log.session.header.settings.clone(),
            part: None,
            session: Some(SessionSource::of(&log.session.header)),
            capabilities: Vec::new(),
        };
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
        let target = Targets::new([], true).file(Path::new(path), FileType::Trace)?;
        Ok(store::save_trace(&target, &trace.trace)?)
    })
}
