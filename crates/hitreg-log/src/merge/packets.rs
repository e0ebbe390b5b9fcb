//! One direction of a client's connection: one log has the sent packets, another the arrivals.

use std::collections::VecDeque;

use crate::record::ArrivalRecord;
use crate::units::Micros;

/// Sent packets and arrivals that are not matched yet. A stream forgets the packets that can no longer arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketMatcher {
    /// Sent packets that may still arrive, by ascending number.
    sent: VecDeque<(u32, Micros)>,
    /// The first sent number.
    first: Option<u32>,
    /// The newest sent number.
    newest: Option<u32>,
    /// The newest number dropped from `sent`.
    forgotten: Option<u32>,
    /// The newest number that arrived.
    arrived: Option<u32>,
    /// Arrivals that are not matched yet.
    pub(super) waiting: VecDeque<ArrivalRecord>,
    /// Whether the sender's log has been read.
    pub(super) sends_no_more: bool,
    /// Whether the receiver's log has been read.
    pub(super) receives_no_more: bool,
    /// Whether numbers are not ascending, or a forgotten packet arrived.
    is_unordered: bool,
}

/// How many packets an arrival may be behind the newest arrival in a stream.
const ARRIVAL_DELAY_PACKETS_MAX: usize = 4096;

/// How many packets one log may be ahead of the other in a stream.
const PACKETS_AHEAD_MAX: usize = 1 << 16;

impl PacketMatcher {
    /// Adds a packet from the sender's log.
    pub(super) fn send(&mut self, number: u32, at: Micros) {
        self.is_unordered |= self.newest.is_some_and(|newest| newest >= number);
        (self.first, self.newest) = (self.first.or(Some(number)), Some(number));
        self.sent.push_back((number, at));
    }

    /// Returns whether an arrival waits for more of the sender's log.
    pub(super) fn waits_for_sender(&self) -> bool {
        !self.sends_no_more && !self.waiting.is_empty()
    }

    /// Returns whether the sender's log begins after a packet.
    pub(super) fn begins_after(&self, number: u32) -> bool {
        self.first.is_some_and(|first| number < first)
    }

    /// Returns how many packets were sent after the newest that arrived.
    pub(super) fn packets_in_flight(&self) -> usize {
        let passed = self.arrived.map_or(0, |arrived| self.sent.partition_point(|(number, _)| *number <= arrived));
        self.sent.len() - passed
    }

    /// Returns the next arrival with its send time, which is `None` if the sender's log lacks the packet. Returns
    /// `None` until enough of the sender's log is read.
    pub(super) fn next(&mut self) -> Option<(ArrivalRecord, Option<Micros>)> {
        let is_known = |number: u32| self.sends_no_more || self.newest.is_some_and(|newest| newest >= number);
        let arrival = self.waiting.pop_front_if(|arrival| is_known(arrival.number))?;
        self.arrived = self.arrived.max(Some(arrival.number));
        self.is_unordered |= self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten);
        let place = self.sent.binary_search_by_key(&arrival.number, |(number, _)| *number);
        Some((arrival, place.ok().map(|place| self.sent[place].1)))
    }

    /// Drops the packets that can no longer arrive. Returns false if this is a stream of packets out of order, or one
    /// log is too far ahead of the other.
    pub(super) fn forget(&mut self) -> bool {
        let passed = (self.sent.len() - self.packets_in_flight()).saturating_sub(ARRIVAL_DELAY_PACKETS_MAX + 1);
        let mut passed = self.sent.drain(..passed);
        self.forgotten = passed.next_back().map(|(number, _)| number).or(self.forgotten);
        drop(passed);
        if self.receives_no_more && self.waiting.is_empty() {
            self.sent.clear();
        }
        !self.is_unordered && self.sent.len().max(self.waiting.len()) <= PACKETS_AHEAD_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn arrival(number: u32) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros(i64::from(number) + 5) }
    }

    /// A connection of which these numbers arrived.
    pub(super) fn arrived(numbers: &[u32]) -> PacketMatcher {
        PacketMatcher { waiting: numbers.iter().copied().map(arrival).collect(), ..PacketMatcher::default() }
    }

    #[test]
    fn an_arrival_waits_for_its_packet_in_the_senders_log() {
        let mut packets = arrived(&[3]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.send(2, Micros(2));
        assert_eq!(packets.next(), None);
        packets.send(3, Micros(3));
        assert_eq!(packets.next(), Some((arrival(3), Some(Micros(3)))));
        packets.waiting.extend([2, 1, 9].map(arrival));
        assert_eq!(packets.next(), Some((arrival(2), Some(Micros(2)))), "overtaken");
        assert_eq!(packets.next(), Some((arrival(1), None)), "not in the log");
        assert_eq!([1, 2, 9].map(|number| packets.begins_after(number)), [true, false, false]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.sends_no_more = true;
        assert_eq!(packets.next(), Some((arrival(9), None)), "the log was cut off before it");
        assert!(!packets.waits_for_sender() && packets.forget());
    }

    #[test]
    fn packets_too_far_out_of_order_are_no_stream() {
        let sent = |packets: &mut PacketMatcher, numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| packets.send(number, Micros(i64::from(number))));
            packets.forget()
        };
        let last_kept = 9_000 - ARRIVAL_DELAY_PACKETS_MAX as u32;
        let mut packets = arrived(&[9_000]);
        sent(&mut packets, 1..10_000);
        assert!(packets.next().is_some() && packets.forget());
        assert_eq!(packets.packets_in_flight(), 999);
        packets.waiting.extend([last_kept, last_kept - 1].map(arrival));
        assert!(matches!(packets.next(), Some((_, Some(_)))) && packets.forget());
        assert!(matches!(packets.next(), Some((_, None))) && !packets.forget(), "it is forgotten");
        let mut packets = arrived(&[]);
        assert!(sent(&mut packets, 1..10) && !sent(&mut packets, 9..10), "out of order");
        assert!(!sent(&mut arrived(&[]), 1..80_000), "far ahead");
        let mut gone = PacketMatcher { receives_no_more: true, ..PacketMatcher::default() };
        assert_eq!((sent(&mut gone, 1..100_000), gone.sent.len()), (true, 0), "nobody receives it");
    }
}
