//! The states that snapshots carry, in memory that the senders of all clients share.

use std::sync::Arc;

use hitreg_log::units::EntityId;

/// The last sent state of each entity.
///
/// A sender remembers the states that its client may hold. All senders of a server use one `SharedStates`, so that a
/// state takes memory once, however many snapshots carry it.
#[derive(Clone, Debug, Default)]
pub struct SharedStates {
    /// In ascending order of id.
    states: Vec<(EntityId, Arc<[u32]>)>,
}

impl SharedStates {
    /// Returns `cells` in shared memory: that of the entity's last state when the two are equal.
    pub(super) fn share(&mut self, id: EntityId, cells: &[u32]) -> Arc<[u32]> {
        match self.index_of(id) {
            Ok(index) => {
                let last = &mut self.states[index].1;
                if **last != *cells {
                    *last = Arc::from(cells);
                }
                Arc::clone(last)
            }
            Err(_) => {
                // States that no sender remembers belong to entities that are gone.
                self.states.retain(|(_, state)| Arc::strong_count(state) > 1);
                let index = self.states.partition_point(|(other, _)| *other < id);
                let state = Arc::from(cells);
                self.states.insert(index, (id, Arc::clone(&state)));
                state
            }
        }
    }

    /// Players are numbered from 0 and come first, so an entity's index usually equals its id.
    fn index_of(&self, id: EntityId) -> Result<usize, usize> {
        match self.states.get(usize::from(id.0)) {
            Some((there, _)) if *there == id => Ok(usize::from(id.0)),
            _ => self.states.binary_search_by_key(&id, |(there, _)| *there),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_states_of_an_entity_share_their_memory() {
        let mut states = SharedStates::default();
        let first = states.share(EntityId(3), &[1]);
        assert!(Arc::ptr_eq(&first, &states.share(EntityId(3), &[1])));
        assert_eq!(*states.share(EntityId(3), &[2]), [2]);
        assert_eq!(*states.share(EntityId(0), &[1]), [1]);
        assert_eq!(*first, [1]);
    }

    #[test]
    fn states_of_entities_that_are_gone_take_no_memory() {
        let mut states = SharedStates::default();
        let held = states.share(EntityId(5), &[5]);
        (100..200).for_each(|id| drop(states.share(EntityId(id), &[1])));
        assert_eq!(states.states.len(), 2);
        assert!(Arc::ptr_eq(&held, &states.share(EntityId(5), &[5])));
    }
}
