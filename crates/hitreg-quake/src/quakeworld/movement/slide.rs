//! Moves a body along its velocity; it slides along obstacles and climbs stairs.

use glam::Vec3;

use super::Dialect;
use super::pmove::{Pmove, WALKABLE};
use crate::bsp::quake::trace::dot;

const STEP_HEIGHT: f32 = 18.0;
const BUMPS_MAX: usize = 4;
const PLANES_MAX: usize = 5;
/// Components of a clipped velocity below this become zero, in units/s.
const STOP_SPEED: f32 = 0.1;

/// The contacts of a slide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slide {
    /// Whether anything blocked.
    blocked: bool,
    /// Whether it met ground.
    pub(crate) floor: bool,
    /// Whether it met a vertical plane.
    pub(crate) wall: bool,
}

/// Returns the part of `velocity` along a plane.
pub(crate) fn clip(velocity: Vec3, normal: Vec3) -> Vec3 {
    let out = velocity - normal * dot(velocity, normal);
    let settle = |v: f32| if v > -STOP_SPEED && v < STOP_SPEED { 0.0 } else { v };
    Vec3::new(settle(out.x), settle(out.y), settle(out.z))
}

/// Slides for the step's whole time.
pub(crate) fn slide(pm: &mut Pmove<'_>) -> Slide {
    let start_velocity = pm.velocity;
    let mut planes = [Vec3::ZERO; PLANES_MAX];
    let mut count = 0;
    let mut left = pm.seconds;
    let mut met = Slide::default();
    for _ in 0..BUMPS_MAX {
        let (sweep, hit) = pm.sweep(pm.origin, pm.origin + left * pm.velocity);
        if sweep.starts_solid {
            pm.velocity = Vec3::ZERO;
            return Slide { blocked: true, floor: true, wall: true };
        }
        if sweep.fraction > 0.0 {
            pm.origin = sweep.end;
            count = 0;
        }
        if sweep.fraction == 1.0 {
            break;
        }
        pm.touch(hit);
        met.blocked = true;
        met.floor |= sweep.normal.z > WALKABLE;
        met.wall |= sweep.normal.z == 0.0;
        left -= left * sweep.fraction;
        if count >= PLANES_MAX {
            pm.velocity = Vec3::ZERO;
            break;
        }
        planes[count] = sweep.normal;
        count += 1;
        let Some(velocity) = along(start_velocity, pm.velocity, &planes[..count]) else {
            pm.velocity = Vec3::ZERO;
            break;
        };
        pm.velocity = velocity;
        if dot(pm.velocity, start_velocity) <= 0.0 {
            pm.velocity = Vec3::ZERO;
            break;
        }
    }
    if pm.state.water_jump_s != 0.0 {
        pm.velocity = start_velocity;
    }
    met
}

/// Returns a velocity that runs into none of the planes: along one of them, or along the crease of two.
fn along(start: Vec3, mut velocity: Vec3, planes: &[Vec3]) -> Option<Vec3> {
    for (i, plane) in planes.iter().enumerate() {
        velocity = clip(start, *plane);
        if planes.iter().enumerate().all(|(j, other)| j == i || dot(velocity, *other) >= 0.0) {
            return Some(velocity);
        }
    }
    let [first, second] = planes else { return None };
    let crease = first.cross(*second);
    Some(crease * dot(crease, velocity))
}

/// Moves in the air.
pub(crate) fn fly(pm: &mut Pmove<'_>) {
    match pm.dialect {
        Dialect::Reworked { air_step: true, .. } => step_slide(pm, true),
        Dialect::Classic { landing_fix: true, .. } => fly_and_land(pm),
        _ => drop(slide(pm)),
    }
}

/// Flies. If the flight ends on ground without contact, it slides again and keeps only the resulting velocity.
fn fly_and_land(pm: &mut Pmove<'_>) {
    let met = slide(pm);
    if met.floor || met.wall {
        return;
    }
    pm.categorize();
    if !pm.state.on_ground {
        return;
    }
    let landed = pm.origin;
    let met = slide(pm);
    if !met.floor && !met.wall {
        pm.velocity.z = pm.velocity.z.max(0.0);
    }
    pm.origin = landed;
}

/// Moves on the ground.
pub(crate) fn walk(pm: &mut Pmove<'_>) {
    if pm.is_reworked() {
        if pm.velocity.x == 0.0 && pm.velocity.y == 0.0 {
            pm.velocity.z = 0.0;
        } else {
            step_slide(pm, false);
        }
        return;
    }
    if pm.velocity == Vec3::ZERO {
        return;
    }
    let wished =
        Vec3::new(pm.origin.x + pm.velocity.x * pm.seconds, pm.origin.y + pm.velocity.y * pm.seconds, pm.origin.z);
    let (sweep, _) = pm.sweep(pm.origin, wished);
    if sweep.fraction == 1.0 {
        pm.origin = sweep.end;
        return;
    }
    step_slide_classic(pm);
}

/// Moves under water.
pub(crate) fn swim(pm: &mut Pmove<'_>) {
    if pm.is_reworked() {
        step_slide(pm, false);
        return;
    }
    // Like on a stair: from a step's height above, down to the end of the velocity.
    let wished = pm.origin + pm.seconds * pm.velocity;
    let (sweep, _) = pm.sweep(wished + Vec3::new(0.0, 0.0, STEP_HEIGHT + 1.0), wished);
    if !sweep.starts_solid {
        pm.origin = sweep.end;
        return;
    }
    slide(pm);
}

fn raise(pm: &mut Pmove<'_>, by: f32) {
    let (sweep, _) = pm.sweep(pm.origin, pm.origin + Vec3::new(0.0, 0.0, by));
    if !sweep.starts_solid {
        pm.origin = sweep.end;
    }
}

fn flat_distance_squared(a: Vec3, b: Vec3) -> f32 {
    (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)
}

fn step_slide_classic(pm: &mut Pmove<'_>) {
    let start = (pm.origin, pm.velocity);
    slide(pm);
    let low = (pm.origin, pm.velocity);
    (pm.origin, pm.velocity) = start;
    raise(pm, STEP_HEIGHT);
    slide(pm);
    let (sweep, _) = pm.sweep(pm.origin, pm.origin - Vec3::new(0.0, 0.0, STEP_HEIGHT));
    if sweep.normal.z < WALKABLE {
        (pm.origin, pm.velocity) = low;
        return;
    }
    if !sweep.starts_solid {
        pm.origin = sweep.end;
    }
    if flat_distance_squared(low.0, start.0) > flat_distance_squared(pm.origin, start.0) {
        (pm.origin, pm.velocity) = low;
    } else {
        pm.velocity.z = low.1.z;
    }
}

fn step_slide(pm: &mut Pmove<'_>, in_air: bool) {
    let start = (pm.origin, pm.velocity);
    let met = slide(pm);
    if !met.blocked {
        return;
    }
    let mut height = STEP_HEIGHT;
    if in_air {
        if !met.wall {
            return;
        }
        let above = if start.1.z < 0.0 { pm.origin } else { start.0 };
        let (sweep, _) = pm.sweep(above, above - Vec3::new(0.0, 0.0, STEP_HEIGHT));
        if sweep.fraction == 1.0 || sweep.normal.z < WALKABLE {
            return;
        }
        height -= above.z - sweep.end.z;
    }
    let low = (pm.origin, pm.velocity);
    (pm.origin, pm.velocity) = start;
    raise(pm, height);
    if in_air && start.1.z < 0.0 {
        pm.velocity.z = 0.0;
    }
    slide(pm);
    let (sweep, _) = pm.sweep(pm.origin, pm.origin - Vec3::new(0.0, 0.0, height));
    let too_steep = sweep.fraction != 1.0 && sweep.normal.z < WALKABLE;
    if !too_steep && !sweep.starts_solid {
        pm.origin = sweep.end;
    }
    let lower = pm.origin.z < start.0.z;
    let no_farther = flat_distance_squared(low.0, start.0) >= flat_distance_squared(pm.origin, start.0);
    if too_steep || lower || no_farther {
        (pm.origin, pm.velocity) = low;
        return;
    }
    pm.velocity.z = low.1.z;
    if !pm.state.on_ground && pm.state.water_level < 2 && met.wall {
        let scale = 1.0 - 0.01 * (pm.origin.z - start.0.z);
        (pm.velocity.x, pm.velocity.y) = (pm.velocity.x * scale, pm.velocity.y * scale);
    }
}
