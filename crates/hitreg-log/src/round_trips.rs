//! Round trips of a client: from making a usercmd to receiving the first snapshot that acks it. A snapshot that repeats an
//! ack, or arrives after a later ack, ends no round trip.

use std::collections::VecDeque;

use crate::record::PlayerOutline;
use crate::sorted::SortedMap;
use crate::units::Micros;

/// After this time, a missing snapshot counts as lost, and a usercmd can get no ack.
const ROUND_TRIP_MAX: Micros = Micros::from_s(30);
/// This many frames are kept whatever their age, because the server keeps acking the last usercmd of a silent client.
const FRAMES_KEPT: usize = 64;

/// Finds a client's round trips, chunk by chunk.
#[derive(Debug, Default)]
pub struct SnapshotRoundTrips {
    /// The last frames, by ascending numbers.
    made: VecDeque<(u32, Micros)>,
    /// When the player left last.
    left: Option<Micros>,
    /// Snapshots that have not arrived: when each was sent, and the usercmd that it acks.
    sent: SortedMap<u32, (Micros, Option<MadeUsercmd>)>,
    /// The newest acked usercmd.
    acked: NewestAck,
}

/// When a usercmd was made, and its number. Usercmds are ordered by their times, because a player who rejoins may use
/// numbers again.
pub type MadeUsercmd = (Micros, u32);

/// The newest usercmd whose ack a client has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewestAck(Option<MadeUsercmd>);

impl NewestAck {
    /// Takes the next ack that arrives. Returns whether it is the first one of its usercmd.
    pub fn is_first(&mut self, usercmd: MadeUsercmd) -> bool {
        let is_newer = self.0.is_none_or(|newest| usercmd > newest);
        if is_newer {
            self.0 = Some(usercmd);
        }
        is_newer
    }
}

impl SnapshotRoundTrips {
    /// Adds the connection's part of the next chunk. Passes on the arrival time and the duration of each round trip.
    pub fn add(&mut self, outline: &PlayerOutline, found: &mut dyn FnMut(Micros, Micros)) {
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
            if let Some((_, Some(usercmd))) = self.sent.remove(number)
                && self.acked.is_first(usercmd)
            {
                found(*at, *at - usercmd.0);
            }
        }
        self.left = outline.left.last().copied().or(self.left);
        newest.into_iter().for_each(|newest| self.forget(newest));
    }

    /// Adds a snapshot that was sent.
    fn send(&mut self, (number, at, ack): (u32, Micros, u32), outline: &PlayerOutline) {
        let left = outline.left.iter().rev().find(|left| **left < at).copied().or(self.left);
        // A player who left was absent between the usercmd and its ack.
        let made = self.made_at(ack).filter(|made| left.is_none_or(|left| *made > left || at <= left));
        self.sent.insert(number, (at, made.map(|made| (made, ack))));
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
        let since = newest.0.saturating_sub(ROUND_TRIP_MAX.0);
        while self.made.len() > FRAMES_KEPT && self.made.front().is_some_and(|(_, at)| at.0 < since) {
            self.made.pop_front();
        }
        while let Some(oldest) = self.sent.first_entry().filter(|oldest| oldest.get().0.0 < since) {
            oldest.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(outline: &PlayerOutline) -> Vec<i64> {
        let (mut trips, mut found) = (SnapshotRoundTrips::default(), Vec::new());
        trips.add(outline, &mut |_, took| found.push(took.0));
        found
    }

    /// Usercmds are made at 10, 20 and 30 µs.
    fn outline(snapshots: &[(u32, i64, u32)], received: &[(u32, i64)]) -> PlayerOutline {
        PlayerOutline {
            frames: (1..=3).map(|number| (number, Micros(10 * i64::from(number)))).collect(),
            snapshots: snapshots.iter().map(|(number, at, ack)| (*number, Micros(*at), *ack)).collect(),
            received: received.iter().map(|(number, at)| (*number, Micros(*at))).collect(),
            ..PlayerOutline::default()
        }
    }

    #[test]
    fn only_the_first_ack_of_a_usercmd_ends_its_round_trip() {
        let repeated = outline(&[(1, 40, 1), (2, 50, 1), (3, 60, 3)], &[(1, 45), (2, 55), (3, 65)]);
        assert_eq!(found(&repeated), [35, 35]);
        let overtaken = outline(&[(1, 40, 1), (2, 50, 2), (3, 60, 3)], &[(2, 55), (1, 58), (3, 65)]);
        assert_eq!(found(&overtaken), [35, 35]);
    }

    #[test]
    fn usercmds_of_one_time_and_numbers_used_again_have_round_trips() {
        let mut at_once = outline(&[(1, 40, 1), (2, 50, 2), (3, 60, 3)], &[(1, 45), (2, 55), (3, 65)]);
        at_once.frames.iter_mut().for_each(|(_, at)| *at = Micros(10));
        assert_eq!(found(&at_once), [35, 45, 55]);
        let mut trips = SnapshotRoundTrips::default();
        let mut found = Vec::new();
        trips.add(&outline(&[(1, 40, 3)], &[(1, 45)]), &mut |_, took| found.push(took.0));
        let mut again = outline(&[(2, 140, 1)], &[(2, 145)]);
        again.frames.iter_mut().for_each(|(_, at)| *at += Micros(100));
        trips.add(&again, &mut |_, took| found.push(took.0));
        assert_eq!(found, [15, 35]);
    }
}
