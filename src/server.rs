//! The server pipeline: runs usercmds as they arrive, moves the world on, judges shots, and tells each client what
//! it is to know. A state machine without I/O or clock: packets and times come in as arguments, snapshots and events
//! go out through `poll_*`.
//!
//! The order of a tick is that of Bernier's server loop: commands in the order of their arrival, then the world, then
//! snapshots to those who are due.

mod command_queue;
mod connection;
mod lag_compensation;
mod rollback;
mod update;

use std::collections::VecDeque;
use std::sync::Arc;

pub use lag_compensation::{Limit, Rewind};
pub use rollback::{Rollback, RollbackError};

use crate::game::{Effect, Game, Verdict};
use crate::hash;
use crate::history::{Frame, Limits};
use crate::packet::{ClientPacket, Snapshot};
use crate::record::Execution;
use crate::settings::Settings;
use crate::units::{CommandSeq, Micros, PlayerId, Seed, Tick};
use connection::Connection;

/// The server of one session.
pub struct Server<G: Game> {
    rules: Arc<G::Rules>,
    settings: Arc<Settings>,
    seed: Seed,
    limits: Limits,
    world: G::World,
    tick: Tick,
    now: Micros,
    connections: Vec<Connection<G>>,
    /// Packets since the last tick, in the order of arrival.
    inbox: Vec<(PlayerId, Micros, ClientPacket)>,
    snapshots: VecDeque<(PlayerId, Snapshot<G::Body>)>,
    events: VecDeque<Event<G>>,
    /// Words of the world, kept to save an allocation a tick.
    words: Vec<u32>,
    rollback: Option<Rollback<G>>,
}

/// What happened during a tick, in the order in which it happened.
#[derive(Debug)]
pub enum Event<G: Game> {
    /// A usercmd was dealt with.
    Executed {
        /// Whose.
        player: PlayerId,
        /// Which.
        command: CommandSeq,
        /// How.
        how: Execution,
    },
    /// A shot was judged.
    Judged(Judged<G>),
    /// A projectile reached something.
    Impact {
        /// Who launched it.
        shooter: PlayerId,
        /// With which usercmd.
        command: CommandSeq,
        /// From which weapon.
        weapon: &'static str,
        /// What became of it.
        verdict: Verdict,
    },
}

/// One shot and what the server made of it.
#[derive(Debug)]
pub struct Judged<G: Game> {
    /// Who fired.
    pub shooter: PlayerId,
    /// With which usercmd.
    pub command: CommandSeq,
    /// Which of the shots of that usercmd, from 0.
    pub index: u8,
    /// The shot.
    pub fire: G::Fire,
    /// What the server decided.
    pub verdict: Verdict,
    /// Against what.
    pub rewind: Rewind<G::Body>,
}

/// The outcome of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// Which tick it was.
    pub tick: Tick,
    /// The hash of the world after it.
    pub hash: u64,
}

impl<G: Game> Server<G> {
    /// A server whose `players` clients are connected, before its first tick.
    pub fn new(rules: Arc<G::Rules>, settings: Arc<Settings>, seed: Seed, players: u16) -> Server<G> {
        let world = G::spawn(&rules, seed, players);
        let limits = Limits { extrapolate_max: None, ..Limits::of(&settings) };
        Server {
            connections: (0..players).map(|_| Connection::new(&settings)).collect(),
            rules,
            settings,
            seed,
            limits,
            world,
            tick: Tick(0),
            now: Micros::ZERO,
            inbox: Vec::new(),
            snapshots: VecDeque::new(),
            events: VecDeque::new(),
            words: Vec::new(),
            rollback: None,
        }
    }

    /// Checks at every `every`-th tick that the world, restored from its saved words and run again, comes out the same.
    pub fn check_rollback(&mut self, every: u32) {
        self.rollback = Some(Rollback::new(every));
    }

    /// Puts another world in the place of the one that the game spawned, before the first tick.
    pub fn begin_from(&mut self, world: G::World) {
        self.world = world;
    }

    /// What the rollback check has done so far; `None` when it was not asked for.
    pub fn rollback(&self) -> Option<&Rollback<G>> {
        self.rollback.as_ref()
    }

    /// Takes a packet that arrived at `now`; it runs at the next tick. Packets of players who are not connected are dropped.
    pub fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket) {
        let Some(connection) = self.connections.get_mut(usize::from(player.0)) else { return };
        connection.measure_latency(now, packet.ack);
        self.inbox.push((player, now, packet));
    }

    /// Runs one tick at `now`. The time since the tick before it is what the world moves on by.
    pub fn tick(&mut self, now: Micros) -> Ticked {
        let dt = if self.tick == Tick(0) { Micros(1_000_000 / self.settings.server.tick_hz) } else { now - self.now };
        self.tick = self.tick.next();
        self.now = now;
        if let Some(rollback) = &mut self.rollback {
            rollback.tick_begins::<G>(&self.world);
        }
        let credit = Micros::from_ms(self.settings.server.command_credit_ms);
        for connection in &mut self.connections {
            connection.grant_time(dt, credit);
        }
        self.run_inbox();
        self.run_world(dt);
        self.words.clear();
        G::save(&self.world, &mut self.words);
        let hash = hash::hash_words(&self.words);
        if let Some(rollback) = &mut self.rollback {
            rollback.tick_ends(&self.rules, self.seed, dt, hash);
        }
        self.send_updates();
        Ticked { tick: self.tick, hash }
    }

    /// The next snapshot to send.
    pub fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<G::Body>)> {
        self.snapshots.pop_front()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event<G>> {
        self.events.pop_front()
    }

    /// The world after the last tick.
    pub fn world(&self) -> &G::World {
        &self.world
    }

    /// The world after the last tick as a frame: what a snapshot of it says.
    fn frame(&self) -> Arc<Frame<G::Body>> {
        update::frame_of::<G>(&self.world, self.tick, self.now)
    }

    /// Keeps an effect for the next snapshot of everybody who does not predict it.
    fn tell(&mut self, effect: Effect) {
        update::tell(&mut self.connections, &self.settings, effect);
    }
}
