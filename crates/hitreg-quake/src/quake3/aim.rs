//! Lines of fire of hitscan weapons, from the muzzle and with the game's spread. Server and client derive the spread
//! from the usercmd's time, so hitreg can derive it too (OpenArena's g_weapon.c, and its unlagged code).

use glam::Vec3;

use super::body::Quake3Body;
use super::protocol::player;
use hitreg_netcode::game::Body as _;

/// A hitscan weapon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weapon {
    /// Number of the weapon (bg_public.h: `weapon_t`).
    number: u32,
    pub(super) name: &'static str,
    /// Time until the next shot, in ms (bg_pmove.c).
    pub(super) again_ms: i32,
    /// Damage of each pellet before armour (bg_public.h, g_weapon.c).
    pub(super) damage: i32,
    reach: f32,
    /// Largest sideways deviation of a shot at distance `FAR`, in units.
    spread: f32,
    pellets: usize,
    /// How much the rewind is reduced, in ms. It applies because `g_lagLightning` is on by default.
    pub(super) handicap_ms: i32,
}

/// Distance at which spread is measured, in units.
const FAR: f32 = 8192.0 * 16.0;
const REACH: f32 = 8192.0;

const fn weapon(number: u32, name: &'static str, again_ms: i32, damage: i32) -> Weapon {
    Weapon { number, name, again_ms, damage, reach: REACH, spread: 0.0, pellets: 1, handicap_ms: 0 }
}

const WEAPONS: [Weapon; 5] = [
    Weapon { reach: FAR, spread: 200.0 * 16.0, ..weapon(2, "machinegun", 100, 7) },
    Weapon { reach: FAR, spread: 700.0 * 16.0, pellets: 11, ..weapon(3, "shotgun", 1000, 10) },
    Weapon { reach: 768.0, handicap_ms: 50, ..weapon(6, "lightning gun", 50, 8) },
    weapon(7, "railgun", 1500, 100),
    Weapon { reach: FAR, spread: 600.0 * 16.0, ..weapon(13, "chaingun", 30, 7) },
];

/// The other weapons, by number.
const OTHERS: [(u32, &str); 8] = [
    (GAUNTLET, MELEE[0]),
    (4, "grenade launcher"),
    (5, "rocket launcher"),
    (8, "plasma gun"),
    (9, "BFG"),
    (10, "grapple"),
    (11, "nailgun"),
    (12, "proximity launcher"),
];

/// The one among them that launches no projectile.
const GAUNTLET: u32 = 1;

/// The weapons without a line of fire.
pub(super) const MELEE: &[&str] = &["gauntlet"];

/// Returns whether a weapon launches a projectile.
pub(super) fn launches(number: u32) -> bool {
    number != GAUNTLET && OTHERS.iter().any(|(of, _)| *of == number)
}

/// Returns the name of a weapon.
pub(super) fn weapon_name(number: u32) -> &'static str {
    let at_once = Weapon::of(number).map(|weapon| weapon.name);
    at_once.or_else(|| OTHERS.iter().find(|(of, _)| *of == number).map(|(_, name)| *name)).unwrap_or("weapon")
}

impl Weapon {
    /// Returns the weapon of this number, if it is a hitscan weapon.
    pub(super) fn of(number: u32) -> Option<Weapon> {
        WEAPONS.into_iter().find(|weapon| weapon.number == number)
    }

    /// Returns the largest sideways deviation of a shot per unit of distance.
    pub(super) fn slope(&self) -> f32 {
        // Pellets spread over a square; its corners deviate most.
        let corner = if self.pellets > 1 { std::f32::consts::SQRT_2 } else { 1.0 };
        corner * self.spread / FAR
    }

    /// Returns the lines of a shot that the usercmd of `time_ms` (server time in ms) fired. `own` is the body after
    /// that usercmd.
    pub(super) fn lines(&self, own: &Quake3Body, time_ms: i32) -> FireLines {
        let [mut forward, mut right, mut up] = directions(own.viewangles());
        let eyes = own.player(player("viewheight")) as i32 as f32;
        let from = cut(cut(own.position_f32()) + Vec3::Z * eyes + forward * MUZZLE);
        let middle = from + forward * self.reach;
        let mut chance = QuakeRandom(time_ms % 256);
        if self.pellets > 1 {
            // The server sends the direction in whole numbers, and pellets use the sent direction.
            forward = cut(forward * 4096.0).normalize();
            right = across(forward);
            up = forward.cross(right);
        }
        let pellet = |_| {
            let aside = match self.pellets {
                _ if self.spread == 0.0 => [0.0; 2],
                1 => {
                    let turn = chance.up_to_1() * std::f32::consts::PI * 2.0;
                    let up = libm::sinf(turn) * chance.around_0() * self.spread;
                    [libm::cosf(turn) * chance.around_0() * self.spread, up]
                }
                _ => [chance.around_0() * self.spread, chance.around_0() * self.spread],
            };
            from + forward * self.reach + right * aside[0] + up * aside[1]
        };
        FireLines { from, middle, ends: (0..self.pellets).map(pellet).collect() }
    }
}

/// The lines of fire of one shot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FireLines {
    pub(super) from: Vec3,
    /// End of the line without spread.
    pub(super) middle: Vec3,
    /// End of each pellet's line if nothing blocks it.
    pub(super) ends: Vec<Vec3>,
}

/// Distance of the muzzle in front of the eyes, in units.
const MUZZLE: f32 = 14.0;

/// Truncates a position to whole units, as the game does before it sends it.
pub(super) fn cut(place: Vec3) -> Vec3 {
    place.map(libm::truncf)
}

fn directions(angles: Vec3) -> [Vec3; 3] {
    let [pitch, yaw, roll] = angles.to_array().map(f32::to_radians);
    let [(sp, cp), (sy, cy), (sr, cr)] = [pitch, yaw, roll].map(libm::sincosf);
    [
        Vec3::new(cp * cy, cp * sy, -sp),
        Vec3::new(cr * sy - sr * sp * cy, -sr * sp * sy - cr * cy, -sr * cp),
        Vec3::new(cr * sp * cy + sr * sy, cr * sp * sy - sr * cy, cr * cp),
    ]
}

/// Returns a direction perpendicular to another: the axis with the smallest component, projected onto the perpendicular
/// plane.
fn across(direction: Vec3) -> Vec3 {
    let axes = [(direction.x, Vec3::X), (direction.y, Vec3::Y), (direction.z, Vec3::Z)];
    let axis =
        axes.into_iter().min_by(|one, other| one.0.abs().total_cmp(&other.0.abs())).map_or(Vec3::Z, |(_, axis)| axis);
    (axis - direction * direction.dot(axis)).normalize()
}

/// The game's random number generator (q_math.c).
struct QuakeRandom(i32);

impl QuakeRandom {
    fn up_to_1(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(69_069).wrapping_add(1);
        (self.0 & 0xffff) as f32 / 65_536.0
    }

    fn around_0(&mut self) -> f32 {
        2.0 * (self.up_to_1() - 0.5)
    }
}

/// Returns the distance by which a line misses a box.
pub(super) fn off(from: Vec3, to: Vec3, mins: Vec3, maxs: Vec3) -> f32 {
    let outside = |along: f32| {
        let place = from.lerp(to, along);
        place.distance(place.clamp(mins, maxs))
    };
    // Behind the box the distance only grows.
    let behind = from.distance((mins + maxs) / 2.0) + mins.distance(maxs);
    let (mut near, mut far) = (0.0, (behind / from.distance(to).max(1.0)).min(1.0));
    // The distance to a box along a line has a single minimum.
    for _ in 0..HALVINGS {
        let third = (far - near) / 3.0;
        if outside(near + third) <= outside(far - third) { far -= third } else { near += third }
    }
    outside((near + far) / 2.0)
}

const HALVINGS: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_misses_or_hits_a_box() {
        let (mins, maxs) = (Vec3::new(100.0, -15.0, -24.0), Vec3::new(130.0, 15.0, 32.0));
        let to = |y: f32| off(Vec3::ZERO, Vec3::new(8192.0, 8192.0 * y, 0.0), mins, maxs);
        assert!(to(0.0) < 1e-3 && to(0.1) < 1e-3, "{} {}", to(0.0), to(0.1));
        // At x = 100 the line is 50 aside, 35 outside of the box. The nearest point comes a little earlier.
        assert!((to(0.5) - 31.3).abs() < 0.1, "{}", to(0.5));
        assert!((off(Vec3::ZERO, Vec3::new(60.0, 0.0, 0.0), mins, maxs) - 40.0).abs() < 1e-3, "too short");
        assert!(off(Vec3::ZERO, Vec3::new(-8192.0, 0.0, 0.0), mins, maxs) > 99.0, "the other way");
    }

    #[test]
    fn shots_spread_up_to_the_limit_of_their_weapon() {
        let own = Quake3Body::default();
        let slope = |weapon: &Weapon, time: i32| {
            let lines = weapon.lines(&own, time);
            let ahead = (lines.middle - lines.from).normalize();
            let aside = |end: &Vec3| libm::tanf(ahead.angle_between(*end - lines.from));
            (lines.ends.len(), lines.ends.iter().map(aside).fold(0.0, f32::max))
        };
        for weapon in WEAPONS {
            let slopes: Vec<(usize, f32)> = (0..256).map(|time| slope(&weapon, time)).collect();
            let most = slopes.iter().map(|(_, slope)| *slope).fold(0.0, f32::max);
            assert!(most <= weapon.slope() + 1e-3 && most >= 0.85 * weapon.slope(), "{}: {most}", weapon.name);
            assert!(slopes.iter().all(|(pellets, _)| *pellets == weapon.pellets));
            assert_eq!(weapon.lines(&own, 300), weapon.lines(&own, 300 + 256), "the time alone decides");
        }
        assert_eq!((Weapon::of(5), Weapon::of(3).map(|weapon| weapon.name)), (None, Some("shotgun")));
    }
}
