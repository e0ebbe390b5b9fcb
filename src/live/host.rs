//! The server of a live session: one thread that hands datagrams and ticks to the pipeline, each with a time of its
//! own, and writes down what it handed over.

mod peer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::LiveError;
use super::books::{Books, Counts};
use super::clock::{Clock, Schedule};
use super::post::{Direction, Post};
use super::socket::Datagram;
use crate::packet::Snapshot;
use crate::pipeline::{Event, Netcode, ServerPipeline, Setup};
use crate::record::{ArrivalRecord, Header};
use crate::session::{Observer, Recorder};
use crate::settings::Settings;
use crate::units::{Micros, PlayerId};
use crate::wire::{
    Heard, Leaving, Lobby, LobbyOptions, MessageType, Networked, Waiting, decode_waiting, encode_waiting, message_type,
};
use peer::Peer;

/// A client that is not heard for this long has left.
const TIMEOUT: Micros = Micros::from_s(10);
/// How long the server waits before it looks whether it is to stop.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// What a server needs to run.
pub(super) struct Hosting<'a> {
    pub(super) header: &'a Header,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) post: Post,
    pub(super) inbox: Receiver<Datagram>,
    pub(super) books: Books,
    pub(super) counts: &'a Counts,
    /// How long to play.
    pub(super) length: Micros,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
    pub(super) welcome: Vec<u8>,
}

/// How late each tick was, in µs.
pub(super) type Lateness = Vec<u32>;

/// Waits for all players, runs the session to its end, and says farewell.
pub(super) fn host<G>(hosting: Hosting<'_>, rules: Arc<G::Rules>) -> Result<Lateness, LiveError>
where
    G: Netcode,
    G::Body: Networked,
{
    let seats = hosting.header.players.len() as u16;
    let options = LobbyOptions {
        game: G::NAME.to_owned(),
        seats,
        timeout: TIMEOUT,
        welcome: hosting.welcome,
        secret: super::secret(),
    };
    let mut books = hosting.books;
    let setup = Setup { rules, settings: Arc::clone(&hosting.settings), seed: hosting.header.seed };
    let mut host = Host::<G> {
        clock: hosting.clock,
        lobby: Lobby::new(options),
        server: G::Server::new(setup, seats),
        peers: (0..seats).map(|p| Peer::new(PlayerId(p), seats)).collect(),
        is_ready: vec![false; usize::from(seats)],
        recorder: Recorder::new(&mut books),
        post: hosting.post,
        counts: hosting.counts,
        lateness: Vec::new(),
        running: false,
    };
    let is_over = || hosting.stop.load(Ordering::Relaxed);
    hosting.counts.seats.set(seats.into());
    while !is_over() && host.ready() < seats {
        host.hear(&hosting.inbox, LOOK_UP_EVERY)?;
        host.lobby.expire(host.clock.now());
    }
    host.running = true;
    host.lobby.close();
    let begins = host.clock.now();
    host.counts.began_at.get_or_init(|| begins);
    let mut schedule = Schedule::new(begins, hosting.settings.server.tick_hz);
    while !is_over() && schedule.due() - begins <= hosting.length && host.lobby.players().next().is_some() {
        let due = schedule.due();
        if host.clock.now() >= due {
            host.tick(due);
            host.counts.ticks_left_out.add(schedule.advance(host.clock.now()));
        } else {
            host.hear(&hosting.inbox, host.clock.until(due).min(LOOK_UP_EVERY))?;
        }
    }
    host.say_farewell();
    Ok(host.lateness)
}

struct Host<'a, G: Netcode> {
    clock: Clock,
    lobby: Lobby,
    server: G::Server,
    peers: Vec<Peer<G::Body>>,
    /// Which of the players have said that they are ready.
    is_ready: Vec<bool>,
    recorder: Recorder<'a, Books, G>,
    post: Post,
    counts: &'a Counts,
    lateness: Lateness,
    /// False until all players are there.
    running: bool,
}

impl<G: Netcode> Host<'_, G>
where
    G::Body: Networked,
{
    /// Waits for a datagram, no longer than `wait`.
    fn hear(&mut self, inbox: &Receiver<Datagram>, wait: Duration) -> Result<(), LiveError> {
        match inbox.recv_timeout(wait) {
            Ok((from, bytes)) => self.handle_datagram(from, &bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(LiveError::ThreadGone),
        }
        Ok(())
    }

    fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        match self.lobby.handle_datagram(self.clock.now(), from, bytes) {
            Heard::Reply(reply) => self.post.send(from, &reply),
            // Whoever lost his place to a silence, or started anew, has lost what the session said so far.
            Heard::Joined { player, .. } if self.running => self.dismiss(player, Leaving::TimedOut),
            Heard::Joined { player, reply, .. } => {
                self.is_ready[usize::from(player.0)] = false;
                self.post.send(from, &reply);
            }
            Heard::Live { player, datagram } if message_type(datagram) == Ok(MessageType::Waiting) => {
                self.handle_waiting(player, datagram);
            }
            Heard::Live { player, datagram } if self.running => self.handle_live(player, datagram),
            Heard::Live { .. } | Heard::Left { .. } => {}
            Heard::Ignored(_) => self.counts.refused.add(1),
        }
    }

    /// Tells a client who waits how many are ready. Once the session runs, its frames say all there is to say.
    fn handle_waiting(&mut self, player: PlayerId, datagram: &[u8]) {
        let Ok(said) = decode_waiting(datagram) else { return self.counts.refused.add(1) };
        self.is_ready[usize::from(player.0)] = said.ready > 0;
        let waiting = Waiting { ready: self.ready(), seats: self.peers.len() as u16 };
        let answer = if self.running { None } else { self.lobby.address(player, encode_waiting(waiting)) };
        if let Some((to, answer)) = answer {
            self.post.send(to, &answer);
        }
    }

    /// How many players have a place and are ready.
    fn ready(&self) -> u16 {
        let ready = self.lobby.players().filter(|player| self.is_ready[usize::from(player.0)]).count() as u16;
        self.counts.ready.set(ready.into());
        ready
    }

    fn handle_live(&mut self, player: PlayerId, datagram: &[u8]) {
        let peer = &mut self.peers[usize::from(player.0)];
        let Some(packet) = peer.open(datagram) else {
            self.counts.refused.add(1);
            return;
        };
        let at = self.clock.stamp();
        self.counts.up_arrived.add(1);
        Observer::<G>::packet_reached(&mut self.recorder, player, ArrivalRecord { number: packet.number, at });
        self.server.handle_packet(at, player, packet);
    }

    fn tick(&mut self, due: Micros) {
        let at = self.clock.stamp();
        self.lateness.push(u32::try_from((at - due).0).unwrap_or(u32::MAX));
        let ticked = self.server.tick(at);
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Executed { player, command, how } => {
                    Observer::<G>::executed(&mut self.recorder, player, command, ticked.tick, how);
                }
                Event::Presence { player, change } => {
                    Observer::<G>::presence(&mut self.recorder, player, at, ticked.tick, change);
                }
                // What follows from input alone, a replay of the log tells.
                Event::Judged(_) | Event::Impact { .. } => {}
            }
        }
        Observer::<G>::ticked(&mut self.recorder, at, ticked, self.server.world());
        self.counts.ticks.add(1);
        while let Some((player, snapshot)) = self.server.poll_snapshot() {
            Observer::<G>::snapshot_sent(&mut self.recorder, player, at, &snapshot);
            self.send(player, at, &snapshot);
        }
        // Whoever has left gets no more datagrams; the body stays where it is.
        self.lobby.expire(self.clock.now());
    }

    fn send(&mut self, player: PlayerId, at: Micros, snapshot: &Snapshot<G::Body>) {
        let peer = &mut self.peers[usize::from(player.0)];
        if let Some(avatar) = snapshot.frame.get(player.entity())
            && let Some(is_right) = peer.saw(snapshot.ack, avatar)
        {
            self.counts.perceived.add(1);
            self.counts.perceived_right.add(u64::from(is_right));
        }
        let Some(closed) = peer.close(snapshot) else { return };
        self.counts.snapshots.add(1);
        self.counts.snapshots_whole.add(u64::from(closed.is_whole));
        self.counts.snapshots_in_fragments.add(u64::from(closed.datagrams.len() > 1));
        for datagram in closed.datagrams {
            if let Some((to, bytes)) = self.lobby.address(player, datagram) {
                self.counts.down_datagrams.add(1);
                self.counts.down_bytes.add(bytes.len() as u64);
                self.post.send_on(usize::from(player.0), Direction::Down, at, to, bytes);
            }
        }
    }

    fn dismiss(&mut self, player: PlayerId, why: Leaving) {
        if let Some((to, farewell)) = self.lobby.dismiss(self.clock.now(), player, why) {
            self.post.send(to, &farewell);
        }
    }

    fn say_farewell(&mut self) {
        let players: Vec<PlayerId> = self.lobby.players().collect();
        for player in players {
            self.dismiss(player, Leaving::Done);
        }
    }
}
