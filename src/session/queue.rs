//! What is to happen, in the order in which it will.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::packet::{ClientPacket, HeardPacket, Snapshot};
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
    /// A client's packet reaches the server, of which a log says what the server heard.
    Heard(PlayerId, HeardPacket),
    /// The server ticks.
    Tick,
    /// A client frame.
    Frame(PlayerId),
}

/// What is due is kept apart from when, so that sorting moves little.
pub(super) struct Queue<B> {
    due: BinaryHeap<Reverse<(Key, usize)>>,
    /// By the place that the heap names.
    what: Vec<Option<What<B>>>,
    free: Vec<usize>,
    /// Counts what was queued: equals keep the order in which they were sent.
    queued: u64,
}

/// Time, kind, player, number, and what was queued before.
type Key = (Micros, u8, PlayerId, u32, u64);

impl<B> Default for Queue<B> {
    fn default() -> Queue<B> {
        Queue { due: BinaryHeap::new(), what: Vec::new(), free: Vec::new(), queued: 0 }
    }
}

impl<B> Queue<B> {
    pub(super) fn push_tick(&mut self, at: Micros) {
        self.push(at, 1, PlayerId(0), 0, What::Tick);
    }

    /// `number` is that of the packet or snapshot.
    pub(super) fn push_arrival(&mut self, at: Micros, player: PlayerId, number: u32, carried: Carried<B>) {
        let kind = match carried {
            Carried::Up(_) | Carried::Packet(_) => 0,
            Carried::Down(_) | Carried::Snapshot(..) => 2,
        };
        self.push(at, kind, player, number, What::Arrives(player, carried));
    }

    pub(super) fn push_heard(&mut self, at: Micros, player: PlayerId, heard: HeardPacket) {
        self.push(at, 0, player, heard.packet.number, What::Heard(player, heard));
    }

    pub(super) fn push_frame(&mut self, at: Micros, player: PlayerId) {
        self.push(at, 3, player, 0, What::Frame(player));
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, What<B>)> {
        let Reverse(((at, ..), place)) = self.due.pop()?;
        self.free.push(place);
        Some((at, self.what[place].take()?))
    }

    fn push(&mut self, at: Micros, kind: u8, player: PlayerId, number: u32, what: What<B>) {
        let place = match self.free.pop() {
            Some(place) => {
                self.what[place] = Some(what);
                place
            }
            None => {
                self.what.push(Some(what));
                self.what.len() - 1
            }
        };
        self.queued += 1;
        self.due.push(Reverse(((at, kind, player, number, self.queued), place)));
    }
}
