//! The network in virtual time: both ends of each player's connection, and links that decide when each transmission
//! arrives.
//!
//! Snapshots and packets travel as datagrams, as in a live session. A link can lose, delay or duplicate each datagram,
//! including fragments. A recorded link has one entry per snapshot, so all datagrams of a snapshot share it. They
//! arrive together when the snapshot was complete, or not at all.

use core::net::{Ipv4Addr, SocketAddr};

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::SnapshotSize;
use super::queue::{Queue, QueuedEvent};
use super::sequence::{ClientEnd, PackedSnapshot, ServerEnds};
use super::unencoded::UnencodedTransport;
use crate::game::{Body, Game};
use crate::link::{Link, LinkModel, ModelledLink};
use crate::packet::{ClientPacket, ReceivedPacket, Snapshot};
use crate::pipeline::{Netcode, Setup};
use crate::protocol::Direction;
use crate::settings::Sizes;
use crate::state::{KnownRecords, State, StateError, StateReader, StateWriter};
use crate::wire::{
    ClientConnection, ClientEvent, ClientRequest, ConnectOptions, Endpoint, EndpointOptions, IncomingMessage, Key,
    Notice, PerceivedAvatar, RequestKind, ServerConnection, ServerEvent, SharedStates,
};
use hitreg_log::rng::stream;
use hitreg_log::units::{Micros, PlayerId, Seed};

/// The two directions of one player's connection.
#[derive(Clone, Debug, Default)]
pub struct Links<L> {
    /// From the client to the server.
    pub up: L,
    /// From the server to the client.
    pub down: L,
}

impl<L> Links<L> {
    /// Makes the link of each direction.
    pub fn of(mut link: impl FnMut(Direction) -> L) -> Links<L> {
        Links { up: link(Direction::Up), down: link(Direction::Down) }
    }

    /// Returns the link of a direction.
    pub fn link(&mut self, direction: Direction) -> &mut L {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

impl Links<ModelledLink> {
    /// Returns the links of a player under a model. They follow from the session's seed and the player's number, so a
    /// session over UDP has the same links as a synthetic one.
    pub fn modelled(model: &LinkModel, seed: Seed, player: PlayerId) -> Links<ModelledLink> {
        let stream_of = |direction| stream(*b"link", u32::from(player.0) << 1 | direction as u32);
        Links::of(|direction| ModelledLink::new(model.clone(), seed, stream_of(direction)))
    }
}

/// An observer between server and clients that can inject datagrams.
pub trait Intruder: Send {
    /// Sees a datagram that leaves one end of a player's connection, with the number of its packet or snapshot. May
    /// send another datagram to the same destination.
    fn intercept(&mut self, player: PlayerId, number: u32, datagram: &[u8]) -> Option<InjectedDatagram>;
}

/// A datagram of an intruder.
#[derive(Clone, Debug)]
pub struct InjectedDatagram {
    /// The time from the sending of the intercepted datagram to its own arrival.
    pub delay: Micros,
    /// The number of the packet or snapshot that it belongs to, for the order of arrivals at one time.
    pub number: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

pub(super) struct SessionNetwork<B, L> {
    links: Vec<Links<L>>,
    pub(super) queue: Queue<B>,
    transport: Transport<B>,
    /// Sees all datagrams.
    pub(super) intruder: Option<Box<dyn Intruder>>,
    /// The player whose client sends its own acks instead of the connection's.
    pub(super) ack_forger: Option<PlayerId>,
    /// The requests of one client, and the observer of requests that reach the server.
    pub(super) client_requests: Option<ClientRequests>,
}

/// Requests that one player's client makes besides its usercmds.
pub struct ClientRequests {
    /// The player whose client makes the requests.
    pub player: PlayerId,
    /// Returns the next request, if any.
    pub next: Box<dyn FnMut() -> Option<RequestKind> + Send>,
    /// Takes a request that reached the server, from any player.
    pub on_arrival: Box<dyn FnMut(PlayerId, RequestKind) + Send>,
}

hitreg_log::partial_debug!(ClientRequests { player });

/// How packets and snapshots travel.
enum Transport<B> {
    /// Encoded as datagrams.
    Datagrams { servers: Vec<ServerConnection<B>>, clients: Vec<ClientConnection<B>>, states: SharedStates<B> },
    /// Unencoded, with nominal sizes.
    Nominal,
    /// Unencoded, as long as encoding would make no difference.
    Unencoded(Box<UnencodedTransport<B>>),
}

/// How packets and snapshots of a session travel, without state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TransportKind {
    /// Unencoded, because encoding would make no difference.
    Unencoded,
    /// Unencoded, with nominal sizes.
    Nominal,
    /// Encoded as datagrams.
    Datagrams,
}

/// The contents of an arrived transmission.
pub(super) enum DeliveredPacket<B> {
    Packet(ReceivedPacket),
    Snapshot(Snapshot<B>),
}

impl<B: Body, L: Link> SessionNetwork<B, L> {
    pub(super) fn new<G: Netcode<Body = B>>(setup: &Setup<G>, links: Vec<Links<L>>) -> SessionNetwork<B, L> {
        let transport = match setup.settings.wire.sizes {
            Sizes::Nominal => Transport::Nominal,
            Sizes::Datagrams => {
                let most = setup.settings.wire.message_max_bytes.unsigned_abs() as usize;
                connect::<G>(setup.seed, links.len() as u16, most)
            }
        };
        SessionNetwork::over(links, transport)
    }

    pub(super) fn unencoded<G: Netcode<Body = B>>(
        setup: &Setup<G>,
        links: Vec<Links<L>>,
    ) -> Option<SessionNetwork<B, L>> {
        let transport = Transport::Unencoded(Box::new(UnencodedTransport::new(&setup.settings, links.len() as u16)?));
        Some(SessionNetwork::over(links, transport))
    }

    fn over(links: Vec<Links<L>>, transport: Transport<B>) -> SessionNetwork<B, L> {
        SessionNetwork {
            links,
            queue: Queue::default(),
            transport,
            intruder: None,
            ack_forger: None,
            client_requests: None,
        }
    }

    /// Returns how packets and snapshots travel.
    pub(super) fn transport_kind(&self) -> TransportKind {
        match &self.transport {
            Transport::Datagrams { .. } => TransportKind::Datagrams,
            Transport::Nominal => TransportKind::Nominal,
            Transport::Unencoded(_) => TransportKind::Unencoded,
        }
    }

    /// Saves the transmissions in transit, and what both ends know of each other. Returns false for a session with an
    /// intruder or with a client that does more than a client does, and for one whose bytes matter but are unknown.
    pub(super) fn save(&self, known: Option<&KnownRecords<B>>, to: &mut StateWriter) -> bool {
        let SessionNetwork { links: _, queue, transport, intruder, ack_forger, client_requests } = self;
        let servers = match transport {
            Transport::Datagrams { servers, clients, .. } => {
                servers.iter().for_each(|server| server.save(to));
                clients.iter().for_each(|client| client.save(to));
                &servers[..]
            }
            Transport::Nominal => &[],
            Transport::Unencoded(unencoded) => {
                unencoded.save(to);
                &[]
            }
        };
        queue.save(servers, known, to);
        let has_extras = intruder.is_some() || ack_forger.is_some() || client_requests.is_some();
        !has_extras && !self.needs_encoding()
    }

    /// Restores what a network with the same transport saved.
    pub(super) fn restore(&mut self, known: &KnownRecords<B>, from: &mut StateReader) -> Result<(), StateError> {
        let players = self.players();
        let servers = match &mut self.transport {
            Transport::Datagrams { servers, clients, .. } => {
                servers.iter_mut().try_for_each(|server| server.restore(from))?;
                clients.iter_mut().try_for_each(|client| client.restore(from))?;
                &servers[..]
            }
            Transport::Nominal => &[],
            Transport::Unencoded(unencoded) => {
                unencoded.restore(from)?;
                &[]
            }
        };
        self.queue.restore(players, servers, known, from)
    }

    pub(super) fn players(&self) -> u16 {
        self.links.len() as u16
    }

    pub(super) fn needs_encoding(&self) -> bool {
        matches!(&self.transport, Transport::Unencoded(unencoded) if unencoded.needs_encoding)
    }

    /// Passes an arrived transmission to the receiving end of its connection. Returns `None` for a fragment, and when
    /// there is nothing to act on.
    pub(super) fn deliver(&mut self, at: Micros, player: PlayerId, sent: QueuedEvent<B>) -> Option<DeliveredPacket<B>> {
        let index = usize::from(player.0);
        match sent {
            QueuedEvent::Up(datagram) => self.deliver_up(at, player, &datagram),
            QueuedEvent::Down(datagram) => self.deliver_down(at, player, &datagram),
            QueuedEvent::Packet(packet) => {
                if let Transport::Unencoded(unencoded) = &mut self.transport {
                    unencoded.handle_packet(index, packet.number, packet.ack);
                }
                Some(DeliveredPacket::Packet(ReceivedPacket { packet, received_before: 0 }))
            }
            QueuedEvent::Snapshot { snapshot, acked } => {
                let is_new = match &mut self.transport {
                    Transport::Unencoded(unencoded) => unencoded.handle_snapshot(index, snapshot.seq, acked),
                    _ => true,
                };
                is_new.then_some(DeliveredPacket::Snapshot(snapshot))
            }
            QueuedEvent::Heard(heard) => {
                match &mut self.transport {
                    Transport::Datagrams { servers, .. } => servers[index].handle_heard(&heard),
                    Transport::Unencoded(unencoded) => unencoded.handle_heard(index, heard.packet.ack),
                    Transport::Nominal => {}
                }
                Some(DeliveredPacket::Packet(heard))
            }
            QueuedEvent::Tick | QueuedEvent::Frame => None,
        }
    }

    fn deliver_up(&mut self, at: Micros, player: PlayerId, datagram: &[u8]) -> Option<DeliveredPacket<B>> {
        let Transport::Datagrams { servers, .. } = &mut self.transport else { return None };
        let server = &mut servers[usize::from(player.0)];
        match server.handle_datagram(at, datagram).ok()? {
            ServerEvent::Packet(received) => Some(DeliveredPacket::Packet(received)),
            ServerEvent::Request(ClientRequest { number, what }) => {
                // Games define no requests, so the server only acks them. The outbox has room for the ack.
                let _ = server.queue_notice(Notice::RequestAck { request: number, answer: Vec::new() });
                if let Some(requests) = &mut self.client_requests {
                    (requests.on_arrival)(player, what);
                }
                None
            }
            _ => None,
        }
    }

    fn deliver_down(&mut self, at: Micros, player: PlayerId, datagram: &[u8]) -> Option<DeliveredPacket<B>> {
        let Transport::Datagrams { clients, .. } = &mut self.transport else { return None };
        match clients[usize::from(player.0)].handle_datagram(at, datagram).ok()?? {
            ClientEvent::Snapshot { received, .. } => Some(DeliveredPacket::Snapshot(received.snapshot)),
            _ => None,
        }
    }
}

impl<B: Body, L: Link> ServerEnds<B> for SessionNetwork<B, L> {
    fn pack(&mut self, at: Micros, player: PlayerId, snapshot: &mut Snapshot<B>) -> PackedSnapshot<B> {
        let index = usize::from(player.0);
        match &mut self.transport {
            Transport::Datagrams { servers, states, .. } => {
                PackedSnapshot::encoded(servers[index].send_snapshot(snapshot, states))
            }
            Transport::Nominal => {
                let size = SnapshotSize::nominal(snapshot.nominal_bytes());
                PackedSnapshot::whole(snapshot, Some(size))
            }
            Transport::Unencoded(unencoded) => {
                unencoded.send_snapshot(index, at, snapshot);
                PackedSnapshot::whole(snapshot, None)
            }
        }
    }

    fn send(&mut self, at: Micros, player: PlayerId, snapshot: Snapshot<B>) {
        let index = usize::from(player.0);
        let SessionNetwork { links, queue, transport, intruder, .. } = self;
        let link = &mut links[index].down;
        let mut departure = Departure { link, queue, intruder, at, player, number: snapshot.seq.0 };
        match transport {
            Transport::Datagrams { servers, .. } => {
                servers[index].handle_timeout(at);
                departure.send_datagrams(|| servers[index].poll_transmit(), QueuedEvent::Down);
            }
            Transport::Nominal => {
                departure.send(snapshot.nominal_bytes(), QueuedEvent::Snapshot { snapshot, acked: None });
            }
            Transport::Unencoded(unencoded) => {
                departure.send(0, QueuedEvent::Snapshot { snapshot, acked: unencoded.acked(index) });
            }
        }
    }

    fn ticked(&mut self, at: Micros) {
        if let Transport::Unencoded(unencoded) = &mut self.transport {
            unencoded.handle_tick(at);
        }
    }
}

/// The connection end of one client.
pub(super) struct NetworkEnd<'a, B, L> {
    pub(super) network: &'a mut SessionNetwork<B, L>,
    pub(super) player: PlayerId,
}

impl<B: Body, L: Link> ClientEnd for NetworkEnd<'_, B, L> {
    fn pack(&mut self, _at: Micros, packet: &mut ClientPacket, predicted: Option<Vec3>) -> Option<u16> {
        let index = usize::from(self.player.0);
        match &mut self.network.transport {
            // A datagram has room for all usercmds that `client.redundancy` allows.
            Transport::Datagrams { clients, .. } => {
                let sent = match self.network.ack_forger == Some(self.player) {
                    true => clients[index].send_packet_as_is(packet, predicted.map(PerceivedAvatar::origin)),
                    false => clients[index].send_packet(packet, predicted.map(PerceivedAvatar::origin)),
                };
                sent.ok().flatten().map(size)
            }
            Transport::Nominal => Some(packet.nominal_bytes()),
            Transport::Unencoded(_) => None,
        }
    }

    fn send(&mut self, at: Micros, packet: ClientPacket) -> bool {
        let index = usize::from(self.player.0);
        let SessionNetwork { links, queue, transport, intruder, client_requests, .. } = &mut *self.network;
        let (link, player) = (&mut links[index].up, self.player);
        let mut departure = Departure { link, queue, intruder, at, player, number: packet.number };
        match transport {
            Transport::Datagrams { clients, .. } => {
                if let Some(requests) = client_requests.as_mut().filter(|requests| requests.player == player) {
                    // A request is dropped when too many are unanswered.
                    while let Some(what) = (requests.next)() {
                        let _ = clients[index].queue_request(what);
                    }
                    clients[index].handle_timeout(at);
                }
                departure.send_datagrams(|| clients[index].poll_transmit(), QueuedEvent::Up)
            }
            Transport::Nominal | Transport::Unencoded(_) => {
                departure.send(packet.nominal_bytes(), QueuedEvent::Packet(packet))
            }
        }
    }
}

/// A packet or snapshot that leaves one end of a connection.
struct Departure<'n, B, L> {
    link: &'n mut L,
    queue: &'n mut Queue<B>,
    intruder: &'n mut Option<Box<dyn Intruder>>,
    at: Micros,
    player: PlayerId,
    number: u32,
}

impl<B: Clone, L: Link> Departure<'_, B, L> {
    /// Sends all datagrams that `next` returns. Returns whether any of them arrives.
    fn send_datagrams(
        &mut self,
        mut next: impl FnMut() -> Option<Vec<u8>>,
        arrives: impl Fn(Vec<u8>) -> QueuedEvent<B>,
    ) -> bool {
        let mut any_arrives = false;
        while let Some(datagram) = next() {
            let injected = self.intruder.as_mut().and_then(|i| i.intercept(self.player, self.number, &datagram));
            if let Some(InjectedDatagram { delay, number, bytes }) = injected {
                self.queue.push(self.at + delay, self.player, number, arrives(bytes));
            }
            any_arrives |= self.send(size(datagram.len()), arrives(datagram));
        }
        any_arrives
    }

    /// Queues a transmission at the time at which the link delivers it. Returns whether it arrives.
    fn send(&mut self, bytes: u16, arrives: QueuedEvent<B>) -> bool {
        let fate = self.link.send(self.at, bytes);
        if let Some(second) = fate.second {
            self.queue.push(second, self.player, self.number, arrives.clone());
        }
        if let Some(first) = fate.first {
            self.queue.push(first, self.player, self.number, arrives);
        }
        fate.first.is_some()
    }
}

/// Converts a size to the type that logs use.
fn size(bytes: usize) -> u16 {
    bytes.min(usize::from(u16::MAX)) as u16
}

/// Connects all players with the live handshake, in no virtual time, because a session begins when all players are
/// connected. Keys and salts come from the seed, so that the same session has the same datagrams.
fn connect<G: Game>(seed: Seed, players: u16, message_bytes_max: usize) -> Transport<G::Body> {
    let now = Micros::ZERO;
    let options = EndpointOptions {
        game: G::NAME.to_owned(),
        slots: players,
        welcome: Vec::new(),
        unready_per_host: players,
        secret: Key(seed.0, 0),
    };
    let mut endpoint = Endpoint::new(options);
    let (mut servers, mut clients) = (Vec::new(), Vec::new());
    for player in 0..players {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, player));
        let mut client = ClientConnection::new(ConnectOptions::new(G::NAME), u64::from(player), now);
        while client.player().is_none() {
            client.handle_timeout(now);
            let Some(datagram) = client.poll_transmit() else { break };
            let reply = match endpoint.handle_datagram(now, address, &datagram) {
                IncomingMessage::Reply(reply) => reply,
                IncomingMessage::Joined { player, key, reply, .. } => {
                    let mut connection = ServerConnection::new(key, player, players, now);
                    connection.limit_messages(message_bytes_max);
                    connection.categorize(G::category);
                    connection.accept_input::<G::Input>();
                    servers.push(connection);
                    reply
                }
                IncomingMessage::Connection(_) | IncomingMessage::Ignored(_) => break,
            };
            // An error here is harmless: the loop checks whether the client is connected.
            let _ = client.handle_datagram(now, &reply);
        }
        clients.push(client);
    }
    Transport::Datagrams { servers, clients, states: SharedStates::default() }
}
