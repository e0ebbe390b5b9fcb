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
            Err(index) => {
                let state = Arc::from(cells);
                self.states.insert(index, (id, Arc::clone(&state)));
                state
            }
        }
    }

    /// Removes the state of an entity that a sender no longer tracks, unless another sender remembers the state.
    pub(super) fn forget(&mut self, id: EntityId) {
        if let Ok(index) = self.index_of(id)
            && Arc::strong_count(&self.states[index].1) == 1
        {
            self.states.remove(index);
        }
    }

    /// Returns the index of an entity, or the index at which to insert it.
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
    use glam::Vec3;

    use super::*;
    use crate::game::body;
    use crate::history::Frame;
    use crate::packet::Snapshot;
    use crate::wire::{MESSAGE_BYTES_MAX, ReceivedSet, Sender};
    use hitreg_log::units::{CommandSeq, Micros, PlayerId, SnapshotSeq, Tick};

    body! {
        struct Stone {
            Movement origin: Vec3,
        }
    }

    #[test]
    fn senders_forget_the_state_of_a_removed_entity_once_all_clients_acked_its_removal() {
        let mut states = SharedStates::default();
        let mut senders = [0, 1].map(|player| Sender::<Stone>::new(PlayerId(player), 2));
        let mut held = Vec::new();
        for seq in 1..=3 {
            let ids = if seq == 1 { 0..8 } else { 0..2 };
            let entities = ids.map(|id| (EntityId(id), Stone { origin: Vec3::X * f32::from(id) })).collect();
            let snapshot = Snapshot::new(
                SnapshotSeq(seq),
                CommandSeq(0),
                Arc::new(Frame { tick: Tick(seq), server_time: Micros::ZERO, entities }),
            );
            for sender in &mut senders {
                sender.encode(&snapshot, None, MESSAGE_BYTES_MAX, &mut states).expect("there is room");
                sender.handle_ack(&ReceivedSet { newest: SnapshotSeq(seq), before: u32::MAX });
                held.push(states.states.len());
            }
        }
        assert_eq!(held, [8, 8, 8, 8, 2, 2]);
    }

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
        (0..200).for_each(|id| states.forget(EntityId(id)));
        assert_eq!(states.states.len(), 1);
        assert!(Arc::ptr_eq(&held, &states.share(EntityId(5), &[5])));
    }
}
