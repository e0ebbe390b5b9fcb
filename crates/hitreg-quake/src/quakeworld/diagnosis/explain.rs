//! Finds the cause of a miss. What reproduces the recorded state comes before what the recording merely says, and what
//! it says comes before what the prediction touched.

use glam::Vec3;

use super::hypotheses;
use super::missed::Missed;
use crate::bsp::quake::{Trigger, TriggerEffect, WATER};
use crate::quakeworld::demo::{EffectKind, Event};
use crate::quakeworld::movement::state::length;
use crate::quakeworld::movement::{Solid, World};
use crate::quakeworld::rounding::{difference, grade};
use hitreg_netcode::game::{Cause, Evidence, Grade, Touch};

/// A jump is what no speed explains: so much farther, in units, if it leads somewhere or the server turned the view too.
const JUMP_SLACK: f32 = 32.0;
/// And this much, beyond twice the way, if it did not.
const UNTURNED_JUMP_SLACK: f32 = 256.0;
/// A rocket's blast reaches 120 units and 40 more.
const BLAST_REACH: f32 = 180.0;
/// Blood is drawn within or at the body.
const BODY_REACH: f32 = 64.0;
/// How well a push must point away from what pushes: the cosine.
const AWAY: f32 = 0.7;

/// Damage pushes by 8 units/s a point; less than that of two points, in units/s, is no push.
const PUSH_SPEED: f32 = 16.0;

pub(super) type Found = Option<(Cause, Evidence)>;

/// The cause of the miss, and what shows it.
pub(crate) fn explain(miss: &Missed<'_>) -> (Cause, Evidence) {
    FINDERS.iter().find_map(|find| find(miss)).unwrap_or((Cause::Unknown, "none"))
}

/// All that can find a cause, the surest first.
pub(super) const FINDERS: &[fn(&Missed<'_>) -> Found] = &[
    death,
    others_elsewhere,
    hypotheses::corpse,
    hypotheses::lost_input,
    jump,
    halt,
    damage,
    hypotheses::mover_off,
    touched_mover,
    hypotheses::start_off,
    pushed,
    health,
    hypotheses::bodies,
    touched_player,
    water,
];

/// What a hypothesis that holds says, as a finding.
pub(super) fn reproduced(cause: Cause, evidence: Evidence, grade: Grade) -> Found {
    (grade == Grade::Exact).then_some((cause, evidence))
}

fn death(miss: &Missed<'_>) -> Found {
    (miss.from.dead != miss.recorded.dead).then_some((Cause::SpawnOrDeath, "death mark"))
}

/// The client knew the other bodies elsewhere: among those of the acking packet it is right.
fn others_elsewhere(miss: &Missed<'_>) -> Found {
    let was_met = |touch: &Touch| matches!(touch, Touch::Player(_));
    let by_player = miss.touches.iter().any(was_met) || touched_player(miss).is_some();
    let by_mover = miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_))) || touched_mover(miss).is_some();
    let cause = if by_player && !by_mover { Cause::OtherPlayer } else { Cause::Mover };
    reproduced(cause, "reproduced: bodies of the acking packet", grade(&miss.run.state, &miss.recorded, miss.wire))
}

fn halt(miss: &Missed<'_>) -> Found {
    let halted = miss.events.iter().any(|event| matches!(event, Event::Intermission | Event::Pause(_)));
    halted.then_some((Cause::InputLate, "paused or over"))
}

/// A way that no speed explains leads to where a teleporter leads, or to where players come into the game.
fn jump(miss: &Missed<'_>) -> Found {
    let to = Vec3::from_array(miss.recorded.origin);
    let units = length(to - Vec3::from_array(miss.from.origin));
    let ms: u32 = miss.commands.iter().map(|cmd| u32::from(cmd.msec)).sum();
    let before = length(Vec3::from_array(miss.from.velocity));
    let after = length(Vec3::from_array(miss.recorded.velocity.map(f32::from)));
    let reachable = before.max(after) * ms as f32 * 0.001;
    if units <= reachable + JUMP_SLACK {
        return None;
    }
    let leads_here = |place: [f32; 3]| length(to - Vec3::from_array(place)) <= reachable + JUMP_SLACK;
    let is_end = |trigger: &Trigger| matches!(trigger.effect, TriggerEffect::Teleport { to, .. } if leads_here(to));
    if miss.map.triggers().iter().any(is_end) {
        return Some((Cause::Teleport, "at a teleporter's end"));
    }
    if miss.map.spawns.iter().any(|place| leads_here(*place)) {
        return Some((Cause::SpawnOrDeath, "at a place of spawning"));
    }
    let turned = miss.events.iter().any(|event| matches!(event, Event::SetAngle { .. }));
    if turned {
        return Some((Cause::Teleport, "jump beyond speed, view turned"));
    }
    (units > 2.0 * reachable + UNTURNED_JUMP_SLACK).then_some((Cause::Teleport, "jump beyond speed"))
}

fn damage(miss: &Missed<'_>) -> Found {
    let hurt = miss.events.iter().any(|event| matches!(event, Event::Damage { .. }));
    hurt.then_some((Cause::Knockback, "damage message"))
}

/// Servers do not tell every damage; a change of health, or a loss of armour, beside a change of speed is one, too.
fn health(miss: &Missed<'_>) -> Found {
    let speed = length(Vec3::from_array(difference(&miss.run.state, &miss.recorded, miss.wire).velocity));
    let evidence = miss.events.iter().find_map(|event| match event {
        Event::Health(_) => Some("health changed, and speed"),
        Event::ArmorLost(_) => Some("armour lost, and speed changed"),
        _ => None,
    });
    evidence.filter(|_| speed >= PUSH_SPEED).map(|evidence| (Cause::Knockback, evidence))
}

/// Team mates' and one's own shots push without hurting, as does everything while invulnerable.
fn pushed(miss: &Missed<'_>) -> Found {
    let change = -Vec3::from_array(difference(&miss.run.state, &miss.recorded, miss.wire).velocity);
    let speed = length(change);
    let at = Vec3::from_array(miss.recorded.origin);
    miss.events.iter().find_map(|event| {
        let Event::Effect { kind, origin } = *event else { return None };
        let away = at - Vec3::from_array(origin);
        let distance = length(away);
        let points_away = away.dot(change) > AWAY * distance * speed;
        let (shown, evidence) = match kind {
            EffectKind::Explosion => (distance < BLAST_REACH && points_away, "pushed away from an explosion"),
            EffectKind::Gunshot => (distance < BLAST_REACH && points_away, "pushed away from where shot hit"),
            EffectKind::Blood | EffectKind::LightningBlood => (distance < BODY_REACH, "pushed where blood was drawn"),
            EffectKind::Teleport => return None,
        };
        (shown && speed > 0.0).then_some((Cause::Knockback, evidence))
    })
}

fn hits<'a>(miss: &'a Missed<'_>) -> impl Iterator<Item = &'a Solid> {
    let touched = miss.run.touched.solids;
    let solids = miss.solids.iter().enumerate();
    solids.filter(move |(index, _)| touched & (1 << (*index).min(31)) != 0).map(|(_, solid)| solid)
}

fn touched_mover(miss: &Missed<'_>) -> Found {
    let moves = |solid: &Solid| matches!(solid, Solid::Mover { moved, .. } if *moved != [0.0; 3]);
    hits(miss).any(moves).then_some((Cause::Mover, "moving mover touched"))
}

fn touched_player(miss: &Missed<'_>) -> Found {
    hits(miss).any(|solid| matches!(solid, Solid::Player { .. })).then_some((Cause::OtherPlayer, "player touched"))
}

fn water(miss: &Missed<'_>) -> Found {
    let world = World { map: miss.map, solids: &[] };
    let at = Vec3::from_array(miss.recorded.origin);
    let wet = |up: &&f32| world.contents(at + Vec3::new(0.0, 0.0, **up)) <= WATER;
    let recorded = [-23.0, 4.0, 22.0].iter().take_while(wet).count() as u8;
    let (from, predicted) = (miss.from.water_level, miss.run.state.water_level);
    let crossed = miss.run.touched.water_edge || predicted != from || recorded != predicted;
    crossed.then_some((Cause::WaterEdge, "water plane crossed"))
}
