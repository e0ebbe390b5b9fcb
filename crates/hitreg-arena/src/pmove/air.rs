//! Movement in the air: gravity, jumping and air control.

use glam::Vec3;

use super::{BUTTON_JUMP, MoveEvent, PlayerMove, Solid};

/// The cap on the wished speed in air acceleration, in units per second.
const AIR_GAIN_UNITS_S: f32 = 30.0;

/// The jump speed for a height of 45 units under a gravity of 800: the square root of 2 * 800 * 45.
const JUMP_UNITS_S: f32 = 268.328_16;

/// A jump at more than this many times `maxspeed` is slowed to [`HOP_KEEPS`] of that limit.
const HOP_LIMIT: f32 = 1.7;
const HOP_KEEPS: f64 = 0.65;

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    /// Applies the first half of a frame's gravity, so that the position in between is right.
    pub(super) fn fall_for_half_a_frame_before(&mut self) {
        let gained = f64::from(self.vars.gravity) * 0.5 * f64::from(self.frame_s);
        self.add_fall(gained);
    }

    /// Applies the second half, whose rounding differs from the first.
    pub(super) fn fall_for_half_a_frame_after(&mut self) {
        let gained = f64::from(self.vars.gravity * self.frame_s) * 0.5;
        self.add_fall(gained);
    }

    fn add_fall(&mut self, gained_units_s: f64) {
        self.now.velocity.z = (f64::from(self.now.velocity.z) - gained_units_s) as f32;
        self.limit_velocity();
    }

    /// Limits velocity along each axis, and replaces NaN by zero.
    pub(super) fn limit_velocity(&mut self) {
        let limit = self.vars.maxvelocity;
        for axis in 0..3 {
            if self.now.origin[axis].is_nan() {
                self.now.origin[axis] = 0.0;
            }
            let speed = self.now.velocity[axis];
            self.now.velocity[axis] = if speed.is_nan() {
                0.0
            } else if speed > limit {
                limit
            } else if speed < -limit {
                -limit
            } else {
                speed
            };
        }
    }

    /// Jumps if the button was newly pressed while on the ground.
    pub(super) fn jump_if_asked(&mut self) {
        if self.buttons & BUTTON_JUMP == 0 {
            self.now.old_buttons &= !BUTTON_JUMP;
            return;
        }
        let pressed_before = self.now.old_buttons & BUTTON_JUMP != 0;
        self.now.old_buttons |= BUTTON_JUMP;
        if !self.now.on_ground || pressed_before {
            return;
        }
        self.now.on_ground = false;
        self.slow_mad_hops();
        self.put_foot_down(true);
        self.now.velocity.z = JUMP_UNITS_S;
        self.fall_for_half_a_frame_after();
        (self.on)(MoveEvent::Jumped);
    }

    fn slow_mad_hops(&mut self) {
        let limit = HOP_LIMIT * self.vars.maxspeed;
        let speed = self.now.velocity.length();
        if limit > 0.0 && speed > limit {
            self.now.velocity *= (f64::from(limit / speed) * HOP_KEEPS) as f32;
        }
    }

    /// Moves for one frame in the air.
    pub(super) fn fly(&mut self) {
        let wish = self.wish();
        let capped = if wish.speed > AIR_GAIN_UNITS_S { AIR_GAIN_UNITS_S } else { wish.speed };
        let missing = capped - self.now.velocity.dot(wish.direction);
        if missing > 0.0 {
            let gain = self.vars.airaccelerate * wish.speed * self.frame_s;
            self.now.velocity += wish.direction * if gain > missing { missing } else { gain };
        }
        self.drop_negative_zeros();
        self.slide();
    }

    /// Half-Life adds the velocity of conveyors here. The arena has none, but adding zero still turns -0 into 0.
    pub(super) fn drop_negative_zeros(&mut self) {
        self.now.velocity += Vec3::ZERO;
    }
}
