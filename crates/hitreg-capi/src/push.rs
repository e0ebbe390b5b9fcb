//! What is pushed into a stream.

use glam::Vec3;

use super::guard::hitreg_code::{self, HITREG_VALUE};
use super::guard::{Failure, array, fail, fits, guard, sized, sized_array};
use super::recorder::own;
use super::{
    hitreg_effect, hitreg_packet, hitreg_presence, hitreg_shot, hitreg_snapshot, hitreg_stream, hitreg_usercmd,
    hitreg_value,
};
use ::hitreg_log::record::{
    ArrivalRecord, ClassId, DamageRecord, Effect, Execution, ExecutionRecord, PacketRecord, Presence, PresenceRecord,
    Reason, Record, ShotRecord, SnapshotRecord, StateRecord, Value,
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

/// A client frame's usercmd.
///
/// # Safety
/// `stream` is null or a stream, `command` null or as large as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd(
    stream: *mut hitreg_stream,
    player: u16,
    command: *const hitreg_usercmd,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(command)?);
        Ok(stream.usercmd(PlayerId(player), Micros(c.at_us), usercmd(&c)?)?)
    })
}

/// The same with the fields of the game's own, as many as the description has (`hitreg_about_usercmd_field`).
///
/// # Safety
/// `stream` is null or a stream, `command` null or as large as it says, `values` null or so many values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd_with(
    stream: *mut hitreg_stream,
    player: u16,
    command: *const hitreg_usercmd,
    values: *const hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (stream, c, own) = (own(stream)?, sized(command)?, list(values, count)?);
        Ok(stream.usercmd_with(PlayerId(player), Micros(c.at_us), usercmd(&c)?, &own)?)
    })
}

/// What a usercmd carries besides, at the same time as the usercmd.
///
/// # Safety
/// `stream` is null or a stream, `bytes` null or so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_usercmd_bytes(
    stream: *mut hitreg_stream,
    player: u16,
    at_us: i64,
    seq: u32,
    bytes: *const u8,
    length: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (stream, bytes) = (own(stream)?, array(bytes, length, "bytes")?);
        Ok(stream.usercmd_bytes(PlayerId(player), Micros(at_us), CommandSeq(seq), bytes)?)
    })
}

/// A packet that a client sent.
///
/// # Safety
/// `stream` is null or a stream, `packet` null or as large as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_packet(
    stream: *mut hitreg_stream,
    player: u16,
    packet: *const hitreg_packet,
) -> hitreg_code {
    // SAFETY: as this function's own.
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

/// A client's packet arrived at the server. A lost one never does, a duplicated one twice.
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
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let arrival = ArrivalRecord { number, at: Micros(at_us) };
        Ok(own(stream)?.push(Record::Reached(PlayerId(player), arrival))?)
    })
}

/// A snapshot that the server sent to a player, with the entities and the effects in it; all effects have the size of the first.
///
/// # Safety
/// `stream` is null or a stream, `snapshot` null or as large as it says, `entities` null or so many numbers, `effects` null or so many.
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
    // SAFETY: as this function's own.
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

/// A snapshot arrived at its client.
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
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let arrival = ArrivalRecord { number: seq, at: Micros(at_us) };
        Ok(own(stream)?.push(Record::Received(PlayerId(player), arrival))?)
    })
}

/// What the server did about a usercmd: 0 run, 1 stood in, 2 missing, 3 late, 4 over budget.
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
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let how = HOW.get(how as usize).ok_or_else(|| fail(HITREG_VALUE, format!("nothing is done as {how}")))?;
        let ran = ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), how: *how };
        Ok(own(stream)?.push(Record::Executed(PlayerId(player), ran))?)
    })
}

/// The end of a server's tick; ticks count from 1. `hash` is null where the game has none.
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
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let hash = if hash.is_null() { None } else { Some(hash.read_unaligned()) };
        Ok(own(stream)?.tick(Tick(tick), Micros(at_us), hash)?)
    })
}

/// An entity's state after a tick: as many cells of 32 bits as its class has fields, floats by their bits (`memcpy`). `viewer` is
/// the only player who was sent it so, or -1.
///
/// # Safety
/// `stream` is null or a stream, `cells` null or so many cells.
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
    // SAFETY: as this function's own.
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

/// A shot: as the client predicted it (`judged` 0), or as the server judged it (1).
///
/// # Safety
/// `stream` is null or a stream, `shot` null or as large as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_shot(
    stream: *mut hitreg_stream,
    player: u16,
    shot: *const hitreg_shot,
    judged: u32,
) -> hitreg_code {
    const REASONS: [Reason; 5] = [Reason::Hit, Reason::HitWorld, Reason::Missed, Reason::AlreadyDead, Reason::Launched];
    // SAFETY: as this function's own.
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

/// A player joined, or left: the first tick with it, or the first without.
///
/// # Safety
/// `stream` is null or a stream, `presence` null or as large as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_presence(
    stream: *mut hitreg_stream,
    player: u16,
    presence: *const hitreg_presence,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let (stream, c) = (own(stream)?, sized(presence)?);
        let change = if c.left == 0 { Presence::Joined } else { Presence::Left };
        let presence = PresenceRecord { tick: Tick(c.tick), at: Micros(c.at_us), change };
        Ok(stream.push(Record::Presence(PlayerId(player), presence))?)
    })
}

/// Somebody lost health; `attacker` is a player, or -1.
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
    // SAFETY: as this function's own.
    guard(|| unsafe {
        let attacker = u16::try_from(attacker).ok().map(PlayerId);
        let damage = DamageRecord { tick: Tick(tick), at: Micros(at_us), victim: EntityId(victim), attacker, amount };
        Ok(own(stream)?.push(Record::Damage(damage))?)
    })
}

/// A row of a kind of the game's own. `series` is whose it is: a player, or what else the kind counts by.
///
/// # Safety
/// `stream` is null or a stream, `values` null or so many values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hitreg_push_row(
    stream: *mut hitreg_stream,
    kind: usize,
    series: u32,
    at_us: i64,
    values: *const hitreg_value,
    count: usize,
) -> hitreg_code {
    // SAFETY: as this function's own.
    guard(|| unsafe { Ok(own(stream)?.row(kind, series, Micros(at_us), &list(values, count)?)?) })
}

/// Values from C.
///
/// # Safety
/// `values` is null or so many values.
unsafe fn list(values: *const hitreg_value, count: usize) -> Result<Vec<Value>, Failure> {
    let value = |c: &hitreg_value| if c.is_real == 0 { Value::Number(c.number) } else { Value::Float(c.real) };
    // SAFETY: as this function's own.
    Ok(unsafe { array(values, count, "values") }?.iter().map(value).collect())
}
