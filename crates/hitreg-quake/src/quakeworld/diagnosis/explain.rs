//! Finds the cause of a correction. It first looks for causes that reproduce the recorded state, then for events in the
//! recording, then for contacts of the prediction.

use glam::Vec3;

use super::hypotheses;
use super::missed::MissedPrediction;
use crate::bsp::quake::{Trigger, TriggerEffect, WATER};
use crate::quakeworld::demo::{DemoEvent, EffectKind};
use crate::quakeworld::movement::state::length;
use crate::quakeworld::movement::{Surroundings, WorldSolid};
use crate::quakeworld::rounding::{difference, grade};
use hitreg_netcode::game::{Cause, Evidence, PredictionGrade, Touch};

/// A way this much longer than speed allows, in units, is a jump if it ends at a destination or the server turned the
/// view.
const JUMP_SLACK: f32 = 32.0;
/// Without such a sign, it must exceed twice the way by this much, in units.
const UNTURNED_JUMP_SLACK: f32 = 256.0;
/// Distance in units within which a rocket's blast can act: 120 units and a margin.
const BLAST_REACH: f32 = 180.0;
/// Distance in units within which blood belongs to a body.
const BODY_REACH: f32 = 64.0;
/// Smallest cosine between a push and the direction away from its source.
const AWAY: f32 = 0.7;

/// Smallest speed change that counts as a push, in units/s: damage pushes by 8 units/s per point, and this is two
/// points.
const PUSH_SPEED: f32 = 16.0;

pub(super) type Diagnosis = Option<(Cause, Evidence)>;

/// Returns the cause of the correction with its evidence.
pub(crate) fn explain(miss: &MissedPrediction<'_>) -> (Cause, Evidence) {
    FINDERS.iter().find_map(|find| find(miss)).unwrap_or((Cause::Unknown, "none"))
}

/// All searches for a cause, the most reliable first.
pub(super) const FINDERS: &[fn(&MissedPrediction<'_>) -> Diagnosis] = &[
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

/// Returns the cause if the hypothesis reproduces the state exactly.
pub(super) fn reproduced(cause: Cause, evidence: Evidence, grade: PredictionGrade) -> Diagnosis {
    (grade == PredictionGrade::Exact).then_some((cause, evidence))
}

fn death(miss: &MissedPrediction<'_>) -> Diagnosis {
    (miss.from.dead == miss.recorded.alive).then_some((Cause::SpawnOrDeath, "death mark"))
}

/// Tests whether the client had other bodies at wrong positions: with those of the acking packet, the prediction is
/// right.
fn others_elsewhere(miss: &MissedPrediction<'_>) -> Diagnosis {
    let was_met = |touch: &Touch| matches!(touch, Touch::Player(_));
    let by_player = miss.touches.iter().any(was_met) || touched_player(miss).is_some();
    let by_mover = miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_))) || touched_mover(miss).is_some();
    let cause = if by_player && !by_mover { Cause::OtherPlayer } else { Cause::Mover };
    reproduced(cause, "reproduced: bodies of the acking packet", grade(&miss.run.state, &miss.recorded))
}

fn halt(miss: &MissedPrediction<'_>) -> Diagnosis {
    let halted = miss.events.iter().any(|event| matches!(event, DemoEvent::Intermission | DemoEvent::Pause(_)));
    halted.then_some((Cause::InputLate, "paused or over"))
}

/// Tests for a jump that no speed explains, to a teleporter's destination or a spawn point.
fn jump(miss: &MissedPrediction<'_>) -> Diagnosis {
    let to = miss.recorded.origin;
    let units = length(to - Vec3::from_array(miss.from.origin));
    let ms: u32 = miss.commands.iter().map(|cmd| u32::from(cmd.msec)).sum();
    let before = length(Vec3::from_array(miss.from.velocity));
    let after = length(miss.recorded.velocity);
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
    let turned = miss.events.iter().any(|event| matches!(event, DemoEvent::SetAngle { .. }));
    if turned {
        return Some((Cause::Teleport, "jump beyond speed, view turned"));
    }
    (units > 2.0 * reachable + UNTURNED_JUMP_SLACK).then_some((Cause::Teleport, "jump beyond speed"))
}

fn damage(miss: &MissedPrediction<'_>) -> Diagnosis {
    let hurt = miss.events.iter().any(|event| matches!(event, DemoEvent::Damage { .. }));
    hurt.then_some((Cause::Knockback, "damage message"))
}

/// Tests for damage without a damage message. Servers do not report all damage; a change of health or armour along with
/// a change of speed counts too.
fn health(miss: &MissedPrediction<'_>) -> Diagnosis {
    let speed = length(Vec3::from_array(difference(&miss.run.state, &miss.recorded).velocity));
    let evidence = miss.events.iter().find_map(|event| match event {
        DemoEvent::Health(_) => Some("health changed, and speed"),
        DemoEvent::ArmorLost(_) => Some("armour lost, and speed changed"),
        _ => None,
    });
    evidence.filter(|_| speed >= PUSH_SPEED).map(|evidence| (Cause::Knockback, evidence))
}

/// Tests for a push without damage, as from team mates' shots, own shots, or any shot at an invulnerable player.
fn pushed(miss: &MissedPrediction<'_>) -> Diagnosis {
    let change = -Vec3::from_array(difference(&miss.run.state, &miss.recorded).velocity);
    let speed = length(change);
    let at = miss.recorded.origin;
    miss.events.iter().find_map(|event| {
        let DemoEvent::Effect { kind, origin } = *event else { return None };
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

fn hits<'a>(miss: &'a MissedPrediction<'_>) -> impl Iterator<Item = &'a WorldSolid> {
    let touched = miss.run.touched.solids;
    let solids = miss.solids.iter().enumerate();
    solids.filter(move |(index, _)| touched & (1 << (*index).min(31)) != 0).map(|(_, solid)| solid)
}

fn touched_mover(miss: &MissedPrediction<'_>) -> Diagnosis {
    let moves = |solid: &WorldSolid| matches!(solid, WorldSolid::Mover { moved, .. } if *moved != [0.0; 3]);
    hits(miss).any(moves).then_some((Cause::Mover, "moving mover touched"))
}

fn touched_player(miss: &MissedPrediction<'_>) -> Diagnosis {
    hits(miss).any(|solid| matches!(solid, WorldSolid::Player { .. })).then_some((Cause::OtherPlayer, "player touched"))
}

fn water(miss: &MissedPrediction<'_>) -> Diagnosis {
    let world = Surroundings { map: miss.map, solids: &[] };
    let at = miss.recorded.origin;
    let wet = |up: &&f32| world.contents(at + Vec3::new(0.0, 0.0, **up)) <= WATER;
    let recorded = [-23.0, 4.0, 22.0].iter().take_while(wet).count() as u8;
    let (from, predicted) = (miss.from.water_level, miss.run.state.water_level);
    let crossed = miss.run.touched.water_edge || predicted != from || recorded != predicted;
    crossed.then_some((Cause::WaterEdge, "water plane crossed"))
}
