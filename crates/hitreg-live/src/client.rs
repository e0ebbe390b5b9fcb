//! A live client played by a bot. It joins a server, plays, and records its side of the session. One thread passes
//! datagrams and frames to the client pipeline, each with a unique time, and records these inputs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use glam::Vec3;

use crate::LiveError;
use crate::session::{
    Counters, LiveReport, LiveSink, MainLoop, MonotonicClock, PauseDetector, RecordSender, Schedule, WAITING_RECORDS,
};
use crate::socket::{
    LOOK_UP_EVERY, Outbound, ReceivedDatagram, TransitDatagram, WAITING_IN_TRANSIT, deliver, open_towards, read_from,
    receive, spawn, wait_for,
};
use crate::welcome::{OwnSettings, Welcome, WelcomeError, encode_requested};
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::game::{Body, Bots};
use hitreg_netcode::link::LinkModel;
use hitreg_netcode::packet::ClientPacket;
use hitreg_netcode::pipeline::{ClientPipeline, Netcode, Setup};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::sequence::{self, ClientEnd, FrameInput};
use hitreg_netcode::session::{
    BotPlayer, LateFrames, Links, Observer, PlayerScreen, SessionEvent, SessionRecorder, SnapshotSize, frame_phase,
};
use hitreg_netcode::settings::Settings;
use hitreg_netcode::wire::{
    AcceptedConnection, ClientConnection, ClientEvent, ConnectOptions, DecodeError, DisconnectReason, LeaveReason,
    Notice, PerceivedAvatar, REQUESTS_MAX, RequestKind,
};

/// A client's socket, with its counters.
pub(super) struct ClientSocket<'a> {
    pub(super) clock: MonotonicClock,
    pub(super) outbound: Outbound,
    /// The index of the modelled connection that its datagrams take.
    pub(super) line: usize,
    pub(super) inbox: Receiver<ReceivedDatagram>,
    pub(super) server: SocketAddr,
    pub(super) counters: &'a Counters,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
}

/// A client's end of its connection, with its socket.
pub(super) struct ClientSocketEnd<'a, B> {
    socket: ClientSocket<'a>,
    connection: ClientConnection<B>,
}

/// The parameters of a client's session.
pub(super) struct ClientSetup<'a, B> {
    pub(super) end: ClientSocketEnd<'a, B>,
    pub(super) player: PlayerId,
    pub(super) settings: Arc<Settings>,
    pub(super) seed: Seed,
    pub(super) records: RecordSender,
    /// Whether to record the contents of snapshots. True when no server writes them to the same log.
    pub(super) keeps_snapshots: bool,
    /// The requests to make when the session begins.
    pub(super) requests: Vec<RequestKind>,
}

impl ClientSocket<'_> {
    /// Waits up to `wait` for a datagram from the server.
    fn receive(&self, wait: Duration) -> Result<Option<Vec<u8>>, LiveError> {
        let received = receive(&self.inbox, wait)?.filter(|(from, _)| *from == self.server);
        Ok(received.map(|(_, bytes)| bytes))
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<B: Body> ClientSocketEnd<'_, B> {
    /// Sends the connection's queued datagrams that have no recorded time.
    fn transmit(&mut self) {
        while let Some(datagram) = self.connection.poll_transmit() {
            self.socket.outbound.send(self.socket.server, &datagram);
        }
    }

    fn leave(&mut self) {
        self.connection.send_disconnect(LeaveReason::Done);
        self.transmit();
    }
}

/// Requests a slot.
///
/// # Errors
/// When the server refuses the client or does not answer. Returns `None` when the session is to end before the client
/// has a slot.
pub(super) fn connect<B: Body>(
    socket: ClientSocket<'_>,
    options: ConnectOptions,
) -> Result<Option<(ClientSocketEnd<'_, B>, AcceptedConnection)>, LiveError> {
    let (clock, server) = (socket.clock, socket.server);
    let connection = ClientConnection::new(options, super::secret().0, clock.now());
    let mut end = ClientSocketEnd { socket, connection };
    while !end.socket.is_over() {
        match end.connection.handle_timeout(clock.now()) {
            Some(DisconnectReason::Refused(why)) => return Err(LiveError::Refused { server, why }),
            Some(DisconnectReason::NeverAnswered | DisconnectReason::Silent) => {
                return Err(LiveError::Silent { server });
            }
            None => {}
        }
        end.transmit();
        let Some(bytes) = end.socket.receive(LOOK_UP_EVERY)? else { continue };
        match end.connection.handle_datagram(clock.now(), &bytes) {
            Ok(Some(ClientEvent::Connected(accepted))) => return Ok(Some((end, accepted))),
            Ok(Some(ClientEvent::Refused(why))) => return Err(LiveError::Refused { server, why }),
            // Other events do not answer the request.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Plays in a slot until the session ends. The client's first frame follows the server's first snapshot.
///
/// # Errors
/// When the server falls silent, or ends the session before it began.
pub(super) fn play<G>(playing: ClientSetup<'_, G::Body>, rules: Arc<G::Rules>, bot: G::Bot) -> Result<(), LiveError>
where
    G: Bots + Netcode,
{
    let ClientSetup { end, player, settings, seed, mut records, keeps_snapshots, requests } = playing;
    let (clock, server) = (end.socket.clock, end.socket.server);
    let settings = settings.of_player(player);
    let setup = Setup { rules: Arc::clone(&rules), settings: Arc::clone(&settings), seed };
    let mut running = RunningClient::<G> {
        end,
        client: G::Client::new(setup, player),
        player,
        bot: BotPlayer::new(bot, Micros::ZERO),
        rules,
        recorder: SessionRecorder::new(&mut records),
        keeps_snapshots,
    };
    running.end.connection.set_ready(clock.now(), true);
    let mut frames: Option<Schedule> = None;
    let cmd_hz = settings.client.cmd_hz;
    let mut late = LateFrames::new(settings.client.frames, seed, player);
    let mut pauses = PauseDetector::new(clock.now());
    loop {
        if running.end.socket.is_over() {
            running.end.leave();
            return Ok(());
        }
        let now = clock.now();
        running.end.connection.allow_pause(pauses.pause(now), now);
        if running.end.connection.handle_timeout(now).is_some() {
            return Err(LiveError::ServerGone { server });
        }
        running.end.transmit();
        let wait = match &mut frames {
            Some(schedule) if clock.now() >= schedule.due() => {
                running.frame();
                schedule.advance(clock.now());
                schedule.delay(late.next_delay());
                continue;
            }
            Some(schedule) => clock.until(schedule.due()).min(LOOK_UP_EVERY),
            None => LOOK_UP_EVERY,
        };
        let Some(bytes) = running.end.socket.receive(wait)? else { continue };
        match running.handle_datagram(&bytes) {
            DatagramSubject::Nothing => {}
            DatagramSubject::SessionRuns if frames.is_some() => {}
            DatagramSubject::SessionRuns => {
                let now = clock.now();
                running.end.socket.counters.lock().began_at.get_or_insert(now);
                running.bot.begin(now);
                for what in requests.iter().take(REQUESTS_MAX) {
                    // The queue has room for this many requests.
                    let _ = running.end.connection.queue_request(what.clone());
                }
                frames = Some(Schedule::new(now + frame_phase(seed, player, cmd_hz), cmd_hz));
            }
            DatagramSubject::SessionOver if frames.is_none() && !running.end.socket.is_over() => {
                return Err(LiveError::NeverBegan { server });
            }
            DatagramSubject::SessionOver => return Ok(()),
        }
    }
}

struct RunningClient<'a, G: Bots + Netcode> {
    end: ClientSocketEnd<'a, G::Body>,
    client: G::Client,
    player: PlayerId,
    rules: Arc<G::Rules>,
    bot: BotPlayer<G>,
    recorder: SessionRecorder<'a, RecordSender, G>,
    keeps_snapshots: bool,
}

/// The effect of a datagram on the session.
enum DatagramSubject {
    /// No effect.
    Nothing,
    /// The session is running.
    SessionRuns,
    /// The session is over.
    SessionOver,
}

impl<G: Bots + Netcode> RunningClient<'_, G> {
    fn handle_datagram(&mut self, bytes: &[u8]) -> DatagramSubject {
        let counters = self.end.socket.counters;
        let at = self.end.socket.clock.stamp();
        match self.end.connection.handle_datagram(at, bytes) {
            Ok(Some(ClientEvent::Snapshot { received, bytes, datagrams })) => {
                counters.count_clients(|report| {
                    report.received += datagrams as u64;
                    report.snapshots += 1;
                });
                let (player, snapshot) = (self.player, &received.snapshot);
                if self.keeps_snapshots {
                    let bytes = bytes.min(usize::from(u16::MAX)) as u16;
                    let size = SnapshotSize { bytes, ..SnapshotSize::default() };
                    self.recorder.event(at, &SessionEvent::SnapshotSent { player, snapshot, size });
                }
                sequence::snapshot_received(&mut self.client, at, player, snapshot, &mut self.recorder);
                DatagramSubject::SessionRuns
            }
            Ok(Some(ClientEvent::Duplicate)) => {
                counters.count_clients(|report| report.repeated += 1);
                DatagramSubject::SessionRuns
            }
            Ok(Some(ClientEvent::Fragment)) => DatagramSubject::SessionRuns,
            Ok(Some(ClientEvent::Notices(notices))) => {
                counters.add_notices(notices);
                DatagramSubject::Nothing
            }
            Ok(Some(ClientEvent::Waiting(waiting))) => {
                let mut state = counters.lock();
                (state.ready, state.slots) = (waiting.ready.into(), waiting.slots.into());
                DatagramSubject::Nothing
            }
            Ok(Some(ClientEvent::Left(_))) => DatagramSubject::SessionOver,
            Ok(Some(ClientEvent::Connected(_) | ClientEvent::Refused(_))) => DatagramSubject::Nothing,
            Ok(None) | Err(DecodeError::MissingBase { .. } | DecodeError::MissingFrame { .. }) => {
                counters.count_clients(|report| report.undecodable += 1);
                DatagramSubject::Nothing
            }
            Err(_) => {
                counters.count_clients(|report| report.refused += 1);
                DatagramSubject::Nothing
            }
        }
    }

    fn frame(&mut self) {
        let at = self.end.socket.clock.stamp();
        let (bot, rules) = (&mut self.bot, &self.rules);
        let read = |screen: &PlayerScreen<'_, G>| bot.input(rules, at, screen);
        let input = FrameInput { needs_drawing: true, read };
        sequence::frame(&mut self.client, &mut self.end, at, self.player, input, &mut self.recorder);
        self.end.socket.counters.count_clients(|report| report.usercmds += 1);
    }
}

impl<B: Body> ClientEnd for ClientSocketEnd<'_, B> {
    fn pack(&mut self, _at: Micros, packet: &mut ClientPacket, predicted: Option<Vec3>) -> Option<u16> {
        // A datagram has room for all usercmds that `client.redundancy` allows.
        let bytes = self.connection.send_packet(packet, predicted.map(PerceivedAvatar::origin)).ok().flatten()?;
        self.socket.counters.count_clients(|report| {
            report.sent.datagrams += 1;
            report.sent.bytes += bytes as u64;
        });
        u16::try_from(bytes).ok()
    }

    fn send(&mut self, at: Micros, _packet: ClientPacket) -> bool {
        let ClientSocketEnd { socket, connection } = self;
        while let Some(datagram) = connection.poll_transmit() {
            socket.outbound.send_on(socket.line, Direction::Up, at, socket.server, datagram);
        }
        false
    }
}

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
    /// [`REQUESTS_MAX`].
    pub requests: &'a [RequestKind],
    /// Set to make the client leave.
    pub stop: &'a AtomicBool,
}

/// Joins a session as a bot of the game, and plays until it ends or `stop` is set.
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
    let JoinOptions { server, link, own, requests, stop } = *joining;
    let options = ConnectOptions { request_data: encode_requested(own)?, ..ConnectOptions::new(G::NAME) };
    let socket = Arc::new(open_towards(server)?);
    let clock = MonotonicClock::start();
    let (counters, ending, over) = (Counters::default(), AtomicBool::new(false), AtomicBool::new(false));
    let (posts, posted) = sync_channel(WAITING_IN_TRANSIT);
    let player = std::thread::scope(|scope| {
        let run = || -> Result<Option<(PlayerId, OwnSettings)>, LiveError> {
            let delays = link.map(|_| posts.clone());
            let socket = ClientSocket {
                clock,
                outbound: Outbound { socket: Arc::clone(&socket), delays: delays.clone() },
                line: 0,
                inbox: read_from(scope, &socket, delays.map(|delays| (clock, delays)), &over)?,
                server,
                counters: &counters,
                stop,
            };
            drop(posts);
            let Some((mut end, accepted)) = connect(socket, options)? else { return Ok(None) };
            let player = accepted.player;
            end.socket.stop = &ending;
            let main_loop = MainLoop { clock, counters: &counters, stop, ending: &ending };
            let link = link.map(|link| (link, posted));
            let granted = play_in::<G>(scope, (end, accepted), rules, link, requests.to_vec(), &main_loop, sink)?;
            Ok(Some((player, granted)))
        };
        let ran = run();
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    let heard = std::mem::take(&mut counters.lock().heard);
    let (player, granted) = player.unzip();
    Ok(JoinResult { player, granted: granted.unwrap_or_default(), report: counters.report(Vec::new()), heard })
}

/// Plays in a slot, after checking that the client can play by the server's welcome.
fn play_in<'scope, 'env, G>(
    scope: &'scope Scope<'scope, 'env>,
    (mut end, accepted): (ClientSocketEnd<'env, G::Body>, AcceptedConnection),
    rules: &Arc<G::Rules>,
    link: Option<(&LinkModel, Receiver<TransitDatagram>)>,
    requests: Vec<RequestKind>,
    main_loop: &MainLoop<'_>,
    sink: &mut dyn LiveSink,
) -> Result<OwnSettings, LiveError>
where
    G: Bots + Netcode,
{
    let player = accepted.player;
    let welcome = Welcome::decode(&accepted.welcome).and_then(|w| Ok((w.header::<G>(rules, player)?, w)));
    let (header, welcome) = welcome.inspect_err(|_| end.leave())?;
    let settings = Arc::new(Settings::from_pairs(&header.settings).map_err(WelcomeError::from)?);
    if let Some((model, posted)) = link {
        // The link draws the same random delays and losses as in a loopback session, because they follow from seed and
        // player.
        let links = Links::modelled(model, header.seed, player);
        let clock = end.socket.clock;
        spawn(scope, "links", move || deliver(clock, vec![links], &posted))?;
    }
    sink.expecting(welcome.length);
    if sink.begin(&header).is_break() {
        end.leave();
        return Ok(welcome.granted);
    }
    let (records, recorded) = sync_channel(WAITING_RECORDS);
    let (seed, records) = (header.seed, RecordSender(records));
    let rules = Arc::clone(rules);
    let client = spawn(scope, "client", move || {
        let bot = make_bot::<G>(scope, &mut end, player, seed, &rules)?;
        let playing = ClientSetup { end, player, settings, seed, records, keeps_snapshots: true, requests };
        play::<G>(playing, rules, bot)
    })?;
    main_loop.run(sink, &recorded);
    wait_for(client)?;
    Ok(welcome.granted)
}

/// Creates the bot. This can take long, so the client keeps reporting to the server that it is present.
fn make_bot<'scope, G: Bots>(
    scope: &'scope Scope<'scope, '_>,
    end: &mut ClientSocketEnd<'_, G::Body>,
    player: PlayerId,
    seed: Seed,
    rules: &Arc<G::Rules>,
) -> Result<G::Bot, LiveError>
where
    G::Bot: 'scope,
{
    let rules = Arc::clone(rules);
    let (made, bot) = sync_channel(1);
    spawn(scope, "bot", move || made.send(G::bot(&rules, seed, player)))?;
    loop {
        // A silent server is detected later, while playing.
        end.connection.handle_timeout(end.socket.clock.now());
        end.transmit();
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
