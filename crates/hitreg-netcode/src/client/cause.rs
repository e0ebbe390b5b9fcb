//! The causes of wrong predictions. A cause needs evidence: the snapshot names it, the body met something in the
//! prediction or where the snapshots show it, or a hypothesis reproduces the server's state exactly.

use super::predict::{PredictedFields, PredictionContext};
use crate::game::{
    AckedPrediction, Body, Cause, Effect, Evidence, Explanation, Game, Sink, Touch, evidence, moved_by_carrier,
};
use crate::history::body_of;
use crate::state::value;
use hitreg_log::units::{CommandSeq, EntityId};
use hitreg_log::usercmd::{Input, Usercmd};

/// The number of wrong predictions that are always examined.
const ALWAYS_EXAMINED: u32 = 1_000;
/// After that, examination continues as long as one in this many has a cause. A lower share means that the client runs
/// another game, map or rules, and that further hypotheses would fail too.
const ONE_IN_EXPLAINED: u32 = 8;
/// The most hypotheses tested for one wrong prediction. This covers every run of lost usercmds in an ack of ten.
const HYPOTHESES_MAX: usize = 64;

/// Limits the search for causes by the share of examined wrong predictions whose cause was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CauseSearch {
    examined: u32,
    explained: u32,
}

value!(CauseSearch { examined, explained });

impl CauseSearch {
    /// Returns the cause of a wrong prediction. `fields` are the predicted fields.
    pub(super) fn explain<G: Game>(
        &mut self,
        context: &PredictionContext<'_, G>,
        fields: &PredictedFields,
        miss: &AckedPrediction<'_, G::Body>,
    ) -> MissFinding {
        if !self.should_continue() {
            return MissFinding::not_examined();
        }
        let found = find_cause(context, fields, miss);
        self.examined += 1;
        self.explained += u32::from(found.explanation.cause != Cause::Unknown);
        found
    }

    fn should_continue(&self) -> bool {
        self.examined < ALWAYS_EXAMINED || self.explained >= self.examined / ONE_IN_EXPLAINED
    }
}

/// The result of examining a wrong prediction.
pub(super) struct MissFinding {
    pub(super) explanation: Explanation,
    /// The explanation if the server ran all usercmds as they were made.
    pub(super) if_all_ran: Explanation,
    /// Whether a hypothesis about lost usercmds gives a place less than half as far from the server's place as the
    /// predicted one.
    pub(super) is_nearer_with_loss: bool,
    /// The effects of the usercmds as the server ran them, if known.
    pub(super) server_effects: Option<Vec<(CommandSeq, Effect)>>,
}

impl MissFinding {
    pub(super) fn not_examined() -> Self {
        MissFinding::of(Explanation::new(Cause::Unknown, evidence::NOT_EXAMINED))
    }

    fn of(explanation: Explanation) -> Self {
        MissFinding { explanation, if_all_ran: explanation, is_nearer_with_loss: false, server_effects: None }
    }
}

/// The order of causes: what the snapshot or the game says, then hypotheses that give the server's body exactly, then a
/// contact without such a test.
fn find_cause<G: Game>(
    context: &PredictionContext<'_, G>,
    fields: &PredictedFields,
    miss: &AckedPrediction<'_, G::Body>,
) -> MissFinding {
    if let Some(found) = G::explain(&context.setup.rules, miss) {
        let is_lost = found.cause == Cause::InputLost;
        let if_all_ran = if is_lost { Explanation::UNKNOWN } else { found };
        return MissFinding { if_all_ran, ..MissFinding::of(found) };
    }
    let before = miss.from.unwrap_or(miss.predicted);
    if before.is_alive() != miss.authoritative.is_alive() {
        return MissFinding::of(Explanation::new(Cause::SpawnOrDeath, evidence::SNAPSHOT));
    }
    if miss.predicted.teleports() != miss.authoritative.teleports() {
        return MissFinding::of(Explanation::new(Cause::Teleport, evidence::SNAPSHOT));
    }
    // Run again among the entities of the acking snapshot, the usercmds may meet a player or a mover who was not there
    // when they were predicted.
    let start = HypothesisState::before::<G>(miss);
    let rerun = start.clone().map(|start| start.run(context, miss.commands));
    let met = miss.touches.iter().any(|touch| matches!(touch, Touch::Player(_)))
        || rerun.as_ref().is_some_and(|rerun| rerun.notes.player.is_some());
    let met_mover = miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_)))
        || rerun.as_ref().is_some_and(|rerun| rerun.notes.has_met_mover);
    // If all usercmds give the server's body now, then other entities made the difference. The player may also have been
    // met between the two snapshots.
    let is_right = rerun.is_some_and(|rerun| fields.are_equal(&rerun.body, miss.authoritative));
    let contact =
        start.clone().filter(|_| !is_right).and_then(|start| contact_on_the_way(context, fields, miss, &start));
    let is_by_player = is_right && met || contact == Some(evidence::REPRODUCED);
    let if_all_ran = if is_by_player {
        Explanation::new(Cause::OtherPlayer, evidence::REPRODUCED)
    } else if G::was_hurt(before, miss.authoritative) {
        Explanation::new(Cause::Knockback, evidence::SNAPSHOT)
    } else if met {
        Explanation::new(Cause::OtherPlayer, evidence::TOUCHED)
    } else if met_mover {
        Explanation::new(Cause::Mover, if is_right { evidence::REPRODUCED } else { evidence::TOUCHED })
    } else {
        contact.map_or(Explanation::UNKNOWN, |evidence| Explanation::new(Cause::OtherPlayer, evidence))
    };
    // A player who pushes against another hardly moves, so a lost usercmd changes nothing. It explains nothing that the
    // usercmds explain without a loss.
    let Some(lost_from) = start.filter(|_| !is_right && !is_by_player) else { return MissFinding::of(if_all_ran) };
    let (least_units, server_effects) = search_lost_input(context, fields, miss, lost_from);
    let is_nearer_with_loss = least_units < 0.5 * miss.predicted.offset_from(miss.authoritative).length();
    let explanation = match &server_effects {
        Some(_) => Explanation::new(Cause::InputLost, evidence::REPRODUCED),
        None => if_all_ran,
    };
    MissFinding { explanation, if_all_ran, is_nearer_with_loss, server_effects }
}

/// Returns the evidence that the body met a player who moved from its place in the snapshot before to its place in the
/// acking one. The server ran the usercmds of a tick one player at a time, so the other may have moved after or before.
fn contact_on_the_way<G: Game>(
    context: &PredictionContext<'_, G>,
    fields: &PredictedFields,
    miss: &AckedPrediction<'_, G::Body>,
    start: &HypothesisState<G::Body>,
) -> Option<Evidence> {
    let count = miss.commands.len() as f32;
    let runs = [0, 1].into_iter().filter_map(|moves_ahead| {
        let mut state = start.clone();
        for (index, command) in miss.commands.iter().enumerate() {
            let entities = bodies_between::<G>(miss, (index + moves_ahead) as f32 / count);
            state = state.run(&PredictionContext { entities: &entities, ..*context }, std::slice::from_ref(command));
        }
        state.notes.player.is_some().then(|| fields.are_equal(&state.body, miss.authoritative))
    });
    runs.max().map(|is_right| if is_right { evidence::REPRODUCED } else { evidence::TOUCHED })
}

/// Returns the others at a fraction of the way between the snapshot before and the acking one.
fn bodies_between<G: Game>(miss: &AckedPrediction<'_, G::Body>, fraction: f32) -> Vec<(EntityId, G::Body)> {
    let mut bodies = miss.surroundings();
    for (id, body) in &mut bodies {
        if let Some(before) = body_of(miss.before, *id)
            && !before.is_absent()
        {
            *body = match before.teleports() == body.teleports() && !body.is_absent() {
                true => G::blend(before, body, fraction),
                false => before.clone(),
            };
        }
    }
    bodies
}

/// Returns the least distance from the server's place among the hypotheses about lost usercmds, in units, and the effects
/// of the first hypothesis that reproduces the server's body exactly. Lost usercmds are replaced as the server replaces
/// them. `before` is the state before the acked usercmds.
fn search_lost_input<G: Game>(
    context: &PredictionContext<'_, G>,
    fields: &PredictedFields,
    miss: &AckedPrediction<'_, G::Body>,
    mut before: HypothesisState<G::Body>,
) -> (f32, Option<Vec<(CommandSeq, Effect)>>) {
    let commands = miss.commands;
    let mut least_units = f32::INFINITY;
    let mut reproduces = |state: HypothesisState<G::Body>, end: usize| {
        let HypothesisState { body, notes, .. } = state.run(context, &commands[end..]);
        least_units = least_units.min(body.offset_from(miss.authoritative).length());
        fields.are_equal(&body, miss.authoritative).then_some(notes.effects)
    };
    let mut hypotheses = 0;
    for (start, first) in commands.iter().enumerate() {
        let mut replaced = before.clone();
        for (end, lost) in (start + 1..).zip(&commands[start..]) {
            hypotheses += 1;
            if hypotheses > HYPOTHESES_MAX {
                return (least_units, None);
            }
            replaced.run_replacement(context, lost);
            let found = reproduces(before.clone(), end).or_else(|| reproduces(replaced.clone(), end));
            if found.is_some() {
                return (least_units, found);
            }
        }
        before = before.run(context, std::slice::from_ref(first));
    }
    (least_units, None)
}

/// A body after some usercmds, of which the server may have lost some.
#[derive(Clone)]
struct HypothesisState<B> {
    body: B,
    /// The last usercmd that was not lost.
    last: Option<Usercmd>,
    notes: RunNotes,
}

impl<B: Body> HypothesisState<B> {
    /// Returns the state before the acked usercmds, moved by the body's carrier; `None` when nothing was predicted from
    /// it.
    fn before<G: Game<Body = B>>(miss: &AckedPrediction<'_, B>) -> Option<Self> {
        let body = moved_by_carrier::<G>(miss.before, miss.scene.entities, miss.from?);
        Some(HypothesisState { body, last: miss.last_command.clone(), notes: RunNotes::default() })
    }

    fn run<G: Game<Body = B>>(mut self, context: &PredictionContext<'_, G>, commands: &[Usercmd]) -> Self {
        for command in commands {
            self.notes.command = command.seq;
            self.body = context.run(&self.body, command, &mut self.notes);
            self.last = Some(command.clone());
        }
        self
    }

    /// Runs the usercmd that replaces a lost one, if there is one.
    fn run_replacement<G: Game<Body = B>>(&mut self, context: &PredictionContext<'_, G>, lost: &Usercmd) {
        let Some(last) = &self.last else { return };
        let input = Input { impulse: 0, ..last.input.clone() };
        self.notes.command = lost.seq;
        self.body = context.run(&self.body, &Usercmd { input, ..*lost }, &mut self.notes);
    }
}

/// Records what a body meets and which effects its usercmds have, and ignores everything else.
#[derive(Clone, Default)]
struct RunNotes {
    player: Option<EntityId>,
    has_met_mover: bool,
    /// The usercmd that is running.
    command: CommandSeq,
    effects: Vec<(CommandSeq, Effect)>,
}

impl<F> Sink<F> for RunNotes {
    fn effect(&mut self, effect: Effect) {
        self.effects.push((self.command, effect));
    }
    fn fire(&mut self, _fire: F) {}
    fn touch(&mut self, touch: Touch) {
        match touch {
            Touch::Player(id) => self.player = Some(id),
            Touch::Mover(_) => self.has_met_mover = true,
            Touch::Teleporter | Touch::WaterEdge => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_for_causes_continues_while_one_in_eight_succeeds() {
        let goes_on = |examined, explained| CauseSearch { examined, explained }.should_continue();
        assert!(goes_on(0, 0) && goes_on(999, 0) && goes_on(1_000, 125) && goes_on(8_000, 1_000));
        assert!(!goes_on(1_000, 124) && !goes_on(1_001, 0) && !goes_on(8_000, 999));
    }
}
