//! Functions that push records into a stream.

use glam::Vec3;

use super::guard::hitreg_code::{self, HITREG_VALUE};
use super::guard::{Failure, array, fail, fits, guard, sized, sized_array};
use super::recorder::own;
use super::{
    hitreg_effect, hitreg_packet, hitreg_presence, hitreg_shot, hitreg_snapshot, hitreg_stream, hitreg_usercmd,
    hitreg_value,
};
use ::hitreg_log::record::{
    ArrivalRecord, ClassId, DamageRecord, Effect, Execution, ExecutionRecord, OwnValue, PacketRecord, Presence,
    PresenceRecord, Reason, Record, ShotRecord, SnapshotRecord, StateRecord,
};
use ::hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use ::hitreg_log::usercmd::{Input, Usercmd};

fn usercmd(c: &hitreg_usercmd) -> Result<Usercmd, Failure> {
    let input = Input {
        msec: fits(c.msec, "msec")?,
        viewangles: Vec3::new(c.pitch, c.yaw, c.roll),
        forwardmove: c.forwardmove,
        sidemove: c.sidemove,
        upmove: c.upmove,
        buttons: fits(c.buttons, "buttons")?,
        impulse: fits(c.impulse, "impulse")?,
        extra: c.extra,
    };
    let (seq, lerp_msec) = (CommandSeq(c.seq), fits(c.lerp_ms, "lerp_ms")?);
    Ok(Usercmd { seq, lerp_msec, server_time: Micros(c.server_time_us), input })
}

/// Pushes a client frame's usercmd.
///
/// # Safety
/// `stream` is null or a stream, `command` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd(
    stream: *mut hitreg_stream,
    player: u16,
    command: *const hitreg_usercmd,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(command)?);
        Ok(stream.usercmd(PlayerId(player), Micros(c.at_us), usercmd(&c)?)?)
    })
}

/// Pushes a usercmd with its game-defined fields, one value for each `hitreg_about_usercmd_field`.
///
/// # Safety
/// `stream` is null or a stream, `command` null or a struct of its `size`, `values` null or `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd_with(
    stream: *mut hitreg_stream,
    player: u16,
    command: *const hitreg_usercmd,
    values: *const hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c, own) = (own(stream)?, sized(command)?, list(values, count)?);
        Ok(stream.usercmd_with(PlayerId(player), Micros(c.at_us), usercmd(&c)?, &own)?)
    })
}

/// Pushes the extra bytes of a usercmd. Push the usercmd itself with the same `at_us`.
///
/// # Safety
/// `stream` is null or a stream, `bytes` null or `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd_bytes(
    stream: *mut hitreg_stream,
    player: u16,
    at_us: i64,
    seq: u32,
    bytes: *const u8,
    length: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, bytes) = (own(stream)?, array(bytes, length, "bytes")?);
        Ok(stream.usercmd_bytes(PlayerId(player), Micros(at_us), CommandSeq(seq), bytes)?)
    })
}

/// Pushes a packet that a client sent.
///
/// # Safety
/// `stream` is null or a stream, `packet` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_packet(
    stream: *mut hitreg_stream,
    player: u16,
    packet: *const hitreg_packet,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(packet)?);
        let packet = PacketRecord {
            number: c.number,
            at: Micros(c.at_us),
            newest: CommandSeq(c.newest),
            count: fits(c.count, "count")?,
            ack: SnapshotSeq(c.ack),
            bytes: fits(c.bytes, "bytes")?,
        };
        Ok(stream.push(Record::Sent(PlayerId(player), packet))?)
    })
}

/// Pushes the arrival of a client's packet at the server. A lost packet never arrives, a duplicated one twice.
///
/// # Safety
/// `stream` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_reached(
    stream: *mut hitreg_stream,
    player: u16,
    number: u32,
    at_us: i64,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let arrival = ArrivalRecord { number, at: Micros(at_us) };
        Ok(own(stream)?.push(Record::Reached(PlayerId(player), arrival))?)
    })
}

/// Pushes a snapshot that the server sent to a player, with its entities and effects. All effects have the size of the
/// first.
///
/// # Safety
/// `stream` is null or a stream, `snapshot` null or a struct of its `size`, `entities` null or `count` numbers,
/// `effects` null or `effect_count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_snapshot(
    stream: *mut hitreg_stream,
    player: u16,
    snapshot: *const hitreg_snapshot,
    entities: *const u16,
    count: usize,
    effects: *const hitreg_effect,
    effect_count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(snapshot)?);
        let mut entities: Vec<EntityId> = array(entities, count, "entities")?.iter().map(|id| EntityId(*id)).collect();
        entities.sort_unstable();
        let effects: Vec<hitreg_effect> = sized_array(effects, effect_count)?;
        let snapshot = SnapshotRecord {
            seq: SnapshotSeq(c.seq),
            tick: Tick(c.tick),
            at: Micros(c.at_us),
            server_time: Micros(c.server_time_us),
            ack: CommandSeq(c.ack),
            bytes: fits(c.bytes, "bytes")?,
            choked: fits(c.choked, "choked")?,
            entities,
            effects: effects.iter().map(effect).collect::<Result<_, _>>()?,
            ..SnapshotRecord::default()
        };
        Ok(stream.push(Record::Snapshot(PlayerId(player), snapshot))?)
    })
}

fn effect(c: &hitreg_effect) -> Result<Effect, Failure> {
    let (kind, entity) = (fits(c.kind, "kind")?, EntityId(fits(c.entity, "entity")?));
    Ok(Effect { kind, entity, at: Vec3::new(c.x, c.y, c.z), predictable: c.predictable != 0 })
}

/// Pushes the arrival of a snapshot at its client.
///
/// # Safety
/// `stream` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_received(
    stream: *mut hitreg_stream,
    player: u16,
    seq: u32,
    at_us: i64,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let arrival = ArrivalRecord { number: seq, at: Micros(at_us) };
        Ok(own(stream)?.push(Record::Received(PlayerId(player), arrival))?)
    })
}

/// Pushes how the server handled a usercmd. `how` is 0: run, 1: stood in, 2: missing, 3: late, 4: over budget.
///
/// # Safety
/// `stream` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_ran(
    stream: *mut hitreg_stream,
    player: u16,
    command: u32,
    tick: u32,
    how: u32,
) -> hitreg_code {
    const HOW: [Execution; 5] =
        [Execution::Run, Execution::StoodIn, Execution::Missing, Execution::Late, Execution::OverBudget];
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let how = HOW.get(how as usize).ok_or_else(|| fail(HITREG_VALUE, format!("nothing is done as {how}")))?;
        let ran = ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), how: *how };
        Ok(own(stream)?.push(Record::Executed(PlayerId(player), ran))?)
    })
}

/// Pushes the end of a server tick; ticks count from 1. `hash` is null if the game does not hash its state.
///
/// # Safety
/// `stream` is null or a stream, `hash` null or a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_tick(
    stream: *mut hitreg_stream,
    tick: u32,
    at_us: i64,
    hash: *const u64,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let hash = if hash.is_null() { None } else { Some(hash.read_unaligned()) };
        Ok(own(stream)?.tick(Tick(tick), Micros(at_us), hash)?)
    })
}

/// Pushes an entity's state after a tick: one 32-bit cell for each field of its class, floats as their bits (`memcpy`).
/// `viewer` is the only player who was sent this state, or -1.
///
/// # Safety
/// `stream` is null or a stream, `cells` null or `count` cells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_body(
    stream: *mut hitreg_stream,
    tick: u32,
    viewer: i32,
    entity: u16,
    class_number: u16,
    cells: *const u32,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let viewer = match (viewer, u16::try_from(viewer)) {
            (-1, _) => None,
            (_, Ok(viewer)) => Some(PlayerId(viewer)),
            (_, Err(_)) => return Err(fail(HITREG_VALUE, format!("there is no player {viewer}"))),
        };
        let cells = array(cells, count, "cells")?.to_vec();
        let class = ClassId(class_number);
        let state = StateRecord { tick: Tick(tick), viewer, entity: EntityId(entity), class, cells };
        Ok(own(stream)?.push(Record::State(state))?)
    })
}

/// Pushes a shot: `judged` is 0 for the client's prediction, 1 for the server's result.
///
/// # Safety
/// `stream` is null or a stream, `shot` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_shot(
    stream: *mut hitreg_stream,
    player: u16,
    shot: *const hitreg_shot,
    judged: u32,
) -> hitreg_code {
    const REASONS: [Reason; 5] = [Reason::Hit, Reason::HitWorld, Reason::Missed, Reason::AlreadyDead, Reason::Launched];
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(shot)?);
        let no_reason = || fail(HITREG_VALUE, format!("there is no reason {}", c.reason));
        let shot = ShotRecord {
            command: CommandSeq(c.command),
            at: Micros(c.at_us),
            index: fits(c.index, "index")?,
            reason: *REASONS.get(c.reason as usize).ok_or_else(no_reason)?,
            target: u16::try_from(c.target).ok().map(EntityId),
            hitgroup: fits(c.hitgroup, "hitgroup")?,
            damage: c.damage,
            rewound: Micros(c.rewound_us.into()),
        };
        let player = PlayerId(player);
        Ok(stream.push(if judged == 0 { Record::Predicted(player, shot) } else { Record::Judged(player, shot) })?)
    })
}

/// Pushes that a player joined or left, with the first tick with or without the player.
///
/// # Safety
/// `stream` is null or a stream, `presence` null or a struct of its `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_presence(
    stream: *mut hitreg_stream,
    player: u16,
    presence: *const hitreg_presence,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(presence)?);
        let change = if c.left == 0 { Presence::Joined } else { Presence::Left };
        let presence = PresenceRecord { tick: Tick(c.tick), at: Micros(c.at_us), change };
        Ok(stream.push(Record::Presence(PlayerId(player), presence))?)
    })
}

/// Pushes damage to an entity. `attacker` is a player, or -1.
///
/// # Safety
/// `stream` is null or a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_damage(
    stream: *mut hitreg_stream,
    tick: u32,
    at_us: i64,
    victim: u16,
    attacker: i32,
    amount: i32,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe {
        let attacker = u16::try_from(attacker).ok().map(PlayerId);
        let damage = DamageRecord { tick: Tick(tick), at: Micros(at_us), victim: EntityId(victim), attacker, amount };
        Ok(own(stream)?.push(Record::Damage(damage))?)
    })
}

/// Pushes a row of a custom kind. `series` is a player, or whatever else the kind groups its rows by.
///
/// # Safety
/// `stream` is null or a stream, `values` null or `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_row(
    stream: *mut hitreg_stream,
    kind: usize,
    series: u32,
    at_us: i64,
    values: *const hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: the caller upholds this function's contract.
    guard(|| unsafe { Ok(own(stream)?.row(kind, series, Micros(at_us), &list(values, count)?)?) })
}

/// Converts values from C.
///
/// # Safety
/// `values` is null or `count` values.
unsafe fn list(values: *const hitreg_value, count: usize) -> Result<Vec<OwnValue>, Failure> {
    let value = |c: &hitreg_value| if c.is_real == 0 { OwnValue::Number(c.number) } else { OwnValue::Float(c.real) };
    // SAFETY: the caller upholds this function's contract.
    Ok(unsafe { array(values, count, "values") }?.iter().map(value).collect())
}
