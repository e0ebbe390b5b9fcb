//! Removes losses, duplicates and delays of packets.

use super::super::CostKind;
use super::{PacketDirection, Removable};
use hitreg_log::record::{ArrivalRecord, ArrivalTable, PlayerRecords, Session};
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::percentile;
use hitreg_log::units::Micros;
use hitreg_netcode::link::Fate;

const DIRECTIONS: [PacketDirection; 2] = [PacketDirection::Up, PacketDirection::Down];

/// The things of a kind that concerns packets.
pub(super) fn things(session: &Session, kind: CostKind) -> Vec<Removable> {
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for direction in DIRECTIONS {
            let lane = LinkDirection::of(records, direction, session.ticks.last().map(|t| t.at));
            let of_kind = lane.packets.iter().enumerate().filter(|(index, packet)| match kind {
                CostKind::Losses => packet.fate.first.is_none() && lane.delay_if_not_lost(*index).is_some(),
                CostKind::Duplicates => packet.fate.second.is_some(),
                CostKind::Delays => lane.is_uneven(packet),
                _ => false,
            });
            things.extend(of_kind.map(|(_, packet)| match kind {
                CostKind::Losses => Removable::Loss(player, direction, packet.number),
                CostKind::Duplicates => Removable::Duplicate(player, direction, packet.number),
                _ => Removable::Delay(player, direction, packet.number),
            }));
        }
    }
    things
}

/// Removes losses, duplicates and delays. Things of other kinds change nothing.
pub(super) fn remove(session: &mut Session, things: &[Removable]) {
    let link_things =
        things.iter().filter(|t| matches!(t, Removable::Loss(..) | Removable::Duplicate(..) | Removable::Delay(..)));
    let removed: SortedSet<Removable> = link_things.copied().collect();
    if removed.is_empty() {
        return;
    }
    let end = session.ticks.last().map(|t| t.at);
    for (player, records) in session.players.iter_mut().enumerate() {
        for direction in DIRECTIONS {
            let lane = LinkDirection::of(records, direction, end);
            let mut arrivals = Vec::new();
            for (index, packet) in lane.packets.iter().enumerate() {
                let fate = lane.fate_without(index, player, &removed);
                arrivals.extend(fate.arrivals().map(|at| ArrivalRecord { number: packet.number, at }));
            }
            arrivals.sort_by_key(|a| (a.at, a.number));
            match direction {
                PacketDirection::Up => records.reached = arrivals,
                PacketDirection::Down => records.received = arrivals,
            }
        }
    }
}

/// One direction of one player's connection.
struct LinkDirection {
    direction: PacketDirection,
    packets: Vec<LinkPacket>,
    /// The median delay; `None` if no packet arrives.
    median: Option<Micros>,
    /// The time of the session's end.
    end: Option<Micros>,
}

struct LinkPacket {
    number: u32,
    sent: Micros,
    fate: Fate,
}

impl LinkPacket {
    fn delay(&self) -> Option<Micros> {
        self.fate.first.map(|first| first - self.sent)
    }
}

impl LinkDirection {
    fn of(records: &PlayerRecords, direction: PacketDirection, end: Option<Micros>) -> LinkDirection {
        let (sent, arrivals): (Vec<(u32, Micros)>, _) = match direction {
            PacketDirection::Up => (records.sent.iter().map(|p| (p.number, p.at)).collect(), &records.reached),
            PacketDirection::Down => (records.snapshots.iter().map(|s| (s.seq.0, s.at)).collect(), &records.received),
        };
        let fates = ArrivalTable::new(arrivals);
        let packet = |(number, sent)| {
            let mut arrivals = fates.of(number);
            LinkPacket { number, sent, fate: Fate { first: arrivals.next(), second: arrivals.next() } }
        };
        let packets: Vec<LinkPacket> = sent.into_iter().map(packet).collect();
        let mut delays: Vec<Micros> = packets.iter().filter_map(LinkPacket::delay).collect();
        delays.sort_unstable();
        let median = percentile(&delays, 50.0);
        LinkDirection { direction, packets, median, end }
    }

    /// The delay that a lost packet would have had: the delay of the previous packet that arrived, else of the next. It
    /// arrives at the latest together with the next packet. `None` for a packet that no later packet overtook, because
    /// it may still be in flight.
    fn delay_if_not_lost(&self, index: usize) -> Option<Micros> {
        let (before, after) = self.packets.split_at(index);
        let (later, later_delay) = after.iter().find_map(|p| Some((p, p.delay()?)))?;
        let in_line = later.sent + later_delay - self.packets[index].sent;
        Some(before.iter().rev().find_map(LinkPacket::delay).unwrap_or(later_delay).min(in_line))
    }

    /// Whether a packet's delay differs from the median, and the packet would also arrive with the median.
    fn is_uneven(&self, packet: &LinkPacket) -> bool {
        match (packet.delay(), self.median) {
            (Some(delay), Some(median)) => delay != median && self.in_time(packet, median),
            _ => false,
        }
    }

    /// Whether a packet with this delay arrives before the session's end.
    fn in_time(&self, packet: &LinkPacket, delay: Micros) -> bool {
        match self.direction {
            PacketDirection::Up => self.end.is_some_and(|end| packet.sent + delay <= end),
            PacketDirection::Down => self.end.is_some_and(|end| packet.sent + delay < end),
        }
    }

    fn fate_without(&self, index: usize, player: usize, removed: &SortedSet<Removable>) -> Fate {
        let packet = &self.packets[index];
        let mut fate = packet.fate;
        if removed.contains(&Removable::Loss(player, self.direction, packet.number)) {
            fate.first = self.delay_if_not_lost(index).map(|delay| packet.sent + delay);
        }
        if removed.contains(&Removable::Duplicate(player, self.direction, packet.number)) {
            fate.second = None;
        }
        if let (Some(median), Some(delay)) = (self.median, packet.delay())
            && removed.contains(&Removable::Delay(player, self.direction, packet.number))
        {
            fate.first = Some(packet.sent + median);
            fate.second = fate.second.map(|second| second - delay + median);
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::PacketRecord;
    use hitreg_log::units::{CommandSeq, SnapshotSeq};

    fn lane(delays_ms: &[Option<i64>], end_ms: i64) -> LinkDirection {
        let mut records = PlayerRecords::default();
        for (index, delay) in delays_ms.iter().enumerate() {
            let (number, at) = (index as u32 + 1, Micros::from_ms(index as i64 * 10));
            let (newest, ack) = (CommandSeq(number), SnapshotSeq(0));
            records.sent.push(PacketRecord { number, at, newest, count: 1, ack, bytes: 58 });
            records.reached.extend(delay.map(|d| ArrivalRecord { number, at: at + Micros::from_ms(d) }));
        }
        LinkDirection::of(&records, PacketDirection::Up, Some(Micros::from_ms(end_ms)))
    }

    #[test]
    fn a_restored_packet_has_the_delay_of_its_neighbour() {
        let lane = lane(&[None, Some(40), None, Some(60), None, Some(35)], 1000);
        let delays: Vec<Option<i64>> = [0, 2, 4].map(|i| lane.delay_if_not_lost(i).map(|d| d.0 / 1000)).to_vec();
        assert_eq!(delays, [Some(40), Some(40), Some(45)], "the last is not to come behind the one after it");
    }

    #[test]
    fn packets_after_the_last_arrival_may_be_in_flight() {
        assert_eq!(lane(&[Some(40), None], 1000).delay_if_not_lost(1), None);
    }

    #[test]
    fn an_uneven_delay_becomes_the_median() {
        let lane = lane(&[Some(40), Some(45), Some(40)], 1000);
        let removed = SortedSet::from([Removable::Delay(0, PacketDirection::Up, 2)]);
        assert_eq!(lane.fate_without(1, 0, &removed).first, Some(Micros::from_ms(50)));
        assert_eq!(lane.fate_without(1, 1, &removed).first, Some(Micros::from_ms(55)), "that is another player's");
        assert!(lane.is_uneven(&lane.packets[1]) && !lane.is_uneven(&lane.packets[0]));
    }
}
