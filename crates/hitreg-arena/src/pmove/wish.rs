//! Conversion of a usercmd's movement to a direction and a speed in the world.

use glam::Vec3;

use super::{Input, MoveEvent, PlayerMove, Solid};

/// A horizontal unit direction (or zero), and the wished speed along it, in units per second.
pub(super) struct WishMove {
    pub(super) direction: Vec3,
    pub(super) speed: f32,
}

/// Returns forward and side speed, scaled down if all three speeds together exceed `maxspeed`.
pub(super) fn within_speed(input: &Input, maxspeed: f32) -> (f32, f32) {
    let asked = Vec3::new(input.forwardmove, input.sidemove, input.upmove).length();
    if asked != 0.0 && asked > maxspeed {
        let ratio = maxspeed / asked;
        (input.forwardmove * ratio, input.sidemove * ratio)
    } else {
        (input.forwardmove, input.sidemove)
    }
}

/// Converts yaws above 180 degrees to negative ones.
pub(super) fn yaw_within_half_turn(yaw_deg: f32) -> f32 {
    if yaw_deg > 180.0 { yaw_deg - 360.0 } else { yaw_deg }
}

/// Scales a vector to length 1 by its reciprocal length, and returns its former length.
pub(super) fn normalize(vector: &mut Vec3) -> f32 {
    let length = vector.length();
    if length != 0.0 {
        *vector *= 1.0 / length;
    }
    length
}

impl<W: Solid, F: FnMut(MoveEvent)> PlayerMove<'_, W, F> {
    pub(super) fn wish(&self) -> WishMove {
        if self.forward_units_s == 0.0 && self.side_units_s == 0.0 {
            return WishMove { direction: Vec3::ZERO, speed: 0.0 };
        }
        let (mut forward, mut right) = self.level_axes();
        normalize(&mut forward);
        normalize(&mut right);
        let mut direction = forward * self.forward_units_s + right * self.side_units_s;
        let speed = normalize(&mut direction);
        WishMove { direction, speed: if speed > self.vars.maxspeed { self.vars.maxspeed } else { speed } }
    }

    /// Returns the view's forward and right axes without their vertical parts. The view never rolls in the arena.
    fn level_axes(&self) -> (Vec3, Vec3) {
        let radians = |degrees: f32| f64::from((f64::from(degrees) * (std::f64::consts::PI * 2.0 / 360.0)) as f32);
        let (sin_yaw, cos_yaw) = libm::sincos(radians(self.yaw_deg));
        let (sin_yaw, cos_yaw) = (sin_yaw as f32, cos_yaw as f32);
        let cos_pitch = libm::cos(radians(self.pitch_deg)) as f32;
        (Vec3::new(cos_pitch * cos_yaw, cos_pitch * sin_yaw, 0.0), Vec3::new(sin_yaw, -cos_yaw, 0.0))
    }
}
