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
use crate::game::Bots;
use crate::pipeline::{ClientPipeline, Netcode, Setup};
use crate::rng::Rng;
use crate::session::{Observer, Recorder, Shown};
use crate::settings::Settings;
use crate::units::{CommandSeq, Hz, Micros, PlayerId, Seed};
use crate::wire::{
    ClientMessage, Decoded, Knock, KnockOptions, Leaving, MessageType, Networked, Outcome, Receiver as WireReceiver,
    Session, decode_disconnect, encode_commands, encode_disconnect, message_type, seal, unseal,
};

/// A server that is not heard for this long is gone.
const SILENCE_MAX: Micros = Micros::from_s(5);
/// How long a client waits before it looks whether it is to stop.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// What a client needs to play.
pub(super) struct Playing<'a> {
    pub(super) settings: Arc<Settings>,
    pub(super) seed: Seed,
    pub(super) clock: Clock,
    pub(super) post: Post,
    pub(super) inbox: Receiver<Datagram>,
    pub(super) server: SocketAddr,
    pub(super) books: Books,
    pub(super) counts: &'a Counts,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
}

/// Asks for a place.
///
/// # Errors
/// When there is none, nobody answers, or the session is to end; the latter is no trouble and has no place: `None`.
pub(super) fn knock(playing: &Playing<'_>, game: &str) -> Result<Option<Session>, LiveError> {
    let clock = playing.clock;
    let mut knock = Knock::new(KnockOptions::new(game), super::secret().0, clock.now());
    loop {
        if playing.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(datagram) = knock.poll_datagram(clock.now()) {
            playing.post.send(playing.server, &datagram);
        }
        match knock.outcome() {
            Some(Outcome::Accepted(session)) => return Ok(Some(session.clone())),
            Some(Outcome::Refused(why)) => return Err(LiveError::Refused { server: playing.server, why: why.clone() }),
            Some(Outcome::Silent) => return Err(LiveError::Silent { server: playing.server }),
            None => {}
        }
        match playing.inbox.recv_timeout(LOOK_UP_EVERY) {
            Ok((from, bytes)) if from == playing.server => knock.handle_datagram(clock.now(), &bytes),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
    }
}

/// Plays in a place until the session ends. The first frame comes with the server's first datagram.
///
/// # Errors
/// When the server falls silent.
pub(super) fn play<G>(playing: Playing<'_>, session: &Session, rules: Arc<G::Rules>) -> Result<(), LiveError>
where
    G: Bots + Netcode,
    G::Body: Networked,
{
    let player = session.player;
    let mut books = playing.books;
    let setup = Setup { rules: Arc::clone(&rules), settings: Arc::clone(&playing.settings), seed: playing.seed };
    let mut seat = Seat::<G> {
        clock: playing.clock,
        session,
        server: playing.server,
        post: playing.post,
        counts: playing.counts,
        client: G::Client::new(setup, player),
        receiver: WireReceiver::new(),
        newest_command: CommandSeq(0),
        bot: G::bot(&rules, playing.seed, player),
        rules,
        last_ms: 0,
        recorder: Recorder::new(&mut books),
    };
    let mut heard_at = seat.clock.now();
    let mut frames: Option<Schedule> = None;
    let cmd_hz = playing.settings.client.cmd_hz;
    loop {
        if playing.stop.load(Ordering::Relaxed) {
            seat.post.send(seat.server, &seal(session.key, encode_disconnect(Leaving::Done)));
            return Ok(());
        }
        let wait = match &mut frames {
            Some(schedule) if seat.clock.now() >= schedule.due() => {
                seat.frame();
                schedule.advance(seat.clock.now());
                continue;
            }
            Some(schedule) => seat.clock.until(schedule.due()).min(LOOK_UP_EVERY),
            None => LOOK_UP_EVERY,
        };
        match playing.inbox.recv_timeout(wait) {
            Ok((from, bytes)) if from == seat.server => match seat.handle_datagram(&bytes) {
                Told::Nothing => {}
                Told::Frame => {
                    heard_at = seat.clock.now();
                    frames.get_or_insert_with(|| {
                        seat.last_ms = heard_at.0 / 1000;
                        Schedule::new(heard_at + phase(playing.seed, player, cmd_hz), cmd_hz)
                    });
                }
                Told::Farewell => return Ok(()),
            },
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
        if frames.is_some() && seat.clock.now() - heard_at > SILENCE_MAX {
            return Err(LiveError::ServerGone { server: seat.server });
        }
    }
}

/// Each client has its own, so that no two run in step.
fn phase(seed: Seed, player: PlayerId, cmd_hz: Hz) -> Micros {
    let interval = cmd_hz.interval().0.unsigned_abs();
    Micros(Rng::new(seed, 0x7068_6173_0000_0000 | u64::from(player.0)).below(interval) as i64)
}

struct Seat<'a, G: Bots + Netcode> {
    clock: Clock,
    session: &'a Session,
    server: SocketAddr,
    post: Post,
    counts: &'a Counts,
    client: G::Client,
    receiver: WireReceiver<G::Body>,
    newest_command: CommandSeq,
    rules: Arc<G::Rules>,
    bot: G::Bot,
    /// The end of the last frame, in whole milliseconds: usercmds cover whole ones, and over time none is lost.
    last_ms: i64,
    recorder: Recorder<'a, Books>,
}

/// What a datagram was about.
enum Told {
    /// Nothing that can be used.
    Nothing,
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
            (Ok(MessageType::LiveFromServer), Ok(datagram)) => self.handle_frame(datagram),
            (Ok(MessageType::Disconnect), Ok(datagram)) if decode_disconnect(datagram).is_ok() => Told::Farewell,
            _ => {
                self.counts.refused.add(1);
                Told::Nothing
            }
        }
    }

    fn handle_frame(&mut self, datagram: &[u8]) -> Told {
        let decoded = envelope::open_down(datagram)
            .and_then(|(datagram, whole)| Some((self.receiver.decode(datagram, self.newest_command).ok()?, whole)));
        match decoded {
            Some((Decoded::New(received), true)) => {
                let at = self.clock.stamp();
                self.counts.down_arrived.add(1);
                let snapshot = &received.snapshot;
                let reconciled = self.client.handle_snapshot(at, snapshot);
                let player = self.session.player;
                Observer::<G>::snapshot_received(&mut self.recorder, player, at, snapshot, reconciled.as_ref());
                Told::Frame
            }
            Some((Decoded::New(_), false)) => {
                self.counts.down_partial.add(1);
                Told::Frame
            }
            Some((Decoded::Duplicate, _)) => {
                self.counts.down_duplicates.add(1);
                Told::Frame
            }
            Some((Decoded::TooOld, _)) | None => {
                self.counts.down_undecodable.add(1);
                Told::Nothing
            }
        }
    }

    fn frame(&mut self) {
        let at = self.clock.stamp();
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
        self.counts.usercmds.add(1);
        self.send(at, commanded.packet);
    }

    fn send(&mut self, at: Micros, mut packet: crate::packet::ClientPacket) {
        let newest_whole = packet.ack;
        let received = self.receiver.received();
        packet.ack = received.newest;
        let message = ClientMessage { packet, received_before: received.before, perceived: None };
        // `check` has seen to it that all usercmds of a packet go into a datagram.
        let Ok(datagram) = encode_commands(&message) else { return };
        let bytes = seal(self.session.key, envelope::close_up(datagram, newest_whole));
        self.counts.up_datagrams.add(1);
        self.counts.up_bytes.add(bytes.len() as u64);
        self.post.send_on(self.session.player, Direction::Up, at, self.server, bytes);
    }
}
