//! A prediction that missed, in terms of movement: everything that it was made from, so that it can be run again under
//! other assumptions.

use crate::bsp::quake::Map;
use crate::quakeworld::body::{BodyRow, FIRST_MODEL, command_of};
use crate::quakeworld::demo::{Event, OriginWire, OwnState};
use crate::quakeworld::extra::events_of;
use crate::quakeworld::movement::{Dialect, MoveVars, PlayerState, Run, Runner, Solid, UserCmd, World};
use crate::quakeworld::rules::Rules;
use crate::quakeworld::surroundings;
use hitreg_netcode::game::{Acked, LostInput, Touch};

/// What a prediction was made from, and what there is to judge it by.
pub(crate) struct Missed<'a> {
    dialect: Dialect,
    vars: &'a MoveVars,
    pub(super) map: &'a Map,
    /// The bodies that the server ran the commands among, and how far they had moved.
    pub(super) solids: Vec<Solid>,
    /// How the server's origins stand on the wire.
    pub(super) wire: OriginWire,
    /// The state predicted from.
    pub(super) from: PlayerState,
    /// The recorded state that it was reconciled with.
    pub(super) base: OwnState,
    /// The last command before, if any: a server repeats it when too much is lost.
    pub(super) before: Option<UserCmd>,
    /// The commands, oldest first.
    pub(super) commands: Vec<UserCmd>,
    /// What the server does about lost commands.
    pub(super) lost_input: LostInput,
    /// Other players as the snapshot before showed them: slot and origin.
    pub(super) players_before: Vec<(u8, [f32; 3])>,
    /// What the acking packet told.
    pub(super) events: Vec<Event>,
    /// What the server says of the state after the last command.
    pub(super) recorded: OwnState,
    /// What the body met in the prediction that missed.
    pub(super) touches: &'a [Touch],
    /// Where the commands lead among those bodies.
    pub(super) run: Run,
}

impl<'a> Missed<'a> {
    /// `None` where movement cannot be run: without a start, without movement rules, from a place that is none.
    pub(crate) fn new(rules: &'a Rules, acked: &Acked<'a, BodyRow>) -> Option<Missed<'a>> {
        let from = acked.from.filter(|from| from.is_finite())?;
        let own = acked.scene.player.entity();
        let base = acked.before.iter().find(|(entity, _)| *entity == own).map(|(_, body)| body.own())?;
        let players = acked.before.iter().filter(|(entity, _)| *entity < FIRST_MODEL && *entity != own);
        let state = from.player_state();
        let mut missed = Missed {
            dialect: rules.server.dialect,
            vars: rules.move_vars.get(usize::from(from.move_vars))?,
            map: &rules.map,
            solids: surroundings::solids(&rules.map, &acked.surroundings(), acked.before, own, from),
            wire: acked.authoritative.origin_wire(),
            from: state,
            base,
            before: acked.last_command.map(|command| command_of(&command.input)),
            commands: acked.commands.iter().map(|command| command_of(&command.input)).collect(),
            lost_input: acked.lost_input,
            players_before: players.map(|(entity, body)| (entity.0 as u8, body.origin.to_array())).collect(),
            events: events_of(&acked.extras).ok()?,
            recorded: acked.authoritative.own(),
            touches: acked.touches,
            run: Run::at(state),
        };
        missed.run = missed.runner().run(&state, &missed.commands);
        Some(missed)
    }

    /// For tests: a stretch of usercmds as it came to pass, or with another outcome.
    #[cfg(test)]
    pub(super) fn of_stretch(
        rules: &'a Rules,
        stretch: &crate::quakeworld::import::Stretch<'a>,
        recorded: OwnState,
        lost_input: LostInput,
    ) -> Missed<'a> {
        let own = rules.player.entity();
        let base = stretch.before.iter().find(|(entity, _)| *entity == own).expect("a state").1.own();
        let players = stretch.before.iter().filter(|(entity, _)| *entity < FIRST_MODEL && *entity != own);
        let mut missed = Missed {
            dialect: rules.server.dialect,
            vars: stretch.vars,
            map: &rules.map,
            solids: stretch.solids.clone(),
            wire: rules.server.origin_wire(),
            from: stretch.from,
            base,
            before: None,
            commands: stretch.commands.clone(),
            lost_input,
            players_before: players.map(|(entity, body)| (entity.0 as u8, body.origin.to_array())).collect(),
            events: stretch.events.to_vec(),
            recorded,
            touches: &[],
            run: Run::at(stretch.from),
        };
        missed.run = missed.runner().run(&missed.from, &missed.commands);
        missed
    }

    pub(super) fn runner(&self) -> Runner<'_> {
        self.runner_among(&self.solids)
    }

    pub(super) fn runner_among<'b>(&'b self, solids: &'b [Solid]) -> Runner<'b> {
        Runner { dialect: self.dialect, vars: self.vars, world: World { map: self.map, solids } }
    }
}
