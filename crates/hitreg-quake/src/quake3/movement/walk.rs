//! The modes of movement: on the ground, in the air, in water and flying (bg_pmove.c). Each moves until something blocks, then
//! along it, and up steps (bg_slidemove.c).

use glam::Vec3;

use super::{MoveStep, NO_ENTITY, WALKABLE, flag, kind};
use crate::bsp::quake3::{contents, surface};
use crate::quake3::protocol::Quake3Usercmd;

const STOP_SPEED: f32 = 100.0;
const DUCK_SCALE: f32 = 0.25;
const SWIM_SCALE: f32 = 0.5;
const SWIM_FAST_SCALE: f32 = 5.0;
const ACCELERATE: f32 = 10.0;
const AIR_ACCELERATE: f32 = 1.0;
const WATER_ACCELERATE: f32 = 4.0;
const FLY_ACCELERATE: f32 = 8.0;
const FRICTION: f32 = 6.0;
const WATER_FRICTION: f32 = 1.0;
const FLIGHT_FRICTION: f32 = 3.0;
const SPECTATOR_FRICTION: f32 = 5.0;
const JUMP: f32 = 270.0;
/// Sinking speed without input in water, in units/s.
const SINKS: f32 = -60.0;
const WATER_JUMP_MS: i32 = 2000;

impl MoveStep<'_> {
    pub(super) fn walk(&mut self) {
        let Some(ground) = self.ground else { return self.fall() };
        if self.water > 2 && self.forward.dot(ground.normal) > 0.0 {
            return self.swim();
        }
        if self.jumps() {
            return if self.water > 1 { self.swim() } else { self.fall() };
        }
        self.slow_down();
        let scale = self.scale();
        let along = |direction: Vec3| clip(Vec3::new(direction.x, direction.y, 0.0), ground.normal).normalize_or_zero();
        (self.forward, self.right) = (along(self.forward), along(self.right));
        let wish = self.forward * f32::from(self.command.forward) + self.right * f32::from(self.command.right);
        let (direction, length) = split(wish);
        let mut speed = length * scale;
        if self.state.flags & flag::DUCKED != 0 {
            speed = speed.min(self.state.speed as f32 * DUCK_SCALE);
        }
        if self.water > 0 {
            let wades = 1.0 - (1.0 - SWIM_SCALE) * (f32::from(self.water) / 3.0);
            speed = speed.min(self.state.speed as f32 * wades);
        }
        let slips = self.ground_surface & surface::SLICK != 0 || self.state.flags & flag::TIME_KNOCKBACK != 0;
        self.accelerate(direction, speed, if slips { AIR_ACCELERATE } else { ACCELERATE });
        if slips {
            self.state.velocity.z -= self.state.gravity as f32 * self.seconds;
        }
        let speed = self.state.velocity.length();
        // Slopes do not reduce the speed.
        self.state.velocity = clip(self.state.velocity, ground.normal).normalize_or_zero() * speed;
        if self.state.velocity.x != 0.0 || self.state.velocity.y != 0.0 {
            self.step_slide(false);
        }
    }

    pub(super) fn fall(&mut self) {
        self.slow_down();
        let scale = self.scale();
        let level = |direction: Vec3| Vec3::new(direction.x, direction.y, 0.0).normalize_or_zero();
        (self.forward, self.right) = (level(self.forward), level(self.right));
        let wish = self.forward * f32::from(self.command.forward) + self.right * f32::from(self.command.right);
        let (direction, length) = split(Vec3::new(wish.x, wish.y, 0.0));
        self.accelerate(direction, length * scale, AIR_ACCELERATE);
        if let Some(ground) = self.ground {
            self.state.velocity = clip(self.state.velocity, ground.normal);
        }
        self.step_slide(true);
    }

    pub(super) fn swim(&mut self) {
        if self.leaves_water() {
            return self.jump_out_of_water();
        }
        self.slow_down();
        let scale = self.scale();
        let wish = if scale == 0.0 { Vec3::new(0.0, 0.0, SINKS) } else { self.wish(scale) };
        let (direction, length) = split(wish);
        let swims = if self.settings.fast_water { SWIM_FAST_SCALE } else { SWIM_SCALE };
        self.accelerate(direction, length.min(self.state.speed as f32 * swims), WATER_ACCELERATE);
        if let Some(ground) = self.ground.filter(|ground| self.state.velocity.dot(ground.normal) < 0.0) {
            let speed = self.state.velocity.length();
            self.state.velocity = clip(self.state.velocity, ground.normal).normalize_or_zero() * speed;
        }
        self.slide(false);
    }

    pub(super) fn fly(&mut self) {
        self.slow_down();
        let scale = self.scale();
        let (direction, length) = split(self.wish(scale));
        self.accelerate(direction, length, FLY_ACCELERATE);
        self.step_slide(false);
    }

    /// Moves without collision.
    pub(super) fn pass(&mut self) {
        self.state.viewheight = 26;
        let speed = self.state.velocity.length();
        self.state.velocity *= match speed < 1.0 {
            true => 0.0,
            false => (speed - speed.max(STOP_SPEED) * FRICTION * 1.5 * self.seconds).max(0.0) / speed,
        };
        let scale = self.scale();
        let wish = self.forward * f32::from(self.command.forward) + self.right * f32::from(self.command.right);
        let (direction, length) = split(wish + Vec3::new(0.0, 0.0, f32::from(self.command.up)));
        self.accelerate(direction, length * scale, ACCELERATE);
        self.state.origin += self.state.velocity * self.seconds;
    }

    pub(super) fn pull(&mut self) {
        let (direction, length) = split(self.state.grapple - self.forward * 16.0 - self.state.origin);
        self.state.velocity = direction * if length <= 100.0 { 10.0 * length } else { 800.0 };
        self.ground = None;
    }

    pub(super) fn jump_out_of_water(&mut self) {
        self.step_slide(true);
        self.state.velocity.z -= self.state.gravity as f32 * self.seconds;
        if self.state.velocity.z < 0.0 {
            self.state.flags &= !flag::ALL_TIMES;
            self.state.time_ms = 0;
        }
    }

    pub(super) fn slow_corpse(&mut self) {
        if self.walks {
            let (direction, speed) = split(self.state.velocity);
            self.state.velocity = direction * (speed - 20.0).max(0.0);
        }
    }

    fn jumps(&mut self) -> bool {
        if self.state.flags & flag::RESPAWNED != 0 || self.command.up < 10 {
            return false;
        }
        if self.state.flags & flag::JUMP_HELD != 0 {
            // A jump that is held does not slow the run either.
            self.command.up = 0;
            return false;
        }
        self.state.flags |= flag::JUMP_HELD;
        self.ground = None;
        self.walks = false;
        self.state.ground = NO_ENTITY;
        self.state.velocity.z = JUMP;
        true
    }

    /// Returns whether a swimmer faces an edge to jump onto.
    fn leaves_water(&mut self) -> bool {
        if self.state.time_ms != 0 || self.water != 2 {
            return false;
        }
        let flat = Vec3::new(self.forward.x, self.forward.y, 0.0).normalize_or_zero();
        let spot = self.state.origin + flat * 30.0 + Vec3::new(0.0, 0.0, 4.0);
        let above = spot + Vec3::new(0.0, 0.0, 16.0);
        let blocks = contents::SOLID | contents::PLAYER_CLIP | contents::BODY;
        let is_edge =
            self.world.map.contents_at(spot) & contents::SOLID != 0 && self.world.map.contents_at(above) & blocks == 0;
        if is_edge {
            self.state.velocity = self.forward * 200.0;
            self.state.velocity.z = 350.0;
            self.state.flags |= flag::TIME_WATERJUMP;
            self.state.time_ms = WATER_JUMP_MS;
        }
        is_edge
    }

    fn slow_down(&mut self) {
        let mut level = self.state.velocity;
        if self.walks {
            level.z = 0.0;
        }
        let speed = level.length();
        if speed < 1.0 {
            (self.state.velocity.x, self.state.velocity.y) = (0.0, 0.0);
            return;
        }
        let mut drop = 0.0;
        let grips = self.walks && self.ground_surface & surface::SLICK == 0;
        if self.water <= 1 && grips && self.state.flags & flag::TIME_KNOCKBACK == 0 {
            drop += speed.max(STOP_SPEED) * FRICTION * self.seconds;
        }
        drop += speed * WATER_FRICTION * f32::from(self.water) * self.seconds;
        if self.state.flies {
            drop += speed * FLIGHT_FRICTION * self.seconds;
        }
        if self.state.kind == kind::SPECTATOR {
            drop += speed * SPECTATOR_FRICTION * self.seconds;
        }
        self.state.velocity *= (speed - drop).max(0.0) / speed;
    }

    fn accelerate(&mut self, direction: Vec3, speed: f32, rate: f32) {
        if self.settings.no_bunny {
            let (push, length) = split(direction * speed - self.state.velocity);
            self.state.velocity += push * (rate * self.seconds * speed).min(length);
            return;
        }
        let missing = speed - self.state.velocity.dot(direction);
        if missing > 0.0 {
            self.state.velocity += direction * (rate * self.seconds * speed).min(missing);
        }
    }

    /// Returns the wished speed per unit of input: the same along diagonals as along an axis.
    fn scale(&self) -> f32 {
        let moves = [self.command.forward, self.command.right, self.command.up].map(i32::from);
        let most = moves.iter().map(|speed| speed.abs()).max().unwrap_or(0);
        if most == 0 {
            return 0.0;
        }
        let total = libm::sqrt(f64::from(moves.iter().map(|speed| speed * speed).sum::<i32>())) as f32;
        (f64::from(self.state.speed as f32 * most as f32) / (127.0 * f64::from(total))) as f32
    }

    /// Returns the wished velocity in three dimensions.
    fn wish(&self, scale: f32) -> Vec3 {
        let Quake3Usercmd { forward, right, up, .. } = self.command;
        let level = self.forward * (scale * f32::from(forward)) + self.right * (scale * f32::from(right));
        level + Vec3::new(0.0, 0.0, scale * f32::from(up))
    }
}

/// Returns direction and length.
fn split(vector: Vec3) -> (Vec3, f32) {
    (vector.normalize_or_zero(), vector.length())
}

const STEP: f32 = 18.0;
/// Factor by which planes reflect slightly more than the velocity into them.
const OVERCLIP: f32 = 1.001;
const PLANES_MAX: usize = 5;
const BUMPS_MAX: usize = 4;
/// Speed away from a plane, in units/s, above which it does not count as touched.
const AWAY: f32 = 0.1;
const SAME_PLANE: f32 = 0.99;

/// Returns the velocity without its component into a plane.
pub(super) fn clip(velocity: Vec3, normal: Vec3) -> Vec3 {
    let into = velocity.dot(normal);
    velocity - normal * if into < 0.0 { into * OVERCLIP } else { into / OVERCLIP }
}

impl MoveStep<'_> {
    /// Slides, and climbs steps if necessary.
    pub(super) fn step_slide(&mut self, falls: bool) {
        let (origin, velocity) = (self.state.origin, self.state.velocity);
        if !self.slide(falls) {
            return;
        }
        let up = Vec3::new(0.0, 0.0, STEP);
        let (below, _) = self.sweep(origin, origin - up);
        // A rising player does not climb steps.
        if self.state.velocity.z > 0.0 && (below.fraction == 1.0 || below.normal.z < WALKABLE) {
            return;
        }
        let (above, _) = self.sweep(origin, origin + up);
        if above.all_solid {
            return;
        }
        let height = above.end.z - origin.z;
        (self.state.origin, self.state.velocity) = (above.end, velocity);
        self.slide(falls);
        let (down, _) = self.sweep(self.state.origin, self.state.origin - Vec3::new(0.0, 0.0, height));
        if !down.all_solid {
            self.state.origin = down.end;
        }
        if down.fraction < 1.0 {
            self.state.velocity = clip(self.state.velocity, down.normal);
        }
    }

    /// Moves for the step's time; returns whether something blocked.
    pub(super) fn slide(&mut self, falls: bool) -> bool {
        let mut primal = self.state.velocity;
        // The velocity at the end of the step, which gravity has changed.
        let mut at_end = self.state.velocity;
        if falls {
            at_end.z -= self.state.gravity as f32 * self.seconds;
            self.state.velocity.z = (self.state.velocity.z + at_end.z) * 0.5;
            primal.z = at_end.z;
            if let Some(ground) = self.ground {
                self.state.velocity = clip(self.state.velocity, ground.normal);
            }
        }
        let mut planes: Vec<Vec3> = Vec::with_capacity(PLANES_MAX);
        planes.extend(self.ground.map(|ground| ground.normal));
        planes.push(self.state.velocity.normalize_or_zero());
        let mut left = self.seconds;
        let mut bumps = 0;
        while bumps < BUMPS_MAX {
            let (trace, entity) = self.sweep(self.state.origin, self.state.origin + self.state.velocity * left);
            if trace.all_solid {
                // No falling speed accumulates inside something solid.
                self.state.velocity.z = 0.0;
                return true;
            }
            if trace.fraction > 0.0 {
                self.state.origin = trace.end;
            }
            if trace.fraction == 1.0 {
                break;
            }
            bumps += 1;
            self.meet(entity);
            left -= left * trace.fraction;
            if planes.len() >= PLANES_MAX {
                self.state.velocity = Vec3::ZERO;
                return true;
            }
            if planes.iter().any(|plane| trace.normal.dot(*plane) > SAME_PLANE) {
                // Repeated contact with the same plane: push away from it.
                self.state.velocity += trace.normal;
                continue;
            }
            planes.push(trace.normal);
            match along(&planes, self.state.velocity, at_end) {
                Some((velocity, end)) => (self.state.velocity, at_end) = (velocity, end),
                None => {
                    self.state.velocity = Vec3::ZERO;
                    return true;
                }
            }
        }
        if falls {
            self.state.velocity = at_end;
        }
        if self.state.time_ms != 0 {
            self.state.velocity = primal;
        }
        bumps != 0
    }
}

/// Clips both velocities to the planes, along one or along the crease of two. `None` if three planes block every
/// direction.
fn along(planes: &[Vec3], velocity: Vec3, at_end: Vec3) -> Option<(Vec3, Vec3)> {
    let Some(first) = planes.iter().position(|plane| velocity.dot(*plane) < AWAY) else {
        return Some((velocity, at_end));
    };
    let mut clipped = (clip(velocity, planes[first]), clip(at_end, planes[first]));
    for second in (0..planes.len()).filter(|second| *second != first) {
        if clipped.0.dot(planes[second]) >= AWAY {
            continue;
        }
        clipped = (clip(clipped.0, planes[second]), clip(clipped.1, planes[second]));
        if clipped.0.dot(planes[first]) >= 0.0 {
            continue;
        }
        let crease = planes[first].cross(planes[second]).normalize_or_zero();
        clipped = (crease * crease.dot(velocity), crease * crease.dot(at_end));
        let is_third = |third: &usize| *third != first && *third != second && clipped.0.dot(planes[*third]) < AWAY;
        if (0..planes.len()).any(|third| is_third(&third)) {
            return None;
        }
    }
    Some(clipped)
}
