//! The queue of future events of a session, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::game::Body;
use crate::packet::{ClientPacket, HeardPacket, Snapshot};
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use crate::wire::ServerConnection;
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
    pub(super) fn save(&self, servers: &[ServerConnection<B>], to: &mut StateWriter<'_, B>)
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
        let due: Vec<&[QueueEntry]> = due.chunk_by(is_one).collect();
        to.number(due.len() as u64);
        for together in due {
            let QueueEntry { at, rank, queued: _, place } = together[0];
            let number = rank as u32;
            at.put(to);
            match &self.what[place] {
                Some(QueuedEvent::Frame(player)) => (0u8, *player).put(to),
                Some(QueuedEvent::Arrives(player, CarriedPacket::Packet(packet))) => {
                    (1u8, *player).put(to);
                    to.of_player(*player);
                    packet.put(to);
                }
                Some(QueuedEvent::Arrives(player, CarriedPacket::Snapshot(snapshot, base))) => {
                    (2u8, *player).put(to);
                    snapshot.put(to);
                    base.put(to);
                }
                Some(QueuedEvent::Arrives(player, CarriedPacket::Up(datagram))) => {
                    (3u8, *player, number).put(to);
                    servers[usize::from(player.0)].save_up(number, datagram, to);
                }
                Some(QueuedEvent::Arrives(player, CarriedPacket::Down(_))) => {
                    (4u8, *player).put(to);
                    SnapshotSeq(number).put(to);
                    let datagrams: Vec<&[u8]> = together.iter().filter_map(datagram).collect();
                    servers[usize::from(player.0)].save_down(number, &datagrams, to);
                }
                Some(QueuedEvent::Heard(player, HeardPacket { packet, received_before })) => {
                    (5u8, *player).put(to);
                    to.of_player(*player);
                    packet.put(to);
                    received_before.put(to);
                }
                // The next tick is queued only after the state of this one was looked at.
                Some(QueuedEvent::Tick) | None => to.byte(6),
            }
        }
    }

    /// Restores the queue of a session with `players` players.
    pub(super) fn restore(
        &mut self,
        (players, servers): (u16, &[ServerConnection<B>]),
        from: &mut Restorer<'_, B>,
    ) -> Result<(), StateError>
    where
        B: Body,
    {
        *self = Queue::default();
        let server = |player: PlayerId| {
            let server = servers.get(usize::from(player.0));
            server.ok_or(StateError::Unknown { what: "the connection of a datagram" })
        };
        for _ in 0..from.count(size_of::<QueuedEvent<B>>())? {
            let at = StateValue::<B>::get(from)?;
            let (kind, player): (u8, PlayerId) = StateValue::<B>::get(from)?;
            if player.0 >= players {
                return Err(StateError::Value { what: "a player", found: player.0.into() });
            }
            match kind {
                0 => self.push_frame(at, player),
                1 => {
                    from.of_player(player);
                    let packet: ClientPacket = StateValue::<B>::get(from)?;
                    self.push_arrival(at, player, packet.number, CarriedPacket::Packet(packet));
                }
                2 => {
                    let (snapshot, base): (Snapshot<B>, _) = StateValue::<B>::get(from)?;
                    self.push_arrival(at, player, snapshot.seq.0, CarriedPacket::Snapshot(snapshot, base));
                }
                3 => {
                    let number = StateValue::<B>::get(from)?;
                    let datagram = server(player)?.restore_up(number, from)?;
                    self.push_arrival(at, player, number, CarriedPacket::Up(datagram));
                }
                4 => {
                    let SnapshotSeq(number) = StateValue::<B>::get(from)?;
                    for datagram in server(player)?.restore_down(number, from)? {
                        self.push_arrival(at, player, number, CarriedPacket::Down(datagram));
                    }
                }
                5 => {
                    from.of_player(player);
                    let (packet, received_before) = StateValue::<B>::get(from)?;
                    self.push_heard(at, player, HeardPacket { packet, received_before });
                }
                found => return Err(StateError::Value { what: "what is due", found: found.into() }),
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
