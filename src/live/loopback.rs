//! A whole live session in one process: a server and bot clients with sockets of their own on the loopback device, and
//! modelled links between them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::LiveError;
use super::books::{Books, Counts, WAITING_RECORDS};
use super::clock::Clock;
use super::host::{Hosting, host};
use super::player::{Playing, knock, play};
use super::post::{ModelledLinks, Post, WAITING_POSTS, deliver};
use super::report::{Keeper, LiveReport, Rates};
use super::socket::{Datagram, WAITING_DATAGRAMS, open, read};
use crate::game::Bots;
use crate::link::ModelledLink;
use crate::pipeline::Netcode;
use crate::record::{Header, Origin, Record};
use crate::session::SynthError;
use crate::session::scenario::Scenario;
use crate::settings::Settings;
use crate::units::{Micros, Seed};
use crate::wire::{COMMANDS_MAX, Networked};

/// How often progress is shown.
const SHOW_EVERY: Micros = Micros::from_ms(100);
/// How often the log is made safe.
const SAVE_EVERY: Micros = Micros::from_s(1);

/// The header of the log that a scenario gives when it is recorded live.
///
/// # Errors
/// When the scenario is out of bounds or a setting is not to be had.
pub fn live_header<G: Bots>(scenario: &Scenario, rules: &G::Rules) -> Result<Header, LiveError> {
    let header = scenario.header::<G>(rules)?;
    let redundancy = scenario.settings().map_err(SynthError::from)?.client.redundancy;
    if usize::try_from(redundancy).is_ok_and(|n| n <= COMMANDS_MAX) {
        Ok(Header { origin: Origin::Live, ..header })
    } else {
        Err(LiveError::Redundancy(redundancy))
    }
}

/// Runs a scenario over UDP on the loopback device, in real time. The server listens at `port`; 0 is any that is
/// free. When `stop` is set the session ends early, but whole.
///
/// # Errors
/// When the scenario cannot be run, or sockets and threads are not to be had.
pub fn record_live<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    port: u16,
    stop: &AtomicBool,
    keeper: &mut dyn Keeper,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let session = Loopback {
        header: live_header::<G>(scenario, rules)?,
        settings: Arc::new(scenario.settings().map_err(SynthError::from)?),
        length: Micros((scenario.seconds * 1e6) as i64),
        links: links_of(scenario),
        clock: Clock::start(),
        counts: Counts::default(),
        ending: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let server = open_local(port)?;
    let clients = (0..scenario.players).map(|_| open_local(0)).collect::<Result<Vec<_>, _>>()?;
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let ran = session.start::<G>(scope, rules, &server, &clients, records).and_then(|running| {
            session.keep(keeper, &recorded, stop);
            running.finish()
        });
        // Those threads that run although others could not be started end too.
        session.ending.store(true, Ordering::Relaxed);
        session.over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(LiveReport::new(&session.counts, lateness))
}

/// What all threads share.
struct Loopback {
    header: Header,
    settings: Arc<Settings>,
    length: Micros,
    links: Vec<ModelledLinks>,
    clock: Clock,
    counts: Counts,
    /// Set when server and clients are to end.
    ending: AtomicBool,
    /// Set when nobody reads datagrams any more.
    over: AtomicBool,
}

/// The threads of the server and of the clients.
struct Running<'scope> {
    host: ScopedJoinHandle<'scope, Result<Vec<u32>, LiveError>>,
    players: Vec<ScopedJoinHandle<'scope, Result<(), LiveError>>>,
}

impl Loopback {
    fn start<'scope, 'env, G>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        rules: &Arc<G::Rules>,
        server: &Arc<UdpSocket>,
        clients: &[Arc<UdpSocket>],
        records: SyncSender<Record>,
    ) -> Result<Running<'scope>, LiveError>
    where
        G: Bots + Netcode,
        G::Body: Networked,
    {
        let (posts, posted) = sync_channel(WAITING_POSTS);
        spawn(scope, "links", move || deliver(self.clock, self.links.clone(), &posted))?;
        let hosting = Hosting {
            header: &self.header,
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            post: Post::new(Arc::clone(server), Some(posts.clone())),
            inbox: self.read_from(scope, server)?,
            books: Books(records.clone()),
            counts: &self.counts,
            length: self.length,
            stop: &self.ending,
            welcome: Vec::new(),
        };
        let address = server.local_addr().map_err(LiveError::Socket)?;
        let host_rules = Arc::clone(rules);
        let host = spawn(scope, "server", move || self.ends_with(host::<G>(hosting, host_rules)))?;
        let mut players = Vec::new();
        for socket in clients {
            let playing = Playing {
                settings: Arc::clone(&self.settings),
                seed: self.header.seed,
                clock: self.clock,
                post: Post::new(Arc::clone(socket), Some(posts.clone())),
                inbox: self.read_from(scope, socket)?,
                server: address,
                books: Books(records.clone()),
                counts: &self.counts,
                stop: &self.ending,
            };
            let player_rules = Arc::clone(rules);
            players.push(spawn(scope, "client", move || self.ends_with(join_and_play::<G>(playing, player_rules)))?);
        }
        Ok(Running { host, players })
    }

    /// Nobody plays on without one of the others, nor without the server.
    fn ends_with<T>(&self, result: T) -> T {
        self.ending.store(true, Ordering::Relaxed);
        result
    }

    fn read_from<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        socket: &Arc<UdpSocket>,
    ) -> Result<Receiver<Datagram>, LiveError> {
        let (datagrams, inbox) = sync_channel(WAITING_DATAGRAMS);
        let socket = Arc::clone(socket);
        spawn(scope, "socket", move || read(&socket, &datagrams, &self.over))?;
        Ok(inbox)
    }

    /// Hands records on until all who make them are gone.
    fn keep(&self, keeper: &mut dyn Keeper, recorded: &Receiver<Record>, stop: &AtomicBool) {
        let (mut show_at, mut save_at) = (Micros::ZERO, SAVE_EVERY);
        let mut kept = ControlFlow::Continue(());
        loop {
            match recorded.recv_timeout(Duration::from_millis(50)) {
                Ok(record) if kept.is_continue() => kept = keeper.record(&record),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            if now >= show_at {
                show_at = now + SHOW_EVERY;
                keeper.show(&Rates::new(&self.counts, now));
            }
            if now >= save_at && kept.is_continue() {
                save_at = now + SAVE_EVERY;
                kept = keeper.every_second();
            }
            if kept.is_break() || stop.load(Ordering::Relaxed) {
                self.ending.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Running<'_> {
    /// Waits for all of them. The first error is the one that counts.
    fn finish(self) -> Result<Vec<u32>, LiveError> {
        let players: Vec<_> = self.players.into_iter().map(join).collect();
        let lateness = join(self.host);
        players.into_iter().collect::<Result<(), LiveError>>()?;
        lateness
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, LiveError>>) -> Result<T, LiveError> {
    thread.join().unwrap_or(Err(LiveError::ThreadGone))
}

fn join_and_play<G>(playing: Playing<'_>, rules: Arc<G::Rules>) -> Result<(), LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    match knock(&playing, G::NAME)? {
        Some(session) => play::<G>(playing, &session, rules),
        None => Ok(()),
    }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, LiveError> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(LiveError::Thread)
}

fn open_local(port: u16) -> Result<Arc<UdpSocket>, LiveError> {
    open(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map(Arc::new)
}

/// The same links that a synthetic session of the scenario has.
fn links_of(scenario: &Scenario) -> Vec<ModelledLinks> {
    let link = |player: u16, direction: u64| {
        let stream = 0x6c69_6e6b_0000_0000 | (u64::from(player) << 1) | direction;
        ModelledLink::new(scenario.link_of(player).clone(), Seed(scenario.seed), stream)
    };
    (0..scenario.players).map(|p| ModelledLinks { up: link(p, 0), down: link(p, 1) }).collect()
}
