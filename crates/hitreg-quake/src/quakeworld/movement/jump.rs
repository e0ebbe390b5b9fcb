//! Jumps: from the ground, upward strokes in water, and hops out of the water over an edge.

use glam::Vec3;

use super::BUTTON_JUMP;
use super::movevars::Dialect;
use super::pmove::{LEAVES_GROUND_SPEED, Pmove};
use super::state::normalize;
use crate::bsp::quake::{EMPTY, SLIME, SOLID, WATER};

const JUMP_SPEED: f32 = 270.0;

impl Pmove<'_> {
    /// Starts a hop out of waist-deep water, if there is a wall ahead with free space above.
    pub(crate) fn check_water_jump(&mut self) {
        if self.state.water_jump_s != 0.0 || self.velocity.z < -LEAVES_GROUND_SPEED {
            return;
        }
        let (ahead, _) = normalize(Vec3::new(self.axes[0].x, self.axes[0].y, 0.0));
        let contents = |p| if self.is_reworked() { self.world.contents_with_movers(p) } else { self.world.contents(p) };
        let waist = self.origin + 24.0 * ahead + Vec3::new(0.0, 0.0, 8.0);
        if contents(waist) != SOLID || contents(waist + Vec3::new(0.0, 0.0, 24.0)) != EMPTY {
            return;
        }
        self.velocity = 50.0 * ahead;
        self.velocity.z = 310.0;
        self.state.water_jump_s = 2.0;
        self.state.jump_held = true;
    }

    pub(crate) fn jump_classic(&mut self) {
        if self.cmd.buttons & BUTTON_JUMP == 0 {
            self.state.jump_held = false;
        } else if self.state.dead {
            self.state.jump_held = true;
        } else if self.state.water_jump_s != 0.0 {
            self.state.water_jump_s = (self.state.water_jump_s - self.seconds).max(0.0);
        } else if self.state.water_level >= 2 {
            self.swim_up();
        } else if self.state.on_ground && !self.state.jump_held {
            if self.stood_before && matches!(self.dialect, Dialect::Classic { soft_jump: true, .. }) {
                self.velocity.z = self.velocity.z.max(0.0);
            }
            self.leave_ground();
        }
    }

    pub(crate) fn jump_reworked(&mut self) {
        if self.state.dead {
            self.state.jump_held = true;
        } else if self.cmd.buttons & BUTTON_JUMP == 0 {
            self.state.jump_held = false;
        } else if self.state.water_jump_s == 0.0 && self.state.water_level >= 2 {
            self.swim_up();
        } else if self.state.water_jump_s == 0.0 && self.state.on_ground && !self.state.jump_held {
            if self.velocity.z < 0.0 {
                self.clip_into_ground();
            }
            self.leave_ground();
            if let Dialect::Reworked { jump_floor, .. } = self.dialect
                && self.velocity.z < JUMP_SPEED
                && jump_floor > 0.0
            {
                self.velocity.z = self.velocity.z * (1.0 - jump_floor) + JUMP_SPEED * jump_floor;
            }
        }
    }

    fn leave_ground(&mut self) {
        self.state.on_ground = false;
        self.velocity.z += JUMP_SPEED;
        self.state.jump_held = true;
        self.touched.jumped = true;
    }

    fn swim_up(&mut self) {
        self.state.on_ground = false;
        self.velocity.z = match self.state.water_type {
            WATER => 100.0,
            SLIME => 80.0,
            _ => 50.0,
        };
    }
}
