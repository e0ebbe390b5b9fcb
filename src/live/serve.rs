//! A server of its own: it waits for its players, plays with them, and keeps its side of the session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use super::LiveError;
use super::books::{Books, Counts, WAITING_RECORDS};
use super::clock::Clock;
use super::host::{Hosting, host};
use super::keep::Keeping;
use super::loopback::live_header;
use super::post::Post;
use super::report::{Keeper, LiveReport};
use super::socket::open;
use super::threads::{read_from, spawn, wait_for};
use super::welcome::Welcome;
use crate::game::Bots;
use crate::pipeline::Netcode;
use crate::record::{Header, SessionId, Side};
use crate::session::SynthError;
use crate::session::scenario::Scenario;
use crate::wire::Networked;

/// Serves a scenario's session over UDP at `address`, in real time, for clients that [`join`](super::join()). Its links
/// are what lies between the machines: those of the scenario count for nothing. When `stop` is set the session ends
/// early, but whole.
///
/// # Errors
/// When the scenario cannot be run, or sockets and threads are not to be had.
pub fn serve<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    address: SocketAddr,
    stop: &AtomicBool,
    keeper: &mut dyn Keeper,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
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
    keeper.listening(socket.local_addr().map_err(LiveError::Socket)?);
    let (clock, counts) = (Clock::start(), Counts::default());
    if keeper.begin(&header).is_break() {
        return Ok(LiveReport::new(&counts, Vec::new()));
    }
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let start = || {
            let hosting = Hosting {
                header: &header,
                settings,
                clock,
                post: Post::new(Arc::clone(&socket), None),
                inbox: read_from(scope, &socket, None, &over)?,
                books: Books(records),
                counts: &counts,
                length,
                stop: &ending,
                welcome,
            };
            let rules = Arc::clone(rules);
            spawn(scope, "server", move || host::<G>(hosting, rules))
        };
        let ran = start().and_then(|server| {
            Keeping { clock, counts: &counts, stop, ending: &ending }.keep(keeper, &recorded);
            wait_for(server)
        });
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(LiveReport::new(&counts, lateness))
}
