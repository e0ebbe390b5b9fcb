//! One player's connection, collected from a log chunk by chunk.

use std::collections::VecDeque;

use super::numbers::NumberSet;
use super::times::TimeCounts;
use super::{PacketCounts, PlayerFigures};
use hitreg_log::record::PlayerOutline;
use hitreg_log::round_trips::SnapshotRoundTrips;
use hitreg_log::stats::Delivery;
use hitreg_log::units::Micros;

/// The state of a connection so far.
#[derive(Debug, Default)]
pub(super) struct ConnectionBuilder {
    pub(super) frames: usize,
    firing: usize,
    /// Usercmds that the server received; used if the client's own records are missing.
    heard: NumberSet,
    heard_firing: usize,
    /// The times of the first and last frame, and of the first and last snapshot.
    pub(super) spans: [Option<(Micros, Micros)>; 2],
    up: PacketNumbers,
    down: PacketNumbers,
    choked: u64,
    pub(super) round_trips: TimeCounts,
    acks: SnapshotRoundTrips,
    /// The ends of gaps after which no snapshot was sent yet.
    gap_ends: VecDeque<Micros>,
    /// The number of gaps after which no packet to the server was sent yet.
    gaps_up: usize,
}

/// The packets of one direction. Packets whose records lie in a gap do not count.
#[derive(Debug, Default)]
struct PacketNumbers {
    /// The lowest and the highest number since the last gap.
    sent: Option<(u32, u32)>,
    /// The packets since the last gap that arrived.
    came: NumberSet,
    /// The packets before the last gap; `None` without a gap.
    before: Option<Delivery>,
}

impl ConnectionBuilder {
    /// Adds the connection's part of the next chunk. `gap_ends` are the ends of the gaps in the chunk.
    pub(super) fn add(&mut self, outline: &PlayerOutline, gap_ends: impl Iterator<Item = Micros>) {
        let gaps = self.gap_ends.len();
        self.gap_ends.extend(gap_ends);
        self.gaps_up += self.gap_ends.len() - gaps;
        self.frames += outline.frames.len();
        self.firing += outline.firing;
        for (number, fires) in &outline.heard {
            self.heard_firing += usize::from(self.heard.insert(*number) && *fires);
        }
        let span = |of: &[(u32, Micros)]| of.first().zip(of.last()).map(|((_, first), (_, last))| (*first, *last));
        for (known, more) in self.spans.iter_mut().zip([span(&outline.frames), span(&outline.received)]) {
            *known = longer(*known, more);
        }
        let mut reached = outline.reached.iter().peekable();
        for run in &outline.sent {
            if let Some(last) = self.up.last_before(*run).filter(|_| self.gaps_up > 0) {
                while let Some(number) = reached.next_if(|number| **number <= last) {
                    self.up.arrive(*number);
                }
                self.up.end_stretch();
                self.gaps_up -= 1;
            }
            self.up.send(*run);
        }
        reached.for_each(|number| self.up.arrive(*number));
        self.choked += outline.choked;
        let mut received = outline.received.iter().peekable();
        for (number, at, _) in &outline.snapshots {
            // The arrivals before the end of a gap are those of snapshots before it.
            while let Some(end) = self.gap_ends.pop_front_if(|end| *end <= *at) {
                while let Some((arrived, _)) = received.next_if(|(_, at)| *at < end) {
                    self.down.arrive(*arrived);
                }
                self.down.end_stretch();
            }
            self.down.send((*number, *number));
        }
        received.for_each(|(number, _)| self.down.arrive(*number));
        let ConnectionBuilder { acks, round_trips, .. } = self;
        acks.add(outline, &mut |_, took| round_trips.add(took));
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.frames > 0 || self.down.came.count() > 0 || self.down.sent.is_some() || self.heard.count() > 0
    }

    /// How many usercmds the player made, and how many with the attack button pressed.
    pub(super) fn usercmds(&self) -> (usize, usize) {
        if self.frames > 0 { (self.frames, self.firing) } else { (self.heard.count(), self.heard_firing) }
    }

    pub(super) fn figures(&mut self, name: &str, choked_are_numbered: bool) -> PlayerFigures {
        // A QuakeWorld server also numbers the updates that it holds back, so each leaves a gap like a lost packet. The
        // next update says how many they were.
        let down = self.down.packets();
        let numbered = if choked_are_numbered { self.choked } else { 0 };
        let lost = down.lost.map(|lost| lost.saturating_sub(numbered));
        PlayerFigures {
            name: name.to_owned(),
            usercmds: self.usercmds().0,
            packets: PacketCounts { choked: down.sent.map(|_| self.choked), lost, ..down },
            packets_up: self.up.packets(),
            rtt_ms: self.round_trips.percentiles(),
        }
    }
}

impl PacketNumbers {
    /// The last number before a run, if packets between that number and the run are missing.
    fn last_before(&self, (next, _): (u32, u32)) -> Option<u32> {
        self.sent.map(|(_, last)| last).filter(|last| next > last.saturating_add(1))
    }

    /// Begins to count anew after a gap. Packets in flight before the gap do not count, because they may have arrived
    /// in it.
    fn end_stretch(&mut self) {
        let Some((_, last)) = self.sent else { return };
        let now = self.delivery(self.came.highest().unwrap_or(last));
        let before = self.before.unwrap_or_default();
        let [sent, received] = [before.sent + now.settled, before.received + now.received];
        *self = PacketNumbers { before: Some(Delivery { sent, settled: sent, received }), ..PacketNumbers::default() };
    }

    /// Adds a packet that arrived. A packet from before the gap does not count.
    fn arrive(&mut self, number: u32) {
        if self.before.is_none() || self.sent.is_some_and(|(first, _)| first <= number) {
            self.came.insert(number);
        }
    }

    /// The packets since the last gap, of which those up to `newest` are settled.
    fn delivery(&self, newest: u32) -> Delivery {
        let count = |last: u32, first: u32| u64::from(last.saturating_sub(first)) + 1;
        let received = self.came.count() as u64;
        match self.sent {
            Some((first, last)) => Delivery { sent: count(last, first), settled: count(newest, first), received },
            None => Delivery { received, ..Delivery::default() },
        }
    }

    fn send(&mut self, (lowest, highest): (u32, u32)) {
        let (first, last) = self.sent.unwrap_or((lowest, highest));
        self.sent = Some((first.min(lowest), last.max(highest)));
    }

    /// Counts the packets. A receiver's recording shows losses only as gaps in the numbers, so missing numbers count as
    /// sent.
    fn packets(&self) -> PacketCounts {
        let before = self.before.unwrap_or_default();
        let now = self.delivery(self.came.highest().unwrap_or_default());
        let sent = (self.sent.is_some() || self.before.is_some()).then_some(before.sent + now.sent);
        let received = Some(before.received + now.received).filter(|received| *received > 0);
        let lost = if self.came.count() > 0 { now.lost() } else { 0 };
        let lost = sent.and(received).map(|_| before.lost() + lost);
        PacketCounts { sent, received, lost, choked: None }
    }
}

/// From the beginning of the first span to the end of the later one.
pub(super) fn longer<T>(known: Option<(T, T)>, later: Option<(T, T)>) -> Option<(T, T)> {
    match (known, later) {
        (Some((first, _)), Some((_, last))) => Some((first, last)),
        (known, later) => known.or(later),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_a_receivers_recording_are_losses() {
        let mut numbers = PacketNumbers { sent: Some((11, 15)), ..PacketNumbers::default() };
        assert_eq!([11, 12, 15, 12].map(|number| numbers.came.insert(number)), [true, true, true, false]);
        assert_eq!(numbers.packets(), PacketCounts { sent: Some(5), received: Some(3), lost: Some(2), choked: None });
    }

    /// The packets from 4 to 13 and their arrivals are not recorded.
    #[test]
    fn packets_in_a_gap_are_not_lost() {
        let mut numbers = PacketNumbers::default();
        numbers.send((1, 5));
        [1, 3].into_iter().for_each(|number| numbers.arrive(number));
        assert_eq!(numbers.last_before((14, 17)), Some(5));
        numbers.end_stretch();
        numbers.send((14, 17));
        [12, 14, 16].into_iter().for_each(|number| numbers.arrive(number));
        assert_eq!(numbers.packets(), PacketCounts { sent: Some(7), received: Some(4), lost: Some(2), choked: None });
    }
}
