//! A client of a live session, with a bot at its keys: one thread that hands snapshots and frames to the pipeline, each
//! with a time of its own, and writes down what it handed over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::books::{Books, Counts};
use super::clock::{Clock, Schedule};
use super::post::{Direction, Post};
use super::socket::Datagram;
use super::{LiveError, envelope};
use crate::game::{Body, Bots};
use crate::packet::ClientPacket;
use crate::pipeline::{ClientPipeline, Netcode, Setup};
use crate::rng::Rng;
use crate::session::{Observer, Recorder, Shown};
use crate::settings::Settings;
use crate::units::{CommandSeq, Hz, Micros, PlayerId, Seed};
use crate::wire::{
    ClientMessage, Decoded, Knock, KnockOptions, Leaving, MessageType, Networked, Outcome, Perceived, Reassembled,
    Reassembly, Receiver as WireReceiver, Session, Waiting, decode_disconnect, decode_waiting, encode_commands,
    encode_disconnect, encode_waiting, message_type, seal, unseal,
};

/// A server that is not heard for this long is gone.
const SILENCE_MAX: Micros = Micros::from_s(5);
/// How long a client waits before it looks whether it is to stop.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// How often a client says that it is still there while it waits for the session to begin.
pub(super) const SAY_WAITING_EVERY: Micros = Micros::from_ms(500);

/// A client's end of its connection.
pub(super) struct Endpoint<'a> {
    pub(super) clock: Clock,
    pub(super) post: Post,
    /// Which of the modelled connections its datagrams take.
    pub(super) line: usize,
    pub(super) inbox: Receiver<Datagram>,
    pub(super) server: SocketAddr,
    pub(super) counts: &'a Counts,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
}

/// What a client needs to play.
pub(super) struct Playing<'a> {
    pub(super) endpoint: Endpoint<'a>,
    pub(super) settings: Arc<Settings>,
    pub(super) seed: Seed,
    pub(super) books: Books,
    /// Whether to write down what is in the snapshots, because no server writes it into the same log.
    pub(super) keeps_snapshots: bool,
}

impl Endpoint<'_> {
    /// Sends something that has no time of its own.
    pub(super) fn say(&self, session: &Session, datagram: Vec<u8>) {
        self.post.send(self.server, &seal(session.key, datagram));
    }
}

/// Asks for a place.
///
/// # Errors
/// When there is none, nobody answers, or the session is to end; the latter is no trouble and has no place: `None`.
pub(super) fn knock(endpoint: &Endpoint<'_>, game: &str) -> Result<Option<Session>, LiveError> {
    let (clock, server) = (endpoint.clock, endpoint.server);
    let mut knock = Knock::new(KnockOptions::new(game), super::secret().0, clock.now());
    loop {
        if endpoint.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(datagram) = knock.poll_datagram(clock.now()) {
            endpoint.post.send(server, &datagram);
        }
        match knock.outcome() {
            Some(Outcome::Accepted(session)) => return Ok(Some(session.clone())),
            Some(Outcome::Refused(why)) => return Err(LiveError::Refused { server, why: why.clone() }),
            Some(Outcome::Silent) => return Err(LiveError::Silent { server }),
            None => {}
        }
        match endpoint.inbox.recv_timeout(LOOK_UP_EVERY) {
            Ok((from, bytes)) if from == server => knock.handle_datagram(clock.now(), &bytes),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
    }
}

/// Plays in a place until the session ends. The first frame comes with the server's first frame.
///
/// # Errors
/// When the server falls silent, or ends the session before it began.
pub(super) fn play<G>(
    playing: Playing<'_>,
    session: &Session,
    rules: Arc<G::Rules>,
    bot: G::Bot,
) -> Result<(), LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let (player, endpoint, mut books) = (session.player, playing.endpoint, playing.books);
    let setup = Setup { rules: Arc::clone(&rules), settings: Arc::clone(&playing.settings), seed: playing.seed };
    let mut seat = Seat::<G> {
        session,
        client: G::Client::new(setup, player),
        receiver: WireReceiver::new(),
        reassembly: Reassembly::new(),
        newest_command: CommandSeq(0),
        bot,
        rules,
        last_ms: 0,
        recorder: Recorder::new(&mut books),
        keeps_snapshots: playing.keeps_snapshots,
        endpoint: &endpoint,
    };
    let clock = endpoint.clock;
    let mut heard_at = clock.now();
    let mut say_waiting_at = heard_at;
    let mut frames: Option<Schedule> = None;
    let cmd_hz = playing.settings.client.cmd_hz;
    loop {
        if endpoint.stop.load(Ordering::Relaxed) {
            endpoint.say(session, encode_disconnect(Leaving::Done));
            return Ok(());
        }
        let wait = match &mut frames {
            Some(schedule) if clock.now() >= schedule.due() => {
                seat.frame();
                schedule.advance(clock.now());
                continue;
            }
            Some(schedule) => clock.until(schedule.due()).min(LOOK_UP_EVERY),
            None if clock.now() >= say_waiting_at => {
                say_waiting_at = clock.now() + SAY_WAITING_EVERY;
                endpoint.say(session, encode_waiting(Waiting { ready: 1, seats: 1 }));
                continue;
            }
            None => LOOK_UP_EVERY,
        };
        match endpoint.inbox.recv_timeout(wait) {
            Ok((from, bytes)) if from == endpoint.server => match seat.handle_datagram(&bytes) {
                Told::Nothing => {}
                Told::Alive(waiting) => {
                    heard_at = clock.now();
                    endpoint.counts.ready.set(waiting.ready.into());
                    endpoint.counts.seats.set(waiting.seats.into());
                }
                Told::Frame => {
                    heard_at = clock.now();
                    frames.get_or_insert_with(|| {
                        endpoint.counts.began_at.get_or_init(|| heard_at);
                        seat.last_ms = heard_at.0 / 1000;
                        Schedule::new(heard_at + phase(playing.seed, player, cmd_hz), cmd_hz)
                    });
                }
                Told::Farewell if frames.is_none() && !endpoint.stop.load(Ordering::Relaxed) => {
                    return Err(LiveError::NeverBegan { server: endpoint.server });
                }
                Told::Farewell => return Ok(()),
            },
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
        if clock.now() - heard_at > SILENCE_MAX {
            return Err(LiveError::ServerGone { server: endpoint.server });
        }
    }
}

/// Each client has its own, so that no two run in step.
fn phase(seed: Seed, player: PlayerId, cmd_hz: Hz) -> Micros {
    let interval = cmd_hz.interval().0.unsigned_abs();
    Micros(Rng::new(seed, 0x7068_6173_0000_0000 | u64::from(player.0)).below(interval) as i64)
}

struct Seat<'a, G: Bots + Netcode> {
    endpoint: &'a Endpoint<'a>,
    session: &'a Session,
    client: G::Client,
    receiver: WireReceiver<G::Body>,
    reassembly: Reassembly,
    newest_command: CommandSeq,
    rules: Arc<G::Rules>,
    bot: G::Bot,
    /// The end of the last frame, in whole milliseconds: usercmds cover whole ones, and over time none is lost.
    last_ms: i64,
    recorder: Recorder<'a, Books, G>,
    keeps_snapshots: bool,
}

/// What a datagram was about.
enum Told {
    /// Nothing that can be used.
    Nothing,
    /// The server waits for players, too.
    Alive(Waiting),
    /// The server's frame.
    Frame,
    /// The session is over.
    Farewell,
}

impl<G: Bots + Netcode> Seat<'_, G>
where
    G::Body: Networked,
{
    fn handle_datagram(&mut self, bytes: &[u8]) -> Told {
        match (message_type(bytes), unseal(self.session.key, bytes)) {
            (Ok(MessageType::LiveFromServer), Ok(datagram)) => self.handle_frame(datagram, 1),
            (Ok(MessageType::FragmentFromServer), Ok(datagram)) => match self.reassembly.handle_fragment(datagram) {
                Ok(Some(Reassembled { message, fragments })) => self.handle_frame(&message, fragments as u64),
                Ok(None) => Told::Frame,
                Err(_) => {
                    self.endpoint.counts.refused.add(1);
                    Told::Nothing
                }
            },
            (Ok(MessageType::Disconnect), Ok(datagram)) if decode_disconnect(datagram).is_ok() => Told::Farewell,
            (Ok(MessageType::Waiting), Ok(datagram)) => decode_waiting(datagram).map_or(Told::Nothing, Told::Alive),
            _ => {
                self.endpoint.counts.refused.add(1);
                Told::Nothing
            }
        }
    }

    /// Takes a message that came in so many datagrams.
    fn handle_frame(&mut self, datagram: &[u8], datagrams: u64) -> Told {
        let decoded = envelope::open_down(datagram)
            .and_then(|(datagram, whole)| Some((self.receiver.decode(datagram, self.newest_command).ok()?, whole)));
        match decoded {
            Some((Decoded::New(received), true)) => {
                let at = self.endpoint.clock.stamp();
                self.endpoint.counts.down_arrived.add(datagrams);
                self.endpoint.counts.snapshots_used.add(1);
                let snapshot = &received.snapshot;
                let reconciled = self.client.handle_snapshot(at, snapshot);
                let player = self.session.player;
                if self.keeps_snapshots {
                    Observer::<G>::snapshot_sent(&mut self.recorder, player, at, snapshot);
                }
                Observer::<G>::snapshot_received(&mut self.recorder, player, at, snapshot, reconciled.as_ref());
                Told::Frame
            }
            Some((Decoded::New(_), false)) => {
                self.endpoint.counts.down_partial.add(1);
                Told::Frame
            }
            Some((Decoded::Duplicate, _)) => {
                self.endpoint.counts.down_duplicates.add(1);
                Told::Frame
            }
            Some((Decoded::TooOld, _)) | None => {
                self.endpoint.counts.down_undecodable.add(1);
                Told::Nothing
            }
        }
    }

    fn frame(&mut self) {
        let at = self.endpoint.clock.stamp();
        let player = self.session.player;
        self.client.look(at);
        let now_ms = at.0 / 1000;
        let msec = (now_ms - self.last_ms).clamp(0, 255) as u8;
        self.last_ms = now_ms;
        let (own, others) = (self.client.predicted(), self.client.drawn());
        let input = G::think(&mut self.bot, &self.rules, own, others, at, msec);
        let commanded = self.client.command(at, &input);
        self.newest_command = commanded.command.seq;
        let shown = Shown { drawn: self.client.drawn(), drawn_at: self.client.drawn_at() };
        Observer::<G>::frame(&mut self.recorder, player, at, &commanded, &shown);
        if let Some(record) = commanded.packet.record(at) {
            Observer::<G>::packet_sent(&mut self.recorder, player, record);
        }
        self.endpoint.counts.usercmds.add(1);
        let perceived = commanded.predicted.as_ref().map(|body| Perceived::origin(body.origin()));
        self.send(at, commanded.packet, perceived);
    }

    fn send(&mut self, at: Micros, mut packet: ClientPacket, perceived: Option<Perceived>) {
        let newest_whole = packet.ack;
        let received = self.receiver.received();
        packet.ack = received.newest;
        let message = ClientMessage { packet, received_before: received.before, perceived };
        // `check` has seen to it that all usercmds of a packet go into a datagram.
        let Ok(datagram) = encode_commands(&message) else { return };
        let bytes = seal(self.session.key, envelope::close_up(datagram, newest_whole));
        self.endpoint.counts.up_datagrams.add(1);
        self.endpoint.counts.up_bytes.add(bytes.len() as u64);
        let endpoint = self.endpoint;
        endpoint.post.send_on(endpoint.line, Direction::Up, at, endpoint.server, bytes);
    }
}
