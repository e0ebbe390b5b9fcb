//! A whole session as one machine in virtual time: server, clients and the links between them. Whoever drives it hands
//! in the times of the ticks, the players' input and the links; the very same machine records a synthetic session and
//! replays any recorded one.
//!
//! At equal times packets reach the server before it ticks, and clients before their frames; among equals the lower
//! player goes first. That order is part of the format: a replay depends on it.

mod observe;
mod queue;
mod recorder;
pub mod scenario;
mod synth;

pub use observe::{Observer, Shown};
pub use recorder::{RecordSink, Recorder};
pub use synth::{SynthError, record_synthetic};

use crate::game::{Game, Placed};
use crate::link::Link;
use crate::pipeline::{ClientPipeline, Event, Netcode, ServerPipeline, Setup};
use crate::record::ArrivalRecord;
use crate::units::{EntityId, Micros, PlayerId};
use crate::usercmd::Input;
use queue::{Queue, What};

/// Where usercmds come from: bots that look at the screen, or a recording.
pub trait Hands<G: Game> {
    /// When the player's next client frame is; `None` when there are no more.
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros>;

    /// What the player does in that frame. Called once for each frame, in the order of time.
    fn input(&mut self, at: Micros, screen: &Screen<'_, G>) -> Input;
}

/// What a player sees.
#[derive(Debug)]
pub struct Screen<'a, G: Game> {
    /// Whose screen.
    pub player: PlayerId,
    /// The own body as far as it is predicted; `None` before the first snapshot.
    pub own: Option<&'a G::Body>,
    /// The others as drawn, in ascending order of entity.
    pub others: &'a [(EntityId, Placed<G::Body>)],
}

/// The two directions of one player's connection.
#[derive(Clone, Debug)]
pub struct Links<L> {
    /// From the client to the server.
    pub up: L,
    /// From the server to the client.
    pub down: L,
}

/// Server, clients and links.
pub struct Machine<G: Netcode, L> {
    server: G::Server,
    clients: Vec<G::Client>,
    links: Vec<Links<L>>,
    queue: Queue<G>,
}

impl<G: Netcode, L: Link> Machine<G, L> {
    /// A machine before its first tick, with a player for each pair of links.
    pub fn new(setup: &Setup<G>, links: Vec<Links<L>>) -> Machine<G, L> {
        let players = links.len() as u16;
        Machine {
            server: G::Server::new(setup.clone(), players),
            clients: (0..players).map(|p| G::Client::new(setup.clone(), PlayerId(p))).collect(),
            links,
            queue: Queue::default(),
        }
    }

    /// The server.
    pub fn server(&mut self) -> &mut G::Server {
        &mut self.server
    }

    /// One player's client; `None` when nobody has that number.
    pub fn client(&mut self, player: PlayerId) -> Option<&mut G::Client> {
        self.clients.get_mut(usize::from(player.0))
    }

    /// Runs from the first tick to the last, and tells the observer everything on the way. Client frames and arrivals
    /// after the last tick do not happen.
    pub fn run(
        &mut self,
        ticks: impl IntoIterator<Item = Micros>,
        hands: &mut impl Hands<G>,
        observer: &mut impl Observer<G>,
    ) {
        let mut ticks = ticks.into_iter();
        match ticks.next() {
            Some(first) => self.queue.push_tick(first),
            None => return,
        }
        for player in 0..self.clients.len() {
            self.queue_frame(PlayerId(player as u16), hands);
        }
        while let Some((at, what)) = self.queue.pop() {
            match what {
                What::Reaches(player, packet) => {
                    observer.packet_reached(player, ArrivalRecord { number: packet.number, at });
                    self.server.handle_packet(at, player, packet);
                }
                What::Tick => {
                    self.tick(at, observer);
                    match ticks.next() {
                        Some(next) => self.queue.push_tick(next),
                        None => return,
                    }
                }
                What::Arrives(player, snapshot) => {
                    let reconciled = self.clients[usize::from(player.0)].handle_snapshot(at, &snapshot);
                    observer.snapshot_received(player, at, &snapshot, reconciled.as_ref());
                }
                What::Frame(player) => {
                    self.frame(player, at, hands, observer);
                    self.queue_frame(player, hands);
                }
            }
        }
    }

    fn tick(&mut self, at: Micros, observer: &mut impl Observer<G>) {
        let ticked = self.server.tick(at);
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Executed { player, command, how } => observer.executed(player, command, ticked.tick, how),
                Event::Presence { player, change } => observer.presence(player, at, ticked.tick, change),
                Event::Judged(judged) => observer.judged(at, ticked.tick, &judged),
                Event::Impact { shooter, command, weapon, verdict } => {
                    observer.impact(at, ticked.tick, shooter, command, weapon, &verdict);
                }
            }
        }
        observer.ticked(at, ticked, self.server.world());
        while let Some((player, snapshot)) = self.server.poll_snapshot() {
            observer.snapshot_sent(player, at, &snapshot);
            let fate = self.links[usize::from(player.0)].down.send(at, snapshot.bytes());
            for arrival in fate.arrivals() {
                self.queue.push_snapshot(arrival, player, snapshot.clone());
            }
        }
    }

    fn frame(&mut self, player: PlayerId, at: Micros, hands: &mut impl Hands<G>, observer: &mut impl Observer<G>) {
        let index = usize::from(player.0);
        let client = &mut self.clients[index];
        client.look(at);
        let screen = Screen { player, own: client.predicted(), others: client.drawn() };
        let input = hands.input(at, &screen);
        let commanded = client.command(at, &input);
        observer.frame(player, at, &commanded, &Shown { drawn: client.drawn(), drawn_at: client.drawn_at() });
        if let Some(record) = commanded.packet.record(at) {
            observer.packet_sent(player, record);
        }
        let fate = self.links[index].up.send(at, commanded.packet.bytes());
        let mut arrivals = fate.arrivals();
        if let Some(second) = fate.second {
            self.queue.push_packet(second, player, commanded.packet.clone());
        }
        if let Some(first) = arrivals.next() {
            self.queue.push_packet(first, player, commanded.packet);
        }
    }

    fn queue_frame(&mut self, player: PlayerId, hands: &mut impl Hands<G>) {
        if let Some(at) = hands.next_frame(player) {
            self.queue.push_frame(at, player);
        }
    }
}
