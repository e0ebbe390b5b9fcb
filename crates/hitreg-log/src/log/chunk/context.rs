//! The entities with states at each tick of a chunk. Most snapshots show exactly these, so they need no list of their
//! own.

use std::borrow::Cow;

use crate::record::StateKey;
use crate::units::{EntityId, PlayerId, Tick};

/// What a decoder of records can derive from the chunk's states.
pub(in crate::log) struct ChunkContext {
    /// The tick and viewer of each state, ascending.
    of: Vec<(Tick, Option<PlayerId>)>,
    /// The entity of each state, ascending within a tick and viewer.
    entities: Vec<EntityId>,
}

impl ChunkContext {
    pub(super) fn new(keys: &[StateKey]) -> ChunkContext {
        let mut keys: Vec<_> = keys.iter().map(|key| (key.tick, key.viewer, key.entity)).collect();
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        keys.dedup();
        let (of, entities) = keys.into_iter().map(|(tick, viewer, entity)| ((tick, viewer), entity)).unzip();
        ChunkContext { of, entities }
    }

    /// Returns the entities whose states a viewer may have received for a tick.
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
