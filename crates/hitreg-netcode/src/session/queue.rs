//! The queue of future events of a session, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::game::Body;
use crate::packet::{ClientPacket, ReceivedPacket, Snapshot};
use crate::state::{KnownRecords, StateError, StateReader, StateValue, StateWriter, check, variants};
use crate::wire::{SavedDatagrams, ServerConnection};
use hitreg_log::units::{Micros, PlayerId, SnapshotSeq};

/// An event of a player, or a tick of the server.
#[derive(Clone)]
pub(super) enum QueuedEvent<B> {
    /// A sealed datagram reaches the server.
    Up(Vec<u8>),
    /// An unencoded packet of a client reaches the server.
    Packet(ClientPacket),
    /// A client's packet reaches the server; the log has only what the server received.
    Heard(ReceivedPacket),
    /// The server ticks.
    Tick,
    /// A sealed datagram reaches a client.
    Down(Vec<u8>),
    /// An unencoded snapshot reaches its client.
    Snapshot {
        snapshot: Snapshot<B>,
        /// The newest snapshot that the server knew the client to have.
        acked: Option<SnapshotSeq>,
    },
    /// A client frame.
    Frame,
}

impl<B> QueuedEvent<B> {
    /// The place of the event among events of one time.
    fn order(&self) -> u64 {
        match self {
            QueuedEvent::Up(_) | QueuedEvent::Packet(_) | QueuedEvent::Heard(_) => 0,
            QueuedEvent::Tick => 1,
            QueuedEvent::Down(_) | QueuedEvent::Snapshot { .. } => 2,
            QueuedEvent::Frame => 3,
        }
    }
}

/// A queued event in a keyframe.
enum SavedEvent<B> {
    Frame,
    Heard(ReceivedPacket),
    Packet(ClientPacket),
    Snapshot(Snapshot<B>, Option<SnapshotSeq>),
    /// A datagram of this packet.
    Up(u32, SavedDatagrams),
    /// The datagrams of this snapshot that arrive together.
    Down(SnapshotSeq, SavedDatagrams),
}

variants!(SavedEvent<B: Body> {
    0 => Frame,
    1 => Heard(heard),
    2 => Packet(packet),
    3 => Snapshot(snapshot, acked),
    4 => Up(number, saved),
    5 => Down(seq, saved),
});

/// A priority queue of events. Contents are stored apart from due times, so that sorting moves little data.
pub(super) struct Queue<B> {
    due: BinaryHeap<Reverse<QueueEntry>>,
    /// The events, indexed by [`QueueEntry::place`].
    what: Vec<Option<QueuedEvent<B>>>,
    free: Vec<usize>,
    /// Counts the queued events. Equal events keep the order in which they were queued.
    queued: u64,
}

/// The due time and the index of an event, in the order in which events are due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueueEntry {
    at: Micros,
    /// Kind (16 bits), player (16 bits) and number (32 bits), so that one comparison replaces three.
    rank: u64,
    queued: u64,
    place: usize,
}

impl<B> Default for Queue<B> {
    fn default() -> Queue<B> {
        Queue { due: BinaryHeap::new(), what: Vec::new(), free: Vec::new(), queued: 0 }
    }
}

impl<B> Queue<B> {
    /// Saves the queue. `servers` are the server's ends of all connections that carry datagrams.
    pub(super) fn save(&self, servers: &[ServerConnection<B>], known: Option<&KnownRecords<B>>, to: &mut StateWriter)
    where
        B: Body,
    {
        let mut due: Vec<QueueEntry> = self.due.iter().map(|Reverse(entry)| *entry).collect();
        due.sort_unstable();
        // The datagrams of one snapshot that arrive together are one event.
        let datagram = |entry: &QueueEntry| match &self.what[entry.place] {
            Some(QueuedEvent::Down(datagram)) => Some(&datagram[..]),
            _ => None,
        };
        let is_one = |a: &QueueEntry, b: &QueueEntry| (a.at, a.rank) == (b.at, b.rank) && datagram(a).is_some();
        let saved = |together: &[QueueEntry]| {
            let QueueEntry { at, rank, place, .. } = together[0];
            let (player, number) = (player_of(rank), rank as u32);
            let server = || &servers[usize::from(player.0)];
            let event = match self.what[place].as_ref()? {
                QueuedEvent::Frame => SavedEvent::Frame,
                QueuedEvent::Heard(heard) => SavedEvent::Heard(heard.clone()),
                QueuedEvent::Packet(packet) => SavedEvent::Packet(packet.clone()),
                QueuedEvent::Snapshot { snapshot, acked } => SavedEvent::Snapshot(snapshot.clone(), *acked),
                QueuedEvent::Up(datagram) => SavedEvent::Up(number, server().save_up(number, datagram)),
                QueuedEvent::Down(_) => {
                    let seq = SnapshotSeq(number);
                    let datagrams: Vec<&[u8]> = together.iter().filter_map(datagram).collect();
                    SavedEvent::Down(seq, server().save_down(known, seq, &datagrams))
                }
                // The next tick is queued only after the state of this one is saved.
                QueuedEvent::Tick => return None,
            };
            Some((at, player, event))
        };
        due.chunk_by(is_one).filter_map(saved).collect::<Vec<_>>().put(to);
    }

    /// Restores the queue of a session with `players` players.
    pub(super) fn restore(
        &mut self,
        players: u16,
        servers: &[ServerConnection<B>],
        known: &KnownRecords<B>,
        from: &mut StateReader,
    ) -> Result<(), StateError>
    where
        B: Body,
    {
        *self = Queue::default();
        for (at, player, event) in Vec::<(Micros, PlayerId, SavedEvent<B>)>::get(from)? {
            check(player.0 < players, "PlayerId")?;
            let mut datagrams = |number, saved| -> Result<Vec<Vec<u8>>, StateError> {
                let server = servers.get(usize::from(player.0));
                let server = server.ok_or(StateError::Unknown { what: "the connection of a datagram" })?;
                let datagrams = server.restored(known, number, saved)?;
                from.charge(datagrams.iter().map(Vec::len).sum())?;
                Ok(datagrams)
            };
            match event {
                SavedEvent::Frame => self.push(at, player, 0, QueuedEvent::Frame),
                SavedEvent::Heard(heard) => self.push(at, player, heard.packet.number, QueuedEvent::Heard(heard)),
                SavedEvent::Packet(packet) => self.push(at, player, packet.number, QueuedEvent::Packet(packet)),
                SavedEvent::Snapshot(snapshot, acked) => {
                    self.push(at, player, snapshot.seq.0, QueuedEvent::Snapshot { snapshot, acked });
                }
                SavedEvent::Up(number, saved) => {
                    for datagram in datagrams(number, saved)? {
                        self.push(at, player, number, QueuedEvent::Up(datagram));
                    }
                }
                SavedEvent::Down(SnapshotSeq(number), saved) => {
                    for datagram in datagrams(number, saved)? {
                        self.push(at, player, number, QueuedEvent::Down(datagram));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, PlayerId, QueuedEvent<B>)> {
        let Reverse(QueueEntry { at, rank, place, .. }) = self.due.pop()?;
        self.free.push(place);
        Some((at, player_of(rank), self.what[place].take()?))
    }

    /// Queues an event. `number` is that of the packet or snapshot that arrives; 0 for other events.
    pub(super) fn push(&mut self, at: Micros, player: PlayerId, number: u32, what: QueuedEvent<B>) {
        let rank = what.order() << 48 | u64::from(player.0) << 32 | u64::from(number);
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
        self.due.push(Reverse(QueueEntry { at, rank, queued: self.queued, place }));
    }
}

/// Returns the player in a [`QueueEntry::rank`].
fn player_of(rank: u64) -> PlayerId {
    PlayerId((rank >> 32) as u16)
}
