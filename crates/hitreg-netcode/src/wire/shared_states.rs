//! The states that snapshots carry, in memory that the senders of all clients share.

use std::sync::Arc;

use crate::game::Body;
use crate::history::Frame;
use hitreg_log::units::EntityId;

/// The states of the last frame that was sent.
///
/// A sender remembers the states that its client may hold. All senders of a server use one `SharedStates`, so that a
/// frame is taken apart once for all clients, and a state takes memory once, however many snapshots carry it.
#[derive(Clone, Debug)]
pub struct SharedStates<B> {
    frame: Option<Arc<Frame<B>>>,
    /// The state of each entity in `frame`, in the same order.
    states: Vec<Arc<[u32]>>,
}

impl<B> Default for SharedStates<B> {
    fn default() -> SharedStates<B> {
        SharedStates { frame: None, states: Vec::new() }
    }
}

impl<B: Body> SharedStates<B> {
    /// Returns the entities of `frame`, each with its body and its state, in ascending order of id. An entity whose
    /// state is that of the last frame keeps its memory.
    pub(super) fn of<'a>(
        &'a mut self,
        frame: &'a Arc<Frame<B>>,
    ) -> impl Iterator<Item = (EntityId, (&'a B, &'a Arc<[u32]>))> {
        if !self.frame.as_ref().is_some_and(|last| Arc::ptr_eq(last, frame)) {
            self.replace(frame);
        }
        frame.entities.iter().zip(&self.states).map(|((id, body), state)| (*id, (body, state)))
    }

    fn replace(&mut self, frame: &Arc<Frame<B>>) {
        let last = self.frame.replace(Arc::clone(frame));
        let mut held = last.iter().flat_map(|last| &last.entities).zip(std::mem::take(&mut self.states)).peekable();
        let mut cells = vec![0; B::CELLS];
        for (id, body) in &frame.entities {
            while held.next_if(|((held, _), _)| held < id).is_some() {}
            body.write(&mut cells);
            let same = held.next_if(|((held, _), _)| held == id).filter(|(_, state)| **state == *cells);
            self.states.push(same.map_or_else(|| Arc::from(&cells[..]), |(_, state)| state));
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

    /// A frame with one stone for each id, at this place.
    fn frame(tick: u32, ids: impl IntoIterator<Item = (u16, f32)>) -> Arc<Frame<Stone>> {
        let stone = |(id, x)| (EntityId(id), Stone { origin: Vec3::X * x });
        let entities = ids.into_iter().map(stone).collect();
        Arc::new(Frame { tick: Tick(tick), server_time: Micros::ZERO, entities })
    }

    fn states(shared: &mut SharedStates<Stone>, frame: &Arc<Frame<Stone>>) -> Vec<(EntityId, Arc<[u32]>)> {
        shared.of(frame).map(|(id, (_, state))| (id, Arc::clone(state))).collect()
    }

    #[test]
    fn an_entity_keeps_the_memory_of_its_state_until_the_state_changes() {
        let mut shared = SharedStates::default();
        let first = states(&mut shared, &frame(1, [(0, 1.0), (3, 2.0), (5, 3.0)]));
        let second = states(&mut shared, &frame(2, [(1, 9.0), (3, 2.0), (5, 4.0), (8, 3.0)]));
        assert_eq!(second.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 3, 5, 8]);
        assert!(Arc::ptr_eq(&first[1].1, &second[1].1));
        let cells = |x: f32| vec![x.to_bits(), 0, 0];
        assert_eq!(second.iter().map(|(_, state)| state.to_vec()).collect::<Vec<_>>(), [9.0, 2.0, 4.0, 3.0].map(cells));
        assert_eq!(first[2].1.to_vec(), cells(3.0));
    }

    #[test]
    fn senders_share_the_states_of_a_frame_and_drop_those_of_removed_entities() {
        let mut shared = SharedStates::default();
        let mut senders = [0, 1].map(|player| Sender::<Stone>::new(PlayerId(player), 2));
        let all = frame(1, (0..8).map(|id| (id, f32::from(id))));
        let stone = Arc::clone(&states(&mut shared, &all)[7].1);
        let mut holders = Vec::new();
        for seq in 1..=4 {
            let frame = if seq == 1 { Arc::clone(&all) } else { frame(seq, [(0, 0.0), (1, 1.0)]) };
            let snapshot = Snapshot::new(SnapshotSeq(seq), CommandSeq(0), frame);
            for sender in &mut senders {
                sender.encode(&snapshot, MESSAGE_BYTES_MAX, &mut shared).expect("there is room");
                sender.handle_ack(&ReceivedSet { newest: SnapshotSeq(seq), before: u32::MAX });
                holders.push(Arc::strong_count(&stone) - 1);
            }
        }
        // `shared` itself and one sender, then both senders; the next frame has no stone, and its acks drop it.
        assert_eq!(holders, [2, 3, 1, 0, 0, 0, 0, 0]);
    }
}
