//! Whom a chunk's states show at each tick: what most snapshots show, so that it need not be said again.

use std::borrow::Cow;

use crate::record::StateKey;
use crate::units::{EntityId, PlayerId, Tick};

/// What the records of a chunk can be told by besides their own columns.
pub(in crate::log) struct Context {
    /// The ticks and viewers of the states, ascending.
    of: Vec<(Tick, Option<PlayerId>)>,
    /// The entities, ascending for each of those.
    entities: Vec<EntityId>,
}

impl Context {
    pub(super) fn new(keys: &[StateKey]) -> Context {
        let mut keys: Vec<_> = keys.iter().map(|key| (key.tick, key.viewer, key.entity)).collect();
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        keys.dedup();
        let (of, entities) = keys.into_iter().map(|(tick, viewer, entity)| ((tick, viewer), entity)).unzip();
        Context { of, entities }
    }

    /// The entities of which there are states that a viewer may have been sent of a tick.
    pub(super) fn shown(&self, tick: Tick, viewer: PlayerId) -> Cow<'_, [EntityId]> {
        let (shared, own) = (self.entities_of((tick, None)), self.entities_of((tick, Some(viewer))));
        if own.is_empty() {
            return Cow::Borrowed(shared);
        }
        let mut both = [shared, own].concat();
        both.sort_unstable();
        both.dedup();
        Cow::Owned(both)
    }

    fn entities_of(&self, which: (Tick, Option<PlayerId>)) -> &[EntityId] {
        let begin = self.of.partition_point(|of| *of < which);
        let end = begin + self.of[begin..].partition_point(|of| *of == which);
        &self.entities[begin..end]
    }
}
