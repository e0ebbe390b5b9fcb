//! The states of the most recent chunks, for replays that read a log as a stream.

use std::collections::VecDeque;

use super::{ClassId, States};
use crate::units::{EntityId, PlayerId, Tick};

/// A source of the states of a session or of part of one.
pub trait StateSource {
    /// Returns the states of one entity that a viewer was sent for a tick, as [`States::sent`].
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])>;
}

impl StateSource for States {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        self.sent(tick, viewer, entity)
    }
}

impl<S: StateSource> StateSource for &S {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        S::sent(self, tick, viewer, entity)
    }
}

/// The states of the most recent chunks, each sorted by key.
#[derive(Default)]
pub struct RecentChunkStates {
    chunks: VecDeque<States>,
    /// Number of chunks dropped before the first in `chunks`.
    forgotten: u32,
}

impl RecentChunkStates {
    /// Adds the states of the next chunk.
    pub fn add(&mut self, mut states: States) {
        states.put_in_order();
        self.chunks.push_back(states);
    }

    /// Drops the states of all chunks before this one.
    pub fn forget_before(&mut self, chunk: u32) {
        while self.forgotten < chunk && self.chunks.pop_front().is_some() {
            self.forgotten += 1;
        }
    }
}

impl StateSource for RecentChunkStates {
    fn sent(&self, tick: Tick, viewer: PlayerId, entity: EntityId) -> impl Iterator<Item = (ClassId, &[u32])> {
        let has = |states: &&States| {
            let keys = states.keys();
            keys.first().is_some_and(|first| first.tick <= tick) && keys.last().is_some_and(|last| tick <= last.tick)
        };
        let mut of_tick = self.chunks.iter().filter(has);
        let (first, others) = (of_tick.next(), of_tick);
        let mut cut = Vec::new();
        // A chunk boundary can split a tick's states.
        for states in others {
            if cut.is_empty() {
                cut.extend(first);
            }
            cut.push(states);
        }
        let of_classes = |mut sent: Vec<(ClassId, _)>| {
            sent.sort_by_key(|(class, _)| *class);
            sent
        };
        let own = cut.iter().flat_map(|states| states.own(tick, viewer, entity)).collect();
        let shared = cut.iter().flat_map(|states| states.shared(tick, entity)).collect();
        let whole =
            first.filter(|_| cut.is_empty()).into_iter().flat_map(move |states| states.sent(tick, viewer, entity));
        whole.chain(of_classes(own)).chain(of_classes(shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StateKey;

    /// Builds states from ticks, viewers, entities, classes and one cell each.
    fn states(rows: &[(u32, Option<u16>, u16, u8, u32)]) -> States {
        let mut states = States::default();
        for &(tick, viewer, entity, class, cell) in rows {
            let (tick, viewer) = (Tick(tick), viewer.map(PlayerId));
            let key = StateKey { tick, viewer, entity: EntityId(entity), class: ClassId(class.into()) };
            states.push(key, &[cell]);
        }
        states
    }

    #[test]
    fn a_tick_split_over_chunks_is_given_as_one() {
        let first = [(7, None, 1, 0, 10), (8, None, 1, 1, 11), (8, Some(0), 2, 0, 12)];
        let second = [(8, None, 1, 0, 13), (8, Some(0), 1, 1, 14), (9, None, 1, 0, 15)];
        let mut kept = RecentChunkStates::default();
        kept.add(states(&first));
        kept.add(states(&second));
        let mut whole = states(&[&first[..], &second].concat());
        whole.put_in_order();
        for tick in 6..=10 {
            for (viewer, entity) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
                let of = (Tick(tick), PlayerId(viewer), EntityId(entity));
                let recent: Vec<_> = StateSource::sent(&kept, of.0, of.1, of.2).collect();
                assert_eq!(recent, whole.sent(of.0, of.1, of.2).collect::<Vec<_>>(), "{of:?}");
            }
        }
        let sent =
            |kept: &RecentChunkStates, tick| StateSource::sent(kept, Tick(tick), PlayerId(1), EntityId(1)).count();
        assert_eq!([7, 8, 9].map(|tick| sent(&kept, tick)), [1, 2, 1]);
        kept.forget_before(1);
        assert_eq!([7, 8, 9].map(|tick| sent(&kept, tick)), [0, 1, 1]);
        kept.forget_before(9);
        assert_eq!(sent(&kept, 9), 0);
    }
}
