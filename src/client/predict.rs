//! Prediction and reconciliation (Bernier 2001, "Client Side Prediction"): a sliding window of unacknowledged usercmds,
//! each with the body that it led to.
//!
//! When the acked body equals what was predicted for that usercmd, nothing is run again. Otherwise the acked body, with
//! what only the client knows copied into it, is the new start, and every command after it is run again.

use std::collections::VecDeque;

use super::context::Context;
use super::fields::Predicted;
use super::{GivenOff, cause};
use crate::game::{Body, Effect, Game, Grade, Miss, Sink, Touch};
use crate::pipeline::{Comparison, Correction, Reconciled};
use crate::settings::{PredictionMode, Settings};
use crate::units::{CommandSeq, Micros};
use crate::usercmd::Usercmd;

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
    /// Takes every run of a command for its first; see [`super::Part::FirstRunMark`].
    plays_every_run: bool,
    /// What commands gave off when they ran again, if they are taken to run for the first time.
    played_again: Vec<Effect>,
    /// Goes on from what the server says alone; see [`super::Part::ClientOnlyState`].
    forgets_client_only: bool,
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
            plays_every_run: false,
            played_again: Vec::new(),
            forgets_client_only: false,
        }
    }

    pub(super) fn play_every_run(&mut self) {
        self.plays_every_run = true;
    }

    pub(super) fn forget_client_only(&mut self) {
        self.forgets_client_only = true;
    }

    pub(super) fn next_seq(&self) -> CommandSeq {
        self.last_seq.next()
    }

    pub(super) fn number_from(&mut self, first: CommandSeq) {
        self.last_seq = CommandSeq(first.0.saturating_sub(1));
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
        out.effects.append(&mut self.played_again);
        again + self.run_window(context, out)
    }

    fn run_window(&mut self, context: &Context<'_, G>, out: &mut GivenOff<G::Fire>) -> u32 {
        let (Some(base), true) = (&self.base, self.mode != PredictionMode::Off) else { return 0 };
        let mut spent: Micros = self.entries.iter().take(self.valid).fold(Micros::ZERO, |t, e| t + e.time());
        // The server tells all effects to those who do not predict weapons.
        let hears = context.settings.predicts_weapons();
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
            let first = self.plays_every_run || entry.command.seq > self.first_runs;
            out.touches.clear();
            let mut sink = Running { first, hears, seq: entry.command.seq, fires: 0, out };
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
    pub(super) fn reconcile(&mut self, context: &Context<'_, G>, ack: CommandSeq, told: G::Body) -> Reconciled {
        let acked = self.entries.iter().take_while(|e| e.command.seq <= ack).count();
        let predicted = match acked.checked_sub(1) {
            Some(last) => self.entries[last].after.clone(),
            // Nothing new was acked: what the server has done to the body since is compared with the last word.
            None => self.base.clone(),
        };
        let passed: Vec<Entry<G::Body>> = self.entries.drain(..acked).collect();
        self.valid = self.valid.saturating_sub(acked);
        let last_command = self.base_command;
        if let Some(last) = passed.last() {
            self.base_command = Some(last.command);
        }
        let Some(predicted) = predicted else {
            self.base = Some(told);
            self.run_again(context);
            return Reconciled { comparison: None, correction: None, round_trip: None };
        };
        let grade = G::grade(&predicted, &told);
        let next = match self.forgets_client_only {
            false => next_base::<G>(&predicted, told.clone(), grade),
            true => told.clone(),
        };
        let from = self.base.replace(next.clone());
        let comparison = (acked > 0 && self.mode != PredictionMode::Off).then(|| Comparison {
            command: ack,
            commands: acked as u32,
            grade,
            error_units: predicted.origin().distance(told.origin()),
            velocity_error: predicted.velocity().distance(told.velocity()),
            on_ground: from.as_ref().is_some_and(G::on_ground),
        });
        if next == predicted {
            return Reconciled { comparison, correction: None, round_trip: None };
        }
        let reran = self.run_again(context);
        let errors = self.fields.errors(&predicted, &next);
        let correction = (!errors.is_empty()).then(|| {
            let commands: Vec<Usercmd> = passed.iter().map(|e| e.command).collect();
            let touches: Vec<Touch> = passed.iter().flat_map(|e| e.touches.iter().copied()).collect();
            let miss = Miss {
                scene: context.scene(),
                from: from.as_ref(),
                last_command,
                commands: &commands,
                predicted: &predicted,
                authoritative: &next,
                touches: &touches,
            };
            let (cause, evidence) = cause::explain(context, &self.fields, &miss);
            Correction { command: ack, errors, reran, cause, evidence }
        });
        Reconciled { comparison, correction, round_trip: None }
    }

    fn run_again(&mut self, context: &Context<'_, G>) -> u32 {
        self.valid = 0;
        let mut unheard = GivenOff { effects: Vec::new(), fires: Vec::new(), touches: Vec::new() };
        let first_runs = self.first_runs;
        // Only what ran before runs now; new commands wait for their frame, where their effects are heard.
        let waiting = self.entries.iter().filter(|e| e.command.seq > first_runs).count();
        let held = self.entries.split_off(self.entries.len() - waiting);
        let ran = self.run_window(context, &mut unheard);
        if self.plays_every_run {
            self.played_again.append(&mut unheard.effects);
        }
        self.entries.extend(held);
        self.ran_for_correction += ran;
        ran
    }
}

/// What prediction goes on from after an ack: the server's word, with what only the client knows; or, where that word is
/// rounded and agrees, the prediction.
fn next_base<G: Game>(predicted: &G::Body, mut told: G::Body, grade: Grade) -> G::Body {
    if G::RECORDS_ARE_ROUNDED && grade != Grade::Miss {
        return G::keep_predicted(predicted, &told);
    }
    told.adopt_client_only(predicted);
    told
}

impl<B> Entry<B> {
    fn time(&self) -> Micros {
        Micros::from_ms(i64::from(self.command.input.msec))
    }
}

/// Lets effects and shots through only while a command runs for the first time.
struct Running<'a, F> {
    first: bool,
    hears: bool,
    seq: CommandSeq,
    fires: u8,
    out: &'a mut GivenOff<F>,
}

impl<F> Sink<F> for Running<'_, F> {
    fn effect(&mut self, effect: Effect) {
        if self.first && self.hears {
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
