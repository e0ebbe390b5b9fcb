//! The position of a feed for a keyframe, and resuming a feed from it.

use std::collections::VecDeque;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{Feed, PacketFates, PlayerFeed};
use crate::link::Fate;
use hitreg_log::record::SessionStretch;
use hitreg_log::units::{CommandSeq, Micros, Tick};

/// The recent chunks, each with its number and its newest time.
pub(super) struct NearbyChunks {
    next: usize,
    stretches: VecDeque<(usize, Micros, Rc<SessionStretch>)>,
    /// Keyframes before this time are done, so chunks that end earlier are not needed.
    since: Micros,
}

impl NearbyChunks {
    /// Adds the next chunk as read.
    pub(super) fn add(&mut self, stretch: &SessionStretch, newest: Option<Micros>) {
        let newest = newest.unwrap_or(Micros(i64::MIN));
        if !self.stretches.is_empty() || newest >= self.since {
            self.stretches.push_back((self.next, newest, Rc::new(stretch.clone())));
        }
        self.next += 1;
    }

    fn forget_before(&mut self, at: Micros) {
        while self.stretches.front().is_some_and(|(_, newest, _)| *newest < at) {
            self.stretches.pop_front();
        }
    }
}

/// The keyframe's tick, and the last usercmd that each player had used before it.
pub(super) struct ResumePoint {
    pub(super) tick: Tick,
    pub(super) taken: Vec<CommandSeq>,
}

/// The state of a feed that the log near the keyframe does not hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::replay) struct FeedCheckpoint {
    players: Vec<ResumedPlayer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ResumedPlayer {
    frames_left: u64,
    taken: CommandSeq,
    /// In each direction.
    passed: [Option<LastPassed>; 2],
}

/// The last used packet: number, send time, and first and second arrival.
type LastPassed = (u32, Micros, Option<Micros>, Option<Micros>);

impl FeedCheckpoint {
    pub(in crate::replay) fn players(&self) -> usize {
        self.players.len()
    }
}

impl Feed<'_> {
    /// Starts to keep recent chunks; the next chunk has the number `next`.
    pub(in crate::replay) fn keep_near(&mut self, next: usize) {
        self.near = Some(NearbyChunks { next, stretches: VecDeque::new(), since: Micros(i64::MIN) });
    }

    /// Drops the chunks that end before `at`; no later keyframe needs them.
    pub(in crate::replay) fn keep_since(&mut self, at: Micros) {
        if let Some(near) = &mut self.near {
            near.since = at;
            near.forget_before(at);
        }
    }

    /// Resumes after a tick, from the state that another feed saved. The chunk numbered `next` comes next.
    pub(in crate::replay) fn resume(&mut self, (tick, at): (Tick, Micros), next: usize, fed: &FeedCheckpoint) {
        for (of, fed) in self.players.iter_mut().zip(&fed.players) {
            of.frames_left = fed.frames_left;
            for (packets, passed) in [&mut of.fates.up, &mut of.fates.down].into_iter().zip(fed.passed) {
                packets.sent.extend(passed.map(|(number, at, first, second)| (number, at, Fate { first, second })));
                (packets.begun, packets.passed) = (passed.is_some(), passed.is_some());
            }
        }
        let taken = fed.players.iter().map(|player| player.taken).collect();
        self.before = Some(ResumePoint { tick, taken });
        (self.compared, self.now) = (tick.0 as usize, at);
        self.keep_near(next);
    }

    /// Reads up to `at`. Returns the kept chunks that end at most `reach` earlier, and the number of the first.
    pub(in crate::replay) fn near(&mut self, at: Micros, reach: Micros) -> (usize, Vec<Rc<SessionStretch>>) {
        self.read_until(at);
        let Some(near) = &mut self.near else { return (0, Vec::new()) };
        near.forget_before(at - reach);
        let first = near.stretches.front().map_or(near.next, |(number, ..)| *number);
        (first, near.stretches.iter().map(|(_, _, stretch)| Rc::clone(stretch)).collect())
    }

    /// Stops keeping recent chunks.
    pub(in crate::replay) fn forget_near(&mut self) {
        self.near = None;
    }

    /// Returns the feed's state for a keyframe. Returns `None` if a player is known only by heard packets, or if a
    /// packet older than `reach` is still unused.
    pub(in crate::replay) fn checkpoint(&self, at: Micros, reach: Micros) -> Option<FeedCheckpoint> {
        let heard_only = (0..self.players.len()).any(|player| self.survey.is_heard_only(player));
        let is_lost = |packets: &PacketFates| {
            !packets.begun && packets.sent.front().is_some_and(|(_, sent, _)| *sent < at - reach)
        };
        if heard_only || self.players.iter().any(|of| is_lost(&of.fates.up) || is_lost(&of.fates.down)) {
            return None;
        }
        let passed = |packets: &PacketFates| {
            let front = packets.sent.front().filter(|_| packets.begun).copied();
            front.map(|(number, sent, Fate { first, second })| (number, sent, first, second))
        };
        let of = |of: &PlayerFeed| ResumedPlayer {
            frames_left: of.frames_left,
            taken: of.taken,
            passed: [passed(&of.fates.up), passed(&of.fates.down)],
        };
        Some(FeedCheckpoint { players: self.players.iter().map(of).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::ArrivalRecord;

    fn passed() -> PacketFates {
        let fate = Fate { first: Some(Micros::from_ms(30)), second: None };
        PacketFates { sent: [(5, Micros::from_ms(10), fate)].into(), begun: true, passed: true }
    }

    fn arrives(number: u32, ms: i64) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros::from_ms(ms) }
    }

    fn fates(packets: &PacketFates) -> Vec<(u32, Option<i64>, Option<i64>)> {
        let ms = |at: Option<Micros>| at.map(|at| at.0 / 1_000);
        packets.sent.iter().map(|(number, _, fate)| (*number, ms(fate.first), ms(fate.second))).collect()
    }

    #[test]
    fn the_fate_of_a_passed_packet_is_not_used_twice() {
        let mut packets = passed();
        packets.add([(6, Micros::from_ms(20))].into_iter(), &[arrives(5, 30), arrives(6, 40)]);
        assert_eq!(fates(&packets), [(5, Some(30), None), (6, Some(40), None)]);
        packets.add([].into_iter(), &[arrives(4, 50), arrives(5, 33)]);
        assert_eq!(fates(&packets), [(5, Some(30), Some(33)), (6, Some(40), None)], "that it came twice is news");
    }

    #[test]
    fn a_chunk_with_the_packet_gives_its_complete_fate() {
        let mut packets = passed();
        let sent = [(4, 5), (5, 10), (6, 20)].map(|(number, ms)| (number, Micros::from_ms(ms)));
        packets.add(sent.into_iter(), &[arrives(4, 20), arrives(5, 30), arrives(5, 31)]);
        assert_eq!(fates(&packets), [(5, Some(30), Some(31)), (6, None, None)]);
    }
}
