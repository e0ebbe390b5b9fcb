//! One player's connection, collected from a log chunk by chunk.

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
}

/// The packets of one direction.
#[derive(Debug, Default)]
struct PacketNumbers {
    /// The lowest and the highest number.
    sent: Option<(u32, u32)>,
    came: NumberSet,
}

impl ConnectionBuilder {
    /// Adds the connection's part of the next chunk.
    pub(super) fn add(&mut self, outline: &PlayerOutline) {
        self.frames += outline.frames.len();
        self.firing += outline.firing;
        for (number, fires) in &outline.heard {
            self.heard_firing += usize::from(self.heard.insert(*number) && *fires);
        }
        let span = |of: &[(u32, Micros)]| of.first().zip(of.last()).map(|((_, first), (_, last))| (*first, *last));
        for (known, more) in self.spans.iter_mut().zip([span(&outline.frames), span(&outline.received)]) {
            *known = longer(*known, more);
        }
        self.up.send(outline.sent);
        for number in &outline.reached {
            self.up.came.insert(*number);
        }
        self.choked += outline.choked;
        outline.snapshots.iter().for_each(|(number, ..)| self.down.send(Some((*number, *number))));
        for (number, _) in &outline.received {
            self.down.came.insert(*number);
        }
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
    fn send(&mut self, numbers: Option<(u32, u32)>) {
        self.sent = match (self.sent, numbers) {
            (Some((first, last)), Some((lowest, highest))) => Some((first.min(lowest), last.max(highest))),
            (known, more) => known.or(more),
        };
    }

    /// Counts the packets. A receiver's recording shows losses only as gaps in the numbers, so missing numbers count as
    /// sent.
    fn packets(&self) -> PacketCounts {
        let sent = self.sent.map(|(first, last)| u64::from(last.saturating_sub(first)) + 1);
        let received = (self.came.count() > 0).then_some(self.came.count() as u64);
        let lost = self.sent.zip(self.came.highest()).zip(sent.zip(received));
        let lost = lost.map(|(((first, _), newest), (sent, received))| {
            Delivery { sent, settled: u64::from(newest.saturating_sub(first)) + 1, received }.lost()
        });
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
}
