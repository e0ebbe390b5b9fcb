//! A standalone bot client. It joins a remote server, plays, and records its side of the session.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use super::LiveError;
use super::client::{ClientSetup, ClientSocket, connect, play};
use super::clock::MonotonicClock;
use super::counters::{Counters, RecordSender, WAITING_RECORDS};
use super::main_loop::MainLoop;
use super::own::{self, OwnSettings};
use super::report::{LiveReport, LiveSink};
use super::socket::open_towards;
use super::threads::{read_from, spawn, wait_for};
use super::transit::{Outbound, TransitDatagram, WAITING_IN_TRANSIT, deliver};
use super::welcome::Welcome;
use hitreg_log::units::{PlayerId, Seed};
use hitreg_netcode::game::{Body, Bots};
use hitreg_netcode::link::LinkModel;
use hitreg_netcode::pipeline::Netcode;
use hitreg_netcode::session::Links;
use hitreg_netcode::settings::Settings;
use hitreg_netcode::wire::{AcceptedConnection, ClientConnection, ConnectOptions, LeaveReason, Notice, RequestKind};

/// The result of a client's session.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinResult {
    /// The client's player; `None` when the session ended before the client had a slot.
    pub player: Option<PlayerId>,
    /// The player's own settings that the server granted.
    pub granted: OwnSettings,
    /// The counters of the session.
    pub report: LiveReport,
    /// Request acks and chat, in the order in which the client received them.
    pub heard: Vec<Notice>,
}

/// Resolves a server name of the form `host:port`. If it has addresses of both families, the result is of IPv4: servers
/// listen there by default, and `localhost` has both on most systems.
///
/// # Errors
/// When the name has no address.
pub fn resolve(name: &str) -> Result<SocketAddr, LiveError> {
    let no_address = |why: String| LiveError::NoAddress { name: name.to_owned(), why };
    let addresses = name.to_socket_addrs().map_err(|error| no_address(error.to_string()))?;
    preferred(addresses).ok_or_else(|| no_address("unknown name".to_owned()))
}

fn preferred(addresses: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    addresses.min_by_key(SocketAddr::is_ipv6)
}

/// The parameters of a client.
#[derive(Clone, Copy, Debug)]
pub struct JoinOptions<'a> {
    /// The address of the server.
    pub server: SocketAddr,
    /// The modelled link that delays and drops this client's datagrams in both directions.
    pub link: Option<&'a LinkModel>,
    /// The settings that the client requests for itself, such as `server.update_hz`. The server may limit them.
    pub own: &'a OwnSettings,
    /// The requests that the client makes when the session begins. It makes only the first
    /// [`REQUESTS_MAX`](hitreg_netcode::wire::REQUESTS_MAX).
    pub asks: &'a [RequestKind],
    /// Set to make the client leave.
    pub stop: &'a AtomicBool,
}

/// Joins a session and plays until it ends or `stop` is set.
///
/// # Errors
/// When a requested setting is invalid, or a socket or thread is not available. Also when the server has no slot, does
/// not answer, plays another game or falls silent.
pub fn join<G>(
    joining: &JoinOptions<'_>,
    rules: &Arc<G::Rules>,
    sink: &mut dyn LiveSink,
) -> Result<JoinResult, LiveError>
where
    G: Bots + Netcode,
{
    let JoinOptions { server, link, own, asks, stop } = *joining;
    let options = ConnectOptions { asked: own::encode(own)?, ..ConnectOptions::new(G::NAME) };
    let socket = Arc::new(open_towards(server)?);
    let clock = MonotonicClock::start();
    let (counters, ending, over) = (Counters::default(), AtomicBool::new(false), AtomicBool::new(false));
    let (posts, posted) = sync_channel(WAITING_IN_TRANSIT);
    let player = std::thread::scope(|scope| {
        let run = || -> Result<Option<(PlayerId, OwnSettings)>, LiveError> {
            let delays = link.map(|_| posts.clone());
            let socket = ClientSocket {
                clock,
                outbound: Outbound::new(Arc::clone(&socket), delays.clone()),
                line: 0,
                inbox: read_from(scope, &socket, delays.map(|delays| (clock, delays)), &over)?,
                server,
                counters: &counters,
                stop,
            };
            drop(posts);
            let Some((connection, accepted)) = connect(&socket, options)? else { return Ok(None) };
            let player = accepted.player;
            let socket = ClientSocket { stop: &ending, ..socket };
            let main_loop = MainLoop { clock, counters: &counters, stop, ending: &ending };
            let place = PlayerSlot { socket, connection, accepted };
            let link = link.map(|link| (link, posted));
            let granted = play_in::<G>(scope, place, rules, link, asks.to_vec(), &main_loop, sink)?;
            Ok(Some((player, granted)))
        };
        let ran = run();
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    let heard = counters.take_heard();
    let (player, granted) = player.unzip();
    Ok(JoinResult { player, granted: granted.unwrap_or_default(), report: counters.report(Vec::new()), heard })
}

/// A slot on a server, with its connection.
struct PlayerSlot<'a, B> {
    socket: ClientSocket<'a>,
    connection: ClientConnection<B>,
    accepted: AcceptedConnection,
}

impl<B: Body> PlayerSlot<'_, B> {
    /// Gives up the slot before playing.
    fn leave(&mut self) {
        self.connection.send_disconnect(LeaveReason::Done);
        self.socket.transmit(&mut self.connection);
    }
}

/// Plays in a slot, after checking that the client can play by the server's welcome.
fn play_in<'scope, 'env, G>(
    scope: &'scope Scope<'scope, 'env>,
    mut place: PlayerSlot<'env, G::Body>,
    rules: &Arc<G::Rules>,
    link: Option<(&LinkModel, Receiver<TransitDatagram>)>,
    asks: Vec<RequestKind>,
    main_loop: &MainLoop<'_>,
    sink: &mut dyn LiveSink,
) -> Result<OwnSettings, LiveError>
where
    G: Bots + Netcode,
{
    let player = place.accepted.player;
    let welcome = Welcome::decode(&place.accepted.welcome).and_then(|w| Ok((w.header::<G>(rules, player)?, w)));
    let (header, welcome) = welcome.inspect_err(|_| place.leave())?;
    let settings = Arc::new(Settings::from_pairs(&header.settings).map_err(super::WelcomeError::from)?);
    if let Some((model, posted)) = link {
        // The link draws the same random delays and losses as in a loopback session, because they follow from seed and
        // player.
        let links = Links::modelled(model, header.seed, player);
        let clock = place.socket.clock;
        spawn(scope, "links", move || deliver(clock, vec![links], &posted))?;
    }
    sink.expecting(welcome.length());
    let granted = welcome.granted().clone();
    if sink.begin(&header).is_break() {
        place.leave();
        return Ok(granted);
    }
    let (records, recorded) = sync_channel(WAITING_RECORDS);
    let (seed, records) = (header.seed, RecordSender(records));
    let rules = Arc::clone(rules);
    let client = spawn(scope, "client", move || {
        let bot = make_bot::<G>(scope, &mut place, seed, &rules)?;
        let PlayerSlot { socket, connection, .. } = place;
        let playing = ClientSetup { socket, connection, player, settings, seed, records, keeps_snapshots: true, asks };
        play::<G>(playing, rules, bot)
    })?;
    main_loop.run(sink, &recorded);
    wait_for(client)?;
    Ok(granted)
}

/// Creates the bot. This can take long, so the client keeps reporting to the server that it is present.
fn make_bot<'scope, G: Bots>(
    scope: &'scope Scope<'scope, '_>,
    place: &mut PlayerSlot<'_, G::Body>,
    seed: Seed,
    rules: &Arc<G::Rules>,
) -> Result<G::Bot, LiveError>
where
    G::Bot: 'scope,
{
    let (rules, player) = (Arc::clone(rules), place.accepted.player);
    let (made, bot) = sync_channel(1);
    spawn(scope, "bot", move || made.send(G::bot(&rules, seed, player)))?;
    loop {
        // A silent server is detected later, while playing.
        place.connection.handle_timeout(place.socket.clock.now());
        place.socket.transmit(&mut place.connection);
        match bot.recv_timeout(Duration::from_millis(100)) {
            Ok(bot) => return Ok(bot),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_addresses_of_both_families_is_one_of_ipv4() {
        let of = |all: &[&str]| preferred(all.iter().map(|one| one.parse().expect("an address")));
        assert_eq!(of(&["[::1]:5", "127.0.0.1:5", "127.0.0.2:5"]), "127.0.0.1:5".parse().ok());
        assert_eq!(of(&["[::1]:5", "[::2]:5"]), "[::1]:5".parse().ok());
        assert_eq!(of(&[]), None);
    }
}
