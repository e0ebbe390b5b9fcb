//! Angles and clipped polygons, with the same result on every platform.

mod polygon;

use glam::Vec3;
pub use polygon::Polygon;

/// Returns the angle in radians between a direction and the way to a point: the error of an aim.
pub fn angle_off(from: Vec3, direction: Vec3, point: Vec3) -> f32 {
    let to = point - from;
    libm::atan2f(direction.cross(to).length(), direction.dot(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_go_from_ahead_to_behind() {
        let off = |point| angle_off(Vec3::ZERO, Vec3::X, point).to_degrees();
        assert_eq!(off(Vec3::X * 5.0), 0.0);
        assert!((off(Vec3::new(3.0, 3.0, 0.0)) - 45.0).abs() < 1e-4);
        assert!((off(-Vec3::X) - 180.0).abs() < 1e-4);
    }
}
