//! A standalone server. It waits for its players, runs the session, and records its side.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use super::LiveError;
use super::clock::MonotonicClock;
use super::counters::{Counters, RecordSender, WAITING_RECORDS};
use super::loopback::live_header;
use super::main_loop::MainLoop;
use super::own::GrantLimits;
use super::report::{LiveReport, LiveSink};
use super::server::{self, JoinPolicy, ServerSetup};
use super::socket::open;
use super::threads::{read_from, spawn, wait_for};
use super::transit::Outbound;
use super::welcome::Welcome;
use hitreg_log::record::{RecordedSide, SessionHeader, SessionId};
use hitreg_log::units::Micros;
use hitreg_netcode::game::Bots;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::session::SynthError;
use hitreg_netcode::session::scenario::Scenario;

/// Where a server listens, and what it allows.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The limits on settings that clients request.
    pub limits: GrantLimits,
    /// The longest wait for all players; `None` for no limit.
    pub wait: Option<Micros>,
}

/// Serves a scenario's session over UDP, in real time, for clients that [`join`](super::join()). The
/// network between the machines replaces the scenario's links. Each client gets its requested settings within the limits.
/// The log's header holds the granted settings and is ready when all players are. Setting `stop` ends the session early
/// but cleanly.
///
/// # Errors
/// When the scenario cannot be run, when a socket or thread is not available, or when players are missing too long.
pub fn serve<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    options: ServeOptions,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
{
    let session = SessionId(super::secret().0);
    let length = scenario.length();
    let mut header =
        SessionHeader { side: Some(RecordedSide { session, player: None }), ..live_header::<G>(scenario, rules)? };
    for player in &mut header.players {
        player.recorded = false;
    }
    let welcome = Welcome::new(&header, session, length)?;
    let settings = Arc::new(scenario.settings().map_err(SynthError::from)?);
    let socket = Arc::new(open(options.address)?);
    sink.listening(socket.local_addr().map_err(LiveError::Socket)?);
    let (clock, counters) = (MonotonicClock::start(), Counters::default());
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let (begins, begun) = sync_channel(1);
        let start = || {
            let serving = ServerSetup {
                places: header.players.len() as u16,
                seed: header.seed,
                hears: true,
                settings,
                clock,
                outbound: Outbound::new(Arc::clone(&socket), None),
                inbox: read_from(scope, &socket, None, &over)?,
                records: RecordSender(records),
                counters: &counters,
                length,
                stop: &ending,
                joins: Some(JoinPolicy { welcome, limits: options.limits, wait: options.wait, begins }),
            };
            let rules = Arc::clone(rules);
            spawn(scope, "server", move || server::run::<G>(serving, rules))
        };
        let ran = start().and_then(|server| {
            let main_loop = MainLoop { clock, counters: &counters, stop, ending: &ending };
            if let Some(settings) = main_loop.wait(sink, &begun) {
                header.settings = settings.to_pairs();
                main_loop.begin(sink, &header);
            }
            main_loop.run(sink, &recorded);
            wait_for(server)
        });
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(counters.report(lateness))
}
