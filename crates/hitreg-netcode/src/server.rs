//! The server pipeline. It runs usercmds as they arrive, advances the world, judges shots, and makes each client's
//! snapshots. It is a state machine without I/O or clock: packets and times come in as arguments, snapshots and events
//! go out through `poll_*`.
//!
//! A tick follows the order of Bernier's server loop: usercmds in order of arrival, then the world, then the snapshots
//! that are due.

mod command_queue;
mod connection;
mod lag_compensation;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::game::{DiscardingSink, Game, PlayerCommand, ShotVerdict};
use crate::history::Frame;
use crate::packet::{ClientPacket, Snapshot};
use crate::pipeline::{RejudgeSettings, RollbackError, Rollbacks, ServerPipeline, Setup, TickEvent, TickOutcome};
use crate::state::{State, StateError, StateReader, StateWriter, state};
use command_queue::{LOST_TIME_MAX, ServerSink};
use connection::{PacketArrival, PlayerConnection, credit_max};
use hitreg_log::hash;
use hitreg_log::record::Presence;
use hitreg_log::units::{Micros, PlayerId, Seed, Tick};
use hitreg_log::usercmd::Usercmd;

/// The server of one session.
pub struct Server<G: Game> {
    setup: Setup<G>,
    world: G::World,
    tick: Tick,
    now: Micros,
    connections: Vec<PlayerConnection<G>>,
    /// Packets since the last tick, in order of arrival.
    inbox: Vec<(PlayerId, PacketArrival, ClientPacket)>,
    snapshots: VecDeque<(PlayerId, Snapshot<G::Body>)>,
    events: VecDeque<TickEvent<G>>,
    /// A buffer for the world's words, kept to save one allocation per tick.
    words: Vec<u32>,
    rollback: Option<Rollback<G>>,
    /// Other settings under which each shot is also judged. The results are only recorded.
    rejudge: RejudgeSettings,
}

hitreg_log::partial_debug!([G: Game] Server<G> { tick, now });

// The rollback check is diagnostic only; it is not part of the simulation state.
state!(Server<G: Game> { tick, now } but {
    setup,
    world,
    connections,
    inbox,
    snapshots,
    events,
    words,
    rollback,
    rejudge,
});

impl<G: Game> ServerPipeline<G> for Server<G> {
    fn new(setup: Setup<G>, players: u16) -> Server<G> {
        let connection = |player| PlayerConnection::new(setup.settings.of_player(PlayerId(player)));
        Server {
            connections: (0..players).map(connection).collect(),
            world: G::spawn(&setup.rules, setup.seed, players),
            setup,
            tick: Tick(0),
            now: Micros::ZERO,
            inbox: Vec::new(),
            snapshots: VecDeque::new(),
            events: VecDeque::new(),
            words: Vec::new(),
            rollback: None,
            rejudge: RejudgeSettings::default(),
        }
    }

    fn rejudge_under(&mut self, settings: RejudgeSettings) -> bool {
        self.rejudge = settings;
        true
    }

    fn check_rollback(&mut self, every: u32) -> bool {
        let mut words = Vec::new();
        G::save(&self.world, &mut words);
        let is_offered = !matches!(G::load(&self.setup.rules, &words), Ok(None));
        let every = every.max(1);
        let rollback = || Rollback { every, ticks: 0, saved: None, steps: Vec::new(), so_far: Rollbacks::default() };
        self.rollback = is_offered.then(rollback);
        is_offered
    }

    fn rollbacks(&self) -> Option<Rollbacks> {
        self.rollback.as_ref().map(|rollback| rollback.so_far.clone())
    }

    fn begin_from(&mut self, world: G::World) {
        self.world = world;
    }

    /// Queues the packet for the next tick.
    fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket) {
        let connection = self.connections.get_mut(usize::from(player.0));
        let Some(connection) = connection.filter(|connection| !connection.has_left) else { return };
        if !std::mem::replace(&mut connection.has_joined, true) {
            self.events.push_back(TickEvent::Presence { player, change: Presence::Joined });
        }
        connection.measure_latency(now, packet.ack);
        connection.note_packet(now, packet.number);
        let arrived = PacketArrival { at: now, newest: connection.acked_sent, round_trip: connection.round_trip };
        self.inbox.push((player, arrived, packet));
    }

    fn handle_left(&mut self, player: PlayerId) {
        let Some(connection) = self.connections.get_mut(usize::from(player.0)) else { return };
        if !std::mem::replace(&mut connection.has_left, true) {
            connection.effects.clear();
            self.events.push_back(TickEvent::Presence { player, change: Presence::Left });
        }
    }

    fn tick(&mut self, now: Micros) -> TickOutcome {
        let dt = if self.tick == Tick(0) { self.setup.settings.server.tick_hz.interval() } else { now - self.now };
        self.tick = self.tick.next();
        let before = std::mem::replace(&mut self.now, now);
        if let Some(rollback) = &mut self.rollback {
            rollback.tick_begins(&self.world);
        }
        for connection in &mut self.connections {
            connection.credit = connection.credit.min(credit_max(&connection.settings)) + dt;
            connection.lost_time = (connection.lost_time + dt).min(LOST_TIME_MAX);
        }
        self.run_inbox(before);
        let mut sink = ServerSink { connections: &mut self.connections, events: &mut self.events, fires: Vec::new() };
        G::step_world(&self.setup.rules, &mut self.world, dt, &mut sink);
        self.words.clear();
        G::save(&self.world, &mut self.words);
        let hash = hash::hash_words(&self.words);
        if let Some(rollback) = &mut self.rollback {
            rollback.tick_ends(&self.setup.rules, self.setup.seed, dt, hash);
        }
        self.send_updates();
        TickOutcome { tick: self.tick, hash }
    }

    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<G::Body>)> {
        self.snapshots.pop_front()
    }

    fn handle_sent(&mut self, player: PlayerId, frame: Arc<Frame<G::Body>>, bytes: Option<u16>) {
        // A client whose snapshots have no room for all has frames of its own, so old ones would take much memory.
        let RejudgeSettings { reported, added } = &self.rejudge;
        let rewinds = [&self.setup.settings].into_iter().chain(reported).chain(added);
        let longest_ms = rewinds.map(|settings| settings.lag_compensation.max_unlag_ms).max().unwrap_or_default();
        let Some(connection) = self.connections.get_mut(usize::from(player.0)) else { return };
        connection.history.push(frame);
        connection.history.forget_before(self.now - Micros::from_ms(longest_ms));
        if let Some(bytes) = bytes {
            let rate = connection.settings.server.rate_bytes_per_s;
            connection.rate_free_at = self.now + Micros(i64::from(bytes) * 1_000_000 / rate);
        }
    }

    fn poll_event(&mut self) -> Option<TickEvent<G>> {
        self.events.pop_front()
    }

    fn world(&self) -> &G::World {
        &self.world
    }

    fn save(&self, to: &mut StateWriter) -> bool {
        let mut words = Vec::new();
        G::save(&self.world, &mut words);
        let is_offered = matches!(G::load(&self.setup.rules, &words), Ok(Some(_)));
        if !is_offered || !self.inbox.is_empty() || !self.snapshots.is_empty() || !self.events.is_empty() {
            return false;
        }
        State::save(self, to);
        to.words(&words);
        self.connections.iter().for_each(|connection| connection.save(to));
        true
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        State::restore(self, from)?;
        let world = G::load(&self.setup.rules, &from.words()?)?.ok_or(StateError::Unknown { what: "a world" })?;
        let players = self.connections.len();
        let everyone = (0..players).map(|player| PlayerId(player as u16).entity());
        if !G::entities(&world).iter().map(|(id, _)| *id).take(players).eq(everyone) {
            return Err(StateError::Invalid("World"));
        }
        self.world = world;
        self.connections.iter_mut().try_for_each(|connection| connection.restore(from))
    }
}

/// The rollback check: at regular intervals, the world is restored from its saved words and the ticks run again. State
/// that the save omits then shows as a different hash.
struct Rollback<G: Game> {
    every: u32,
    ticks: u32,
    /// The world's words before the recorded ticks.
    saved: Option<Vec<u32>>,
    /// The inputs of the recorded ticks.
    steps: Vec<RollbackStep<G>>,
    so_far: Rollbacks,
}

enum RollbackStep<G: Game> {
    Command(PlayerId, Usercmd<G::Input>),
    Shot(G::Fire, ShotVerdict),
    World(Micros),
}

impl<G: Game> Rollback<G> {
    fn tick_begins(&mut self, world: &G::World) {
        if self.saved.is_none() {
            let mut words = Vec::new();
            G::save(world, &mut words);
            self.saved = Some(words);
        }
    }

    fn tick_ends(&mut self, rules: &G::Rules, seed: Seed, dt: Micros, hash: u64) {
        self.steps.push(RollbackStep::World(dt));
        self.ticks += 1;
        if !self.ticks.is_multiple_of(self.every) {
            return;
        }
        let Some(saved) = self.saved.take() else { return };
        let steps = std::mem::take(&mut self.steps);
        let tick = Tick(self.ticks);
        self.so_far.checked += 1;
        let error = match G::load(rules, &saved) {
            Ok(Some(world)) => {
                let again = run_again::<G>(rules, seed, world, &steps);
                (again != hash).then_some(RollbackError::Differs { tick, from: self.every, first: hash, again })
            }
            Ok(None) => Some(RollbackError::Load { tick, why: "it is not offered any more".to_owned() }),
            Err(why) => Some(RollbackError::Load { tick, why: why.to_string() }),
        };
        self.so_far.failed = self.so_far.failed.take().or(error);
    }
}

fn run_again<G: Game>(rules: &G::Rules, seed: Seed, mut world: G::World, steps: &[RollbackStep<G>]) -> u64 {
    let mut last: Option<(PlayerId, Usercmd<G::Input>)> = None;
    for step in steps {
        match step {
            RollbackStep::Command(player, command) => {
                let run = PlayerCommand { rules, seed, player: *player, command };
                G::run(&run, &mut world, &mut DiscardingSink);
                last = Some((*player, command.clone()));
            }
            RollbackStep::Shot(fire, verdict) => {
                if let Some((player, command)) = &last {
                    G::apply(rules, &mut world, *player, command, fire, verdict, &mut DiscardingSink);
                }
            }
            RollbackStep::World(dt) => G::step_world(rules, &mut world, *dt, &mut DiscardingSink),
        }
    }
    let mut words = Vec::new();
    G::save(&world, &mut words);
    hash::hash_words(&words)
}
