//! Round trips of a client: from making a usercmd to receiving a snapshot that acks the usercmd. Every snapshot that
//! arrived counts, also a late one and one that repeats an ack.

use std::collections::VecDeque;

use crate::record::PlayerOutline;
use crate::sorted::SortedMap;
use crate::units::Micros;

/// After this time, a missing snapshot counts as lost, and a usercmd can get no ack.
const LONGEST: Micros = Micros::from_s(30);
/// This many frames are kept whatever their age, because the server keeps acking the last usercmd of a silent client.
const FRAMES_KEPT: usize = 64;

/// Finds a client's round trips, chunk by chunk.
#[derive(Debug, Default)]
pub struct SnapshotRoundTrips {
    /// The last frames, by ascending numbers.
    made: VecDeque<(u32, Micros)>,
    /// When the player left last.
    left: Option<Micros>,
    /// Snapshots that have not arrived: when each was sent, and when the usercmd that it acks was made.
    sent: SortedMap<u32, (Micros, Option<Micros>)>,
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
            if let Some((_, Some(made))) = self.sent.remove(number) {
                found(*at, *at - made);
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
}
