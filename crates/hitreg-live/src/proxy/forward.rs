//! The forwarding thread. Each client has its own socket to the server, so that the server can distinguish the clients
//! as it would without a proxy.

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::Scope;

use super::{ProxyOptions, ProxyReport};
use crate::LiveError;
use crate::clock::MonotonicClock;
use crate::report::LatenessSummary;
use crate::socket::{LOOK_UP_EVERY, open_towards, read};
use crate::threads::spawn;
use crate::urgent::run_at_once;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Micros, PlayerId};
use hitreg_netcode::link::{Link, ModelledLink};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::Links;

/// The most clients of a proxy at a time; each has a socket and a thread. A new client replaces the one that has been
/// silent for longest.
const CLIENTS_MAX: usize = 256;
/// The most datagrams that may wait to be forwarded.
const CAME_MAX: usize = 1 << 14;
/// The most delayed datagrams at a time.
const ON_THEIR_WAY_MAX: usize = 1 << 16;
/// The longest UDP datagram, in bytes.
const DATAGRAM_BYTES: usize = 65_535;
/// The most delays kept for the report.
const ADDED_KEPT: usize = 1 << 20;

/// A forwarded datagram.
#[derive(Debug)]
pub(super) struct ForwardedDatagram {
    pub(super) at: Micros,
    pub(super) client: u16,
    pub(super) direction: Direction,
    pub(super) bytes: Vec<u8>,
    pub(super) released: Option<Micros>,
}

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
    /// The arrival time of its last datagram.
    heard_at: Micros,
    /// Ends the thread that reads the socket.
    closed: Arc<AtomicBool>,
}

impl Drop for ProxyClient {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

pub(super) struct Forwarder<'env> {
    clock: MonotonicClock,
    front: &'env Arc<UdpSocket>,
    options: &'env ProxyOptions,
    over: &'env AtomicBool,
    seen: SyncSender<ForwardedDatagram>,
    came: (SyncSender<IncomingDatagram>, Receiver<IncomingDatagram>),
    clients: SortedMap<SocketAddr, u16>,
    ends: SortedMap<u16, ProxyClient>,
    /// Delayed datagrams, by due time and arrival.
    waiting: SortedMap<(Micros, u64), (Direction, u16, Vec<u8>)>,
    /// The number of datagrams that had to wait.
    count: u64,
    /// How much later than due each datagram was forwarded, in µs. Holds the first [`ADDED_KEPT`] values.
    added_us: Vec<u32>,
    /// The report, without what was heard.
    report: ProxyReport,
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
            clients: SortedMap::new(),
            ends: SortedMap::new(),
            waiting: SortedMap::new(),
            count: 0,
            added_us: Vec::new(),
            report: ProxyReport::default(),
        }
    }

    /// Forwards datagrams until `over` is set. The report has no counters of a listener.
    pub(super) fn run<'scope>(mut self, scope: &'scope Scope<'scope, 'env>) -> Result<ProxyReport, LiveError> {
        let (clock, over, to) = (self.clock, self.over, self.came.0.clone());
        let front = Arc::clone(self.front);
        self.report.at_once = run_at_once();
        spawn(scope, "clients", move || {
            run_at_once();
            read(&front, DATAGRAM_BYTES, over, |from, bytes| {
                pass_on(&to, IncomingDatagram::FromClient(from, clock.now(), bytes))
            });
        })?;
        while !self.over.load(Ordering::Relaxed) {
            self.send_due();
            let first = self.waiting.first_key_value();
            let wait = first.map_or(LOOK_UP_EVERY, |((due, _), _)| clock.until(*due).min(LOOK_UP_EVERY));
            match self.came.1.recv_timeout(wait) {
                Ok(IncomingDatagram::FromClient(from, at, bytes)) => match self.client(scope, from, at)? {
                    Some(client) => self.take(at, client, Direction::Up, bytes),
                    None => self.report.refused += 1,
                },
                Ok(IncomingDatagram::FromServer(client, at, bytes)) => self.take(at, client, Direction::Down, bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let added = LatenessSummary::of(self.added_us);
        Ok(ProxyReport { added, ..self.report })
    }

    /// Returns the number of the client at an address. A new client gets a socket; `None` when the system has none left,
    /// or the client's number would be too high.
    fn client<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        from: SocketAddr,
        at: Micros,
    ) -> Result<Option<u16>, LiveError> {
        if let Some(client) = self.clients.get(&from) {
            self.ends.get_mut(client).into_iter().for_each(|end| end.heard_at = at);
            return Ok(Some(*client));
        }
        let Ok(client) = u16::try_from(self.report.clients) else { return Ok(None) };
        if self.ends.len() == CLIENTS_MAX {
            self.close_most_silent();
        }
        let (socket, closed) = match self.open(scope, client) {
            Ok(opened) => opened,
            Err(error) if self.ends.is_empty() => return Err(error),
            Err(_) => {
                self.close_most_silent();
                return Ok(None);
            }
        };
        self.report.clients += 1;
        self.clients.insert(from, client);
        let links = Links::modelled(&self.options.link, self.options.seed, PlayerId(client));
        self.ends.insert(client, ProxyClient { address: from, socket, links, heard_at: at, closed });
        Ok(Some(client))
    }

    /// Opens a client's socket to the server, with a thread that reads it until the flag is set.
    fn open<'scope>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        client: u16,
    ) -> Result<(Arc<UdpSocket>, Arc<AtomicBool>), LiveError> {
        let socket = open_towards(self.options.upstream)?;
        socket.connect(self.options.upstream).map_err(LiveError::Socket)?;
        let (socket, closed) = (Arc::new(socket), Arc::new(AtomicBool::new(false)));
        let (clock, to) = (self.clock, self.came.0.clone());
        let (reads, over) = (Arc::clone(&socket), Arc::clone(&closed));
        spawn(scope, "server", move || {
            run_at_once();
            read(&reads, DATAGRAM_BYTES, &over, |_, bytes| {
                pass_on(&to, IncomingDatagram::FromServer(client, clock.now(), bytes))
            });
        })?;
        Ok((socket, closed))
    }

    /// Closes the socket of the client that has been silent for longest.
    fn close_most_silent(&mut self) {
        let most = self.ends.iter().min_by_key(|(_, end)| end.heard_at).map(|(client, _)| *client);
        if let Some(end) = most.and_then(|client| self.ends.remove(&client)) {
            self.clients.remove(&end.address);
        }
    }

    /// Forwards a datagram, immediately or later, and passes a copy to the recording thread.
    fn take(&mut self, came: Micros, client: u16, direction: Direction, bytes: Vec<u8>) {
        let Some(end) = self.ends.get_mut(&client) else { return };
        let fate = end.links.link(direction).send(came, bytes.len().min(usize::from(u16::MAX)) as u16);
        let traffic = self.report.traffic(direction);
        traffic.datagrams += 1;
        traffic.bytes += bytes.len() as u64;
        self.report.lost_on_purpose += u64::from(fate.first.is_none());
        for due in fate.arrivals() {
            if self.waiting.len() == ON_THEIR_WAY_MAX {
                self.report.refused += 1;
            } else {
                self.waiting.insert((due, self.count), (direction, client, bytes.clone()));
                self.count += 1;
            }
        }
        self.send_due();
        let seen = ForwardedDatagram { at: came, client, direction, bytes, released: fate.first };
        if let Err(TrySendError::Full(_)) = self.seen.try_send(seen) {
            self.report.unrecorded += 1;
        }
    }

    fn send_due(&mut self) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= self.clock.now()) {
            let ((due, _), (direction, client, bytes)) = first.remove_entry();
            let Some(end) = self.ends.get(&client) else { continue };
            // A datagram that the system refuses counts as lost in transit.
            let sent = match direction {
                Direction::Up => end.socket.send(&bytes),
                Direction::Down => self.front.send_to(&bytes, end.address),
            };
            self.report.traffic(direction).forwarded += u64::from(sent.is_ok());
            if self.added_us.len() < ADDED_KEPT {
                let added = (self.clock.now() - due).0;
                self.added_us.push(u32::try_from(added).unwrap_or(u32::MAX));
            }
        }
    }
}

/// Passes a datagram to the forwarding thread, unless it has ended.
fn pass_on(to: &SyncSender<IncomingDatagram>, datagram: IncomingDatagram) -> ControlFlow<()> {
    to.send(datagram).map_or(ControlFlow::Break(()), ControlFlow::Continue)
}
