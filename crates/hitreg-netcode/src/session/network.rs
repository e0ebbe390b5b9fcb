//! The network in virtual time: both ends of each player's connection, and links that decide when each transmission
//! arrives.
//!
//! Snapshots and packets travel as datagrams, as in a live session. A link can lose, delay or duplicate each datagram,
//! including fragments. A recorded link has one entry per snapshot, so all datagrams of a snapshot share it. They
//! arrive together when the snapshot was complete, or not at all.

use core::net::{Ipv4Addr, SocketAddr};

use glam::Vec3;

use super::Packed;
use super::queue::{Carried, Queue};
use super::sequence::{ClientEnd, ServerEnds};
use super::unencoded::Unencoded;
use crate::game::{Body, Game};
use crate::link::Link;
use crate::packet::{ClientPacket, HeardPacket, Snapshot};
use crate::pipeline::{Netcode, Setup};
use crate::settings::Sizes;
use crate::state::{BadState, Restorer, Saver};
use crate::wire::{
    ClientConnection, ClientEvent, ConnectOptions, Endpoint, EndpointOptions, Incoming, Key, Notice, Perceived,
    Request, ServerConnection, ServerEvent, What,
};
use hitreg_log::units::{Micros, PlayerId, Seed};

/// The two directions of one player's connection.
#[derive(Clone, Debug)]
pub struct Links<L> {
    /// From the client to the server.
    pub up: L,
    /// From the server to the client.
    pub down: L,
}

/// An observer between server and clients that can inject datagrams.
pub trait Intruder: Send {
    /// Sees a datagram that leaves one end of a player's connection, with the number of its packet or snapshot. May
    /// send another datagram to the same destination: its delay, number and bytes.
    fn sees(&mut self, player: PlayerId, number: u32, datagram: &[u8]) -> Option<(Micros, u32, Vec<u8>)>;
}

pub(super) struct Network<B, L> {
    links: Vec<Links<L>>,
    pub(super) queue: Queue<B>,
    carriage: Carriage<B>,
    intruder: Option<Box<dyn Intruder>>,
    /// The player whose client sends its own acks instead of the connection's.
    liar: Option<PlayerId>,
    /// The player whose client makes requests, and the observer of requests that reach the server.
    asking: Option<Asking>,
}

/// Requests that one player's client makes besides its usercmds.
pub struct Asking {
    pub player: PlayerId,
    /// Returns the next request, if any.
    pub asks: Box<dyn FnMut() -> Option<What> + Send>,
    /// Takes a request that reached the server, from any player.
    pub hears: Box<dyn FnMut(PlayerId, What) + Send>,
}

/// How packets and snapshots travel.
enum Carriage<B> {
    /// Encoded as datagrams.
    Datagrams { servers: Vec<ServerConnection<B>>, clients: Vec<ClientConnection<B>> },
    /// Unencoded, with nominal sizes.
    Nominal,
    /// Unencoded, as long as encoding would make no difference.
    Unencoded(Unencoded<B>),
}

/// The contents of an arrived transmission.
pub(super) enum Opened<B> {
    Packet(HeardPacket),
    Snapshot(Snapshot<B>),
    /// A fragment, or nothing to act on.
    Nothing,
}

impl<B: Body, L: Link> Network<B, L> {
    pub(super) fn new<G: Netcode<Body = B>>(setup: &Setup<G>, links: Vec<Links<L>>) -> Network<B, L> {
        let carriage = match setup.settings.wire.sizes {
            Sizes::Nominal => Carriage::Nominal,
            Sizes::Datagrams => {
                let most = setup.settings.wire.message_max_bytes.unsigned_abs() as usize;
                connect::<G>(setup.seed, links.len() as u16, most)
            }
        };
        Network::over(links, carriage)
    }

    pub(super) fn unencoded<G: Netcode<Body = B>>(setup: &Setup<G>, links: Vec<Links<L>>) -> Option<Network<B, L>> {
        let carriage = Carriage::Unencoded(Unencoded::new(&setup.settings, links.len() as u16)?);
        Some(Network::over(links, carriage))
    }

    fn over(links: Vec<Links<L>>, carriage: Carriage<B>) -> Network<B, L> {
        Network { links, queue: Queue::default(), carriage, intruder: None, liar: None, asking: None }
    }

    /// Lets an intruder see all datagrams from now on.
    pub(super) fn let_in(&mut self, intruder: Box<dyn Intruder>) {
        self.intruder = Some(intruder);
    }

    /// Lets one player's client send its own acks.
    pub(super) fn let_lie(&mut self, player: PlayerId) {
        self.liar = Some(player);
    }

    /// Lets one player's client make requests.
    pub(super) fn let_ask(&mut self, asking: Asking) {
        self.asking = Some(asking);
    }

    /// Saves the transmissions in transit, and what both ends know of each other. Returns false for encoded datagrams,
    /// because only unencoded traffic can be resumed.
    pub(super) fn save(&self, to: &mut Saver<'_, B>) -> bool {
        let Network { links: _, queue, carriage, intruder, liar, asking } = self;
        let Carriage::Unencoded(unencoded) = carriage else { return false };
        unencoded.save(to);
        queue.save(to) && intruder.is_none() && liar.is_none() && asking.is_none() && !unencoded.bytes_matter()
    }

    pub(super) fn restore(&mut self, from: &mut Restorer<'_, B>) -> Result<(), BadState> {
        let players = self.players();
        let Carriage::Unencoded(unencoded) = &mut self.carriage else {
            return Err(BadState::Unknown { what: "a session without datagrams" });
        };
        unencoded.restore(from)?;
        self.queue.restore(from, players)
    }

    pub(super) fn players(&self) -> u16 {
        self.links.len() as u16
    }

    pub(super) fn bytes_matter(&self) -> bool {
        matches!(&self.carriage, Carriage::Unencoded(unencoded) if unencoded.bytes_matter())
    }

    /// Returns the end of one player's client.
    pub(super) fn end_of(&mut self, player: PlayerId) -> EndOf<'_, B, L> {
        EndOf { network: self, player }
    }

    /// Passes the acks of a packet that has no datagram to the server's end.
    pub(super) fn handle_heard(&mut self, player: PlayerId, heard: &HeardPacket) {
        let index = usize::from(player.0);
        match &mut self.carriage {
            Carriage::Datagrams { servers, .. } => servers[index].handle_heard(heard),
            Carriage::Unencoded(unencoded) => unencoded.handle_heard(index, heard.packet.ack),
            Carriage::Nominal => {}
        }
    }

    /// Passes an arrived transmission to the receiving end of its connection.
    pub(super) fn open(&mut self, at: Micros, player: PlayerId, carried: Carried<B>) -> Opened<B> {
        let index = usize::from(player.0);
        match (carried, &mut self.carriage) {
            (Carried::Up(datagram), Carriage::Datagrams { servers, .. }) => {
                match servers[index].handle_datagram(at, &datagram) {
                    Ok(ServerEvent::Packet(heard)) => Opened::Packet(heard),
                    Ok(ServerEvent::Request(Request { number, what })) => {
                        // Games define no requests, so the server only acks them. A client with too many unacked
                        // notices gets no answer.
                        let _ = servers[index].tell(Notice::RequestAck { request: number, answer: Vec::new() });
                        if let Some(asking) = &mut self.asking {
                            (asking.hears)(player, what);
                        }
                        Opened::Nothing
                    }
                    Ok(_) | Err(_) => Opened::Nothing,
                }
            }
            (Carried::Down(datagram), Carriage::Datagrams { clients, .. }) => {
                match clients[index].handle_datagram(at, &datagram) {
                    Ok(Some(ClientEvent::Snapshot { received, .. })) => Opened::Snapshot(received.snapshot),
                    Ok(_) | Err(_) => Opened::Nothing,
                }
            }
            (Carried::Packet(packet), Carriage::Unencoded(unencoded)) => {
                unencoded.handle_packet(index, packet.number, packet.ack);
                Opened::Packet(HeardPacket { packet, received_before: 0 })
            }
            (Carried::Snapshot(snapshot, base), Carriage::Unencoded(unencoded)) => {
                match unencoded.handle_snapshot(index, snapshot.seq, base) {
                    true => Opened::Snapshot(snapshot),
                    false => Opened::Nothing,
                }
            }
            (Carried::Packet(packet), _) => Opened::Packet(HeardPacket { packet, received_before: 0 }),
            (Carried::Snapshot(snapshot, _), _) => Opened::Snapshot(snapshot),
            (Carried::Up(_) | Carried::Down(_), _) => Opened::Nothing,
        }
    }
}

impl<B: Body, L: Link> ServerEnds<B> for Network<B, L> {
    fn pack(&mut self, at: Micros, player: PlayerId, snapshot: &Snapshot<B>) -> Option<Packed> {
        let index = usize::from(player.0);
        match &mut self.carriage {
            // A snapshot that cannot be sent is recorded with a size of 0 bytes, and never arrives.
            Carriage::Datagrams { servers, .. } => {
                let sent = servers[index].send_snapshot(snapshot);
                Some(sent.map_or_else(|_| Packed::default(), |sent| Packed::of(&sent)))
            }
            Carriage::Nominal => Some(Packed::nominal(snapshot.nominal_bytes())),
            Carriage::Unencoded(unencoded) => {
                unencoded.send_snapshot(index, at, snapshot);
                None
            }
        }
    }

    fn send(&mut self, at: Micros, player: PlayerId, snapshot: Snapshot<B>) {
        let index = usize::from(player.0);
        let (link, queue, number) = (&mut self.links[index].down, &mut self.queue, snapshot.seq.0);
        let intruder = &mut self.intruder;
        match &mut self.carriage {
            Carriage::Datagrams { servers, .. } => {
                while let Some(datagram) = servers[index].poll_transmit() {
                    let bytes = size(datagram.len());
                    let other = intruder.as_mut().and_then(|i| i.sees(player, number, &datagram));
                    if let Some((after, number, other)) = other {
                        queue.push_arrival(at + after, player, number, Carried::Down(other));
                    }
                    deliver(link, queue, at, player, number, bytes, Carried::Down(datagram));
                }
            }
            Carriage::Nominal => {
                let bytes = snapshot.nominal_bytes();
                deliver(link, queue, at, player, number, bytes, Carried::Snapshot(snapshot, None));
            }
            Carriage::Unencoded(unencoded) => {
                let base = unencoded.acked(index);
                deliver(link, queue, at, player, number, 0, Carried::Snapshot(snapshot, base));
            }
        }
    }

    fn ticked(&mut self, at: Micros) {
        if let Carriage::Unencoded(unencoded) = &mut self.carriage {
            unencoded.handle_tick(at);
        }
    }
}

/// The connection end of one client.
pub(super) struct EndOf<'a, B, L> {
    network: &'a mut Network<B, L>,
    player: PlayerId,
}

impl<B: Body, L: Link> ClientEnd for EndOf<'_, B, L> {
    fn pack(&mut self, _at: Micros, packet: &mut ClientPacket, predicted: Option<Vec3>) -> Option<u16> {
        let index = usize::from(self.player.0);
        match &mut self.network.carriage {
            // A datagram has room for all usercmds that `client.redundancy` allows.
            Carriage::Datagrams { clients, .. } => {
                let sent = match self.network.liar == Some(self.player) {
                    true => clients[index].send_packet_as_is(packet, predicted.map(Perceived::origin)),
                    false => clients[index].send_packet(packet, predicted.map(Perceived::origin)),
                };
                sent.ok().flatten().map(size)
            }
            Carriage::Nominal => Some(packet.nominal_bytes()),
            Carriage::Unencoded(_) => None,
        }
    }

    fn send(&mut self, at: Micros, packet: ClientPacket) {
        let index = usize::from(self.player.0);
        let (link, queue, number) = (&mut self.network.links[index].up, &mut self.network.queue, packet.number);
        let intruder = &mut self.network.intruder;
        match &mut self.network.carriage {
            Carriage::Datagrams { clients, .. } => {
                if let Some(asking) = self.network.asking.as_mut().filter(|asking| asking.player == self.player) {
                    // A request is dropped when too many are unanswered.
                    while let Some(what) = (asking.asks)() {
                        let _ = clients[index].ask(what);
                    }
                    clients[index].handle_timeout(at);
                }
                while let Some(datagram) = clients[index].poll_transmit() {
                    let bytes = size(datagram.len());
                    let other = intruder.as_mut().and_then(|i| i.sees(self.player, number, &datagram));
                    if let Some((after, number, other)) = other {
                        queue.push_arrival(at + after, self.player, number, Carried::Up(other));
                    }
                    deliver(link, queue, at, self.player, number, bytes, Carried::Up(datagram));
                }
            }
            Carriage::Nominal | Carriage::Unencoded(_) => {
                let bytes = packet.nominal_bytes();
                deliver(link, queue, at, self.player, number, bytes, Carried::Packet(packet));
            }
        }
    }
}

/// Queues a transmission at the time at which the link delivers it.
fn deliver<B: Clone>(
    link: &mut impl Link,
    queue: &mut Queue<B>,
    at: Micros,
    player: PlayerId,
    number: u32,
    bytes: u16,
    carried: Carried<B>,
) {
    let fate = link.send(at, bytes);
    let mut arrivals = fate.arrivals();
    if let Some(second) = fate.second {
        queue.push_arrival(second, player, number, carried.clone());
    }
    if let Some(first) = arrivals.next() {
        queue.push_arrival(first, player, number, carried);
    }
}

/// Converts a size to the type that logs use.
fn size(bytes: usize) -> u16 {
    bytes.min(usize::from(u16::MAX)) as u16
}

/// Connects all players with the live handshake, in no virtual time, because a session begins when all players are
/// connected. Keys and salts come from the seed, so that the same session has the same datagrams.
fn connect<G: Game>(seed: Seed, players: u16, message_bytes_max: usize) -> Carriage<G::Body> {
    let now = Micros::ZERO;
    let options = EndpointOptions {
        game: G::NAME.to_owned(),
        places: players,
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
                Incoming::Reply(reply) => reply,
                Incoming::Joined { player, key, reply, .. } => {
                    let mut connection = ServerConnection::new(key, player, players, now);
                    connection.limit_messages(message_bytes_max);
                    connection.categorize(G::category);
                    servers.push(connection);
                    reply
                }
                Incoming::Connection(_) | Incoming::Ignored(_) => break,
            };
            // An error here is harmless: the loop checks whether the client is connected.
            let _ = client.handle_datagram(now, &reply);
        }
        clients.push(client);
    }
    Carriage::Datagrams { servers, clients }
}
