//! Convex polygons and cutting them by planes.

use glam::Vec3;

/// Larger than any map, in units.
const FAR: f32 = 131_072.0;

/// The corners of a polygon, in order.
#[derive(Clone, Debug)]
pub(super) struct Winding(pub(super) Vec<Vec3>);

impl Winding {
    /// Returns a square in a plane, larger than any map.
    pub(super) fn of_plane(normal: Vec3, dist: f32) -> Winding {
        let size = normal.abs();
        let is_level = size.z > size.x && size.z > size.y;
        let up = if is_level { Vec3::X } else { Vec3::Z };
        let up = (up - normal * up.dot(normal)).normalize_or_zero();
        let right = up.cross(normal);
        let (center, up, right) = (normal * dist, up * FAR, right * FAR);
        Winding(vec![center - right + up, center + right + up, center + right - up, center - right - up])
    }

    /// Returns the part in front of a plane; `None` if it is empty. Points within `epsilon` lie on the plane.
    pub(super) fn cut(&self, normal: Vec3, dist: f32, epsilon: f32) -> Option<Winding> {
        let distance = |point: &Vec3| point.dot(normal) - dist;
        if !self.0.iter().any(|point| distance(point) > epsilon) {
            return None;
        }
        let mut points = Vec::with_capacity(self.0.len() + 2);
        for (index, point) in self.0.iter().enumerate() {
            let next = &self.0[(index + 1) % self.0.len()];
            let (here, there) = (distance(point), distance(next));
            if here >= -epsilon {
                points.push(*point);
            }
            let crosses = (here > epsilon && there < -epsilon) || (here < -epsilon && there > epsilon);
            if crosses {
                let between = *point + (*next - *point) * (here / (here - there));
                // On an axial plane the coordinate is exactly the plane's distance.
                points.push(Vec3::select(normal.abs().cmpeq(Vec3::ONE), normal * dist, between));
            }
        }
        Some(Winding(points))
    }

    pub(super) fn bounds(&self) -> (Vec3, Vec3) {
        let far = Vec3::splat(f32::INFINITY);
        self.0.iter().fold((far, -far), |(mins, maxs), point| (mins.min(*point), maxs.max(*point)))
    }
}
