//! Tries what a recording does not say: runs a missed prediction again under an assumption, and holds it against the
//! recorded state.

use super::cause::{Burst, Cause, Evidence, Hypothesis};
use super::demo::Demo;
use super::explain::reproduced;
use super::map::Map;
use super::movevars::Dialect;
use super::open_loop::Check;
use super::run::{Run, Runner};
use super::state::PlayerState;
use super::usercmd::UserCmd;
use super::verdict::{Verdict, cut_cell, difference, judge};
use super::world::{Solid, World};

/// From so many lost packets on, a server does not repeat commands any more.
const TOO_MANY_LOST: usize = 20;
/// Rounding of the start never leads farther off than this within one prediction, in units.
const MOST_FROM_ROUNDING: f32 = 16.0;
/// More commands in one prediction than any client sends in a second are not searched for losses.
const MOST_COMMANDS: usize = 100;
/// Two bursts are searched for among so many.
const MOST_COMMANDS_FOR_TWO: usize = 16;

/// A missed prediction to try again.
pub(crate) struct Trial<'a> {
    pub(crate) demo: &'a Demo,
    pub(crate) map: &'a Map,
    pub(crate) check: &'a Check,
    pub(crate) solids: &'a [Solid],
}

type Found = Option<(Cause, Evidence)>;

impl Trial<'_> {
    fn commands(&self) -> impl ExactSizeIterator<Item = UserCmd> + '_ {
        self.demo.commands[self.check.commands.clone()].iter().map(|sent| sent.cmd)
    }

    fn with_runner<T>(&self, solids: &[Solid], run: impl FnOnce(&Runner<'_>) -> T) -> T {
        let vars = &self.demo.move_vars[usize::from(self.demo.packets[self.check.base].move_vars)];
        run(&Runner { dialect: self.demo.server.dialect, vars, world: World { map: self.map, solids } })
    }

    fn judge(&self, run: &Run) -> Verdict {
        judge(&run.state, &self.check.recorded)
    }

    fn run_all(&self, solids: &[Solid], from: &PlayerState) -> Verdict {
        let commands: Vec<UserCmd> = self.commands().collect();
        self.with_runner(solids, |runner| self.judge(&runner.run(from, &commands)))
    }

    /// The game slows a corpse once its fall is over; otherwise a dead player is explained by being dead.
    pub(crate) fn corpse(&self) -> Found {
        let dead = self.check.from.dead && self.check.recorded.dead;
        let mark = (Cause::SpawnOrDeath, Evidence::DeathMark { was: true, is: true });
        let slowed = || reproduced(Cause::SpawnOrDeath, Hypothesis::Corpse, self.run_as_corpse());
        if dead { slowed().or(Some(mark)) } else { None }
    }

    /// Whether the dead player moved as a corpse, against what was predicted.
    pub(crate) fn lies_still(&self) -> bool {
        let (from, recorded) = (&self.check.from, &self.check.recorded);
        from.dead && recorded.dead && !from.corpse && self.run_as_corpse() != Verdict::Miss
    }

    fn run_as_corpse(&self) -> Verdict {
        self.run_all(self.solids, &PlayerState { corpse: true, ..self.check.from })
    }

    /// One burst of lost packets, or two where there are few commands, at every place and of every length; the best fit
    /// counts, of equal ones the first with the fewest losses.
    pub(crate) fn lost_input(&self) -> Found {
        let commands: Vec<UserCmd> = self.commands().collect();
        let count = commands.len();
        if !(2..=MOST_COMMANDS).contains(&count) {
            return None;
        }
        let before = self.check.commands.start.checked_sub(1).map(|index| self.demo.commands[index].cmd);
        self.with_runner(self.solids, |runner| {
            let try_bursts = |bursts: &[Burst]| {
                let verdict = self.judge(&run_with_losses(runner, &self.check.from, &commands, before, bursts));
                let last = bursts[bursts.len() - 1];
                let first = if bursts.len() > 1 { Some(bursts[0]) } else { None };
                (verdict, Hypothesis::Lost { first, last })
            };
            let singles = bursts_from(0, count).map(|burst| try_bursts(&[burst]));
            let (verdict, hypothesis) = singles.min_by_key(|(verdict, _)| *verdict)?;
            let single = reproduced(Cause::InputLost, hypothesis, verdict);
            if verdict == Verdict::Exact || count > MOST_COMMANDS_FOR_TWO {
                return single;
            }
            let doubles = bursts_from(0, count).flat_map(|first| {
                bursts_from(usize::from(first.arrived) + 1, count).map(move |second| [first, second])
            });
            let double = doubles.map(|bursts| try_bursts(&bursts)).min_by_key(|(verdict, _)| *verdict);
            double.and_then(|(verdict, hypothesis)| reproduced(Cause::InputLost, hypothesis, verdict)).or(single)
        })
    }

    /// The start elsewhere within what the packet before can stand for.
    pub(crate) fn start_off(&self) -> Found {
        let recorded = self.demo.packets[self.check.base].own?;
        let off = difference(&self.check.run.state, &self.check.recorded).origin;
        if off.iter().any(|units| units.abs() > MOST_FROM_ROUNDING) {
            return None;
        }
        let wire = self.demo.server.origin_wire();
        let origins = recorded.origin.map(|w| wire.cell(w));
        let velocities = recorded.velocity.map(|w| cut_cell(f32::from(w), 1.0));
        let commands: Vec<UserCmd> = self.commands().collect();
        self.with_runner(self.solids, |runner| {
            start_shares().find_map(|shares| {
                let mut from = self.check.from;
                for axis in 0..3 {
                    from.origin[axis] = within(origins[axis], shares[axis], from.origin[axis]);
                    from.velocity[axis] = within(velocities[axis], shares[axis + 3], from.velocity[axis]);
                }
                let verdict = self.judge(&runner.run(&from, &commands));
                let (origin, velocity) = (from.origin, from.velocity);
                reproduced(Cause::Quantisation, Hypothesis::StartsAt { origin, velocity }, verdict)
            })
        })
    }

    /// Other players on their way from where the packet before showed them, or not in the way at all.
    pub(crate) fn bodies(&self) -> Found {
        const SHARES: [f32; 12] = [0.0, 0.75, 0.5, 0.25, 1.25, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0];
        let others = self.demo.packets[self.check.base].others.of(&self.demo.others);
        let found = SHARES.iter().find_map(|&share| {
            let mut solids = self.solids.to_vec();
            for solid in &mut solids {
                if let Solid::Player { slot, origin } = solid
                    && let Some(before) = others.iter().find(|other| other.slot == *slot)
                {
                    *origin = [0, 1, 2].map(|axis| before.origin[axis] + share * (origin[axis] - before.origin[axis]));
                }
            }
            let verdict = self.run_all(&solids, &self.check.from);
            reproduced(Cause::OtherPlayer, Hypothesis::PlayersOnTheirWay { share }, verdict)
        });
        found.or_else(|| {
            let mut solids = self.solids.to_vec();
            solids.retain(|solid| !matches!(solid, Solid::Player { .. }));
            reproduced(Cause::OtherPlayer, Hypothesis::NoPlayers, self.run_all(&solids, &self.check.from))
        })
    }

    /// What the wire does not carry, otherwise.
    pub(crate) fn controls(&self) -> Found {
        let from = &self.check.from;
        let held = PlayerState { jump_held: !from.jump_held, ..*from };
        let found =
            reproduced(Cause::InputLost, Hypothesis::JumpHeld(held.jump_held), self.run_all(self.solids, &held));
        let locked = from.water_jump_s != 0.0;
        let steering = PlayerState { water_jump_s: if locked { 0.0 } else { 2.0 }, ..*from };
        let run = || self.run_all(self.solids, &steering);
        found.or_else(|| reproduced(Cause::WaterEdge, Hypothesis::Steering(locked), run()))
    }
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
fn run_with_losses(
    runner: &Runner<'_>,
    from: &PlayerState,
    commands: &[UserCmd],
    before: Option<UserCmd>,
    bursts: &[Burst],
) -> Run {
    let mut run = runner.start(from);
    let mut next = 0;
    for burst in bursts {
        let (lost, arrived) = (usize::from(burst.lost), usize::from(burst.arrived));
        let first_lost = arrived - lost;
        run_arrived(runner, &mut run, &commands[next..first_lost]);
        let last_run = first_lost.checked_sub(1).map(|index| commands[index]).or(before);
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
