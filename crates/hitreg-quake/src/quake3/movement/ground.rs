//! Finds the ground below a player and the water around it (bg_pmove.c: `PM_GroundTrace`, `PM_SetWaterLevel`).

use glam::Vec3;

use super::pmove::{BOX_BELOW, MoveStep};
use super::state::flag;
use super::world::NO_ENTITY;
use crate::bsp::quake3::{SweepTrace, contents};

/// Largest distance to the ground, in units.
const REACH: f32 = 0.25;
/// Smallest z component of a walkable slope's normal.
const STEEPEST: f32 = 0.7;
/// Speed away from the ground, in units/s, above which a player leaves it.
const THROWN_OFF: f32 = 10.0;
/// Vertical speed, in units/s, below which a landing delays the next jump.
const HARD_LANDING: f32 = -200.0;
const LANDING_MS: i32 = 250;

impl MoveStep<'_> {
    pub(super) fn look_for_ground(&mut self) {
        let below = self.state.origin - Vec3::new(0.0, 0.0, REACH);
        let (mut trace, mut entity) = self.sweep(self.state.origin, below);
        if trace.all_solid {
            let Some(freed) = self.free(below) else { return self.leave_ground() };
            (trace, entity) = freed;
        }
        self.ground_surface = trace.surface;
        if trace.fraction == 1.0 {
            return self.leave_ground();
        }
        if self.state.velocity.z > 0.0 && self.state.velocity.dot(trace.normal) > THROWN_OFF {
            return self.leave_ground();
        }
        self.ground = Some(trace);
        if trace.normal.z < STEEPEST {
            self.state.ground = NO_ENTITY;
            self.walks = false;
            return;
        }
        self.walks = true;
        if self.state.flags & flag::TIME_WATERJUMP != 0 {
            self.state.flags &= !(flag::TIME_WATERJUMP | flag::TIME_LAND);
            self.state.time_ms = 0;
        }
        if self.state.ground == NO_ENTITY && self.falls_at < HARD_LANDING {
            self.state.flags |= flag::TIME_LAND;
            self.state.time_ms = LANDING_MS;
        }
        self.state.ground = entity;
        self.meet(entity);
    }

    pub(super) fn leave_ground(&mut self) {
        self.state.ground = NO_ENTITY;
        self.ground = None;
        self.walks = false;
    }

    /// Finds the ground for a player stuck in something solid, if there is free space within one unit.
    fn free(&self, below: Vec3) -> Option<(SweepTrace, u32)> {
        let near = [-1.0, 0.0, 1.0];
        let mut places =
            near.iter().flat_map(|x| near.iter().flat_map(move |y| near.map(move |z| Vec3::new(*x, *y, z))));
        let has_room = |off: &Vec3| {
            let place = self.state.origin + *off;
            !self.sweep(place, place).0.all_solid
        };
        places.find(has_room).map(|_| self.sweep(self.state.origin, below))
    }

    pub(super) fn look_for_water(&mut self) {
        let is_water = |above: f32| {
            let point = self.state.origin + Vec3::new(0.0, 0.0, BOX_BELOW + above);
            self.world.map.contents_at(point) & contents::WATER != 0
        };
        let eyes = self.state.viewheight - BOX_BELOW as i32;
        let depth = [1.0, (eyes / 2) as f32, eyes as f32].into_iter().take_while(|above| is_water(*above)).count();
        self.water = depth as u8;
    }
}
