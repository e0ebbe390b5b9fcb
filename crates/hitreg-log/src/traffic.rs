//! Lists the packets between the server and its clients, from a log or a trace.

use std::collections::VecDeque;

use crate::record::{GapRecord, Origin, Outline, Session, SessionHeader};
use crate::sorted::{SortedMap, SortedSet};
use crate::trace::schema::{packets, snapshots};
use crate::trace::{Column, ColumnData, Table, Trace, TraceReadError, TraceSource, each_part, select_rows};
use crate::units::{Micros, PlayerId};

/// One packet in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Packet {
    /// Number of the client's player.
    pub player: u32,
    /// Whether it went to the server.
    pub is_up: bool,
    /// Send time, in µs.
    pub sent_us: i64,
    /// Transit time of the first arrival, in µs; `None` if it did not arrive, or if its arrival is not known.
    pub took_us: Option<i64>,
    /// Whether it is missing ([`SnapshotNumbers::missing`]): it did not arrive, although a later packet did. Other packets
    /// without an arrival may have been in transit at the end, or the log has no arrivals.
    pub is_missing: bool,
    /// Whether the record of its arrival may be missing in a gap. Such a packet counts as neither sent nor lost.
    pub is_in_gap: bool,
    /// Size in bytes, if known.
    pub bytes: Option<u32>,
    /// Number of updates that the rate limit held back before it.
    pub choked: u32,
}

/// Returns the packets of a log, by player and direction, in the order of their numbers.
///
/// A missing number is a packet that did not arrive: a receiver's recording holds only the snapshots that arrived. Updates
/// that the server held back and numbered too do not count, and neither do numbers whose records may be missing in a gap.
pub fn of_session(session: &Session) -> Vec<Packet> {
    let (mut reader, mut all) = (PacketReader::new(&session.header), Vec::new());
    reader.add(session, &mut |packet| all.push(packet));
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

/// A packet that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct SentRow {
    number: u32,
    sent_us: i64,
    bytes: u16,
    /// Number of updates held back before it.
    choked: u8,
    /// Only for a missing number: the send times of the packets before and after, in µs.
    between_us: Option<(i64, i64)>,
}

/// Turns the records of a log into packets while the log is read. The packets of each player and direction are in the
/// order of their numbers.
#[derive(Debug)]
pub struct PacketReader {
    /// Of each player: to the server, and from it.
    players: Vec<[WaitingPackets; 2]>,
    now_us: i64,
}

/// A packet that did not arrive for so long is lost, whether or not the session goes on.
const LOST_AFTER_US: i64 = 60_000_000;
/// The most arrivals of a direction that are kept for packets that were sent already.
const ARRIVALS_MAX: usize = 1 << 9;

/// At most this many packets that were sent later arrive in another order.
const REORDERED_PACKETS_MAX: usize = 256;

/// At most this many gaps overlap.
const OVERLAPPING_GAPS_MAX: usize = 8;

/// The packets of one direction whose arrival is not known yet.
#[derive(Debug, Default)]
struct WaitingPackets {
    missing: MissingNumbers,
    /// The gaps in the records: the end of each, and its beginning, in µs.
    gaps: SortedMap<i64, i64>,
    /// In ascending order of the numbers.
    sent: VecDeque<SentRow>,
    /// The first arrival of each number, in ascending order of the numbers.
    arrived: VecDeque<(u32, i64)>,
    newest: Option<u32>,
}

impl PacketReader {
    /// A reader before the first records of a log.
    pub fn new(header: &SessionHeader) -> PacketReader {
        let choked_are_numbered = SnapshotNumbers::of(header) != SnapshotNumbers::Sent;
        let missing = MissingNumbers { choked_are_numbered, ..MissingNumbers::default() };
        let down = || WaitingPackets { missing: missing.clone(), ..WaitingPackets::default() };
        let players = header.players.iter().map(|_| [WaitingPackets::default(), down()]).collect();
        PacketReader { players, now_us: i64::MIN }
    }

    /// Adds the records of the next chunk of the log, and passes on the packets whose arrival or loss is known.
    pub fn add<H>(&mut self, chunk: &Session<H>, to: &mut dyn FnMut(Packet)) {
        for (player, records) in (0..).zip(&chunk.players) {
            let sent = records.sent.iter().map(|packet| (packet.number, packet.at, packet.bytes, 0));
            let snapshots = records.snapshots.iter().map(|sent| (sent.seq.0, sent.at, sent.bytes, sent.choked));
            let arrivals = [&records.reached, &records.received].map(|of| of.iter().map(|of| (of.number, of.at)));
            self.add_player(player, &chunk.gaps, (sent, snapshots), arrivals, to);
        }
    }

    /// Adds the next chunk of the log, and passes on the packets whose arrival or loss is known, without their sizes.
    pub fn add_outline(&mut self, outline: &Outline, to: &mut dyn FnMut(Packet)) {
        for (player, records) in (0..).zip(&outline.players) {
            let sent = records.sent.iter().map(|(number, at)| (*number, *at, 0, 0));
            let snapshots = records.snapshots.iter().zip(&records.choked);
            let snapshots = snapshots.map(|((number, at, _), choked)| (*number, *at, 0, *choked));
            let arrivals = [&records.reached, &records.received].map(|of| of.iter().copied());
            self.add_player(player, &outline.gaps, (sent, snapshots), arrivals, to);
        }
    }

    /// Adds a player's packets: number, send time, bytes, and the number of updates held back before it.
    fn add_player(
        &mut self,
        player: u16,
        gaps: &[GapRecord],
        (sent, snapshots): (impl Iterator<Item = (u32, Micros, u16, u8)>, impl Iterator<Item = (u32, Micros, u16, u8)>),
        [reached, received]: [impl Iterator<Item = (u32, Micros)>; 2],
        to: &mut dyn FnMut(Packet),
    ) {
        let Some([up, down]) = self.players.get_mut(usize::from(player)) else { return };
        for gap in gaps.iter().filter(|gap| gap.concerns(PlayerId(player))) {
            up.add_gap(gap);
            down.add_gap(gap);
        }
        sent.for_each(|packet| up.send(packet));
        snapshots.for_each(|packet| down.send(packet));
        reached.for_each(|arrival| up.arrive(arrival));
        received.for_each(|arrival| down.arrive(arrival));
        for of in [&up.sent, &down.sent] {
            self.now_us = of.back().map_or(self.now_us, |last| self.now_us.max(last.sent_us));
        }
        up.settle((player.into(), true), self.now_us, to);
        down.settle((player.into(), false), self.now_us, to);
    }

    /// Returns whether the arrival or loss of a packet with such a send time is not known yet. After a minute, it never
    /// will be.
    pub fn is_waiting_for(&self, is_wanted: &dyn Fn(Micros) -> bool) -> bool {
        let waiting = self.players.iter().flatten().flat_map(|direction| &direction.sent);
        waiting.map(|sent| Micros(sent.sent_us)).any(is_wanted)
    }

    /// Passes on the remaining packets, after the last records.
    pub fn end(self, to: &mut dyn FnMut(Packet)) {
        for (player, of_player) in (0..).zip(self.players) {
            for (mut waiting, is_up) in of_player.into_iter().zip([true, false]) {
                waiting.settle((player, is_up), i64::MAX, to);
            }
        }
    }
}

impl WaitingPackets {
    fn add_gap(&mut self, gap: &GapRecord) {
        let from = self.gaps.entry(gap.to.0).or_insert(gap.from.0);
        *from = (*from).min(gap.from.0);
    }

    fn send(&mut self, (number, at, bytes, choked): (u32, Micros, u16, u8)) {
        self.missing.add(SentRow { number, sent_us: at.0, bytes, choked, between_us: None }, &mut self.sent);
    }

    fn arrive(&mut self, (number, at): (u32, Micros)) {
        let place = match self.arrived.back() {
            Some((last, _)) if *last >= number => self.place_of_arrival(number),
            _ => self.arrived.len(),
        };
        match self.arrived.get_mut(place).filter(|(known, _)| *known == number) {
            Some((_, first)) => *first = at.0.min(*first),
            None => self.arrived.insert(place, (number, at.0)),
        }
        self.newest = self.newest.max(Some(number));
    }

    /// The place of the first arrival of a number, or of the next number.
    fn place_of_arrival(&self, number: u32) -> usize {
        self.arrived.partition_point(|(before, _)| *before < number)
    }

    /// Whether the records of a packet may be missing in a gap: of a missing number all of them, and else the arrival. A
    /// packet that a later one overtook before the gap is not in it.
    fn is_in_gap(&self, sent: &SentRow) -> bool {
        let after = |at_us: i64| self.gaps.range(at_us.saturating_add(1)..).take(OVERLAPPING_GAPS_MAX);
        let later = || self.arrived.range(self.place_of_arrival(sent.number)..).take(REORDERED_PACKETS_MAX);
        let is_later = |from: &i64| later().all(|(_, at)| at > from);
        match sent.between_us {
            Some((before, next)) => after(before).any(|(_, from)| *from < next),
            // Without any arrival, the log is not the receiver's.
            None => self.newest.is_some() && after(sent.sent_us).any(|(_, from)| is_later(from)),
        }
    }

    /// Passes on the packets whose fate is known at a time.
    fn settle(&mut self, (player, is_up): (u32, bool), now_us: i64, to: &mut dyn FnMut(Packet)) {
        while let Some(sent) = self.sent.front() {
            let arrived = self.arrived.get(self.place_of_arrival(sent.number));
            let arrived = arrived.filter(|(number, _)| *number == sent.number).map(|(_, at)| *at);
            let is_given_up = now_us.saturating_sub(sent.sent_us) > LOST_AFTER_US;
            if arrived.is_none() && !is_given_up {
                break;
            }
            let is_in_gap = arrived.is_none() && self.is_in_gap(sent);
            let is_unknown = sent.between_us.is_some() && (arrived.is_some() || is_in_gap);
            if !is_unknown {
                let took_us = arrived.map(|at| at.saturating_sub(sent.sent_us));
                let is_overtaken = self.newest.is_some_and(|newest| sent.number <= newest);
                to(Packet {
                    player,
                    is_up,
                    sent_us: sent.sent_us,
                    took_us,
                    is_missing: took_us.is_none() && is_overtaken && !is_in_gap,
                    is_in_gap,
                    bytes: known_size(sent.bytes.into()),
                    choked: sent.choked.into(),
                });
            }
            self.sent.pop_front();
        }
        if self.arrived.len() > ARRIVALS_MAX
            && let Some(first) = self.sent.front()
        {
            while self.arrived.pop_front_if(|(number, _)| *number < first.number).is_some() {}
        }
    }
}

/// Adds a packet in the order of numbers.
fn put(sent: &mut VecDeque<SentRow>, row: SentRow) {
    let place = match sent.back() {
        Some(last) if last.number > row.number => sent.partition_point(|before| before.number <= row.number),
        _ => sent.len(),
    };
    sent.insert(place, row);
}

/// The size of a packet, from a record or a cell. Both have 0 for an unknown size.
pub fn known_size(bytes: u32) -> Option<u32> {
    (bytes > 0).then_some(bytes)
}

/// Returns the transit time in µs of a packet in a trace; `None` if it did not arrive.
pub fn transit_us(took_ms: f32) -> Option<i64> {
    took_ms.is_finite().then(|| (f64::from(took_ms) * 1e3).round() as i64)
}

/// Returns the packets of a trace, by player and direction, in the order of their send times.
pub fn of_trace(trace: &Trace) -> Vec<Packet> {
    let (up, down) = (packets::Columns::of(trace), snapshots::Columns::of(trace));
    let cell = |cells: &[u32], row: usize| cells.get(row).copied();
    let packet = |is_up: bool, row: usize| {
        let (player, at_us, took_ms, bytes, choked) = match is_up {
            true => (up.player, up.at_us, up.took_ms, up.bytes, &[][..]),
            false => (down.player, down.at_us, down.took_ms, down.bytes, down.choked),
        };
        let took_us = took_ms.get(row).and_then(|ms| transit_us(*ms));
        let (player, choked) = (cell(player, row).unwrap_or_default(), cell(choked, row).unwrap_or_default());
        let (bytes, sent_us) = (cell(bytes, row).and_then(known_size), at_us[row]);
        Packet { player, is_up, sent_us, took_us, bytes, choked, ..Packet::default() }
    };
    let all_up = (0..up.rows.min(up.at_us.len())).map(|row| packet(true, row));
    let all_down = (0..down.rows.min(down.at_us.len())).map(|row| packet(false, row));
    let mut all: Vec<Packet> = all_up.chain(all_down).collect();
    all.sort_by_key(|packet| (packet.player, !packet.is_up, packet.sent_us));
    let mut last_arrived = SortedMap::new();
    for packet in all.iter().filter(|packet| packet.took_us.is_some()) {
        last_arrived.insert((packet.player, packet.is_up), packet.sent_us);
    }
    for packet in all.iter_mut().filter(|packet| packet.took_us.is_none()) {
        let last = last_arrived.get(&(packet.player, packet.is_up));
        packet.is_missing = last.is_some_and(|last| packet.sent_us <= *last);
    }
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
        number("is_missing", &|packet| packet.is_missing.into()),
        number("is_in_gap", &|packet| packet.is_in_gap.into()),
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
pub fn of_packet_table(
    trace: &dyn TraceSource,
) -> Result<impl Iterator<Item = Result<Packet, TraceReadError>>, TraceReadError> {
    by_player(trace, &[PACKETS], |tables| {
        let mut all: Vec<Packet> = tables.iter().flat_map(of_rows).collect();
        all.sort_by_key(|packet| !packet.is_up);
        all
    })
}

fn of_rows(table: &Table) -> Vec<Packet> {
    let columns = ["player", "is_up", "has_arrived", "is_missing", "is_in_gap", "bytes", "choked"];
    let [players, up, arrived, missing, in_gap, bytes, choked] = columns.map(|name| table.u32s(name));
    let [sent_us, took_us] = ["sent_us", "took_us"].map(|name| table.i64s(name));
    let packet = |row: usize| Packet {
        player: players[row],
        is_up: up[row] == 1,
        sent_us: sent_us[row],
        took_us: (arrived[row] == 1).then(|| took_us[row]),
        is_missing: missing[row] == 1,
        is_in_gap: in_gap[row] == 1,
        bytes: known_size(bytes[row]),
        choked: choked[row],
    };
    (0..table.rows()).map(packet).collect()
}

/// Returns the packets of a trace, as [`of_trace`] does.
///
/// # Errors
/// When the players' numbers cannot be read.
pub fn of_source(
    trace: &dyn TraceSource,
) -> Result<impl Iterator<Item = Result<Packet, TraceReadError>>, TraceReadError> {
    let of_tables = |tables| of_trace(&Trace { tables, ..Trace::default() });
    by_player(trace, &[packets::NAME, snapshots::NAME], of_tables)
}

/// Processes tables player by player. It reads several players per pass, as many as memory allows.
fn by_player<'s>(
    trace: &'s dyn TraceSource,
    tables: &'static [&'static str],
    packets: impl Fn(Vec<Table>) -> Vec<Packet> + 's,
) -> Result<impl Iterator<Item = Result<Packet, TraceReadError>> + 's, TraceReadError> {
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
        match read.collect::<Result<Vec<Table>, TraceReadError>>() {
            Ok(tables) => group.iter().flat_map(|player| of_player(&tables, *player)).map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    }))
}

fn rows_of_players(rows: &Table, players: &[u32]) -> Table {
    rows.select_where(rows.u32s("player").iter(), |player| players.contains(player))
}

/// The limit on a player's lost snapshots beyond the number of received ones.
const EXTRA_LOST_MAX: u32 = 1 << 12;
/// A server reports an update that it held back at most this long ago.
const REPORTED_AFTER_US: i64 = 10_000_000;

/// Finds the missing numbers between packets, without those of updates that were held back. Their send times are spread
/// over the time between.
#[derive(Clone, Debug, Default)]
struct MissingNumbers {
    choked_are_numbered: bool,
    last: Option<(u32, i64)>,
    held_back: u64,
    /// The number of missing packets so far, less the others. A crafted file may claim any number.
    excess: i64,
    /// The recent missing packets: number and time.
    lost: VecDeque<(u32, i64)>,
}

impl MissingNumbers {
    /// Adds a packet to `sent`, and before it the missing ones.
    fn add(&mut self, row: SentRow, sent: &mut VecDeque<SentRow>) {
        let SentRow { number, sent_us, choked, .. } = row;
        self.excess -= 1;
        self.held_back += if self.choked_are_numbered { u64::from(choked) } else { 0 };
        // Snapshots in a client's log are in the order of arrival.
        let is_late = self.last.is_some_and(|(last, _)| number < last && last - number < REORDERED_PACKETS_MAX as u32);
        if is_late {
            self.remove(number, sent);
        } else if let Some((before, before_us)) = self.last {
            let missing = u64::from(number.saturating_sub(before).saturating_sub(1));
            let lost = missing.saturating_sub(self.held_back);
            self.held_back -= missing - lost;
            let most = u32::try_from(i64::from(EXTRA_LOST_MAX) - self.excess).unwrap_or(0);
            let lost = u32::try_from(lost).unwrap_or(u32::MAX).min(most);
            self.excess += i64::from(lost);
            let span_us = i128::from(sent_us) - i128::from(before_us);
            for n in 1..=lost {
                // Between two times of 64 bits, so it has as many.
                let at_us = (i128::from(before_us) + i128::from(n) * span_us / i128::from(lost + 1)) as i64;
                self.lost.push_back((before + n, at_us));
                let between_us = Some((before_us, sent_us));
                put(sent, SentRow { number: before + n, sent_us: at_us, between_us, ..SentRow::default() });
            }
        }
        self.last = self.last.filter(|_| is_late).or(Some((number, sent_us)));
        put(sent, row);
        self.remove_held_back(sent);
    }

    /// Removes the newest missing packets from `sent` if the last packet reports more updates held back than its own gap
    /// has. During a change of level, a QuakeWorld server reports them late.
    fn remove_held_back(&mut self, sent: &mut VecDeque<SentRow>) {
        let Some((_, now_us)) = self.last else { return };
        while self.lost.pop_front_if(|(_, at)| now_us.saturating_sub(*at) > REPORTED_AFTER_US).is_some() {}
        while self.held_back > 0 {
            let Some((number, _)) = self.lost.pop_back() else { return };
            if self.remove(number, sent) {
                self.held_back -= 1;
            }
        }
    }

    /// Removes a missing packet from `sent`; false if it is not there.
    fn remove(&mut self, number: u32, sent: &mut VecDeque<SentRow>) -> bool {
        let place = sent.binary_search_by_key(&number, |row| row.number).ok();
        let place = place.filter(|place| sent[*place].between_us.is_some());
        self.excess -= i64::from(place.is_some());
        place.is_some_and(|place| sent.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ArrivalRecord, PacketRecord, PlayerInfo, PlayerRecords, SessionChunk, SnapshotRecord};
    use crate::recorder::Description;
    use crate::trace::schema::packets::{Row, Writer};
    use crate::units::{Micros, SnapshotSeq};

    /// A reader gives the packets of the whole session, wherever the log is cut into chunks.
    #[test]
    fn packets_read_in_chunks_are_those_of_the_session() {
        let players = ["p0", "p1"].map(|name| PlayerInfo { name: name.into(), recorded: true }).into();
        let header = SessionHeader {
            game: "disc".into(),
            rules: Vec::new().into(),
            map: String::new(),
            seed: crate::units::Seed(0),
            settings: Vec::new(),
            preset: None,
            players,
            origin: Origin::Synthetic,
            side: None,
            classes: Vec::new(),
            usercmd: Vec::new(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        };
        for origin in [Origin::Synthetic, Origin::Imported { format: "demo".into() }] {
            let mut session = Session::new(SessionHeader { origin, ..header.clone() });
            let mut chunks = vec![SessionChunk { players: vec![Default::default(); 2], ..Default::default() }; 20];
            for n in 0..400u32 {
                let (player, at) = ((n % 2) as usize, i64::from(n) * 900_000);
                let is_lost = n % 7 == 3 || n > 390;
                let (seq, at) = (SnapshotSeq(n * 2), Micros(at));
                let sent = SnapshotRecord { seq, at, bytes: 9, choked: u8::from(n % 11 == 0), ..Default::default() };
                let later = (n as usize / 20 + usize::from(n % 3 == 0)).min(19);
                let arrival = ArrivalRecord { number: seq.0, at: Micros(at.0 + 40_000) };
                chunks[n as usize / 20].players[player].snapshots.push(sent);
                if !is_lost {
                    chunks[later].players[player].received.push(arrival);
                }
            }
            let (mut reader, mut read) = (PacketReader::new(&session.header), Vec::new());
            for chunk in &chunks {
                reader.add(chunk, &mut |packet| read.push(packet));
                session.append(chunk.clone());
            }
            reader.end(&mut |packet| read.push(packet));
            read.sort_by_key(|packet| packet.player);
            assert!(read.len() > 300 && read.iter().any(|packet| packet.is_missing));
            assert_eq!(read, of_session(&session), "{:?}", session.header.origin);
        }
    }

    /// Packet 2 is lost, packets 4 and 5 may have arrived in the gap, 6 to 19 were sent in it, and packet 22 is in flight at
    /// the end.
    #[test]
    fn packets_in_a_gap_are_neither_sent_nor_lost() {
        let us = |ms: i64| Micros::from_ms(ms);
        let sent = [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (20, 900), (21, 910), (22, 920)];
        let sent = sent.map(|(number, ms)| PacketRecord { number, at: us(ms), ..Default::default() });
        let reached = [(1, 15), (3, 35), (21, 925)].map(|(number, ms)| ArrivalRecord { number, at: us(ms) });
        let records = PlayerRecords { sent: sent.into(), reached: reached.into(), ..Default::default() };
        let counted = |player: Option<u16>| -> (usize, Vec<i64>) {
            let player = player.map(crate::units::PlayerId);
            let gaps = vec![GapRecord { from: us(40), to: us(900), player, ..Default::default() }];
            let chunk = SessionChunk { players: vec![records.clone()], gaps, ..Default::default() };
            let (header, _) = Description::new("game").player("p0").into_header().expect("a valid description");
            let session = of_session(&chunk.with_header(header));
            let trace = Trace { tables: vec![packet_table(&session)], ..Trace::default() };
            let stored: Result<Vec<Packet>, TraceReadError> = of_packet_table(&trace).unwrap().collect();
            assert_eq!(stored.as_ref(), Ok(&session));
            let lost = session.iter().filter(|packet| packet.is_missing);
            let counted = session.iter().filter(|packet| !packet.is_in_gap).count();
            assert_eq!(session.iter().filter(|packet| packet.took_us.is_some()).count(), 3);
            (counted, lost.map(|packet| packet.sent_us / 1_000).collect())
        };
        assert_eq!([None, Some(0)].map(counted), [(6, vec![10, 900]), (6, vec![10, 900])]);
        let (all, lost) = counted(Some(1));
        assert_eq!((all, lost.len(), &lost[..3]), (22, 18, &[10, 30, 40][..]), "another player's gap");
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
        let fates: Vec<_> = found.iter().map(|packet| (packet.took_us, packet.is_missing)).collect();
        assert_eq!(fates, [(Some(20_000), false), (None, true), (Some(21_500), false), (None, false)]);
        assert!(found.iter().all(|packet| packet.player == 7 && packet.is_up && packet.bytes.is_none()));
    }

    /// Number, send time, bytes and choked of received snapshots, to which the missing ones are added.
    fn with_missing(rows: &[(u32, i64, u16, u8)]) -> Vec<(u32, i64)> {
        let mut numbers = MissingNumbers { choked_are_numbered: true, ..MissingNumbers::default() };
        let mut sent = VecDeque::new();
        for (number, sent_us, bytes, choked) in rows.iter().copied() {
            numbers.add(SentRow { number, sent_us, bytes, choked, between_us: None }, &mut sent);
        }
        let missing = sent.iter().filter(|row| row.between_us.is_some());
        missing.map(|row| (row.number, row.sent_us)).collect()
    }

    #[test]
    fn gaps_in_a_receivers_recording_are_lost_snapshots() {
        let received =
            [(10, 1_000, 50, 3), (11, 2_000, 50, 0), (14, 8_000, 50, 0), (18, 9_000, 50, 2), (19, 9_500, 50, 0)];
        // The first row's three were held back before the recording began, and cover the first gap's two and one more.
        assert_eq!(with_missing(&received), []);
        assert_eq!(with_missing(&received[1..]), [(12, 4_000), (13, 6_000), (15, 8_500)]);
    }

    #[test]
    fn updates_that_are_reported_late_as_held_back_are_not_lost() {
        let rows = [(1, 0, 50, 0), (4, 20_000_000, 50, 0), (8, 21_000_000, 50, 0), (10, 22_000_000, 50, 3)];
        let missing: Vec<u32> = with_missing(&rows).iter().map(|row| row.0).collect();
        assert_eq!(missing, [2, 3, 5], "one of the last gap, two of the gap before");
    }

    #[test]
    fn a_snapshot_that_another_one_overtakes_is_not_missing() {
        assert_eq!(with_missing(&[(1, 0, 50, 0), (4, 30, 50, 0), (3, 35, 50, 0), (5, 40, 50, 0)]), [(2, 10)]);
        assert_eq!(with_missing(&[(901, 0, 50, 0), (1, 30, 50, 0), (3, 50, 50, 0)]), [(2, 40)], "a player rejoins");
        assert_eq!(with_missing(&[(1, i64::MIN, 50, 0), (3, i64::MAX, 50, 0)]), [(2, -1)], "any times");
    }
}
