//! A recording proxy between real clients and a real server. It forwards datagrams unchanged, immediately or after the
//! delay of a modelled link, and records their contents.
//!
//! One thread only forwards datagrams. It hands a copy of each to the recording thread and never waits for it.
//! Datagrams that the recording thread is too slow for are forwarded unrecorded, and counted. Each client has its own
//! socket to the server, so that the server can distinguish the clients as it would without a proxy.

use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::Scope;

use serde::Serialize;

use crate::LiveError;
use crate::session::{LatenessSummary, LiveSink, MonotonicClock, SessionRates, Upkeep};
use crate::socket::{LOOK_UP_EVERY, open, open_towards, read, run_at_once, spawn, wait_for};
use hitreg_log::record::{EventTime, Record};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::link::{Link, LinkModel, ModelledLink};
use hitreg_netcode::protocol::{Direction, HeardCounts, PassingDatagram, SessionListener};
use hitreg_netcode::session::Links;

/// The most datagrams that may wait for the recording thread.
const QUEUED_DATAGRAMS_MAX: usize = 1 << 15;

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

/// The parameters of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The address on which clients connect.
    pub listen: SocketAddr,
    /// The address of the server.
    pub upstream: SocketAddr,
    /// The modelled link of every client, for each direction.
    pub link: LinkModel,
    /// The random seed.
    pub seed: Seed,
    /// The recording time, starting when the session is identified; `None` records until the proxy is stopped.
    pub length: Option<Micros>,
}

/// The final report of a proxied session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProxyReport {
    /// The session as the listener decoded it.
    #[serde(flatten)]
    pub heard: HeardCounts,
    /// The number of client addresses.
    pub clients: u64,
    /// The first datagrams that could not be decoded, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecoded_first: Vec<String>,
    /// Traffic from the clients.
    pub up: ForwardedTraffic,
    /// Traffic from the server.
    pub down: ForwardedTraffic,
    /// Datagrams that the modelled link dropped.
    pub lost_on_purpose: u64,
    /// Datagrams that were forwarded unrecorded, because the recording thread was too slow.
    pub unrecorded: u64,
    /// Datagrams that were not forwarded, because there were too many clients or delayed datagrams.
    pub refused: u64,
    /// Whether the forwarding threads have real-time priority.
    pub at_once: bool,
    /// How much later than due the datagrams were forwarded.
    pub added: Option<LatenessSummary>,
    /// What the log lacks, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The traffic of all connections in one direction, through the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForwardedTraffic {
    /// The number of datagrams that came.
    pub datagrams: u64,
    /// Their payload in bytes. UDP and IP add 28 bytes to each.
    pub bytes: u64,
    /// The number of datagrams that were passed on.
    pub forwarded: u64,
}

impl ProxyReport {
    /// Returns one direction of the traffic.
    fn traffic(&mut self, direction: Direction) -> &mut ForwardedTraffic {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// Forwards datagrams until `stop` is set or the time is over, and records what `listener` decodes from them.
///
/// # Errors
/// When a socket or a thread is not available, or the session does not match the request.
pub fn proxy(
    options: &ProxyOptions,
    listener: &mut dyn SessionListener,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<ProxyReport, LiveError> {
    options.link.check()?;
    let front = Arc::new(open(options.listen)?);
    sink.listening(front.local_addr().map_err(LiveError::Socket)?);
    let clock = MonotonicClock::start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (seen, to_hear) = sync_channel(QUEUED_DATAGRAMS_MAX);
        let forwarding = Forwarder::new(clock, &front, options, &over, seen);
        let thread = spawn(scope, "forward", || forwarding.run(scope))?;
        let mut hearing = ProxyRecorder { clock, listener, sink, began: None, ahead: Vec::new() };
        let heard = hearing.run(&to_hear, options.length, stop);
        over.store(true, Ordering::Relaxed);
        // Datagrams that still wait for decoding belong to the session.
        let forwarded = wait_for(thread)?;
        heard?;
        hearing.rest(&to_hear);
        let listener = hearing.listener;
        let (undecoded_first, warning) = (listener.undecoded(), listener.warning());
        Ok(ProxyReport { heard: listener.heard(), undecoded_first, warning, ..forwarded })
    })
}

/// Returns the progress of a session that began at `began`.
fn rates(
    listener: &dyn SessionListener,
    began: Option<Micros>,
    now: Micros,
    (datagrams, bytes): (u64, u64),
) -> SessionRates {
    let heard = listener.heard();
    let seconds = began.map_or(now, |began| now - began).as_s_f64().max(0.1);
    SessionRates {
        at: began.map(|began| now - began),
        ready: heard.players,
        slots: 0,
        usercmds_per_s: heard.usercmds as f64 / seconds,
        ticks_per_s: 0.0,
        datagrams_per_s: datagrams as f64 / seconds,
        bytes_per_s: bytes as f64 / seconds,
    }
}

/// Decodes forwarded datagrams into records.
struct ProxyRecorder<'a> {
    clock: MonotonicClock,
    listener: &'a mut dyn SessionListener,
    sink: &'a mut dyn LiveSink,
    /// The time at which the session was identified.
    began: Option<Micros>,
    /// Records of datagrams that are still in transit, sorted by time.
    ahead: Vec<(Micros, Record)>,
}

impl ProxyRecorder<'_> {
    fn run(
        &mut self,
        to_hear: &Receiver<PassingDatagram>,
        length: Option<Micros>,
        stop: &AtomicBool,
    ) -> Result<(), LiveError> {
        let mut upkeep = Upkeep::default();
        let mut traffic = (0_u64, 0_u64);
        let mut kept = ControlFlow::Continue(());
        while kept.is_continue() && !stop.load(Ordering::Relaxed) {
            match to_hear.recv_timeout(LOOK_UP_EVERY) {
                Ok(seen) => {
                    traffic = (traffic.0 + 1, traffic.1 + seen.bytes.len() as u64);
                    kept = self.handle_datagram(&seen)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let now = self.clock.now();
            kept = upkeep.run(self.sink, now, kept, || rates(self.listener, self.began, now, traffic));
            if let (Some(began), Some(length)) = (self.began, length)
                && now - began >= length
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn handle_datagram(&mut self, seen: &PassingDatagram) -> Result<ControlFlow<()>, LiveError> {
        let at = seen.at;
        let mut made = Vec::new();
        self.listener.hear(seen, &mut |record| made.push(record));
        if let Some(header) = self.listener.header() {
            let header = header.map_err(LiveError::Proxy)?;
            self.began = Some(at);
            if self.sink.begin(&header).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let due = self.ahead.partition_point(|(when, _)| *when <= at);
        for (_, record) in self.ahead.drain(..due) {
            if self.sink.record(record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for record in made {
            if let EventTime::At(when) = record.when()
                && when > at
            {
                let place = self.ahead.partition_point(|(other, _)| *other <= when);
                self.ahead.insert(place, (when, record));
            } else if self.sink.record(record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Records the datagrams that were forwarded before the end, including those still in transit.
    fn rest(&mut self, to_hear: &Receiver<PassingDatagram>) {
        while let Ok(seen) = to_hear.try_recv() {
            // The sink keeps errors of the log. Errors of the session were reported when it began.
            if !matches!(self.handle_datagram(&seen), Ok(ControlFlow::Continue(()))) {
                return;
            }
        }
        let ProxyRecorder { listener, sink, ahead, began, .. } = self;
        if began.is_none() {
            return;
        }
        listener.finish(&mut |record| {
            let _ = sink.record(record);
        });
        for (_, record) in ahead.drain(..) {
            let _ = sink.record(record);
        }
    }
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

struct Forwarder<'env> {
    clock: MonotonicClock,
    front: &'env Arc<UdpSocket>,
    options: &'env ProxyOptions,
    over: &'env AtomicBool,
    seen: SyncSender<PassingDatagram>,
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
    fn new(
        clock: MonotonicClock,
        front: &'env Arc<UdpSocket>,
        options: &'env ProxyOptions,
        over: &'env AtomicBool,
        seen: SyncSender<PassingDatagram>,
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
    fn run<'scope>(mut self, scope: &'scope Scope<'scope, 'env>) -> Result<ProxyReport, LiveError> {
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
        let seen = PassingDatagram { at: came, client, direction, bytes, released: fate.first };
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
