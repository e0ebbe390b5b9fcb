//! A bot client of its own: it joins a server somewhere, plays with it, and keeps its side of the session.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use super::LiveError;
use super::books::{Books, Counts, WAITING_RECORDS};
use super::clock::Clock;
use super::keep::Keeping;
use super::player::{Endpoint, Playing, SAY_WAITING_EVERY, knock, play};
use super::post::{ModelledLinks, Post, Posted, WAITING_POSTS, deliver};
use super::report::{Keeper, LiveReport};
use super::socket::open;
use super::threads::{read_from, spawn, wait_for};
use super::welcome::Welcome;
use crate::game::Bots;
use crate::link::LinkModel;
use crate::pipeline::Netcode;
use crate::settings::Settings;
use crate::units::PlayerId;
use crate::wire::{Leaving, Networked, Session, Waiting, encode_disconnect, encode_waiting};

/// How a client came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The player that it was; `None` when the session was over before it had a place.
    pub player: Option<PlayerId>,
    /// How it went.
    pub report: LiveReport,
}

/// The address that a name stands for: `host:port`.
///
/// # Errors
/// When there is none.
pub fn resolve(name: &str) -> Result<SocketAddr, LiveError> {
    let no_address = |why: String| LiveError::NoAddress { name: name.to_owned(), why };
    let mut addresses = name.to_socket_addrs().map_err(|error| no_address(error.to_string()))?;
    addresses.next().ok_or_else(|| no_address("nobody knows it".to_owned()))
}

/// Joins the session at `server`, and plays in it until it ends or `stop` is set. With a link, datagrams are delayed and
/// lost here in both directions, as it says.
///
/// # Errors
/// When there is no place, nobody answers, the server plays something else or falls silent, or sockets and threads are
/// not to be had.
pub fn join<G>(
    server: SocketAddr,
    rules: &Arc<G::Rules>,
    link: Option<&LinkModel>,
    stop: &AtomicBool,
    keeper: &mut dyn Keeper,
) -> Result<Joined, LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let any = match server {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = Arc::new(open(SocketAddr::new(any, 0))?);
    let clock = Clock::start();
    let (counts, ending, over) = (Counts::default(), AtomicBool::new(false), AtomicBool::new(false));
    let (posts, posted) = sync_channel(WAITING_POSTS);
    let player = std::thread::scope(|scope| {
        let run = || -> Result<Option<PlayerId>, LiveError> {
            let delays = link.map(|_| posts.clone());
            let endpoint = Endpoint {
                clock,
                post: Post::new(Arc::clone(&socket), delays.clone()),
                line: 0,
                inbox: read_from(scope, &socket, delays.map(|delays| (clock, delays)), &over)?,
                server,
                counts: &counts,
                stop,
            };
            drop(posts);
            let Some(session) = knock(&endpoint, G::NAME)? else { return Ok(None) };
            let endpoint = Endpoint { stop: &ending, ..endpoint };
            let keeping = Keeping { clock, counts: &counts, stop, ending: &ending };
            play_in::<G>(scope, endpoint, &session, rules, link.map(|link| (link, posted)), &keeping, keeper)?;
            Ok(Some(session.player))
        };
        let ran = run();
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(Joined { player, report: LiveReport::new(&counts, Vec::new()) })
}

/// Plays in a place, once the welcome is what can be played by.
fn play_in<'scope, 'env, G>(
    scope: &'scope Scope<'scope, 'env>,
    endpoint: Endpoint<'env>,
    session: &Session,
    rules: &Arc<G::Rules>,
    link: Option<(&LinkModel, Receiver<Posted>)>,
    keeping: &Keeping<'_>,
    keeper: &mut dyn Keeper,
) -> Result<(), LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let welcome = Welcome::decode(&session.welcome).and_then(|w| Ok((w.header::<G>(rules, session.player)?, w)));
    let (header, welcome) = welcome.inspect_err(|_| leave(&endpoint, session))?;
    let settings = Arc::new(Settings::from_pairs(&header.settings).map_err(super::WelcomeError::from)?);
    if let Some((model, posted)) = link {
        // The same fates as in a session in one process: they follow from the seed and the player.
        let links = ModelledLinks::new(model, header.seed, session.player);
        let clock = endpoint.clock;
        spawn(scope, "links", move || deliver(clock, vec![links], &posted))?;
    }
    keeper.expecting(welcome.length());
    if keeper.begin(&header).is_break() {
        leave(&endpoint, session);
        return Ok(());
    }
    let (records, recorded) = sync_channel(WAITING_RECORDS);
    let playing = Playing { endpoint, settings, seed: header.seed, books: Books(records), keeps_snapshots: true };
    let (session, rules) = (session.clone(), Arc::clone(rules));
    let client = spawn(scope, "client", move || {
        let bot = get_ready::<G>(scope, &playing, &session, &rules)?;
        play::<G>(playing, &session, rules, bot)
    })?;
    keeping.keep(keeper, &recorded);
    wait_for(client)
}

/// Gives a place back that is not taken after all.
fn leave(endpoint: &Endpoint<'_>, session: &Session) {
    endpoint.say(session, encode_disconnect(Leaving::Done));
}

/// Makes the bot. That may take a while, in which the server is to know that the client is still there.
fn get_ready<'scope, G: Bots>(
    scope: &'scope Scope<'scope, '_>,
    playing: &Playing<'_>,
    session: &Session,
    rules: &Arc<G::Rules>,
) -> Result<G::Bot, LiveError>
where
    G::Bot: 'scope,
{
    let (rules, seed, player) = (Arc::clone(rules), playing.seed, session.player);
    let (made, bot) = sync_channel(1);
    spawn(scope, "bot", move || made.send(G::bot(&rules, seed, player)))?;
    loop {
        playing.endpoint.say(session, encode_waiting(Waiting { ready: 0, seats: 1 }));
        match bot.recv_timeout(Duration::from_micros(SAY_WAITING_EVERY.0.unsigned_abs())) {
            Ok(bot) => return Ok(bot),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
    }
}
