//! Delay-based netcode. Every usercmd takes effect a fixed time after it was made, for all players alike. So clients
//! predict nothing, and servers rewind no targets. Players notice the delay.
//!
//! It uses only [`Game`], so it works for any game.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hitreg::game::{
    Effect, Game, GameInput, PlacedBody, PlacementKind, PlayerCommand, ShotVerdict, Sink, Touch, WorldSink,
};
use hitreg::hash::hash_words;
use hitreg::history::Frame;
use hitreg::packet::{ClientPacket, Snapshot};
use hitreg::pipeline::{
    ClientFrameOutput, ClientPipeline, JudgedShot, ReconcileOutcome, Rewind, RewindLimit, ServerPipeline, Setup,
    TickEvent, TickOutcome,
};
use hitreg::record::Execution;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};

/// The time from a usercmd to its effect, by the server's clock as the client estimates it.
const DELAY: Micros = Micros::from_ms(150);

/// Runs every usercmd after its delay, and sends the whole state to all clients at each tick.
pub(crate) struct DelayServer<G: Game> {
    setup: Setup<G>,
    world: G::World,
    tick: Tick,
    now: Micros,
    seats: Vec<DelayPlayer>,
    snapshots: VecDeque<(PlayerId, Snapshot<G::Body>)>,
    events: VecDeque<TickEvent<G>>,
    given_off: EmittedEffects<G::Fire>,
}

#[derive(Default)]
struct DelayPlayer {
    last: CommandSeq,
    waiting: BTreeMap<CommandSeq, Usercmd>,
}

struct EmittedEffects<F> {
    effects: Vec<Effect>,
    fires: Vec<F>,
    impacts: Vec<(PlayerId, CommandSeq, &'static str, ShotVerdict)>,
}

impl<G: Game> ServerPipeline<G> for DelayServer<G> {
    fn new(setup: Setup<G>, players: u16) -> DelayServer<G> {
        DelayServer {
            world: G::spawn(&setup.rules, setup.seed, players),
            setup,
            tick: Tick(0),
            now: Micros::ZERO,
            seats: (0..players).map(|_| DelayPlayer::default()).collect(),
            snapshots: VecDeque::new(),
            events: VecDeque::new(),
            given_off: EmittedEffects { effects: Vec::new(), fires: Vec::new(), impacts: Vec::new() },
        }
    }

    fn begin_from(&mut self, world: G::World) {
        self.world = world;
    }

    fn handle_packet(&mut self, _: Micros, player: PlayerId, packet: ClientPacket) {
        let Some(seat) = self.seats.get_mut(usize::from(player.0)) else { return };
        let news = packet.commands.into_iter().filter(|command| command.seq > seat.last);
        seat.waiting.extend(news.map(|command| (command.seq, command)));
    }

    fn tick(&mut self, now: Micros) -> TickOutcome {
        let usual = self.setup.settings.server.tick_hz.interval();
        let dt = if self.tick == Tick(0) { usual } else { now - self.now };
        (self.tick, self.now) = (self.tick.next(), now);
        for player in 0..self.seats.len() as u16 {
            self.run_due(PlayerId(player));
        }
        G::step_world(&self.setup.rules, &mut self.world, dt, &mut self.given_off);
        for (shooter, command, weapon, verdict) in self.given_off.impacts.drain(..) {
            self.events.push_back(TickEvent::Impact { shooter, command, weapon, verdict });
        }
        self.send_snapshots();
        let mut words = Vec::new();
        G::save(&self.world, &mut words);
        TickOutcome { tick: self.tick, hash: hash_words(&words) }
    }

    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<G::Body>)> {
        self.snapshots.pop_front()
    }

    /// The server has no rate limit.
    fn handle_sent(&mut self, _player: PlayerId, _frame: Arc<Frame<G::Body>>, _bytes: Option<u16>) {}

    fn poll_event(&mut self) -> Option<TickEvent<G>> {
        self.events.pop_front()
    }

    fn world(&self) -> &G::World {
        &self.world
    }
}

impl<G: Game> DelayServer<G> {
    fn run_due(&mut self, player: PlayerId) {
        loop {
            let seat = &mut self.seats[usize::from(player.0)];
            let Some(entry) = seat.waiting.first_entry().filter(|e| e.get().server_time + DELAY <= self.now) else {
                return;
            };
            let command = entry.remove();
            for lost in seat.last.0 + 1..command.seq.0 {
                let how = Execution::Missing;
                self.events.push_back(TickEvent::Executed { player, command: CommandSeq(lost), how });
            }
            seat.last = command.seq;
            self.events.push_back(TickEvent::Executed { player, command: command.seq, how: Execution::Run });
            self.run(player, &command);
        }
    }

    fn run(&mut self, player: PlayerId, command: &Usercmd) {
        let (rules, own) = (&self.setup.rules, G::Input::read_usercmd(command));
        let run = PlayerCommand { rules: &**rules, seed: self.setup.seed, player, command: &own };
        G::run(&run, &mut self.world, &mut self.given_off);
        for (index, fire) in std::mem::take(&mut self.given_off.fires).into_iter().enumerate() {
            let others = G::entities(&self.world).iter().filter(|(id, _)| *id != player.entity());
            let targets: Vec<(EntityId, G::Body)> = others.cloned().collect();
            let verdict = ShotVerdict::of::<G>(rules, &fire, &targets);
            G::apply(rules, &mut self.world, player, &own, &fire, &verdict, &mut self.given_off);
            let rewind = Rewind { by: Micros::ZERO, limit: RewindLimit::Off, targets, left_in_present: Vec::new() };
            let (shooter, command, index) = (player, command.seq, index as u8);
            self.events.push_back(TickEvent::Judged(JudgedShot {
                shooter,
                command,
                index,
                fire,
                verdict,
                rewind,
                rejudged: Vec::new(),
            }));
        }
    }

    fn send_snapshots(&mut self) {
        let effects = std::mem::take(&mut self.given_off.effects);
        let entities = G::entities(&self.world).to_vec();
        let frame = Arc::new(Frame { tick: self.tick, server_time: self.now, entities });
        for (player, seat) in self.seats.iter().enumerate() {
            let snapshot = Snapshot {
                effects: effects.clone(),
                ..Snapshot::new(SnapshotSeq(self.tick.0), seat.last, Arc::clone(&frame))
            };
            self.snapshots.push_back((PlayerId(player as u16), snapshot));
        }
    }
}

impl<F> Sink<F> for EmittedEffects<F> {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn fire(&mut self, fire: F) {
        self.fires.push(fire);
    }
    fn touch(&mut self, _: Touch) {}
}

impl<F> WorldSink for EmittedEffects<F> {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, weapon: &'static str, verdict: ShotVerdict) {
        self.impacts.push((shooter, command, weapon, verdict));
    }
}

/// Shows the newest snapshot, including the client's own body.
pub(crate) struct DelayClient<G: Game> {
    setup: Setup<G>,
    player: PlayerId,
    newest: Option<(SnapshotSeq, Arc<Frame<G::Body>>)>,
    /// Server time minus local time.
    offset: Micros,
    last: CommandSeq,
    recent: VecDeque<(Micros, Usercmd)>,
    packets: u32,
    drawn: Vec<(EntityId, PlacedBody<G::Body>)>,
}

/// The number of usercmds that may wait for an ack.
const UNACKED_MAX: usize = 512;

impl<G: Game> ClientPipeline<G> for DelayClient<G> {
    fn new(setup: Setup<G>, player: PlayerId) -> DelayClient<G> {
        DelayClient {
            setup,
            player,
            newest: None,
            offset: Micros::ZERO,
            last: CommandSeq(0),
            recent: VecDeque::new(),
            packets: 0,
            drawn: Vec::new(),
        }
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.last = CommandSeq(first.0.saturating_sub(1));
    }

    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<ReconcileOutcome> {
        if self.newest.as_ref().is_some_and(|(seq, _)| snapshot.seq <= *seq) {
            return None;
        }
        self.newest = Some((snapshot.seq, Arc::clone(&snapshot.frame)));
        self.offset = snapshot.frame.server_time - now;
        let acked = self.recent.iter().find(|(_, command)| command.seq == snapshot.ack);
        Some(ReconcileOutcome { comparison: None, correction: None, round_trip: acked.map(|(sent, _)| now - *sent) })
    }

    fn draw_others(&mut self, _: Micros) {
        self.drawn.clear();
        let Some((_, frame)) = &self.newest else { return };
        let others = frame.entities.iter().filter(|(id, _)| *id != self.player.entity());
        self.drawn.extend(others.map(|(id, body)| (*id, PlacedBody::new(body.clone(), PlacementKind::Held))));
    }

    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<G> {
        self.last = self.last.next();
        let server_time = if self.newest.is_some() { now + self.offset } else { Micros::ZERO };
        let command = Usercmd { seq: self.last, lerp_msec: 0, server_time, input: input.clone() };
        if self.recent.len() == UNACKED_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((now, command.clone()));
        self.packets += 1;
        let repeats = self.setup.settings.client.redundancy as usize;
        let skip = self.recent.len().saturating_sub(repeats);
        let packet = ClientPacket {
            number: self.packets,
            ack: self.newest.as_ref().map_or(SnapshotSeq(0), |(seq, _)| *seq),
            commands: self.recent.iter().skip(skip).map(|(_, command)| command.clone()).collect(),
        };
        let predicted = self.predicted().cloned();
        let drawn_origin = predicted.as_ref().map(hitreg::game::Body::position_f32);
        ClientFrameOutput {
            command,
            packet,
            predicted,
            own: None,
            drawn_origin,
            ran: 0,
            effects: Vec::new(),
            shots: Vec::new(),
        }
    }

    /// The client repeats the same number of usercmds over any link.
    fn handle_sent(&mut self, _packet: &ClientPacket, _bytes: u16) {}

    fn drawn(&self) -> &[(EntityId, PlacedBody<G::Body>)] {
        &self.drawn
    }

    fn drawn_at(&self) -> Micros {
        self.newest.as_ref().map_or(Micros::ZERO, |(_, frame)| frame.server_time)
    }

    fn predicted(&self) -> Option<&G::Body> {
        self.newest.as_ref()?.1.get(self.player.entity())
    }
}
