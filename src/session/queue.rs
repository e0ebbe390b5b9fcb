//! What is to happen, in the order in which it will.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::packet::{ClientPacket, Snapshot};
use crate::units::{Micros, PlayerId, SnapshotSeq};

/// What travels over a link.
#[derive(Clone)]
pub(super) enum Carried<B> {
    /// A datagram to the server, sealed.
    Up(Vec<u8>),
    /// A datagram to a client, sealed.
    Down(Vec<u8>),
    /// A client's packet as it is.
    Packet(ClientPacket),
    /// A snapshot as it is, and which one the server knew its client to have.
    Snapshot(Snapshot<B>, Option<SnapshotSeq>),
}

pub(super) enum What<B> {
    /// Something of a player's connection reaches its other end.
    Arrives(PlayerId, Carried<B>),
    /// The server ticks.
    Tick,
    /// A client frame.
    Frame(PlayerId),
}

pub(super) struct Queue<B> {
    heap: BinaryHeap<Reverse<Due<B>>>,
    /// Counts what was queued: equals keep the order in which they were sent.
    queued: u64,
}

impl<B> Default for Queue<B> {
    fn default() -> Queue<B> {
        Queue { heap: BinaryHeap::new(), queued: 0 }
    }
}

impl<B> Queue<B> {
    pub(super) fn push_tick(&mut self, at: Micros) {
        self.push((at, 1, PlayerId(0), 0), What::Tick);
    }

    /// `number` is that of the packet or snapshot.
    pub(super) fn push_arrival(&mut self, at: Micros, player: PlayerId, number: u32, carried: Carried<B>) {
        let kind = match carried {
            Carried::Up(_) | Carried::Packet(_) => 0,
            Carried::Down(_) | Carried::Snapshot(..) => 2,
        };
        self.push((at, kind, player, number), What::Arrives(player, carried));
    }

    pub(super) fn push_frame(&mut self, at: Micros, player: PlayerId) {
        self.push((at, 3, player, 0), What::Frame(player));
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, What<B>)> {
        self.heap.pop().map(|Reverse(due)| (due.key.0, due.what))
    }

    fn push(&mut self, key: Key, what: What<B>) {
        self.queued += 1;
        self.heap.push(Reverse(Due { key, queued: self.queued, what }));
    }
}

/// Time, kind, player, number.
type Key = (Micros, u8, PlayerId, u32);

struct Due<B> {
    key: Key,
    queued: u64,
    what: What<B>,
}

impl<B> PartialEq for Due<B> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<B> Eq for Due<B> {}

impl<B> PartialOrd for Due<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B> Ord for Due<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.queued.cmp(&other.queued))
    }
}
