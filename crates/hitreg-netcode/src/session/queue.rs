//! The queue of future events of a session, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::game::Body;
use crate::packet::{ClientPacket, HeardPacket, Snapshot};
use crate::state::{KnownRecords, StateError, StateReader, StateValue, StateWriter, check, variants};
use crate::wire::{SavedDatagrams, ServerConnection};
use hitreg_log::units::{Micros, PlayerId, SnapshotSeq};

/// A transmission over a link.
#[derive(Clone)]
pub(super) enum CarriedPacket<B> {
    /// A sealed datagram to the server.
    Up(Vec<u8>),
    /// A sealed datagram to a client.
    Down(Vec<u8>),
    /// An unencoded packet of a client.
    Packet(ClientPacket),
    /// An unencoded snapshot, and the newest snapshot that the server knew its client to have.
    Snapshot(Snapshot<B>, Option<SnapshotSeq>),
}

pub(super) enum QueuedEvent<B> {
    /// A transmission reaches the other end of a player's connection.
    Arrives(PlayerId, CarriedPacket<B>),
    /// A client's packet reaches the server; the log has only what the server received.
    Heard(PlayerId, HeardPacket),
    /// The server ticks.
    Tick,
    /// A client frame.
    Frame(PlayerId),
}

/// A queued event in a keyframe.
enum SavedEvent<B> {
    Frame,
    Heard(HeardPacket),
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
    3 => Snapshot(snapshot, base),
    4 => Up(number, saved),
    5 => Down(seq, saved),
});

/// A priority queue of events. Contents are stored apart from due times, so that sorting moves little data.
pub(super) struct Queue<B> {
    due: BinaryHeap<QueueEntry>,
    /// The events, indexed by [`QueueEntry::place`].
    what: Vec<Option<QueuedEvent<B>>>,
    free: Vec<usize>,
    /// Counts the queued events. Equal events keep the order in which they were queued.
    queued: u64,
}

/// The due time and the index of an event. The event that is due first compares as the greatest.
#[derive(Clone, Copy, PartialEq, Eq)]
struct QueueEntry {
    at: Micros,
    /// Kind, player and number, packed into bits, so that one comparison replaces three.
    rank: u64,
    queued: u64,
    place: usize,
}

impl Ord for QueueEntry {
    #[inline]
    fn cmp(&self, other: &QueueEntry) -> Ordering {
        other.at.0.cmp(&self.at.0).then(other.rank.cmp(&self.rank)).then(other.queued.cmp(&self.queued))
    }
}

impl PartialOrd for QueueEntry {
    #[inline]
    fn partial_cmp(&self, other: &QueueEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B> Default for Queue<B> {
    fn default() -> Queue<B> {
        Queue { due: BinaryHeap::new(), what: Vec::new(), free: Vec::new(), queued: 0 }
    }
}

impl<B> Queue<B> {
    pub(super) fn push_tick(&mut self, at: Micros) {
        self.push(at, 1, PlayerId(0), 0, QueuedEvent::Tick);
    }

    /// Queues an arrival. `number` is that of the packet or snapshot.
    pub(super) fn push_arrival(&mut self, at: Micros, player: PlayerId, number: u32, carried: CarriedPacket<B>) {
        let kind = match carried {
            CarriedPacket::Up(_) | CarriedPacket::Packet(_) => 0,
            CarriedPacket::Down(_) | CarriedPacket::Snapshot(..) => 2,
        };
        self.push(at, kind, player, number, QueuedEvent::Arrives(player, carried));
    }

    pub(super) fn push_heard(&mut self, at: Micros, player: PlayerId, heard: HeardPacket) {
        self.push(at, 0, player, heard.packet.number, QueuedEvent::Heard(player, heard));
    }

    pub(super) fn push_frame(&mut self, at: Micros, player: PlayerId) {
        self.push(at, 3, player, 0, QueuedEvent::Frame(player));
    }

    /// Saves the queue. `servers` are the server's ends of all connections that carry datagrams.
    pub(super) fn save(&self, servers: &[ServerConnection<B>], known: Option<&KnownRecords<B>>, to: &mut StateWriter)
    where
        B: Body,
    {
        let mut due: Vec<QueueEntry> = self.due.iter().copied().collect();
        due.sort_unstable_by(|a, b| b.cmp(a));
        // The datagrams of one snapshot that arrive together are one event.
        let datagram = |entry: &QueueEntry| match &self.what[entry.place] {
            Some(QueuedEvent::Arrives(_, CarriedPacket::Down(datagram))) => Some(&datagram[..]),
            _ => None,
        };
        let is_one = |a: &QueueEntry, b: &QueueEntry| (a.at, a.rank) == (b.at, b.rank) && datagram(a).is_some();
        let saved = |together: &[QueueEntry]| {
            let QueueEntry { at, rank, place, .. } = together[0];
            let number = rank as u32;
            let transit = |player: PlayerId| servers[usize::from(player.0)].transit();
            let (player, event) = match self.what[place].as_ref()? {
                QueuedEvent::Frame(player) => (*player, SavedEvent::Frame),
                QueuedEvent::Heard(player, heard) => (*player, SavedEvent::Heard(heard.clone())),
                QueuedEvent::Arrives(player, carried) => (
                    *player,
                    match carried {
                        CarriedPacket::Packet(packet) => SavedEvent::Packet(packet.clone()),
                        CarriedPacket::Snapshot(snapshot, base) => SavedEvent::Snapshot(snapshot.clone(), *base),
                        CarriedPacket::Up(datagram) => {
                            SavedEvent::Up(number, transit(*player).save_up(number, datagram))
                        }
                        CarriedPacket::Down(_) => {
                            let seq = SnapshotSeq(number);
                            let datagrams: Vec<&[u8]> = together.iter().filter_map(datagram).collect();
                            SavedEvent::Down(seq, transit(*player).save_down(known, seq, &datagrams))
                        }
                    },
                ),
                // The next tick is queued only after the state of this one was looked at.
                QueuedEvent::Tick => return None,
            };
            Some((at, player, event))
        };
        due.chunk_by(is_one).filter_map(saved).collect::<Vec<_>>().put(to);
    }

    /// Restores the queue of a session with `players` players.
    pub(super) fn restore(
        &mut self,
        (players, servers): (u16, &[ServerConnection<B>]),
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
                let datagrams = server.transit().restored(known, number, saved)?;
                from.charge(datagrams.iter().map(Vec::len).sum())?;
                Ok(datagrams)
            };
            match event {
                SavedEvent::Frame => self.push_frame(at, player),
                SavedEvent::Heard(heard) => self.push_heard(at, player, heard),
                SavedEvent::Packet(packet) => {
                    self.push_arrival(at, player, packet.number, CarriedPacket::Packet(packet));
                }
                SavedEvent::Snapshot(snapshot, base) => {
                    self.push_arrival(at, player, snapshot.seq.0, CarriedPacket::Snapshot(snapshot, base));
                }
                SavedEvent::Up(number, saved) => {
                    for datagram in datagrams(number, saved)? {
                        self.push_arrival(at, player, number, CarriedPacket::Up(datagram));
                    }
                }
                SavedEvent::Down(SnapshotSeq(number), saved) => {
                    for datagram in datagrams(number, saved)? {
                        self.push_arrival(at, player, number, CarriedPacket::Down(datagram));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, QueuedEvent<B>)> {
        let QueueEntry { at, place, .. } = self.due.pop()?;
        self.free.push(place);
        Some((at, self.what[place].take()?))
    }

    fn push(&mut self, at: Micros, kind: u8, player: PlayerId, number: u32, what: QueuedEvent<B>) {
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
        let rank = u64::from(kind) << 48 | u64::from(player.0) << 32 | u64::from(number);
        self.due.push(QueueEntry { at, rank, queued: self.queued, place });
    }
}
