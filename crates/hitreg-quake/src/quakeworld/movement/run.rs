//! Runs whole usercmds as a server does: in steps, with the map's triggers after each.

use glam::Vec3;

use super::carry::carry;
use super::movevars::{Dialect, QuakeWorldMoveVars};
use super::pmove::step;
use super::state::{MoveContacts, QuakeWorldPlayerState, normalize};
use super::usercmd::QuakeWorldUsercmd;
use super::world::{PLAYER_MAXS, PLAYER_MINS, Surroundings};
use crate::bsp::quake::TriggerEffect;

/// Time without steering after a teleport, in seconds. Servers set a time far in the future; it ends when the player
/// lands or falls.
const TELEPORT_LOCK_S: f32 = 1_000.0;
/// Vertical speed in units/s below which a landing is loud, and KTeams stops the player.
const HARD_LANDING: f32 = -300.0;
/// Speed that a corpse loses in each step, in units/s.
const CORPSE_SLOWING: f32 = 20.0;
const TELEPORT_SPEED: f32 = 300.0;

/// The result of commands, with the contacts on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MoveOutcome {
    /// State after the last command.
    pub(crate) state: QuakeWorldPlayerState,
    /// All contacts.
    pub(crate) touched: MoveContacts,
    /// View of the last command.
    view: [f32; 3],
}

impl MoveOutcome {
    /// Returns a run without any command yet.
    pub(crate) fn at(state: QuakeWorldPlayerState) -> MoveOutcome {
        MoveOutcome { state, touched: MoveContacts::default(), view: [0.0; 3] }
    }
}

/// Runs one player's packets as a server does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveRunner<'a> {
    /// The movement code.
    pub(crate) dialect: Dialect,
    /// The movement settings in force.
    pub(crate) vars: &'a QuakeWorldMoveVars,
    /// The surroundings.
    pub(crate) world: Surroundings<'a>,
}

impl MoveRunner<'_> {
    /// Runs `commands` in order from `from`, each in its own packet.
    pub(crate) fn run(&self, from: &QuakeWorldPlayerState, commands: &[QuakeWorldUsercmd]) -> MoveOutcome {
        let mut run = self.start(from);
        for command in commands {
            self.command(&mut run, command);
            self.end_packet(&mut run);
        }
        run
    }

    /// Runs one command in its own packet, in a world whose brush models do not move. `view` is the previous command's
    /// view.
    pub(crate) fn run_after(
        &self,
        from: &QuakeWorldPlayerState,
        view: [f32; 3],
        command: &QuakeWorldUsercmd,
    ) -> MoveOutcome {
        let mut run = MoveOutcome { view, ..MoveOutcome::at(*from) };
        self.command(&mut run, command);
        self.end_packet(&mut run);
        run
    }

    /// Returns the state after the brush models have moved, before any command.
    pub(crate) fn start(&self, from: &QuakeWorldPlayerState) -> MoveOutcome {
        let mut run = MoveOutcome::at(*from);
        carry(&self.world, self.dialect.sweep_rule(), &mut run.state, &mut run.touched);
        run
    }

    /// Runs one command in as many steps as it needs.
    pub(crate) fn command(&self, run: &mut MoveOutcome, command: &QuakeWorldUsercmd) {
        for cmd in command.steps() {
            slow_corpse(&mut run.state);
            let stale = run.state.view_fixed && matches!(self.dialect, Dialect::Classic { .. });
            let steered = QuakeWorldUsercmd { angles: if stale { run.view } else { cmd.angles }, ..cmd };
            let (state, mut touched) = step(self.dialect, self.vars, &self.world, &run.state, &steered);
            run.view = cmd.angles;
            run.state = state;
            touch_triggers(&self.world, &mut run.state, &mut touched);
            run.touched.add(&touched);
        }
    }

    /// Applies what the game does after all commands of a packet.
    pub(crate) fn end_packet(&self, run: &mut MoveOutcome) {
        let state = &mut run.state;
        if state.dead {
            return;
        }
        let soft = matches!(self.dialect, Dialect::Classic { soft_landing: true, .. });
        if soft && state.on_ground && state.fall_speed < HARD_LANDING {
            state.velocity[2] = 0.0;
        }
        state.fall_speed = state.velocity[2];
    }
}

/// Slows a corpse on the ground, as the game does before each step.
fn slow_corpse(state: &mut QuakeWorldPlayerState) {
    if state.corpse && state.on_ground {
        let (direction, speed) = normalize(Vec3::from_array(state.velocity));
        state.velocity = (direction * (speed - CORPSE_SLOWING).max(0.0)).to_array();
    }
}

/// Applies the map's triggers to a living player at this position.
fn touch_triggers(world: &Surroundings<'_>, state: &mut QuakeWorldPlayerState, touched: &mut MoveContacts) {
    if state.dead || state.over {
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

#[cfg(test)]
mod tests {
    use super::super::world::WorldSolid;
    use super::*;
    use crate::bsp::quake::QuakeMap;
    use crate::bsp::tests::{STANDING_Z, quake_bytes};

    const CLASSIC: Dialect = Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false };

    fn run(solids: &[WorldSolid], from: &QuakeWorldPlayerState, commands: &[QuakeWorldUsercmd]) -> MoveOutcome {
        let map = QuakeMap::parse(&quake_bytes()).expect("good");
        let vars = QuakeWorldMoveVars::default();
        MoveRunner { dialect: CLASSIC, vars: &vars, world: Surroundings { map: &map, solids } }.run(from, commands)
    }

    fn idle() -> QuakeWorldUsercmd {
        QuakeWorldUsercmd { msec: 10, ..QuakeWorldUsercmd::default() }
    }

    #[test]
    fn a_teleporter_moves_players_and_blocks_their_input() {
        let mut from = QuakeWorldPlayerState::at([0.0, 580.0, STANDING_Z]);
        from.velocity = [0.0, 300.0, 0.0];
        let there = run(&[], &from, &[QuakeWorldUsercmd { forward: 400, angles: [0.0, 90.0, 0.0], ..idle() }]);
        assert_eq!(there.touched.trigger, Some(0));
        assert_eq!(there.state.origin, [0.0, 0.0, 27.0]);
        assert!((there.state.velocity[1] - 300.0).abs() < 0.001 && there.state.water_jump_s > 0.0);
        let away = QuakeWorldUsercmd { forward: 400, angles: [0.0, -90.0, 0.0], ..idle() };
        let next = run(&[], &there.state, &[away]);
        assert!((next.state.velocity[1] - 300.0).abs() < 0.001, "{:?}", next.state);
        let dead = QuakeWorldPlayerState { dead: true, ..from };
        assert_eq!(run(&[], &dead, &[idle()]).touched.trigger, None);
    }

    #[test]
    fn a_lift_carries_standing_players() {
        let from =
            QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, 64.0 + STANDING_Z]) };
        let lift = WorldSolid::Mover { model: 1, origin: [0.0, 0.0, 66.0], moved: [0.0, 0.0, 2.0] };
        let up = run(&[lift], &from, &[idle()]);
        assert_eq!(up.state.origin[2], 66.0 + STANDING_Z);
        assert_eq!(up.touched.solids, 1);
        let beside = QuakeWorldPlayerState { origin: [300.0 - 216.0, 0.0, 64.0 + STANDING_Z], ..from };
        assert!(run(&[lift], &beside, &[idle()]).state.origin[2] < 64.0 + STANDING_Z);
    }

    #[test]
    fn a_hard_landing_loses_its_speed_on_such_servers() {
        let mut from = QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z + 3.9]);
        from.velocity = [0.0, 0.0, -310.0];
        from.fall_speed = -310.0;
        assert_eq!(run(&[], &from, &[idle()]).state.velocity[2], 0.0);
        from.fall_speed = -290.0;
        assert!(run(&[], &from, &[idle()]).state.velocity[2] < -300.0);
    }

    #[test]
    fn a_corpse_is_slowed() {
        let mut from =
            QuakeWorldPlayerState { dead: true, on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z]) };
        from.velocity = [0.0, 200.0, 0.0];
        let sliding = run(&[], &from, &[idle()]).state.velocity[1];
        let lying = run(&[], &QuakeWorldPlayerState { corpse: true, ..from }, &[idle()]).state.velocity[1];
        assert!((sliding - 188.0).abs() < 0.1 && (lying - 169.2).abs() < 0.1, "{sliding} {lying}");
    }

    #[test]
    fn after_the_level_nothing_triggers() {
        let mut from = QuakeWorldPlayerState { over: true, ..QuakeWorldPlayerState::at([0.0, 580.0, STANDING_Z]) };
        from.velocity = [0.0, 300.0, 0.0];
        let there = run(&[], &from, &[QuakeWorldUsercmd { forward: 400, angles: [0.0, 90.0, 0.0], ..idle() }]);
        assert_eq!((there.touched.trigger, there.state.origin[1] > 580.0), (None, true));
    }

    #[test]
    fn a_landing_fix_takes_the_fall_at_once() {
        let (map, vars) = (QuakeMap::parse(&quake_bytes()).expect("good"), QuakeWorldMoveVars::default());
        let mut from = QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z + 3.0]);
        from.velocity = [100.0, 0.0, -250.0];
        let landed = |landing_fix| {
            let dialect = Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix };
            MoveRunner { dialect, vars: &vars, world: Surroundings { map: &map, solids: &[] } }
                .run(&from, &[idle()])
                .state
        };
        let (fixed, plain) = (landed(true), landed(false));
        assert_eq!((fixed.origin, fixed.on_ground), (plain.origin, true));
        assert_eq!(fixed.velocity, [100.0, 0.0, 0.0]);
        assert_eq!(plain.velocity, [100.0, 0.0, -258.0]);
    }
}
