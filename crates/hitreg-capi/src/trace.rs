//! `hitreg_trace`: what a build makes of a log.

use std::ffi::c_char;
use std::path::Path;

use super::guard::hitreg_code::{self, HITREG_MISFIT, HITREG_VALUE};
use super::guard::{Failure, answer, array, fail, free, guard, handle, look, text};
use super::hitreg_log;
use ::hitreg_log::store::{self, Kind, Targets};
use ::hitreg_log::trace::{Column, Data, Table, Trace, TraceHeader};

/// A trace being put together: tables, one after the other, each with its columns. One thread at a time.
pub struct hitreg_trace {
    trace: Trace,
}

/// Begins the trace of a log: `mode` is `closed` where the server ran, `open` where clients ran on recorded snapshots.
///
/// # Safety
/// `log` is null or a log, `mode` null or text, `trace` null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_new(
    log: *const hitreg_log,
    mode: *const c_char,
    trace: *mut *mut hitreg_trace,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        answer(trace, std::ptr::null_mut())?;
        let (log, mode) = (look(log, "log")?, text(mode, "mode")?);
        if !matches!(mode, "closed" | "open") {
            return Err(fail(HITREG_VALUE, format!("the mode of a trace is closed or open, not {mode:?}")));
        }
        let header = TraceHeader {
            game: log.session.header.game.clone(),
            mode: mode.to_owned(),
            log_digest: log.digest.to_string(),
            settings: log.session.header.settings.clone(),
            part: None,
        };
        answer(trace, Box::into_raw(Box::new(hitreg_trace { trace: Trace { header, tables: Vec::new() } })))
    })
}

/// Frees a trace; null is none.
///
/// # Safety
/// `trace` is null, or a trace that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_free(trace: *mut hitreg_trace) {
    // SAFETY: as this function's own.
    unsafe { free(trace) }
}

/// A setting that was in force, where it was another than the log's: what `--set` asked for.
///
/// # Safety
/// `trace` is null or a trace, `key` and `value` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_setting(
    trace: *mut hitreg_trace,
    key: *const c_char,
    value: *const c_char,
) -> hitreg_code {
    // SAFETY: as this function's own.
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

/// Begins the next table: `ticks`, `bodies`… as hitreg knows them, or one of the game's own.
///
/// # Safety
/// `trace` is null or a trace, `name` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_table(trace: *mut hitreg_trace, name: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let name = text(name, "name")?;
        handle(trace, "trace")?.trace.tables.push(Table::new(name, Vec::new()));
        Ok(())
    })
}

/// A column that tells the rows of the table apart; for tables of the game's own, as often as there are such columns.
///
/// # Safety
/// `trace` is null or a trace, `column` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_key(trace: *mut hitreg_trace, column: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let column = text(column, "column")?.to_owned();
        table(handle(trace, "trace")?)?.key.push(column);
        Ok(())
    })
}

fn table(trace: &mut hitreg_trace) -> Result<&mut Table, Failure> {
    trace.trace.tables.last_mut().ok_or_else(|| fail(HITREG_MISFIT, "a column comes before the first table"))
}

/// # Safety
/// `trace` is null or a trace, `name` and `unit` null or text.
unsafe fn add(trace: *mut hitreg_trace, name: *const c_char, unit: *const c_char, data: Data) -> Result<(), Failure> {
    // SAFETY: as this function's own.
    unsafe {
        let unit = if unit.is_null() { "" } else { text(unit, "unit")? };
        let column = Column::new(text(name, "name")?, data).in_unit(unit);
        table(handle(trace, "trace")?)?.columns.push(column);
    }
    Ok(())
}

/// A column of the table that was begun last, with a value for each of its rows: numbers. `unit` may be null.
///
/// # Safety
/// `trace` is null or a trace, `name` and `unit` null or text, `values` null or so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_u32(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    values: *const u32,
    rows: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { add(trace, name, unit, Data::U32(array(values, rows, "values")?.to_vec())) })
}

/// The same: hashes.
///
/// # Safety
/// As `hitreg_trace_u32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_u64(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    values: *const u64,
    rows: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { add(trace, name, unit, Data::U64(array(values, rows, "values")?.to_vec())) })
}

/// The same: times in µs, and signed numbers.
///
/// # Safety
/// As `hitreg_trace_u32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_i64(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    values: *const i64,
    rows: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { add(trace, name, unit, Data::I64(array(values, rows, "values")?.to_vec())) })
}

/// The same: measures.
///
/// # Safety
/// As `hitreg_trace_u32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_f32(
    trace: *mut hitreg_trace,
    name: *const c_char,
    unit: *const c_char,
    values: *const f32,
    rows: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { add(trace, name, unit, Data::F32(array(values, rows, "values")?.to_vec())) })
}

/// The same: names, each row's by its place in the list.
///
/// # Safety
/// As `hitreg_trace_u32`; `names` is null or so many texts, `codes` null or so many numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_names(
    trace: *mut hitreg_trace,
    name: *const c_char,
    names: *const *const c_char,
    count: usize,
    codes: *const u32,
    rows: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let list = array(names, count, "names")?.iter().map(|name| text(*name, "one of the names").map(str::to_owned));
        let names = list.collect::<Result<Vec<_>, _>>()?;
        let codes = array(codes, rows, "codes")?.to_vec();
        add(trace, name, std::ptr::null(), Data::Name { names, codes })
    })
}

/// Writes the trace. A trace that stands there is replaced; anything else is not.
///
/// # Safety
/// `trace` is null or a trace, `path` null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_trace_write(trace: *const hitreg_trace, path: *const c_char) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (trace, path) = (look(trace, "trace")?, text(path, "path")?);
        let target = Targets::new([], true).file(Path::new(path), Kind::Trace)?;
        Ok(store::save_trace(&target, &trace.trace)?)
    })
}
