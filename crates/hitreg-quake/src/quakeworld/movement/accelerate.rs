//! Friction and acceleration: turns the wished speed into velocity, on ground, in the air and under water.

use glam::Vec3;

use super::movevars::Dialect;
use super::pmove::Pmove;
use super::slide;
use super::state::{length, normalize};
use super::usercmd::QuakeWorldUsercmd;
use super::world::PLAYER_MINS;
use crate::bsp::quake::trace::dot;

/// Largest speed along the wished direction that air control can add up to, in units/s.
const AIR_WISH_SPEED: f32 = 30.0;

impl Pmove<'_> {
    pub(crate) fn friction(&mut self) {
        if self.state.water_jump_s != 0.0 {
            return;
        }
        let speed = length(self.velocity);
        if speed < 1.0 {
            (self.velocity.x, self.velocity.y) = (0.0, 0.0);
            return;
        }
        let drop = if self.state.water_level >= 2 {
            speed * self.vars.water_friction * f32::from(self.state.water_level) * self.seconds
        } else if self.state.on_ground {
            let lead = self.origin + Vec3::new(self.velocity.x, self.velocity.y, 0.0) / speed * 16.0;
            let start = Vec3::new(lead.x, lead.y, self.origin.z + PLAYER_MINS[2]);
            let over_edge = self.sweep(start, start - Vec3::new(0.0, 0.0, 34.0)).0.fraction == 1.0;
            let friction = self.vars.friction * if over_edge { 2.0 } else { 1.0 };
            speed.max(self.vars.stop_speed) * friction * self.seconds
        } else {
            return;
        };
        self.velocity *= (speed - drop).max(0.0) / speed;
    }

    fn steers(&self) -> bool {
        !self.state.dead && self.state.water_jump_s == 0.0
    }

    fn accelerate(&mut self, wish_dir: Vec3, wish_speed: f32, accelerate: f32) {
        if !self.steers() {
            return;
        }
        let missing = wish_speed - dot(self.velocity, wish_dir);
        if missing > 0.0 {
            self.velocity += (accelerate * self.seconds * wish_speed).min(missing) * wish_dir;
        }
    }

    fn air_accelerate(&mut self, wish_dir: Vec3, wish_speed: f32) {
        if !self.steers() {
            return;
        }
        let missing = wish_speed.min(AIR_WISH_SPEED) - dot(self.velocity, wish_dir);
        if missing <= 0.0 {
            return;
        }
        let before = Vec3::new(self.velocity.x, self.velocity.y, 0.0);
        self.velocity += (self.vars.accelerate * wish_speed * self.seconds).min(missing) * wish_dir;
        if let Dialect::Reworked { bunny_speed_cap, .. } = self.dialect
            && bunny_speed_cap > 0.0
        {
            let after = length(Vec3::new(self.velocity.x, self.velocity.y, 0.0));
            let cap = self.vars.max_speed * bunny_speed_cap;
            if after > length(before) && after > cap {
                let scale = length(before).max(cap) / after;
                (self.velocity.x, self.velocity.y) = (self.velocity.x * scale, self.velocity.y * scale);
            }
        }
    }

    pub(crate) fn swim(&mut self) {
        let QuakeWorldUsercmd { forward, side, up, .. } = *self.cmd;
        let mut wish = f32::from(forward) * self.axes[0] + f32::from(side) * self.axes[1];
        wish.z += if (forward, side, up) == (0, 0, 0) { -60.0 } else { f32::from(up) };
        let (wish_dir, wish_speed) = normalize(wish);
        self.accelerate(wish_dir, wish_speed.min(self.vars.max_speed) * 0.7, self.vars.water_accelerate);
        slide::swim(self);
    }

    pub(crate) fn walk_or_fly(&mut self) {
        let flat = |axis: Vec3| normalize(Vec3::new(axis.x, axis.y, 0.0)).0;
        let wish = flat(self.axes[0]) * f32::from(self.cmd.forward) + flat(self.axes[1]) * f32::from(self.cmd.side);
        let (wish_dir, wish_speed) = normalize(wish);
        let wish_speed = wish_speed.min(self.vars.max_speed);
        let fall = self.vars.entity_gravity * self.vars.gravity * self.seconds;
        if !self.state.on_ground {
            self.air_accelerate(wish_dir, wish_speed);
            self.velocity.z -= fall;
            return slide::fly(self);
        }
        match self.dialect {
            Dialect::Reworked { slide_fix: true, .. } => {
                self.velocity.z = self.velocity.z.min(0.0);
                self.accelerate(wish_dir, wish_speed, self.vars.accelerate);
                self.velocity.z -= fall;
            }
            _ => {
                self.velocity.z = 0.0;
                self.accelerate(wish_dir, wish_speed, self.vars.accelerate);
            }
        }
        slide::walk(self);
    }
}
