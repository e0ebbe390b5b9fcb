//! The server of a live session: one thread that hands datagrams and ticks to the server, each with a time of its
//! own, and writes down what it handed over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::LiveError;
use super::clock::{Clock, Schedule};
use super::counters::{Counters, RecordSender};
use super::socket::Datagram;
use super::transit::{Direction, Outbound};
use crate::game::Body;
use crate::packet::Snapshot;
use crate::pipeline::{Netcode, ServerPipeline, Setup};
use crate::record::Header;
use crate::session::sequence::{self, ServerEnds};
use crate::session::{Packed, Recorder};
use crate::settings::Settings;
use crate::units::{Micros, PlayerId};
use crate::wire::{
    Endpoint, EndpointOptions, Incoming, Key, Leaving, Notice, Request, ServerConnection, ServerEvent, Waiting, What,
};

/// A client that is not heard for this long has left.
const TIMEOUT: Micros = Micros::from_s(10);
/// How long the server waits before it looks whether it is to stop.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// What a server needs to run.
pub(super) struct Serving<'a> {
    pub(super) header: &'a Header,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: Clock,
    pub(super) outbound: Outbound,
    pub(super) inbox: Receiver<Datagram>,
    pub(super) records: RecordSender,
    pub(super) counters: &'a Counters,
    /// How long to play.
    pub(super) length: Micros,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
    pub(super) welcome: Vec<u8>,
}

/// How late each tick was, in µs.
pub(super) type Lateness = Vec<u32>;

/// Waits for all players, runs the session to its end, and says farewell.
pub(super) fn run<G: Netcode>(serving: Serving<'_>, rules: Arc<G::Rules>) -> Result<Lateness, LiveError> {
    let places = serving.header.players.len() as u16;
    let options = EndpointOptions {
        game: G::NAME.to_owned(),
        places,
        welcome: serving.welcome,
        unready_per_host: (places / 2).max(2),
        secret: super::secret(),
    };
    let mut records = serving.records;
    let setup = Setup { rules, settings: Arc::clone(&serving.settings), seed: serving.header.seed };
    // A server of its own keeps what it hears: some client's log may never come.
    let heard = (0..places).map(PlayerId).filter(|_| serving.header.side.is_some());
    let mut server = Server::<G> {
        clock: serving.clock,
        server: G::Server::new(setup, places),
        recorder: Recorder::new(&mut records).hearing(heard),
        lateness: Vec::new(),
        ends: Ends {
            endpoint: Endpoint::new(options),
            connections: (0..places).map(|_| None).collect(),
            is_ready: vec![false; usize::from(places)],
            message_max_bytes: serving.settings.wire.message_max_bytes.unsigned_abs() as usize,
            outbound: serving.outbound,
            counters: serving.counters,
            running: false,
        },
    };
    let is_over = || serving.stop.load(Ordering::Relaxed);
    serving.counters.places.set(places.into());
    while !is_over() && server.ends.ready() < places {
        server.hear(&serving.inbox, LOOK_UP_EVERY)?;
        server.ends.expire(server.clock.now());
    }
    server.ends.running = true;
    server.ends.endpoint.close();
    let begins = server.clock.now();
    serving.counters.began_at.get_or_init(|| begins);
    let mut schedule = Schedule::new(begins, serving.settings.server.tick_hz);
    let has_players = |ends: &Ends<'_, G::Body>| ends.endpoint.players().next().is_some();
    while !is_over() && schedule.due() - begins <= serving.length && has_players(&server.ends) {
        let due = schedule.due();
        if server.clock.now() >= due {
            server.tick(due);
            serving.counters.ticks_left_out.add(schedule.advance(server.clock.now()));
        } else {
            server.hear(&serving.inbox, server.clock.until(due).min(LOOK_UP_EVERY))?;
        }
    }
    server.ends.say_farewell(server.clock.now());
    Ok(server.lateness)
}

struct Server<'a, G: Netcode> {
    clock: Clock,
    server: G::Server,
    recorder: Recorder<'a, RecordSender, G>,
    lateness: Lateness,
    ends: Ends<'a, G::Body>,
}

/// The server's ends of all connections, and where their datagrams go.
struct Ends<'a, B> {
    endpoint: Endpoint,
    /// That of each player, once there is one. Those who left keep theirs: what they would be sent stays in the log.
    connections: Vec<Option<ServerConnection<B>>>,
    /// Which of the players have said that they are ready.
    is_ready: Vec<bool>,
    message_max_bytes: usize,
    outbound: Outbound,
    counters: &'a Counters,
    /// False until all players are there.
    running: bool,
}

impl<G: Netcode> Server<'_, G> {
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
        let at = self.clock.stamp();
        let ends = &mut self.ends;
        match ends.endpoint.handle_datagram(at, from, bytes) {
            Incoming::Reply(reply) => ends.outbound.send(from, &reply),
            Incoming::Joined { player, key, reply, .. } => {
                ends.begin(at, player, key);
                ends.outbound.send(from, &reply);
            }
            Incoming::Connection(player) => match ends.handle_datagram(at, player, bytes) {
                Some(ServerEvent::Packet(heard)) if ends.running => {
                    ends.counters.up_arrived.add(1);
                    sequence::packet_reached::<G>(&mut self.server, at, player, heard, &mut self.recorder);
                }
                Some(ServerEvent::Waiting(said)) => ends.handle_waiting(player, said),
                Some(ServerEvent::Left(_)) => ends.endpoint.free(at, player),
                Some(ServerEvent::Request(request)) => ends.answer(player, request),
                Some(ServerEvent::Packet(_) | ServerEvent::AskedAgain) | None => {}
            },
            Incoming::Ignored(_) => ends.counters.refused.add(1),
        }
    }

    fn tick(&mut self, due: Micros) {
        let at = self.clock.stamp();
        self.lateness.push(u32::try_from((at - due).0).unwrap_or(u32::MAX));
        sequence::tick::<G>(&mut self.server, &mut self.ends, at, &mut self.recorder);
        self.ends.counters.ticks.add(1);
        // Whoever has left gets no more datagrams; the body stays where it is.
        self.ends.expire(self.clock.now());
    }
}

impl<B: Body> Ends<'_, B> {
    fn begin(&mut self, now: Micros, player: PlayerId, key: Key) {
        let mut connection = ServerConnection::new(key, player, self.connections.len() as u16, now);
        connection.limit_messages(self.message_max_bytes);
        self.connections[usize::from(player.0)] = Some(connection);
        self.is_ready[usize::from(player.0)] = false;
    }

    fn handle_datagram(&mut self, now: Micros, player: PlayerId, bytes: &[u8]) -> Option<ServerEvent> {
        let connection = self.connections[usize::from(player.0)].as_mut()?;
        connection.handle_datagram(now, bytes).inspect_err(|_| self.counters.refused.add(1)).ok()
    }

    /// Tells a client who waits how many are ready. Once the session runs, its frames say all there is to say.
    fn handle_waiting(&mut self, player: PlayerId, said: Waiting) {
        self.is_ready[usize::from(player.0)] = said.ready > 0;
        if said.ready > 0 {
            self.endpoint.keep(player);
        }
        let waiting = Waiting { ready: self.ready(), places: self.connections.len() as u16 };
        if let Some(connection) = self.connections[usize::from(player.0)].as_mut().filter(|_| !self.running) {
            connection.send_waiting(waiting);
            self.transmit(player);
        }
    }

    /// Does what a client asks for, and says so. What is said is told to everybody, whoever said it among them.
    fn answer(&mut self, player: PlayerId, Request { number, what }: Request) {
        let said = match what {
            What::ChatOoc { channel, text } => Some(Notice::ChatOoc { sender: player.0 + 1, channel, text }),
            What::ChatIc { style, language, text } => {
                Some(Notice::ChatIc { entity: player.entity(), style, language, text })
            }
            // The games that play live here have nothing to ask for.
            What::Game { .. } => None,
        };
        let answer = Notice::RequestAck { request: number, answer: Vec::new() };
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            let answer = (index == usize::from(player.0)).then_some(&answer);
            for notice in said.iter().chain(answer) {
                // Of a client who does not listen for so long, more than words are lost.
                let is_taken = connection.tell(notice.clone()).is_ok();
                self.counters.notices_lost.add(u64::from(!is_taken));
            }
        }
    }

    /// How many players have a place and are ready.
    fn ready(&self) -> u16 {
        let ready = self.endpoint.players().filter(|player| self.is_ready[usize::from(player.0)]).count() as u16;
        self.counters.ready.set(ready.into());
        ready
    }

    /// Frees the places of those who have not been heard for long.
    fn expire(&mut self, now: Micros) {
        let is_silent = |player: &PlayerId| {
            let connection = self.connections[usize::from(player.0)].as_ref();
            connection.is_some_and(|connection| connection.silent_for(now) > TIMEOUT)
        };
        let silent: Vec<PlayerId> = self.endpoint.players().filter(is_silent).collect();
        for player in silent {
            self.endpoint.free(now, player);
        }
    }

    fn say_farewell(&mut self, now: Micros) {
        let players: Vec<PlayerId> = self.endpoint.players().collect();
        for player in players {
            if let Some(connection) = &mut self.connections[usize::from(player.0)] {
                connection.send_disconnect(Leaving::Done);
            }
            self.transmit(player);
            self.endpoint.free(now, player);
        }
    }

    /// Sends what has no time of its own.
    fn transmit(&mut self, player: PlayerId) {
        let Some(connection) = &mut self.connections[usize::from(player.0)] else { return };
        let address = self.endpoint.address(player);
        while let Some(datagram) = connection.poll_transmit() {
            if let Some(to) = address {
                self.outbound.send(to, &datagram);
            }
        }
    }
}

impl<B: Body> ServerEnds<B> for Ends<'_, B> {
    fn pack(&mut self, _at: Micros, player: PlayerId, snapshot: &Snapshot<B>) -> Option<Packed> {
        let connection = self.connections[usize::from(player.0)].as_mut()?;
        // A snapshot that cannot be sent is one of no bytes that never arrives.
        let Ok(sent) = connection.send_snapshot(snapshot) else { return Some(Packed::default()) };
        let counters = self.counters;
        if let Some(is_right) = sent.saw_avatar_right {
            counters.perceived.add(1);
            counters.perceived_right.add(u64::from(is_right));
        }
        counters.snapshots.add(1);
        counters.snapshots_whole.add(u64::from(sent.is_whole));
        counters.snapshots_in_fragments.add(u64::from(sent.datagrams > 1));
        Some(Packed::of(&sent))
    }

    fn send(&mut self, at: Micros, player: PlayerId, _snapshot: Snapshot<B>) {
        let Some(connection) = &mut self.connections[usize::from(player.0)] else { return };
        let address = self.endpoint.address(player);
        while let Some(datagram) = connection.poll_transmit() {
            if let Some(to) = address {
                self.counters.down_datagrams.add(1);
                self.counters.down_bytes.add(datagram.len() as u64);
                self.outbound.send_on(usize::from(player.0), Direction::Down, at, to, datagram);
            }
        }
    }
}
