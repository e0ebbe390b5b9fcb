//! What clients did and what became of it: usercmds, packets, arrivals, executions.

use glam::Vec3;
use serde_bytes::{ByteBuf, Bytes};

use super::table::{Columns, LookUp, Rows, Table};
use super::{Chunk, PlayerStretch, Stretch};
use crate::log::limits::Budget;
use crate::record::{ArrivalRecord, Execution, ExecutionRecord, FrameRecord, PacketRecord, PlayerRecords};
use crate::units::{CommandSeq, Micros, SnapshotSeq, Tick};
use crate::usercmd::{Input, Usercmd};

/// One kind of record of all players.
pub(super) fn rows_of<'a, T>(stretch: &Stretch<'a>, of: impl Fn(&PlayerStretch<'a>) -> &'a [T]) -> Rows<'a, T> {
    Rows::new(stretch.players.iter().enumerate().map(|(id, player)| (id as u32, of(player))))
}

pub(super) fn encode_frames(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let mut rows = rows_of(stretch, |player| player.frames);
    rows.whole(|r| r.command.seq.0.into());
    let at = rows.whole(|r| r.at.0);
    rows.relative(&at, |r| r.command.server_time.0);
    rows.whole(|r| r.command.lerp_msec.into());
    rows.whole(|r| r.command.input.msec.into());
    rows.float(|r| r.command.input.viewangles.x);
    rows.float(|r| r.command.input.viewangles.y);
    rows.float(|r| r.command.input.viewangles.z);
    rows.float(|r| r.command.input.forwardmove);
    rows.float(|r| r.command.input.sidemove);
    rows.float(|r| r.command.input.upmove);
    rows.whole(|r| r.command.input.buttons.into());
    rows.whole(|r| r.command.input.impulse.into());
    rows.whole(|r| r.command.input.extra.into());
    rows.finish()
}

pub(super) fn decode_frames(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let mut columns = Columns::new("frames", table, 3 * size_of::<FrameRecord>(), budget)?;
    let seq: Vec<u32> = columns.narrow("seq")?;
    let at = columns.whole("at_us")?;
    let server_time = columns.relative("server_time_us", &at)?;
    let lerp_msec: Vec<u16> = columns.narrow("lerp_ms")?;
    let msec: Vec<u8> = columns.narrow("msec")?;
    let angles = [columns.float("pitch")?, columns.float("yaw")?, columns.float("roll")?];
    let moves = [columns.float("forwardmove")?, columns.float("sidemove")?, columns.float("upmove")?];
    let buttons: Vec<u16> = columns.narrow("buttons")?;
    let impulse: Vec<u8> = columns.narrow("impulse")?;
    let extra: Vec<u32> = columns.narrow("extra")?;
    let frames = (0..columns.rows).map(|row| FrameRecord {
        at: Micros(at[row]),
        command: Usercmd {
            seq: CommandSeq(seq[row]),
            lerp_msec: lerp_msec[row],
            server_time: Micros(server_time[row]),
            input: Input {
                msec: msec[row],
                viewangles: Vec3::new(angles[0][row], angles[1][row], angles[2][row]),
                forwardmove: moves[0][row],
                sidemove: moves[1][row],
                upmove: moves[2][row],
                buttons: buttons[row],
                impulse: impulse[row],
                extra: extra[row],
            },
        },
    });
    columns.deal(frames, chunk, |player| &mut player.frames)
}

pub(super) fn encode_sent(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let mut rows = rows_of(stretch, |player| player.sent);
    rows.whole(|r| r.number.into());
    rows.whole(|r| r.newest.0.into());
    let mut made_at = Vec::new();
    for (id, sent) in rows.parts() {
        let frames = stretch.players[*id as usize].frames;
        let mut made = LookUp::new(frames.iter().map(|f| (f.command.seq.0, f.at.0)));
        made_at.extend(sent.iter().map(|r| made.next(r.newest.0)));
    }
    rows.relative(&made_at, |r| r.at.0);
    rows.whole(|r| r.count.into());
    rows.whole(|r| r.ack.0.into());
    rows.whole(|r| r.bytes.into());
    rows.finish()
}

pub(super) fn decode_sent(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let mut columns = Columns::new("sent", table, 3 * size_of::<PacketRecord>(), budget)?;
    let number: Vec<u32> = columns.narrow("number")?;
    let newest: Vec<u32> = columns.narrow("newest")?;
    let frames = |p: &PlayerRecords| LookUp::new(p.frames.iter().map(|f| (f.command.seq.0, f.at.0)));
    let at = columns.relative("at_us", &references(&columns, chunk, &newest, frames))?;
    let count: Vec<u8> = columns.narrow("count")?;
    let ack: Vec<u32> = columns.narrow("ack")?;
    let bytes: Vec<u16> = columns.narrow("bytes")?;
    let sent = (0..columns.rows).map(|row| PacketRecord {
        number: number[row],
        at: Micros(at[row]),
        newest: CommandSeq(newest[row]),
        count: count[row],
        ack: SnapshotSeq(ack[row]),
        bytes: bytes[row],
    });
    columns.deal(sent, chunk, |player| &mut player.sent)
}

pub(super) fn encode_reached(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let left = |p: &PlayerStretch<'_>| LookUp::new(p.sent.iter().map(|s| (s.number, s.at.0)));
    encode_arrivals(stretch, rows_of(stretch, |player| player.reached), left)
}

pub(super) fn encode_received(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let left = |p: &PlayerStretch<'_>| LookUp::new(p.snapshots.iter().map(|s| (s.seq.0, s.at.0)));
    encode_arrivals(stretch, rows_of(stretch, |player| player.received), left)
}

fn encode_arrivals(
    stretch: &Stretch<'_>,
    mut rows: Rows<'_, ArrivalRecord>,
    left: impl Fn(&PlayerStretch<'_>) -> LookUp,
) -> Option<Table<ByteBuf>> {
    rows.whole(|r| r.number.into());
    let mut left_at = Vec::new();
    for (id, arrivals) in rows.parts() {
        let mut left = left(&stretch.players[*id as usize]);
        left_at.extend(arrivals.iter().map(|r| left.next(r.number)));
    }
    rows.relative(&left_at, |r| r.at.0);
    rows.finish()
}

pub(super) fn decode_reached(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let left = |p: &PlayerRecords| LookUp::new(p.sent.iter().map(|s| (s.number, s.at.0)));
    decode_arrivals("reached", table, chunk, budget, left, |player| &mut player.reached)
}

pub(super) fn decode_received(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let left = |p: &PlayerRecords| LookUp::new(p.snapshots.iter().map(|s| (s.seq.0, s.at.0)));
    decode_arrivals("received", table, chunk, budget, left, |player| &mut player.received)
}

fn decode_arrivals(
    name: &'static str,
    table: &Table<&Bytes>,
    chunk: &mut Chunk,
    budget: &mut Budget,
    left: impl Fn(&PlayerRecords) -> LookUp,
    of: impl Fn(&mut PlayerRecords) -> &mut Vec<ArrivalRecord>,
) -> Result<(), String> {
    let mut columns = Columns::new(name, table, 4 * size_of::<ArrivalRecord>(), budget)?;
    let number: Vec<u32> = columns.narrow("number")?;
    let at = columns.relative("at_us", &references(&columns, chunk, &number, left))?;
    let arrivals = number.into_iter().zip(at).map(|(number, at)| ArrivalRecord { number, at: Micros(at) });
    columns.deal(arrivals, chunk, of)
}

/// For each row, when the thing that it names happened.
fn references(
    columns: &Columns<'_>,
    chunk: &Chunk,
    keys: &[u32],
    look_up: impl Fn(&PlayerRecords) -> LookUp,
) -> Vec<i64> {
    let mut keys = keys.iter();
    let mut found = Vec::with_capacity(columns.rows);
    for (&id, &rows) in columns.ids.iter().zip(&columns.series) {
        // A player that there is not is refused when the rows are dealt.
        let mut times = chunk.players.get(id as usize).map_or_else(|| LookUp::new(std::iter::empty()), &look_up);
        found.extend(keys.by_ref().take(rows).map(|&key| times.next(key)));
    }
    found
}

pub(super) fn encode_executed(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let mut rows = rows_of(stretch, |player| player.executed);
    rows.whole(|r| r.command.0.into());
    rows.whole(|r| r.tick.0.into());
    rows.whole(|r| r.how as i64);
    rows.finish()
}

pub(super) fn decode_executed(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let mut columns = Columns::new("executed", table, 4 * size_of::<ExecutionRecord>(), budget)?;
    let command: Vec<u32> = columns.narrow("command")?;
    let tick: Vec<u32> = columns.narrow("tick")?;
    let codes: Vec<u8> = columns.narrow("how")?;
    let how = codes.into_iter().map(|code| {
        Execution::from_code(code).ok_or_else(|| format!("table executed, column how: {code} is not among the codes"))
    });
    let how: Vec<Execution> = how.collect::<Result<_, _>>()?;
    let executed = (0..columns.rows).map(|row| ExecutionRecord {
        command: CommandSeq(command[row]),
        tick: Tick(tick[row]),
        how: how[row],
    });
    columns.deal(executed, chunk, |player| &mut player.executed)
}
