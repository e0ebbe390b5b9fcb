//! Movement that slides along the surfaces in its way.

use glam::Vec3;

use super::{MoveEvent, PlayerMove, Solid};

/// The most surfaces that deflect one frame's movement.
const MOST_BUMPS: usize = 4;

/// Smaller velocity along an axis after a bump is dropped, in units per second. In double precision, as in the
/// original.
const STOP_UNITS_S: f64 = 0.1;

/// The surfaces that touch the current position; at most one per bump.
struct Surfaces {
    normals: [Vec3; MOST_BUMPS],
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
    /// Moves for one frame, sliding along up to four surfaces.
    pub(super) fn slide(&mut self) {
        let velocity_at_first = self.now.velocity;
        let mut velocity_since_moved = self.now.velocity;
        let mut surfaces = Surfaces { normals: [Vec3::ZERO; MOST_BUMPS], count: 0 };
        let mut left_s = self.frame_s;
        let mut covered = 0.0;

        for _ in 0..MOST_BUMPS {
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

/// Removes the part of `velocity` that leads into a surface.
fn clip(velocity: Vec3, surface: Vec3) -> Vec3 {
    let into = velocity.dot(surface);
    let rest = velocity - surface * into;
    Vec3::from_array(rest.to_array().map(|along| if f64::from(along).abs() < STOP_UNITS_S { 0.0 } else { along }))
}
