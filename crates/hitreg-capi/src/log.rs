//! `hitreg_log`: a complete log in memory, for a build to replay.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::io::Read;
use std::path::Path;

use super::guard::hitreg_code::{self, HITREG_FILE, HITREG_NO_ROW, HITREG_VALUE};
use super::guard::{Failure, answer, fail, fill, free, guard, look, text};
use super::{hitreg_arrival, hitreg_execution, hitreg_state, hitreg_tick_end, hitreg_usercmd};
use ::hitreg_log::record::{PlayerRecords, Session};
use ::hitreg_log::recorder::{USERCMD_BYTES, usercmd_bytes};
use ::hitreg_log::store;
use ::hitreg_log::trace::Digest;
use ::hitreg_log::units::{CommandSeq, PlayerId};

/// A log in memory. It is immutable: any number of threads may read it at once.
pub struct hitreg_log {
    pub(super) session: Session,
    pub(super) digest: Digest,
    game: CString,
    map: CString,
    settings: Vec<(String, CString)>,
    /// Extra bytes of each player's usercmds, in the order of usercmd numbers.
    bytes: Vec<Vec<(CommandSeq, Vec<u8>)>>,
    /// Row of each usercmd's game-defined fields, by player and usercmd number.
    pub(super) fields: BTreeMap<(u32, i64), usize>,
}

/// Name of the kind that holds usercmds.
pub(super) const USERCMDS: &str = "frames";

/// Record kind for `hitreg_log_count`: usercmds of a player.
pub const HITREG_USERCMDS: u32 = 0;
/// Record kind: packets from a player that reached the server.
pub const HITREG_REACHED: u32 = 1;
/// Record kind: results of a player's usercmds on the server.
pub const HITREG_RAN: u32 = 2;
/// Record kind: ticks; `player` is ignored.
pub const HITREG_TICKS: u32 = 3;
/// Record kind: states; `player` is ignored.
pub const HITREG_STATES: u32 = 4;
/// Record kind: packets that a player sent.
pub const HITREG_SENT: u32 = 5;
/// Record kind: snapshots sent to a player.
pub const HITREG_SNAPSHOTS: u32 = 6;
/// Record kind: snapshots that arrived at a player.
pub const HITREG_RECEIVED: u32 = 7;
/// Record kind: changes of a player's presence.
pub const HITREG_PRESENCES: u32 = 8;

/// Reads a log into memory.
///
/// # Safety
/// `path` is null or a C string, `log` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_open(path: *const c_char, log: *mut *mut hitreg_log) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        answer(log, std::ptr::null_mut())?;
        let read = hitreg_log::read(Path::new(text(path, "path")?))?;
        answer(log, Box::into_raw(Box::new(read)))
    })
}

impl hitreg_log {
    fn read(path: &Path) -> Result<hitreg_log, Failure> {
        let mut bytes = Vec::new();
        let unreadable = |what: String| fail(HITREG_FILE, format!("{}: {what}", path.display()));
        store::open(path)?.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
        let session = ::hitreg_log::log::read_session(&bytes[..]).map_err(|error| unreadable(error.to_string()))?;
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let of_bytes = session.unknown.iter().find(|records| records.kind == USERCMD_BYTES);
        let carried = |player| {
            let mut carried = of_bytes.map_or(Vec::new(), |records| usercmd_bytes(records, PlayerId(player)));
            carried.sort_by_key(|(command, _)| *command);
            carried
        };
        let of_usercmds = session.unknown.iter().find(|records| records.kind == USERCMDS);
        let fields = of_usercmds
            .map_or(BTreeMap::new(), |own| own.series.iter().copied().zip(own.keys.iter().copied()).zip(0..).collect());
        Ok(hitreg_log {
            fields,
            digest: Digest::of_bytes(&bytes),
            game: text(&session.header.game),
            map: text(&session.header.map),
            settings: session.header.settings.iter().map(|(key, value)| (key.clone(), text(value))).collect(),
            bytes: (0..session.players.len() as u16).map(carried).collect(),
            session,
        })
    }

    pub(super) fn player(&self, player: u16) -> Result<&PlayerRecords, Failure> {
        let players = self.session.players.len();
        let nobody = || fail(HITREG_NO_ROW, format!("there is no player {player}: the log has {players}"));
        self.session.players.get(usize::from(player)).ok_or_else(nobody)
    }
}

pub(super) fn row<T>(rows: &[T], index: usize) -> Result<&T, Failure> {
    rows.get(index).ok_or_else(|| fail(HITREG_NO_ROW, format!("there is no row {index}: there are {}", rows.len())))
}

/// Frees a log and all text and arrays that were returned from it; does nothing for null.
///
/// # Safety
/// `log` is null, or a log that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_free(log: *mut hitreg_log) {
    // SAFETY: the caller upholds this function's contract.
    unsafe { free(log) }
}

/// Returns the game's name; null for a null log.
///
/// # Safety
/// `log` is null or a log.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_game(log: *const hitreg_log) -> *const c_char {
    // SAFETY: the caller upholds this function's contract.
    unsafe { log.as_ref() }.map_or(std::ptr::null(), |log| log.game.as_ptr())
}

/// Returns the map's name, and its bytes unless `bytes` or `length` is null. Returns null for a null log.
///
/// # Safety
/// `log` is null or a log, `bytes` and `length` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_map(
    log: *const hitreg_log,
    bytes: *mut *const u8,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the caller upholds this function's contract.
    let Some(log) = (unsafe { log.as_ref() }) else { return std::ptr::null() };
    let map = &log.session.header.rules;
    if !bytes.is_null() && !length.is_null() {
        // SAFETY: both are writable.
        unsafe { (bytes.write_unaligned(map.as_ptr()), length.write_unaligned(map.len())) };
    }
    log.map.as_ptr()
}

/// Returns the session's random seed; 0 for a null log.
///
/// # Safety
/// `log` is null or a log.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_seed(log: *const hitreg_log) -> u64 {
    // SAFETY: the caller upholds this function's contract.
    unsafe { log.as_ref() }.map_or(0, |log| log.session.header.seed.0)
}

/// Returns a setting of the session; null if the log has no setting of this name.
///
/// # Safety
/// `log` is null or a log, `key` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_setting(log: *const hitreg_log, key: *const c_char) -> *const c_char {
    let mut found = std::ptr::null();
    guard(|| {
        // SAFETY: the caller upholds this function's contract.
        let (log, key) = unsafe { (look(log, "log")?, text(key, "key")?) };
        if let Some((_, value)) = log.settings.iter().find(|(known, _)| known == key) {
            found = value.as_ptr();
        }
        Ok(())
    });
    found
}

/// Returns the number of players; 0 for a null log.
///
/// # Safety
/// `log` is null or a log.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_players(log: *const hitreg_log) -> usize {
    // SAFETY: the caller upholds this function's contract.
    unsafe { log.as_ref() }.map_or(0, |log| log.session.players.len())
}

/// Returns the number of records of a kind (`HITREG_USERCMDS`…).
///
/// # Safety
/// `log` is null or a log, `count` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_count(
    log: *const hitreg_log,
    kind: u32,
    player: u16,
    count: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        let rows = match kind {
            HITREG_TICKS => log.session.ticks.len(),
            HITREG_STATES => log.session.states.len(),
            HITREG_USERCMDS => log.player(player)?.frames.len(),
            HITREG_REACHED => log.player(player)?.reached.len(),
            HITREG_RAN => log.player(player)?.executed.len(),
            HITREG_SENT => log.player(player)?.sent.len(),
            HITREG_SNAPSHOTS => log.player(player)?.snapshots.len(),
            HITREG_RECEIVED => log.player(player)?.received.len(),
            HITREG_PRESENCES => log.player(player)?.presence.len(),
            other => return Err(fail(HITREG_VALUE, format!("there is no kind {other}"))),
        };
        answer(count, rows)
    })
}

/// Returns a player's usercmd, by its index in the log.
///
/// # Safety
/// `log` is null or a log, `command` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_usercmd(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    command: *mut hitreg_usercmd,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let frame = row(&look(log, "log")?.player(player)?.frames, index)?;
        let (cmd, input) = (frame.command, frame.command.input);
        fill(
            command,
            hitreg_usercmd {
                size: 0,
                seq: cmd.seq.0,
                at_us: frame.at.0,
                server_time_us: cmd.server_time.0,
                lerp_ms: cmd.lerp_msec.into(),
                msec: input.msec.into(),
                pitch: input.viewangles.x,
                yaw: input.viewangles.y,
                roll: input.viewangles.z,
                forwardmove: input.forwardmove,
                sidemove: input.sidemove,
                upmove: input.upmove,
                buttons: input.buttons.into(),
                impulse: input.impulse.into(),
                extra: input.extra,
                reserved: 0,
            },
        )
    })
}

/// Returns the extra bytes of a usercmd, which may be empty. They are valid until the log is freed.
///
/// # Safety
/// `log` is null or a log, `bytes` and `length` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_usercmd_bytes(
    log: *const hitreg_log,
    player: u16,
    seq: u32,
    bytes: *mut *const u8,
    length: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        log.player(player)?;
        let carried = &log.bytes[usize::from(player)];
        let found = carried.binary_search_by_key(&seq, |(command, _)| command.0);
        let found: &[u8] = found.map_or(&[], |place| &carried[place].1);
        answer(bytes, found.as_ptr())?;
        answer(length, found.len())
    })
}

/// Returns how the server handled one of a player's usercmds, by its index in the order of handling.
///
/// # Safety
/// `log` is null or a log, `ran` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_ran(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    ran: *mut hitreg_execution,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let done = row(&look(log, "log")?.player(player)?.executed, index)?;
        let how = done.how as u32;
        fill(ran, hitreg_execution { size: 0, command: done.command.0, tick: done.tick.0, how })
    })
}

/// Returns the arrival of a player's packet at the server, by its index in the order of arrival.
///
/// # Safety
/// `log` is null or a log, `arrival` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_reached(
    log: *const hitreg_log,
    player: u16,
    index: usize,
    arrival: *mut hitreg_arrival,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let reached = row(&look(log, "log")?.player(player)?.reached, index)?;
        fill(arrival, hitreg_arrival { size: 0, number: reached.number, at_us: reached.at.0 })
    })
}

/// Returns a tick, by its index in the log.
///
/// # Safety
/// `log` is null or a log, `tick` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_tick(
    log: *const hitreg_log,
    index: usize,
    tick: *mut hitreg_tick_end,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let end = row(&look(log, "log")?.session.ticks, index)?;
        let (hash, has_hash) = (end.hash.unwrap_or(0), u32::from(end.hash.is_some()));
        fill(tick, hitreg_tick_end { size: 0, tick: end.tick.0, at_us: end.at.0, hash, has_hash, reserved: 0 })
    })
}

/// Returns a state, by its index in the order of ticks, viewers and entities. `cells` is valid until the log is freed.
///
/// # Safety
/// `log` is null or a log, `state` null or a struct of its `size`, `cells` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_state(
    log: *const hitreg_log,
    index: usize,
    state: *mut hitreg_state,
    cells: *mut *const u32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let states = &look(log, "log")?.session.states;
        let key = row(states.keys(), index)?;
        let found = states.cells_of(index);
        let viewer = key.viewer.map_or(-1, |viewer| i32::from(viewer.0));
        let (entity, class_number) = (key.entity.0.into(), key.class.0.into());
        let (tick, count) = (key.tick.0, found.len() as u32);
        fill(state, hitreg_state { size: 0, tick, viewer, entity, class_number, cells: count })?;
        answer(cells, found.as_ptr())
    })
}
