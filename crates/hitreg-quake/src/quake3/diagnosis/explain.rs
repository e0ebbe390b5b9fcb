//! Finds the cause of a miss. What the server tells comes first, then what reproduces its state, then what was met.

use glam::Vec3;

use crate::quake3::body::BodyRow;
use crate::quake3::game::{Quake3, moved};
use crate::quake3::movement::{PlayerState, Shape, flag};
use crate::quake3::protocol::{player, player_list};
use crate::quake3::rules::Rules;
use crate::quake3::surroundings::around;
use hitreg_log::units::EntityId;
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{Acked, Body as _, Cause, Evidence, Grade, Reconcile as _, Touch};

/// Among what outlives a player's deaths: how often he was put into the game.
const SPAWNS: usize = player_list(1) + 4;
/// Others are shown where they stood at a frame of the server, in whole units; they move on until the usercmd runs.
const BESIDE: f32 = 32.0;

type Found = Option<(Cause, Evidence)>;

/// The cause, and what shows it.
pub(crate) fn explain(rules: &Rules, miss: &Acked<'_, BodyRow>) -> (Cause, Evidence) {
    let Some(from) = miss.from else { return (Cause::SpawnOrDeath, "told") };
    told(from, miss.authoritative)
        .or_else(|| bodies_before(rules, miss, from))
        .or_else(|| lost_input(rules, miss, from))
        .or_else(|| met(miss))
        .or_else(|| beside(miss, from))
        .unwrap_or((Cause::Unknown, "none"))
}

/// What the two states of the player say themselves.
fn told(from: &BodyRow, to: &BodyRow) -> Found {
    let changed = |cell: usize| from.player(cell) != to.player(cell);
    let (was, is) = (from.player_state(), to.player_state());
    let pushed = |state: &PlayerState| state.flags & flag::TIME_KNOCKBACK != 0;
    if from.is_alive() != to.is_alive() || changed(SPAWNS) {
        return Some((Cause::SpawnOrDeath, "told"));
    }
    if was.gravity == 0 && is.gravity != 0 {
        // A state right after the spawn lacks speed and gravity until the first usercmd.
        return Some((Cause::SpawnOrDeath, "told before the first usercmd"));
    }
    if from.teleports() != to.teleports() {
        return Some((Cause::Teleport, "told"));
    }
    let is_hurt = changed(player("damage_event")) || is.health < was.health;
    let is_pushed = pushed(&is) && (!pushed(&was) || is.time_ms > was.time_ms);
    (is_hurt || is_pushed).then_some((Cause::Knockback, "told"))
}

/// Among the bodies where the snapshot before shows them it is right.
fn bodies_before(rules: &Rules, miss: &Acked<'_, BodyRow>, from: &BodyRow) -> Found {
    let own = miss.scene.player.entity();
    let is_right = reproduces(rules, miss.before, own, from, miss.commands, miss.authoritative);
    let cause = match miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_))) {
        true => Cause::Mover,
        false => Cause::OtherPlayer,
    };
    is_right.then_some((cause, "reproduced: bodies of the packet before"))
}

/// Without some usercmds in a row it is right: they never reached the server, which makes the next one longer.
fn lost_input(rules: &Rules, miss: &Acked<'_, BodyRow>, from: &BodyRow) -> Found {
    let own = miss.scene.player.entity();
    let last = miss.commands.len().checked_sub(1)?;
    let spans = (0..last).flat_map(|first| (first + 1..=last).map(move |end| (first, end)));
    let without = |(first, end): (usize, usize)| [&miss.commands[..first], &miss.commands[end..]].concat();
    let mut tried = spans.take(MOST_TRIES).map(without);
    let entities = miss.surroundings();
    let is_right = tried.any(|commands| reproduces(rules, &entities, own, from, &commands, miss.authoritative));
    is_right.then_some((Cause::InputLost, "reproduced: without some usercmds"))
}

/// Of many usercmds, so many spans of them are tried.
const MOST_TRIES: usize = 60;

fn reproduces(
    rules: &Rules,
    entities: &[(EntityId, BodyRow)],
    own: EntityId,
    from: &BodyRow,
    commands: &[Usercmd],
    to: &BodyRow,
) -> bool {
    let step = |body: BodyRow, command: &Usercmd| moved(rules, entities, own, &body, &command.input, &mut Vec::new());
    let predicted = commands.iter().fold(*from, step);
    Quake3::grade(&predicted, to).is_some_and(|grade| grade != Grade::Miss)
}

fn met(miss: &Acked<'_, BodyRow>) -> Found {
    let touched = |is: fn(&Touch) -> bool| miss.touches.iter().any(is);
    if touched(|touch| matches!(touch, Touch::Teleporter)) {
        Some((Cause::Teleport, "touched"))
    } else if touched(|touch| matches!(touch, Touch::Player(_))) {
        Some((Cause::OtherPlayer, "touched"))
    } else if touched(|touch| matches!(touch, Touch::Mover(_))) {
        Some((Cause::Mover, "touched"))
    } else {
        None
    }
}

/// Another body was so near that it may have been in the way, or else it was not although it was predicted so.
fn beside(miss: &Acked<'_, BodyRow>, from: &BodyRow) -> Found {
    let own = miss.scene.player.entity();
    let (start, end) = (from.origin(), miss.authoritative.origin());
    let (low, high) = (start.min(end) + Vec3::new(-15.0, -15.0, -24.0), start.max(end) + Vec3::new(15.0, 15.0, 32.0));
    let (now, before) = (around(miss.scene.entities, own).0, around(miss.before, own).0);
    let is_near = |origin: Vec3, mins: Vec3, maxs: Vec3| {
        (origin + mins - Vec3::splat(BESIDE)).cmple(high).all()
            && (origin + maxs + Vec3::splat(BESIDE)).cmpge(low).all()
    };
    let near = now.iter().chain(&before).find(|solid| match solid.shape {
        Shape::Body { mins, maxs } => is_near(solid.origin, mins, maxs),
        Shape::Model(_) => false,
    });
    near.map(|_| (Cause::OtherPlayer, "beside another"))
}
