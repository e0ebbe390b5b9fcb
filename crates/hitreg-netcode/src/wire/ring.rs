//! The states of one entity that a client has received.

use std::collections::VecDeque;

use super::WINDOW;
use hitreg_log::units::SnapshotSeq;

/// States in ascending order of the snapshots that carried them; `None` where the entity was gone.
#[derive(Clone, Debug)]
pub(crate) struct Ring<B> {
    states: VecDeque<(SnapshotSeq, Option<B>)>,
}

impl<B> Default for Ring<B> {
    fn default() -> Ring<B> {
        Ring { states: VecDeque::new() }
    }
}

impl<B> Ring<B> {
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// The state that one snapshot carried.
    pub(crate) fn carried_by(&self, seq: SnapshotSeq) -> Option<&B> {
        let (at, state) = &self.states[self.after(seq).checked_sub(1)?];
        state.as_ref().filter(|_| *at == seq)
    }

    /// The state as of a snapshot: the newest that it or an older one carried.
    pub(crate) fn at(&self, seq: SnapshotSeq) -> Option<&B> {
        self.states[self.after(seq).checked_sub(1)?].1.as_ref()
    }

    /// Where the first state after a snapshot is. Those asked for are mostly among the last.
    fn after(&self, seq: SnapshotSeq) -> usize {
        self.states.iter().rposition(|(at, _)| *at <= seq).map_or(0, |last| last + 1)
    }

    pub(crate) fn insert(&mut self, seq: SnapshotSeq, state: Option<B>) {
        let after = self.after(seq);
        self.states.insert(after, (seq, state));
    }

    /// Forgets what no snapshot in the window before `newest` can need: of the states that are out of it, all but the
    /// newest. False when nothing is left worth keeping.
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
