//! Prediction and reconciliation (Bernier 2001, "Client Side Prediction"): a sliding window of unacknowledged usercmds,
//! each with the body that it led to.
//!
//! When the acked body equals what was predicted for that usercmd, nothing is run again. Otherwise the acked body, with
//! what only the client knows copied into it, is the new start, and every command after it is run again.
//!
//! A prediction is held against the server's word as it was made in play. Under `prediction.among = acking-packet` the acked
//! commands run again first, among the bodies that the acking snapshot shows: as the server ran them.

mod keyframe;

use std::collections::VecDeque;
use std::sync::Arc;

use super::CommandOutput;
use super::cause::{Found, Looked};
use super::context::Context;
use super::fields::Predicted;
use crate::game::{Acked, Body, Effect, Game, Grade, LostInput, Sink, Touch, shown_by_either};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{Comparison, Correction, Reconciled};
use crate::settings::{Among, OnLost, PredictionMode, Settings};
use hitreg_log::units::{CommandSeq, EntityId, Micros};
use hitreg_log::usercmd::Usercmd;

/// The unacknowledged usercmds, and the acked state that they start from.
pub(super) struct Window<G: Game> {
    mode: PredictionMode,
    /// The most time that is predicted.
    push: Micros,
    /// Which cells are predicted.
    fields: Predicted,
    among: Among,
    lost_input: LostInput,
    base: Option<G::Body>,
    /// The snapshot that the base is from.
    base_frame: Option<Arc<Frame<G::Body>>>,
    looked: Looked,
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
    /// Effects of usercmds that, run again, do not have them.
    cut: Vec<(CommandSeq, Effect)>,
    recent: VecDeque<(Usercmd, Micros)>,
}

struct Entry<B> {
    command: Usercmd,
    after: Option<B>,
    touches: Vec<Touch>,
    /// What was heard and seen of it, as far as that was not taken back.
    effects: Vec<Effect>,
}

/// How many usercmds a client remembers; Quake III's `CMD_BACKUP`, with room for half a second of 1000 Hz.
const REMEMBERED: usize = 512;

impl<G: Game> Window<G> {
    pub(super) fn new(settings: &Settings) -> Window<G> {
        Window {
            mode: settings.prediction.mode,
            push: Micros::from_ms(-settings.prediction.push_latency_ms),
            fields: Predicted::new::<G::Body>(settings.prediction.mode),
            among: settings.prediction.among,
            lost_input: LostInput {
                backups: (settings.client.redundancy - 1).max(0) as usize,
                repeats: settings.server.on_lost_command == OnLost::Repeat,
            },
            base: None,
            base_frame: None,
            looked: Looked::default(),
            base_command: None,
            entries: VecDeque::new(),
            last_seq: CommandSeq(0),
            valid: 0,
            first_runs: CommandSeq(0),
            ran_for_correction: 0,
            cut: Vec::new(),
            recent: VecDeque::with_capacity(REMEMBERED),
        }
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
        self.entries.push_back(Entry { command, after: None, touches: Vec::new(), effects: Vec::new() });
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
    pub(super) fn advance(&mut self, context: &Context<'_, G>, out: &mut CommandOutput<G::Fire>) -> u32 {
        let again = std::mem::take(&mut self.ran_for_correction);
        again + self.run_window(context, self.entries.len(), self.push, out)
    }

    /// Runs those of the first `until` commands that have no valid body yet, and no more than `push` in all.
    fn run_window(
        &mut self,
        context: &Context<'_, G>,
        until: usize,
        push: Micros,
        out: &mut CommandOutput<G::Fire>,
    ) -> u32 {
        let (Some(base), true) = (&self.base, self.mode != PredictionMode::Off) else { return 0 };
        let mut spent: Micros = self.entries.iter().take(self.valid).fold(Micros::ZERO, |t, e| t + e.time());
        // The server tells all effects to those who do not predict weapons.
        let with_effects = context.settings.predicts_weapons();
        let mut ran = 0;
        while self.valid < until {
            spent += self.entries[self.valid].time();
            if spent > push {
                break;
            }
            let before = match self.valid.checked_sub(1) {
                Some(last) => self.entries[last].after.as_ref().unwrap_or(base),
                None => base,
            };
            let entry = &self.entries[self.valid];
            let first = entry.command.seq > self.first_runs;
            out.touches.clear();
            let seq = entry.command.seq;
            let mut sink = Running { first, with_effects, seq, fires: 0, effects: Vec::new(), out };
            let after = context.run(before, &entry.command, &mut sink);
            let effects = sink.effects;
            self.first_runs = self.first_runs.max(seq);
            let entry = &mut self.entries[self.valid];
            entry.after = Some(after);
            if first {
                out.effects.extend(&effects);
                entry.effects = effects;
            } else {
                let is_gone = |effect: &mut Effect| !effects.iter().any(|again| again.kind == effect.kind);
                self.cut.extend(entry.effects.extract_if(.., is_gone).map(|effect| (seq, effect)));
            }
            entry.touches.clone_from(&out.touches);
            self.valid += 1;
            ran += 1;
        }
        ran
    }

    /// Corrects the prediction by everything that a snapshot acks; `authoritative` is the own body in it. What has to run again runs
    /// among those whom it `met`.
    pub(super) fn reconcile(
        &mut self,
        context: &Context<'_, G>,
        met: &[(EntityId, G::Body)],
        snapshot: &Snapshot<G::Body>,
        authoritative: &G::Body,
    ) -> Reconciled {
        let acked = self.entries.iter().take_while(|e| e.command.seq <= snapshot.ack).count();
        let played = match acked.checked_sub(1) {
            Some(last) => self.entries[last].after.clone(),
            // Nothing new was acked: what the server has done to the body since is compared with the last word.
            None => self.base.clone(),
        };
        let before = self.base_frame.replace(Arc::clone(&snapshot.frame));
        let before = before.as_ref().map_or(&[][..], |frame| &frame.entities);
        let checks = acked > 0 && self.mode != PredictionMode::Off;
        let ran = match self.among {
            Among::AckingPacket if checks => self.run_as_the_server(context, before, acked),
            Among::AckingPacket | Among::Known => None,
        };
        let predicted = ran.as_ref().or(played.as_ref()).unwrap_or(authoritative);
        let TakenOut { commands, touches, effects } = self.take_acked(acked);
        let last_command = self.base_command;
        self.base_command = commands.last().copied().or(last_command);
        let from = self.base.take();
        let acked = Acked {
            scene: context.scene(),
            before,
            extras: snapshot.extras(),
            lost_input: self.lost_input,
            from: from.as_ref(),
            last_command,
            commands: &commands,
            predicted,
            authoritative,
            touches: &touches,
        };
        let next = G::resume(context.rules, &acked);
        self.base = Some(next.clone());
        let again = Context { entities: met, ..*context };
        let reran = if played.as_ref() == Some(&next) { 0 } else { self.run_again(&again) };
        let was_predicted = ran.is_some() || played.is_some();
        let Some(grade) = G::grade(predicted, authoritative).filter(|_| was_predicted) else {
            return Reconciled { comparison: None, correction: None, round_trip: None };
        };
        let as_played = played.as_ref().filter(|_| ran.is_some()).and_then(|played| G::grade(played, authoritative));
        let comparison = checks.then(|| Comparison {
            command: snapshot.ack,
            commands: commands.len() as u32,
            grade,
            as_played,
            error_units: predicted.origin().distance(authoritative.origin()),
            velocity_error: predicted.velocity().distance(next.velocity()),
            on_ground: from.as_ref().is_some_and(G::on_ground),
        });
        // What the rounding of a record explains is not wrong.
        let may_be_wrong = grade == Grade::Miss || !G::RECORDS_ARE_ROUNDED;
        let is_wrong = may_be_wrong && next != *predicted;
        let errors = if is_wrong { self.fields.errors(predicted, authoritative, &next) } else { Vec::new() };
        let mut cut = std::mem::take(&mut self.cut);
        let correction = (!errors.is_empty()).then(|| {
            let Found { cause, evidence, effects: heard } = self.looked.explain(context, &self.fields, &acked);
            let is_gone = |(seq, effect): &(CommandSeq, Effect)| {
                heard.as_ref().is_some_and(|heard| !heard.iter().any(|(of, had)| of == seq && had.kind == effect.kind))
            };
            cut.extend(effects.into_iter().filter(is_gone));
            Correction { command: snapshot.ack, errors, reran, cause, evidence, cut }
        });
        Reconciled { comparison, correction, round_trip: None }
    }

    /// Runs the first `count` commands again as the server did, which had moved the other bodies already: from the base,
    /// among the bodies of the snapshot that acks them, and where it does not show one, of the snapshot before. The body
    /// that this leads to.
    fn run_as_the_server(
        &mut self,
        context: &Context<'_, G>,
        before: &[(EntityId, G::Body)],
        count: usize,
    ) -> Option<G::Body> {
        let base = self.base.take()?;
        let entities = shown_by_either(before, context.entities);
        let context = Context { entities: &entities, ..*context };
        let carried = G::carry(context.rules, &context.scene(), before, &base);
        self.base = Some(carried);
        let valid = self.valid;
        self.run_from_base(&context, count, Micros(i64::MAX));
        let ran = self.latest().cloned();
        self.valid = valid;
        self.base = Some(base);
        ran
    }

    /// Takes the first `count` commands out of the window, with what was met and heard while they ran.
    fn take_acked(&mut self, count: usize) -> TakenOut {
        self.valid = self.valid.saturating_sub(count);
        let (mut touches, mut effects) = (Vec::new(), Vec::new());
        let command = |mut entry: Entry<G::Body>| {
            touches.append(&mut entry.touches);
            effects.extend(entry.effects.into_iter().map(|effect| (entry.command.seq, effect)));
            entry.command
        };
        TakenOut { commands: self.entries.drain(..count).map(command).collect(), touches, effects }
    }

    /// Runs again what has run before, and returns how many commands that are. New commands wait for their frame, where
    /// their effects are heard.
    fn run_again(&mut self, context: &Context<'_, G>) -> u32 {
        let first_runs = self.first_runs;
        let count = self.entries.iter().take_while(|e| e.command.seq <= first_runs).count();
        let ran = self.run_from_base(context, count, self.push);
        self.ran_for_correction += ran;
        ran
    }

    /// Runs the first `count` commands again from the base, unused.
    fn run_from_base(&mut self, context: &Context<'_, G>, count: usize, push: Micros) -> u32 {
        self.valid = 0;
        let mut unused = CommandOutput { effects: Vec::new(), fires: Vec::new(), touches: Vec::new() };
        self.run_window(context, count, push, &mut unused)
    }
}

/// Usercmds that the server has dealt with.
struct TakenOut {
    commands: Vec<Usercmd>,
    touches: Vec<Touch>,
    effects: Vec<(CommandSeq, Effect)>,
}

impl<B> Entry<B> {
    fn time(&self) -> Micros {
        Micros::from_ms(i64::from(self.command.input.msec))
    }
}

/// Lets shots through only while a command runs for the first time, and keeps its effects.
struct Running<'a, F> {
    first: bool,
    with_effects: bool,
    seq: CommandSeq,
    fires: u8,
    effects: Vec<Effect>,
    out: &'a mut CommandOutput<F>,
}

impl<F> Sink<F> for Running<'_, F> {
    fn effect(&mut self, effect: Effect) {
        if self.with_effects {
            self.effects.push(effect);
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
