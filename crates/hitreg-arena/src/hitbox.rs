//! Hitboxes: a player's head, chest, stomach and legs, which follow the stance.

use glam::Vec3;

use super::body::ArenaBody;

hitreg_log::named! {
    /// A part of a body. The numbers up to the stomach are Half-Life's; the legs are one part here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Hitgroup {
        /// No specific part, for explosions.
        Generic = "generic",
        /// The head.
        Head = "head",
        /// Shoulders and chest.
        Chest = "chest",
        /// The stomach.
        Stomach = "stomach",
        /// The legs.
        Legs = "legs",
    }
}

impl Hitgroup {
    /// Returns the name of a number in [`DamageShare::hitgroup`](hitreg_netcode::game::DamageShare::hitgroup).
    pub fn name_of(hitgroup: u8) -> &'static str {
        Hitgroup::NAMES.get(usize::from(hitgroup)).copied().unwrap_or("unknown")
    }
}

/// The box of one part, centred on the vertical through the body's origin.
struct HitboxPart {
    hitgroup: Hitgroup,
    /// Half of its width and depth, in units.
    half_width: f32,
    /// Its lowest and highest points above the origin, in units.
    span: (f32, f32),
}

const fn part(hitgroup: Hitgroup, half_width: f32, low: f32, high: f32) -> HitboxPart {
    HitboxPart { hitgroup, half_width, span: (low, high) }
}

const STANDING: [HitboxPart; 4] = [
    part(Hitgroup::Head, 6.0, 22.0, 36.0),
    part(Hitgroup::Chest, 12.0, 4.0, 22.0),
    part(Hitgroup::Stomach, 11.0, -8.0, 4.0),
    part(Hitgroup::Legs, 10.0, -36.0, -8.0),
];

const DUCKED: [HitboxPart; 4] = [
    part(Hitgroup::Head, 6.0, 6.0, 18.0),
    part(Hitgroup::Chest, 13.0, -4.0, 6.0),
    part(Hitgroup::Stomach, 13.0, -10.0, -4.0),
    part(Hitgroup::Legs, 14.0, -18.0, -10.0),
];

fn parts_of(body: &ArenaBody) -> &'static [HitboxPart; 4] {
    if body.ducked { &DUCKED } else { &STANDING }
}

/// Returns the centre and half width of each part of a body, from the head down.
pub(crate) fn parts(body: &ArenaBody) -> impl Iterator<Item = (Vec3, f32)> {
    let origin = body.origin;
    parts_of(body).iter().map(move |part| (origin + Vec3::Z * ((part.span.0 + part.span.1) * 0.5), part.half_width))
}

/// A ray, prepared for many box tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ray {
    pub(crate) from: Vec3,
    /// The unit direction.
    pub(crate) direction: Vec3,
}

impl Ray {
    /// Returns the nearest part of a body on the ray, and its distance in units. Of two equally near parts, returns the
    /// upper one.
    pub(crate) fn first_part(&self, body: &ArenaBody) -> Option<(Hitgroup, f32)> {
        if !self.may_meet(body) {
            return None;
        }
        let mut first: Option<(Hitgroup, f32)> = None;
        for part in parts_of(body) {
            let min = body.origin + Vec3::new(-part.half_width, -part.half_width, part.span.0);
            let max = body.origin + Vec3::new(part.half_width, part.half_width, part.span.1);
            let away = self.enters(min, max);
            if let Some(away) = away.filter(|away| first.is_none_or(|(_, nearest)| *away < nearest)) {
                first = Some((part.hitgroup, away));
            }
        }
        first
    }

    /// Returns false for bodies farther from the line than a hull's half diagonal.
    fn may_meet(&self, body: &ArenaBody) -> bool {
        const HALF_DIAGONAL_UNITS: f32 = 43.0;
        let to_body = body.origin - self.from;
        let along = to_body.dot(self.direction).max(0.0);
        (to_body - self.direction * along).length_squared() <= HALF_DIAGONAL_UNITS * HALF_DIAGONAL_UNITS
    }

    /// Returns the distance at which the ray enters a box: 0 from inside, `None` when it misses.
    fn enters(&self, min: Vec3, max: Vec3) -> Option<f32> {
        let (mut enter, mut leave) = (0.0_f32, f32::INFINITY);
        for axis in 0..3 {
            let (from, direction) = (self.from[axis], self.direction[axis]);
            if direction == 0.0 {
                if from < min[axis] || from > max[axis] {
                    return None;
                }
                continue;
            }
            let (a, b) = ((min[axis] - from) / direction, (max[axis] - from) / direction);
            enter = enter.max(a.min(b));
            leave = leave.min(a.max(b));
        }
        (enter <= leave).then_some(enter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_ray(z: f32) -> Ray {
        Ray { from: Vec3::new(-100.0, 0.0, z), direction: Vec3::X }
    }

    #[test]
    fn parts_follow_the_stance() {
        let standing = ArenaBody { alive: true, ..ArenaBody::default() };
        let ducked = ArenaBody { ducked: true, ..standing };
        let hit = |body: &ArenaBody, z| level_ray(z).first_part(body).map(|(part, _)| part);
        assert_eq!(hit(&standing, 30.0), Some(Hitgroup::Head));
        assert_eq!(hit(&standing, 10.0), Some(Hitgroup::Chest));
        assert_eq!(hit(&standing, 0.0), Some(Hitgroup::Stomach));
        assert_eq!(hit(&standing, -30.0), Some(Hitgroup::Legs));
        assert_eq!(hit(&ducked, 30.0), None);
        assert_eq!(hit(&ducked, 10.0), Some(Hitgroup::Head));
        assert_eq!(hit(&ducked, -15.0), Some(Hitgroup::Legs));
    }

    #[test]
    fn distances_are_to_the_hit_side() {
        let body = ArenaBody::default();
        assert_eq!(level_ray(10.0).first_part(&body), Some((Hitgroup::Chest, 88.0)));
        let away = Ray { from: Vec3::new(-100.0, 0.0, 10.0), direction: Vec3::NEG_X };
        assert_eq!(away.first_part(&body), None);
        let within = Ray { from: Vec3::new(0.0, 0.0, 10.0), direction: Vec3::Y };
        assert_eq!(within.first_part(&body), Some((Hitgroup::Chest, 0.0)));
    }
}
