//! One player's movement for one usercmd, after Half-Life: a pure function of rules, world, state and input.
//!
//! The steps and their order follow Half-Life's movement in its public SDK (2024), including the use of single and
//! double precision. Recorded runs of Half-Life are therefore reproduced exactly. The rules are those of multiplayer,
//! without water, ladders, conveyors and punch angles, which the arena does not have.

mod air;
mod duck;
mod ground;
mod slide;
mod state;
mod stuck;
#[cfg(test)]
mod tests;
mod walk;
mod wish;

use glam::Vec3;

use super::body::ArenaBody;
use super::solid::{Solid, SolidHull, SweepContact, SweepHit};
pub(crate) use duck::eye_height_units;
use hitreg_log::usercmd::Input;
pub(crate) use state::BUTTON_ATTACK;
pub use state::{BUTTON_DUCK, BUTTON_JUMP, MoveEvent, MoveVars, VIEW_HEIGHT_DUCKED_UNITS, VIEW_HEIGHT_STANDING_UNITS};

/// Moves a player by one usercmd and returns the new state. Calls `on` for each event on the way. Of the state, it reads
/// and changes only origin, velocity, ground, stance, buttons, footsteps and the height of the eyes.
///
/// NaN in `state` or `input` becomes zero, as in the original, and never causes a panic.
pub fn pmove(
    vars: &MoveVars,
    world: &impl Solid,
    state: &ArenaBody,
    input: &Input,
    on: &mut impl FnMut(MoveEvent),
) -> ArenaBody {
    let mut mover = PlayerMove::new(vars, world, state, input, on);
    mover.run();
    mover.now
}

/// A player during one usercmd.
struct PlayerMove<'a, W, F> {
    vars: &'a MoveVars,
    world: &'a W,
    on: &'a mut F,
    now: ArenaBody,
    buttons: u16,
    /// The wished forward speed in units per second, after limits and ducking.
    forward_units_s: f32,
    side_units_s: f32,
    pitch_deg: f32,
    yaw_deg: f32,
    msec: u8,
    frame_s: f32,
}

impl<'a, W: Solid, F: FnMut(MoveEvent)> PlayerMove<'a, W, F> {
    fn new(vars: &'a MoveVars, world: &'a W, state: &ArenaBody, input: &Input, on: &'a mut F) -> Self {
        let (forward_units_s, side_units_s) = wish::within_speed(input, vars.maxspeed);
        PlayerMove {
            vars,
            world,
            on,
            now: ArenaBody { origin: without_nan(state.origin), velocity: without_nan(state.velocity), ..*state },
            buttons: input.buttons,
            forward_units_s,
            side_units_s,
            pitch_deg: input.viewangles.x,
            yaw_deg: wish::yaw_within_half_turn(input.viewangles.y),
            msec: input.msec,
            frame_s: (f64::from(input.msec) * 0.001) as f32,
        }
    }

    fn run(&mut self) {
        self.run_timers();
        let probe = self.probe_ground();
        if probe.is_some_and(|probe| !probe.start_solid) {
            // The player is not stuck, so the probe is valid.
            self.settle(probe);
        } else {
            if self.is_stuck() {
                // Ducking may free the player.
                self.duck();
                if self.is_stuck() {
                    return;
                }
            }
            self.find_ground();
        }
        if !self.now.on_ground {
            self.now.fall_velocity = -self.now.velocity.z;
        }
        self.make_footsteps();
        self.duck();
        self.fall_for_half_a_frame_before();
        self.jump_if_asked();
        if self.now.on_ground {
            self.now.velocity.z = 0.0;
            self.rub();
        }
        self.limit_velocity();
        if self.now.on_ground {
            self.walk();
        } else {
            self.fly();
        }
        self.find_ground();
        self.limit_velocity();
        self.fall_for_half_a_frame_after();
        if self.now.on_ground {
            self.now.velocity.z = 0.0;
        }
        self.land();
    }

    fn run_timers(&mut self) {
        self.now.duck_time_ms = self.now.duck_time_ms.saturating_sub(u16::from(self.msec));
        self.now.step_time_ms = self.now.step_time_ms.saturating_sub(u16::from(self.msec));
    }

    fn sweep(&self, from: Vec3, to: Vec3) -> SweepHit {
        self.world.sweep(self.now.hull(), from, to)
    }

    fn is_free(&self, at: Vec3) -> bool {
        self.world.inside(self.now.hull(), at) == SweepContact::Nothing
    }

    fn report_touch(&mut self, touch: SweepContact) {
        if let SweepContact::Entity(entity) = touch {
            (self.on)(MoveEvent::Touched { entity });
        }
    }
}

/// Replaces NaN by zero, so that comparisons behave.
fn without_nan(vector: Vec3) -> Vec3 {
    vector.map(|number| if number.is_nan() { 0.0 } else { number })
}
