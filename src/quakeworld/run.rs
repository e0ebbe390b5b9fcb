//! Runs whole usercmds as a server does: in steps, with the map's triggers after each.

use super::map::TriggerEffect;
use super::movevars::{Dialect, MoveVars};
use super::pmove::step;
use super::state::{PlayerState, Touched};
use super::usercmd::UserCmd;
use super::world::{PLAYER_MAXS, PLAYER_MINS, World};

/// A teleporter takes the steering away until the player lands or falls; servers set a time far in the future.
const TELEPORT_LOCK_S: f32 = 1_000.0;
const TELEPORT_SPEED: f32 = 300.0;

/// Where commands led, and what they touched on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The state after the last command.
    pub state: PlayerState,
    /// Everything touched.
    pub touched: Touched,
}

/// Runs `commands` in order from `from`.
pub fn run_commands(
    dialect: Dialect,
    vars: &MoveVars,
    world: &World<'_>,
    from: &PlayerState,
    commands: &[UserCmd],
) -> Run {
    let mut run = Run { state: *from, touched: Touched::default() };
    for command in commands {
        for cmd in command.steps() {
            let (state, mut touched) = step(dialect, vars, world, &run.state, &cmd);
            run.state = state;
            touch_triggers(world, &mut run.state, &mut touched);
            run.touched.add(&touched);
        }
    }
    run
}

/// What the map's triggers do to a living player at this place.
fn touch_triggers(world: &World<'_>, state: &mut PlayerState, touched: &mut Touched) {
    if state.dead {
        return;
    }
    for (index, trigger) in world.map.triggers.iter().enumerate() {
        let meets = |axis: usize| {
            let (low, high) = (state.origin[axis] + PLAYER_MINS[axis] - 1.0, state.origin[axis] + PLAYER_MAXS[axis] + 1.0);
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
                state.water_jump_s = TELEPORT_LOCK_S;
            }
        }
    }
}
