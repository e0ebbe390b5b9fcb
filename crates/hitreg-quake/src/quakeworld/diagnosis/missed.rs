//! A wrong prediction in terms of movement, with all of its inputs, so that it can run again under other assumptions.

use crate::bsp::quake::QuakeMap;
use crate::quakeworld::body::{FIRST_MODEL, QuakeWorldBody, command_of};
use crate::quakeworld::demo::DemoEvent;
use crate::quakeworld::extra::events_of;
use crate::quakeworld::movement::{
    Dialect, MoveOutcome, MoveRunner, QuakeWorldMoveVars, QuakeWorldPlayerState, QuakeWorldUsercmd, Surroundings,
    WorldSolid,
};
use crate::quakeworld::rules::QuakeWorldRules;
use crate::quakeworld::surroundings;
use hitreg_netcode::game::{AckedPrediction, LostInput, Touch};

/// The inputs of a prediction, and the data to judge it.
pub(crate) struct MissedPrediction<'a> {
    dialect: Dialect,
    vars: &'a QuakeWorldMoveVars,
    pub(super) map: &'a QuakeMap,
    /// The bodies among which the server ran the commands, and how far they had moved.
    pub(super) solids: Vec<WorldSolid>,
    /// The start state of the prediction.
    pub(super) from: QuakeWorldPlayerState,
    /// The recorded state that the start was reconciled with.
    pub(super) base: QuakeWorldBody,
    /// The command before the first, if any. A server repeats it when too many packets are lost.
    pub(super) before: Option<QuakeWorldUsercmd>,
    /// The commands, oldest first.
    pub(super) commands: Vec<QuakeWorldUsercmd>,
    /// How the server handles lost commands.
    pub(super) lost_input: LostInput,
    /// Other players in the previous snapshot: slot and origin.
    pub(super) players_before: Vec<(u8, [f32; 3])>,
    /// Events in the acking packet.
    pub(super) events: Vec<DemoEvent>,
    /// The recorded state after the last command.
    pub(super) recorded: QuakeWorldBody,
    /// Contacts of the body in the wrong prediction.
    pub(super) touches: &'a [Touch],
    /// Result of the commands among these bodies.
    pub(super) run: MoveOutcome,
}

impl<'a> MissedPrediction<'a> {
    /// Returns `None` where movement cannot run: without a start, without movement settings, or from an invalid
    /// position.
    pub(crate) fn new(
        rules: &'a QuakeWorldRules,
        acked: &AckedPrediction<'a, QuakeWorldBody>,
    ) -> Option<MissedPrediction<'a>> {
        let from = acked.from.filter(|from| from.is_finite())?;
        let own = acked.scene.player.entity();
        let base = acked.before.iter().find(|(entity, _)| *entity == own).map(|(_, body)| *body)?;
        let players = acked.before.iter().filter(|(entity, _)| *entity < FIRST_MODEL && *entity != own);
        let state = from.player_state();
        let mut missed = MissedPrediction {
            dialect: rules.server.dialect,
            vars: rules.move_vars.get(usize::from(from.move_vars))?,
            map: &rules.map,
            solids: surroundings::solids(&rules.map, &acked.surroundings(), acked.before, own, from),
            from: state,
            base,
            before: acked.last_command.as_ref().map(|command| command_of(&command.input)),
            commands: acked.commands.iter().map(|command| command_of(&command.input)).collect(),
            lost_input: acked.lost_input,
            players_before: players.map(|(entity, body)| (entity.0 as u8, body.origin.to_array())).collect(),
            events: events_of(&acked.extras).ok()?,
            recorded: *acked.authoritative,
            touches: acked.touches,
            run: MoveOutcome::at(state),
        };
        missed.run = missed.runner().run(&state, &missed.commands);
        Some(missed)
    }

    /// Builds a test case from a stretch of usercmds, with the recorded or another outcome.
    #[cfg(test)]
    pub(super) fn of_stretch(
        rules: &'a QuakeWorldRules,
        stretch: &crate::quakeworld::import::AckedUsercmds<'a>,
        recorded: QuakeWorldBody,
        lost_input: LostInput,
    ) -> MissedPrediction<'a> {
        let own = rules.player.entity();
        let base = stretch.before.iter().find(|(entity, _)| *entity == own).expect("a state").1;
        let players = stretch.before.iter().filter(|(entity, _)| *entity < FIRST_MODEL && *entity != own);
        let mut missed = MissedPrediction {
            dialect: rules.server.dialect,
            vars: stretch.vars,
            map: &rules.map,
            solids: stretch.solids.clone(),
            from: stretch.from,
            base,
            before: None,
            commands: stretch.commands.clone(),
            lost_input,
            players_before: players.map(|(entity, body)| (entity.0 as u8, body.origin.to_array())).collect(),
            events: stretch.events.to_vec(),
            recorded,
            touches: &[],
            run: MoveOutcome::at(stretch.from),
        };
        missed.run = missed.runner().run(&missed.from, &missed.commands);
        missed
    }

    pub(super) fn runner(&self) -> MoveRunner<'_> {
        self.runner_among(&self.solids)
    }

    pub(super) fn runner_among<'b>(&'b self, solids: &'b [WorldSolid]) -> MoveRunner<'b> {
        MoveRunner { dialect: self.dialect, vars: self.vars, world: Surroundings { map: self.map, solids } }
    }
}
