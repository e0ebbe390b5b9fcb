//! The states of one entity that a client has received.

use std::collections::VecDeque;
use std::sync::Arc;

use super::WINDOW;
use crate::game::Body;
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::{EntityId, SnapshotSeq};

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

impl<B> StateRing<B> {
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

impl<B: Body> StateRing<B> {
    pub(crate) fn save(&self, entity: EntityId, to: &mut StateWriter<'_, B>) {
        let StateRing { states } = self;
        to.number(states.len() as u64);
        let (mut cells, mut previous) = (vec![0; B::CELLS], None);
        for (seq, state) in states {
            seq.put(to);
            if let Some(body) = state {
                body.write(&mut cells);
            }
            to.state((entity, to.tick_of(*seq)), state.as_ref().map(|_| &cells[..]), previous.as_deref());
            previous = state.as_ref().map(|_| cells.clone());
        }
    }

    /// Restores the states of an entity for a client whose newest snapshot is `newest`.
    pub(crate) fn restored(
        entity: EntityId,
        newest: SnapshotSeq,
        from: &mut Restorer<'_, B>,
    ) -> Result<StateRing<B>, StateError> {
        // One state may be older than the window.
        let most = WINDOW as usize + 1;
        let count = from.count_up_to(most, size_of::<(SnapshotSeq, Option<B>)>(), "how many states are held")?;
        let mut states = VecDeque::new();
        let mut previous: Option<Arc<[u32]>> = None;
        for _ in 0..count {
            let seq: SnapshotSeq = StateValue::<B>::get(from)?;
            if seq > newest || states.back().is_some_and(|(before, _)| seq <= *before) {
                return Err(StateError::Value { what: "a received snapshot", found: u64::from(seq.0) });
            }
            previous = from.state((entity, from.tick_of(seq)), previous.as_ref())?;
            states.push_back((seq, previous.as_deref().map(B::read).transpose()?));
        }
        Ok(StateRing { states })
    }
}
