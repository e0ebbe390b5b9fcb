//! Measures in chunks how far apart related records of a log are: a packet and its arrival; a snapshot, its states and
//! its arrival. A streamed replay reads ahead and keeps the log by these distances.

use std::collections::VecDeque;

use hitreg_log::record::{ArrivalRecord, PlayerRecords, States};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::Micros;

/// The longest flight time that a survey follows. A log with slower packets must be replayed as a whole.
pub(super) const LONGEST_FLIGHT: Micros = Micros::from_s(30);
/// The number of ticks to remember, to match snapshots with their states.
const TICKS: usize = 4096;
/// The most arrivals that may precede the record of their packet.
const EARLY: usize = 1 << 16;

/// The most chunks between a snapshot and its arrival at the client, or between a snapshot and its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReorderWindow {
    pub(crate) back: u32,
    pub(crate) ahead: u32,
}

/// The distances measured so far.
#[derive(Clone, Debug)]
pub(super) struct ReorderBounds {
    /// The longest flight time of any packet or snapshot.
    pub(super) longest: Micros,
    /// Whether no arrival comes before the record of its packet, or long after it.
    pub(super) all_is_known: bool,
    /// `None` if the distances are unknown.
    pub(super) near: Option<ReorderWindow>,
    as_they_arrived: bool,
    /// The number of the current chunk.
    chunk: u32,
    states: TickChunks,
    snapshots: TickChunks,
}

/// The first chunk of each of the last ticks.
#[derive(Clone, Debug, Default)]
struct TickChunks {
    first: SortedMap<u32, u32>,
    /// The newest forgotten tick.
    forgotten: Option<u32>,
}

/// Both directions of a player's connection: up, then down.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionNumbers([DirectionNumbers; 2]);

/// One direction of a player's connection.
#[derive(Clone, Debug, Default)]
struct DirectionNumbers {
    newest: Option<u32>,
    sent: SentPackets,
    /// The highest forgotten number.
    forgotten: Option<u32>,
    /// Arrivals before the record of their packet, with the chunk of the arrival. The record may also be missing.
    early: SortedMap<u32, u32>,
}

/// The packets of one direction that may still arrive.
#[derive(Clone, Debug, Default)]
struct SentPackets {
    /// In the order of their numbers, which is mostly the order of sending.
    packets: VecDeque<SentPacket>,
}

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    number: u32,
    at: Micros,
    /// The chunk with its record.
    chunk: u32,
}

impl Default for ReorderBounds {
    fn default() -> ReorderBounds {
        ReorderBounds {
            longest: Micros::ZERO,
            all_is_known: true,
            near: Some(ReorderWindow::default()),
            as_they_arrived: false,
            chunk: 0,
            states: TickChunks::default(),
            snapshots: TickChunks::default(),
        }
    }
}

impl ReorderBounds {
    /// Returns the bounds of a log before its first chunk. `as_they_arrived`: the log lists snapshots in the order of
    /// arrival, as a client's own log does.
    pub(super) fn new(as_they_arrived: bool) -> ReorderBounds {
        ReorderBounds { as_they_arrived, ..ReorderBounds::default() }
    }

    /// Returns the bounds of a partly surveyed log.
    pub(super) fn of_part(longest: Micros) -> ReorderBounds {
        ReorderBounds { longest, near: None, ..ReorderBounds::default() }
    }

    /// Measures the distances between states and snapshots of a chunk. Call it after [`ConnectionNumbers::add`] for each player.
    pub(super) fn end_of_chunk(&mut self, states: &States, players: &[PlayerRecords]) {
        let mut last = None;
        for tick in states.keys().iter().map(|key| key.tick.0) {
            if last.replace(tick) != Some(tick) {
                self.tick(tick, true);
            }
        }
        let snapshots = players.iter().flat_map(|player| &player.snapshots);
        let shown = snapshots.filter(|snapshot| !snapshot.entities.is_empty()).map(|snapshot| snapshot.tick.0);
        for tick in shown.collect::<SortedSet<u32>>() {
            self.tick(tick, false);
        }
        // Forgetting waits for the end of the chunk, because a chunk may hold any number of ticks.
        self.states.forget();
        self.snapshots.forget();
        self.chunk += 1;
    }

    /// Measures from the states (`is_state`) or snapshots of a tick to their counterpart.
    fn tick(&mut self, tick: u32, is_state: bool) {
        let (own, other) = match is_state {
            true => (&mut self.states, &self.snapshots),
            false => (&mut self.snapshots, &self.states),
        };
        let known = own.add(tick, self.chunk);
        let stands = other.first.get(&tick).map(|there| self.chunk - there);
        match (known && other.may_know(tick), stands) {
            (false, _) => self.near = None,
            (true, Some(apart)) if is_state => self.ahead(apart),
            (true, Some(apart)) => self.back(apart),
            (true, None) => {}
        }
    }

    /// Returns the number of chunks added.
    pub(super) fn chunks(&self) -> u32 {
        self.chunk
    }

    fn back(&mut self, chunks: u32) {
        self.near = self.near.map(|near| ReorderWindow { back: near.back.max(chunks), ..near });
    }

    fn ahead(&mut self, chunks: u32) {
        self.near = self.near.map(|near| ReorderWindow { ahead: near.ahead.max(chunks), ..near });
    }
}

impl TickChunks {
    /// Adds a tick, and returns whether its first chunk is known.
    fn add(&mut self, tick: u32, chunk: u32) -> bool {
        let known = self.may_know(tick);
        self.first.entry(tick).or_insert(chunk);
        known
    }

    fn forget(&mut self) {
        while self.first.len() > TICKS {
            self.forgotten = self.first.pop_first().map(|(tick, _)| tick).max(self.forgotten);
        }
    }

    /// Whether the first chunk of the tick, if any, would be known.
    fn may_know(&self, tick: u32) -> bool {
        self.forgotten.is_none_or(|forgotten| tick > forgotten) || self.first.contains_key(&tick)
    }
}

impl ConnectionNumbers {
    pub(super) fn of_senders(sends: [bool; 2]) -> ConnectionNumbers {
        ConnectionNumbers(
            sends.map(|sends| DirectionNumbers { newest: sends.then_some(0), ..DirectionNumbers::default() }),
        )
    }

    /// Whether anything was sent up, and down.
    pub(super) fn send(&self) -> [bool; 2] {
        self.0.each_ref().map(|numbers| numbers.newest.is_some())
    }

    pub(super) fn add(&mut self, records: &PlayerRecords, bounds: &mut ReorderBounds) {
        let [up, down] = &mut self.0;
        let sent = records.sent.iter().map(|packet| (packet.number, packet.at));
        let snapshots = records.snapshots.iter().map(|snapshot| (snapshot.seq.0, snapshot.at));
        // Open loop does not look up packets, so the upward direction does not change `near`.
        let near = bounds.near;
        up.add(sent, &records.reached, bounds);
        bounds.near = near;
        down.add(snapshots, &records.received, bounds);
    }
}

impl DirectionNumbers {
    /// Handles a number that follows a greater one, or repeats.
    fn out_of_order(&self, number: u32, bounds: &mut ReorderBounds) {
        bounds.all_is_known = false;
        let is_known = self.sent.get(number).is_some() || self.forgotten.is_some_and(|forgotten| number <= forgotten);
        match self.sent.from(number).map(|packet| packet.chunk).min() {
            Some(first_after) if bounds.as_they_arrived && !is_known => bounds.ahead(bounds.chunk - first_after),
            _ => bounds.near = None,
        }
    }

    fn add(
        &mut self,
        sent: impl Iterator<Item = (u32, Micros)>,
        arrivals: &[ArrivalRecord],
        bounds: &mut ReorderBounds,
    ) {
        let mut last = None;
        for (number, at) in sent {
            if self.newest.is_some_and(|newest| newest >= number) {
                self.out_of_order(number, bounds);
            }
            self.newest = self.newest.max(Some(number));
            self.sent.insert(SentPacket { number, at, chunk: bounds.chunk });
            if let Some(arrived) = self.early.remove(&number) {
                bounds.all_is_known = false;
                bounds.ahead(bounds.chunk - arrived);
            }
            last = Some(at);
        }
        for arrival in arrivals {
            match self.sent.get(arrival.number) {
                Some(packet) => {
                    bounds.longest = bounds.longest.max(arrival.at - packet.at);
                    bounds.back(bounds.chunk - packet.chunk);
                }
                None => {
                    self.early.insert(arrival.number, bounds.chunk);
                    let is_of_long_ago = self.forgotten.is_some_and(|forgotten| arrival.number <= forgotten);
                    if is_of_long_ago || self.early.len() > EARLY {
                        bounds.all_is_known = false;
                        bounds.near = None;
                    }
                }
            }
        }
        // Forgetting waits for the end of the chunk, because a chunk may last longer than [`LONGEST_FLIGHT`].
        let is_old = |sent: Micros| last.is_some_and(|last| sent + LONGEST_FLIGHT < last);
        while let Some(oldest) = self.sent.packets.pop_front_if(|oldest| is_old(oldest.at)) {
            self.forgotten = Some(oldest.number);
        }
    }
}

impl SentPackets {
    /// Returns the index of a number, or the index at which it belongs.
    fn index(&self, number: u32) -> Result<usize, usize> {
        // Numbers mostly have no gaps.
        let first = self.packets.front().map_or(0, |first| first.number);
        let index = number.saturating_sub(first) as usize;
        match self.packets.get(index) {
            Some(packet) if packet.number == number => Ok(index),
            _ => self.packets.binary_search_by_key(&number, |packet| packet.number),
        }
    }

    fn get(&self, number: u32) -> Option<&SentPacket> {
        self.index(number).ok().map(|index| &self.packets[index])
    }

    /// Returns the packets with this number or a higher one.
    fn from(&self, number: u32) -> impl Iterator<Item = &SentPacket> {
        self.packets.range(self.index(number).unwrap_or_else(|index| index)..)
    }

    /// Adds a packet. It replaces a packet with the same number.
    fn insert(&mut self, packet: SentPacket) {
        if self.packets.back().is_none_or(|last| last.number < packet.number) {
            self.packets.push_back(packet);
            return;
        }
        match self.index(packet.number) {
            Ok(index) => self.packets[index] = packet,
            Err(index) => self.packets.insert(index, packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_in_any_order_and_across_gaps() {
        let mut sent = SentPackets::default();
        for number in [5, 6, 9, 7, 12, 6] {
            sent.insert(SentPacket { number, at: Micros(number.into()), chunk: 0 });
        }
        let numbers: Vec<u32> = sent.packets.iter().map(|packet| packet.number).collect();
        assert_eq!(numbers, [5, 6, 7, 9, 12]);
        let found = |number: u32| sent.get(number).map(|packet| packet.at.0);
        assert_eq!([4, 5, 7, 8, 9, 12, 13].map(found), [None, Some(5), Some(7), None, Some(9), Some(12), None]);
        assert_eq!(sent.from(8).count(), 2);
    }
}
