//! Finds the cause of a miss.

use glam::Vec3;

use super::cause::{Cause, Evidence, Hypothesis};
use super::demo::{Demo, EffectKind, Event, ServerPacket};
use super::hypotheses::Trial;
use super::map::Map;
use super::open_loop::Check;
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

/// The cause of the miss `check`, and what shows it. `solids` are the bodies that the prediction met.
pub fn explain(demo: &Demo, map: &Map, check: &Check, solids: &[Solid]) -> (Cause, Evidence) {
    let packet = &demo.packets[check.packet];
    let trial = Trial { demo, map, check, solids };
    death(check)
        .or_else(|| trial.corpse())
        .or_else(|| trial.lost_input())
        .or_else(|| jump(demo, check, packet))
        .or_else(|| halt(demo, packet))
        .or_else(|| damage(demo, check))
        .or_else(|| touched_mover(check, solids))
        .or_else(|| trial.start_off())
        .or_else(|| pushed(demo, check))
        .or_else(|| trial.bodies())
        .or_else(|| trial.controls())
        .or_else(|| touched_player(check, solids))
        .or_else(|| water(map, check))
        .unwrap_or((Cause::Unknown, Evidence::None))
}

type Found = Option<(Cause, Evidence)>;

fn death(check: &Check) -> Found {
    let (was, is) = (check.from.dead, check.recorded.dead);
    (was != is).then_some((Cause::SpawnOrDeath, Evidence::DeathMark { was, is }))
}

fn halt(demo: &Demo, packet: &ServerPacket) -> Found {
    let halted = packet.events.of(&demo.events).iter().any(|e| matches!(e, Event::Intermission | Event::Pause(_)));
    halted.then_some((Cause::InputLate, Evidence::Halted))
}

fn jump(demo: &Demo, check: &Check, packet: &ServerPacket) -> Found {
    let moved = Vec3::from_array(check.recorded.origin) - Vec3::from_array(check.from.origin);
    let units = length(moved);
    let ms = demo.msec_between(demo.packets[check.base].ack, packet.ack);
    let speed = length(Vec3::from_array(check.from.velocity))
        .max(length(Vec3::from_array(check.recorded.velocity.map(f32::from))));
    let reachable = speed * ms as f32 * 0.001;
    let turned = packet.events.of(&demo.events).iter().any(|e| matches!(e, Event::SetAngle { .. }));
    let jumped = units > if turned { reachable + JUMP_SLACK } else { 2.0 * reachable + UNTURNED_JUMP_SLACK };
    jumped.then_some((Cause::Teleport, Evidence::Jump { units, reachable, turned }))
}

/// The packets whose events fall into the time of the prediction.
fn packets<'a>(demo: &'a Demo, check: &Check) -> &'a [ServerPacket] {
    &demo.packets[check.base + 1..=check.packet]
}

fn damage(demo: &Demo, check: &Check) -> Found {
    let events = packets(demo, check).iter().flat_map(|packet| packet.events.of(&demo.events));
    let hurt = events.copied().find_map(|event| match event {
        Event::Damage { armor, health, .. } => Some(Evidence::DamageMessage { armor, health }),
        _ => None,
    });
    hurt.map(|evidence| (Cause::DamageOrKnockback, evidence))
}

/// Team mates' and one's own shots push without hurting, as does everything while invulnerable.
fn pushed(demo: &Demo, check: &Check) -> Found {
    let change = -Vec3::from_array(difference(&check.run.state, &check.recorded).velocity);
    let speed = length(change);
    let at = Vec3::from_array(check.recorded.origin);
    let until = (check.packet + 2).min(demo.packets.len());
    let near = &demo.packets[check.base..until];
    let mut events = near.iter().flat_map(|packet| packet.events.of(&demo.events));
    let found = events.find_map(|event| {
        let Event::Effect { kind, origin } = *event else { return None };
        let away = at - Vec3::from_array(origin);
        let distance = length(away);
        let shown = match kind {
            EffectKind::Explosion => distance < BLAST_REACH && away.dot(change) > AWAY * distance * speed,
            EffectKind::Blood | EffectKind::LightningBlood => distance < BODY_REACH,
            EffectKind::Teleport => false,
        };
        (shown && speed > 0.0).then_some(Evidence::PushedFrom { kind, distance, speed })
    });
    found.map(|evidence| (Cause::DamageOrKnockback, evidence))
}

fn hits<'a>(check: &Check, solids: &'a [Solid]) -> impl Iterator<Item = &'a Solid> {
    let touched = check.run.touched.solids;
    solids.iter().enumerate().filter(move |(index, _)| touched & (1 << (*index).min(31)) != 0).map(|(_, solid)| solid)
}

fn touched_mover(check: &Check, solids: &[Solid]) -> Found {
    hits(check, solids).find_map(|solid| match *solid {
        Solid::Mover { model, .. } => Some((Cause::Mover, Evidence::TouchedMover { model })),
        Solid::Player { .. } => None,
    })
}

fn touched_player(check: &Check, solids: &[Solid]) -> Found {
    hits(check, solids).find_map(|solid| match *solid {
        Solid::Player { slot, .. } => Some((Cause::OtherPlayer, Evidence::TouchedPlayer { slot })),
        Solid::Mover { .. } => None,
    })
}

fn water(map: &Map, check: &Check) -> Found {
    let world = World { map, solids: &[] };
    let levels = [-23.0, 4.0, 22.0];
    let at = Vec3::from_array(check.recorded.origin);
    let wet = |up: &&f32| world.contents(at + Vec3::new(0.0, 0.0, **up)) <= super::map::WATER;
    let recorded = levels.iter().take_while(wet).count() as u8;
    let (from, predicted) = (check.from.water_level, check.run.state.water_level);
    let crossed = check.run.touched.water_edge || predicted != from || recorded != predicted;
    crossed.then_some((Cause::WaterEdge, Evidence::WaterLevels { from, predicted, recorded }))
}

/// What a hypothesis that holds says, as a finding.
pub(crate) fn reproduced(cause: Cause, hypothesis: Hypothesis, verdict: Verdict) -> Found {
    (verdict == Verdict::Exact).then_some((cause, Evidence::Reproduced { hypothesis }))
}
