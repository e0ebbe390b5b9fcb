//! More records of a log: snapshots, effects, presence and custom records.

use std::ffi::c_char;

use super::guard::hitreg_code::{self, HITREG_MISFIT, HITREG_NO_ROW};
use super::guard::{Failure, answer, fail, fill, guard, look, text};
use super::log::{USERCMDS, hitreg_log, row};
use super::{hitreg_arrival, hitreg_effect, hitreg_presence, hitreg_snapshot, hitreg_value};
use ::hitreg_log::record::{Presence, UnknownColumn, UnknownKind, UnknownRecords};

/// Returns a snapshot that the server sent to a player, by its index in the log. `entities` is valid until the log is
/// freed. `effects` returns the number of effects for `hitreg_log_effect`.
///
/// # Safety
/// `log` is null or a log, `snapshot` null or a struct of its `size`, `entities`, `count` and `effects` null or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_snapshot(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    snapshot: *mut hitreg_snapshot,
    entities: *mut *const u16,
    count: *mut usize,
    effects: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let sent = row(&look(log, "log")?.player(player)?.snapshots, index)?;
        let known = hitreg_snapshot {
            size: 0,
            seq: sent.seq.0,
            at_us: sent.at.0,
            server_time_us: sent.server_time.0,
            tick: sent.tick.0,
            ack: sent.ack.0,
            bytes: sent.bytes.into(),
            choked: sent.choked.into(),
        };
        fill(snapshot, known)?;
        answer(entities, sent.entities.as_ptr().cast::<u16>())?;
        answer(count, sent.entities.len())?;
        answer(effects, sent.effects.len())
    })
}

/// Returns an effect of a snapshot, by its index in the snapshot.
///
/// # Safety
/// `log` is null or a log, `effect` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_effect(
    log: *const hitreg_log,
    player: u16,
    snapshot: usize,
    index: usize,
    effect: *mut hitreg_effect,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let sent = row(&look(log, "log")?.player(player)?.snapshots, snapshot)?;
        let told = row(&sent.effects, index)?;
        let [x, y, z] = told.at.to_array();
        let (kind, entity, predictable) = (told.kind.into(), told.entity.0.into(), told.predictable.into());
        fill(effect, hitreg_effect { size: 0, kind, entity, predictable, x, y, z, reserved: 0 })
    })
}

/// Returns the arrival of a snapshot at a player, by its index in the order of arrival.
///
/// # Safety
/// `log` is null or a log, `arrival` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_received(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    arrival: *mut hitreg_arrival,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let received = row(&look(log, "log")?.player(player)?.received, index)?;
        fill(arrival, hitreg_arrival { size: 0, number: received.number, at_us: received.at.0 })
    })
}

/// Returns a change of a player's presence, by its index in the log.
///
/// # Safety
/// `log` is null or a log, `presence` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_presence(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    presence: *mut hitreg_presence,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let change = row(&look(log, "log")?.player(player)?.presence, index)?;
        let left = u32::from(change.change == Presence::Left);
        fill(presence, hitreg_presence { size: 0, tick: change.tick.0, at_us: change.at.0, left, reserved: 0 })
    })
}

/// Returns the game-defined fields of a usercmd, by its number. `count` must equal the number of fields.
///
/// # Safety
/// `log` is null or a log, `values` null or writable for `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_usercmd_values(
    log: *const hitreg_log,
    player: u16,
    seq: u32,
    values: *mut hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        let none = || fail(HITREG_NO_ROW, format!("usercmd {seq} of player {player} has no fields of its own"));
        let place = *log.fields.get(&(player.into(), seq.into())).ok_or_else(none)?;
        let (_, records) = own(log, USERCMDS)?;
        put(records.columns.iter(), place, values, count)
    })
}

/// Returns the number of rows of a custom kind, by its name.
///
/// # Safety
/// `log` is null or a log, `kind` null or a C string, `count` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_rows(
    log: *const hitreg_log,
    kind: *const c_char,
    count: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (log, kind) = (look(log, "log")?, text(kind, "kind")?);
        answer(count, log.session.unknown.iter().find(|records| records.kind == kind).map_or(0, UnknownRecords::len))
    })
}

/// Returns a row of a custom kind, by its index in the log: its series, its time and its values. `count` must equal the
/// number of values.
///
/// # Safety
/// `log` is null or a log, `kind` null or a C string, `series` and `at_us` null or writable, `values` null or writable
/// for `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_row(
    log: *const hitreg_log,
    kind: *const c_char,
    index: usize,
    series: *mut u32,
    at_us: *mut i64,
    values: *mut hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (log, name) = (look(log, "log")?, text(kind, "kind")?);
        let (kind, records) = own(log, name)?;
        answer(series, *row(&records.series, index)?)?;
        let columns = || kind.columns.iter().zip(&records.columns);
        let time = columns().find(|(name, _)| *name == "at_us").map_or(0, |(_, column)| column.values[index]);
        answer(at_us, time)?;
        put(columns().filter(|(name, _)| *name != "at_us").map(|(_, column)| column), index, values, count)
    })
}

fn own<'l>(log: &'l hitreg_log, name: &str) -> Result<(&'l UnknownKind, &'l UnknownRecords), Failure> {
    let kind = log.session.header.unknown.iter().find(|kind| kind.name == name);
    let records = log.session.unknown.iter().find(|records| records.kind == name);
    kind.zip(records).ok_or_else(|| fail(HITREG_NO_ROW, format!("there is no row of a kind {name}")))
}

/// Writes a row's values to the caller's array.
///
/// # Safety
/// `values` is null or writable for `count` values.
unsafe fn put<'c>(
    columns: impl Iterator<Item = &'c UnknownColumn>,
    index: usize,
    values: *mut hitreg_value,
    count: usize,
) -> Result<(), Failure> {
    let cell = |column: &UnknownColumn| {
        let number = column.values[index];
        match column.is_float {
            true => hitreg_value { is_real: 1, real: f32::from_bits(number as u32), number: 0 },
            false => hitreg_value { is_real: 0, real: 0.0, number },
        }
    };
    let cells: Vec<hitreg_value> = columns.map(cell).collect();
    if cells.len() != count {
        let says = format!("there are {} values, and there is room for {count}", cells.len());
        return Err(fail(HITREG_MISFIT, says));
    }
    for (place, cell) in cells.into_iter().enumerate() {
        // SAFETY: the array has `count` values; `answer` refuses null.
        unsafe { answer(if values.is_null() { values } else { values.add(place) }, cell) }?;
    }
    Ok(())
}
