//! Finds the cause of a correction. It first looks for causes that reproduce the recorded state: it runs the wrong
//! prediction again under an assumption about unrecorded facts, and compares the result. Then it looks for events in the
//! recording, then for contacts of the prediction.

#[cfg(test)]
mod tests;

use glam::Vec3;

use super::body::{FIRST_MODEL, QuakeWorldBody, command_of};
use super::demo::{DemoEvent, EffectKind, cut_cell};
use super::events::events_of;
use super::import::AckedUsercmds;
use super::movement::{
    Dialect, MoveOutcome, MoveRunner, QuakeWorldPlayerState, QuakeWorldUsercmd, Surroundings, WorldSolid, length,
};
use super::rounding::{difference, grade};
use super::{QuakeWorldRules, surroundings};
use crate::bsp::quake::{Trigger, TriggerEffect, WATER};
use hitreg_log::units::EntityId;
use hitreg_netcode::game::{AckedPrediction, Cause, Evidence, Explanation, LostInput, PredictionGrade, Touch};

/// A wrong prediction, with the data to judge it.
pub(crate) struct MissedPrediction<'a> {
    /// The usercmds of the prediction, from its start state.
    acked: AckedUsercmds<'a>,
    /// The recorded state that the start was reconciled with.
    base: QuakeWorldBody,
    /// The command before the first, if any. A server repeats it when too many packets are lost.
    last_command: Option<QuakeWorldUsercmd>,
    /// How the server handles lost commands.
    lost_input: LostInput,
    /// Other players in the previous snapshot: slot and origin.
    players_before: Vec<(u8, [f32; 3])>,
    /// Contacts of the body in the wrong prediction.
    touches: &'a [Touch],
    /// Result of the commands among these bodies.
    run: MoveOutcome,
}

impl<'a> MissedPrediction<'a> {
    /// Returns `None` where movement cannot run: without a start, without movement settings, or from an invalid
    /// position.
    pub(crate) fn new(
        rules: &'a QuakeWorldRules,
        miss: &AckedPrediction<'a, QuakeWorldBody>,
    ) -> Option<MissedPrediction<'a>> {
        let from = miss.from.filter(|from| from.is_finite())?;
        let own = miss.scene.player.entity();
        let acked = AckedUsercmds {
            from: from.player_state(),
            commands: miss.commands.iter().map(|command| command_of(&command.input)).collect(),
            solids: surroundings::solids(&rules.map, &miss.surroundings(), miss.before, own, from),
            vars: rules.move_vars.get(usize::from(from.move_vars))?,
            rules,
            recorded: *miss.authoritative,
            before: miss.before,
            events: events_of(&miss.extras).ok()?,
        };
        let last_command = miss.last_command.as_ref().map(|command| command_of(&command.input));
        MissedPrediction::of_acked(acked, own, last_command, miss.lost_input, miss.touches)
    }

    /// Returns `None` if `own`, the player's body, is missing in the previous packet.
    fn of_acked(
        acked: AckedUsercmds<'a>,
        own: EntityId,
        last_command: Option<QuakeWorldUsercmd>,
        lost_input: LostInput,
        touches: &'a [Touch],
    ) -> Option<MissedPrediction<'a>> {
        let base = acked.before.iter().find(|(entity, _)| *entity == own).map(|(_, body)| *body)?;
        let players = acked.before.iter().filter(|(entity, _)| *entity < FIRST_MODEL && *entity != own);
        let players_before = players.map(|(entity, body)| (entity.0 as u8, body.origin.to_array())).collect();
        let run = acked.run(acked.rules.server.dialect);
        Some(MissedPrediction { acked, base, last_command, lost_input, players_before, touches, run })
    }

    fn runner_among<'b>(&'b self, solids: &'b [WorldSolid]) -> MoveRunner<'b> {
        self.acked.runner_among(self.acked.rules.server.dialect, solids)
    }
}

/// A move this much longer than speed allows, in units, is a jump if it ends at a destination or the server turned the
/// view.
const JUMP_SLACK: f32 = 32.0;
/// Without such a sign, it must exceed twice that distance by this much, in units.
const UNTURNED_JUMP_SLACK: f32 = 256.0;
/// Distance in units within which a rocket's blast can act: 120 units and a margin.
const BLAST_REACH: f32 = 180.0;
/// Distance in units within which blood belongs to a body.
const BODY_REACH: f32 = 64.0;
/// Smallest cosine between a push and the direction away from its source.
const AWAY_COSINE_MIN: f32 = 0.7;

/// Smallest speed change that counts as a push, in units/s: damage pushes by 8 units/s per point, and this is two
/// points.
const PUSH_SPEED: f32 = 16.0;

/// Returns the cause of the correction with its evidence.
pub(crate) fn explain(miss: &MissedPrediction<'_>) -> Explanation {
    FINDERS.iter().find_map(|find| find(miss)).unwrap_or(Explanation::UNKNOWN)
}

/// All searches for a cause, the most reliable first.
const FINDERS: &[fn(&MissedPrediction<'_>) -> Option<Explanation>] = &[
    death,
    others_elsewhere,
    corpse,
    lost_input,
    jump,
    halt,
    damage,
    mover_off,
    touched_mover,
    start_off,
    pushed,
    health,
    bodies,
    touched_player,
    water,
];

/// Returns the cause if the hypothesis reproduces the state exactly.
pub(super) fn reproduced(cause: Cause, evidence: Evidence, grade: PredictionGrade) -> Option<Explanation> {
    (grade == PredictionGrade::Exact).then_some(Explanation::new(cause, evidence))
}

fn death(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    (miss.acked.from.dead == miss.acked.recorded.alive).then_some(Explanation::new(Cause::SpawnOrDeath, "death mark"))
}

/// Tests whether the client had other bodies at wrong positions: with those of the acking packet, the prediction is
/// right.
fn others_elsewhere(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let was_met = |touch: &Touch| matches!(touch, Touch::Player(_));
    let by_player = miss.touches.iter().any(was_met) || touched_player(miss).is_some();
    let by_mover = miss.touches.iter().any(|touch| matches!(touch, Touch::Mover(_))) || touched_mover(miss).is_some();
    let cause = if by_player && !by_mover { Cause::OtherPlayer } else { Cause::Mover };
    reproduced(cause, "reproduced: bodies of the acking packet", grade(&miss.run.state, &miss.acked.recorded))
}

fn halt(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let halted = miss.acked.events.iter().any(|event| matches!(event, DemoEvent::Intermission | DemoEvent::Pause(_)));
    halted.then_some(Explanation::new(Cause::InputLate, "paused or over"))
}

/// Tests for a jump that no speed explains: to a teleporter's destination or a spawn point, or of the prediction alone.
fn jump(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let to = miss.acked.recorded.origin;
    let units = length(to - Vec3::from_array(miss.acked.from.origin));
    let ms: u32 = miss.acked.commands.iter().map(|cmd| u32::from(cmd.msec)).sum();
    let before = length(Vec3::from_array(miss.acked.from.velocity));
    let after = length(miss.acked.recorded.velocity);
    let reachable = before.max(after) * ms as f32 * 0.001;
    let leads_here = |place: [f32; 3]| length(to - Vec3::from_array(place)) <= reachable + JUMP_SLACK;
    let is_end = |trigger: &Trigger| matches!(trigger.effect, TriggerEffect::Teleport { to, .. } if leads_here(to));
    let triggers = &miss.acked.rules.map.triggers;
    let entered = miss.run.touched.trigger.and_then(|index| triggers.get(usize::from(index)));
    if entered.is_some_and(|met| matches!(met.effect, TriggerEffect::Teleport { .. }) && !is_end(met)) {
        return Some(Explanation::new(Cause::Teleport, "prediction alone teleported"));
    }
    if units <= reachable + JUMP_SLACK {
        return None;
    }
    if triggers.iter().any(is_end) {
        return Some(Explanation::new(Cause::Teleport, "at a teleporter's end"));
    }
    if miss.acked.rules.map.spawns.iter().any(|place| leads_here(*place)) {
        return Some(Explanation::new(Cause::SpawnOrDeath, "at a place of spawning"));
    }
    let turned = miss.acked.events.iter().any(|event| matches!(event, DemoEvent::SetAngle { .. }));
    if turned {
        return Some(Explanation::new(Cause::Teleport, "jump beyond speed, view turned"));
    }
    (units > 2.0 * reachable + UNTURNED_JUMP_SLACK).then_some(Explanation::new(Cause::Teleport, "jump beyond speed"))
}

fn damage(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let hurt = miss.acked.events.iter().any(|event| matches!(event, DemoEvent::Damage { .. }));
    hurt.then_some(Explanation::new(Cause::Knockback, "damage message"))
}

/// Tests for damage without a damage message. Servers do not report all damage; a change of health or armour along with
/// a change of speed counts too.
fn health(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let speed = length(Vec3::from_array(difference(&miss.run.state, &miss.acked.recorded).velocity));
    let evidence = miss.acked.events.iter().find_map(|event| match event {
        DemoEvent::Health(_) => Some("health changed, and speed"),
        DemoEvent::ArmorLost(_) => Some("armour lost, and speed changed"),
        _ => None,
    });
    evidence.filter(|_| speed >= PUSH_SPEED).map(|evidence| Explanation::new(Cause::Knockback, evidence))
}

/// Tests for a push without damage, as from team mates' shots, own shots, or any shot at an invulnerable player.
fn pushed(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let change = -Vec3::from_array(difference(&miss.run.state, &miss.acked.recorded).velocity);
    let speed = length(change);
    let at = miss.acked.recorded.origin;
    miss.acked.events.iter().find_map(|event| {
        let DemoEvent::Effect { kind, origin } = *event else { return None };
        let away = at - Vec3::from_array(origin);
        let distance = length(away);
        let points_away = away.dot(change) > AWAY_COSINE_MIN * distance * speed;
        let (shown, evidence) = match kind {
            EffectKind::Explosion => (distance < BLAST_REACH && points_away, "pushed away from an explosion"),
            EffectKind::Gunshot => (distance < BLAST_REACH && points_away, "pushed away from where shot hit"),
            EffectKind::Blood | EffectKind::LightningBlood => (distance < BODY_REACH, "pushed where blood was drawn"),
            EffectKind::Teleport => return None,
        };
        (shown && speed > 0.0).then_some(Explanation::new(Cause::Knockback, evidence))
    })
}

fn hits<'a>(miss: &'a MissedPrediction<'_>) -> impl Iterator<Item = &'a WorldSolid> {
    let touched = miss.run.touched.solids;
    let solids = miss.acked.solids.iter().enumerate();
    solids.filter(move |(index, _)| touched & (1 << (*index).min(31)) != 0).map(|(_, solid)| solid)
}

fn touched_mover(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let moves = |solid: &WorldSolid| matches!(solid, WorldSolid::Mover { moved, .. } if *moved != [0.0; 3]);
    hits(miss).any(moves).then_some(Explanation::new(Cause::Mover, "moving mover touched"))
}

fn touched_player(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    hits(miss)
        .any(|solid| matches!(solid, WorldSolid::Player { .. }))
        .then_some(Explanation::new(Cause::OtherPlayer, "player touched"))
}

fn water(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let world = Surroundings { map: &miss.acked.rules.map, solids: &[] };
    let at = miss.acked.recorded.origin;
    let wet = |up: &&f32| world.contents(at + Vec3::new(0.0, 0.0, **up)) <= WATER;
    let recorded = [-23.0, 4.0, 22.0].iter().take_while(wet).count() as u8;
    let (from, predicted) = (miss.acked.from.water_level, miss.run.state.water_level);
    let crossed = miss.run.touched.water_edge || predicted != from || recorded != predicted;
    crossed.then_some(Explanation::new(Cause::WaterEdge, "water plane crossed"))
}

/// Number of lost packets from which on a server does not repeat commands.
const TOO_MANY_LOST: usize = 20;
/// Largest effect of the start's rounding within one prediction, in units.
const ROUNDING_EFFECT_MAX: f32 = 16.0;
/// The most commands in a prediction for a search for losses; above it, the search takes too long.
const COMMANDS_MAX: usize = 48;
/// The most commands for a search for two bursts.
const COMMANDS_FOR_TWO_BURSTS_MAX: usize = 16;

/// A burst of consecutive lost packets.
#[derive(Clone, Copy)]
struct LossBurst {
    lost: usize,
    /// Index of the first command whose packet arrived after the burst.
    arrived: usize,
}

/// Grades the commands run from another state, among other bodies.
fn grade_from(miss: &MissedPrediction<'_>, solids: &[WorldSolid], from: &QuakeWorldPlayerState) -> PredictionGrade {
    grade(&miss.runner_among(solids).run(from, &miss.acked.commands).state, &miss.acked.recorded)
}

/// Tests whether the game slowed the corpse, which it does once the fall is over.
pub(crate) fn corpse(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    if !miss.acked.from.dead || miss.acked.recorded.alive {
        return None;
    }
    let (cause, other) = (Cause::SpawnOrDeath, !miss.acked.from.corpse);
    let evidence = if other { "reproduced: corpse lay still" } else { "reproduced: corpse still fell" };
    // There is only one alternative, so an approximate match suffices.
    let from = QuakeWorldPlayerState { corpse: other, ..miss.acked.from };
    (grade_from(miss, &miss.acked.solids, &from) != PredictionGrade::Miss).then_some(Explanation::new(cause, evidence))
}

/// Returns whether the dead player moved as a corpse, if that differs from the prediction.
pub(crate) fn lies_still(miss: &MissedPrediction<'_>) -> Option<bool> {
    corpse(miss).map(|_| !miss.acked.from.corpse)
}

/// Tests every burst of lost packets, and pairs of bursts for few commands. It returns the best fit; of equal fits, the
/// first.
pub(crate) fn lost_input(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let count = miss.acked.commands.len();
    if !(2..=COMMANDS_MAX).contains(&count) {
        return None;
    }
    let try_bursts = |bursts: &[LossBurst]| {
        let evidence = if bursts.len() > 1 { "reproduced: packets lost twice" } else { "reproduced: packets lost" };
        reproduced(Cause::InputLost, evidence, grade(&run_with_losses(miss, bursts).state, &miss.acked.recorded))
    };
    let single = bursts_from(0, count).find_map(|burst| try_bursts(&[burst]));
    if single.is_some() || count > COMMANDS_FOR_TWO_BURSTS_MAX {
        return single;
    }
    let mut pairs = bursts_from(0, count)
        .flat_map(|first| bursts_from(first.arrived + 1, count).map(move |second| [first, second]));
    pairs.find_map(|bursts| try_bursts(&bursts))
}

/// Tests other start states within the rounding of the previous packet.
fn start_off(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    let off = difference(&miss.run.state, &miss.acked.recorded).origin;
    if off.iter().any(|units| units.abs() > ROUNDING_EFFECT_MAX) {
        return None;
    }
    let origins = miss.base.origin.to_array().map(|w| miss.base.origin_wire().cell(w));
    let velocities = miss.base.velocity.to_array().map(|w| cut_cell(w, 1.0));
    start_shares().find_map(|shares| {
        let mut from = miss.acked.from;
        for axis in 0..3 {
            from.origin[axis] = within(origins[axis], shares[axis], from.origin[axis]);
            from.velocity[axis] = within(velocities[axis], shares[axis + 3], from.velocity[axis]);
        }
        let found = grade_from(miss, &miss.acked.solids, &from);
        reproduced(Cause::Quantisation, "reproduced: start within rounding", found)
    })
}

/// Tests other positions of a touched brush model, within the rounding of the wire.
fn mover_off(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    const SHIFTS: [f32; 4] = [0.0625, -0.0625, 0.125, -0.125];
    let met = |index: usize| miss.run.touched.solids & (1 << index.min(31)) != 0;
    let shifts = || (0..3).flat_map(|axis| SHIFTS.map(|shift| (axis, shift)));
    (0..miss.acked.solids.len()).filter(|index| met(*index)).find_map(|index| {
        let WorldSolid::Mover { model, origin, moved } = miss.acked.solids[index] else { return None };
        shifts().find_map(|(axis, shift): (usize, f32)| {
            let (mut origin, mut moved) = (origin, moved);
            origin[axis] += shift;
            moved[axis] += shift;
            let mut solids = miss.acked.solids.clone();
            solids[index] = WorldSolid::Mover { model, origin, moved };
            let found = grade_from(miss, &solids, &miss.acked.from);
            reproduced(Cause::Quantisation, "reproduced: mover within rounding", found)
        })
    })
}

/// Tests other players at other points of their way since the previous packet, and without them.
pub(crate) fn bodies(miss: &MissedPrediction<'_>) -> Option<Explanation> {
    const SHARES: [f32; 13] = [0.0, 1.0, 0.75, 0.5, 0.25, 1.25, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0];
    let met = &miss.acked.solids;
    let found = SHARES.iter().find_map(|&share| {
        let solids: Vec<WorldSolid> =
            met.iter().map(|solid| packets_in_flight(solid, &miss.players_before, share)).collect();
        let found = grade_from(miss, &solids, &miss.acked.from);
        reproduced(Cause::OtherPlayer, "reproduced: players on their way", found)
    });
    found.or_else(|| {
        let solids: Vec<WorldSolid> =
            met.iter().filter(|solid| !matches!(solid, WorldSolid::Player { .. })).copied().collect();
        reproduced(Cause::OtherPlayer, "reproduced: no players in the way", grade_from(miss, &solids, &miss.acked.from))
    })
}

fn packets_in_flight(solid: &WorldSolid, before: &[(u8, [f32; 3])], share: f32) -> WorldSolid {
    let WorldSolid::Player { slot, origin } = *solid else { return *solid };
    let Some((_, before)) = before.iter().find(|(other, _)| *other == slot) else { return *solid };
    let origin = [0, 1, 2].map(|axis| before[axis] + share * (origin[axis] - before[axis]));
    WorldSolid::Player { slot, origin }
}

/// Returns start positions to try, as shares of the rounding cell for origin and velocity, x to z; `None` keeps the
/// value. Corners come first, then finer grids in the ground plane, where corners of walls matter. More tries increase
/// the number of accidental fits.
fn start_shares() -> impl Iterator<Item = [Option<f32>; 6]> {
    const CORNERS: [Option<f32>; 3] = [None, Some(0.02), Some(0.98)];
    const STEPS: u8 = 8;
    let corners = || (1..27usize).map(|code| [1, 3, 9].map(|digit| CORNERS[code / digit % 3]));
    let grid = || {
        (0..=STEPS)
            .flat_map(|x| (0..=STEPS).map(move |y| [x, y].map(|n| Some(f32::from(n) / f32::from(STEPS)))))
            .map(|[x, y]| [x, y, None])
    };
    let origins = || corners().chain(grid()).map(|[x, y, z]| [x, y, z, None, None, None]);
    let velocities = || corners().chain(grid()).map(|[x, y, z]| [None, None, None, x, y, z]);
    origins().chain(velocities())
}

fn within((low, high): (f32, f32), share: Option<f32>, stay: f32) -> f32 {
    share.map_or(stay, |share| low + share * (high - low))
}

/// Returns every burst that starts at command `from` or later and leaves at least one arriving command after it.
fn bursts_from(from: usize, count: usize) -> impl Iterator<Item = LossBurst> {
    (from + 1..count).flat_map(move |arrived| (1..=arrived - from).map(move |lost| LossBurst { lost, arrived }))
}

/// Runs the commands like a server that misses the bursts, which are in order.
fn run_with_losses(miss: &MissedPrediction<'_>, bursts: &[LossBurst]) -> MoveOutcome {
    let (runner, commands) = (miss.runner_among(&miss.acked.solids), &miss.acked.commands);
    let mut run = runner.start(&miss.acked.from);
    let mut next = 0;
    for LossBurst { lost, arrived } in bursts.iter().copied() {
        let first_lost = arrived - lost;
        runner.packets(&mut run, &commands[next..first_lost]);
        let last_run = first_lost.checked_sub(1).map(|index| commands[index]).or(miss.last_command);
        run_recovered(miss, &mut run, last_run, &commands[first_lost..arrived]);
        runner.packets(&mut run, &commands[arrived..=arrived]);
        next = arrived + 1;
    }
    runner.packets(&mut run, &commands[next..]);
    run
}

/// Runs what a server runs for lost packets when the next one arrives. For each packet beyond the backups it repeats
/// the last command, if it repeats at all. Then it runs the backups in the packet. From twenty lost packets on, id's
/// servers run neither and MVDSV only the backups.
fn run_recovered(
    miss: &MissedPrediction<'_>,
    run: &mut MoveOutcome,
    last_run: Option<QuakeWorldUsercmd>,
    lost: &[QuakeWorldUsercmd],
) {
    let runner = miss.runner_among(&miss.acked.solids);
    let few = lost.len() < TOO_MANY_LOST;
    let last = last_run.filter(|_| few && miss.lost_input.repeats);
    if let Some(last) = last {
        for _ in miss.lost_input.backups..lost.len() {
            runner.command(run, &last.repeated_by_server());
        }
    }
    if few || matches!(runner.dialect, Dialect::Reworked { .. }) {
        for command in &lost[lost.len().saturating_sub(miss.lost_input.backups)..] {
            runner.command(run, command);
        }
    }
}
