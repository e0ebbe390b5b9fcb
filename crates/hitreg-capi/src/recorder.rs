//! `hitreg_recorder` and `hitreg_stream`: a log that is being written, and a thread's handle that pushes its rows.

use std::ffi::c_char;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::hitreg_log::record::{
    ArrivalRecord, ClassId, DamageRecord, Effect, Execution, ExecutionRecord, HitResult, PacketRecord, Presence,
    PresenceRecord, Record, ShotRecord, SnapshotRecord, StateRecord,
};
use ::hitreg_log::recorder::{Recorder, RecorderOptions, Rotation, Stream};
use ::hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use ::hitreg_log::usercmd::{Input, OwnCells, Usercmd};
use glam::Vec3;

use crate::guard::hitreg_code::{
    self, HITREG_ERROR_FINISHED, HITREG_ERROR_NULL, HITREG_ERROR_THREAD, HITREG_ERROR_VALUE,
};
use crate::guard::{
    self, Failure, OwnProcess, answer, array, declared_size, fail, fill, fits, free, guard, handle, look, place, sized,
    text,
};
use crate::hitreg_table::{self, *};
use crate::signals::BlockedSignals;
use crate::types::{TableNumber, no_series, own_values, player, read_bits, values_of};
use crate::{hitreg_description, hitreg_effect, hitreg_log, hitreg_options, hitreg_value, hitreg_written};

/// A log that is being written. Any thread may use it, one at a time.
pub struct hitreg_recorder {
    recorder: Recorder,
    process: OwnProcess,
    is_finished: bool,
}

impl hitreg_recorder {
    /// Returns the recorder, if this process created it and `hitreg_recorder_finish` has not ended it.
    fn running(&self) -> Result<&Recorder, Failure> {
        self.process.check("recorder")?;
        match self.is_finished {
            false => Ok(&self.recorder),
            true => Err(fail(HITREG_ERROR_FINISHED, "the recording is finished: nothing more is recorded")),
        }
    }
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
        place(recorder)?;
        let _blocked = BlockedSignals::new();
        let (path, options) = (text(path, "path")?, asked(options)?);
        made(
            recorder,
            Recorder::create(Path::new(path), handle(description, "description")?.description.clone(), options)?,
        )
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
        place(recorder)?;
        let _blocked = BlockedSignals::new();
        let (span, options) = (Micros::from_s(seconds.into()), asked(options)?);
        made(recorder, Recorder::keep_last(span, handle(description, "description")?.description.clone(), options)?)
    })
}

/// Writes what `hitreg_recorder_keep_last` holds in memory, including everything pushed before this call, as a log that
/// begins after a tick. The recording goes on. A signal handler must not call it, nor any other function of this
/// library: set a flag in the handler, and save from the main loop.
///
/// # Safety
/// `recorder` is null or a recorder, `path` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_save(recorder: *const hitreg_recorder, path: *const c_char) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (recorder, path) = (look(recorder, "recorder")?, text(path, "path")?);
        Ok(recorder.running()?.save(Path::new(path))?)
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
        place(recorder)?;
        let _blocked = BlockedSignals::new();
        let (path, digest) = (text(path, "path")?, look(log, "log")?.digest);
        made(
            recorder,
            Recorder::trace(Path::new(path), handle(description, "description")?.description.clone(), digest)?,
        )
    })
}

/// # Safety
/// `recorder` is writable.
unsafe fn made(handle: *mut *mut hitreg_recorder, recorder: Recorder) -> Result<(), Failure> {
    let made = hitreg_recorder { recorder, process: OwnProcess::current(), is_finished: false };
    // SAFETY: the caller upholds this function's contract.
    unsafe { answer(handle, Box::into_raw(Box::new(made))) }
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
        return Err(fail(HITREG_ERROR_VALUE, "ring is too large: a stream may have at most 1048576 rows"));
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

/// Ends the log: writes everything pushed before and renames the file. `written` may be null; the counters are there also
/// if the file cannot be written. The caller still frees the handle.
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
            // A bad size does not end the recording.
            declared_size(written)?;
        }
        recorder.running()?;
        recorder.is_finished = true;
        let ended = recorder.recorder.end();
        if !written.is_null() {
            fill(written, figures(recorder.recorder.written()))?;
        }
        Ok(ended?)
    })
}

/// Returns the recorder's counters so far; the last ones after `hitreg_recorder_finish`.
///
/// # Safety
/// `recorder` is null or a recorder, `written` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_written(
    recorder: *const hitreg_recorder,
    written: *mut hitreg_written,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { fill(written, figures(look(recorder, "recorder")?.recorder.written())) })
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

/// Frees a recorder; does nothing for null, or in a child process of a fork. Without a finish, `PATH.part` keeps
/// everything recorded so far.
///
/// # Safety
/// `recorder` is null, or a recorder that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_recorder_free(recorder: *mut hitreg_recorder) {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        if recorder.as_ref().is_some_and(|recorder| recorder.process.is_current()) {
            free(recorder);
        }
    }
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
        place(stream)?;
        let made = look(recorder, "recorder")?.running()?.stream();
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

/// Pushes a row: one value for each column of the table, in the order of the columns. `table` is a `hitreg_table`, or
/// `hitreg_table_custom`. `series` is the player; 0 in tables without players; any number in a table of your own.
///
/// A row may be older than the newest row by the reorder window of `hitreg_options`. `at_us` has no effect on rows that
/// take the time of the previous push. A row that is refused does no harm.
///
/// # Safety
/// `stream` is null or a stream, `values` null or `count` values. A list has null or `count` items, a text is null or a
/// C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_row(
    stream: *mut hitreg_stream,
    table: u32,
    series: u32,
    at_us: i64,
    values: *const hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, values) = (own(stream)?, array(values, count, "values")?);
        match TableNumber::of(table)? {
            TableNumber::Known(table, name, columns) => {
                push(stream, (table, name, columns), series, Micros(at_us), values)
            }
            TableNumber::Custom(kind) => {
                let mut values = own_values(stream, values)?;
                if let Some(own) = stream.kinds().get(kind) {
                    read_bits(&mut values, own.columns.iter().map(|(_, kind)| *kind));
                }
                Ok(stream.row(kind, series, Micros(at_us), &values)?)
            }
        }
    })
}

/// Writes a field of type `HITREG_TEXT` as two cells of a state. The recorder remembers each different text until it
/// ends, at most 4 MiB of them.
///
/// # Safety
/// `stream` is null or a stream, `text` null or a C string, `cells` null or writable for two cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_put_text(
    stream: *mut hitreg_stream,
    text: *const c_char,
    cells: *mut u32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        place(cells)?;
        let code = own(stream)?.text(guard::text(text, "text")?)?.0;
        answer(cells, code as u32)?;
        answer(cells.wrapping_add(1), (code >> 32) as u32)
    })
}

/// Pushes a row of a table that hitreg defines. The columns are those of `types::TABLES`.
///
/// # Safety
/// A list in the row has null or `count` items, a text is null or a C string.
#[inline]
unsafe fn push(
    stream: &mut Stream,
    (table, name, columns): (hitreg_table, &str, &[&str]),
    series: u32,
    at: Micros,
    values: &[hitreg_value],
) -> Result<(), Failure> {
    let record = match table {
        HITREG_TABLE_FRAMES => {
            let row = values_of(name, columns, values)?;
            // SAFETY: the caller upholds this function's contract.
            return unsafe { push_usercmd(stream, player(series)?, at, row) };
        }
        HITREG_TABLE_PREDICTED | HITREG_TABLE_JUDGED => {
            let row = values_of(name, columns, values)?;
            // SAFETY: the caller upholds this function's contract.
            let (player, shot) = (player(series)?, unsafe { shot(stream, at, row) }?);
            if table == HITREG_TABLE_JUDGED { Record::Judged(player, shot) } else { Record::Predicted(player, shot) }
        }
        HITREG_TABLE_SENT => {
            let [number, newest, count, ack, bytes] = values_of(name, columns, values)?;
            let packet = PacketRecord {
                number: number.read_number("number")?,
                at,
                newest: CommandSeq(newest.read_number("newest")?),
                count: count.read_number("count")?,
                ack: SnapshotSeq(ack.read_number("ack")?),
                bytes: bytes.read_number("bytes")?,
            };
            Record::Sent(player(series)?, packet)
        }
        HITREG_TABLE_REACHED => {
            let [number] = values_of(name, columns, values)?;
            Record::Reached(player(series)?, ArrivalRecord { number: number.read_number("number")?, at })
        }
        HITREG_TABLE_EXECUTED => {
            let [usercmd, tick, how] = values_of(name, columns, values)?;
            let executed = ExecutionRecord {
                command: CommandSeq(usercmd.read_number("usercmd")?),
                tick: Tick(tick.read_number("tick")?),
                how: how.read_one_of(&Execution::ALL, "how")?,
            };
            Record::Executed(player(series)?, executed)
        }
        HITREG_TABLE_PRESENCE => {
            let [tick, presence] = values_of(name, columns, values)?;
            let (tick, change) = (Tick(tick.read_number("tick")?), presence.read_one_of(&Presence::ALL, "presence")?);
            Record::Presence(player(series)?, PresenceRecord { tick, at, change })
        }
        HITREG_TABLE_SNAPSHOTS => {
            let row = values_of(name, columns, values)?;
            // SAFETY: the caller upholds this function's contract.
            Record::Snapshot(player(series)?, unsafe { snapshot(at, row) }?)
        }
        HITREG_TABLE_RECEIVED => {
            let [seq] = values_of(name, columns, values)?;
            Record::Received(player(series)?, ArrivalRecord { number: seq.read_number("seq")?, at })
        }
        HITREG_TABLE_TICKS => {
            no_series(name, series)?;
            let [tick, hash] = values_of(name, columns, values)?;
            return Ok(stream.tick(
                Tick(tick.read_number("tick")?),
                at,
                hash.read_optional_number("hash")?.map(i64::cast_unsigned),
            )?);
        }
        HITREG_TABLE_STATES => {
            no_series(name, series)?;
            let [tick, viewer, entity, class_number, cells] = values_of(name, columns, values)?;
            Record::State(StateRecord {
                tick: Tick(tick.read_number("tick")?),
                viewer: viewer.read_number_or_none("viewer")?.map(PlayerId),
                entity: EntityId(entity.read_number("entity")?),
                class: ClassId(class_number.read_number("class_number")?),
                // SAFETY: the caller upholds this function's contract; any bits are a number.
                cells: unsafe { cells.read_list::<u32>("cells") }?.to_vec(),
            })
        }
        HITREG_TABLE_DAMAGE => {
            no_series(name, series)?;
            let [tick, victim, attacker, amount, weapon, armour, force @ ..] = values_of::<9>(name, columns, values)?;
            let [x, y, z] = force.each_ref().map(|value| value.read_optional_real("force"));
            let force = [x?, y?, z?];
            Record::Damage(DamageRecord {
                tick: Tick(tick.read_number("tick")?),
                at,
                victim: EntityId(victim.read_number("victim")?),
                attacker: attacker.read_number_or_none("attacker")?.map(PlayerId),
                amount: amount.read_number("amount")?,
                // SAFETY: the caller upholds this function's contract.
                weapon: unsafe { weapon.read_name(stream, "weapon") }?,
                armour: armour.read_optional_number("armour")?,
                force: force.iter().any(Option::is_some).then(|| Vec3::from(force.map(Option::unwrap_or_default))),
            })
        }
        HITREG_TABLE_CUSTOM => unreachable!("a table of the caller's own"),
    };
    Ok(stream.push(record)?)
}

/// # Safety
/// A list in the row has null or `count` items.
#[inline]
unsafe fn push_usercmd(
    stream: &mut Stream,
    player: PlayerId,
    at: Micros,
    row: &[hitreg_value; 14],
) -> Result<(), Failure> {
    let [seq, server_time, lerp, msec, pitch, yaw, roll, forward, side, up, buttons, impulse, bytes, fields] = row;
    let input = Input {
        msec: msec.read_number("msec")?,
        viewangles: Vec3::new(pitch.read_real("pitch")?, yaw.read_real("yaw")?, roll.read_real("roll")?),
        forwardmove: forward.read_real("forwardmove")?,
        sidemove: side.read_real("sidemove")?,
        upmove: up.read_real("upmove")?,
        buttons: buttons.read_number("buttons")?,
        impulse: impulse.read_number("impulse")?,
        own: OwnCells::default(),
    };
    let command = Usercmd {
        seq: CommandSeq(seq.read_number("seq")?),
        lerp_msec: lerp.read_number("lerp_ms")?,
        server_time: Micros(server_time.read_number("server_time_us")?),
        input,
    };
    // SAFETY: the caller upholds this function's contract; any bits are a byte or a value.
    let (bytes, fields) = unsafe { (bytes.read_list::<u8>("bytes")?, fields.read_list::<hitreg_value>("fields")?) };
    // SAFETY: the caller upholds this function's contract.
    let mut fields = unsafe { own_values(stream, fields) }?;
    read_bits(&mut fields, stream.usercmd_fields().iter().map(|field| field.kind));
    Ok(stream.usercmd_with_bytes(player, at, command, &fields, bytes)?)
}

/// # Safety
/// A text in the row is null or a C string.
unsafe fn shot(stream: &mut Stream, at: Micros, row: &[hitreg_value; 10]) -> Result<ShotRecord, Failure> {
    let [usercmd, index, reason, target, hitgroup, damage, rewound, weapon, impact, pellets] = row;
    Ok(ShotRecord {
        command: CommandSeq(usercmd.read_number("usercmd")?),
        at,
        index: index.read_number("index")?,
        reason: reason.read_one_of(&HitResult::ALL, "reason")?,
        target: target.read_number_or_none("target")?.map(EntityId),
        hitgroup: hitgroup.read_number("hitgroup")?,
        damage: damage.read_number("damage")?,
        rewound: Micros(rewound.read_number::<u32>("rewound_us")?.into()),
        // SAFETY: the caller upholds this function's contract.
        weapon: unsafe { weapon.read_name(stream, "weapon") }?,
        impact: impact.read_number::<i64>("impact")? != 0,
        pellets: pellets.read_optional_number("pellets")?,
    })
}

/// # Safety
/// A list in the row has null or `count` items.
unsafe fn snapshot(at: Micros, row: &[hitreg_value; 8]) -> Result<SnapshotRecord, Failure> {
    let [seq, tick, server_time, ack, bytes, choked, entities, effects] = row;
    // SAFETY: the caller upholds this function's contract; any bits are a number or an effect.
    let (entities, effects) =
        unsafe { (entities.read_list::<u16>("entities")?, effects.read_list::<hitreg_effect>("effects")?) };
    let mut entities: Vec<EntityId> = entities.iter().copied().map(EntityId).collect();
    entities.sort_unstable();
    Ok(SnapshotRecord {
        seq: SnapshotSeq(seq.read_number("seq")?),
        tick: Tick(tick.read_number("tick")?),
        at,
        server_time: Micros(server_time.read_number("server_time_us")?),
        ack: CommandSeq(ack.read_number("ack")?),
        bytes: bytes.read_number("bytes")?,
        choked: choked.read_number("choked")?,
        entities,
        effects: effects.iter().map(effect).collect::<Result<_, _>>()?,
        ..SnapshotRecord::default()
    })
}

fn effect(c: &hitreg_effect) -> Result<Effect, Failure> {
    let (kind, entity) = (fits(c.kind, "kind")?, EntityId(fits(c.entity, "entity")?));
    Ok(Effect { kind, entity, at: Vec3::new(c.x, c.y, c.z), predictable: c.predictable != 0 })
}
