//! A hand on a mouse: it reacts late, lags behind its target, trembles, and turns in the steps of the wire format.

use glam::{Vec2, Vec3};

use hitreg_log::rng::Rng;

/// The steepest pitch, in degrees.
const STEEPEST_DEG: f32 = 89.0;

/// The fastest turn, in degrees/s.
const FASTEST_DEG_S: f32 = 700.0;

/// Turns larger than this are flicks, which are quicker and less accurate, in degrees.
const FLICK_FROM_DEG: f32 = 20.0;

/// The time constant of the tremble, in s.
const TREMBLE_S: f32 = 0.2;

/// Errors below this are ignored when the bot aims at no target, in degrees.
const CONTENT_DEG: f32 = 1.5;

/// The properties that differ between hands.
#[derive(Clone, Copy, Debug)]
struct AimSkill {
    /// How quickly it approaches its target, per second.
    gain: f32,
    /// The standard deviation of its tremble, in degrees.
    tremble_deg: f32,
    /// The share by which a flick may fall short or overshoot.
    flick_error: f32,
}

/// One bot's aim.
#[derive(Clone, Debug)]
pub(crate) struct BotAim {
    skill: AimSkill,
    /// Pitch and yaw in degrees, before rounding to the steps of the wire format.
    view: Vec2,
    tremble: Vec2,
    flick_gain: f32,
    flicks: bool,
}

impl BotAim {
    pub(crate) fn new(rng: &mut Rng) -> BotAim {
        let skill = AimSkill {
            gain: 9.0 + 7.0 * rng.unit_f32(),
            tremble_deg: 0.5 + 0.9 * rng.unit_f32(),
            flick_error: 0.1 + 0.2 * rng.unit_f32(),
        };
        BotAim { skill, view: Vec2::ZERO, tremble: Vec2::ZERO, flick_gain: 1.0, flicks: false }
    }

    /// Adopts the body's view, after a teleport or respawn.
    pub(crate) fn start_from(&mut self, viewangles: Vec3) {
        self.view = Vec2::new(viewangles.x, viewangles.y);
    }

    /// Turns towards `wanted` and returns the remaining error in degrees.
    pub(crate) fn turn(&mut self, wanted: Vec2, aims: bool, msec: u8, rng: &mut Rng) -> f32 {
        let dt = f32::from(msec) / 1_000.0;
        let mut error = wanted - self.view;
        error.y = short_way(error.y);
        if aims {
            // A random walk that returns to zero (Ornstein and Uhlenbeck 1930).
            let keep = libm::expf(-dt / TREMBLE_S);
            let push = self.skill.tremble_deg * libm::sqrtf(1.0 - keep * keep);
            let noise = Vec2::new(rng.normal_f64() as f32, rng.normal_f64() as f32);
            self.tremble = self.tremble * keep + noise * push;
            error += self.tremble;
        } else if error.length() < CONTENT_DEG {
            return error.length();
        }
        let away = error.length();
        if away > FLICK_FROM_DEG && !self.flicks {
            self.flick_gain = 1.6 + self.skill.flick_error * rng.normal_f64() as f32;
        }
        self.flicks = away > FLICK_FROM_DEG;
        let gain = self.skill.gain * if self.flicks { self.flick_gain.max(0.5) } else { 1.0 };
        let share = 1.0 - libm::expf(-gain * dt);
        let step = (error * share).clamp_length_max(FASTEST_DEG_S * dt);
        self.view.x = (self.view.x + step.x).clamp(-STEEPEST_DEG, STEEPEST_DEG);
        self.view.y = short_way(self.view.y + step.y);
        (error - step).length()
    }

    /// Returns the view in steps of 1/65,536 of a turn, as in Half-Life's wire format.
    pub(crate) fn viewangles(&self) -> Vec3 {
        Vec3::new(on_the_wire(self.view.x), on_the_wire(self.view.y), 0.0)
    }
}

fn on_the_wire(degrees: f32) -> f32 {
    let steps = libm::roundf(degrees * (65_536.0 / 360.0)) as i32;
    f32::from(steps as i16) * (360.0 / 65_536.0)
}

/// Returns the same turn as an angle from -180 to 180 degrees.
pub(crate) fn short_way(degrees: f32) -> f32 {
    degrees - 360.0 * libm::roundf(degrees / 360.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::units::Seed;

    #[test]
    fn a_hand_reaches_its_target_in_human_time() {
        let mut rng = Rng::new(Seed(1), 1);
        let mut hand = BotAim::new(&mut rng);
        let wanted = Vec2::new(-5.0, 90.0);
        let after = |hand: &mut BotAim, ms: u32, rng: &mut Rng| {
            (0..ms / 10).map(|_| hand.turn(wanted, true, 10, rng)).last().unwrap_or_default()
        };
        assert!(after(&mut hand, 50, &mut rng) > 20.0, "nobody turns that fast");
        assert!(after(&mut hand, 700, &mut rng) < 6.0);
        let mut exact = 0;
        for _ in 0..200 {
            hand.turn(wanted, true, 10, &mut rng);
            exact += u32::from((Vec2::new(hand.view.x, hand.view.y) - wanted).length() < 0.05);
        }
        assert!(exact < 60, "a hand trembles");
    }

    #[test]
    fn views_are_steps_of_the_wire() {
        for degrees in [0.0, 17.3, -89.0, 179.999, -180.0] {
            let steps = on_the_wire(degrees) * (65_536.0 / 360.0);
            assert!((steps - libm::roundf(steps)).abs() < 1e-3, "{degrees}");
            assert!(short_way(on_the_wire(degrees) - degrees).abs() < 0.004);
        }
    }
}
