//! Taking out what happened to packets on their way.

use std::collections::BTreeSet;

use super::super::Kind;
use super::{Direction, Thing};
use crate::link::Fate;
use crate::record::{ArrivalRecord, Fates, PlayerRecords, Session};
use crate::stats::percentile;
use crate::units::Micros;

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// The things of a kind that is about packets.
pub(super) fn things(session: &Session, kind: Kind) -> Vec<Thing> {
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for direction in DIRECTIONS {
            let lane = Lane::of(records, direction, session.ticks.last().map(|t| t.at));
            let of_kind = lane.packets.iter().enumerate().filter(|(index, packet)| match kind {
                Kind::Losses => packet.fate.first.is_none() && lane.was_lost(*index),
                Kind::Duplicates => packet.fate.second.is_some(),
                Kind::Delays => lane.is_uneven(packet),
                _ => false,
            });
            things.extend(of_kind.map(|(_, packet)| match kind {
                Kind::Losses => Thing::Loss(player, direction, packet.number),
                Kind::Duplicates => Thing::Duplicate(player, direction, packet.number),
                _ => Thing::Delay(player, direction, packet.number),
            }));
        }
    }
    things
}

/// Takes out what happened to packets; things of other kinds change nothing.
pub(super) fn remove(session: &mut Session, things: &[Thing]) {
    let link_things = things.iter().filter(|t| matches!(t, Thing::Loss(..) | Thing::Duplicate(..) | Thing::Delay(..)));
    let removed: BTreeSet<Thing> = link_things.copied().collect();
    if removed.is_empty() {
        return;
    }
    let end = session.ticks.last().map(|t| t.at);
    for (player, records) in session.players.iter_mut().enumerate() {
        for direction in DIRECTIONS {
            let lane = Lane::of(records, direction, end);
            let mut arrivals = Vec::new();
            for (index, packet) in lane.packets.iter().enumerate() {
                let fate = lane.fate_without(index, player, &removed);
                arrivals.extend(fate.arrivals().map(|at| ArrivalRecord { number: packet.number, at }));
            }
            arrivals.sort_by_key(|a| (a.at, a.number));
            match direction {
                Direction::Up => records.reached = arrivals,
                Direction::Down => records.received = arrivals,
            }
        }
    }
}

/// One direction of one player's connection.
struct Lane {
    direction: Direction,
    packets: Vec<Packet>,
    /// The median of what packets take; `None` if none arrives.
    median: Option<Micros>,
    /// The most that a packet takes.
    longest: Option<Micros>,
    /// The place of the last packet that arrives.
    last_arrived: Option<usize>,
    /// When the session ends.
    end: Option<Micros>,
}

struct Packet {
    number: u32,
    sent: Micros,
    fate: Fate,
}

impl Packet {
    fn delay(&self) -> Option<Micros> {
        self.fate.first.map(|first| first - self.sent)
    }
}

impl Lane {
    fn of(records: &PlayerRecords, direction: Direction, end: Option<Micros>) -> Lane {
        let (sent, arrivals): (Vec<(u32, Micros)>, _) = match direction {
            Direction::Up => (records.sent.iter().map(|p| (p.number, p.at)).collect(), &records.reached),
            Direction::Down => (records.snapshots.iter().map(|s| (s.seq.0, s.at)).collect(), &records.received),
        };
        let fates = Fates::new(arrivals);
        let packet = |(number, sent)| {
            let mut arrivals = fates.of(number);
            Packet { number, sent, fate: Fate { first: arrivals.next(), second: arrivals.next() } }
        };
        let packets: Vec<Packet> = sent.into_iter().map(packet).collect();
        let mut delays: Vec<Micros> = packets.iter().filter_map(Packet::delay).collect();
        delays.sort_unstable();
        let median = percentile(&delays, 50.0);
        let last_arrived = packets.iter().rposition(|p| p.fate.first.is_some());
        Lane { direction, packets, median, longest: delays.last().copied(), last_arrived, end }
    }

    /// What a lost packet would have taken: as long as the one before it that came, else the one after it.
    fn neighbouring_delay(&self, index: usize) -> Micros {
        let before = self.packets[..index].iter().rev().find_map(Packet::delay);
        before.or_else(|| self.packets[index..].iter().find_map(Packet::delay)).unwrap_or_default()
    }

    /// Whether a packet that did not arrive was lost. It was not if it can still be on its way when the session ends.
    fn was_lost(&self, index: usize) -> bool {
        let in_time = |delay: Micros| self.in_time(&self.packets[index], delay);
        let overtaken = self.last_arrived.is_some_and(|last| index < last);
        in_time(self.neighbouring_delay(index)) && (overtaken || self.longest.is_none_or(in_time))
    }

    /// Whether a packet took another time than the median, with which it would arrive too.
    fn is_uneven(&self, packet: &Packet) -> bool {
        match (packet.delay(), self.median) {
            (Some(delay), Some(median)) => delay != median && self.in_time(packet, median),
            _ => false,
        }
    }

    /// Whether a packet that takes so long arrives before the session ends.
    fn in_time(&self, packet: &Packet, delay: Micros) -> bool {
        match self.direction {
            Direction::Up => self.end.is_some_and(|end| packet.sent + delay <= end),
            Direction::Down => self.end.is_some_and(|end| packet.sent + delay < end),
        }
    }

    fn fate_without(&self, index: usize, player: usize, removed: &BTreeSet<Thing>) -> Fate {
        let packet = &self.packets[index];
        let mut fate = packet.fate;
        if removed.contains(&Thing::Loss(player, self.direction, packet.number)) {
            fate.first = Some(packet.sent + self.neighbouring_delay(index));
        }
        if removed.contains(&Thing::Duplicate(player, self.direction, packet.number)) {
            fate.second = None;
        }
        if let (Some(median), Some(delay)) = (self.median, packet.delay())
            && removed.contains(&Thing::Delay(player, self.direction, packet.number))
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
    use crate::record::PacketRecord;
    use crate::units::{CommandSeq, SnapshotSeq};

    fn lane(delays_ms: &[Option<i64>], end_ms: i64) -> Lane {
        let mut records = PlayerRecords::default();
        for (index, delay) in delays_ms.iter().enumerate() {
            let (number, at) = (index as u32 + 1, Micros::from_ms(index as i64 * 10));
            let (newest, ack) = (CommandSeq(number), SnapshotSeq(0));
            records.sent.push(PacketRecord { number, at, newest, count: 1, ack, bytes: 58 });
            records.reached.extend(delay.map(|d| ArrivalRecord { number, at: at + Micros::from_ms(d) }));
        }
        Lane::of(&records, Direction::Up, Some(Micros::from_ms(end_ms)))
    }

    #[test]
    fn a_lost_packet_would_have_taken_what_its_neighbour_took() {
        let lane = lane(&[None, Some(40), None, Some(60), None], 99);
        let delays: Vec<i64> = [0, 2, 4].map(|i| lane.neighbouring_delay(i).0 / 1000).to_vec();
        assert_eq!(delays, [40, 40, 60]);
        assert!(lane.was_lost(0) && lane.was_lost(2) && !lane.was_lost(4), "the last may come at 100 ms");
    }

    #[test]
    fn what_is_still_on_its_way_at_the_end_is_not_lost() {
        assert!(!lane(&[Some(40), Some(40), None], 59).was_lost(2));
        assert!(lane(&[Some(40), Some(40), None], 60).was_lost(2));
        assert!(!lane(&[Some(40), Some(50), Some(40), None], 75).was_lost(3), "it may take as long as the second");
    }

    #[test]
    fn an_uneven_delay_becomes_the_median() {
        let lane = lane(&[Some(40), Some(45), Some(40)], 1000);
        let removed = BTreeSet::from([Thing::Delay(0, Direction::Up, 2)]);
        assert_eq!(lane.fate_without(1, 0, &removed).first, Some(Micros::from_ms(50)));
        assert_eq!(lane.fate_without(1, 1, &removed).first, Some(Micros::from_ms(55)));
    }
}
