//! The `packets` and `snapshots` tables: each datagram that was sent, and whether and when it arrived.

use std::collections::VecDeque;

use crate::packet::Snapshot;
use crate::session::SnapshotSize;
use hitreg_log::record::{GapRecord, PacketRecord};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{packets, snapshots};
use hitreg_log::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct NetworkTables {
    /// Whether the sizes are those of encoded datagrams.
    with_sizes: bool,
    /// The missing parts of the log, by their ends.
    gaps: Vec<GapRecord>,
    up: PendingRows<packets::Row<'static>>,
    down: PendingRows<snapshots::Row<'static>>,
    /// The complete rows.
    pub(super) packets: packets::Writer,
    pub(super) snapshots: snapshots::Writer,
}

/// The packets of one direction whose fate is not known yet.
#[derive(Debug)]
struct PendingRows<R> {
    /// The longest flight time; `None` if unknown, then every packet may still arrive.
    longest: Option<Micros>,
    /// In the order of sending.
    sent: VecDeque<PendingRow<R>>,
    /// How many packets left `sent`.
    settled: usize,
    /// The position of each packet in the order of sending, counted from the first packet of all.
    places: SortedMap<(PlayerId, u32), usize>,
    /// The greatest position among the packets that arrived, by player.
    newest: SortedMap<PlayerId, usize>,
    /// The ends of the gaps in which a player's packets may have arrived, as they come.
    in_gaps: SortedSet<(PlayerId, Micros)>,
}

/// A packet whose fate is not known yet.
#[derive(Debug)]
struct PendingRow<R> {
    player: PlayerId,
    number: u32,
    at: Micros,
    /// The time of the first arrival.
    arrived: Option<Micros>,
    row: R,
}

/// What became of a packet.
#[derive(Debug, PartialEq)]
enum PacketFate {
    /// It arrived or is lost.
    Known,
    /// It may have arrived in a gap.
    InGap,
}

impl NetworkTables {
    pub(super) fn new(with_sizes: bool, longest: Option<Micros>, gaps: &[GapRecord]) -> NetworkTables {
        let mut gaps = gaps.to_vec();
        gaps.sort_by_key(|gap| gap.to);
        NetworkTables {
            with_sizes,
            gaps,
            up: PendingRows::new(longest),
            down: PendingRows::new(longest),
            packets: packets::Writer::default(),
            snapshots: snapshots::Writer::default(),
        }
    }

    pub(super) fn packet_sent(&mut self, player: PlayerId, packet: &PacketRecord) {
        let bytes = self.with_sizes.then_some(packet.bytes.into());
        let row = packets::Row { bytes, ..packets::Row::of_packet(player, packet) };
        let NetworkTables { up, packets, gaps, .. } = self;
        up.settle(packet.at, gaps, |row| packets.push(row));
        up.sent((player, packet.number), packet.at, row);
    }

    pub(super) fn packet_reached(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some((took_ms, row)) = self.up.arrive((player, number), at) else { return };
        row.arrived += 1;
        row.took_ms = took_ms;
    }

    pub(super) fn snapshot_sent<B>(
        &mut self,
        player: PlayerId,
        at: Micros,
        snapshot: &Snapshot<B>,
        size: SnapshotSize,
    ) {
        let row = snapshots::Row {
            player: player.0.into(),
            snapshot: snapshot.seq.0,
            at_us: at.0,
            arrived: 0,
            took_ms: f32::NAN,
            ack: snapshot.ack.0,
            entities: snapshot.frame.entities.len() as u32,
            effects: snapshot.effects.len() as u32,
            choked: snapshot.choked.into(),
            helper_ms: snapshot.helper_ms.map_or(f32::NAN, f32::from),
            warnings: snapshot.warnings.len() as u32,
            bytes: self.with_sizes.then_some(size.bytes.into()),
            left_out: self.with_sizes.then_some(size.left_out),
            saw_avatar_right: size.saw_avatar_right.filter(|_| self.with_sizes).map(u8::from),
            bits: size.bit_counts.filter(|_| self.with_sizes).map(|counts| counts.parts()),
        };
        let NetworkTables { down, snapshots, gaps, .. } = self;
        down.settle(at, gaps, |row| snapshots.push(row));
        down.sent((player, snapshot.seq.0), at, row);
    }

    pub(super) fn snapshot_received(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some((took_ms, row)) = self.down.arrive((player, number), at) else { return };
        row.arrived += 1;
        row.took_ms = took_ms;
    }

    /// Discards the rows of all packets sent so far.
    pub(super) fn discard_waiting(&mut self) {
        self.up = PendingRows::new(self.up.longest);
        self.down = PendingRows::new(self.down.longest);
    }

    /// Completes all rows at the end, when no packet can arrive.
    pub(super) fn end(&mut self) {
        let NetworkTables { up, down, packets, snapshots, gaps, .. } = self;
        up.end(gaps, |row| packets.push(row));
        down.end(gaps, |row| snapshots.push(row));
    }
}

impl<R> PendingRows<R> {
    fn new(longest: Option<Micros>) -> PendingRows<R> {
        PendingRows {
            longest,
            sent: VecDeque::new(),
            settled: 0,
            places: SortedMap::new(),
            newest: SortedMap::new(),
            in_gaps: SortedSet::new(),
        }
    }

    fn sent(&mut self, (player, number): (PlayerId, u32), at: Micros, row: R) {
        self.places.insert((player, number), self.settled + self.sent.len());
        self.sent.push_back(PendingRow { player, number, at, arrived: None, row });
    }

    /// Notes an arrival. Returns the flight time of the first one in milliseconds, and the row.
    fn arrive(&mut self, key: (PlayerId, u32), at: Micros) -> Option<(f32, &mut R)> {
        let place = *self.places.get(&key)?;
        let of = self.sent.get_mut(place.checked_sub(self.settled)?)?;
        let newest = self.newest.entry(key.0).or_default();
        *newest = (*newest).max(place);
        let first = *of.arrived.get_or_insert(at);
        Some((Micros(first.0.saturating_sub(of.at.0)).as_ms_f64() as f32, &mut of.row))
    }

    /// Passes to `out` the packets that can no longer arrive at `now`, in the order of sending.
    ///
    /// The arrival of a packet may be among the records that are missing in a gap, unless a later one arrived before the
    /// gap began. Then it has no row.
    fn settle(&mut self, now: Micros, gaps: &[GapRecord], mut out: impl FnMut(R)) {
        let Some(longest) = self.longest else { return };
        while let Some(fate) = self.first_fate(now, longest, gaps) {
            let Some(PendingRow { player, number, row, .. }) = self.sent.pop_front() else { break };
            if self.places.get(&(player, number)) == Some(&self.settled) {
                self.places.remove(&(player, number));
            }
            self.settled += 1;
            if fate == PacketFate::Known {
                out(row);
            }
        }
    }

    /// The fate of the first packet; `None` if later records decide it.
    fn first_fate(&mut self, now: Micros, longest: Micros, gaps: &[GapRecord]) -> Option<PacketFate> {
        let first = self.sent.front().filter(|first| first.at.0.saturating_add(longest.0) < now.0)?;
        if first.arrived.is_some() {
            return Some(PacketFate::Known);
        }
        let player = first.player;
        let Some(gap) = next_gap(gaps, player, first.at) else { return Some(PacketFate::Known) };
        if now <= gap.from {
            let is_overtaken = self.newest.get(&player).is_some_and(|newest| *newest > self.settled);
            return is_overtaken.then_some(PacketFate::Known);
        }
        Some(if self.is_in_gap(player, gap) { PacketFate::InGap } else { PacketFate::Known })
    }

    /// Whether no packet that was sent after the first one arrived before the gap.
    fn is_in_gap(&mut self, player: PlayerId, GapRecord { from, to, .. }: &GapRecord) -> bool {
        let key = (player, *to);
        let mut later = self.sent.iter().take_while(|later| later.at <= *from).filter(|later| later.player == player);
        let is_in_gap = self.in_gaps.contains(&key) || !later.any(|later| later.arrived.is_some_and(|at| at <= *from));
        if is_in_gap {
            self.in_gaps.insert(key);
        }
        is_in_gap
    }

    /// Passes on all rows, when no packet can arrive.
    fn end(&mut self, gaps: &[GapRecord], out: impl FnMut(R)) {
        self.longest = Some(Micros(0));
        self.settle(Micros(i64::MAX), gaps, out);
    }
}

/// The first gap in a player's records that ends after a time.
fn next_gap(gaps: &[GapRecord], player: PlayerId, after: Micros) -> Option<&GapRecord> {
    let later = &gaps[gaps.partition_point(|gap| gap.to <= after)..];
    later.iter().find(|gap| gap.concerns(player))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Category;
    use hitreg_log::trace::schema::{CellType as _, OptionalBits};
    use hitreg_log::units::CommandSeq;

    fn packet(number: u32, ms: i64) -> PacketRecord {
        PacketRecord {
            number,
            at: Micros::from_ms(ms),
            newest: CommandSeq(number),
            count: 1,
            ..PacketRecord::default()
        }
    }

    fn network(longest_ms: i64, sent: &[(u32, i64)]) -> NetworkTables {
        let mut network = NetworkTables::new(false, Some(Micros::from_ms(longest_ms)), &[]);
        sent.iter().for_each(|(number, ms)| network.packet_sent(PlayerId(0), &packet(*number, *ms)));
        network
    }

    fn arrived(network: &mut NetworkTables) -> Vec<u32> {
        network.end();
        packets::Columns::read(&network.packets.take(Vec::new())).arrived.to_vec()
    }

    #[test]
    fn bits_are_split_into_categories_and_three_more_parts() {
        let parts: Vec<&str> = OptionalBits::PARTS.iter().map(|part| &part[1..]).collect();
        let categories = Category::NAMES.iter().copied();
        assert_eq!(parts, categories.chain(["naming", "events", "headers"]).collect::<Vec<_>>());
    }

    #[test]
    fn a_row_is_emitted_when_its_packet_can_no_longer_arrive() {
        let mut network = network(15, &[(1, 0), (2, 10), (3, 25)]);
        assert_eq!(
            [network.packets.rows(), network.snapshots.rows()],
            [1, 0],
            "the second may arrive at this very time"
        );
        network.packet_reached(PlayerId(0), 2, Micros::from_ms(25));
        network.packet_reached(PlayerId(0), 1, Micros::from_ms(26));
        network.packet_sent(PlayerId(0), &packet(4, 26));
        assert_eq!([network.packets.rows(), network.snapshots.rows()], [2, 0]);
        assert_eq!(arrived(&mut network), [0, 1, 0, 0], "what came too late for its row counts nowhere else");
        assert_eq!([network.packets.rows(), network.snapshots.rows()], [0, 0], "they have been taken");
    }

    /// Packet 2 is lost, packets 4 and 5 may have arrived in the gap, and packet 22 is in flight at the end.
    #[test]
    fn packets_in_flight_when_a_gap_begins_have_no_row() {
        let [from, to] = [40, 900].map(Micros::from_ms);
        let sent = [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (20, 900), (21, 910), (22, 920)];
        let reached = [(1, 15), (3, 35), (21, 925)];
        let rows = |player: Option<PlayerId>, longest_ms: Option<i64>| {
            let gap = GapRecord { from, to, player, ..GapRecord::default() };
            let mut network = NetworkTables::new(false, longest_ms.map(Micros::from_ms), &[gap]);
            let mut events: Vec<(i64, bool, u32)> = sent.map(|(number, ms)| (ms, false, number)).into();
            events.extend(reached.map(|(number, ms)| (ms, true, number)));
            events.sort_unstable();
            for (ms, reached, number) in events {
                match reached {
                    true => network.packet_reached(PlayerId(0), number, Micros::from_ms(ms)),
                    false => network.packet_sent(PlayerId(0), &packet(number, ms)),
                }
            }
            let [streamed, _] = [network.packets.rows(), network.snapshots.rows()];
            (streamed, arrived(&mut network))
        };
        for player in [None, Some(PlayerId(0))] {
            assert_eq!(rows(player, Some(15)), (4, vec![1, 0, 1, 0, 1, 0]), "{player:?}");
            assert_eq!(rows(player, None), (0, vec![1, 0, 1, 0, 1, 0]), "{player:?}");
        }
        assert_eq!(rows(Some(PlayerId(1)), Some(15)), (6, vec![1, 0, 1, 0, 0, 0, 1, 0]));
    }

    /// A lost packet waits for a later arrival, not for the end of a gap that is far away.
    #[test]
    fn rows_of_a_log_with_a_gap_do_not_pile_up() {
        let gap = GapRecord { from: Micros::from_s(3600), to: Micros::from_s(3601), ..GapRecord::default() };
        let mut network = NetworkTables::new(false, Some(Micros::from_ms(50)), &[gap]);
        for number in 0..1000 {
            let ms = i64::from(number) * 10;
            network.packet_sent(PlayerId(0), &packet(number, ms));
            if number % 3 != 1 {
                network.packet_reached(PlayerId(0), number, Micros::from_ms(ms + 5));
            }
            assert!(network.up.sent.len() < 10, "{number}");
        }
        assert_eq!(arrived(&mut network).len(), 1000);
    }

    #[test]
    fn a_repeated_number_is_another_packet() {
        // The first packet 1 is already settled when the second one arrives.
        let mut network = network(15, &[(1, 0), (1, 14), (2, 16), (3, 28)]);
        network.packet_reached(PlayerId(0), 1, Micros::from_ms(29));
        assert_eq!(arrived(&mut network), [0, 1, 0, 0]);
    }
}
