//! A whole live session in one process: a server and bot clients with their own loopback sockets, connected by modelled
//! links.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use crate::LiveError;
use crate::client::{ClientSetup, ClientSocket, connect, play};
use crate::server::{self, ServerSetup};
use crate::session::{Counters, LiveReport, LiveSink, MainLoop, MonotonicClock, RecordSender, WAITING_RECORDS};
use crate::socket::{Outbound, WAITING_IN_TRANSIT, deliver, open, read_from, spawn, wait_for};
use hitreg_log::record::{Origin, Record, SessionHeader};
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::game::Bots;
use hitreg_netcode::link::ModelledLink;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::{Links, SynthError};
use hitreg_netcode::settings::{Settings, Sizes};
use hitreg_netcode::wire::ConnectOptions;

/// Returns the log header of a scenario that is recorded live.
///
/// # Errors
/// When the scenario is out of bounds or a setting is not available.
pub fn live_header<G: Bots>(scenario: &Scenario, rules: &G::Rules) -> Result<SessionHeader, LiveError> {
    let header = scenario.header::<G>(rules)?;
    match scenario.settings().map_err(SynthError::from)?.wire.sizes {
        Sizes::Datagrams => Ok(SessionHeader { origin: Origin::Live, ..header }),
        Sizes::Nominal => Err(LiveError::NominalSizes),
    }
}

/// Runs a scenario over UDP on the loopback device, in real time. The server listens on `port`; 0 selects any free
/// port. Setting `stop` ends the session early but cleanly.
///
/// # Errors
/// When the scenario cannot be run, or when a socket or thread is not available.
pub fn record_live<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    port: u16,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
{
    let session = Loopback {
        header: live_header::<G>(scenario, rules)?,
        settings: Arc::new(scenario.settings().map_err(SynthError::from)?),
        length: scenario.length(),
        links: (0..scenario.players)
            .map(PlayerId)
            .map(|player| Links::modelled(scenario.link_of(player), Seed(scenario.seed), player))
            .collect(),
        clock: MonotonicClock::start(),
        counters: Counters::default(),
        ending: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let server = open_local(port)?;
    sink.listening(server.local_addr().map_err(LiveError::Socket)?);
    if sink.begin(&session.header).is_break() {
        return Ok(session.counters.report(Vec::new()));
    }
    let clients = (0..scenario.players).map(|_| open_local(0)).collect::<Result<Vec<_>, _>>()?;
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let ran = session.start::<G>(scope, rules, &server, &clients, records).and_then(|(server, players)| {
            let main_loop =
                MainLoop { clock: session.clock, counters: &session.counters, stop, ending: &session.ending };
            main_loop.run(sink, &recorded);
            let players: Vec<_> = players.into_iter().map(wait_for).collect();
            let lateness = wait_for(server);
            players.into_iter().collect::<Result<(), LiveError>>()?;
            lateness
        });
        // If some threads could not be started, this ends the ones that run.
        session.ending.store(true, Ordering::Relaxed);
        session.over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(session.counters.report(lateness))
}

/// The state that all threads share.
struct Loopback {
    header: SessionHeader,
    settings: Arc<Settings>,
    length: Micros,
    links: Vec<Links<ModelledLink>>,
    clock: MonotonicClock,
    counters: Counters,
    /// Set when server and clients are to end.
    ending: AtomicBool,
    /// Set when the threads that read datagrams are to end.
    over: AtomicBool,
}

/// A thread of the session, with its result.
type SessionThread<'scope, T> = ScopedJoinHandle<'scope, Result<T, LiveError>>;

/// The threads of the server and of the clients.
type SessionThreads<'scope> = (SessionThread<'scope, Vec<u32>>, Vec<SessionThread<'scope, ()>>);

impl Loopback {
    /// Starts the threads of the server and of the clients. The server's returns the lateness of each tick.
    fn start<'scope, 'env, G>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        rules: &Arc<G::Rules>,
        server: &Arc<UdpSocket>,
        clients: &[Arc<UdpSocket>],
        records: SyncSender<Record>,
    ) -> Result<SessionThreads<'scope>, LiveError>
    where
        G: Bots + Netcode,
    {
        let (posts, posted) = sync_channel(WAITING_IN_TRANSIT);
        spawn(scope, "links", move || deliver(self.clock, self.links.clone(), &posted))?;
        let serving = ServerSetup {
            slots: self.header.players.len() as u16,
            seed: self.header.seed,
            settings: Arc::clone(&self.settings),
            clock: self.clock,
            outbound: Outbound { socket: Arc::clone(server), delays: Some(posts.clone()) },
            inbox: read_from(scope, server, None, &self.over)?,
            records: RecordSender(records.clone()),
            counters: &self.counters,
            length: self.length,
            stop: &self.ending,
            joins: None,
        };
        let address = server.local_addr().map_err(LiveError::Socket)?;
        let server_rules = Arc::clone(rules);
        let server = spawn(scope, "server", move || self.ends_with(server::run::<G>(serving, server_rules)))?;
        let mut players = Vec::new();
        let bots = G::bots(rules, self.header.seed, clients.len() as u16);
        let bots: Arc<FreeBots<G>> = Arc::new(Mutex::new(bots.into_iter().map(Some).collect()));
        for (line, socket) in clients.iter().enumerate() {
            let socket = ClientSocket {
                clock: self.clock,
                outbound: Outbound { socket: Arc::clone(socket), delays: Some(posts.clone()) },
                line,
                inbox: read_from(scope, socket, None, &self.over)?,
                server: address,
                counters: &self.counters,
                stop: &self.ending,
            };
            let records = RecordSender(records.clone());
            let (rules, bots) = (Arc::clone(rules), Arc::clone(&bots));
            let work = move || self.ends_with(self.join_and_play::<G>(socket, records, rules, &bots));
            players.push(spawn(scope, "client", work)?);
        }
        Ok((server, players))
    }

    fn join_and_play<G: Bots + Netcode>(
        &self,
        socket: ClientSocket<'_>,
        records: RecordSender,
        rules: Arc<G::Rules>,
        bots: &FreeBots<G>,
    ) -> Result<(), LiveError> {
        let Some((end, accepted)) = connect::<G::Body>(socket, ConnectOptions::new(G::NAME))? else {
            return Ok(());
        };
        let player = accepted.player;
        let mut bots = bots.lock().unwrap_or_else(PoisonError::into_inner);
        let bot = bots.get_mut(usize::from(player.0)).and_then(Option::take);
        drop(bots);
        // Each slot belongs to one client, and each client has a bot.
        let bot = bot.ok_or(LiveError::ThreadGone)?;
        let (settings, seed) = (Arc::clone(&self.settings), self.header.seed);
        let requests = Vec::new();
        let playing = ClientSetup { end, player, settings, seed, records, keeps_snapshots: false, requests };
        play::<G>(playing, rules, bot)
    }

    /// Ends the session for all threads when one of them ends.
    fn ends_with<T>(&self, result: T) -> T {
        self.ending.store(true, Ordering::Relaxed);
        result
    }
}

/// The bots that have no slot yet, indexed by player.
type FreeBots<G> = Mutex<Vec<Option<<G as Bots>::Bot>>>;

fn open_local(port: u16) -> Result<Arc<UdpSocket>, LiveError> {
    open(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map(Arc::new)
}
