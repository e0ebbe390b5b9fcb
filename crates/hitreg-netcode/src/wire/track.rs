//! The server's record of what one client knows about one entity: the acked state, and the states sent since. Each of
//! the latter may have arrived.
//!
//! The server never assumes that a packet is lost. It omits an entity only if every state that the client may hold
//! equals the true one. With enough room, the client's frame therefore equals the server's frame exactly, whatever
//! packets were lost.

use std::collections::VecDeque;
use std::sync::Arc;

use super::WINDOW;
use crate::bounded::push_bounded;
use crate::state::value;
use hitreg_log::units::SnapshotSeq;

/// A state that a snapshot carried; `None` when the snapshot removed the entity.
#[derive(Clone, Debug)]
pub(crate) struct HeldState {
    pub(crate) seq: SnapshotSeq,
    pub(crate) cells: Option<Arc<[u32]>>,
}

/// One client's knowledge of one entity.
#[derive(Clone, Debug)]
pub(crate) struct EntityTrack {
    /// The last acked state. `None` after more than [`WINDOW`] sends without an ack.
    acked: Option<HeldState>,
    /// The states sent since, oldest first.
    sent: VecDeque<HeldState>,
    /// The number of consecutive packets that needed the entity but had no room for it.
    pub(crate) waited: u32,
}

/// The snapshots that a client has received: the newest, and one bit for each of the 32 before it. The lowest bit is
/// the snapshot just before the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSet {
    /// The newest snapshot received; 0 when there is none.
    pub newest: SnapshotSeq,
    /// The bits of the 32 snapshots before the newest.
    pub before: u32,
}

impl ReceivedSet {
    /// Returns whether the client is known to have received a snapshot.
    pub fn contains(&self, seq: SnapshotSeq) -> bool {
        match self.newest.0.checked_sub(seq.0) {
            _ if seq.0 == 0 => false,
            Some(0) => true,
            Some(distance @ 1..=32) => self.before & (1 << (distance - 1)) != 0,
            _ => false,
        }
    }
}

value!(HeldState { seq, cells });
value!(EntityTrack { acked, sent, waited });

impl EntityTrack {
    /// Creates the record of an entity that was never sent to the client.
    pub(crate) fn new() -> EntityTrack {
        let unheard = HeldState { seq: SnapshotSeq(0), cells: None };
        EntityTrack { acked: Some(unheard), sent: VecDeque::new(), waited: 0 }
    }

    /// Returns whether the client may hold a state other than `truth`.
    pub(crate) fn needs(&self, truth: Option<&Arc<[u32]>>) -> bool {
        let differs = |held: &HeldState| held.cells.as_ref() != truth;
        self.acked.as_ref().is_none_or(differs) || self.sent.iter().any(differs)
    }

    /// Returns the state that the client has if no snapshot was lost; `None` for an entity that it does not know.
    pub(crate) fn last_sent(&self) -> Option<&Arc<[u32]>> {
        self.sent.back().or(self.acked.as_ref())?.cells.as_ref()
    }

    /// Returns whether `truth` is the last state sent.
    pub(crate) fn is_echo(&self, truth: Option<&Arc<[u32]>>) -> bool {
        self.sent.back().is_some_and(|held| held.cells.as_ref() == truth)
    }

    /// Returns the base for snapshot `now`: the acked state, if the client still keeps it. A client drops a state once
    /// it has a newer one that is itself outside the window.
    pub(crate) fn base(&self, now: SnapshotSeq) -> Option<(SnapshotSeq, &Arc<[u32]>)> {
        let acked = self.acked.as_ref()?;
        let cells = acked.cells.as_ref()?;
        let forgotten = self.sent.front().is_some_and(|next| now.0 - next.seq.0 > WINDOW);
        (!forgotten).then_some((acked.seq, cells))
    }

    pub(crate) fn remember_sent(&mut self, seq: SnapshotSeq, cells: Option<Arc<[u32]>>) {
        self.waited = 0;
        if push_bounded(&mut self.sent, HeldState { seq, cells }, WINDOW as usize).is_some() {
            self.acked = None;
        }
    }

    pub(crate) fn handle_ack(&mut self, received: &ReceivedSet) {
        if let Some(index) = self.sent.iter().rposition(|held| received.contains(held.seq)) {
            self.acked = self.sent.drain(..=index).next_back();
        }
    }

    /// Returns whether a client to which snapshots up to `last` were sent can know these states.
    pub(crate) fn is_valid(&self, last: SnapshotSeq, cells: usize) -> bool {
        let held = || self.acked.iter().chain(&self.sent);
        self.waited <= last.0
            && self.sent.len() <= WINDOW as usize
            && held().is_sorted_by(|a, b| a.seq < b.seq)
            && held().all(|held| held.seq <= last && held.cells.as_ref().is_none_or(|held| held.len() == cells))
    }

    /// Returns whether both sides agree that the entity does not exist.
    pub(crate) fn is_over(&self) -> bool {
        self.sent.is_empty() && self.acked.as_ref().is_some_and(|held| held.cells.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(word: u32) -> Option<Arc<[u32]>> {
        Some(Arc::from([word]))
    }

    fn ack(newest: u32, before: u32) -> ReceivedSet {
        ReceivedSet { newest: SnapshotSeq(newest), before }
    }

    #[test]
    fn sets_hold_the_newest_and_32_before() {
        let set = ack(40, 0x8000_0001);
        let held: Vec<u32> = (0..50).filter(|seq| set.contains(SnapshotSeq(*seq))).collect();
        assert_eq!(held, [8, 39, 40]);
        assert!(!ack(1, u32::MAX).contains(SnapshotSeq(0)));
    }

    #[test]
    fn a_change_is_needed_until_nothing_else_can_be_known() {
        let mut track = EntityTrack::new();
        assert!(!track.needs(None));
        assert!(track.needs(cells(1).as_ref()));
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.needs(cells(1).as_ref()) && track.is_echo(cells(1).as_ref()));
        track.handle_ack(&ack(1, 0));
        assert!(!track.needs(cells(1).as_ref()));
        // A and B are in transit, and then A again: the client may end with B.
        track.remember_sent(SnapshotSeq(2), cells(2));
        assert!(track.needs(cells(1).as_ref()));
        track.remember_sent(SnapshotSeq(3), cells(1));
        track.handle_ack(&ack(3, 0));
        assert!(!track.needs(cells(1).as_ref()));
    }

    #[test]
    fn baselines_are_states_that_the_client_has() {
        let mut track = EntityTrack::new();
        assert!(track.base(SnapshotSeq(1)).is_none());
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.base(SnapshotSeq(2)).is_none());
        track.handle_ack(&ack(2, 1));
        assert_eq!(track.base(SnapshotSeq(5_000)).map(|(seq, _)| seq), Some(SnapshotSeq(1)));
        track.remember_sent(SnapshotSeq(5_000), cells(2));
        assert!(track.base(SnapshotSeq(5_000 + WINDOW)).is_some());
        assert!(track.base(SnapshotSeq(5_001 + WINDOW)).is_none());
    }

    #[test]
    fn states_are_unknown_after_a_long_silence() {
        let mut track = EntityTrack::new();
        for seq in 1..=WINDOW + 1 {
            track.remember_sent(SnapshotSeq(seq), cells(7));
        }
        assert!(track.needs(cells(7).as_ref()) && track.base(SnapshotSeq(100)).is_none());
        track.handle_ack(&ack(WINDOW + 1, 0));
        assert!(!track.needs(cells(7).as_ref()));
    }

    #[test]
    fn an_entity_removed_on_both_sides_is_forgotten() {
        let mut track = EntityTrack::new();
        track.remember_sent(SnapshotSeq(1), cells(1));
        track.remember_sent(SnapshotSeq(2), None);
        assert!(!track.is_over());
        track.handle_ack(&ack(2, 0));
        assert!(track.is_over());
    }
}
