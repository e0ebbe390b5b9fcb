//! One direction of a client's connection: one log has the sent packets, another the arrivals. The same holds for usercmds.

use std::collections::VecDeque;

/// Sent packets and arrivals that are not matched yet, each with its number and what its log says of it. A stream forgets
/// the packets that can no longer arrive.
#[derive(Clone, Debug)]
pub(super) struct PacketMatcher<T> {
    /// Sent packets that may still arrive, by ascending number.
    sent: VecDeque<(u32, T)>,
    /// The first sent number.
    first: Option<u32>,
    /// The newest sent number.
    newest: Option<u32>,
    /// The newest number dropped from `sent`.
    forgotten: Option<u32>,
    /// The newest number that arrived.
    arrived: Option<u32>,
    /// Arrivals that are not matched yet.
    pub(super) waiting: VecDeque<(u32, T)>,
    /// Whether the sender's log has been read.
    pub(super) sends_no_more: bool,
    /// Whether the receiver's log has been read.
    pub(super) receives_no_more: bool,
    /// Whether numbers are not ascending, or a forgotten packet arrived.
    pub(super) is_unordered: bool,
}

/// The packets before and after a place in a log, with their numbers.
pub(super) type NeighbourPackets<T> = (Option<(u32, T)>, Option<(u32, T)>);

/// An arrival and its packet in the sender's log.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MatchedArrival<T> {
    /// The sender's log has it.
    Sent {
        /// What the sender's log says of it.
        sent: T,
        /// What the receiver's log says of it.
        arrived: T,
    },
    /// The sender's log begins after it.
    Earlier,
    /// The sender's log lacks it.
    Unknown {
        /// What the receiver's log says of it.
        arrived: T,
        /// The packets around it in the sender's log. Without one after it, the log ends before it.
        between: NeighbourPackets<T>,
    },
}

/// How many packets an arrival may be behind the newest arrival in a stream.
const ARRIVAL_DELAY_PACKETS_MAX: usize = 4096;

/// How many packets one log may be ahead of the other in a stream.
const PACKETS_AHEAD_MAX: usize = 1 << 16;

impl<T> Default for PacketMatcher<T> {
    fn default() -> PacketMatcher<T> {
        PacketMatcher {
            sent: VecDeque::new(),
            first: None,
            newest: None,
            forgotten: None,
            arrived: None,
            waiting: VecDeque::new(),
            sends_no_more: false,
            receives_no_more: false,
            is_unordered: false,
        }
    }
}

impl<T: Clone> PacketMatcher<T> {
    /// Adds a packet from the sender's log.
    pub(super) fn send(&mut self, number: u32, sent: T) {
        self.is_unordered |= self.newest.is_some_and(|newest| newest >= number);
        (self.first, self.newest) = (self.first.or(Some(number)), Some(number));
        self.sent.push_back((number, sent));
    }

    /// Returns whether an arrival waits for more of the sender's log.
    pub(super) fn waits_for_sender(&self) -> bool {
        !self.sends_no_more && !self.waiting.is_empty()
    }

    /// Returns the first number in the sender's log.
    pub(super) fn first(&self) -> Option<u32> {
        self.first
    }

    /// Returns how many packets were sent after the newest that arrived.
    pub(super) fn packets_in_flight(&self) -> usize {
        let passed = self.arrived.map_or(0, |arrived| self.sent.partition_point(|(number, _)| *number <= arrived));
        self.sent.len() - passed
    }

    /// Returns the next arrival, or `None` until enough of the sender's log is read.
    pub(super) fn next(&mut self) -> Option<MatchedArrival<T>> {
        let is_known = |number: u32| self.sends_no_more || self.newest.is_some_and(|newest| newest >= number);
        let (number, arrived) = self.waiting.pop_front_if(|(number, _)| is_known(*number))?;
        self.arrived = self.arrived.max(Some(number));
        self.is_unordered |= self.forgotten.is_some_and(|forgotten| number <= forgotten);
        let sent = |place: usize| self.sent.get(place).cloned();
        Some(match self.sent.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(place) => MatchedArrival::Sent { sent: self.sent[place].1.clone(), arrived },
            Err(_) if self.first.is_some_and(|first| number < first) => MatchedArrival::Earlier,
            Err(place) => {
                MatchedArrival::Unknown { arrived, between: (place.checked_sub(1).and_then(sent), sent(place)) }
            }
        })
    }

    /// Drops the packets that can no longer arrive. Returns false if this is a stream of packets out of order, or one
    /// log is too far ahead of the other.
    pub(super) fn forget(&mut self) -> bool {
        let passed = (self.sent.len() - self.packets_in_flight()).saturating_sub(ARRIVAL_DELAY_PACKETS_MAX + 1);
        self.forget_first(passed);
        if self.receives_no_more && self.waiting.is_empty() {
            self.sent.clear();
        }
        !self.is_unordered && self.sent.len().max(self.waiting.len()) <= PACKETS_AHEAD_MAX
    }

    /// Drops the packets of a stream that can no longer arrive, and the oldest of those that are too far ahead: the
    /// receiver's log need not have any. Returns false like [`PacketMatcher::forget`].
    pub(super) fn forget_unreceived(&mut self) -> bool {
        self.forget_first(self.sent.len().saturating_sub(ARRIVAL_DELAY_PACKETS_MAX));
        self.forget()
    }

    fn forget_first(&mut self, count: usize) {
        let forgotten = self.sent.drain(..count).next_back().map(|(number, _)| number);
        self.forgotten = forgotten.or(self.forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Micros;

    /// A connection of which these numbers arrived.
    fn arrived(numbers: &[u32]) -> PacketMatcher<Micros> {
        PacketMatcher { waiting: numbers.iter().copied().map(arrival).collect(), ..PacketMatcher::default() }
    }

    fn arrival(number: u32) -> (u32, Micros) {
        (number, Micros(i64::from(number) + 5))
    }

    fn sent(number: u32) -> Option<MatchedArrival<Micros>> {
        Some(MatchedArrival::Sent { sent: Micros(number.into()), arrived: arrival(number).1 })
    }

    fn unknown(number: u32, before: Option<u32>, after: Option<u32>) -> Option<MatchedArrival<Micros>> {
        let at = |number: u32| (number, Micros(number.into()));
        Some(MatchedArrival::Unknown { arrived: arrival(number).1, between: (before.map(at), after.map(at)) })
    }

    #[test]
    fn an_arrival_waits_for_its_packet_in_the_senders_log() {
        let mut packets = arrived(&[3]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.send(2, Micros(2));
        assert_eq!(packets.next(), None);
        packets.send(3, Micros(3));
        assert_eq!(packets.next(), sent(3));
        packets.send(6, Micros(6));
        packets.waiting.extend([2, 1, 5, 9].map(arrival));
        assert_eq!(packets.next(), sent(2), "overtaken");
        assert_eq!(packets.next(), Some(MatchedArrival::Earlier), "the log begins after it");
        assert_eq!(packets.next(), unknown(5, Some(3), Some(6)), "not in the log");
        assert_eq!((packets.next(), packets.waits_for_sender()), (None, true));
        packets.sends_no_more = true;
        assert_eq!(packets.next(), unknown(9, Some(6), None), "the log was cut off before it");
        assert!(!packets.waits_for_sender() && packets.forget());
    }

    #[test]
    fn packets_too_far_out_of_order_are_no_stream() {
        let send = |packets: &mut PacketMatcher<Micros>, numbers: std::ops::Range<u32>| {
            numbers.for_each(|number| packets.send(number, Micros(i64::from(number))));
            packets.forget()
        };
        let last_kept = 9_000 - ARRIVAL_DELAY_PACKETS_MAX as u32;
        let mut packets = arrived(&[9_000]);
        send(&mut packets, 1..10_000);
        assert!(packets.next().is_some() && packets.forget());
        assert_eq!(packets.packets_in_flight(), 999);
        packets.waiting.extend([last_kept, last_kept - 1].map(arrival));
        assert!(packets.next() == sent(last_kept) && packets.forget());
        assert!(packets.next() != sent(last_kept - 1) && !packets.forget(), "it is forgotten");
        let mut packets = arrived(&[]);
        assert!(send(&mut packets, 1..10) && !send(&mut packets, 9..10), "out of order");
        assert!(!send(&mut arrived(&[]), 1..80_000), "far ahead");
        let mut unreceived = arrived(&[]);
        (1..80_000).for_each(|number| unreceived.send(number, Micros(number.into())));
        assert!(unreceived.forget_unreceived() && unreceived.sent.len() == ARRIVAL_DELAY_PACKETS_MAX);
        unreceived.waiting.push_back(arrival(80_000 - ARRIVAL_DELAY_PACKETS_MAX as u32 - 1));
        assert!(unreceived.next().is_some() && !unreceived.forget_unreceived(), "it is forgotten");
        let mut gone = PacketMatcher { receives_no_more: true, ..PacketMatcher::default() };
        assert_eq!((send(&mut gone, 1..100_000), gone.sent.len()), (true, 0), "nobody receives it");
    }
}
