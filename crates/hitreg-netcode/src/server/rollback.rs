//! The rollback check: at regular intervals, the world is restored from its saved words and the ticks run again. State
//! that the save omits then shows as a different hash.

use crate::game::{DiscardingSink, Game, PlayerCommand, ShotVerdict};
use crate::pipeline::{RollbackError, Rollbacks};
use hitreg_log::hash;
use hitreg_log::units::{Micros, PlayerId, Seed, Tick};
use hitreg_log::usercmd::Usercmd;

/// A check that runs along with the server.
pub(super) struct Rollback<G: Game> {
    every: u32,
    ticks: u32,
    /// The world's words before the recorded ticks.
    saved: Option<Vec<u32>>,
    /// The inputs of the recorded ticks.
    steps: Vec<RollbackStep<G>>,
    so_far: Rollbacks,
}

enum RollbackStep<G: Game> {
    Command(PlayerId, Usercmd<G::Input>),
    Shot(G::Fire, ShotVerdict),
    World(Micros),
}

impl<G: Game> Rollback<G> {
    pub(super) fn new(every: u32) -> Rollback<G> {
        Rollback { every: every.max(1), ticks: 0, saved: None, steps: Vec::new(), so_far: Rollbacks::default() }
    }

    pub(super) fn so_far(&self) -> Rollbacks {
        self.so_far.clone()
    }

    pub(super) fn tick_begins(&mut self, world: &G::World) {
        if self.saved.is_none() {
            let mut words = Vec::new();
            G::save(world, &mut words);
            self.saved = Some(words);
        }
    }

    pub(super) fn command_ran(&mut self, player: PlayerId, command: Usercmd<G::Input>) {
        self.steps.push(RollbackStep::Command(player, command));
    }

    pub(super) fn shot_applied(&mut self, fire: G::Fire, verdict: ShotVerdict) {
        self.steps.push(RollbackStep::Shot(fire, verdict));
    }

    pub(super) fn tick_ends(&mut self, rules: &G::Rules, seed: Seed, dt: Micros, hash: u64) {
        self.steps.push(RollbackStep::World(dt));
        self.ticks += 1;
        if !self.ticks.is_multiple_of(self.every) {
            return;
        }
        let Some(saved) = self.saved.take() else { return };
        let steps = std::mem::take(&mut self.steps);
        let tick = Tick(self.ticks);
        self.so_far.checked += 1;
        let error = match G::load(rules, &saved) {
            Ok(Some(world)) => {
                let again = run_again::<G>(rules, seed, world, &steps);
                (again != hash).then_some(RollbackError::Differs { tick, from: self.every, first: hash, again })
            }
            Ok(None) => Some(RollbackError::Load { tick, why: "it is not offered any more".to_owned() }),
            Err(why) => Some(RollbackError::Load { tick, why: why.to_string() }),
        };
        self.so_far.failed = self.so_far.failed.take().or(error);
    }
}

fn run_again<G: Game>(rules: &G::Rules, seed: Seed, mut world: G::World, steps: &[RollbackStep<G>]) -> u64 {
    let mut last: Option<(PlayerId, Usercmd<G::Input>)> = None;
    for step in steps {
        match step {
            RollbackStep::Command(player, command) => {
                let run = PlayerCommand { rules, seed, player: *player, command };
                G::run(&run, &mut world, &mut DiscardingSink);
                last = Some((*player, command.clone()));
            }
            RollbackStep::Shot(fire, verdict) => {
                if let Some((player, command)) = &last {
                    G::apply(rules, &mut world, *player, command, fire, verdict, &mut DiscardingSink);
                }
            }
            RollbackStep::World(dt) => G::step_world(rules, &mut world, *dt, &mut DiscardingSink),
        }
    }
    let mut words = Vec::new();
    G::save(&world, &mut words);
    hash::hash_words(&words)
}
