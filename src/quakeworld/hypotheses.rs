//! Tries what a recording does not say: runs a missed prediction again under an assumption, and holds it against the
//! recorded state.

use super::cause::{Burst, Cause, Evidence, Hypothesis};
use super::demo::OtherPlayer;
use super::explain::reproduced;
use super::movevars::Dialect;
use super::prediction::{Given, Prediction};
use super::run::{Run, Runner};
use super::state::PlayerState;
use super::usercmd::UserCmd;
use super::verdict::{Verdict, cut_cell, difference, judge};
use super::world::{Solid, World};

/// From so many lost packets on, a server does not repeat commands any more.
const TOO_MANY_LOST: usize = 20;
/// Rounding of the start never leads farther off than this within one prediction, in units.
const MOST_FROM_ROUNDING: f32 = 16.0;
/// More commands in one prediction are not searched for losses: it would take longer than it is worth.
const MOST_COMMANDS: usize = 48;
/// Two bursts are searched for among so many.
const MOST_COMMANDS_FOR_TWO: usize = 16;

type Found = Option<(Cause, Evidence)>;

/// Judges the commands run from another state, among other bodies.
fn judge_from(given: &Given<'_>, solids: &[Solid], from: &PlayerState) -> Verdict {
    let runner = Runner { world: World { map: given.runner.world.map, solids }, ..given.runner };
    judge(&runner.run(from, given.commands).state, &given.recorded)
}

fn judge_as_corpse(given: &Given<'_>) -> Verdict {
    judge_from(given, given.runner.world.solids, &PlayerState { corpse: true, ..given.from })
}

/// The game slows a corpse once its fall is over; otherwise a dead player is explained by being dead.
pub(crate) fn corpse(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let mark = (Cause::SpawnOrDeath, Evidence::DeathMark { was: true, is: true });
    let slowed = || reproduced(Cause::SpawnOrDeath, Hypothesis::Corpse, judge_as_corpse(given));
    if given.from.dead && given.recorded.dead { slowed().or(Some(mark)) } else { None }
}

/// Whether the dead player moved as a corpse, against what was predicted.
pub(crate) fn lies_still(miss: &Prediction<'_>) -> bool {
    let Given { from, recorded, .. } = &miss.given;
    from.dead && recorded.dead && !from.corpse && judge_as_corpse(&miss.given) != Verdict::Miss
}

/// One burst of lost packets, or two where there are few commands, at every place and of every length; the best fit
/// counts, of equal ones the first.
pub(crate) fn lost_input(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let count = given.commands.len();
    if !(2..=MOST_COMMANDS).contains(&count) {
        return None;
    }
    let try_bursts = |bursts: &[Burst]| {
        let verdict = judge(&run_with_losses(given, bursts).state, &given.recorded);
        let last = bursts[bursts.len() - 1];
        let first = if bursts.len() > 1 { Some(bursts[0]) } else { None };
        reproduced(Cause::InputLost, Hypothesis::Lost { first, last }, verdict)
    };
    let single = bursts_from(0, count).find_map(|burst| try_bursts(&[burst]));
    if single.is_some() || count > MOST_COMMANDS_FOR_TWO {
        return single;
    }
    let mut pairs = bursts_from(0, count)
        .flat_map(|first| bursts_from(usize::from(first.arrived) + 1, count).map(move |second| [first, second]));
    pairs.find_map(|bursts| try_bursts(&bursts))
}

/// The start elsewhere within what the packet before can stand for.
pub(crate) fn start_off(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let off = difference(&miss.run.state, &given.recorded).origin;
    if off.iter().any(|units| units.abs() > MOST_FROM_ROUNDING) {
        return None;
    }
    let origins = given.base.origin.map(|w| given.wire.cell(w));
    let velocities = given.base.velocity.map(|w| cut_cell(f32::from(w), 1.0));
    start_shares().find_map(|shares| {
        let mut from = given.from;
        for axis in 0..3 {
            from.origin[axis] = within(origins[axis], shares[axis], from.origin[axis]);
            from.velocity[axis] = within(velocities[axis], shares[axis + 3], from.velocity[axis]);
        }
        let verdict = judge_from(given, given.runner.world.solids, &from);
        let (origin, velocity) = (from.origin, from.velocity);
        reproduced(Cause::Quantisation, Hypothesis::StartsAt { origin, velocity }, verdict)
    })
}

/// Other players on their way from where the packet before showed them, or not in the way at all.
pub(crate) fn bodies(miss: &Prediction<'_>) -> Found {
    const SHARES: [f32; 13] = [0.0, 1.0, 0.75, 0.5, 0.25, 1.25, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0];
    let given = &miss.given;
    let met = given.runner.world.solids;
    let found = SHARES.iter().find_map(|&share| {
        let solids: Vec<Solid> = met.iter().map(|solid| on_its_way(solid, given.players_before, share)).collect();
        let verdict = judge_from(given, &solids, &given.from);
        reproduced(Cause::OtherPlayer, Hypothesis::PlayersOnTheirWay { share }, verdict)
    });
    found.or_else(|| {
        let solids: Vec<Solid> = met.iter().filter(|solid| matches!(solid, Solid::Mover { .. })).copied().collect();
        reproduced(Cause::OtherPlayer, Hypothesis::NoPlayers, judge_from(given, &solids, &given.from))
    })
}

fn on_its_way(solid: &Solid, before: &[OtherPlayer], share: f32) -> Solid {
    let Solid::Player { slot, origin } = *solid else { return *solid };
    let Some(before) = before.iter().find(|other| other.slot == slot) else { return *solid };
    let origin = [0, 1, 2].map(|axis| before.origin[axis] + share * (origin[axis] - before.origin[axis]));
    Solid::Player { slot, origin }
}

/// What the wire does not carry, otherwise.
pub(crate) fn controls(miss: &Prediction<'_>) -> Found {
    let given = &miss.given;
    let (from, solids) = (&given.from, given.runner.world.solids);
    let held = PlayerState { jump_held: !from.jump_held, ..*from };
    let locked = from.water_jump_s != 0.0;
    let steering = PlayerState { water_jump_s: if locked { 0.0 } else { 2.0 }, ..*from };
    let jump = reproduced(Cause::InputLost, Hypothesis::JumpHeld(held.jump_held), judge_from(given, solids, &held));
    let steer = || reproduced(Cause::WaterEdge, Hypothesis::Steering(locked), judge_from(given, solids, &steering));
    jump.or_else(steer)
}

/// Where to try the start: for origin and velocity, x to z, the share of the cell to go to, or none to stay. First the
/// corners of all six, then finer grids on the ground plan, where corners of walls are met.
fn start_shares() -> impl Iterator<Item = [Option<f32>; 6]> {
    const CORNERS: [Option<f32>; 3] = [None, Some(0.02), Some(0.98)];
    const STEPS: u8 = 16;
    let corners = (1..729usize).map(|code| [1, 3, 9, 27, 81, 243].map(|digit| CORNERS[code / digit % 3]));
    let grid =
        || (0..=STEPS).flat_map(|x| (0..=STEPS).map(move |y| [x, y].map(|n| Some(f32::from(n) / f32::from(STEPS)))));
    let origins = grid().map(|[x, y]| [x, y, None, None, None, None]);
    let velocities = grid().map(|[x, y]| [None, None, None, x, y, None]);
    corners.chain(origins).chain(velocities)
}

fn within((low, high): (f32, f32), share: Option<f32>, stay: f32) -> f32 {
    share.map_or(stay, |share| low + share * (high - low))
}

/// Every burst that starts at command `from` or later and leaves an arriving one behind it.
fn bursts_from(from: usize, count: usize) -> impl Iterator<Item = Burst> {
    (from + 1..count).flat_map(move |arrived| {
        (1..=arrived - from).map(move |lost| Burst { lost: lost as u16, arrived: arrived as u16 })
    })
}

/// Runs the commands as a server does that misses the bursts, which come in order.
fn run_with_losses(given: &Given<'_>, bursts: &[Burst]) -> Run {
    let Given { runner, commands, .. } = given;
    let mut run = runner.start(&given.from);
    let mut next = 0;
    for burst in bursts {
        let (lost, arrived) = (usize::from(burst.lost), usize::from(burst.arrived));
        let first_lost = arrived - lost;
        run_arrived(runner, &mut run, &commands[next..first_lost]);
        let last_run = first_lost.checked_sub(1).map(|index| commands[index]).or(given.before);
        run_recovered(runner, &mut run, last_run, &commands[first_lost..arrived]);
        runner.command(&mut run, &commands[arrived]);
        runner.end_packet(&mut run);
        next = arrived + 1;
    }
    run_arrived(runner, &mut run, &commands[next..]);
    run
}

fn run_arrived(runner: &Runner<'_>, run: &mut Run, commands: &[UserCmd]) {
    for command in commands {
        runner.command(run, command);
        runner.end_packet(run);
    }
}

/// What a server runs for lost packets once the next one is there: the last command again for each beyond two, then
/// the two backups that the packet carries. From twenty on id's servers run neither, MVDSV only the backups.
fn run_recovered(runner: &Runner<'_>, run: &mut Run, last_run: Option<UserCmd>, lost: &[UserCmd]) {
    let few = lost.len() < TOO_MANY_LOST;
    if few && let Some(last) = last_run {
        for _ in 2..lost.len() {
            runner.command(run, &last.repeated_by_server());
        }
    }
    if few || matches!(runner.dialect, Dialect::Reworked { .. }) {
        for command in &lost[lost.len().saturating_sub(2)..] {
            runner.command(run, command);
        }
    }
}
