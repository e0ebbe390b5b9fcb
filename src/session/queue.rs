//! What is to happen, in the order in which it will.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::game::Game;
use crate::packet::{ClientPacket, Snapshot};
use crate::units::{Micros, PlayerId};

pub(super) enum What<G: Game> {
    /// A client's packet reaches the server.
    Reaches(PlayerId, ClientPacket),
    /// The server ticks.
    Tick,
    /// A snapshot reaches its client.
    Arrives(PlayerId, Snapshot<G::Body>),
    /// A client frame.
    Frame(PlayerId),
}

pub(super) struct Queue<G: Game> {
    heap: BinaryHeap<Reverse<Due<G>>>,
    /// Counts what was queued: equals keep the order in which they were sent.
    queued: u64,
}

impl<G: Game> Default for Queue<G> {
    fn default() -> Queue<G> {
        Queue { heap: BinaryHeap::new(), queued: 0 }
    }
}

impl<G: Game> Queue<G> {
    pub(super) fn push_packet(&mut self, at: Micros, player: PlayerId, packet: ClientPacket) {
        let number = packet.number;
        self.push((at, 0, player, number), What::Reaches(player, packet));
    }

    pub(super) fn push_tick(&mut self, at: Micros) {
        self.push((at, 1, PlayerId(0), 0), What::Tick);
    }

    pub(super) fn push_snapshot(&mut self, at: Micros, player: PlayerId, snapshot: Snapshot<G::Body>) {
        let number = snapshot.seq.0;
        self.push((at, 2, player, number), What::Arrives(player, snapshot));
    }

    pub(super) fn push_frame(&mut self, at: Micros, player: PlayerId) {
        self.push((at, 3, player, 0), What::Frame(player));
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, What<G>)> {
        self.heap.pop().map(|Reverse(due)| (due.key.0, due.what))
    }

    fn push(&mut self, key: Key, what: What<G>) {
        self.queued += 1;
        self.heap.push(Reverse(Due { key, queued: self.queued, what }));
    }
}

/// Time, kind, player, number.
type Key = (Micros, u8, PlayerId, u32);

struct Due<G: Game> {
    key: Key,
    queued: u64,
    what: What<G>,
}

impl<G: Game> PartialEq for Due<G> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<G: Game> Eq for Due<G> {}

impl<G: Game> PartialOrd for Due<G> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<G: Game> Ord for Due<G> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.queued.cmp(&other.queued))
    }
}
