//! Prediction and reconciliation (Bernier 2001, "Client Side Prediction"): a sliding window of unacknowledged usercmds,
//! each with the body after it.
//!
//! When the acked body equals the prediction for that usercmd, nothing runs again. Otherwise the acked body, with the
//! client-only fields copied into it, becomes the new base. All later usercmds then run again from it.
//!
//! Reconciliation compares the server's body with the prediction made in play, moved as far as the body's carrier moved
//! since the last snapshot. Under `prediction.among = acking-packet`, the acked usercmds first run again among the bodies
//! of the acking snapshot, as on the server.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::cause::{CauseSearch, MissFinding};
use crate::game::{
    AckedPrediction, Body, CellKind, Effect, Game, GameInput, LostInput, PredictionGrade, Scene, Scope, Sink, Touch,
    moved_by_carrier, shown_by_either,
};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{Comparison, Correction, FieldMisprediction, Setup};
use crate::push_bounded;
use crate::settings::{Among, OnLost, PredictionMode, Settings};
use crate::state::{state, value};
use hitreg_log::record::cells_of;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// The unacknowledged usercmds, and the acked state that they start from.
pub(super) struct Window<G: Game> {
    mode: PredictionMode,
    /// The most time that is predicted beyond the server's state: QuakeWorld's `pushlatency`, with the sign reversed.
    predicted_max: Micros,
    /// The predicted fields.
    fields: PredictedFields,
    among: Among,
    lost_input: LostInput,
    base: Option<G::Body>,
    /// The usercmd that the base follows.
    base_ack: CommandSeq,
    /// The newest usercmd that was dropped before its ack.
    newest_dropped: CommandSeq,
    /// The snapshot of the base.
    base_frame: Option<Arc<Frame<G::Body>>>,
    /// Whether the causes of corrections are searched for.
    has_causes: bool,
    /// Limits the search for causes.
    cause_search: CauseSearch,
    /// The last usercmd before the base, for hypotheses about replacements of lost usercmds.
    base_command: Option<Usercmd>,
    /// Sorted by number, without gaps.
    entries: VecDeque<PredictedUsercmd<G::Body>>,
    last_seq: CommandSeq,
    /// How many entries, from the first, have a body that is up to date.
    predicted_count: usize,
    /// The newest usercmd that has run at least once.
    newest_run: CommandSeq,
    ran_for_correction: u32,
    /// Effects that usercmds had when first run, and not when run again. The next correction reports them.
    cancelled_effects: Vec<(CommandSeq, Effect)>,
    /// Effects of usercmds that the server acked before they were predicted. The next frame plays them.
    late_effects: Vec<Effect>,
    /// The last usercmds that packets repeat or that the server may still ack, and when they were made.
    recent: VecDeque<(Usercmd, Micros)>,
}

struct PredictedUsercmd<B> {
    command: Usercmd,
    after: Option<B>,
    touches: Vec<Touch>,
    /// Its effects that were played and not cancelled.
    effects: Vec<Effect>,
}

/// The entries of the window that a snapshot acks, by what they hold.
struct AckedEntries {
    commands: Vec<Usercmd>,
    touches: Vec<Touch>,
    effects: Vec<(CommandSeq, Effect)>,
}

/// The result of [`Window::reconcile`].
pub(super) struct Reconciled {
    pub(super) comparison: Option<Comparison>,
    pub(super) correction: Option<Correction>,
    /// Whether a carrier moved the predicted body.
    pub(super) is_carried: bool,
}

/// A prediction compared with the server's body.
struct GradedPrediction {
    grade: PredictionGrade,
    errors: Vec<FieldMisprediction>,
}

/// The most usercmds that a client keeps: two seconds at 1000 Hz.
const USERCMDS_KEPT_MAX: usize = 2048;

value!(PredictedUsercmd<B: Body> { command, after, touches, effects });
state!(Window<G: Game> {
    base,
    base_ack,
    newest_dropped,
    base_frame,
    cause_search,
    base_command,
    entries,
    last_seq,
    predicted_count,
    newest_run,
    ran_for_correction,
    cancelled_effects,
    late_effects,
    recent,
} but { mode, predicted_max, fields, among, lost_input, has_causes } if is_valid);

impl<G: Game> Window<G> {
    fn is_valid(&self) -> bool {
        let in_order = self.recent.iter().zip(self.recent.iter().skip(1)).all(|(a, b)| a.0.seq.next() == b.0.seq);
        in_order
            && self.recent.len() <= USERCMDS_KEPT_MAX
            && self.predicted_count <= self.entries.len()
            && self.entries.len() <= USERCMDS_KEPT_MAX
    }

    pub(super) fn new(settings: &Settings) -> Window<G> {
        Window {
            mode: settings.prediction.mode,
            predicted_max: Micros::from_ms(-settings.prediction.push_latency_ms),
            fields: PredictedFields::new::<G::Body>(settings.prediction.mode),
            among: settings.prediction.among,
            lost_input: LostInput {
                backups: (settings.client.redundancy - 1).max(0) as usize,
                repeats: settings.server.on_lost_command == OnLost::Repeat,
            },
            base: None,
            base_ack: CommandSeq(0),
            newest_dropped: CommandSeq(0),
            base_frame: None,
            has_causes: true,
            cause_search: CauseSearch::default(),
            base_command: None,
            entries: VecDeque::new(),
            last_seq: CommandSeq(0),
            predicted_count: 0,
            newest_run: CommandSeq(0),
            ran_for_correction: 0,
            cancelled_effects: Vec::new(),
            late_effects: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    pub(super) fn next_seq(&self) -> CommandSeq {
        self.last_seq.next()
    }

    pub(super) fn number_from(&mut self, first: CommandSeq) {
        self.last_seq = CommandSeq(first.0.saturating_sub(1));
    }

    /// Stops searching for the causes of corrections.
    pub(super) fn skip_causes(&mut self) {
        self.has_causes = false;
    }

    /// Adds a usercmd made at `now`.
    pub(super) fn push(&mut self, now: Micros, command: Usercmd) {
        self.last_seq = command.seq;
        self.recent.push_back((command.clone(), now));
        let entry = PredictedUsercmd { command, after: None, touches: Vec::new(), effects: Vec::new() };
        if let Some(oldest) = push_bounded(&mut self.entries, entry, USERCMDS_KEPT_MAX) {
            // The server has been silent for long. Prediction goes on when the server has acked the newest usercmd that
            // was dropped.
            self.newest_dropped = oldest.command.seq;
            self.predicted_count = self.predicted_count.saturating_sub(1);
        }
        // The newest acked usercmd gives the round trip, and packets repeat the last usercmds.
        let kept = (self.entries.len().max(self.lost_input.backups) + 1).min(USERCMDS_KEPT_MAX);
        let excess = self.recent.len().saturating_sub(kept);
        self.recent.drain(..excess);
    }

    /// Returns the time at which a usercmd was made, and its server time.
    pub(super) fn times_of(&self, seq: CommandSeq) -> Option<(Micros, Micros)> {
        let first = self.recent.front()?.0.seq;
        self.recent.get(seq.0.checked_sub(first.0)? as usize).map(|(command, at)| (*at, command.server_time))
    }

    /// Returns the newest `count` usercmds, oldest first.
    pub(super) fn newest(&self, count: usize) -> Vec<Usercmd> {
        let skip = self.recent.len().saturating_sub(count);
        self.recent.iter().skip(skip).map(|(command, _)| command.clone()).collect()
    }

    /// Returns the body after the last predicted usercmd, or the acked body when nothing is predicted.
    pub(super) fn latest(&self) -> Option<&G::Body> {
        match self.predicted_count.checked_sub(1) {
            Some(last) => self.entries.get(last).and_then(|e| e.after.as_ref()),
            None => self.base.as_ref(),
        }
    }

    /// Runs the usercmds that have not run yet, within the limit of prediction. `acked_until` is the time at which a
    /// usercmd was made that the server acks now. Returns how many usercmds ran, including the ones that the last
    /// reconciliation ran again.
    ///
    /// QuakeWorld's client also runs a part of the next usercmd, up to the limit. This client runs whole usercmds.
    pub(super) fn advance(
        &mut self,
        context: &PredictionContext<'_, G>,
        acked_until: Micros,
        out: &mut PredictedOutput<G::Fire>,
    ) -> u32 {
        let again = std::mem::take(&mut self.ran_for_correction);
        out.effects.append(&mut self.late_effects);
        let made_until = acked_until + self.predicted_max;
        let is_due = |entry: &&PredictedUsercmd<G::Body>| {
            self.times_of(entry.command.seq).is_some_and(|(made_at, _)| made_at <= made_until)
        };
        let due_count = self.entries.iter().skip(self.predicted_count).take_while(is_due).count();
        again + self.run_window(context, self.predicted_count + due_count, out)
    }

    /// Runs those of the first `until` usercmds that have no up-to-date body.
    fn run_window(
        &mut self,
        context: &PredictionContext<'_, G>,
        until: usize,
        out: &mut PredictedOutput<G::Fire>,
    ) -> u32 {
        if self.mode == PredictionMode::Off || self.has_gap() {
            return 0;
        }
        let Some(base) = &self.base else { return 0 };
        // The server sends all effects to clients that do not predict weapons.
        let with_effects = context.setup.settings.predicts_weapons();
        let mut ran = 0;
        while self.predicted_count < until {
            let mut touches = std::mem::take(&mut self.entries[self.predicted_count].touches);
            touches.clear();
            let before = match self.predicted_count.checked_sub(1) {
                Some(last) => self.entries[last].after.as_ref().unwrap_or(base),
                None => base,
            };
            let entry = &self.entries[self.predicted_count];
            let is_first_run = entry.command.seq > self.newest_run;
            let seq = entry.command.seq;
            let mut sink =
                PredictionSink { is_first_run, with_effects, seq, fire_count: 0, effects: Vec::new(), touches, out };
            let after = context.run(before, &entry.command, &mut sink);
            let PredictionSink { effects, touches, .. } = sink;
            self.newest_run = self.newest_run.max(seq);
            let entry = &mut self.entries[self.predicted_count];
            entry.after = Some(after);
            if is_first_run {
                out.effects.extend(&effects);
                entry.effects = effects;
            } else {
                let is_gone = |effect: &mut Effect| !effects.iter().any(|again| again.kind == effect.kind);
                self.cancelled_effects.extend(entry.effects.extract_if(.., is_gone).map(|effect| (seq, effect)));
            }
            entry.touches = touches;
            self.predicted_count += 1;
            ran += 1;
        }
        ran
    }

    /// Returns whether usercmds are missing between the base and the first one that is kept.
    fn has_gap(&self) -> bool {
        self.newest_dropped > self.base_ack
    }

    /// Reconciles with everything that a snapshot acks. `authoritative` is the client's own body in the snapshot.
    /// Usercmds that run again run among `known_entities`.
    pub(super) fn reconcile(
        &mut self,
        context: &PredictionContext<'_, G>,
        known_entities: &[(EntityId, G::Body)],
        snapshot: &Snapshot<G::Body>,
        authoritative: &G::Body,
    ) -> Reconciled {
        let acked_count = self.entries.iter().take_while(|e| e.command.seq <= snapshot.ack).count();
        // An ack of usercmds that follow dropped ones, or of these, has nothing to compare.
        let is_past_gap = self.has_gap() && snapshot.ack > self.base_ack;
        let as_played = if is_past_gap { None } else { self.body_as_played(acked_count) };
        if acked_count > self.predicted_count {
            self.play_late(context, acked_count);
        }
        let before = self.base_frame.replace(Arc::clone(&snapshot.frame));
        let before = before.as_ref().map_or(&[][..], |frame| &frame.entities);
        let checks = acked_count > 0 && self.mode != PredictionMode::Off;
        let as_server_ran = match self.among {
            Among::AckingPacket if checks && !is_past_gap => self.run_as_server(context, before, acked_count),
            Among::AckingPacket | Among::Known => None,
        };
        let carried = as_played.as_ref().map(|played| moved_by_carrier::<G>(before, context.entities, played));
        let predicted = as_server_ran.as_ref().or(carried.as_ref()).unwrap_or(authoritative);
        let AckedEntries { commands, touches, effects } = self.take_acked(acked_count);
        let last_command = self.base_command.take();
        self.base_command = commands.last().or(last_command.as_ref().filter(|_| !is_past_gap)).cloned();
        self.base_ack = snapshot.ack;
        let from = self.base.take();
        let acked = AckedPrediction {
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
        let resumed = G::resume(&context.setup.rules, &acked);
        self.base = Some(resumed.clone());
        let known_context = PredictionContext { entities: known_entities, ..*context };
        let reran = if as_played.as_ref() == Some(&resumed) { 0 } else { self.run_again(&known_context) };
        if from.is_none() {
            // Before the first snapshot, the screen showed nothing for shots to hit.
            self.play_late(&known_context, self.entries.len());
        }
        // A player without an avatar has nothing to predict.
        let was_predicted = !predicted.is_absent() && (as_server_ran.is_some() || as_played.is_some());
        let graded = if was_predicted { self.grade_prediction(predicted, authoritative, &resumed) } else { None };
        let Some(GradedPrediction { grade, errors }) = graded else {
            return Reconciled { comparison: None, correction: None, is_carried: false };
        };
        let graded_as_played = (carried.as_ref().filter(|_| as_server_ran.is_some()))
            .and_then(|played| self.grade_prediction(played, authoritative, &resumed));
        // Between two acks, the server may change the body, for example by a push.
        let is_compared = checks || self.mode != PredictionMode::Off && !errors.is_empty();
        // An absent body is nowhere.
        let are_present = !predicted.is_absent() && !authoritative.is_absent();
        let known = |distance: f32| if are_present { distance } else { f32::NAN };
        let comparison = is_compared.then(|| Comparison {
            command: snapshot.ack,
            commands: commands.len() as u32,
            grade,
            as_played: graded_as_played.map(|graded| graded.grade),
            error_units: known(predicted.offset_from(authoritative).length()),
            velocity_error_units_per_s: known(predicted.velocity().distance(authoritative.velocity())),
            on_ground: from.as_ref().is_some_and(G::on_ground),
        });
        let mut cancelled_effects = std::mem::take(&mut self.cancelled_effects);
        let finding = (!errors.is_empty()).then(|| match self.has_causes {
            true => self.cause_search.explain(context, &self.fields, &acked),
            false => MissFinding::not_examined(),
        });
        let last_command = acked.last_command;
        let correction = finding.map(|finding| {
            let MissFinding { explanation, if_all_ran, is_nearer_with_loss, server_effects } = finding;
            if let Some(server_effects) = server_effects {
                let has = |seq, kind| server_effects.iter().any(|(of, effect)| *of == seq && effect.kind == kind);
                cancelled_effects.extend(effects.into_iter().filter(|(seq, effect)| !has(*seq, effect.kind)));
            }
            Correction {
                command: snapshot.ack,
                errors,
                reran,
                explanation,
                if_all_ran,
                is_nearer_with_loss,
                usercmds: last_command.into_iter().chain(commands).collect(),
                cancelled_effects,
            }
        });
        let is_carried = self.mode != PredictionMode::Off && carried != as_played;
        Reconciled { comparison, correction, is_carried }
    }

    /// Returns the body predicted in play for the last of the acked usercmds. Without a new ack, this is the base: the
    /// comparison then shows what the server changed since the last snapshot.
    fn body_as_played(&self, acked_count: usize) -> Option<G::Body> {
        acked_count.checked_sub(1).map_or_else(|| self.base.clone(), |last| self.entries[last].after.clone())
    }

    /// Removes the first `count` entries, which the server has acked.
    fn take_acked(&mut self, count: usize) -> AckedEntries {
        self.predicted_count = self.predicted_count.saturating_sub(count);
        let mut acked = AckedEntries { commands: Vec::with_capacity(count), touches: Vec::new(), effects: Vec::new() };
        for PredictedUsercmd { command, after: _, touches, effects } in self.entries.drain(..count) {
            acked.touches.extend(touches);
            acked.effects.extend(effects.into_iter().map(|effect| (command.seq, effect)));
            acked.commands.push(command);
        }
        acked
    }

    /// Grades a prediction, and finds its wrong fields. `resumed` is the body from which prediction resumes. Returns
    /// `None` when the game cannot compare the two bodies.
    fn grade_prediction(
        &self,
        predicted: &G::Body,
        authoritative: &G::Body,
        resumed: &G::Body,
    ) -> Option<GradedPrediction> {
        let grade = G::grade(predicted, authoritative)?;
        // A difference within the rounding of a recording is not a wrong prediction.
        let may_be_wrong = grade == PredictionGrade::Miss || G::IMPORTED.is_none_or(|imported| !imported.is_rounded);
        // Nor is a value that prediction keeps when it resumes.
        let is_wrong = may_be_wrong && resumed != predicted;
        let errors = if is_wrong { self.fields.errors(predicted, authoritative, resumed) } else { Vec::new() };
        // The game's grade is of place and speed. Another wrong field is no exact prediction either.
        let is_near = grade == PredictionGrade::Exact && !errors.is_empty();
        Some(GradedPrediction { grade: if is_near { PredictionGrade::Near } else { grade }, errors })
    }

    /// Runs the first `count` usercmds again as the server ran them, after it had moved the other bodies. They start
    /// from the base and run among the bodies of the acking snapshot. A body missing there comes from the snapshot
    /// before. Returns the resulting body.
    fn run_as_server(
        &mut self,
        context: &PredictionContext<'_, G>,
        before: &[(EntityId, G::Body)],
        count: usize,
    ) -> Option<G::Body> {
        let base = self.base.take()?;
        let entities = shown_by_either(before, context.entities);
        let context = PredictionContext { entities: &entities, ..*context };
        let carried = G::carry(&context.setup.rules, &context.scene(), before, &base);
        self.base = Some(carried);
        let predicted_count = self.predicted_count;
        self.run_from_base(&context, count);
        let ran = self.latest().cloned();
        self.predicted_count = predicted_count;
        self.base = Some(base);
        ran
    }

    /// Runs those of the first `count` usercmds that were not predicted in time, and keeps their effects but not their
    /// shots. The server sends no effects that a client predicts.
    fn play_late(&mut self, context: &PredictionContext<'_, G>, count: usize) {
        let predicted_count = self.predicted_count;
        let mut out = PredictedOutput { effects: Vec::new(), fires: Vec::new() };
        self.run_window(context, count, &mut out);
        self.late_effects.append(&mut out.effects);
        self.predicted_count = predicted_count;
    }

    /// Runs all usercmds again that have run before, and returns their number. New usercmds wait for their frame, which
    /// plays their effects.
    fn run_again(&mut self, context: &PredictionContext<'_, G>) -> u32 {
        let newest_run = self.newest_run;
        let count = self.entries.iter().take_while(|e| e.command.seq <= newest_run).count();
        let ran = self.run_from_base(context, count);
        self.ran_for_correction += ran;
        ran
    }

    /// Runs the first `count` usercmds again from the base and discards their output.
    fn run_from_base(&mut self, context: &PredictionContext<'_, G>, count: usize) -> u32 {
        self.predicted_count = 0;
        let mut unused = PredictedOutput { effects: Vec::new(), fires: Vec::new() };
        self.run_window(context, count, &mut unused)
    }
}

/// The output of predicted usercmds.
pub(super) struct PredictedOutput<F> {
    pub(super) effects: Vec<Effect>,
    pub(super) fires: Vec<PredictedFire<F>>,
}

/// A shot that a predicted usercmd fired.
pub(super) struct PredictedFire<F> {
    pub(super) command: CommandSeq,
    /// The index of the shot within the usercmd, from 0.
    pub(super) index: u8,
    pub(super) fire: F,
}

/// A sink that passes shots on only in a usercmd's first run, and collects effects.
struct PredictionSink<'a, F> {
    is_first_run: bool,
    with_effects: bool,
    seq: CommandSeq,
    fire_count: u8,
    effects: Vec<Effect>,
    touches: Vec<Touch>,
    out: &'a mut PredictedOutput<F>,
}

impl<F> Sink<F> for PredictionSink<'_, F> {
    fn effect(&mut self, effect: Effect) {
        if self.with_effects {
            self.effects.push(effect);
        }
    }
    fn fire(&mut self, fire: F) {
        if self.is_first_run {
            self.out.fires.push(PredictedFire { command: self.seq, index: self.fire_count, fire });
        }
        self.fire_count += 1;
    }
    fn touch(&mut self, touch: Touch) {
        self.touches.push(touch);
    }
}

/// The inputs of prediction apart from the window.
pub(super) struct PredictionContext<'a, G: Game> {
    pub(super) setup: &'a Setup<G>,
    pub(super) player: PlayerId,
    pub(super) entities: &'a [(EntityId, G::Body)],
}

impl<G: Game> PredictionContext<'_, G> {
    pub(super) fn run(&self, body: &G::Body, command: &Usercmd, sink: &mut impl Sink<G::Fire>) -> G::Body {
        G::step_body(&self.setup.rules, &self.scene(), body, &G::Input::read_usercmd(command), sink)
    }

    fn scene(&self) -> Scene<'_, G::Body> {
        let weapons = self.setup.settings.predicts_weapons();
        Scene { seed: self.setup.seed, player: self.player, entities: self.entities, weapons }
    }
}

/// The predicted fields of a body, and the comparison of their values with the server's.
pub(super) struct PredictedFields {
    /// The index, kind and cells of each.
    fields: Vec<(usize, CellKind, Range<usize>)>,
}

impl PredictedFields {
    pub(super) fn new<B: Body>(mode: PredictionMode) -> PredictedFields {
        let is_predicted = |scope: Scope| match scope {
            Scope::Movement => mode != PredictionMode::Off,
            Scope::Weapons => mode == PredictionMode::Weapons,
            Scope::Status | Scope::ClientOnly => false,
        };
        let all = B::fields();
        let predicted = cells_of(&all).enumerate().filter(|(_, (field, _))| is_predicted(field.scope));
        PredictedFields { fields: predicted.map(|(index, (field, place))| (index, field.kind, place)).collect() }
    }

    /// Returns whether all predicted fields have the server's values.
    pub(super) fn are_equal<B: Body>(&self, predicted: &B, authoritative: &B) -> bool {
        if predicted.is_absent() != authoritative.is_absent() {
            return false;
        }
        let cells = cells_of_all([predicted, authoritative]);
        let (ours, theirs) = cells.split_at(B::CELLS);
        self.fields.iter().all(|(_, _, place)| ours[place.clone()] == theirs[place.clone()])
    }

    /// Returns the predicted fields that differ from the server's and that `resumed` does not keep. An absent body has no
    /// fields, so only its absence is an error.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B, resumed: &B) -> Vec<FieldMisprediction> {
        if predicted.is_absent() != authoritative.is_absent() {
            let [ours, theirs] = [predicted, authoritative].map(|body| body.is_absent().into());
            let error = FieldMisprediction { field: None, predicted: ours, authoritative: theirs };
            return if resumed.is_absent() == predicted.is_absent() { Vec::new() } else { vec![error] };
        }
        let cells = cells_of_all([predicted, authoritative, resumed]);
        let (ours, others) = cells.split_at(B::CELLS);
        let (theirs, kept) = others.split_at(B::CELLS);
        let is_wrong = |place: &Range<usize>| {
            let ours = &ours[place.clone()];
            *ours != theirs[place.clone()] && *ours != kept[place.clone()]
        };
        let error = |(field, kind, place): &(usize, CellKind, Range<usize>)| FieldMisprediction {
            field: Some(*field),
            predicted: kind.number(&ours[place.clone()]),
            authoritative: kind.number(&theirs[place.clone()]),
        };
        self.fields.iter().filter(|(_, _, place)| is_wrong(place)).map(error).collect()
    }
}

/// Returns the cells of several bodies, one after the other.
fn cells_of_all<B: Body, const N: usize>(bodies: [&B; N]) -> Vec<u32> {
    let mut cells = Vec::with_capacity(N * B::CELLS);
    bodies.into_iter().for_each(|body| body.append_to(&mut cells));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::DotBody;
    use crate::game::body;

    body! {
        struct Boat {
            Status id: u64,
            Movement east: f64,
        }
    }

    #[test]
    fn a_wrong_double_is_one_error() {
        let boat = |east| Boat { id: 1, east };
        let errors = |ours, theirs| {
            let fields = PredictedFields::new::<Boat>(PredictionMode::Movement);
            fields.errors(&boat(ours), &Boat { id: 2, ..boat(theirs) }, &boat(theirs))
        };
        // The high words are the same, then both words differ.
        for (ours, theirs) in [(0.1_f64, 0.1_f64.next_up()), (0.1, -1e9)] {
            let [predicted, authoritative] = [ours, theirs].map(|east| east.to_bits() as i64);
            assert_eq!(errors(ours, theirs), [FieldMisprediction { field: Some(1), predicted, authoritative }]);
        }
        assert_eq!(errors(0.1, 0.1), []);
    }

    /// The zeros of an absent body are no values of its fields.
    #[test]
    fn an_absent_body_is_one_error() {
        let fields = PredictedFields::new::<Boat>(PredictionMode::Movement);
        let [boat, gone] = [Boat { id: 1, east: 3.0 }, Boat::default()];
        let absent = |predicted, authoritative| [FieldMisprediction { field: None, predicted, authoritative }];
        assert_eq!(fields.errors(&boat, &gone, &gone), absent(0, 1));
        assert_eq!(fields.errors(&gone, &boat, &boat), absent(1, 0));
        assert_eq!(fields.errors(&gone, &boat, &gone), []);
        assert_eq!(fields.errors(&gone, &gone, &gone), []);
        assert!(!fields.are_equal(&boat, &gone) && !fields.are_equal(&gone, &boat) && fields.are_equal(&gone, &gone));
    }

    #[test]
    fn errors_are_predicted_fields_that_differ_and_are_not_kept() {
        let found = |mode, [ours, theirs, kept]: [u32; 3]| {
            let dot = |shots| DotBody { shots, ..DotBody::default() };
            let fields = PredictedFields::new::<DotBody>(mode);
            let are_equal = fields.errors(&dot(ours), &dot(theirs), &dot(theirs)).is_empty();
            assert_eq!(fields.are_equal(&dot(ours), &dot(theirs)), are_equal);
            fields.errors(&dot(ours), &dot(theirs), &dot(kept)).len()
        };
        let weapons = PredictionMode::Weapons;
        assert_eq!(
            [[1, 2, 2], [1, 2, 3], [1, 2, 1], [1, 1, 2], [1, 1, 1]].map(|all| found(weapons, all)),
            [1, 1, 0, 0, 0]
        );
        assert_eq!(found(PredictionMode::Movement, [1, 2, 2]), 0);
    }
}
