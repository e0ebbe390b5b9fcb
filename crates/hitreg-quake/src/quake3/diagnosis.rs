//! Finds the cause of a correction. It first checks what the states say, then what reproduces the server's state, then
//! nearby obstacles.

use glam::Vec3;

use super::body::{Quake3Body, Quake3Input};
use super::movement::{Quake3PlayerState, SolidShape, flag};
use super::protocol::{player, player_list};
use super::{Quake3, Quake3Rules, around, moved};
use hitreg_log::units::EntityId;
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{
    AckedPrediction, Body as _, Cause, Explanation, GameInput as _, PredictionGrade, Reconcile as _, Touch, evidence,
};

/// Persistent player data: the number of spawns.
const SPAWNS: usize = player_list(1) + 4;
/// Tolerance for the positions of other players, in units. They are sent rounded and for a server frame, and move on
/// before the usercmd runs.
const OTHERS_TOLERANCE_UNITS: f32 = 32.0;

/// Returns the cause with its evidence.
pub(crate) fn explain(rules: &Quake3Rules, miss: &AckedPrediction<'_, Quake3Body>) -> Explanation {
    let Some(from) = miss.from else { return Explanation::new(Cause::SpawnOrDeath, evidence::SNAPSHOT) };
    stated(from, miss.authoritative)
        .or_else(|| bodies_before(rules, miss, from))
        .or_else(|| lost_input(rules, miss, from))
        .or_else(|| met(miss))
        .or_else(|| beside(miss, from))
        .unwrap_or(Explanation::UNKNOWN)
}

/// Finds causes that the player's two states show directly.
fn stated(from: &Quake3Body, to: &Quake3Body) -> Option<Explanation> {
    let changed = |cell: usize| from.player(cell) != to.player(cell);
    let (was, is) = (from.player_state(), to.player_state());
    let pushed = |state: &Quake3PlayerState| state.flags & flag::TIME_KNOCKBACK != 0;
    if from.previous_clients() != to.previous_clients() || from.is_alive() != to.is_alive() || changed(SPAWNS) {
        return Some(Explanation::new(Cause::SpawnOrDeath, evidence::SNAPSHOT));
    }
    if was.gravity == 0 && is.gravity != 0 {
        // Until the first usercmd, a state after a spawn lacks speed and gravity.
        return Some(Explanation::new(Cause::SpawnOrDeath, evidence::SNAPSHOT));
    }
    if from.teleports() != to.teleports() {
        return Some(Explanation::new(Cause::Teleport, evidence::SNAPSHOT));
    }
    let is_hurt = changed(player("damage_event")) || is.health < was.health;
    let is_pushed = pushed(&is) && (!pushed(&was) || is.time_ms > was.time_ms);
    (is_hurt || is_pushed).then_some(Explanation::new(Cause::Knockback, evidence::SNAPSHOT))
}

/// Tests whether the prediction is right with the bodies of the previous snapshot.
fn bodies_before(
    rules: &Quake3Rules,
    miss: &AckedPrediction<'_, Quake3Body>,
    from: &Quake3Body,
) -> Option<Explanation> {
    let own = miss.scene.player.entity();
    let is_right = reproduces(rules, miss.before, own, from, miss.commands, miss.authoritative);
    let cause = match miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_))) {
        true => Cause::Mover,
        false => Cause::OtherPlayer,
    };
    is_right.then_some(Explanation::new(cause, "reproduced: bodies of the packet before"))
}

/// Tests whether the prediction is right without some consecutive usercmds. The server never received them, and the
/// next usercmd covers their time.
fn lost_input(rules: &Quake3Rules, miss: &AckedPrediction<'_, Quake3Body>, from: &Quake3Body) -> Option<Explanation> {
    let own = miss.scene.player.entity();
    let last = miss.commands.len().checked_sub(1)?;
    let spans = (0..last).flat_map(|first| (first + 1..=last).map(move |end| (first, end)));
    let without = |(first, end): (usize, usize)| [&miss.commands[..first], &miss.commands[end..]].concat();
    let mut tried = spans.take(TRIES_MAX).map(without);
    let entities = miss.surroundings();
    let is_right = tried.any(|commands| reproduces(rules, &entities, own, from, &commands, miss.authoritative));
    is_right.then_some(Explanation::new(Cause::InputLost, "reproduced: without some usercmds"))
}

/// The most spans of usercmds to try.
const TRIES_MAX: usize = 60;

fn reproduces(
    rules: &Quake3Rules,
    entities: &[(EntityId, Quake3Body)],
    own: EntityId,
    from: &Quake3Body,
    commands: &[Usercmd],
    to: &Quake3Body,
) -> bool {
    let step = |body: Quake3Body, command: &Usercmd| {
        moved(rules, entities, own, &body, &Quake3Input::read(&command.input), &mut Vec::new())
    };
    let predicted = commands.iter().fold(*from, step);
    Quake3::grade(&predicted, to).is_some_and(|grade| grade != PredictionGrade::Miss)
}

fn met(miss: &AckedPrediction<'_, Quake3Body>) -> Option<Explanation> {
    let touched = |is: fn(&Touch) -> bool| miss.touches.iter().any(is);
    if touched(|touch| matches!(touch, Touch::Teleporter)) {
        Some(Explanation::new(Cause::Teleport, evidence::TOUCHED))
    } else if touched(|touch| matches!(touch, Touch::Player(_))) {
        Some(Explanation::new(Cause::OtherPlayer, evidence::TOUCHED))
    } else if touched(|touch| matches!(touch, Touch::Mover(_))) {
        Some(Explanation::new(Cause::Mover, evidence::TOUCHED))
    } else {
        None
    }
}

/// Tests whether another body was close enough to block the player, in the prediction or on the server.
fn beside(miss: &AckedPrediction<'_, Quake3Body>, from: &Quake3Body) -> Option<Explanation> {
    let own = miss.scene.player.entity();
    let (start, end) = (from.position_f32(), miss.authoritative.position_f32());
    let (low, high) = (start.min(end) + Vec3::new(-15.0, -15.0, -24.0), start.max(end) + Vec3::new(15.0, 15.0, 32.0));
    let (now, before) = (around(miss.scene.entities, own).0, around(miss.before, own).0);
    let is_near = |origin: Vec3, mins: Vec3, maxs: Vec3| {
        (origin + mins - Vec3::splat(OTHERS_TOLERANCE_UNITS)).cmple(high).all()
            && (origin + maxs + Vec3::splat(OTHERS_TOLERANCE_UNITS)).cmpge(low).all()
    };
    let near = now.iter().chain(&before).find(|solid| match solid.shape {
        SolidShape::Body { mins, maxs } => is_near(solid.origin, mins, maxs),
        SolidShape::Model(_) => false,
    });
    near.map(|_| Explanation::new(Cause::OtherPlayer, "beside another"))
}
