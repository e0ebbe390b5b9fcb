//! The client pipeline: makes usercmds, predicts its own body with them, reconciles when acks arrive, and draws the
//! others. A state machine without I/O or clock, like the server.
//!
//! A driver hands in snapshots as they arrive and calls, once a client frame, [`Client::look`] and then
//! [`Client::command`]: what is drawn is what the player sees while the usercmd is made.

mod cause;
mod clock;
mod context;
mod draw;
mod fields;
mod predict;
mod smooth;

use std::sync::Arc;

pub use fields::FieldError;
pub use predict::{Comparison, Correction};

use crate::game::{Body, Effect, Game, Placed, Touch, Verdict};
use crate::history::{History, Limits};
use crate::packet::{ClientPacket, Snapshot};
use crate::settings::{InterpolationMode, Settings};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq};
use crate::usercmd::{Input, Usercmd};
use clock::Clock;
use context::Context;
use glam::Vec3;
use predict::Window;
use smooth::Smoothing;

/// The client of one player.
pub struct Client<G: Game> {
    rules: Arc<G::Rules>,
    settings: Arc<Settings>,
    seed: Seed,
    player: PlayerId,
    limits: Limits,
    clock: Clock,
    history: History<G::Body>,
    newest: SnapshotSeq,
    window: Window<G>,
    smoothing: Smoothing,
    /// What was drawn at the last [`Client::look`], in ascending order of entity.
    drawn: Vec<(EntityId, Placed<G::Body>)>,
    drawn_at: Micros,
    packets: u32,
}

/// What one client frame put out.
#[derive(Debug)]
pub struct Commanded<G: Game> {
    /// The usercmd that was made.
    pub command: Usercmd,
    /// The packet that carries it, with repeats of those before.
    pub packet: ClientPacket,
    /// The player's own body as far as it is predicted; `None` before the first snapshot.
    pub predicted: Option<G::Body>,
    /// Where the own body is drawn: the predicted origin, or on the way to it after a correction. In units.
    pub drawn_origin: Option<Vec3>,
    /// How many usercmds were run for this frame: one, unless some had to wait or run again.
    pub ran: u32,
    /// Sounds and sights of commands that ran for the first time.
    pub effects: Vec<Effect>,
    /// Shots of commands that ran for the first time, and what they seem to hit.
    pub shots: Vec<(CommandSeq, u8, G::Fire, Verdict)>,
}

/// What one snapshot led to.
#[derive(Debug)]
pub struct Reconciled {
    /// What was predicted for the acked usercmd, held against the server's word. `None` when nothing was predicted or
    /// nothing new was acked.
    pub comparison: Option<Comparison>,
    /// Set when a predicted field had to be corrected.
    pub correction: Option<Correction>,
    /// How long the acked usercmd took to be acked.
    pub round_trip: Option<Micros>,
}

/// Something that a client can be made to leave out, to show what it is for. No setting: a session that lacks one of
/// these is not played, only measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The mark on commands that have run: without it their effects play at every run.
    FirstRunMark,
    /// Copying what only the client knows to the acked state.
    ClientOnlyState,
    /// Heeding the mark of a teleport; a too large distance still is one.
    TeleportFlag,
}

impl<G: Game> Client<G> {
    /// The client of `player`, connected, before its first snapshot.
    pub fn new(rules: Arc<G::Rules>, settings: Arc<Settings>, seed: Seed, player: PlayerId) -> Client<G> {
        Client {
            clock: Clock::new(settings.client.clock),
            limits: Limits::of(&settings),
            window: Window::new(&settings),
            smoothing: Smoothing::new(&settings),
            rules,
            settings,
            seed,
            player,
            history: History::default(),
            newest: SnapshotSeq(0),
            drawn: Vec::new(),
            drawn_at: Micros::ZERO,
            packets: 0,
        }
    }

    /// Numbers the usercmds from `first` on, as an imported recording does.
    pub fn number_from(&mut self, first: CommandSeq) {
        self.window.number_from(first);
    }

    /// Makes it leave out a part of what it does.
    pub fn leave_out(&mut self, part: Part) {
        match part {
            Part::FirstRunMark => self.window.play_every_run(),
            Part::ClientOnlyState => self.window.forget_client_only(),
            Part::TeleportFlag => self.limits.heeds_teleport_flag = false,
        }
    }

    /// Takes a snapshot that arrived at `now`. One that is older than the newest only fills the position history.
    /// Returns `None` for those, and for one that does not hold the player's own body.
    pub fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<G::Body>) -> Option<Reconciled> {
        self.history.push(Arc::clone(&snapshot.frame));
        if snapshot.seq <= self.newest {
            return None;
        }
        self.newest = snapshot.seq;
        self.clock.handle_update(now, snapshot.frame.server_time);
        let body = snapshot.frame.get(self.player.entity())?.clone();
        let round_trip = self.window.sent_at(snapshot.ack).map(|sent| now - sent);
        if let Some(round_trip) = round_trip {
            self.clock.handle_round_trip(round_trip);
        }
        let shown = self.shown_origin(now);
        let context = Context::<G> {
            rules: &self.rules,
            settings: &self.settings,
            seed: self.seed,
            player: self.player,
            entities: &snapshot.frame.entities,
        };
        let reconciled = self.window.reconcile(&context, snapshot.ack, body);
        if let (Some(shown), Some(now_predicted)) = (shown, self.window.latest()) {
            self.smoothing.handle_correction(now, shown - now_predicted.origin(), reconciled.correction.is_some());
        }
        Some(Reconciled { round_trip, ..reconciled })
    }

    /// Draws the others at `now`, in ascending order of entity.
    pub fn look(&mut self, now: Micros) -> &[(EntityId, Placed<G::Body>)] {
        self.drawn.clear();
        let Some(clock) = self.clock.read(now) else { return &self.drawn };
        self.drawn_at = match self.settings.interpolation.mode {
            InterpolationMode::TwoPoint | InterpolationMode::History => clock - self.lerp(),
            InterpolationMode::Off | InterpolationMode::Extrapolate => clock,
        };
        let scene = draw::Others::<G> {
            rules: &self.rules,
            history: &self.history,
            mode: self.settings.interpolation.mode,
            limits: &self.limits,
            max_extrapolation: Micros::from_ms(self.settings.extrapolation_max_ms),
            latency: self.clock.latency(),
            but: self.player.entity(),
        };
        draw::draw::<G>(&scene, self.drawn_at, &mut self.drawn);
        &self.drawn
    }

    /// Makes a usercmd of `input` at `now`, predicts it, and packs it.
    pub fn command(&mut self, now: Micros, input: &Input) -> Commanded<G> {
        let lerp = match self.settings.interpolation.mode {
            InterpolationMode::TwoPoint | InterpolationMode::History => self.lerp(),
            InterpolationMode::Off | InterpolationMode::Extrapolate => Micros::ZERO,
        };
        let command = Usercmd {
            seq: self.window.next_seq(),
            lerp_msec: (lerp.0 / 1000) as u16,
            server_time: self.clock.read(now).unwrap_or(Micros::ZERO),
            input: *input,
        };
        self.window.push(now, command);
        let mut given_off = GivenOff { effects: Vec::new(), fires: Vec::new(), touches: Vec::new() };
        let nobody: &[(EntityId, G::Body)] = &[];
        let entities = self.history.newest().map_or(nobody, |f| &f.entities);
        let context = Context::<G> {
            rules: &self.rules,
            settings: &self.settings,
            seed: self.seed,
            player: self.player,
            entities,
        };
        let ran = self.window.advance(&context, &mut given_off);
        let predicted = self.window.latest().cloned();
        let shots = self.judge(given_off.fires);
        self.packets += 1;
        let packet = ClientPacket {
            number: self.packets,
            ack: self.newest,
            commands: self.window.newest(self.settings.client.redundancy as usize),
        };
        let drawn_origin = self.shown_origin(now);
        Commanded { command, packet, predicted, drawn_origin, ran, effects: given_off.effects, shots }
    }

    /// What was drawn at the last [`Client::look`], in ascending order of entity.
    pub fn drawn(&self) -> &[(EntityId, Placed<G::Body>)] {
        &self.drawn
    }

    /// The server time of what was drawn at the last [`Client::look`].
    pub fn drawn_at(&self) -> Micros {
        self.drawn_at
    }

    /// The player's own body as far as it is predicted.
    pub fn predicted(&self) -> Option<&G::Body> {
        self.window.latest()
    }

    /// What a shot seems to hit: judged against what is on the screen.
    fn judge(&self, fires: Vec<(CommandSeq, u8, G::Fire)>) -> Vec<(CommandSeq, u8, G::Fire, Verdict)> {
        if fires.is_empty() {
            return Vec::new();
        }
        let targets: Vec<(EntityId, G::Body)> = self.drawn.iter().map(|(id, p)| (*id, p.body.clone())).collect();
        let judge = |(seq, index, fire)| {
            let verdict = G::judge(&self.rules, &fire, &targets);
            (seq, index, fire, verdict)
        };
        fires.into_iter().map(judge).collect()
    }

    fn lerp(&self) -> Micros {
        Micros::from_ms(self.settings.interpolation.lerp_ms)
    }

    fn shown_origin(&self, now: Micros) -> Option<Vec3> {
        self.window.latest().map(|body| body.origin() + self.smoothing.offset(now))
    }
}

/// What commands give off while they are predicted.
pub(crate) struct GivenOff<F> {
    effects: Vec<Effect>,
    fires: Vec<(CommandSeq, u8, F)>,
    touches: Vec<Touch>,
}
