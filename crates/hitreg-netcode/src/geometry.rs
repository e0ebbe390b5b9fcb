//! Angles and clipped convex polygons, with the same result on every platform.

use glam::{DVec3, Vec3};

/// Returns the angle in radians between a direction and the way to a point: the error of an aim.
pub fn angle_off(from: Vec3, direction: Vec3, point: Vec3) -> f32 {
    let to = point - from;
    libm::atan2f(direction.cross(to).length(), direction.dot(to))
}

/// A convex polygon in space.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    corners: Vec<DVec3>,
}

/// Points nearer to a plane than this lie on it, in units.
const ON_PLANE: f64 = 1e-3;

impl Polygon {
    /// Creates a square on the plane `normal . p = distance`. It extends by `reach` to each side of the plane's point
    /// nearest to the origin.
    pub fn on_plane(normal: DVec3, distance: f64, reach: f64) -> Polygon {
        let least = if normal.x.abs() < 0.6 { DVec3::X } else { DVec3::Y };
        let right = normal.cross(least).normalize_or_zero() * reach;
        let up = normal.cross(right);
        let middle = normal * distance;
        Polygon { corners: vec![middle - right - up, middle + right - up, middle + right + up, middle - right + up] }
    }

    /// Returns the parts in front of and behind a plane. A polygon in the plane is in neither part.
    pub fn cut(&self, normal: DVec3, distance: f64) -> [Option<Polygon>; 2] {
        let off = |corner: &DVec3| normal.dot(*corner) - distance;
        [1.0, -1.0].map(|side| {
            let mut corners = Vec::new();
            for (index, to) in self.corners.iter().enumerate() {
                let from = self.corners[(index + self.corners.len() - 1) % self.corners.len()];
                let (before, after) = (off(&from) * side, off(to) * side);
                if (before > ON_PLANE) != (after > ON_PLANE) {
                    let share = before / (before - after);
                    corners.push(from + (*to - from) * share.clamp(0.0, 1.0));
                }
                if after > ON_PLANE {
                    corners.push(*to);
                }
            }
            (corners.len() > 2).then_some(Polygon { corners })
        })
    }

    /// Returns the segment that a polygon on a steep plane covers when seen from above: both ends, the minimum and the
    /// maximum height. Returns `None` when the segment is a point.
    pub fn seen_from_above(&self, normal: DVec3) -> Option<([f32; 2], [f32; 2], f32, f32)> {
        let along = DVec3::new(-normal.y, normal.x, 0.0);
        let order = |a: &&DVec3, b: &&DVec3| along.dot(**a).total_cmp(&along.dot(**b));
        let (from, to) = (self.corners.iter().min_by(order)?, self.corners.iter().max_by(order)?);
        let heights = self.corners.iter().map(|corner| corner.z as f32);
        let (bottom, top) = heights.fold((f32::MAX, f32::MIN), |(least, most), z| (least.min(z), most.max(z)));
        let flat = |at: &DVec3| [at.x as f32, at.y as f32];
        (from.distance(*to) > 0.5).then_some((flat(from), flat(to), bottom, top))
    }
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

    #[test]
    fn a_square_is_cut_in_two_and_seen_from_above() {
        let wall = Polygon::on_plane(DVec3::X, 10.0, 100.0);
        let [above, below] = wall.cut(DVec3::Z, 40.0);
        let (from, to, bottom, top) = above.expect("a part above").seen_from_above(DVec3::X).expect("a stretch");
        assert_eq!((from, to, bottom, top), ([10.0, -100.0], [10.0, 100.0], 40.0, 100.0));
        assert_eq!(below.expect("a part below").seen_from_above(DVec3::X).expect("a stretch").3, 40.0);
        assert_eq!(wall.cut(DVec3::X, 10.0), [None, None]);
        assert_eq!(wall.cut(DVec3::Z, 500.0), [None, Some(wall.clone())]);
    }
}
