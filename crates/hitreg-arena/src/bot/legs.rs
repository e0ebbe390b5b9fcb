//! A bot's movement: along routes when it searches, to and fro when it fights, and into cover when it is hurt.

use glam::Vec3;

use super::super::body::ArenaBody;
use super::super::fire::yaw_of;
use super::super::rules::ArenaRules;
use super::routes::{RouteEdge, RouteGraph, has_arrived};
use hitreg_log::rng::Rng;
use hitreg_log::units::Micros;
use hitreg_log::usercmd::buttons;

/// The distance to the side at which a wall is noticed, in units.
const ELBOW_ROOM_UNITS: f32 = 40.0;

/// A bot that walks less far than this within [`STUCK_AFTER`] is stuck, in units.
const STUCK_UNITS: f32 = 24.0;
const STUCK_AFTER: Micros = Micros(600_000);
/// A bot that walks to one stop for longer than this gives it up: an edge is in the way. No way takes so long.
const GIVE_UP_AFTER: Micros = Micros(6_000_000);

/// The movement in one usercmd.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stride {
    /// The horizontal direction; zero to stand still.
    pub(crate) direction: Vec3,
    pub(crate) buttons: u16,
}

/// A bot's route and its progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct BotPath {
    path: Vec<RouteEdge>,
    /// The number of path segments already walked.
    done: usize,
    checked: (Micros, Vec3),
    times_stuck: u32,
    /// When the bot began to walk to its next stop; `None` before.
    since: Option<Micros>,
    /// The place that the bot gave up last, until it reaches another one.
    given_up: Option<usize>,
    strafes_left: bool,
    strafe_until: Micros,
    duck_until: Micros,
    jump_until: Micros,
}

impl BotPath {
    pub(crate) fn forget(&mut self) {
        self.path.clear();
        self.done = 0;
    }

    /// Returns whether the bot follows a path.
    pub(crate) fn is_under_way(&self) -> bool {
        self.done < self.path.len()
    }

    /// Returns the next stop on the path.
    pub(crate) fn next_stop(&self) -> Option<Vec3> {
        self.path.get(self.done).map(|way| way.walk_to)
    }

    /// Starts a path to a place.
    pub(crate) fn set_out(&mut self, rules: &ArenaRules, routes: &RouteGraph, from: Vec3, place: usize) {
        let start = routes.nearest(&rules.map, from, self.given_up);
        self.path = routes.path(start, place);
        let first = RouteEdge { to: start, walk_to: routes.places()[start], ducked: false, time_ms: 0 };
        self.path.insert(0, first);
        self.done = 0;
        self.times_stuck = 0;
        self.since = None;
    }

    /// Follows the path.
    pub(crate) fn follow(&mut self, own: &ArenaBody, now: Micros) -> Stride {
        while let Some(way) = self.path.get(self.done) {
            if !has_arrived(own.origin, way.walk_to) {
                break;
            }
            self.done += 1;
            (self.since, self.given_up) = (None, None);
        }
        let Some(way) = self.path.get(self.done).copied() else {
            return Stride::default();
        };
        let mut pressed = if way.ducked { buttons::DUCK } else { 0 };
        if (now - self.checked.0).0 > STUCK_AFTER.0 {
            let came = own.origin.distance(self.checked.1);
            self.checked = (now, own.origin);
            self.times_stuck = if came < STUCK_UNITS { self.times_stuck + 1 } else { 0 };
            match self.times_stuck {
                0 => {}
                1 => self.jump_until = now + Micros::from_ms(100),
                _ => self.forget(),
            }
        }
        let since = *self.since.get_or_insert(now);
        if now - since > GIVE_UP_AFTER {
            self.given_up = Some(way.to);
            self.forget();
        }
        if now.0 < self.jump_until.0 {
            pressed |= buttons::JUMP;
        }
        Stride { direction: level(way.walk_to - own.origin), buttons: pressed }
    }

    /// Strafes across the line to a foe, at about the best distance for the weapon.
    pub(crate) fn dance(
        &mut self,
        rules: &ArenaRules,
        own: &ArenaBody,
        foe: Vec3,
        best_units: f32,
        now: Micros,
        rng: &mut Rng,
    ) -> Stride {
        if now.0 >= self.strafe_until.0 {
            self.strafes_left = !self.strafes_left;
            self.strafe_until = now + Micros::from_ms(250 + rng.below(900) as i64);
            if rng.chance(0.2) {
                self.jump_until = now + Micros::from_ms(60);
            }
            if rng.chance(0.18) {
                self.duck_until = now + Micros::from_ms(400 + rng.below(700) as i64);
            }
        }
        let ahead = level(foe - own.origin);
        let mut side = Vec3::new(-ahead.y, ahead.x, 0.0) * if self.strafes_left { 1.0 } else { -1.0 };
        let elbow = own.origin + side * ELBOW_ROOM_UNITS;
        if !rules.map.is_clear(own.origin, elbow) {
            self.strafes_left = !self.strafes_left;
            side = -side;
        }
        let away = (foe - own.origin).length();
        let closer = ((away - best_units) / best_units).clamp(-1.0, 1.0);
        let mut pressed = 0;
        if now.0 < self.jump_until.0 {
            pressed |= buttons::JUMP;
        }
        if now.0 < self.duck_until.0 {
            pressed |= buttons::DUCK;
        }
        Stride { direction: level(side + ahead * closer), buttons: pressed }
    }

    /// Starts a path to the nearest place that a foe cannot see.
    pub(crate) fn take_cover(&mut self, rules: &ArenaRules, routes: &RouteGraph, own: Vec3, foe_eye: Vec3) {
        let hides = |place: &Vec3| !rules.map.is_clear(foe_eye, *place);
        let away = |place: &Vec3| place.distance(own);
        let hidden = routes.places().iter().enumerate().filter(|(_, place)| hides(place));
        if let Some((place, _)) = hidden.min_by(|(_, a), (_, b)| away(a).total_cmp(&away(b))) {
            self.set_out(rules, routes, own, place);
        }
    }
}

/// Returns forward and side speed in units/s, as movement keys give them: the nearest of eight directions.
pub(crate) fn on_keys(direction: Vec3, yaw_deg: f32) -> (f32, f32) {
    /// The speed of a movement key: Half-Life's `cl_forwardspeed`.
    const KEY_UNITS_S: f32 = 400.0;
    if direction == Vec3::ZERO {
        return (0.0, 0.0);
    }
    let turn = yaw_of(direction) - yaw_deg;
    match libm::roundf(turn / 45.0).rem_euclid(8.0) as u8 {
        0 => (KEY_UNITS_S, 0.0),
        1 => (KEY_UNITS_S, -KEY_UNITS_S),
        2 => (0.0, -KEY_UNITS_S),
        3 => (-KEY_UNITS_S, -KEY_UNITS_S),
        4 => (-KEY_UNITS_S, 0.0),
        5 => (-KEY_UNITS_S, KEY_UNITS_S),
        6 => (0.0, KEY_UNITS_S),
        _ => (KEY_UNITS_S, KEY_UNITS_S),
    }
}

fn level(direction: Vec3) -> Vec3 {
    Vec3::new(direction.x, direction.y, 0.0).normalize_or_zero()
}
