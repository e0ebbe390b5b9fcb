//! The client pipeline. It makes usercmds, predicts its own body, reconciles on acks, and draws the others. Like the
//! server, it is a state machine without I/O or clock.
//!
//! Snapshots come in as they arrive. In each client frame, the client first draws the others and then makes a usercmd,
//! so the drawn view is what the player saw.

mod cause;
mod draw;
mod pacing;
mod predict;

use std::borrow::Cow;
use std::sync::Arc;

use crate::game::{Body, Game, GameInput, PlacedBody, PlacementKind, ShotVerdict};
use crate::history::{Frame, History, PlacementLimits};
use crate::packet::{ClientPacket, NO_CLOCK, Snapshot};
use crate::pipeline::{ClientFrameOutput, ClientPipeline, PredictedShot, ReconcileOutcome, Setup};
use crate::settings::InterpolationMode;
use crate::state::{State, StateError, StateReader, StateValue, StateWriter, state};
use draw::{CategoryDrawer, DrawContext, Drawn, LagChase, OthersDrawer, Smoothing};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::{Input, Usercmd};
use pacing::{InputTime, PacketRedundancy, ServerClock};
use predict::{PredictedFire, PredictedOutput, PredictionContext, Reconciled, Window};

/// The client of one player.
pub struct Client<G: Game> {
    setup: Setup<G>,
    player: PlayerId,
    limits: PlacementLimits,
    clock: ServerClock,
    input_time: InputTime,
    history: History<G::Body>,
    newest: SnapshotSeq,
    window: Window<G>,
    smoothing: Smoothing,
    categories: CategoryDrawer<G>,
    chase: LagChase<G::Body>,
    /// The newest usercmd that the newest snapshot acks.
    acked: CommandSeq,
    /// The entities as last drawn, in ascending order of entity.
    drawn: Drawn<G::Body>,
    drawn_at: Micros,
    /// Whether drawing was skipped because the driver does not need the screen.
    is_undrawn: bool,
    /// Whether there is an entity with which predictions collide where it is drawn.
    has_drawn_solids: bool,
    redundancy: PacketRedundancy,
    packets: u32,
}

hitreg_log::partial_debug!([G: Game] Client<G> { player });

state!(Client<G: Game> {
    clock,
    input_time,
    history,
    newest,
    window,
    smoothing,
    categories,
    chase,
    acked,
    drawn_at,
    redundancy,
    packets,
} but { setup, player, limits, drawn, is_undrawn, has_drawn_solids });

impl<G: Game> ClientPipeline<G> for Client<G> {
    fn new(setup: Setup<G>, player: PlayerId) -> Client<G> {
        let settings = &setup.settings;
        Client {
            clock: ServerClock::new(settings.client.clock),
            input_time: InputTime::new(settings),
            limits: PlacementLimits::of(settings),
            window: Window::new(settings),
            smoothing: Smoothing::new(settings.prediction.smooth_ms, settings.prediction.smooth_max_units),
            categories: CategoryDrawer::new(settings),
            chase: LagChase::new(),
            acked: CommandSeq(0),
            player,
            history: History::default(),
            newest: SnapshotSeq(0),
            drawn: Vec::new(),
            drawn_at: Micros::ZERO,
            is_undrawn: false,
            has_drawn_solids: false,
            redundancy: PacketRedundancy::new(settings),
            packets: 0,
            setup,
        }
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.window.number_from(first);
    }

    fn skip_causes(&mut self) {
        self.window.skip_causes();
    }

    /// A snapshot older than the newest only fills the position history.
    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<ReconcileOutcome> {
        self.history.push(Arc::clone(&snapshot.frame));
        self.note_drawn_solids(&snapshot.frame);
        if snapshot.seq <= self.newest {
            return None;
        }
        self.newest = snapshot.seq;
        if let Some(echo) = snapshot.echo {
            self.redundancy.handle_echo(now, echo);
        }
        let is_first_ack = snapshot.ack > std::mem::replace(&mut self.acked, snapshot.ack);
        // A repeated ack includes the wait for the next usercmd to run.
        let round_trip = self.window.times_of(snapshot.ack).filter(|_| is_first_ack).map(|(made_at, _)| now - made_at);
        if let Some(round_trip) = round_trip {
            self.clock.handle_round_trip(round_trip);
            self.input_time.handle_round_trip(round_trip);
        }
        self.clock.handle_update(now, snapshot.frame.server_time);
        self.input_time.handle_update(now, snapshot, |command| self.window.times_of(command));
        let authoritative = snapshot.frame.get(self.player.entity())?;
        let shown = self.shown(now);
        let context =
            PredictionContext::<G> { setup: &self.setup, player: self.player, entities: &snapshot.frame.entities };
        let known_entities = self.solid_entities(&snapshot.frame.entities);
        let Reconciled { comparison, correction, is_carried } =
            self.window.reconcile(&context, &known_entities, snapshot, authoritative);
        if let (Some(shown), Some(now_predicted)) = (shown, self.window.latest())
            && (correction.is_some() || is_carried)
        {
            self.smoothing.handle_correction(now, shown.offset_from(now_predicted));
        }
        Some(ReconcileOutcome { comparison, correction, round_trip })
    }

    fn set_clock(&mut self, now: Micros, server_time: Micros) {
        self.clock.set(now, server_time);
    }

    fn draw_others(&mut self, now: Micros) {
        self.drawn.clear();
        self.is_undrawn = false;
        let Some(clock) = self.clock.read(now) else { return };
        self.drawn_at = self.drawn_time(clock);
        if let Some(moment) = self.moment(now) {
            self.categories.draw(&moment, &mut self.drawn);
            self.drawn.retain(|(_, placed)| !placed.body.is_absent());
            return;
        }
        self.draw_by_mode(clock);
    }

    fn skip_drawing(&mut self, now: Micros) {
        if self.must_keep_drawing() {
            return self.draw_others(now);
        }
        self.drawn.clear();
        let Some(clock) = self.clock.read(now) else { return };
        self.drawn_at = self.drawn_time(clock);
        self.is_undrawn = true;
    }

    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<G> {
        let clock = self.clock.read(now).unwrap_or(NO_CLOCK);
        let server_time = self.input_time.stamp_usercmd(now, clock);
        let behind = server_time - clock + self.drawn_behind();
        let lerp_msec = (behind.0 / 1000).clamp(0, u16::MAX.into()) as u16;
        // A recorded input may have cells that this build's game does not have.
        let input = G::Input::read(input).write();
        let command = Usercmd { seq: self.window.next_seq(), lerp_msec, server_time, input };
        self.window.push(now, command.clone());
        let mut output = PredictedOutput { effects: Vec::new(), fires: Vec::new() };
        let nobody: &[(EntityId, G::Body)] = &[];
        let newest = self.history.newest().map(Arc::clone);
        let entities = self.solid_entities(newest.as_ref().map_or(nobody, |f| &f.entities));
        let context = PredictionContext::<G> { setup: &self.setup, player: self.player, entities: &entities };
        let ran = self.window.advance(&context, now - self.clock.round_trip(), &mut output);
        let predicted = self.window.latest().cloned();
        let shown = self.shown(now);
        let own = self.show_own(now, shown.as_ref(), &output.fires);
        let drawn_origin = shown.as_ref().map(Body::position_f32);
        // A shot needs the drawn view, even when the driver does not need it.
        if !output.fires.is_empty() && std::mem::take(&mut self.is_undrawn) {
            self.draw_by_mode(clock);
        }
        let shots = self.judge(output.fires);
        self.packets += 1;
        let packet = ClientPacket {
            number: self.packets,
            ack: self.newest,
            commands: self.window.newest(self.redundancy.usercmds_in_packet(now, self.packets)),
        };
        ClientFrameOutput { command, packet, predicted, own, drawn_origin, ran, effects: output.effects, shots }
    }

    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        self.redundancy.handle_sent(packet, bytes);
    }

    fn drawn(&self) -> &[(EntityId, PlacedBody<G::Body>)] {
        &self.drawn
    }

    fn drawn_at(&self) -> Micros {
        self.drawn_at
    }

    fn predicted(&self) -> Option<&G::Body> {
        self.window.latest()
    }

    fn save(&self, to: &mut StateWriter) -> bool {
        State::save(self, to);
        // The others are drawn again before anything reads them. Only entities with which prediction collides where
        // they are drawn are saved.
        let solids = self.drawn.iter().filter(|(id, _)| G::collides_where_drawn(&self.setup.rules, *id));
        solids.map(|(id, placed)| (*id, placed.body.clone())).collect::<Vec<_>>().put(to);
        true
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        State::restore(self, from)?;
        let solids = Vec::<(EntityId, G::Body)>::get(from)?;
        self.drawn = solids.into_iter().map(|(id, body)| (id, PlacedBody::new(body, PlacementKind::Held))).collect();
        self.history.frames().clone().iter().for_each(|frame| self.note_drawn_solids(frame));
        Ok(())
    }
}

impl<G: Game> Client<G> {
    /// Returns the entities among which a prediction runs: those of the snapshot. Entities that collide where they are
    /// drawn are moved there.
    fn solid_entities<'f>(&self, entities: &'f [(EntityId, G::Body)]) -> Cow<'f, [(EntityId, G::Body)]> {
        let drawn_position = |id: EntityId| {
            let is_drawn_solid = id != self.player.entity() && G::collides_where_drawn(&self.setup.rules, id);
            let drawn = if is_drawn_solid { &self.drawn[..] } else { &[] };
            drawn.iter().find(|(of, _)| *of == id).map(|(_, placed)| placed.body.position())
        };
        if !entities.iter().any(|(id, _)| drawn_position(*id).is_some()) {
            return Cow::Borrowed(entities);
        }
        let placed = |(id, body): &(EntityId, G::Body)| {
            (*id, drawn_position(*id).map_or(body.clone(), |position| body.moved_to(position)))
        };
        Cow::Owned(entities.iter().map(placed).collect())
    }

    /// Draws the others at [`Client::drawn_at`]. `clock` is the server time on the client's clock.
    fn draw_by_mode(&mut self, clock: Micros) {
        let others = OthersDrawer::<G> {
            rules: &self.setup.rules,
            history: &self.history,
            limits: &self.limits,
            max_extrapolation: Micros::from_ms(self.setup.settings.extrapolation.max_ms),
            but: self.player.entity(),
        };
        let (at, out) = (self.drawn_at, &mut self.drawn);
        match self.setup.settings.interpolation.mode {
            InterpolationMode::Off => others.last(out),
            InterpolationMode::Extrapolate => others.extrapolated(at, out),
            InterpolationMode::TwoPoint => others.two_point(at, out),
            InterpolationMode::LastRendered => {
                self.chase.draw(&others, clock, Micros::from_ms(self.setup.settings.interpolation.lerp_ms), out);
            }
            InterpolationMode::History => self.history.place_all::<G>(others.rules, at, others.but, others.limits, out),
            // Before the first snapshot there is nothing to draw by category.
            InterpolationMode::Category => {}
        }
        self.drawn.retain(|(_, placed)| !placed.body.is_absent());
    }

    /// Returns whether later drawing or prediction depends on what is drawn now.
    fn must_keep_drawing(&self) -> bool {
        let goes_on = matches!(
            self.setup.settings.interpolation.mode,
            InterpolationMode::LastRendered | InterpolationMode::Category
        );
        goes_on || self.has_drawn_solids
    }

    fn note_drawn_solids(&mut self, frame: &Frame<G::Body>) {
        self.has_drawn_solids |= frame.entities.iter().any(|(id, _)| G::collides_where_drawn(&self.setup.rules, *id));
    }

    /// Returns the client's verdict on its shots, judged against what it has drawn.
    fn judge(&self, fires: Vec<PredictedFire<G::Fire>>) -> Vec<PredictedShot<G::Fire>> {
        if fires.is_empty() {
            return Vec::new();
        }
        let targets: Vec<(EntityId, G::Body)> = self.drawn.iter().map(|(id, p)| (*id, p.body.clone())).collect();
        let judge = |PredictedFire { command, index, fire }| {
            let verdict = ShotVerdict::of::<G>(&self.setup.rules, &fire, &targets);
            PredictedShot { command, index, fire, verdict }
        };
        fires.into_iter().map(judge).collect()
    }

    /// Returns the inputs of drawing by category. Returns `None` in other modes, and before the first snapshot.
    fn moment(&self, now: Micros) -> Option<DrawContext<G>> {
        if self.setup.settings.interpolation.mode != InterpolationMode::Category {
            return None;
        }
        Some(DrawContext {
            rules: Arc::clone(&self.setup.rules),
            player: self.player,
            newest: Arc::clone(self.history.newest()?),
            before: self.history.before_newest().map(Arc::clone),
            acked: self.acked,
            local: now,
            server: self.clock.read(now)?,
            own: self.own_time(now)?,
        })
    }

    /// Returns the client timeline: the server time at which a usercmd made at `now` runs. When usercmds wait for their
    /// tick, it is the tick's time. Otherwise it is the client's clock, which is late by the way down, plus one round
    /// trip.
    fn own_time(&self, now: Micros) -> Option<Micros> {
        self.input_time.tick_time(now).or_else(|| Some(self.clock.read(now)? + self.clock.round_trip()))
    }

    /// Draws the own avatar by category, and starts to draw the effects of the newest usercmd.
    fn show_own(
        &mut self,
        now: Micros,
        shown: Option<&G::Body>,
        fires: &[PredictedFire<G::Fire>],
    ) -> Option<PlacedBody<G::Body>> {
        let moment = self.moment(now)?;
        for PredictedFire { command, fire, .. } in fires {
            self.categories.react(&moment, *command, fire, &mut self.drawn);
        }
        self.categories.own(&moment, shown?).filter(|own| !own.body.is_absent())
    }

    /// Returns the server time that the client draws while its clock shows `clock`. Extrapolation draws the estimated
    /// present of the server.
    fn drawn_time(&self, clock: Micros) -> Micros {
        match self.setup.settings.interpolation.mode {
            InterpolationMode::Extrapolate => clock + self.clock.latency(),
            _ => clock - self.drawn_behind(),
        }
    }

    fn drawn_behind(&self) -> Micros {
        Micros::from_ms(self.setup.settings.drawn_behind_ms())
    }

    /// Returns the newest predicted body where it is shown while a correction fades.
    fn shown(&self, now: Micros) -> Option<G::Body> {
        self.window.latest().map(|body| body.moved_by(self.smoothing.offset(now)))
    }
}

/// A minimal body for the client's unit tests.
#[cfg(test)]
mod dot {
    use crate::game::body;
    use glam::Vec3;

    body! {
        /// A point that moves and shoots.
        pub(super) struct DotBody {
            Movement origin: Vec3,
            Movement velocity: Vec3,
            Movement viewangles: Vec3,
            Weapons shots: u32,
        }
    }
}
