//! Prediction and reconciliation (Bernier 2001, "Client Side Prediction"): a sliding window of unacknowledged usercmds,
//! each with the body that it led to.
//!
//! When the acked body equals what was predicted for that usercmd, nothing is run again. Otherwise the acked body, with
//! what only the client knows copied into it, is the new start, and every command after it is run again.

use std::collections::VecDeque;

use super::{GivenOff, Reconciled, cause};
use crate::game::{Body, Cause, Effect, Evidence, Game, Miss, Scene, Scope, Sink, Touch};
use crate::settings::{PredictionMode, Settings};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use crate::usercmd::Usercmd;

/// A prediction that turned out wrong.
#[derive(Clone, Debug)]
pub struct Correction<B> {
    /// The acked usercmd.
    pub command: CommandSeq,
    /// The body that was predicted for it.
    pub predicted: B,
    /// The body that the server made of it.
    pub authoritative: B,
    /// Every predicted field that differs.
    pub errors: Vec<FieldError>,
    /// How many usercmds are run again because of it.
    pub reran: u32,
    /// Why.
    pub cause: Cause,
    /// What shows that it is so.
    pub evidence: Evidence,
}

/// One cell that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The cell's place in [`Body::fields`].
    pub field: usize,
    /// The predicted cell.
    pub predicted: u32,
    /// The server's.
    pub authoritative: u32,
}

/// What predicting needs besides the window.
pub(super) struct Context<'a, G: Game> {
    pub(super) rules: &'a G::Rules,
    pub(super) settings: &'a Settings,
    pub(super) seed: Seed,
    pub(super) player: PlayerId,
    pub(super) entities: &'a [(EntityId, G::Body)],
}

impl<G: Game> Context<'_, G> {
    pub(super) fn run(&self, body: &G::Body, command: &Usercmd, sink: &mut impl Sink<G::Fire>) -> G::Body {
        let weapons = self.settings.predicts_weapons();
        let scene = Scene { seed: self.seed, player: self.player, entities: self.entities, weapons };
        G::step_body(self.rules, &scene, body, command, sink)
    }
}

/// The unacknowledged usercmds, and the acked state that they start from.
pub(super) struct Window<G: Game> {
    mode: PredictionMode,
    /// The most time that is predicted.
    push: Micros,
    /// Which cells are predicted.
    fields: Predicted,
    base: Option<G::Body>,
    /// The last command before the base, for hypotheses about what ran in place of a lost one.
    base_command: Option<Usercmd>,
    /// Ascending, without gaps.
    entries: VecDeque<Entry<G::Body>>,
    last_seq: CommandSeq,
    /// How many of the entries have a body that is up to date.
    valid: usize,
    /// The newest command that has run at least once.
    first_runs: CommandSeq,
    ran_for_correction: u32,
    recent: VecDeque<(Usercmd, Micros)>,
}

struct Entry<B> {
    command: Usercmd,
    after: Option<B>,
    touches: Vec<Touch>,
}

/// How many usercmds a client remembers; Quake III's `CMD_BACKUP`, with room for half a second of 1000 Hz.
const REMEMBERED: usize = 512;

impl<G: Game> Window<G> {
    pub(super) fn new(settings: &Settings) -> Window<G> {
        Window {
            mode: settings.prediction.mode,
            push: Micros::from_ms(-settings.prediction.push_latency_ms),
            fields: Predicted::new::<G::Body>(settings.prediction.mode),
            base: None,
            base_command: None,
            entries: VecDeque::new(),
            last_seq: CommandSeq(0),
            valid: 0,
            first_runs: CommandSeq(0),
            ran_for_correction: 0,
            recent: VecDeque::with_capacity(REMEMBERED),
        }
    }

    pub(super) fn next_seq(&self) -> CommandSeq {
        self.last_seq.next()
    }

    /// Adds a command that was made at `now`.
    pub(super) fn push(&mut self, now: Micros, command: Usercmd) {
        self.last_seq = command.seq;
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back((command, now));
        self.entries.push_back(Entry { command, after: None, touches: Vec::new() });
        if self.entries.len() > REMEMBERED {
            // The server has been silent for long: what it has not acked by now starts from its next word.
            self.entries.pop_front();
            self.valid = self.valid.saturating_sub(1);
        }
    }

    /// When a command was made.
    pub(super) fn sent_at(&self, seq: CommandSeq) -> Option<Micros> {
        let first = self.recent.front()?.0.seq;
        self.recent.get(seq.0.checked_sub(first.0)? as usize).map(|(_, at)| *at)
    }

    /// The newest commands, oldest first.
    pub(super) fn newest(&self, count: usize) -> Vec<Usercmd> {
        let skip = self.recent.len().saturating_sub(count);
        self.recent.iter().skip(skip).map(|(command, _)| *command).collect()
    }

    /// The body after the last command that is predicted; the acked one where none is.
    pub(super) fn latest(&self) -> Option<&G::Body> {
        match self.valid.checked_sub(1) {
            Some(last) => self.entries.get(last).and_then(|e| e.after.as_ref()),
            None => self.base.as_ref(),
        }
    }

    /// Runs what has not run yet, as far as prediction goes. Returns how many commands ran, with those
    /// that the last reconciliation ran again.
    pub(super) fn advance(&mut self, context: &Context<'_, G>, out: &mut GivenOff<G::Fire>) -> u32 {
        let again = std::mem::take(&mut self.ran_for_correction);
        again + self.run_window(context, out)
    }

    fn run_window(&mut self, context: &Context<'_, G>, out: &mut GivenOff<G::Fire>) -> u32 {
        let (Some(base), true) = (&self.base, self.mode != PredictionMode::Off) else { return 0 };
        let mut spent: Micros = self.entries.iter().take(self.valid).fold(Micros::ZERO, |t, e| t + e.time());
        let mut ran = 0;
        while self.valid < self.entries.len() {
            spent += self.entries[self.valid].time();
            if spent > self.push {
                break;
            }
            let before = match self.valid.checked_sub(1) {
                Some(last) => self.entries[last].after.as_ref().unwrap_or(base),
                None => base,
            };
            let entry = &self.entries[self.valid];
            let first = entry.command.seq > self.first_runs;
            out.touches.clear();
            let mut sink = Running { first, seq: entry.command.seq, fires: 0, out };
            let after = context.run(before, &entry.command, &mut sink);
            self.first_runs = self.first_runs.max(entry.command.seq);
            let entry = &mut self.entries[self.valid];
            entry.after = Some(after);
            entry.touches.clone_from(&out.touches);
            self.valid += 1;
            ran += 1;
        }
        ran
    }

    /// Takes the server's word for everything up to `ack`.
    pub(super) fn reconcile(&mut self, context: &Context<'_, G>, ack: CommandSeq, mut body: G::Body) -> Reconciled<G> {
        let acked = self.entries.iter().take_while(|e| e.command.seq <= ack).count();
        let predicted = match acked.checked_sub(1) {
            Some(last) => self.entries[last].after.clone(),
            // Nothing new was acked: what the server has done to the body since is compared with the last word.
            None => self.base.clone(),
        };
        if let Some(predicted) = &predicted {
            body.adopt_client_only(predicted);
        }
        let compared = acked > 0 && predicted.is_some();
        let unchanged = predicted.as_ref() == Some(&body);
        let passed: Vec<Entry<G::Body>> = self.entries.drain(..acked).collect();
        self.valid = self.valid.saturating_sub(acked);
        let from = self.base.replace(body.clone());
        let from_command = self.base_command;
        if let Some(last) = passed.last() {
            self.base_command = Some(last.command);
        }
        if unchanged {
            return Reconciled { correction: None, compared, round_trip: None };
        }
        let reran = self.run_again(context);
        let errors = predicted.as_ref().map(|p| self.fields.errors(p, &body)).unwrap_or_default();
        let correction = predicted.filter(|_| !errors.is_empty()).map(|predicted| {
            let commands: Vec<Usercmd> = passed.iter().map(|e| e.command).collect();
            let touches: Vec<Touch> = passed.iter().flat_map(|e| e.touches.iter().copied()).collect();
            let miss = Miss {
                from: from.as_ref(),
                last_command: from_command,
                commands: &commands,
                predicted: &predicted,
                authoritative: &body,
                touches: &touches,
            };
            let (cause, evidence) = cause::explain(context, &self.fields, &miss);
            Correction { command: ack, predicted, authoritative: body.clone(), errors, reran, cause, evidence }
        });
        Reconciled { correction, compared, round_trip: None }
    }

    fn run_again(&mut self, context: &Context<'_, G>) -> u32 {
        self.valid = 0;
        let mut unheard = GivenOff { effects: Vec::new(), fires: Vec::new(), touches: Vec::new() };
        let first_runs = self.first_runs;
        // Only what ran before runs now; new commands wait for their frame, where their effects are heard.
        let waiting = self.entries.iter().filter(|e| e.command.seq > first_runs).count();
        let held = self.entries.split_off(self.entries.len() - waiting);
        let ran = self.run_window(context, &mut unheard);
        self.entries.extend(held);
        self.ran_for_correction += ran;
        ran
    }
}

/// Which cells of a body a client predicts.
pub(super) struct Predicted {
    cells: Vec<bool>,
}

impl Predicted {
    fn new<B: Body>(mode: PredictionMode) -> Predicted {
        let is_predicted = |scope: Scope| match scope {
            Scope::Movement => mode != PredictionMode::Off,
            Scope::Weapons => mode == PredictionMode::Weapons,
            Scope::Status | Scope::ClientOnly => false,
        };
        Predicted { cells: B::fields().iter().map(|f| is_predicted(f.scope)).collect() }
    }

    /// The predicted cells that came out differently.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B) -> Vec<FieldError> {
        let mut ours = vec![0; B::CELLS];
        let mut theirs = vec![0; B::CELLS];
        predicted.write(&mut ours);
        authoritative.write(&mut theirs);
        (0..B::CELLS)
            .filter(|&i| ours[i] != theirs[i] && self.cells[i])
            .map(|i| FieldError { field: i, predicted: ours[i], authoritative: theirs[i] })
            .collect()
    }
}

impl<B> Entry<B> {
    fn time(&self) -> Micros {
        Micros::from_ms(i64::from(self.command.input.msec))
    }
}

/// Lets effects and shots through only while a command runs for the first time.
struct Running<'a, F> {
    first: bool,
    seq: CommandSeq,
    fires: u8,
    out: &'a mut GivenOff<F>,
}

impl<F> Sink<F> for Running<'_, F> {
    fn effect(&mut self, effect: Effect) {
        if self.first {
            self.out.effects.push(effect);
        }
    }
    fn fire(&mut self, fire: F) {
        if self.first {
            self.out.fires.push((self.seq, self.fires, fire));
        }
        self.fires += 1;
    }
    fn touch(&mut self, touch: Touch) {
        self.out.touches.push(touch);
    }
}
