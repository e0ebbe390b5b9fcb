//! Lists the packets between the server and its clients, from a log or a trace.

use std::collections::BTreeSet;

use crate::record::{
    ArrivalRecord, ArrivalTable, Origin, PacketRecord, PlayerRecords, Session, SessionHeader, SessionStretch,
    SnapshotRecord,
};
use crate::trace::schema::{packets, snapshots};
use crate::trace::{Column, ColumnData, Table, Trace, TraceSource, each_part, select_rows};
use crate::units::{Micros, SnapshotSeq};

/// One packet in either direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Number of the client's player.
    pub player: u32,
    /// Whether it went to the server.
    pub is_up: bool,
    /// Send time, in µs.
    pub sent_us: i64,
    /// Transit time of the first arrival, in µs; `None` for a lost packet.
    pub took_us: Option<i64>,
    /// Size in bytes, if known.
    pub bytes: Option<u32>,
    /// Number of updates that the rate limit held back before it.
    pub choked: u32,
}

/// Returns the packets of a log, by player and direction, in the order of their numbers. It omits packets after the
/// last known arrival, because they may have been in transit at the end. It also omits a direction without arrivals.
///
/// A receiver's recording holds only the snapshots that arrived. Its lost snapshots are the gaps between their numbers,
/// without the updates that the server held back and numbered too.
pub fn of_session(session: &Session) -> Vec<Packet> {
    let mut all = Vec::new();
    for (player, records) in (0..).zip(&session.players) {
        of_player(&mut all, player, records, is_received(&session.header));
    }
    all
}

/// Returns whether a log's snapshots are only those that its recorder received.
pub fn is_received(header: &SessionHeader) -> bool {
    matches!(header.origin, Origin::Imported { .. })
}

/// Number, send time in µs, bytes, and the number of updates held back before it.
type SentRow = (u32, i64, u16, u8);

fn of_player(all: &mut Vec<Packet>, player: u32, records: &PlayerRecords, is_received: bool) {
    let up = records.sent.iter().map(|sent| (sent.number, sent.at.0, sent.bytes, 0));
    add(all, (player, true), up, &records.reached);
    let down = records.snapshots.iter().map(|sent| (sent.seq.0, sent.at.0, sent.bytes, sent.choked));
    match is_received {
        true => add(all, (player, false), with_lost(down).into_iter(), &records.received),
        false => add(all, (player, false), down, &records.received),
    }
}

/// Adds the lost snapshots to received ones: as many as each gap has numbers beyond the updates that were held back.
/// Their send times are spread over the gap.
fn with_lost(received: impl Iterator<Item = SentRow>) -> Vec<SentRow> {
    let (mut all, mut held_back): (Vec<SentRow>, u64) = (Vec::new(), 0);
    // A crafted file may claim any gap.
    let mut most = MOST_LOST_BESIDE;
    for row @ (number, sent_us, _, choked) in received {
        most = most.saturating_add(1);
        held_back += u64::from(choked);
        if let Some(&(before, before_us, ..)) = all.last() {
            let missing = u64::from(number.saturating_sub(before).saturating_sub(1));
            let lost = missing.saturating_sub(held_back);
            held_back -= missing - lost;
            let lost = u32::try_from(lost).unwrap_or(u32::MAX).min(most);
            most -= lost;
            for n in 1..=lost {
                let share = i64::from(n) * sent_us.saturating_sub(before_us) / i64::from(lost + 1);
                all.push((before + n, before_us.saturating_add(share), 0, 0));
            }
        }
        all.push(row);
    }
    all
}

/// The limit on a player's lost snapshots beyond the number of received ones.
const MOST_LOST_BESIDE: u32 = 1 << 12;

fn add(
    all: &mut Vec<Packet>,
    (player, is_up): (u32, bool),
    sent: impl Iterator<Item = SentRow>,
    arrivals: &[ArrivalRecord],
) {
    let fates = ArrivalTable::new(arrivals);
    let newest = arrivals.iter().map(|arrival| arrival.number).max();
    all.extend(sent.filter(|(number, ..)| newest.is_some_and(|newest| *number <= newest)).map(
        |(number, sent_us, bytes, choked)| Packet {
            player,
            is_up,
            sent_us,
            took_us: fates.of(number).next().map(|at| at.0.saturating_sub(sent_us)),
            bytes: Some(bytes.into()),
            choked: choked.into(),
        },
    ));
}

/// Returns the packets of a trace, with the same omissions.
pub fn of_trace(trace: &Trace) -> Vec<Packet> {
    let (up, down) = (packets::Columns::of(trace), snapshots::Columns::of(trace));
    let took = |took: &[f32], row: usize| took.get(row).filter(|ms| ms.is_finite()).map(|ms| (ms * 1e3) as i64);
    let mut all = Vec::new();
    for row in 0..up.rows.min(up.at_us.len()) {
        all.push(Packet {
            player: up.player.get(row).copied().unwrap_or_default(),
            is_up: true,
            sent_us: up.at_us[row],
            took_us: took(up.took_ms, row),
            bytes: up.bytes.get(row).copied(),
            choked: 0,
        });
    }
    for row in 0..down.rows.min(down.at_us.len()) {
        all.push(Packet {
            player: down.player.get(row).copied().unwrap_or_default(),
            is_up: false,
            sent_us: down.at_us[row],
            took_us: took(down.took_ms, row),
            bytes: down.bytes.get(row).copied(),
            choked: down.choked.get(row).copied().unwrap_or_default(),
        });
    }
    all.sort_by_key(|packet| (packet.player, !packet.is_up, packet.sent_us));
    let mut last_arrived = std::collections::BTreeMap::new();
    for packet in all.iter().filter(|packet| packet.took_us.is_some()) {
        last_arrived.insert((packet.player, packet.is_up), packet.sent_us);
    }
    all.retain(|packet| last_arrived.get(&(packet.player, packet.is_up)).is_some_and(|last| packet.sent_us <= *last));
    all
}

/// Names of the tables in which [`packet_tables`] stores sent packets and arrivals, next to the tables of a replay.
const SENT: &str = "traffic.sent";
const ARRIVED: &str = "traffic.arrived";

/// Returns the packets and arrivals of a stretch of a log as tables that [`of_packet_tables`] reads from a trace.
pub fn packet_tables(stretch: &SessionStretch) -> [Table; 2] {
    let (mut sent, mut arrived): ([Vec<u32>; 5], [Vec<u32>; 3]) = Default::default();
    let mut times: [Vec<i64>; 2] = Default::default();
    for (player, records) in (0u32..).zip(&stretch.players) {
        let mut left = |down: u32, number: u32, at: Micros, bytes: u16, choked: u8| {
            let row = [player, down, number, bytes.into(), choked.into()];
            sent.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
            times[0].push(at.0);
        };
        records.sent.iter().for_each(|packet| left(0, packet.number, packet.at, packet.bytes, 0));
        records.snapshots.iter().for_each(|snapshot| {
            left(1, snapshot.seq.0, snapshot.at, snapshot.bytes, snapshot.choked);
        });
        let mut came = |down: u32, arrival: &ArrivalRecord| {
            arrived.iter_mut().zip([player, down, arrival.number]).for_each(|(column, cell)| column.push(cell));
            times[1].push(arrival.at.0);
        };
        records.reached.iter().for_each(|arrival| came(0, arrival));
        records.received.iter().for_each(|arrival| came(1, arrival));
    }
    let [sent_us, arrived_us] = times;
    let table = |name: &str, names: &[&str], columns: Vec<Vec<u32>>, times| {
        let numbers = names.iter().zip(columns).map(|(name, cells)| Column::new(*name, ColumnData::U32(cells)));
        let all = numbers.chain([Column::new("at_us", ColumnData::I64(times))]);
        Table::new(name, all.collect())
    };
    [
        table(SENT, &["player", "down", "number", "bytes", "choked"], sent.into(), sent_us),
        table(ARRIVED, &["player", "down", "number"], arrived.into(), arrived_us),
    ]
}

/// Returns the log's packets from the tables that [`packet_tables`] stored in a trace, as [`of_session`] does; `is_received` is
/// what [`is_received()`] says of the log. A read error takes the place of packets.
///
/// # Errors
/// When the players' numbers cannot be read.
pub fn of_packet_tables(
    trace: &dyn TraceSource,
    is_received: bool,
) -> Result<impl Iterator<Item = Result<Packet, String>>, String> {
    by_player(trace, [SENT, ARRIVED], move |player, [sent, arrived]| of_rows(player, &sent, &arrived, is_received))
}

/// Returns the packets of a trace, as [`of_trace`] does.
///
/// # Errors
/// When the players' numbers cannot be read.
pub fn of_source(trace: &dyn TraceSource) -> Result<impl Iterator<Item = Result<Packet, String>>, String> {
    let of_tables = |_, tables: [Table; 2]| of_trace(&Trace { tables: tables.into(), ..Trace::default() });
    by_player(trace, [packets::NAME, snapshots::NAME], of_tables)
}

/// Processes two tables player by player. It reads several players per pass, as many as memory allows.
fn by_player<'s>(
    trace: &'s dyn TraceSource,
    tables: [&'static str; 2],
    packets: impl Fn(u32, [Table; 2]) -> Vec<Packet> + 's,
) -> Result<impl Iterator<Item = Result<Packet, String>> + 's, String> {
    let mut players = BTreeSet::new();
    for table in tables {
        each_part(trace, table, (&["player"], None), &mut |rows| {
            players.extend(rows.u32s("player"));
            Ok(())
        })?;
    }
    const ROWS_AT_ONCE: u64 = 1 << 20;
    let rows: u64 =
        trace.tables().iter().filter(|(table, _)| tables.contains(&&*table.name)).map(|(_, rows)| rows).sum();
    // Each pass reads the whole file, so a pass covers as many players as possible.
    let at_once = usize::try_from(ROWS_AT_ONCE * players.len() as u64 / rows.max(1)).unwrap_or(usize::MAX).max(1);
    let players: Vec<u32> = players.into_iter().collect();
    let groups: Vec<Vec<u32>> = players.chunks(at_once).map(<[u32]>::to_vec).collect();
    Ok(groups.into_iter().flat_map(move |group| {
        let of_group = |rows: &Table| rows_of(rows, &group);
        let (all, failed) = match tables.map(|table| select_rows(trace, table, (&[], None), &of_group)) {
            [Ok(one), Ok(other)] => {
                let of =
                    |player: &u32| packets(*player, [&one, &other].map(|rows| rows.select(&rows_of(rows, &[*player]))));
                (group.iter().flat_map(of).collect(), None)
            }
            [one, other] => (Vec::new(), one.err().or(other.err())),
        };
        all.into_iter().map(Ok).chain(failed.map(Err))
    }))
}

fn rows_of(rows: &Table, players: &[u32]) -> Vec<u32> {
    (0..).zip(rows.u32s("player")).filter(|(_, player)| players.contains(player)).map(|(row, _)| row).collect()
}

fn of_rows(player: u32, sent: &Table, arrived: &Table, is_received: bool) -> Vec<Packet> {
    let mut records = PlayerRecords::default();
    let cells = |table: &Table, row: usize| {
        let number = |name: &str| table.u32s(name).get(row).copied().unwrap_or_default();
        (number("down") > 0, number("number"), Micros(table.i64s("at_us").get(row).copied().unwrap_or_default()))
    };
    for row in 0..sent.rows() {
        let (is_down, number, at) = cells(sent, row);
        let bytes = sent.u32s("bytes").get(row).map_or(0, |bytes| *bytes as u16);
        let choked = sent.u32s("choked").get(row).map_or(0, |choked| *choked as u8);
        match is_down {
            true => records.snapshots.push(SnapshotRecord {
                seq: SnapshotSeq(number),
                at,
                bytes,
                choked,
                ..Default::default()
            }),
            false => records.sent.push(PacketRecord { number, at, bytes, ..Default::default() }),
        }
    }
    for row in 0..arrived.rows() {
        let (is_down, number, at) = cells(arrived, row);
        let to = if is_down { &mut records.received } else { &mut records.reached };
        to.push(ArrivalRecord { number, at });
    }
    let mut all = Vec::new();
    of_player(&mut all, player, &records, is_received);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::schema::packets::{Row, Writer};

    #[test]
    fn gaps_in_a_receivers_recording_are_lost_snapshots() {
        let received =
            [(10, 1_000, 50, 3), (11, 2_000, 50, 0), (14, 8_000, 50, 0), (18, 9_000, 50, 2), (19, 9_500, 50, 0)];
        let all = with_lost(received.into_iter());
        let lost: Vec<_> = all.iter().filter(|(_, _, bytes, _)| *bytes == 0).map(|row| (row.0, row.1)).collect();
        // The first row's three were held back before the recording began, and cover the first gap's two and one more.
        assert_eq!(lost, []);
        let lost: Vec<_> = with_lost(received[1..].iter().copied())
            .iter()
            .filter(|row| row.2 == 0)
            .map(|row| (row.0, row.1))
            .collect();
        assert_eq!(lost, [(12, 4_000), (13, 6_000), (15, 8_500)]);
    }

    #[test]
    fn packets_in_flight_at_the_end_are_not_lost() {
        let mut writer = Writer::default();
        for (packet, took_ms) in [(1, 20.0), (2, f32::NAN), (3, 21.5), (4, f32::NAN)] {
            let at_us = i64::from(packet) * 1_000;
            let arrived = u32::from(!f32::is_nan(took_ms));
            writer.push(Row {
                player: 7,
                packet,
                at_us,
                arrived,
                took_ms,
                newest: packet,
                usercmds: 1,
                ack: 0,
                bytes: None,
            });
        }
        let found = of_trace(&Trace { tables: vec![writer.finish(Vec::new())], ..Trace::default() });
        let took: Vec<_> = found.iter().map(|packet| packet.took_us).collect();
        assert_eq!(took, [Some(20_000), None, Some(21_500)]);
        assert!(found.iter().all(|packet| packet.player == 7 && packet.is_up && packet.bytes.is_none()));
    }
}
