//! The ground: detection, friction, footsteps and landing.

use glam::Vec3;

use super::{MoveEvent, PlayerMove, Solid, SweepHit};

/// A surface whose normal has a smaller z is too steep to stand on. In double precision, as in the original.
pub(super) const STEEPEST_GROUND_NORMAL_Z: f64 = 0.7;

/// A player who rises faster than this is not on the ground, in units per second.
const LEAVES_GROUND_AT_UNITS_S: f32 = 180.0;

/// How far below the hull the ground is searched, in units.
const GROUND_REACH_UNITS: f32 = 2.0;

/// How far ahead of the player, and how far below the feet, an edge is searched, in units.
const EDGE_AHEAD_UNITS: f32 = 16.0;
const EDGE_DEPTH_UNITS: f32 = 34.0;

/// Below this speed friction has no effect, in units per second.
const FRICTION_FROM_UNITS_S: f32 = 0.1;

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    /// Decides whether the player is on the ground, and moves the player down to it.
    pub(super) fn find_ground(&mut self) {
        let probe = self.probe_ground();
        self.settle(probe);
    }

    /// Searches for ground directly below, unless the player rises too fast.
    pub(super) fn probe_ground(&self) -> Option<SweepHit> {
        let below = self.now.origin - Vec3::new(0.0, 0.0, GROUND_REACH_UNITS);
        let rises = self.now.velocity.z > LEAVES_GROUND_AT_UNITS_S;
        (!rises).then(|| self.sweep(self.now.origin, below))
    }

    /// Applies the result of a ground search.
    pub(super) fn settle(&mut self, probe: Option<SweepHit>) {
        self.now.on_ground = probe.is_some_and(|probe| f64::from(probe.normal.z) >= STEEPEST_GROUND_NORMAL_Z);
        let Some(probe) = probe else { return };
        if self.now.on_ground && !probe.start_solid {
            self.now.origin = probe.end;
        }
        self.report_touch(probe.touch);
    }

    /// Slows the player by friction, which is stronger before an edge.
    pub(super) fn rub(&mut self) {
        let velocity = self.now.velocity;
        let speed = velocity.length();
        if speed < FRICTION_FROM_UNITS_S {
            return;
        }
        let ahead = velocity / speed * EDGE_AHEAD_UNITS;
        let feet_z = self.now.origin.z - self.now.hull().half_extent_units().z;
        let from = Vec3::new(self.now.origin.x + ahead.x, self.now.origin.y + ahead.y, feet_z);
        let edge = self.sweep(from, from - Vec3::new(0.0, 0.0, EDGE_DEPTH_UNITS));
        let grip = if edge.fraction == 1.0 { self.vars.friction * self.vars.edgefriction } else { self.vars.friction };
        let control = if speed < self.vars.stopspeed { self.vars.stopspeed } else { speed };
        let kept = speed - control * grip * self.frame_s;
        self.now.velocity = velocity * (if kept < 0.0 { 0.0 } else { kept } / speed);
    }

    /// Makes footsteps at their times. The rhythm is hitreg's own; movement does not depend on it.
    pub(super) fn make_footsteps(&mut self) {
        let (walk_units_s, run_units_s, slower_ms) =
            if self.now.ducked { (60.0, 80.0, 100) } else { (120.0, 210.0, 0) };
        let speed = self.now.velocity.length();
        if self.now.step_time_ms > 0 || !self.now.on_ground || speed < walk_units_s {
            return;
        }
        let running = speed >= run_units_s;
        self.now.step_time_ms = slower_ms + if running { 300 } else { 400 };
        self.put_foot_down(running);
    }

    pub(super) fn put_foot_down(&mut self, running: bool) {
        self.now.step_left = !self.now.step_left;
        (self.on)(MoveEvent::Footstep { left: !self.now.step_left, running });
    }

    /// Ends a fall if the player has reached the ground.
    pub(super) fn land(&mut self) {
        if !self.now.on_ground {
            return;
        }
        if self.now.fall_velocity > 0.0 {
            (self.on)(MoveEvent::Landed { fall_speed: self.now.fall_velocity });
        }
        self.now.fall_velocity = 0.0;
    }
}
