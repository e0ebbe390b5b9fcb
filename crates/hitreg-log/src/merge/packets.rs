//! One direction of a client's connection. One log has the sent packets, another the arrivals.

use std::collections::VecDeque;

use crate::record::ArrivalRecord;
use crate::units::Micros;

/// Sent packets and arrivals that are not matched yet, in bounded queues.
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
    waiting: VecDeque<ArrivalRecord>,
    sends_no_more: bool,
    receives_no_more: bool,
}

/// The error for packets that cannot be matched as streams: numbers are out of order, or one log is too far ahead of
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnorderedPackets;

/// How many packets an arrival may be behind the newest arrival.
const KEPT_MOST: usize = 4096;

/// How many packets one log may be ahead of the other.
const AHEAD_MOST: usize = 1 << 16;

impl PacketMatcher {
    /// Adds a packet from the sender's log.
    pub(super) fn send(&mut self, number: u32, at: Micros) -> Result<(), UnorderedPackets> {
        let is_next = self.newest.is_none_or(|newest| newest < number);
        (self.first, self.newest) = (self.first.or(Some(number)), Some(number));
        if !(self.receives_no_more && self.waiting.is_empty()) {
            self.sent.push_back((number, at));
        }
        if is_next && self.sent.len() <= AHEAD_MOST { Ok(()) } else { Err(UnorderedPackets) }
    }

    /// Adds an arrival from the receiver's log.
    pub(super) fn arrive(&mut self, arrival: ArrivalRecord) -> Result<(), UnorderedPackets> {
        self.waiting.push_back(arrival);
        if self.waiting.len() <= AHEAD_MOST { Ok(()) } else { Err(UnorderedPackets) }
    }

    /// Notes the end of the sender's log.
    pub(super) fn end_sending(&mut self) {
        self.sends_no_more = true;
    }

    /// Notes the end of the receiver's log.
    pub(super) fn end_receiving(&mut self) {
        self.receives_no_more = true;
        if self.waiting.is_empty() {
            self.sent.clear();
        }
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
    pub(super) fn next(&mut self) -> Result<Option<(ArrivalRecord, Option<Micros>)>, UnorderedPackets> {
        let is_known = |number: u32| self.sends_no_more || self.newest.is_some_and(|newest| newest >= number);
        let Some(arrival) = self.waiting.front().copied().filter(|arrival| is_known(arrival.number)) else {
            return Ok(None);
        };
        self.waiting.pop_front();
        self.arrived = self.arrived.max(Some(arrival.number));
        match self.sent.binary_search_by_key(&arrival.number, |(number, _)| *number) {
            Ok(place) => {
                let (_, at) = self.sent[place];
                let mut passed = self.sent.drain(..place.saturating_sub(KEPT_MOST));
                self.forgotten = passed.next_back().map(|(number, _)| number).or(self.forgotten);
                Ok(Some((arrival, Some(at))))
            }
            Err(_) if self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten) => Err(UnorderedPackets),
            Err(_) => Ok(Some((arrival, None))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u32) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros(i64::from(number) + 5) }
    }

    #[test]
    fn an_arrival_waits_for_its_packet_in_the_senders_log() {
        let mut packets = PacketMatcher::default();
        packets.arrive(arrival(3)).expect("near");
        assert_eq!((packets.next(), packets.waits_for_sender()), (Ok(None), true));
        packets.send(2, Micros(2)).expect("in order");
        assert_eq!(packets.next(), Ok(None));
        packets.send(3, Micros(3)).expect("in order");
        assert_eq!(packets.next(), Ok(Some((arrival(3), Some(Micros(3))))));
        packets.arrive(arrival(2)).expect("near");
        packets.arrive(arrival(1)).expect("near");
        packets.arrive(arrival(9)).expect("near");
        assert_eq!(packets.next(), Ok(Some((arrival(2), Some(Micros(2))))), "overtaken");
        assert_eq!(packets.next(), Ok(Some((arrival(1), None))), "not in the log");
        assert_eq!([1, 2, 9].map(|number| packets.begins_after(number)), [true, false, false]);
        assert_eq!((packets.next(), packets.waits_for_sender()), (Ok(None), true));
        packets.end_sending();
        assert_eq!(packets.next(), Ok(Some((arrival(9), None))), "the log was cut off before it");
        assert!(!packets.waits_for_sender());
    }

    #[test]
    fn packets_too_far_out_of_order_are_an_error() {
        let mut packets = PacketMatcher::default();
        let sent = |packets: &mut PacketMatcher, numbers: std::ops::Range<u32>| {
            numbers.into_iter().try_for_each(|number| packets.send(number, Micros(i64::from(number))))
        };
        sent(&mut packets, 1..10_000).expect("near");
        packets.arrive(arrival(9_000)).expect("near");
        packets.arrive(arrival(9_000 - KEPT_MOST as u32)).expect("near");
        packets.arrive(arrival(8_999 - KEPT_MOST as u32)).expect("near");
        assert!(matches!(packets.next(), Ok(Some((_, Some(_))))));
        assert_eq!(packets.packets_in_flight(), 999);
        assert!(matches!(packets.next(), Ok(Some((_, Some(_))))));
        assert_eq!(packets.next(), Err(UnorderedPackets));
        assert_eq!(packets.send(9_999, Micros(0)), Err(UnorderedPackets), "out of order");
        assert_eq!(sent(&mut packets, 10_000..80_000), Err(UnorderedPackets), "far ahead");
        let mut gone = PacketMatcher::default();
        gone.end_receiving();
        assert_eq!((sent(&mut gone, 1..100_000), gone.sent.len()), (Ok(()), 0), "nobody receives it");
    }
}
