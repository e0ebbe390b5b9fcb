//! The states of one entity that a client has received.

use std::collections::VecDeque;

use super::WINDOW;
use crate::game::Body;
use crate::state::value;
use hitreg_log::units::SnapshotSeq;

/// States sorted by the snapshot that carried them; `None` where the entity was removed.
#[derive(Clone, Debug)]
pub(crate) struct StateRing<B> {
    states: VecDeque<(SnapshotSeq, Option<B>)>,
}

impl<B> Default for StateRing<B> {
    fn default() -> StateRing<B> {
        StateRing { states: VecDeque::new() }
    }
}

value!(StateRing<B: Body> { states });

impl<B> StateRing<B> {
    /// Returns whether a client whose newest snapshot is `newest` can hold these states.
    pub(crate) fn is_valid(&self, newest: SnapshotSeq) -> bool {
        let in_order = self.states.iter().is_sorted_by(|(a, _), (b, _)| a < b);
        // One state may be older than the window.
        let most = WINDOW as usize + 1;
        in_order && self.states.len() <= most && self.states.back().is_none_or(|(seq, _)| *seq <= newest)
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns the state that snapshot `seq` itself carried.
    pub(crate) fn carried_by(&self, seq: SnapshotSeq) -> Option<&B> {
        let (at, state) = &self.states[self.after(seq).checked_sub(1)?];
        state.as_ref().filter(|_| *at == seq)
    }

    /// Returns the state as of snapshot `seq`: the newest one that it or an older snapshot carried.
    pub(crate) fn at(&self, seq: SnapshotSeq) -> Option<&B> {
        self.states[self.after(seq).checked_sub(1)?].1.as_ref()
    }

    /// Returns the index of the first state after snapshot `seq`. Searches from the end, because most lookups are
    /// recent.
    fn after(&self, seq: SnapshotSeq) -> usize {
        self.states.iter().rposition(|(at, _)| *at <= seq).map_or(0, |last| last + 1)
    }

    pub(crate) fn insert(&mut self, seq: SnapshotSeq, state: Option<B>) {
        let after = self.after(seq);
        self.states.insert(after, (seq, state));
    }

    /// Drops states that no snapshot in the window before `newest` can need: all states outside the window except the
    /// newest of them. Returns false when the ring holds nothing useful.
    pub(crate) fn forget(&mut self, newest: SnapshotSeq) -> bool {
        let is_out = |seq: SnapshotSeq| newest.0.saturating_sub(seq.0) >= WINDOW;
        while self.states.get(1).is_some_and(|(seq, _)| is_out(*seq)) {
            self.states.pop_front();
        }
        match (self.states.len(), self.states.front()) {
            (0, _) => false,
            (1, Some((seq, None))) => !is_out(*seq),
            _ => true,
        }
    }
}
