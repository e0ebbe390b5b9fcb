//! Why a prediction was wrong. A cause is given only on evidence: something that the snapshot says, something that the
//! body met, or a hypothesis that reproduces the server's state to the bit.

use super::context::Context;
use super::fields::Predicted;
use crate::game::{Acked, Body, Cause, Effect, Evidence, Game, Sink, Touch};
use crate::units::EntityId;
use crate::usercmd::Usercmd;

/// So many misses are looked into whatever comes of it.
const LOOKED_INTO: u32 = 1_000;
/// And then as long as one in so many has a cause: where hardly any has, the client runs another game, on another map or by other
/// rules, and the next hypothesis would not hold either.
const ONE_IN: u32 = 8;

/// What came of looking for causes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looked {
    into: u32,
    found: u32,
}

impl Looked {
    /// The cause of a miss. `fields` are those that the client predicts.
    pub(super) fn explain<G: Game>(
        &mut self,
        context: &Context<'_, G>,
        fields: &Predicted,
        miss: &Acked<'_, G::Body>,
    ) -> (Cause, Evidence) {
        if self.into >= LOOKED_INTO && self.found < self.into / ONE_IN {
            return (Cause::Unknown, "not looked into");
        }
        let (cause, evidence) = explain(context, fields, miss);
        self.into += 1;
        self.found += u32::from(cause != Cause::Unknown);
        (cause, evidence)
    }
}

fn explain<G: Game>(context: &Context<'_, G>, fields: &Predicted, miss: &Acked<'_, G::Body>) -> (Cause, Evidence) {
    if let Some(found) = G::explain(context.rules, miss) {
        return found;
    }
    let before = miss.from.unwrap_or(miss.predicted);
    if before.is_alive() != miss.authoritative.is_alive() {
        return (Cause::SpawnOrDeath, "told");
    }
    if miss.predicted.teleports() != miss.authoritative.teleports() {
        return (Cause::Teleport, "told");
    }
    // Who stands against somebody hardly moves: then a usercmd that is left out changes nothing, and its loss would seem to
    // explain whatever the other one did.
    let met = miss.touches.iter().any(|t| matches!(t, Touch::Player(_))) || touches_again(context, miss);
    if !met && input_lost_reproduces(context, fields, miss) {
        return (Cause::InputLost, "reproduced");
    }
    if G::was_hurt(before, miss.authoritative) {
        return (Cause::Knockback, "told");
    }
    if met {
        return (Cause::OtherPlayer, "touched");
    }
    if miss.touches.iter().any(|t| matches!(t, Touch::Mover(_))) {
        return (Cause::Mover, "touched");
    }
    (Cause::Unknown, "none")
}

/// Whether the commands, run again among the entities of the snapshot that brought the ack, meet another player: he was
/// not yet there when they were predicted.
fn touches_again<G: Game>(context: &Context<'_, G>, miss: &Acked<'_, G::Body>) -> bool {
    let Some(from) = miss.from else { return false };
    let mut met = Met { player: None };
    let mut body = from.clone();
    for command in miss.commands {
        body = context.run(&body, command, &mut met);
    }
    met.player.is_some()
}

/// Whether some run of the commands, lost and replaced as the server does it, gives exactly the server's body.
fn input_lost_reproduces<G: Game>(context: &Context<'_, G>, fields: &Predicted, miss: &Acked<'_, G::Body>) -> bool {
    let Some(from) = miss.from else { return false };
    let commands = miss.commands;
    let lost_runs = (0..commands.len()).flat_map(|start| (start + 1..=commands.len()).map(move |end| (start, end)));
    let same = |body: &G::Body| fields.errors(body, miss.authoritative, miss.authoritative).is_empty();
    lost_runs.take(MOST_HYPOTHESES).any(|(start, end)| {
        let skipped = run_with_lost(context, from, miss, start..end, false);
        same(&skipped) || same(&run_with_lost(context, from, miss, start..end, true))
    })
}

/// Enough for every run of lost commands within an ack of ten.
const MOST_HYPOTHESES: usize = 64;

fn run_with_lost<G: Game>(
    context: &Context<'_, G>,
    from: &G::Body,
    miss: &Acked<'_, G::Body>,
    lost: std::ops::Range<usize>,
    repeated: bool,
) -> G::Body {
    let mut last = miss.last_command;
    let mut body = from.clone();
    for (index, command) in miss.commands.iter().enumerate() {
        if !lost.contains(&index) {
            body = context.run(&body, command, &mut Met { player: None });
            last = Some(*command);
        } else if let (true, Some(stand_in)) = (repeated, last) {
            let mut input = stand_in.input;
            input.impulse = 0;
            body = context.run(&body, &Usercmd { input, ..*command }, &mut Met { player: None });
        }
    }
    body
}

/// Notes whom a body meets, and drops the rest.
struct Met {
    player: Option<EntityId>,
}

impl<F> Sink<F> for Met {
    fn effect(&mut self, _effect: Effect) {}
    fn fire(&mut self, _fire: F) {}
    fn touch(&mut self, touch: Touch) {
        if let Touch::Player(id) = touch {
            self.player = Some(id);
        }
    }
}
