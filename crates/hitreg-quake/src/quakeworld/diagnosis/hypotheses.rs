//! Tests assumptions about unrecorded facts: runs a wrong prediction again under an assumption and compares the result
//! with the recorded state.

use super::explain::{Diagnosis, reproduced};
use super::missed::MissedPrediction;
use crate::quakeworld::demo::cut_cell;
use crate::quakeworld::movement::{
    Dialect, MoveOutcome, MoveRunner, QuakeWorldPlayerState, QuakeWorldUsercmd, WorldSolid,
};
use crate::quakeworld::rounding::{difference, grade};
use hitreg_netcode::game::{Cause, PredictionGrade};

/// Number of lost packets from which on a server does not repeat commands.
const TOO_MANY_LOST: usize = 20;
/// Largest effect of the start's rounding within one prediction, in units.
const MOST_FROM_ROUNDING: f32 = 16.0;
/// The most commands in a prediction for a search for losses; above it, the search takes too long.
const MOST_COMMANDS: usize = 48;
/// The most commands for a search for two bursts.
const MOST_COMMANDS_FOR_TWO: usize = 16;

/// A burst of consecutive lost packets.
#[derive(Clone, Copy)]
struct LossBurst {
    lost: usize,
    /// Index of the first command whose packet arrived after the burst.
    arrived: usize,
}

/// Grades the commands run from another state, among other bodies.
fn grade_from(miss: &MissedPrediction<'_>, solids: &[WorldSolid], from: &QuakeWorldPlayerState) -> PredictionGrade {
    grade(&miss.runner_among(solids).run(from, &miss.commands).state, &miss.recorded)
}

fn grade_as_corpse(miss: &MissedPrediction<'_>, corpse: bool) -> PredictionGrade {
    grade_from(miss, &miss.solids, &QuakeWorldPlayerState { corpse, ..miss.from })
}

/// Tests whether the game slowed the corpse, which it does once the fall is over.
pub(crate) fn corpse(miss: &MissedPrediction<'_>) -> Diagnosis {
    if !miss.from.dead || miss.recorded.alive {
        return None;
    }
    let (cause, other) = (Cause::SpawnOrDeath, !miss.from.corpse);
    let evidence = if other { "reproduced: corpse lay still" } else { "reproduced: corpse still fell" };
    // There is only one alternative, so an approximate match suffices.
    (grade_as_corpse(miss, other) != PredictionGrade::Miss).then_some((cause, evidence))
}

/// Returns whether the dead player moved as a corpse, if that differs from the prediction.
pub(crate) fn lies_still(miss: &MissedPrediction<'_>) -> Option<bool> {
    corpse(miss).map(|_| !miss.from.corpse)
}

/// Tests every burst of lost packets, and pairs of bursts for few commands. It returns the best fit; of equal fits, the
/// first.
pub(crate) fn lost_input(miss: &MissedPrediction<'_>) -> Diagnosis {
    let count = miss.commands.len();
    if !(2..=MOST_COMMANDS).contains(&count) {
        return None;
    }
    let try_bursts = |bursts: &[LossBurst]| {
        let evidence = if bursts.len() > 1 { "reproduced: packets lost twice" } else { "reproduced: packets lost" };
        reproduced(Cause::InputLost, evidence, grade(&run_with_losses(miss, bursts).state, &miss.recorded))
    };
    let single = bursts_from(0, count).find_map(|burst| try_bursts(&[burst]));
    if single.is_some() || count > MOST_COMMANDS_FOR_TWO {
        return single;
    }
    let mut pairs = bursts_from(0, count)
        .flat_map(|first| bursts_from(first.arrived + 1, count).map(move |second| [first, second]));
    pairs.find_map(|bursts| try_bursts(&bursts))
}

/// Tests other start states within the rounding of the previous packet.
pub(crate) fn start_off(miss: &MissedPrediction<'_>) -> Diagnosis {
    let off = difference(&miss.run.state, &miss.recorded).origin;
    if off.iter().any(|units| units.abs() > MOST_FROM_ROUNDING) {
        return None;
    }
    let origins = miss.base.origin.to_array().map(|w| miss.base.origin_wire().cell(w));
    let velocities = miss.base.velocity.to_array().map(|w| cut_cell(w, 1.0));
    start_shares().find_map(|shares| {
        let mut from = miss.from;
        for axis in 0..3 {
            from.origin[axis] = within(origins[axis], shares[axis], from.origin[axis]);
            from.velocity[axis] = within(velocities[axis], shares[axis + 3], from.velocity[axis]);
        }
        let found = grade_from(miss, &miss.solids, &from);
        reproduced(Cause::Quantisation, "reproduced: start within rounding", found)
    })
}

/// Tests other positions of a touched brush model, within the rounding of the wire.
pub(crate) fn mover_off(miss: &MissedPrediction<'_>) -> Diagnosis {
    const SHIFTS: [f32; 4] = [0.0625, -0.0625, 0.125, -0.125];
    let met = |index: usize| miss.run.touched.solids & (1 << index.min(31)) != 0;
    let shifts = || (0..3).flat_map(|axis| SHIFTS.map(|shift| (axis, shift)));
    (0..miss.solids.len()).filter(|index| met(*index)).find_map(|index| {
        let WorldSolid::Mover { model, origin, moved } = miss.solids[index] else { return None };
        shifts().find_map(|(axis, shift): (usize, f32)| {
            let (mut origin, mut moved) = (origin, moved);
            origin[axis] += shift;
            moved[axis] += shift;
            let mut solids = miss.solids.clone();
            solids[index] = WorldSolid::Mover { model, origin, moved };
            let found = grade_from(miss, &solids, &miss.from);
            reproduced(Cause::Quantisation, "reproduced: mover within rounding", found)
        })
    })
}

/// Tests other players at other points of their way since the previous packet, and without them.
pub(crate) fn bodies(miss: &MissedPrediction<'_>) -> Diagnosis {
    const SHARES: [f32; 13] = [0.0, 1.0, 0.75, 0.5, 0.25, 1.25, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0];
    let met = &miss.solids;
    let found = SHARES.iter().find_map(|&share| {
        let solids: Vec<WorldSolid> =
            met.iter().map(|solid| packets_in_flight(solid, &miss.players_before, share)).collect();
        let found = grade_from(miss, &solids, &miss.from);
        reproduced(Cause::OtherPlayer, "reproduced: players on their way", found)
    });
    found.or_else(|| {
        let solids: Vec<WorldSolid> =
            met.iter().filter(|solid| !matches!(solid, WorldSolid::Player { .. })).copied().collect();
        reproduced(Cause::OtherPlayer, "reproduced: no players in the way", grade_from(miss, &solids, &miss.from))
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
    let (runner, commands) = (miss.runner(), &miss.commands);
    let mut run = runner.start(&miss.from);
    let mut next = 0;
    for LossBurst { lost, arrived } in bursts.iter().copied() {
        let first_lost = arrived - lost;
        run_arrived(&runner, &mut run, &commands[next..first_lost]);
        let last_run = first_lost.checked_sub(1).map(|index| commands[index]).or(miss.before);
        run_recovered(miss, &mut run, last_run, &commands[first_lost..arrived]);
        runner.command(&mut run, &commands[arrived]);
        runner.end_packet(&mut run);
        next = arrived + 1;
    }
    run_arrived(&runner, &mut run, &commands[next..]);
    run
}

fn run_arrived(runner: &MoveRunner<'_>, run: &mut MoveOutcome, commands: &[QuakeWorldUsercmd]) {
    for command in commands {
        runner.command(run, command);
        runner.end_packet(run);
    }
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
    let runner = miss.runner();
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
