//! `hitreg_push_row`: pushes a row of any table into a stream.

use std::ffi::c_char;

use glam::Vec3;

use super::guard::hitreg_code;
use super::guard::{self, Failure, answer, array, fits, guard};
use super::hitreg_table::{self, *};
use super::recorder::own;
use super::rows::{TableNumber, no_series, own_values, player, values_of};
use super::{hitreg_effect, hitreg_stream, hitreg_value};
use ::hitreg_log::record::{
    ArrivalRecord, ClassId, DamageRecord, Effect, Execution, ExecutionRecord, PacketRecord, Presence, PresenceRecord,
    Reason, Record, ShotRecord, SnapshotRecord, StateRecord,
};
use ::hitreg_log::recorder::Stream;
use ::hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use ::hitreg_log::usercmd::{Input, OwnCells, Usercmd};

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
                let values = own_values(stream, values)?;
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
        let code = own(stream)?.text(guard::text(text, "text")?)?.0;
        answer(cells, code as u32)?;
        answer(cells.wrapping_add(1), (code >> 32) as u32)
    })
}

/// Pushes a row of a table that hitreg defines. The columns are those of `rows::TABLES`.
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
            return Ok(stream.tick(Tick(tick.read_number("tick")?), at, hash.read_hash("hash")?)?);
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
    if !bytes.is_empty() {
        stream.usercmd_bytes(player, at, command.seq, bytes)?;
    }
    if fields.is_empty() {
        return Ok(stream.usercmd(player, at, command)?);
    }
    // SAFETY: the caller upholds this function's contract.
    let fields = unsafe { own_values(stream, fields) }?;
    Ok(stream.usercmd_with(player, at, command, &fields)?)
}

/// # Safety
/// A text in the row is null or a C string.
unsafe fn shot(stream: &mut Stream, at: Micros, row: &[hitreg_value; 10]) -> Result<ShotRecord, Failure> {
    let [usercmd, index, reason, target, hitgroup, damage, rewound, weapon, impact, pellets] = row;
    Ok(ShotRecord {
        command: CommandSeq(usercmd.read_number("usercmd")?),
        at,
        index: index.read_number("index")?,
        reason: reason.read_one_of(&Reason::ALL, "reason")?,
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
