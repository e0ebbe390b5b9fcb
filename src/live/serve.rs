//! A server of its own: it waits for its players, plays with them, and keeps its side of the session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use super::LiveError;
use super::clock::Clock;
use super::counters::{Counters, RecordSender, WAITING_RECORDS};
use super::loopback::live_header;
use super::main_loop::MainLoop;
use super::report::{LiveReport, LiveSink};
use super::server::{self, Serving};
use super::socket::open;
use super::threads::{read_from, spawn, wait_for};
use super::transit::Outbound;
use super::welcome::Welcome;
use crate::game::Bots;
use crate::pipeline::Netcode;
use crate::record::{Header, SessionId, Side};
use crate::session::SynthError;
use crate::session::scenario::Scenario;

/// Serves a scenario's session over UDP at `address`, in real time, for clients that [`join`](super::join()). Its links
/// are what lies between the machines: those of the scenario count for nothing. When `stop` is set the session ends
/// early, but whole.
///
/// # Errors
/// When the scenario cannot be run, or sockets and threads are not available.
pub fn serve<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    address: SocketAddr,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
{
    let session = SessionId(super::secret().0);
    let length = scenario.length();
    let mut header = Header { side: Some(Side { session, player: None }), ..live_header::<G>(scenario, rules)? };
    for player in &mut header.players {
        player.recorded = false;
    }
    let welcome = Welcome::new(&header, session, length)?.encode()?;
    let settings = Arc::new(scenario.settings().map_err(SynthError::from)?);
    let socket = Arc::new(open(address)?);
    sink.listening(socket.local_addr().map_err(LiveError::Socket)?);
    let (clock, counters) = (Clock::start(), Counters::default());
    if sink.begin(&header).is_break() {
        return Ok(LiveReport::new(&counters, Vec::new()));
    }
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let start = || {
            let serving = Serving {
                header: &header,
                settings,
                clock,
                outbound: Outbound::new(Arc::clone(&socket), None),
                inbox: read_from(scope, &socket, None, &over)?,
                records: RecordSender(records),
                counters: &counters,
                length,
                stop: &ending,
                welcome,
            };
            let rules = Arc::clone(rules);
            spawn(scope, "server", move || server::run::<G>(serving, rules))
        };
        let ran = start().and_then(|server| {
            MainLoop { clock, counters: &counters, stop, ending: &ending }.run(sink, &recorded);
            wait_for(server)
        });
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(LiveReport::new(&counters, lateness))
}
