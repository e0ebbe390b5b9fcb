//! One player's connection, collected from a log chunk by chunk.

use std::collections::VecDeque;

use super::numbers::NumberSet;
use super::times::TimeCounts;
use super::{PacketCounts, PlayerFigures};
use hitreg_log::record::PlayerOutline;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::Delivery;
use hitreg_log::units::Micros;

/// After this time, a missing snapshot counts as lost, and a usercmd can get no ack.
const LONGEST: Micros = Micros::from_s(30);
/// This many frames are kept whatever their age, because the server keeps acking the last usercmd of a silent client.
const FRAMES_KEPT: usize = 64;

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
    /// The last frames, by ascending numbers.
    made: VecDeque<(u32, Micros)>,
    /// When the player left last.
    left: Option<Micros>,
    /// Snapshots that have not arrived: when each was sent, and when the usercmd that it acks was made.
    sent: SortedMap<u32, (Micros, Option<Micros>)>,
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
        let mut snapshots = outline.snapshots.iter().peekable();
        for frame in &outline.frames {
            // Earlier snapshots ack the earlier usercmds of these numbers.
            while self.is_known(frame.0)
                && let Some(snapshot) = snapshots.next_if(|(_, at, _)| *at < frame.1)
            {
                self.send(*snapshot, outline);
            }
            self.make(*frame);
        }
        snapshots.for_each(|snapshot| self.send(*snapshot, outline));
        let newest = outline.frames.iter().chain(&outline.received).map(|(_, at)| *at);
        let sent = outline.snapshots.iter().map(|(_, at, _)| *at);
        let newest = newest.chain(sent).max();
        for (number, at) in &outline.received {
            self.down.came.insert(*number);
            if let Some((_, Some(made))) = self.sent.remove(number) {
                self.round_trips.add(*at - made);
            }
        }
        self.left = outline.left.last().copied().or(self.left);
        newest.into_iter().for_each(|newest| self.forget(newest));
    }

    /// Adds a snapshot that was sent.
    fn send(&mut self, (number, at, ack): (u32, Micros, u32), outline: &PlayerOutline) {
        self.down.send(Some((number, number)));
        let left = outline.left.iter().rev().find(|left| **left < at).copied().or(self.left);
        // A player who left was absent between the usercmd and its ack.
        let made = self.made_at(ack).filter(|made| left.is_none_or(|left| *made > left || at <= left));
        self.sent.insert(number, (at, made));
    }

    fn is_known(&self, usercmd: u32) -> bool {
        let is_old = self.made.back().is_some_and(|(last, _)| usercmd <= *last);
        is_old && self.made.binary_search_by_key(&usercmd, |(number, _)| *number).is_ok()
    }

    /// Adds a frame. A player who rejoins may begin with usercmd 1 again; acks are then those of the newest usercmds.
    fn make(&mut self, frame: (u32, Micros)) {
        if self.made.back().is_none_or(|(last, _)| *last < frame.0) {
            return self.made.push_back(frame);
        }
        match self.made.binary_search_by_key(&frame.0, |(number, _)| *number) {
            Ok(place) => {
                self.made.truncate(place);
                self.made.push_back(frame);
            }
            Err(place) => self.made.insert(place, frame),
        }
    }

    /// When a usercmd was made. The last few are searched first, because most acks are for them.
    fn made_at(&self, number: u32) -> Option<Micros> {
        const FEW: usize = 32;
        let few = self.made.len().saturating_sub(FEW);
        let found = match self.made.get(few) {
            Some((first, _)) if *first <= number => {
                self.made.range(few..).rev().find(|(made, _)| *made <= number).filter(|(made, _)| *made == number)
            }
            _ => self.made.binary_search_by_key(&number, |(made, _)| *made).ok().map(|place| &self.made[place]),
        };
        found.map(|(_, at)| *at)
    }

    fn forget(&mut self, newest: Micros) {
        let since = newest.0.saturating_sub(LONGEST.0);
        while self.made.len() > FRAMES_KEPT && self.made.front().is_some_and(|(_, at)| at.0 < since) {
            self.made.pop_front();
        }
        while let Some(oldest) = self.sent.first_entry().filter(|oldest| oldest.get().0.0 < since) {
            oldest.remove();
        }
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
