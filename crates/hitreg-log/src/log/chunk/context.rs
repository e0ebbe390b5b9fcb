//! The entities with states at each tick of a chunk. Most snapshots show exactly these, so they need no list of their
//! own.

use std::borrow::Cow;

use super::texts::{ChunkTexts, TextPlaces};
use crate::record::{FieldSchema, StateKey};
use crate::units::{EntityId, PlayerId, Tick};

/// What columns of lists need besides their records: what derives from the chunk's states, and the usercmd fields that
/// the header declares.
pub(in crate::log) struct ChunkContext<'a, T> {
    /// The tick and viewer of each state, ascending.
    of: Vec<(Tick, Option<PlayerId>)>,
    /// The entity of each state, ascending within a tick and viewer.
    entities: Vec<EntityId>,
    /// The usercmd fields that the game declares.
    pub(super) own_fields: &'a [FieldSchema],
    pub(in crate::log) texts: &'a T,
}

/// The context of a chunk to write.
pub(in crate::log) type WriteContext<'a> = ChunkContext<'a, ChunkTexts<'a>>;

/// The context of a chunk to read.
pub(in crate::log) type ReadContext<'a> = ChunkContext<'a, TextPlaces>;

impl<'a, T> ChunkContext<'a, T> {
    pub(super) fn new(keys: &[StateKey], own_fields: &'a [FieldSchema], texts: &'a T) -> ChunkContext<'a, T> {
        let mut keys: Vec<_> = keys.iter().map(|key| (key.tick, key.viewer, key.entity)).collect();
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        keys.dedup();
        let (of, entities) = keys.into_iter().map(|(tick, viewer, entity)| ((tick, viewer), entity)).unzip();
        ChunkContext { of, entities, own_fields, texts }
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
