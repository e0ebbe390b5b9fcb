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
use super::verdict::{Verdict, judge};
use super::world::{Solid, World};

/// From so many lost packets on, a server does not repeat commands any more.
const TOO_MANY_LOST: usize = 20;
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

    /// The game slows a corpse once its fall is over.
    pub(crate) fn corpse(&self) -> Found {
        let dead = self.check.from.dead && self.check.recorded.dead;
        dead.then_some(if self.lies_still() {
            let hypothesis = Hypothesis::Corpse;
            (Cause::SpawnOrDeath, Evidence::Reproduced { hypothesis, verdict: self.run_as_corpse() })
        } else {
            (Cause::SpawnOrDeath, Evidence::DeathMark { was: true, is: true })
        })
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

    /// The start elsewhere within the wire's precision: every combination of its corners, and small steps on the
    /// ground plan, which decide how a corner of two walls is met.
    pub(crate) fn start_off(&self) -> Found {
        const SIDES: [f32; 3] = [0.0, -1.0, 1.0];
        const STEPS: [f32; 7] = [0.0, 0.01, -0.01, 0.03, -0.03, 0.06, -0.06];
        let corners = (1..729usize).map(|code| {
            let side = |digit: u32| SIDES[code / 3usize.pow(digit) % 3];
            ([side(0), side(1), side(2)].map(|s| s * 0.12), [side(3), side(4), side(5)].map(|s| s * 0.99))
        });
        let steps = STEPS.iter().flat_map(|&x| STEPS.iter().map(move |&y| ([x, y, 0.0], [0.0; 3])));
        let commands: Vec<UserCmd> = self.commands().collect();
        self.with_runner(self.solids, |runner| {
            steps.chain(corners).find_map(|(origin, velocity)| {
                let mut from = self.check.from;
                for axis in 0..3 {
                    from.origin[axis] += origin[axis];
                    from.velocity[axis] += velocity[axis];
                }
                let verdict = self.judge(&runner.run(&from, &commands));
                reproduced(Cause::Quantisation, Hypothesis::StartOff { origin, velocity }, verdict)
            })
        })
    }

    /// Other players where the packet before showed them, or not in the way at all.
    pub(crate) fn bodies(&self) -> Found {
        let others = self.demo.packets[self.check.base].others.of(&self.demo.others);
        let mut solids = self.solids.to_vec();
        for solid in &mut solids {
            if let Solid::Player { slot, origin } = solid
                && let Some(before) = others.iter().find(|other| other.slot == *slot)
            {
                *origin = before.origin;
            }
        }
        let earlier = self.run_all(&solids, &self.check.from);
        solids.retain(|solid| !matches!(solid, Solid::Player { .. }));
        reproduced(Cause::OtherPlayer, Hypothesis::PlayersEarlier, earlier)
            .or_else(|| reproduced(Cause::OtherPlayer, Hypothesis::NoPlayers, self.run_all(&solids, &self.check.from)))
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
