//! Runs whole usercmds as a server does: in steps, with the map's triggers after each.

use glam::Vec3;

use super::carry::carry;
use super::map::TriggerEffect;
use super::movevars::{Dialect, MoveVars};
use super::pmove::step;
use super::state::{PlayerState, Touched, normalize};
use super::usercmd::UserCmd;
use super::world::{PLAYER_MAXS, PLAYER_MINS, World};

/// A teleporter takes the steering away until the player lands or falls; servers set a time far in the future.
const TELEPORT_LOCK_S: f32 = 1_000.0;
/// Landings from a faster fall are heard, and KTeams takes their speed.
const HARD_LANDING: f32 = -300.0;
/// Each step takes this from a corpse's speed, in units/s.
const CORPSE_SLOWING: f32 = 20.0;
const TELEPORT_SPEED: f32 = 300.0;

/// Where commands led, and what they touched on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The state after the last command.
    pub state: PlayerState,
    /// Everything touched.
    pub touched: Touched,
    /// The view of the last command run.
    view: [f32; 3],
}

/// A server at work on one player's packets.
#[derive(Clone, Copy, Debug)]
pub struct Runner<'a> {
    /// Which movement code.
    pub dialect: Dialect,
    /// The movement rules in force.
    pub vars: &'a MoveVars,
    /// The surroundings.
    pub world: World<'a>,
}

impl Runner<'_> {
    /// Runs `commands` in order from `from`, each in a packet of its own.
    pub fn run(&self, from: &PlayerState, commands: &[UserCmd]) -> Run {
        let mut run = self.start(from);
        for command in commands {
            self.command(&mut run, command);
            self.end_packet(&mut run);
        }
        run
    }

    /// The state after the brush models have moved, and before any command.
    pub fn start(&self, from: &PlayerState) -> Run {
        let mut run = Run { state: *from, touched: Touched::default(), view: [0.0; 3] };
        carry(&self.world, self.dialect.sweep_rule(), &mut run.state, &mut run.touched);
        run
    }

    /// Runs one command, in as many steps as it needs.
    pub fn command(&self, run: &mut Run, command: &UserCmd) {
        for cmd in command.steps() {
            slow_corpse(&mut run.state);
            let stale = run.state.view_fixed && matches!(self.dialect, Dialect::Classic { .. });
            let steered = UserCmd { angles: if stale { run.view } else { cmd.angles }, ..cmd };
            let (state, mut touched) = step(self.dialect, self.vars, &self.world, &run.state, &steered);
            run.view = cmd.angles;
            run.state = state;
            touch_triggers(&self.world, &mut run.state, &mut touched);
            run.touched.add(&touched);
        }
    }

    /// What the game does after all commands of one packet.
    pub fn end_packet(&self, run: &mut Run) {
        let state = &mut run.state;
        if state.dead {
            return;
        }
        let soft = self.dialect == Dialect::Classic { soft_landing: true };
        if soft && state.on_ground && state.fall_speed < HARD_LANDING {
            state.velocity[2] = 0.0;
        }
        state.fall_speed = state.velocity[2];
    }
}

/// What the game does to a dead body before each step.
fn slow_corpse(state: &mut PlayerState) {
    if state.corpse && state.on_ground {
        let (direction, speed) = normalize(Vec3::from_array(state.velocity));
        state.velocity = (direction * (speed - CORPSE_SLOWING).max(0.0)).to_array();
    }
}

/// What the map's triggers do to a living player at this place.
fn touch_triggers(world: &World<'_>, state: &mut PlayerState, touched: &mut Touched) {
    if state.dead {
        return;
    }
    for (index, trigger) in world.map.triggers.iter().enumerate() {
        let meets = |axis: usize| {
            let (low, high) =
                (state.origin[axis] + PLAYER_MINS[axis] - 1.0, state.origin[axis] + PLAYER_MAXS[axis] + 1.0);
            low <= trigger.maxs[axis] && high >= trigger.mins[axis]
        };
        if !(meets(0) && meets(1) && meets(2)) {
            continue;
        }
        touched.trigger = Some(index as u16);
        match trigger.effect {
            TriggerEffect::Push { velocity } => state.velocity = velocity,
            TriggerEffect::Teleport { to, angles } => {
                let (sin, cos) = libm::sincos(f64::from(angles[1]).to_radians());
                state.origin = to;
                state.velocity = [cos as f32 * TELEPORT_SPEED, sin as f32 * TELEPORT_SPEED, 0.0];
                state.on_ground = false;
                state.view_fixed = true;
                state.water_jump_s = TELEPORT_LOCK_S;
            }
        }
    }
}
