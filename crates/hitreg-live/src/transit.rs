//! Modelled links between sockets. A datagram waits here for its modelled delay. The thread then sends it through the
//! intended socket, or passes it to its reader.

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Duration;

use super::clock::MonotonicClock;
use super::socket::ReceivedDatagram;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::Micros;
use hitreg_netcode::link::{Link, ModelledLink};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::Links;
use hitreg_netcode::wire::{MessageType, message_type};

/// The most datagrams that may wait for the delaying thread.
pub(super) const WAITING_IN_TRANSIT: usize = 8192;

/// Sends datagrams through a socket, either immediately or through modelled links.
#[derive(Clone, Debug)]
pub(super) struct Outbound {
    socket: Arc<UdpSocket>,
    delays: Option<SyncSender<TransitDatagram>>,
}

/// A datagram in transit.
#[derive(Clone, Debug)]
pub(super) struct TransitDatagram {
    to: TransitTarget,
    bytes: Vec<u8>,
    sent_at: Micros,
    /// The index of the modelled connection that it takes.
    line: usize,
    direction: Direction,
}

/// The destination of a datagram.
#[derive(Clone, Debug)]
enum TransitTarget {
    /// Outgoing, to this address.
    Address(Arc<UdpSocket>, SocketAddr),
    /// Incoming, to this reader; the datagram came from this address.
    Inbox(SyncSender<ReceivedDatagram>, SocketAddr),
}

impl Outbound {
    pub(super) fn new(socket: Arc<UdpSocket>, delays: Option<SyncSender<TransitDatagram>>) -> Outbound {
        Outbound { socket, delays }
    }

    /// Sends a datagram immediately. A datagram that the system refuses counts as lost in transit.
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let _ = self.socket.send_to(bytes, to);
    }

    /// Sends a datagram of a connection, through its modelled link if there is one.
    pub(super) fn send_on(&self, line: usize, direction: Direction, sent_at: Micros, to: SocketAddr, bytes: Vec<u8>) {
        match &self.delays {
            None => self.send(to, &bytes),
            Some(delays) => {
                let to = TransitTarget::Address(Arc::clone(&self.socket), to);
                // The receiving thread ends only after the session.
                let _ = delays.send(TransitDatagram { to, bytes, sent_at, line, direction });
            }
        }
    }
}

/// Passes received datagrams to their reader, either immediately or through modelled links.
#[derive(Clone, Debug)]
pub(super) struct InboundQueue {
    reader: SyncSender<ReceivedDatagram>,
    delays: Option<(MonotonicClock, SyncSender<TransitDatagram>)>,
}

impl InboundQueue {
    pub(super) fn new(
        reader: SyncSender<ReceivedDatagram>,
        delays: Option<(MonotonicClock, SyncSender<TransitDatagram>)>,
    ) -> InboundQueue {
        InboundQueue { reader, delays }
    }

    /// Takes a received datagram. Breaks when the reader has ended. Handshake and farewell datagrams are not delayed.
    pub(super) fn take(&self, from: SocketAddr, bytes: Vec<u8>) -> ControlFlow<()> {
        let is_frame =
            matches!(message_type(&bytes), Ok(MessageType::LiveFromServer | MessageType::FragmentFromServer));
        let is_over = match &self.delays {
            Some((clock, delays)) if is_frame => {
                let to = TransitTarget::Inbox(self.reader.clone(), from);
                let posted = TransitDatagram { to, bytes, sent_at: clock.now(), line: 0, direction: Direction::Down };
                delays.send(posted).is_err()
            }
            Some(_) | None => matches!(self.reader.try_send((from, bytes)), Err(TrySendError::Disconnected(_))),
        };
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Delays datagrams until all senders have ended. Datagrams still in transit at that time are lost.
pub(super) fn deliver(clock: MonotonicClock, mut links: Vec<Links<ModelledLink>>, posts: &Receiver<TransitDatagram>) {
    // Datagrams by due time and arrival.
    let mut waiting: SortedMap<(Micros, u64), TransitDatagram> = SortedMap::new();
    let mut posted = 0;
    loop {
        while let Some(post) = waiting.first_entry().filter(|post| post.key().0 <= clock.now()) {
            post.remove().arrive();
        }
        let wait = waiting.first_key_value().map_or(Duration::from_secs(1), |((due, _), _)| clock.until(*due));
        let post = match posts.recv_timeout(wait) {
            Ok(post) => post,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(links) = links.get_mut(post.line) else { continue };
        let fate = links.link(post.direction).send(post.sent_at, post.bytes.len().min(usize::from(u16::MAX)) as u16);
        for due in fate.arrivals() {
            waiting.insert((due, posted), post.clone());
            posted += 1;
        }
    }
}

impl TransitDatagram {
    /// Delivers the datagram. It is lost when the destination refuses it.
    fn arrive(self) {
        match self.to {
            TransitTarget::Address(socket, to) => drop(socket.send_to(&self.bytes, to)),
            TransitTarget::Inbox(reader, from) => drop(reader.try_send((from, self.bytes))),
        }
    }
}
