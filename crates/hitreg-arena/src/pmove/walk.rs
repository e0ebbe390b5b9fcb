//! Movement on the ground: acceleration, walking, and climbing steps.

use glam::Vec3;

use super::ground::STEEPEST_GROUND_NORMAL_Z;
use super::{MoveEvent, PlayerMove, Solid};

/// Below this speed a player stands still, in units per second.
const STANDS_STILL_UNITS_S: f32 = 1.0;

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    /// Moves for one frame on the ground.
    pub(super) fn walk(&mut self) {
        self.now.velocity.z = 0.0;
        self.gain_speed();
        self.now.velocity.z = 0.0;
        self.drop_negative_zeros();
        if self.now.velocity.length() < STANDS_STILL_UNITS_S {
            self.now.velocity = Vec3::ZERO;
            return;
        }
        let velocity = self.now.velocity;
        let step = Vec3::new(velocity.x * self.frame_s, velocity.y * self.frame_s, 0.0);
        let straight = self.sweep(self.now.origin, self.now.origin + step);
        if straight.fraction == 1.0 {
            self.now.origin = straight.end;
        } else {
            self.slide_or_climb();
        }
    }

    fn gain_speed(&mut self) {
        let wish = self.wish();
        let missing = wish.speed - self.now.velocity.dot(wish.direction);
        if missing > 0.0 {
            let gain = self.vars.accelerate * self.frame_s * wish.speed;
            self.now.velocity += wish.direction * if gain > missing { missing } else { gain };
        }
    }

    /// Tries to slide along an obstacle and to climb it as a step. Takes the result that leads farther.
    fn slide_or_climb(&mut self) {
        let (origin, velocity) = (self.now.origin, self.now.velocity);
        let step = Vec3::new(0.0, 0.0, self.vars.stepsize);

        self.slide();
        let (slid_to, slid_velocity) = (self.now.origin, self.now.velocity);

        (self.now.origin, self.now.velocity) = (origin, velocity);
        let up = self.sweep(origin, origin + step);
        if !up.start_solid {
            self.now.origin = up.end;
        }
        self.slide();
        let down = self.sweep(self.now.origin, self.now.origin - step);
        let lands = f64::from(down.normal.z) >= STEEPEST_GROUND_NORMAL_Z;
        if lands && !down.start_solid {
            self.now.origin = down.end;
        }

        let slid_farther = level_distance_squared(slid_to, origin) > level_distance_squared(self.now.origin, origin);
        if !lands || slid_farther {
            (self.now.origin, self.now.velocity) = (slid_to, slid_velocity);
        } else {
            self.now.velocity.z = slid_velocity.z;
        }
    }
}

fn level_distance_squared(a: Vec3, b: Vec3) -> f32 {
    (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)
}
