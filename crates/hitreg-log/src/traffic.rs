//! Lists the packets between the server and its clients, from a log or a trace.

mod snapshot_gaps;

use std::collections::VecDeque;

use crate::record::{ArrivalRecord, GapRecord, Origin, PlayerRecords, Session, SessionHeader, SessionStretch};
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::schema::{packets, snapshots};
use crate::trace::{Column, ColumnData, Table, Trace, TraceSource, each_part, select_rows};
use crate::units::{Micros, PlayerId};
use snapshot_gaps::SnapshotGaps;

/// One packet in either direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Number of the client's player.
    pub player: u32,
    /// Whether it went to the server.
    pub is_up: bool,
    /// Send time, in µs.
    pub sent_us: i64,
    /// Transit time of the first arrival, in µs; `None` for a packet that is missing ([`SnapshotNumbers::missing`]).
    pub took_us: Option<i64>,
    /// Size in bytes, if known.
    pub bytes: Option<u32>,
    /// Number of updates that the rate limit held back before it.
    pub choked: u32,
}

/// Returns the packets of a log, by player and direction, in the order of their numbers. It omits packets after the
/// last known arrival, because they may have been in transit at the end. It also omits a direction without arrivals.
///
/// Packets whose records lie in a gap are neither sent nor lost. This includes packets in flight when the gap began.
///
/// A receiver's recording holds only the snapshots that arrived. Its lost snapshots are the gaps between their numbers,
/// without the updates that the server held back and numbered too.
pub fn of_session(session: &Session) -> Vec<Packet> {
    of_records(&session.players, &session.gaps, SnapshotNumbers::of(&session.header))
}

fn of_records(players: &[PlayerRecords], gaps: &[GapRecord], numbers: SnapshotNumbers) -> Vec<Packet> {
    let (mut reader, mut all) = (PacketReader::of_players(players.len(), numbers), Vec::new());
    reader.add_records(players, gaps, &mut |packet| all.push(packet));
    reader.end(&mut |packet| all.push(packet));
    all.sort_by_key(|packet| (packet.player, !packet.is_up));
    all
}

/// What the numbers of a log's snapshots say about missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotNumbers {
    /// The log has all snapshots that the server sent.
    Sent,
    /// The log has only the snapshots that its recorder received. The server also numbers those that it holds back.
    Received,
    /// As `Received`, and a snapshot has the number of the client packet that it answers. A missing number is a client
    /// packet without a reply: lost in either direction, or answered together with the next one.
    Replies,
}

impl SnapshotNumbers {
    /// Returns the numbers of a log's snapshots.
    pub fn of(header: &SessionHeader) -> SnapshotNumbers {
        match &header.origin {
            Origin::Imported { format } if format == "qwd" => SnapshotNumbers::Replies,
            Origin::Imported { .. } => SnapshotNumbers::Received,
            Origin::Synthetic | Origin::Live => SnapshotNumbers::Sent,
        }
    }

    /// The word for a missing snapshot.
    pub fn missing(self) -> &'static str {
        match self {
            SnapshotNumbers::Sent | SnapshotNumbers::Received => "lost",
            SnapshotNumbers::Replies => "no reply",
        }
    }
}

/// Number, send time in µs, bytes, and the number of updates held back before it.
type SentRow = (u32, i64, u16, u8);

/// Turns the records of a log into packets while the log is read. The packets of each player and direction are in the
/// order of their numbers.
#[derive(Debug)]
pub struct PacketReader {
    numbers: SnapshotNumbers,
    /// Of each player: to the server, and from it.
    players: Vec<[WaitingPackets; 2]>,
    now_us: i64,
}

/// A packet that did not arrive for so long is lost, whether or not the session goes on.
const LOST_AFTER_US: i64 = 60_000_000;
/// The most arrivals of a direction that are kept for packets that were sent already.
const MOST_ARRIVALS: usize = 1 << 12;

/// At most this many packets that were sent later arrive in another order.
const MOST_REORDERED: usize = 256;

/// The packets of one direction whose arrival is not known yet.
#[derive(Debug, Default)]
struct WaitingPackets {
    missing: SnapshotGaps,
    /// The ends of the gaps in the records, in µs.
    gap_ends: SortedSet<i64>,
    /// In ascending order of the numbers.
    sent: VecDeque<SentRow>,
    /// The first arrival of each number.
    arrived: SortedMap<u32, i64>,
    newest: Option<u32>,
}

impl PacketReader {
    /// A reader before the first records of a log.
    pub fn new(header: &SessionHeader) -> PacketReader {
        PacketReader::of_players(header.players.len(), SnapshotNumbers::of(header))
    }

    fn of_players(players: usize, numbers: SnapshotNumbers) -> PacketReader {
        let players = std::iter::repeat_with(Default::default).take(players).collect();
        PacketReader { numbers, players, now_us: i64::MIN }
    }

    /// Adds the records of the next stretch of the log, and passes on the packets whose arrival or loss is known.
    pub fn add(&mut self, stretch: &SessionStretch, to: &mut dyn FnMut(Packet)) {
        self.add_records(&stretch.players, &stretch.gaps, to);
    }

    fn add_records(&mut self, players: &[PlayerRecords], gaps: &[GapRecord], to: &mut dyn FnMut(Packet)) {
        for (player, records) in (0..).zip(players) {
            let Some([up, down]) = self.players.get_mut(player as usize) else { continue };
            for gap in gaps.iter().filter(|gap| gap.concerns(PlayerId(player as u16))) {
                up.gap_ends.insert(gap.to.0);
                down.gap_ends.insert(gap.to.0);
            }
            for packet in &records.sent {
                put(&mut up.sent, (packet.number, packet.at.0, packet.bytes, 0));
            }
            for sent in &records.snapshots {
                let row = (sent.seq.0, sent.at.0, sent.bytes, sent.choked);
                let WaitingPackets { missing, sent, .. } = down;
                match self.numbers {
                    SnapshotNumbers::Sent => put(sent, row),
                    SnapshotNumbers::Received | SnapshotNumbers::Replies => missing.add(row, sent),
                }
            }
            records.reached.iter().for_each(|arrival| up.arrive(arrival));
            records.received.iter().for_each(|arrival| down.arrive(arrival));
            for of in [&up.sent, &down.sent] {
                self.now_us = of.back().map_or(self.now_us, |(_, at, ..)| self.now_us.max(*at));
            }
            up.settle(self.now_us, &mut |row, took| to(packet((player, true), row, took)));
            down.settle(self.now_us, &mut |row, took| to(packet((player, false), row, took)));
        }
    }

    /// Returns whether the arrival or loss of a packet with such a send time is not known yet. After a minute, it never
    /// will be.
    pub fn is_waiting_for(&self, is_wanted: &dyn Fn(Micros) -> bool) -> bool {
        let waiting = self.players.iter().flatten().flat_map(|direction| &direction.sent);
        waiting.map(|(_, sent_us, ..)| Micros(*sent_us)).any(is_wanted)
    }

    /// Passes on the remaining packets, after the last records.
    pub fn end(self, to: &mut dyn FnMut(Packet)) {
        for (player, of_player) in (0..).zip(self.players) {
            for (mut waiting, is_up) in of_player.into_iter().zip([true, false]) {
                waiting.settle(i64::MAX, &mut |row, took| to(packet((player, is_up), row, took)));
            }
        }
    }
}

impl WaitingPackets {
    fn arrive(&mut self, arrival: &ArrivalRecord) {
        let first = self.arrived.entry(arrival.number).or_insert(arrival.at.0);
        *first = (*first).min(arrival.at.0);
        self.newest = self.newest.max(Some(arrival.number));
    }

    /// Whether a packet without an arrival may have arrived in the next gap, because no later packet arrived before the
    /// gap's end.
    fn is_in_gap(&self, number: u32, sent_us: i64) -> bool {
        let end = self.gap_ends.range(sent_us.saturating_add(1)..).next();
        end.is_some_and(|end| self.arrived.range(number..).take(MOST_REORDERED).all(|(_, at)| at >= end))
    }

    /// Passes on the packets whose fate is known at a time, with their time of transit.
    fn settle(&mut self, now_us: i64, to: &mut dyn FnMut(SentRow, Option<i64>)) {
        while let Some(&(number, sent_us, bytes, choked)) = self.sent.front() {
            let arrived = self.arrived.get(&number);
            let is_given_up = now_us.saturating_sub(sent_us) > LOST_AFTER_US;
            if arrived.is_none() && !is_given_up {
                break;
            }
            // Without a later arrival, the packet may have been in transit at the end, or arrivals were not recorded.
            let is_settled = self.newest.is_some_and(|newest| number <= newest);
            if is_settled && (arrived.is_some() || !self.is_in_gap(number, sent_us)) {
                to((number, sent_us, bytes, choked), arrived.map(|at| at.saturating_sub(sent_us)));
            }
            self.sent.pop_front();
        }
        if self.arrived.len() > MOST_ARRIVALS
            && let Some((first, ..)) = self.sent.front()
        {
            while self.arrived.first_key_value().is_some_and(|(number, _)| number < first) {
                self.arrived.pop_first();
            }
        }
    }
}

/// Adds a packet in the order of numbers.
fn put(sent: &mut VecDeque<SentRow>, row: SentRow) {
    let place = match sent.back() {
        Some(last) if last.0 > row.0 => sent.partition_point(|before| before.0 <= row.0),
        _ => sent.len(),
    };
    sent.insert(place, row);
}

fn packet((player, is_up): (u32, bool), (_, sent_us, bytes, choked): SentRow, took_us: Option<i64>) -> Packet {
    Packet { player, is_up, sent_us, took_us, bytes: Some(bytes.into()), choked: choked.into() }
}

/// Returns the packets of a trace, with the same omissions.
pub fn of_trace(trace: &Trace) -> Vec<Packet> {
    let (up, down) = (packets::Columns::of(trace), snapshots::Columns::of(trace));
    let cell = |cells: &[u32], row: usize| cells.get(row).copied();
    let packet = |is_up: bool, row: usize| {
        let (player, at_us, took_ms, bytes, choked) = match is_up {
            true => (up.player, up.at_us, up.took_ms, up.bytes, &[][..]),
            false => (down.player, down.at_us, down.took_ms, down.bytes, down.choked),
        };
        let took_us = took_ms.get(row).filter(|ms| ms.is_finite()).map(|ms| (ms * 1e3) as i64);
        let (player, choked) = (cell(player, row).unwrap_or_default(), cell(choked, row).unwrap_or_default());
        Packet { player, is_up, sent_us: at_us[row], took_us, bytes: cell(bytes, row), choked }
    };
    let all_up = (0..up.rows.min(up.at_us.len())).map(|row| packet(true, row));
    let all_down = (0..down.rows.min(down.at_us.len())).map(|row| packet(false, row));
    let mut all: Vec<Packet> = all_up.chain(all_down).collect();
    all.sort_by_key(|packet| (packet.player, !packet.is_up, packet.sent_us));
    let mut last_arrived = SortedMap::new();
    for packet in all.iter().filter(|packet| packet.took_us.is_some()) {
        last_arrived.insert((packet.player, packet.is_up), packet.sent_us);
    }
    all.retain(|packet| last_arrived.get(&(packet.player, packet.is_up)).is_some_and(|last| packet.sent_us <= *last));
    all
}

/// Name of the table in which [`packet_table`] stores packets, next to the tables of a replay.
const PACKETS: &str = "traffic.packets";

/// Returns packets of a log as a table that [`of_packet_table`] reads from a trace.
pub fn packet_table(packets: &[Packet]) -> Table {
    let number = |name: &str, value: &dyn Fn(&Packet) -> u32| {
        Column::new(name, ColumnData::U32(packets.iter().map(value).collect()))
    };
    let time = |name: &str, value: &dyn Fn(&Packet) -> i64| {
        Column::new(name, ColumnData::I64(packets.iter().map(value).collect()))
    };
    let columns = vec![
        number("player", &|packet| packet.player),
        number("is_up", &|packet| packet.is_up.into()),
        time("sent_us", &|packet| packet.sent_us),
        number("has_arrived", &|packet| packet.took_us.is_some().into()),
        time("took_us", &|packet| packet.took_us.unwrap_or_default()),
        number("bytes", &|packet| packet.bytes.unwrap_or_default()),
        number("choked", &|packet| packet.choked),
    ];
    Table::new(PACKETS, columns)
}

/// Returns the log's packets from the table that [`packet_table`] stored in a trace, in the order of [`of_session`]. A read
/// error takes the place of packets.
///
/// # Errors
/// When the players' numbers cannot be read.
pub fn of_packet_table(trace: &dyn TraceSource) -> Result<impl Iterator<Item = Result<Packet, String>>, String> {
    by_player(trace, &[PACKETS], |tables| {
        let mut all: Vec<Packet> = tables.iter().flat_map(of_rows).collect();
        all.sort_by_key(|packet| !packet.is_up);
        all
    })
}

fn of_rows(table: &Table) -> Vec<Packet> {
    let columns = ["player", "is_up", "has_arrived", "bytes", "choked"];
    let [players, up, arrived, bytes, choked] = columns.map(|name| table.u32s(name));
    let [sent_us, took_us] = ["sent_us", "took_us"].map(|name| table.i64s(name));
    let packet = |row: usize| Packet {
        player: players[row],
        is_up: up[row] == 1,
        sent_us: sent_us[row],
        took_us: (arrived[row] == 1).then(|| took_us[row]),
        bytes: Some(bytes[row]),
        choked: choked[row],
    };
    (0..table.rows()).map(packet).collect()
}

/// Returns the packets of a trace, as [`of_trace`] does.
///
/// # Errors
/// When the players' numbers cannot be read.
pub fn of_source(trace: &dyn TraceSource) -> Result<impl Iterator<Item = Result<Packet, String>>, String> {
    let of_tables = |tables| of_trace(&Trace { tables, ..Trace::default() });
    by_player(trace, &[packets::NAME, snapshots::NAME], of_tables)
}

/// Processes tables player by player. It reads several players per pass, as many as memory allows.
fn by_player<'s>(
    trace: &'s dyn TraceSource,
    tables: &'static [&'static str],
    packets: impl Fn(Vec<Table>) -> Vec<Packet> + 's,
) -> Result<impl Iterator<Item = Result<Packet, String>> + 's, String> {
    let mut players = SortedSet::new();
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
        let of_group = |rows: &Table| rows_of_players(rows, &group);
        let read = tables.iter().map(|table| select_rows(trace, table, (&[], None), &of_group));
        let of_player = |tables: &[Table], player: u32| {
            packets(tables.iter().map(|rows| rows_of_players(rows, &[player])).collect())
        };
        match read.collect::<Result<Vec<Table>, String>>() {
            Ok(tables) => group.iter().flat_map(|player| of_player(&tables, *player)).map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    }))
}

fn rows_of_players(rows: &Table, players: &[u32]) -> Table {
    rows.select_where(rows.u32s("player").iter(), |player| players.contains(player))
}

#[cfg(test)]
mod tests;
