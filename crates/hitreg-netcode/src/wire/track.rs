//! The server's record of what one client knows about one entity: the acked state, and the states sent since. Each of
//! the latter may have arrived. The senders of all clients share the memory of the states.
//!
//! The server never assumes that a packet is lost. It omits an entity only if every state that the client may hold
//! equals the true one. With enough room, the client's frame therefore equals the server's frame exactly, whatever
//! packets were lost.

use std::collections::VecDeque;
use std::sync::Arc;

use super::WINDOW;
use crate::game::Body;
use crate::history::Frame;
use crate::push_bounded;
use crate::state::value;
use hitreg_log::units::{EntityId, SnapshotSeq};

/// A state that a snapshot carried; `None` when the snapshot removed the entity.
#[derive(Clone, Debug)]
struct HeldState {
    seq: SnapshotSeq,
    cells: Option<Arc<[u32]>>,
}

/// One client's knowledge of one entity.
#[derive(Clone, Debug)]
pub(crate) struct EntityTrack {
    /// The last acked state. `None` after more than [`WINDOW`] sends without an ack.
    acked: Option<HeldState>,
    /// The states sent since, oldest first.
    sent: VecDeque<HeldState>,
    /// The number of consecutive packets that needed the entity but had no room for it.
    pub(crate) waited: u32,
}

/// The snapshots that a client has received: the newest, and one bit for each of the 32 before it. The lowest bit is
/// the snapshot just before the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSet {
    /// The newest snapshot received; 0 when there is none.
    pub newest: SnapshotSeq,
    /// The bits of the 32 snapshots before the newest.
    pub before: u32,
}

impl ReceivedSet {
    /// Returns whether the client is known to have received a snapshot.
    pub fn contains(&self, seq: SnapshotSeq) -> bool {
        match self.newest.0.checked_sub(seq.0) {
            _ if seq.0 == 0 => false,
            Some(0) => true,
            Some(distance @ 1..=32) => self.before & (1 << (distance - 1)) != 0,
            _ => false,
        }
    }
}

value!(HeldState { seq, cells });
value!(EntityTrack { acked, sent, waited });

impl EntityTrack {
    /// Creates the record of an entity that was never sent to the client.
    pub(crate) fn new() -> EntityTrack {
        let unheard = HeldState { seq: SnapshotSeq(0), cells: None };
        EntityTrack { acked: Some(unheard), sent: VecDeque::new(), waited: 0 }
    }

    /// Returns whether the client may hold a state other than `truth`.
    pub(crate) fn needs(&self, truth: Option<&Arc<[u32]>>) -> bool {
        let differs = |held: &HeldState| held.cells.as_ref() != truth;
        self.acked.as_ref().is_none_or(differs) || self.sent.iter().any(differs)
    }

    /// Returns the state that the client has if no snapshot was lost; `None` for an entity that it does not know.
    pub(crate) fn last_sent(&self) -> Option<&Arc<[u32]>> {
        self.sent.back().or(self.acked.as_ref())?.cells.as_ref()
    }

    /// Returns whether `truth` is the last state sent.
    pub(crate) fn is_echo(&self, truth: Option<&Arc<[u32]>>) -> bool {
        self.sent.back().is_some_and(|held| held.cells.as_ref() == truth)
    }

    /// Returns the base for snapshot `now`: the acked state, if the client still keeps it. A client drops a state once
    /// it has a newer one that is itself outside the window.
    pub(crate) fn base(&self, now: SnapshotSeq) -> Option<(SnapshotSeq, &Arc<[u32]>)> {
        let acked = self.acked.as_ref()?;
        let cells = acked.cells.as_ref()?;
        let forgotten = self.sent.front().is_some_and(|next| now.0 - next.seq.0 > WINDOW);
        (!forgotten).then_some((acked.seq, cells))
    }

    pub(crate) fn remember_sent(&mut self, seq: SnapshotSeq, cells: Option<Arc<[u32]>>) {
        self.waited = 0;
        if push_bounded(&mut self.sent, HeldState { seq, cells }, WINDOW as usize).is_some() {
            self.acked = None;
        }
    }

    pub(crate) fn handle_ack(&mut self, received: &ReceivedSet) {
        if let Some(index) = self.sent.iter().rposition(|held| received.contains(held.seq)) {
            self.acked = self.sent.drain(..=index).next_back();
        }
    }

    /// Returns whether a client to which snapshots up to `last` were sent can know these states.
    pub(crate) fn is_valid(&self, last: SnapshotSeq, cells: usize) -> bool {
        let held = || self.acked.iter().chain(&self.sent);
        self.waited <= last.0
            && self.sent.len() <= WINDOW as usize
            && held().is_sorted_by(|a, b| a.seq < b.seq)
            && held().all(|held| held.seq <= last && held.cells.as_ref().is_none_or(|held| held.len() == cells))
    }

    /// Returns whether both sides agree that the entity does not exist.
    pub(crate) fn is_over(&self) -> bool {
        self.sent.is_empty() && self.acked.as_ref().is_some_and(|held| held.cells.is_none())
    }
}

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
    use super::*;
    use crate::game::body;
    use crate::packet::Snapshot;
    use crate::wire::{MESSAGE_BYTES_MAX, Sender};
    use glam::Vec3;
    use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};

    fn cells(word: u32) -> Option<Arc<[u32]>> {
        Some(Arc::from([word]))
    }

    fn ack(newest: u32, before: u32) -> ReceivedSet {
        ReceivedSet { newest: SnapshotSeq(newest), before }
    }

    #[test]
    fn sets_hold_the_newest_and_32_before() {
        let set = ack(40, 0x8000_0001);
        let held: Vec<u32> = (0..50).filter(|seq| set.contains(SnapshotSeq(*seq))).collect();
        assert_eq!(held, [8, 39, 40]);
        assert!(!ack(1, u32::MAX).contains(SnapshotSeq(0)));
    }

    #[test]
    fn a_change_is_needed_until_nothing_else_can_be_known() {
        let mut track = EntityTrack::new();
        assert!(!track.needs(None));
        assert!(track.needs(cells(1).as_ref()));
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.needs(cells(1).as_ref()) && track.is_echo(cells(1).as_ref()));
        track.handle_ack(&ack(1, 0));
        assert!(!track.needs(cells(1).as_ref()));
        // A and B are in transit, and then A again: the client may end with B.
        track.remember_sent(SnapshotSeq(2), cells(2));
        assert!(track.needs(cells(1).as_ref()));
        track.remember_sent(SnapshotSeq(3), cells(1));
        track.handle_ack(&ack(3, 0));
        assert!(!track.needs(cells(1).as_ref()));
    }

    #[test]
    fn baselines_are_states_that_the_client_has() {
        let mut track = EntityTrack::new();
        assert!(track.base(SnapshotSeq(1)).is_none());
        track.remember_sent(SnapshotSeq(1), cells(1));
        assert!(track.base(SnapshotSeq(2)).is_none());
        track.handle_ack(&ack(2, 1));
        assert_eq!(track.base(SnapshotSeq(5_000)).map(|(seq, _)| seq), Some(SnapshotSeq(1)));
        track.remember_sent(SnapshotSeq(5_000), cells(2));
        assert!(track.base(SnapshotSeq(5_000 + WINDOW)).is_some());
        assert!(track.base(SnapshotSeq(5_001 + WINDOW)).is_none());
    }

    #[test]
    fn states_are_unknown_after_a_long_silence() {
        let mut track = EntityTrack::new();
        for seq in 1..=WINDOW + 1 {
            track.remember_sent(SnapshotSeq(seq), cells(7));
        }
        assert!(track.needs(cells(7).as_ref()) && track.base(SnapshotSeq(100)).is_none());
        track.handle_ack(&ack(WINDOW + 1, 0));
        assert!(!track.needs(cells(7).as_ref()));
    }

    #[test]
    fn an_entity_removed_on_both_sides_is_forgotten() {
        let mut track = EntityTrack::new();
        track.remember_sent(SnapshotSeq(1), cells(1));
        track.remember_sent(SnapshotSeq(2), None);
        assert!(!track.is_over());
        track.handle_ack(&ack(2, 0));
        assert!(track.is_over());
    }

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
