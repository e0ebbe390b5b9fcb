//! A whole live session in one process: a server and bot clients with sockets of their own on the loopback device, and
//! modelled links between them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use super::LiveError;
use super::books::{Books, Counts, WAITING_RECORDS};
use super::clock::Clock;
use super::host::{Hosting, host};
use super::keep::Keeping;
use super::player::{Endpoint, Playing, knock, play};
use super::post::{ModelledLinks, Post, WAITING_POSTS, deliver};
use super::report::{Keeper, LiveReport};
use super::socket::{Datagram, open};
use super::threads::{read_from, spawn, wait_for};
use crate::game::Bots;
use crate::pipeline::Netcode;
use crate::record::{Header, Origin, Record};
use crate::session::SynthError;
use crate::session::scenario::Scenario;
use crate::settings::Settings;
use crate::units::{Micros, PlayerId, Seed};
use crate::wire::{COMMANDS_MAX, Networked};

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
        length: scenario.length(),
        links: links_of(scenario),
        clock: Clock::start(),
        counts: Counts::default(),
        ending: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let server = open_local(port)?;
    keeper.listening(server.local_addr().map_err(LiveError::Socket)?);
    if keeper.begin(&session.header).is_break() {
        return Ok(LiveReport::new(&session.counts, Vec::new()));
    }
    let clients = (0..scenario.players).map(|_| open_local(0)).collect::<Result<Vec<_>, _>>()?;
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let ran = session.start::<G>(scope, rules, &server, &clients, records).and_then(|running| {
            let keeping = Keeping { clock: session.clock, counts: &session.counts, stop, ending: &session.ending };
            keeping.keep(keeper, &recorded);
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
        let bots = G::bots(rules, self.header.seed, clients.len() as u16);
        let bench: Arc<Bench<G>> = Arc::new(Mutex::new(bots.into_iter().map(Some).collect()));
        for (line, socket) in clients.iter().enumerate() {
            let endpoint = Endpoint {
                clock: self.clock,
                post: Post::new(Arc::clone(socket), Some(posts.clone())),
                line,
                inbox: self.read_from(scope, socket)?,
                server: address,
                counts: &self.counts,
                stop: &self.ending,
            };
            let playing = Playing {
                endpoint,
                settings: Arc::clone(&self.settings),
                seed: self.header.seed,
                books: Books(records.clone()),
                keeps_snapshots: false,
            };
            let (rules, bench) = (Arc::clone(rules), Arc::clone(&bench));
            let work = move || self.ends_with(join_and_play::<G>(playing, rules, &bench));
            players.push(spawn(scope, "client", work)?);
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
        read_from(scope, socket, None, &self.over)
    }
}

impl Running<'_> {
    /// Waits for all of them. The first error is the one that counts.
    fn finish(self) -> Result<Vec<u32>, LiveError> {
        let players: Vec<_> = self.players.into_iter().map(wait_for).collect();
        let lateness = wait_for(self.host);
        players.into_iter().collect::<Result<(), LiveError>>()?;
        lateness
    }
}

/// The bots that have no place yet, by their players.
type Bench<G> = Mutex<Vec<Option<<G as Bots>::Bot>>>;

fn join_and_play<G>(playing: Playing<'_>, rules: Arc<G::Rules>, bench: &Bench<G>) -> Result<(), LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let Some(session) = knock(&playing.endpoint, G::NAME)? else { return Ok(()) };
    let mut bots = bench.lock().unwrap_or_else(PoisonError::into_inner);
    let bot = bots.get_mut(usize::from(session.player.0)).and_then(Option::take);
    drop(bots);
    // A place is given to one client alone, and each has a bot.
    let bot = bot.ok_or(LiveError::ThreadGone)?;
    play::<G>(playing, &session, rules, bot)
}

fn open_local(port: u16) -> Result<Arc<UdpSocket>, LiveError> {
    open(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map(Arc::new)
}

fn links_of(scenario: &Scenario) -> Vec<ModelledLinks> {
    let links = |p| ModelledLinks::new(scenario.link_of(p), Seed(scenario.seed), PlayerId(p));
    (0..scenario.players).map(links).collect()
}
