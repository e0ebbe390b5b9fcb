//! Finds the cause of a miss. What reproduces the recorded state comes before what the recording merely says, and what
//! it says comes before what the prediction touched.

use glam::Vec3;

use super::cause::{Cause, Evidence, Hypothesis};
use super::demo::{EffectKind, Event};
use super::hypotheses;
use super::prediction::Prediction;
use super::state::length;
use super::verdict::{Verdict, difference};
use super::world::{Solid, World};

/// A jump is what no speed explains: so much farther, in units, if the server turned the view too.
const JUMP_SLACK: f32 = 32.0;
/// And this much, beyond twice the way, if it did not.
const UNTURNED_JUMP_SLACK: f32 = 256.0;
/// A rocket's blast reaches 120 units and 40 more.
const BLAST_REACH: f32 = 180.0;
/// Blood is drawn within or at the body.
const BODY_REACH: f32 = 64.0;
/// How well a push must point away from what pushes: the cosine.
const AWAY: f32 = 0.7;

type Found = Option<(Cause, Evidence)>;

/// The cause of the miss, and what shows it.
pub(crate) fn explain(miss: &Prediction<'_>) -> (Cause, Evidence) {
    death(miss)
        .or_else(|| hypotheses::corpse(miss))
        .or_else(|| hypotheses::lost_input(miss))
        .or_else(|| jump(miss))
        .or_else(|| halt(miss))
        .or_else(|| damage(miss))
        .or_else(|| touched_mover(miss))
        .or_else(|| hypotheses::start_off(miss))
        .or_else(|| pushed(miss))
        .or_else(|| hypotheses::bodies(miss))
        .or_else(|| hypotheses::controls(miss))
        .or_else(|| touched_player(miss))
        .or_else(|| water(miss))
        .unwrap_or((Cause::Unknown, Evidence::None))
}

/// What a hypothesis that holds says, as a finding.
pub(crate) fn reproduced(cause: Cause, hypothesis: Hypothesis, verdict: Verdict) -> Found {
    (verdict == Verdict::Exact).then_some((cause, Evidence::Reproduced { hypothesis }))
}

fn death(miss: &Prediction<'_>) -> Found {
    let (was, is) = (miss.given.from.dead, miss.given.recorded.dead);
    (was != is).then_some((Cause::SpawnOrDeath, Evidence::DeathMark { was, is }))
}

fn halt(miss: &Prediction<'_>) -> Found {
    let halted = miss.given.events.iter().any(|event| matches!(event, Event::Intermission | Event::Pause(_)));
    halted.then_some((Cause::InputLate, Evidence::Halted))
}

fn jump(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let units = length(Vec3::from_array(given.recorded.origin) - Vec3::from_array(given.from.origin));
    let ms: u32 = given.commands.iter().map(|cmd| u32::from(cmd.msec)).sum();
    let before = length(Vec3::from_array(given.from.velocity));
    let after = length(Vec3::from_array(given.recorded.velocity.map(f32::from)));
    let reachable = before.max(after) * ms as f32 * 0.001;
    let turned = given.events.iter().any(|event| matches!(event, Event::SetAngle { .. }));
    let jumped = units > if turned { reachable + JUMP_SLACK } else { 2.0 * reachable + UNTURNED_JUMP_SLACK };
    jumped.then_some((Cause::Teleport, Evidence::Jump { units, reachable, turned }))
}

fn damage(miss: &Prediction<'_>) -> Found {
    miss.given.events.iter().find_map(|event| match *event {
        Event::Damage { armor, health, .. } => {
            Some((Cause::DamageOrKnockback, Evidence::DamageMessage { armor, health }))
        }
        _ => None,
    })
}

/// Team mates' and one's own shots push without hurting, as does everything while invulnerable.
fn pushed(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let change = -Vec3::from_array(difference(&miss.run.state, &given.recorded).velocity);
    let speed = length(change);
    let at = Vec3::from_array(given.recorded.origin);
    given.events.iter().find_map(|event| {
        let Event::Effect { kind, origin } = *event else { return None };
        let away = at - Vec3::from_array(origin);
        let distance = length(away);
        let shown = match kind {
            EffectKind::Explosion => distance < BLAST_REACH && away.dot(change) > AWAY * distance * speed,
            EffectKind::Blood | EffectKind::LightningBlood => distance < BODY_REACH,
            EffectKind::Teleport => false,
        };
        let evidence = Evidence::PushedFrom { kind, distance, speed };
        (shown && speed > 0.0).then_some((Cause::DamageOrKnockback, evidence))
    })
}

fn hits<'a>(miss: &'a Prediction<'_>) -> impl Iterator<Item = &'a Solid> {
    let touched = miss.run.touched.solids;
    let solids = miss.given.runner.world.solids.iter().enumerate();
    solids.filter(move |(index, _)| touched & (1 << (*index).min(31)) != 0).map(|(_, solid)| solid)
}

fn touched_mover(miss: &Prediction<'_>) -> Found {
    hits(miss).find_map(|solid| match *solid {
        Solid::Mover { model, .. } => Some((Cause::Mover, Evidence::TouchedMover { model })),
        Solid::Player { .. } => None,
    })
}

fn touched_player(miss: &Prediction<'_>) -> Found {
    hits(miss).find_map(|solid| match *solid {
        Solid::Player { slot, .. } => Some((Cause::OtherPlayer, Evidence::TouchedPlayer { slot })),
        Solid::Mover { .. } => None,
    })
}

fn water(miss: &Prediction<'_>) -> Found {
    let world = World { map: miss.given.runner.world.map, solids: &[] };
    let at = Vec3::from_array(miss.given.recorded.origin);
    let wet = |up: &&f32| world.contents(at + Vec3::new(0.0, 0.0, **up)) <= super::map::WATER;
    let recorded = [-23.0, 4.0, 22.0].iter().take_while(wet).count() as u8;
    let (from, predicted) = (miss.given.from.water_level, miss.run.state.water_level);
    let crossed = miss.run.touched.water_edge || predicted != from || recorded != predicted;
    crossed.then_some((Cause::WaterEdge, Evidence::WaterLevels { from, predicted, recorded }))
}
