//! A live client played by a bot. One thread passes datagrams and frames to the client pipeline, each with a unique
//! time, and records these inputs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use glam::Vec3;

use super::LiveError;
use super::clock::{MonotonicClock, Schedule};
use super::counters::{Counters, RecordSender};
use super::socket::{LOOK_UP_EVERY, ReceivedDatagram, receive};
use super::transit::Outbound;
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::game::{Body, Bots};
use hitreg_netcode::packet::ClientPacket;
use hitreg_netcode::pipeline::{ClientPipeline, Netcode, Setup};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::sequence::{self, ClientEnd};
use hitreg_netcode::session::{
    BotPlayer, LateFrames, Observer, PlayerScreen, SessionEvent, SessionRecorder, SnapshotSize, frame_phase,
};
use hitreg_netcode::settings::Settings;
use hitreg_netcode::wire::{
    AcceptedConnection, ClientConnection, ClientEvent, ConnectOptions, DecodeError, DisconnectReason, LeaveReason,
    PerceivedAvatar, REQUESTS_MAX, RequestKind,
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

/// The parameters of a client's session.
pub(super) struct ClientSetup<'a, B> {
    pub(super) socket: ClientSocket<'a>,
    pub(super) connection: ClientConnection<B>,
    pub(super) player: PlayerId,
    pub(super) settings: Arc<Settings>,
    pub(super) seed: Seed,
    pub(super) records: RecordSender,
    /// Whether to record the contents of snapshots. True when no server writes them to the same log.
    pub(super) keeps_snapshots: bool,
    /// The requests to make when the session begins.
    pub(super) asks: Vec<RequestKind>,
}

impl ClientSocket<'_> {
    /// Sends the connection's queued datagrams that have no recorded time.
    pub(super) fn transmit<B: Body>(&self, connection: &mut ClientConnection<B>) {
        while let Some(datagram) = connection.poll_transmit() {
            self.outbound.send(self.server, &datagram);
        }
    }

    /// Waits up to `wait` for a datagram from the server.
    fn receive(&self, wait: Duration) -> Result<Option<Vec<u8>>, LiveError> {
        let received = receive(&self.inbox, wait)?.filter(|(from, _)| *from == self.server);
        Ok(received.map(|(_, bytes)| bytes))
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Requests a slot.
///
/// # Errors
/// When the server refuses the client or does not answer. Returns `None` when the session is to end before the client
/// has a slot.
pub(super) fn connect<B: Body>(
    socket: &ClientSocket<'_>,
    options: ConnectOptions,
) -> Result<Option<(ClientConnection<B>, AcceptedConnection)>, LiveError> {
    let (clock, server) = (socket.clock, socket.server);
    let mut connection = ClientConnection::new(options, super::secret().0, clock.now());
    while !socket.is_over() {
        match connection.handle_timeout(clock.now()) {
            Some(DisconnectReason::Refused(why)) => return Err(LiveError::Refused { server, why }),
            Some(DisconnectReason::NeverAnswered | DisconnectReason::Silent) => {
                return Err(LiveError::Silent { server });
            }
            None => {}
        }
        socket.transmit(&mut connection);
        let Some(bytes) = socket.receive(LOOK_UP_EVERY)? else { continue };
        match connection.handle_datagram(clock.now(), &bytes) {
            Ok(Some(ClientEvent::Connected(accepted))) => return Ok(Some((connection, accepted))),
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
    let ClientSetup { socket, connection, player, settings, seed, mut records, keeps_snapshots, asks } = playing;
    let settings = settings.of_player(player);
    let setup = Setup { rules: Arc::clone(&rules), settings: Arc::clone(&settings), seed };
    let mut running = RunningClient::<G> {
        end: ClientSocketEnd { socket: &socket, connection },
        client: G::Client::new(setup, player),
        player,
        bot: BotPlayer::new(bot, Micros::ZERO),
        rules,
        recorder: SessionRecorder::new(&mut records),
        keeps_snapshots,
    };
    let clock = socket.clock;
    running.end.connection.set_ready(clock.now(), true);
    let mut frames: Option<Schedule> = None;
    let cmd_hz = settings.client.cmd_hz;
    let mut late = LateFrames::new(settings.client.frames, seed, player);
    loop {
        if socket.is_over() {
            running.end.connection.send_disconnect(LeaveReason::Done);
            socket.transmit(&mut running.end.connection);
            return Ok(());
        }
        if running.end.connection.handle_timeout(clock.now()).is_some() {
            return Err(LiveError::ServerGone { server: socket.server });
        }
        socket.transmit(&mut running.end.connection);
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
        let Some(bytes) = socket.receive(wait)? else { continue };
        match running.handle_datagram(&bytes) {
            DatagramSubject::Nothing => {}
            DatagramSubject::SessionRuns if frames.is_some() => {}
            DatagramSubject::SessionRuns => {
                let now = clock.now();
                socket.counters.lock().began_at.get_or_insert(now);
                running.bot.begin(now);
                for what in asks.iter().take(REQUESTS_MAX) {
                    // The queue has room for this many requests.
                    let _ = running.end.connection.ask(what.clone());
                }
                frames = Some(Schedule::new(now + frame_phase(seed, player, cmd_hz), cmd_hz));
            }
            DatagramSubject::SessionOver if frames.is_none() && !socket.is_over() => {
                return Err(LiveError::NeverBegan { server: socket.server });
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

/// A client's end of its connection, with its socket.
struct ClientSocketEnd<'a, B> {
    socket: &'a ClientSocket<'a>,
    connection: ClientConnection<B>,
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
            Ok(Some(ClientEvent::Snapshot { mut received, bytes, datagrams })) => {
                counters.add_notices(std::mem::take(&mut received.notices));
                counters.count_clients(|report| {
                    report.received += datagrams as u64;
                    report.snapshots += 1;
                });
                let (player, snapshot) = (self.player, &received.snapshot);
                if self.keeps_snapshots {
                    let bytes = bytes.min(usize::from(u16::MAX)) as u16;
                    let size = SnapshotSize { bytes, ..SnapshotSize::default() };
                    self.recorder.event(at, SessionEvent::SnapshotSent { player, snapshot, size });
                }
                sequence::snapshot_received(&mut self.client, at, player, snapshot, &mut self.recorder);
                DatagramSubject::SessionRuns
            }
            Ok(Some(ClientEvent::Duplicate)) => {
                counters.count_clients(|report| report.repeated += 1);
                DatagramSubject::SessionRuns
            }
            Ok(Some(ClientEvent::Part)) => DatagramSubject::SessionRuns,
            Ok(Some(ClientEvent::Waiting(waiting))) => {
                let mut state = counters.lock();
                (state.ready, state.places) = (waiting.ready.into(), waiting.places.into());
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
        let input = |screen: &PlayerScreen<'_, G>| bot.input(rules, at, screen);
        sequence::frame(&mut self.client, &mut self.end, at, self.player, (true, input), &mut self.recorder);
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

    fn send(&mut self, at: Micros, _packet: ClientPacket) {
        let socket = self.socket;
        while let Some(datagram) = self.connection.poll_transmit() {
            socket.outbound.send_on(socket.line, Direction::Up, at, socket.server, datagram);
        }
    }
}
