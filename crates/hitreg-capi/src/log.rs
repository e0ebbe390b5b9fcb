//! `hitreg_log`: a complete log in memory, for a build to replay.

use std::ffi::{CStr, CString, c_char};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ::hitreg_log::record::{
    ArrivalRecord, CellKind, Effect, Execution, FieldSchema, FrameRecord, HitResult, NumberForm, OF_PLAYERS,
    PlayerRecords, Presence, Session, ShotRecord, TextCode, UnknownColumn, UnknownKind, cells_of,
};
use ::hitreg_log::sorted::SortedMap;
use ::hitreg_log::store;
use ::hitreg_log::trace::Digest;
use ::hitreg_log::units::CommandSeq;

use crate::guard::hitreg_code::{self, HITREG_ERROR_FILE, HITREG_ERROR_NO_ROW, HITREG_ERROR_VALUE};
use crate::guard::{Failure, answer, fail, free, guard, look, place, text};
use crate::hitreg_table::{self, *};
use crate::types::{self, TableNumber, no_series, number_of};
use crate::{hitreg_effect, hitreg_value};

/// A log in memory. It is immutable: any number of threads may read it at once.
pub struct hitreg_log {
    pub(super) session: Arc<Session>,
    pub(super) digest: Digest,
    game: CString,
    map: CString,
    settings: Vec<(CString, CString)>,
    /// Numbers of each player's usercmds with their indices, in order. The log has usercmds in the order of time.
    by_number: Vec<Vec<(CommandSeq, usize)>>,
    /// Fields of the caller's own of each player's usercmds; empty lists if there are none.
    fields: Vec<Vec<Vec<hitreg_value>>>,
    /// Effects of each player's snapshots.
    effects: Vec<Vec<Vec<hitreg_effect>>>,
    custom: Vec<CustomTable>,
    /// The texts of fields and columns, by their codes.
    texts: SortedMap<TextCode, CString>,
}

/// A table that hitreg does not define.
struct CustomTable {
    name: String,
    /// Rows of each series, in the order of the log.
    series: SortedMap<u32, Vec<UnknownRow>>,
}

struct UnknownRow {
    at_us: i64,
    values: Vec<hitreg_value>,
}

/// Reads a log into memory.
///
/// # Safety
/// `path` is null or a C string, `log` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_open(path: *const c_char, log: *mut *mut hitreg_log) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        place(log)?;
        let read = hitreg_log::read(Path::new(text(path, "path")?))?;
        answer(log, Box::into_raw(Box::new(read)))
    })
}

impl hitreg_log {
    fn read(path: &Path) -> Result<hitreg_log, Failure> {
        let mut bytes = Vec::new();
        let unreadable = |what: String| fail(HITREG_ERROR_FILE, format!("{}: {what}", path.display()));
        store::open(path)?.read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
        let limit = store::memory_limit().map_err(|error| fail(HITREG_ERROR_VALUE, error.to_string()))?;
        let read = ::hitreg_log::log::read_session_within(limit, &bytes[..]);
        let session = read.map_err(|error| unreadable(error.to_string()))?;
        Ok(hitreg_log::of(Arc::new(session), Digest::of_bytes(&bytes)))
    }

    pub(super) fn of(session: Arc<Session>, digest: Digest) -> hitreg_log {
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let texts: SortedMap<TextCode, CString> =
            session.texts.iter().map(|(code, known)| (code, text(known))).collect();
        let fields = usercmd_fields(&session, &texts);
        let by_number = |player: &PlayerRecords| {
            let mut numbers: Vec<_> = player.frames.iter().map(|frame| frame.command.seq).zip(0..).collect();
            numbers.sort_unstable();
            numbers
        };
        let effects = |player: &PlayerRecords| {
            let of_snapshots = player.snapshots.iter().map(|sent| sent.effects.iter().map(effect).collect());
            of_snapshots.collect()
        };
        let is_custom = |kind: &&UnknownKind| !kind.is_known_kind();
        hitreg_log {
            fields,
            by_number: session.players.iter().map(by_number).collect(),
            effects: session.players.iter().map(effects).collect(),
            custom: session
                .header
                .unknown
                .iter()
                .filter(is_custom)
                .map(|kind| custom(kind, &session, &texts))
                .collect(),
            digest,
            game: text(&session.header.game),
            map: text(&session.header.map),
            settings: session.header.settings.iter().map(|(key, value)| (text(key), text(value))).collect(),
            session,
            texts,
        }
    }

    fn player(&self, series: u32) -> Result<(usize, &PlayerRecords), Failure> {
        let (player, players) = (series as usize, self.session.players.len());
        let nobody = || fail(HITREG_ERROR_NO_ROW, format!("there is no player {series}: the log has {players}"));
        Ok((player, self.session.players.get(player).ok_or_else(nobody)?))
    }

    fn custom(&self, number: usize) -> Result<&CustomTable, Failure> {
        let tables = self.custom.len();
        let none = || fail(HITREG_ERROR_NO_ROW, format!("there is no table {number} of its own: the log has {tables}"));
        self.custom.get(number).ok_or_else(none)
    }

    /// Returns the number of rows of a series of a table.
    fn count(&self, table: TableNumber, series: u32) -> Result<usize, Failure> {
        let (table, name) = match table {
            TableNumber::Known(table, name, _) => (table, name),
            TableNumber::Custom(number) => return Ok(self.custom(number)?.series.get(&series).map_or(0, Vec::len)),
        };
        if let Some(kind) = OF_PLAYERS.iter().position(|(known, _)| *known == name) {
            return Ok(self.player(series)?.1.streams()[kind].len());
        }
        no_series(name, series)?;
        Ok(match table {
            HITREG_TABLE_TICKS => self.session.ticks.len(),
            HITREG_TABLE_STATES => self.session.states.len(),
            _ => self.session.damage.len(),
        })
    }

    /// Returns the time and the values of a row of a table that hitreg defines. Rows without a time have time 0.
    fn row(&self, table: hitreg_table, series: u32, index: usize) -> Result<(i64, Vec<hitreg_value>), Failure> {
        let number = |number: u32| hitreg_value::number(number);
        let none_or = |number: Option<u16>| hitreg_value::number(number.map_or(-1, i64::from));
        let arrival = |arrivals: &[ArrivalRecord]| {
            let arrival = row(arrivals, index)?;
            Ok((arrival.at.0, vec![number(arrival.number)]))
        };
        let shot = |shots: &[ShotRecord]| {
            let shot = row(shots, index)?;
            let (target, reason) =
                (none_or(shot.target.map(|target| target.0)), number_of(&shot.reason, &HitResult::ALL));
            let before = [number(shot.command.0), number(shot.index.into()), reason, target];
            let after =
                [number(shot.hitgroup.into()), hitreg_value::number(shot.damage), hitreg_value::number(shot.rewound.0)];
            let more = [self.name(shot.weapon), number(shot.impact.into()), hitreg_value::number_or_none(shot.pellets)];
            Ok((shot.at.0, [&before[..], &after, &more].concat()))
        };
        match table {
            HITREG_TABLE_TICKS => {
                let end = row(&self.session.ticks, index)?;
                let hash = end.hash.map_or(hitreg_value::none(), |hash| hitreg_value::number(hash.cast_signed()));
                return Ok((end.at.0, vec![number(end.tick.0), hash]));
            }
            HITREG_TABLE_STATES => {
                let key = row(self.session.states.keys(), index)?;
                let viewer = none_or(key.viewer.map(|viewer| viewer.0));
                let cells = hitreg_value::list(self.session.states.cells_of(index));
                let (tick, entity, class) = (key.tick.0, key.entity.0.into(), key.class.0.into());
                return Ok((0, vec![number(tick), viewer, number(entity), number(class), cells]));
            }
            HITREG_TABLE_DAMAGE => {
                let damage = row(&self.session.damage, index)?;
                let attacker = none_or(damage.attacker.map(|attacker| attacker.0));
                let (tick, victim) = (number(damage.tick.0), number(damage.victim.0.into()));
                let force =
                    damage.force.map_or([hitreg_value::none(); 3], |force| force.to_array().map(hitreg_value::real));
                let (amount, armour) =
                    (hitreg_value::number(damage.amount), hitreg_value::number_or_none(damage.armour));
                let before = [tick, victim, attacker, amount, self.name(damage.weapon), armour];
                return Ok((damage.at.0, [&before[..], &force].concat()));
            }
            _ => {}
        }
        let (player, of) = self.player(series)?;
        match table {
            HITREG_TABLE_FRAMES => Ok(self.usercmd(player, index, row(&of.frames, index)?)),
            HITREG_TABLE_PREDICTED => shot(&of.predicted),
            HITREG_TABLE_JUDGED => shot(&of.judged),
            HITREG_TABLE_SENT => {
                let sent = row(&of.sent, index)?;
                let numbers = [sent.number, sent.newest.0, sent.count.into(), sent.ack.0, sent.bytes.into()];
                Ok((sent.at.0, numbers.map(number).to_vec()))
            }
            HITREG_TABLE_REACHED => arrival(&of.reached),
            HITREG_TABLE_EXECUTED => {
                let done = row(&of.executed, index)?;
                Ok((0, vec![number(done.command.0), number(done.tick.0), number_of(&done.how, &Execution::ALL)]))
            }
            HITREG_TABLE_PRESENCE => {
                let change = row(&of.presence, index)?;
                Ok((change.at.0, vec![number(change.tick.0), number_of(&change.change, &Presence::ALL)]))
            }
            HITREG_TABLE_SNAPSHOTS => {
                let sent = row(&of.snapshots, index)?;
                let entities = hitreg_value::list(&sent.entities);
                let effects = hitreg_value::list(&self.effects[player][index]);
                let before = [number(sent.seq.0), number(sent.tick.0), hitreg_value::number(sent.server_time.0)];
                let after = [sent.ack.0, sent.bytes.into(), sent.choked.into()].map(number);
                Ok((sent.at.0, [&before[..], &after, &[entities, effects]].concat()))
            }
            _ => arrival(&of.received),
        }
    }

    /// Returns the text of a code; an empty text for a code without one.
    pub(super) fn text(&self, code: TextCode) -> &CStr {
        self.texts.get(&code).map_or(c"", |text| text)
    }

    /// Returns the text of a code; no value for the empty text.
    fn name(&self, code: TextCode) -> hitreg_value {
        self.texts.get(&code).map_or(hitreg_value::none(), |text| hitreg_value::text(text))
    }

    fn usercmd(&self, player: usize, index: usize, frame: &FrameRecord) -> (i64, Vec<hitreg_value>) {
        let (command, input) = (&frame.command, &frame.command.input);
        let number = |number: u32| hitreg_value::number(number);
        let fields = self.fields[player].get(index).map_or(&[][..], |fields| fields);
        let [pitch, yaw, roll] = input.viewangles.to_array().map(hitreg_value::real);
        let values = vec![
            number(command.seq.0),
            hitreg_value::number(command.server_time.0),
            number(command.lerp_msec.into()),
            number(input.msec.into()),
            pitch,
            yaw,
            roll,
            hitreg_value::real(input.forwardmove),
            hitreg_value::real(input.sidemove),
            hitreg_value::real(input.upmove),
            number(input.buttons.into()),
            number(input.impulse.into()),
            hitreg_value::list(&frame.bytes),
            hitreg_value::list(fields),
        ];
        (frame.at.0, values)
    }
}

fn row<T>(rows: &[T], index: usize) -> Result<&T, Failure> {
    let none = || fail(HITREG_ERROR_NO_ROW, format!("there is no row {index}: there are {}", rows.len()));
    rows.get(index).ok_or_else(none)
}

fn effect(effect: &Effect) -> hitreg_effect {
    let [x, y, z] = effect.at.to_array();
    let (kind, entity, predictable) = (effect.kind.into(), effect.entity.0.into(), effect.predictable.into());
    hitreg_effect { kind, entity, predictable, x, y, z }
}

/// Returns the values of the usercmd fields that the game declares, of each player's usercmds.
fn usercmd_fields(session: &Session, texts: &SortedMap<TextCode, CString>) -> Vec<Vec<Vec<hitreg_value>>> {
    let fields = session.header.own_usercmd_fields();
    let values = |frame: &FrameRecord| {
        let own = &frame.command.input.own;
        let number = |(field, place): (&FieldSchema, _)| (field.kind, own.number(field.kind, place));
        let value = |(kind, number): (CellKind, i64)| value(number, kind.form(), kind == CellKind::Text, texts);
        cells_of(&fields).map(number).map(value).collect()
    };
    let of_player = |player: &PlayerRecords| match fields[..] {
        [] => Vec::new(),
        _ => player.frames.iter().map(values).collect(),
    };
    session.players.iter().map(of_player).collect()
}

/// Returns a number as the value that it stands for. The texts must outlive it.
fn value(number: i64, form: NumberForm, is_text: bool, texts: &SortedMap<TextCode, CString>) -> hitreg_value {
    match form {
        NumberForm::Integer if is_text => {
            hitreg_value::text(texts.get(&TextCode(number as u64)).map_or(c"", |text| text))
        }
        NumberForm::Integer => hitreg_value::number(number),
        NumberForm::F32 => hitreg_value::real(f32::from_bits(number as u32)),
        NumberForm::F64 => hitreg_value::real64(f64::from_bits(number as u64)),
    }
}

fn custom(kind: &UnknownKind, session: &Session, texts: &SortedMap<TextCode, CString>) -> CustomTable {
    let mut table = CustomTable { name: kind.name.clone(), series: SortedMap::new() };
    let at = kind.columns.iter().position(|name| name == "at_us");
    let is_text = |field: &FieldSchema| field.kind == CellKind::Text;
    let is_text: Vec<bool> = kind.columns.iter().map(|name| kind.field(name).is_some_and(is_text)).collect();
    for records in session.unknown.iter().filter(|records| records.kind == kind.name) {
        for (row, series) in records.series.iter().enumerate() {
            let at_us = at.and_then(|at| records.columns.get(at)).map_or(0, |column| column.values[row]);
            let columns = records.columns.iter().enumerate().filter(|(place, _)| Some(*place) != at);
            let value = |(place, column): (usize, &UnknownColumn)| {
                value(column.values[row], column.form, is_text.get(place) == Some(&true), texts)
            };
            table.series.entry(*series).or_default().push(UnknownRow { at_us, values: columns.map(value).collect() });
        }
    }
    table
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

/// Returns the text of a field of type `HITREG_TEXT`, given its two cells of a state. It stays valid until the log is
/// freed. Returns null for a null log or null cells, and an empty text for cells that hold none.
///
/// # Safety
/// `log` is null or a log, `cells` null or two cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_text(log: *const hitreg_log, cells: *const u32) -> *const c_char {
    // SAFETY: the caller upholds this function's contract.
    let (log, low, high) = unsafe {
        let (Some(log), false) = (log.as_ref(), cells.is_null()) else { return std::ptr::null() };
        (log, cells.read_unaligned(), cells.add(1).read_unaligned())
    };
    log.text(TextCode(u64::from(low) | u64::from(high) << 32)).as_ptr()
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
        if let Some((_, value)) = log.settings.iter().find(|(known, _)| known.to_bytes() == key.as_bytes()) {
            found = value.as_ptr();
        }
        Ok(())
    });
    found
}

/// Returns a setting of the session by its index, in the order of the log. Returns `HITREG_ERROR_NO_ROW` after the last.
///
/// # Safety
/// `log` is null or a log, `key` and `value` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_setting_at(
    log: *const hitreg_log,
    index: usize,
    key: *mut *const c_char,
    value: *mut *const c_char,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (name, text) = row(&look(log, "log")?.settings, index)?;
        place(value)?;
        answer(key, name.as_ptr())?;
        answer(value, text.as_ptr())
    })
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

/// Returns the number of a table by its name, for tables of your own. A log numbers them from 0 in the order of its
/// description, but a program of another version may have described others.
///
/// # Safety
/// `log` is null or a log, `name` null or a C string, `table` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_table(log: *const hitreg_log, name: *const c_char, table: *mut u32) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (log, name) = (look(log, "log")?, text(name, "name")?);
        let none = || fail(HITREG_ERROR_NO_ROW, format!("the log has no table `{name}` of its own"));
        let place = log.custom.iter().position(|table| table.name == name).ok_or_else(none)?;
        answer(table, HITREG_TABLE_CUSTOM as u32 + place as u32)
    })
}

/// Returns a series of a table by its index, in ascending order. A series is a player, or 0 in tables without players;
/// a table of your own chooses its series. Returns `HITREG_ERROR_NO_ROW` after the last.
///
/// # Safety
/// `log` is null or a log, `series` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_series(
    log: *const hitreg_log,
    table: u32,
    index: usize,
    series: *mut u32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        let all: Vec<u32> = match TableNumber::of(table)? {
            TableNumber::Custom(number) => log.custom(number)?.series.keys().copied().collect(),
            TableNumber::Known(HITREG_TABLE_TICKS | HITREG_TABLE_STATES | HITREG_TABLE_DAMAGE, ..) => vec![0],
            TableNumber::Known(..) => (0..log.session.players.len() as u32).collect(),
        };
        answer(series, *row(&all, index)?)
    })
}

/// Returns the number of rows of a series of a table. `table` and `series` are those of `hitreg_push_row`.
///
/// # Safety
/// `log` is null or a log, `count` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_count(
    log: *const hitreg_log,
    table: u32,
    series: u32,
    count: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { answer(count, look(log, "log")?.count(TableNumber::of(table)?, series)?) })
}

/// Returns the index of a usercmd by its number. If several usercmds of the player have the number, this is the first
/// one in the log. Returns `HITREG_ERROR_NO_ROW` if the log has none of this number.
///
/// # Safety
/// `log` is null or a log, `index` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_usercmd_index(
    log: *const hitreg_log,
    player: u32,
    seq: u32,
    index: *mut usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        let numbers = &log.by_number[log.player(player)?.0];
        let place = numbers.partition_point(|(number, _)| number.0 < seq);
        let found = numbers.get(place).filter(|(number, _)| number.0 == seq);
        let none = || fail(HITREG_ERROR_NO_ROW, format!("player {player} has no usercmd {seq}"));
        answer(index, found.ok_or_else(none)?.1)
    })
}

/// Reads a row as `hitreg_push_row` takes it: its time and its first `count` values. `index` counts the rows of the
/// series from 0. `at_us` may be null; rows without a time have time 0. Lists are valid until the log is freed.
///
/// # Safety
/// `log` is null or a log, `at_us` null or writable, `values` null or writable for `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_log_row(
    log: *const hitreg_log,
    table: u32,
    series: u32,
    index: usize,
    at_us: *mut i64,
    values: *mut hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let log = look(log, "log")?;
        let time = match TableNumber::of(table)? {
            TableNumber::Known(table, name, _) => {
                let (time, found) = log.row(table, series, index)?;
                types::put(name, &found, values, count)?;
                time
            }
            TableNumber::Custom(number) => {
                let table = log.custom(number)?;
                let found = row(table.series.get(&series).map_or(&[][..], |rows| rows), index)?;
                types::put(&table.name, &found.values, values, count)?;
                found.at_us
            }
        };
        if !at_us.is_null() {
            answer(at_us, time)?;
        }
        Ok(())
    })
}
