//! The `packets` and `snapshots` tables: each datagram that was sent, and whether and when it arrived.

use std::collections::VecDeque;

use crate::packet::Snapshot;
use crate::session::SnapshotSize;
use hitreg_log::record::{GapRecord, PacketRecord};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{packets, snapshots};
use hitreg_log::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct NetworkTables {
    /// Whether the sizes are those of encoded datagrams.
    with_sizes: bool,
    gaps: Vec<GapRecord>,
    up: PendingRows<packets::Row<'static>>,
    down: PendingRows<snapshots::Row<'static>>,
    packets: packets::Writer,
    snapshots: snapshots::Writer,
}

/// The packets of one direction that may still arrive.
#[derive(Debug)]
struct PendingRows<R> {
    /// The longest flight time; `None` if unknown, then every packet may still arrive.
    longest: Option<Micros>,
    /// Player and number, send time, and row, in the order of sending.
    sent: VecDeque<((PlayerId, u32), Micros, R)>,
    /// How many packets left `sent`.
    settled: usize,
    /// The position of each packet in the order of sending, counted from the first packet of all.
    places: SortedMap<(PlayerId, u32), usize>,
}

impl NetworkTables {
    pub(super) fn new(with_sizes: bool, longest: Option<Micros>, gaps: &[GapRecord]) -> NetworkTables {
        // Which packets a gap concerns is known only at the end.
        let longest = longest.filter(|_| gaps.is_empty());
        NetworkTables {
            with_sizes,
            gaps: gaps.to_vec(),
            up: PendingRows::new(longest),
            down: PendingRows::new(longest),
            packets: packets::Writer::default(),
            snapshots: snapshots::Writer::default(),
        }
    }

    pub(super) fn packet_sent(&mut self, player: PlayerId, packet: &PacketRecord) {
        let bytes = self.with_sizes.then_some(packet.bytes.into());
        let row = packets::Row { bytes, ..packets::Row::of_packet(player, packet) };
        let NetworkTables { up, packets, .. } = self;
        up.settle(packet.at, |row| packets.push(row));
        up.sent((player, packet.number), packet.at, row);
    }

    pub(super) fn packet_reached(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some((sent, row)) = self.up.find((player, number)) else { return };
        arrives(at, sent, &mut row.arrived, &mut row.took_ms);
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
        let NetworkTables { down, snapshots, .. } = self;
        down.settle(at, |row| snapshots.push(row));
        down.sent((player, snapshot.seq.0), at, row);
    }

    pub(super) fn snapshot_received(&mut self, player: PlayerId, number: u32, at: Micros) {
        let Some((sent, row)) = self.down.find((player, number)) else { return };
        arrives(at, sent, &mut row.arrived, &mut row.took_ms);
    }

    /// Discards the rows of all packets sent so far.
    pub(super) fn discard_waiting(&mut self) {
        self.up.discard_waiting();
        self.down.discard_waiting();
    }

    /// Completes all rows at the end, when no packet can arrive. Leaves out packets in flight when a gap in the log began:
    /// their arrival may be among the missing records.
    pub(super) fn end(&mut self) {
        let NetworkTables { up, down, packets, snapshots, gaps, .. } = self;
        up.end(gaps, |row| row.took_ms).into_iter().for_each(|row| packets.push(row));
        down.end(gaps, |row| row.took_ms).into_iter().for_each(|row| snapshots.push(row));
    }

    /// Returns the numbers of complete rows in `packets` and `snapshots`.
    pub(super) fn rows(&self) -> [usize; 2] {
        [self.packets.rows(), self.snapshots.rows()]
    }

    /// Takes the complete rows of `packets`.
    pub(super) fn take_packets(&mut self) -> Table {
        self.packets.take(Vec::new())
    }

    /// Takes the complete rows of `snapshots`.
    pub(super) fn take_snapshots(&mut self) -> Table {
        self.snapshots.take(Vec::new())
    }
}

impl<R> PendingRows<R> {
    fn new(longest: Option<Micros>) -> PendingRows<R> {
        PendingRows { longest, sent: VecDeque::new(), settled: 0, places: SortedMap::new() }
    }

    fn discard_waiting(&mut self) {
        self.sent.clear();
        self.places.clear();
        self.settled = 0;
    }

    fn sent(&mut self, key: (PlayerId, u32), at: Micros, row: R) {
        self.places.insert(key, self.settled + self.sent.len());
        self.sent.push_back((key, at, row));
    }

    /// Takes all rows, without those of packets in flight when a gap began. These did not arrive, and neither did a later
    /// one before the end of the gap.
    fn end(&mut self, gaps: &[GapRecord], took_ms: impl Fn(&R) -> f32) -> Vec<R> {
        let mut gaps: Vec<GapRecord> = gaps.to_vec();
        gaps.sort_by_key(|gap| gap.to);
        let mut arrived_before = SortedSet::new();
        let mut rows: Vec<R> = Vec::with_capacity(self.sent.len());
        for ((player, _), at, row) in self.sent.drain(..).rev() {
            let later = &gaps[gaps.partition_point(|gap| gap.to <= at)..];
            let end = later.iter().find(|gap| gap.concerns(player)).map(|gap| gap.to);
            let took = took_ms(&row);
            let arrives = took.is_finite() && end.is_none_or(|end| at.as_ms_f64() + f64::from(took) < end.as_ms_f64());
            if arrives {
                arrived_before.insert((player, end));
            }
            if took.is_finite() || end.is_none() || arrived_before.contains(&(player, end)) {
                rows.push(row);
            }
        }
        rows.reverse();
        rows
    }

    fn find(&mut self, key: (PlayerId, u32)) -> Option<(Micros, &mut R)> {
        let place = self.places.get(&key)?.checked_sub(self.settled)?;
        self.sent.get_mut(place).map(|(_, at, row)| (*at, row))
    }

    /// Passes to `out` the packets that can no longer arrive at `now`, in the order of sending.
    fn settle(&mut self, now: Micros, mut out: impl FnMut(R)) {
        let Some(longest) = self.longest else { return };
        while let Some((key, _, row)) = self.sent.pop_front_if(|(_, at, _)| at.0.saturating_add(longest.0) < now.0) {
            if self.places.get(&key) == Some(&self.settled) {
                self.places.remove(&key);
            }
            self.settled += 1;
            out(row);
        }
    }
}

/// Counts an arrival. The first arrival sets the flight time.
fn arrives(at: Micros, sent: Micros, arrived: &mut u32, took_ms: &mut f32) {
    if *arrived == 0 {
        *took_ms = Micros(at.0.saturating_sub(sent.0)).as_ms_f64() as f32;
    }
    *arrived += 1;
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
        network_with_gaps(longest_ms, sent, &[])
    }

    fn network_with_gaps(longest_ms: i64, sent: &[(u32, i64)], gaps: &[GapRecord]) -> NetworkTables {
        let mut network = NetworkTables::new(false, Some(Micros::from_ms(longest_ms)), gaps);
        sent.iter().for_each(|(number, ms)| network.packet_sent(PlayerId(0), &packet(*number, *ms)));
        network
    }

    fn arrived(network: &mut NetworkTables) -> Vec<u32> {
        network.end();
        packets::Columns::read(&network.take_packets()).arrived.to_vec()
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
        assert_eq!(network.rows(), [1, 0], "the second may arrive at this very time");
        network.packet_reached(PlayerId(0), 2, Micros::from_ms(25));
        network.packet_reached(PlayerId(0), 1, Micros::from_ms(26));
        network.packet_sent(PlayerId(0), &packet(4, 26));
        assert_eq!(network.rows(), [2, 0]);
        assert_eq!(arrived(&mut network), [0, 1, 0, 0], "what came too late for its row counts nowhere else");
        assert_eq!(network.rows(), [0, 0], "they have been taken");
    }

    /// Packet 2 is lost, packets 4 and 5 may have arrived in the gap, and packet 6 is in flight at the end.
    #[test]
    fn packets_in_flight_when_a_gap_begins_have_no_row() {
        let [from, to] = [40, 900].map(Micros::from_ms);
        let sent = [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (20, 900), (21, 910), (22, 920)];
        for (player, arrivals) in [(None, vec![1, 0, 1, 0, 1, 0]), (Some(PlayerId(0)), vec![1, 0, 1, 0, 1, 0])] {
            let gap = GapRecord { from, to, player, ..GapRecord::default() };
            let mut network = network_with_gaps(15, &sent, &[gap]);
            [(1, 15), (3, 35), (21, 925)]
                .into_iter()
                .for_each(|(number, ms)| network.packet_reached(PlayerId(0), number, Micros::from_ms(ms)));
            assert_eq!(arrived(&mut network), arrivals, "{player:?}");
        }
        let of_another = GapRecord { from, to, player: Some(PlayerId(1)), ..GapRecord::default() };
        assert_eq!(arrived(&mut network_with_gaps(15, &sent, &[of_another])).len(), sent.len());
    }

    #[test]
    fn a_repeated_number_is_another_packet() {
        // The first packet 1 is already settled when the second one arrives.
        let mut network = network(15, &[(1, 0), (1, 14), (2, 16), (3, 28)]);
        network.packet_reached(PlayerId(0), 1, Micros::from_ms(29));
        assert_eq!(arrived(&mut network), [0, 1, 0, 0]);
    }
}
