//! Movement on the ground and in the air: acceleration, walking, climbing steps, gravity, jumping, and sliding along the
//! surfaces in the way.

use glam::Vec3;

use super::{BUTTON_JUMP, MoveEvent, PlayerMove, STEEPEST_GROUND_NORMAL_Z, Solid};

/// Below this speed a player stands still, in units per second.
const STANDS_STILL_UNITS_S: f32 = 1.0;

/// The cap on the wished speed in air acceleration, in units per second.
const AIR_GAIN_UNITS_S: f32 = 30.0;

/// The jump speed for a height of 45 units under a gravity of 800: the square root of 2 * 800 * 45.
const JUMP_UNITS_S: f32 = 268.328_16;

/// A jump at more than this many times `maxspeed` is slowed to [`HOP_KEEPS`] of that limit.
const HOP_LIMIT: f32 = 1.7;
const HOP_KEEPS: f64 = 0.65;

/// The most surfaces that deflect one frame's movement.
const BUMPS_MAX: usize = 4;

/// Smaller velocity along an axis after a bump is dropped, in units per second. In double precision, as in the
/// original.
const STOP_UNITS_S: f64 = 0.1;

/// The surfaces that touch the current position; at most one per bump.
struct Surfaces {
    normals: [Vec3; BUMPS_MAX],
    count: usize,
}

impl Surfaces {
    fn touching(&self) -> &[Vec3] {
        &self.normals[..self.count]
    }

    fn add(&mut self, normal: Vec3) {
        self.normals[self.count] = normal;
        self.count += 1;
    }

    /// Turns `velocity` along the first surface from which it does not lead into another. Otherwise turns it along the
    /// crease of two surfaces. Returns `None` in a corner of three.
    fn turn_aside(&self, velocity: Vec3) -> Option<Vec3> {
        let mut turned = velocity;
        for (i, &surface) in self.touching().iter().enumerate() {
            turned = clip(velocity, surface);
            let mut others = self.touching().iter().enumerate().filter(|&(j, _)| j != i);
            if others.all(|(_, &other)| turned.dot(other) >= 0.0) {
                return Some(turned);
            }
        }
        let &[a, b] = self.touching() else { return None };
        let crease = a.cross(b);
        Some(crease * crease.dot(turned))
    }
}

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
        let limit = HOP_LIMIT * self.vars.maxspeed;
        let speed = self.now.velocity.length();
        if limit > 0.0 && speed > limit {
            self.now.velocity *= (f64::from(limit / speed) * HOP_KEEPS) as f32;
        }
        self.put_foot_down(true);
        self.now.velocity.z = JUMP_UNITS_S;
        self.fall_for_half_a_frame_after();
        (self.on)(MoveEvent::Jumped);
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
    fn drop_negative_zeros(&mut self) {
        self.now.velocity += Vec3::ZERO;
    }

    /// Moves for one frame, sliding along up to four surfaces.
    pub(super) fn slide(&mut self) {
        let velocity_at_first = self.now.velocity;
        let mut velocity_since_moved = self.now.velocity;
        let mut surfaces = Surfaces { normals: [Vec3::ZERO; BUMPS_MAX], count: 0 };
        let mut left_s = self.frame_s;
        let mut covered = 0.0;

        for _ in 0..BUMPS_MAX {
            if self.now.velocity == Vec3::ZERO {
                break;
            }
            let sweep = self.sweep(self.now.origin, self.now.origin + self.now.velocity * left_s);
            covered += sweep.fraction;
            if sweep.all_solid {
                self.now.velocity = Vec3::ZERO;
                return;
            }
            if sweep.fraction > 0.0 {
                self.now.origin = sweep.end;
                velocity_since_moved = self.now.velocity;
                surfaces.count = 0;
            }
            if sweep.fraction == 1.0 {
                break;
            }
            self.report_touch(sweep.touch);
            left_s -= left_s * sweep.fraction;
            surfaces.add(sweep.normal);

            if surfaces.count == 1 && !self.now.on_ground {
                // In the air, the first surface deflects the player without the check against turning back.
                self.now.velocity = clip(velocity_since_moved, sweep.normal);
                velocity_since_moved = self.now.velocity;
                continue;
            }
            match surfaces.turn_aside(velocity_since_moved) {
                Some(turned) if turned.dot(velocity_at_first) > 0.0 => self.now.velocity = turned,
                _ => {
                    // In a corner, or when turned back: standing still avoids jitter.
                    self.now.velocity = Vec3::ZERO;
                    break;
                }
            }
        }
        if covered == 0.0 {
            self.now.velocity = Vec3::ZERO;
        }
    }
}

fn level_distance_squared(a: Vec3, b: Vec3) -> f32 {
    (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)
}

/// Removes the part of `velocity` that leads into a surface.
fn clip(velocity: Vec3, surface: Vec3) -> Vec3 {
    let into = velocity.dot(surface);
    let rest = velocity - surface * into;
    Vec3::from_array(rest.to_array().map(|along| if f64::from(along).abs() < STOP_UNITS_S { 0.0 } else { along }))
}
