//! Moves until something blocks, then along it, and up steps (bg_slidemove.c).

use glam::Vec3;

use super::pmove::MoveStep;

const STEP: f32 = 18.0;
/// Factor by which planes reflect slightly more than the velocity into them.
const OVERCLIP: f32 = 1.001;
const MOST_PLANES: usize = 5;
const MOST_BUMPS: usize = 4;
/// Speed away from a plane, in units/s, above which it does not count as touched.
const AWAY: f32 = 0.1;
const SAME_PLANE: f32 = 0.99;
const WALKABLE: f32 = 0.7;

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
        let mut planes: Vec<Vec3> = Vec::with_capacity(MOST_PLANES);
        planes.extend(self.ground.map(|ground| ground.normal));
        planes.push(self.state.velocity.normalize_or_zero());
        let mut left = self.seconds;
        let mut bumps = 0;
        while bumps < MOST_BUMPS {
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
            if planes.len() >= MOST_PLANES {
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
