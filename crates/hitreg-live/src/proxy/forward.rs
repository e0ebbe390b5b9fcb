//! The forwarding thread. Each client has its own socket to the server, so that the server can distinguish the clients
//! as it would without a proxy.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use super::{ProxyOptions, counts_of};
use crate::clock::MonotonicClock;
use crate::socket::open;
use crate::threads::spawn;
use crate::urgent::run_at_once;
use crate::{LiveError, TrafficCounts};
use hitreg_log::units::{Micros, PlayerId};
use hitreg_netcode::link::{Link, ModelledLink};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::Links;

/// The most clients of a proxy; each has a socket and a thread.
const CLIENTS_MAX: usize = 256;
/// The most datagrams that may wait to be forwarded.
const CAME_MAX: usize = 1 << 14;
/// The most delayed datagrams at a time.
const ON_THEIR_WAY_MAX: usize = 1 << 16;
/// The longest UDP datagram, in bytes.
const DATAGRAM_BYTES: usize = 65_535;
/// The interval at which the thread checks whether to stop.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// A forwarded datagram.
#[derive(Debug)]
pub(super) struct ForwardedDatagram {
    pub(super) at: Micros,
    pub(super) client: u16,
    pub(super) direction: Direction,
    pub(super) bytes: Vec<u8>,
    pub(super) released: Option<Micros>,
}

/// The totals of a proxy.
#[derive(Clone, Debug, Default)]
pub(super) struct ProxyTotals {
    pub(super) clients: u64,
    pub(super) up: TrafficCounts,
    pub(super) down: TrafficCounts,
    pub(super) lost_on_purpose: u64,
    pub(super) unrecorded: u64,
    pub(super) refused: u64,
    /// Whether the forwarding threads have real-time priority.
    pub(super) at_once: bool,
    /// How much later than due each datagram was forwarded, in µs. Holds the last [`ADDED_KEPT`] values.
    pub(super) added_us: Vec<u32>,
}

/// The most delays kept for the report.
const ADDED_KEPT: usize = 1 << 20;

/// A datagram that arrived at a socket.
enum IncomingDatagram {
    FromClient(SocketAddr, Micros, Vec<u8>),
    FromServer(u16, Micros, Vec<u8>),
}

/// One client.
struct ProxyClient {
    address: SocketAddr,
    /// The socket to the server.
    socket: Arc<UdpSocket>,
    links: Links<ModelledLink>,
}

pub(super) struct Forwarder<'env> {
    clock: MonotonicClock,
    front: &'env Arc<UdpSocket>,
    options: &'env ProxyOptions,
    over: &'env AtomicBool,
    seen: SyncSender<ForwardedDatagram>,
    came: (SyncSender<IncomingDatagram>, Receiver<IncomingDatagram>),
    clients: BTreeMap<SocketAddr, u16>,
    ends: Vec<ProxyClient>,
    /// Delayed datagrams, by due time and arrival.
    waiting: BTreeMap<(Micros, u64), (Direction, u16, Vec<u8>)>,
    /// The number of datagrams that had to wait.
    count: u64,
    traffic: (TrafficCounts, TrafficCounts),
    passed: ProxyTotals,
}

impl<'env> Forwarder<'env> {
    pub(super) fn new(
        clock: MonotonicClock,
        front: &'env Arc<UdpSocket>,
        options: &'env ProxyOptions,
        over: &'env AtomicBool,
        seen: SyncSender<ForwardedDatagram>,
    ) -> Forwarder<'env> {
        Forwarder {
            clock,
            front,
            options,
            over,
            seen,
            came: sync_channel(CAME_MAX),
            clients: BTreeMap::new(),
            ends: Vec::new(),
            waiting: BTreeMap::new(),
            count: 0,
            traffic: Default::default(),
            passed: ProxyTotals::default(),
        }
    }

    /// Forwards datagrams until `over` is set.
    pub(super) fn run<'scope>(mut self, scope: &'scope Scope<'scope, 'env>) -> Result<ProxyTotals, LiveError> {
        let (clock, over, to) = (self.clock, self.over, self.came.0.clone());
        let front = Arc::clone(self.front);
        self.passed.at_once = run_at_once();
        spawn(scope, "clients", move || {
            run_at_once();
            read(&front, over, |from, bytes| to.send(IncomingDatagram::FromClient(from, clock.now(), bytes)).is_ok());
        })?;
        while !self.over.load(Ordering::Relaxed) {
            self.send_due();
            let first = self.waiting.first_key_value();
            let wait = first.map_or(LOOK_UP_EVERY, |((due, _), _)| clock.until(*due).min(LOOK_UP_EVERY));
            match self.came.1.recv_timeout(wait) {
                Ok(IncomingDatagram::FromClient(from, at, bytes)) => match self.client(scope, from)? {
                    Some(client) => self.take(at, client, Direction::Up, bytes),
                    None => self.passed.refused += 1,
                },
                Ok(IncomingDatagram::FromServer(client, at, bytes)) => self.take(at, client, Direction::Down, bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let (up, down) = self.traffic;
        Ok(ProxyTotals { clients: self.ends.len() as u64, up, down, ..self.passed })
    }

    /// Returns the number of the client at an address. A new client gets a socket; `None` when there is no room for it.
    fn client<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        from: SocketAddr,
    ) -> Result<Option<u16>, LiveError> {
        if let Some(client) = self.clients.get(&from) {
            return Ok(Some(*client));
        }
        if self.ends.len() == CLIENTS_MAX {
            return Ok(None);
        }
        let any = match self.options.upstream {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = open(any)?;
        socket.connect(self.options.upstream).map_err(LiveError::Socket)?;
        let socket = Arc::new(socket);
        let client = self.ends.len() as u16;
        let links = Links::modelled(&self.options.link, self.options.seed, PlayerId(client));
        let (clock, over, to) = (self.clock, self.over, self.came.0.clone());
        let reads = Arc::clone(&socket);
        spawn(scope, "server", move || {
            run_at_once();
            read(&reads, over, |_, bytes| to.send(IncomingDatagram::FromServer(client, clock.now(), bytes)).is_ok());
        })?;
        self.ends.push(ProxyClient { address: from, socket, links });
        self.clients.insert(from, client);
        Ok(Some(client))
    }

    /// Forwards a datagram, immediately or later, and passes a copy to the recording thread.
    fn take(&mut self, came: Micros, client: u16, direction: Direction, bytes: Vec<u8>) {
        let Some(end) = self.ends.get_mut(usize::from(client)) else { return };
        let fate = end.links.link(direction).send(came, bytes.len().min(usize::from(u16::MAX)) as u16);
        let traffic = counts_of(&mut self.traffic, direction);
        traffic.datagrams += 1;
        traffic.bytes += bytes.len() as u64;
        self.passed.lost_on_purpose += u64::from(fate.first.is_none());
        for due in fate.arrivals() {
            if self.waiting.len() == ON_THEIR_WAY_MAX {
                self.passed.refused += 1;
            } else {
                self.waiting.insert((due, self.count), (direction, client, bytes.clone()));
                self.count += 1;
            }
        }
        self.send_due();
        let seen = ForwardedDatagram { at: came, client, direction, bytes, released: fate.first };
        if let Err(TrySendError::Full(_)) = self.seen.try_send(seen) {
            self.passed.unrecorded += 1;
        }
    }

    fn send_due(&mut self) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= self.clock.now()) {
            let ((due, _), (direction, client, bytes)) = first.remove_entry();
            let Some(end) = self.ends.get(usize::from(client)) else { continue };
            // A datagram that the system refuses counts as lost in transit.
            let sent = match direction {
                Direction::Up => end.socket.send(&bytes),
                Direction::Down => self.front.send_to(&bytes, end.address),
            };
            counts_of(&mut self.traffic, direction).arrived += u64::from(sent.is_ok());
            if self.passed.added_us.len() < ADDED_KEPT {
                let added = (self.clock.now() - due).0;
                self.passed.added_us.push(u32::try_from(added).unwrap_or(u32::MAX));
            }
        }
    }
}

/// Passes datagrams to `take` until `over` is set or `take` returns false.
fn read(socket: &UdpSocket, over: &AtomicBool, take: impl Fn(SocketAddr, Vec<u8>) -> bool) {
    let mut bytes = vec![0; DATAGRAM_BYTES];
    while !over.load(Ordering::Relaxed) {
        // A receive error concerns a single datagram or is a timeout.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if !take(from, bytes[..length].to_vec()) {
            return;
        }
    }
}
