//! Where shots go that hit at once: from the muzzle, spread as the game spreads them. Server and client draw the spread from the
//! usercmd's time, so it can be drawn again (OpenArena's g_weapon.c, and unlagged's part of it).

use glam::Vec3;

use super::body::BodyRow;
use super::protocol::player;
use hitreg_netcode::game::Body as _;

/// A weapon that hits at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weapon {
    /// Its number among the weapons (bg_public.h: `weapon_t`).
    number: u32,
    pub(super) name: &'static str,
    /// How long it takes until the next shot, in ms (bg_pmove.c).
    pub(super) again_ms: i32,
    /// What each pellet takes, before armour (bg_public.h, g_weapon.c).
    pub(super) damage: i32,
    reach: f32,
    /// How far aside a shot may be where it is `FAR` away.
    spread: f32,
    pellets: usize,
    /// How much less than the usercmd's time its targets go back, in ms: `g_lagLightning` is on unless it is put off.
    pub(super) handicap_ms: i32,
}

/// Where spread is measured.
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

/// The others, by number.
const OTHERS: [(u32, &str); 8] = [
    (1, "gauntlet"),
    (4, "grenade launcher"),
    (5, "rocket launcher"),
    (8, "plasma gun"),
    (9, "BFG"),
    (10, "grapple"),
    (11, "nailgun"),
    (12, "proximity launcher"),
];

/// Those of the others that send off something that flies.
const LAUNCHERS: [u32; 7] = [4, 5, 8, 9, 10, 11, 12];

/// Whether what a weapon fires flies, and comes down later.
pub(super) fn launches(number: u32) -> bool {
    LAUNCHERS.contains(&number)
}

/// What a weapon is called.
pub(super) fn weapon_name(number: u32) -> &'static str {
    let at_once = Weapon::of(number).map(|weapon| weapon.name);
    at_once.or_else(|| OTHERS.iter().find(|(of, _)| *of == number).map(|(_, name)| *name)).unwrap_or("weapon")
}

impl Weapon {
    /// The weapon of this number, if it hits at once.
    pub(super) fn of(number: u32) -> Option<Weapon> {
        WEAPONS.into_iter().find(|weapon| weapon.number == number)
    }

    /// How far aside of its middle a shot may be, for each unit of distance.
    pub(super) fn slope(&self) -> f32 {
        // Pellets lie in a square.
        let corner = if self.pellets > 1 { std::f32::consts::SQRT_2 } else { 1.0 };
        corner * self.spread / FAR
    }

    /// The lines of a shot that the usercmd of `time_ms`, in ms of the server, fired; `own` is the body after it.
    pub(super) fn lines(&self, own: &BodyRow, time_ms: i32) -> Lines {
        let [mut forward, mut right, mut up] = directions(own.viewangles());
        let eyes = own.player(player("viewheight")) as i32 as f32;
        let from = cut(cut(own.origin()) + Vec3::Z * eyes + forward * MUZZLE);
        let middle = from + forward * self.reach;
        let mut chance = Chance(time_ms % 256);
        if self.pellets > 1 {
            // The direction is sent to the others in whole numbers, and the pellets go by that.
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
        Lines { from, middle, ends: (0..self.pellets).map(pellet).collect() }
    }
}

/// The lines of one shot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    pub(super) from: Vec3,
    /// Where it would end without spread.
    pub(super) middle: Vec3,
    /// Where each pellet ends if nothing is in its way.
    pub(super) ends: Vec<Vec3>,
}

/// How far before the eyes the muzzle is.
const MUZZLE: f32 = 14.0;

/// Places are sent in whole units; the game cuts the rest off.
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

/// A direction across another: that of the axis that it has least of, without what it has of that.
fn across(direction: Vec3) -> Vec3 {
    let axes = [(direction.x, Vec3::X), (direction.y, Vec3::Y), (direction.z, Vec3::Z)];
    let axis =
        axes.into_iter().min_by(|one, other| one.0.abs().total_cmp(&other.0.abs())).map_or(Vec3::Z, |(_, axis)| axis);
    (axis - direction * direction.dot(axis)).normalize()
}

/// The game's own random numbers (q_math.c).
struct Chance(i32);

impl Chance {
    fn up_to_1(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(69_069).wrapping_add(1);
        (self.0 & 0xffff) as f32 / 65_536.0
    }

    fn around_0(&mut self) -> f32 {
        2.0 * (self.up_to_1() - 0.5)
    }
}

/// How far a line passes outside of a box.
pub(super) fn off(from: Vec3, to: Vec3, mins: Vec3, maxs: Vec3) -> f32 {
    let outside = |along: f32| {
        let place = from.lerp(to, along);
        place.distance(place.clamp(mins, maxs))
    };
    // Behind the box it only goes away from it.
    let behind = from.distance((mins + maxs) / 2.0) + mins.distance(maxs);
    let (mut near, mut far) = (0.0, (behind / from.distance(to).max(1.0)).min(1.0));
    // The distance from a box has one valley along a line.
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
    fn a_line_passes_a_box_or_goes_through_it() {
        let (mins, maxs) = (Vec3::new(100.0, -15.0, -24.0), Vec3::new(130.0, 15.0, 32.0));
        let to = |y: f32| off(Vec3::ZERO, Vec3::new(8192.0, 8192.0 * y, 0.0), mins, maxs);
        assert!(to(0.0) < 1e-3 && to(0.1) < 1e-3, "{} {}", to(0.0), to(0.1));
        // At x 100 it is 50 aside, 35 beyond the box, and the nearest of it is a little before.
        assert!((to(0.5) - 31.3).abs() < 0.1, "{}", to(0.5));
        assert!((off(Vec3::ZERO, Vec3::new(60.0, 0.0, 0.0), mins, maxs) - 40.0).abs() < 1e-3, "too short");
        assert!(off(Vec3::ZERO, Vec3::new(-8192.0, 0.0, 0.0), mins, maxs) > 99.0, "the other way");
    }

    #[test]
    fn shots_spread_as_far_as_their_weapon_lets_them_and_no_farther() {
        let own = BodyRow::default();
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
