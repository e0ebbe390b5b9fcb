//! Bots: players driven by a seed. They see only what a client draws, and press only what a player could press.
//!
//! Bots search for each other along the map's waypoints, dodge, jump, duck, change weapons and take cover when hurt.
//! Their aim reacts late, lags and trembles. The same seed and the same views give the same inputs.

mod routes;

use std::sync::Arc;

use glam::{Vec2, Vec3};

use crate::body::ArenaBody;
use crate::game::Arena;
use crate::map::BUILT_IN;
use crate::rules::{ArenaRules, Muzzle, WeaponId};
use crate::shot::{axes, yaw_of};
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, buttons};
use hitreg_netcode::game::{Bots, PlacedBody};
pub use routes::RouteGraph;
use routes::{RouteEdge, has_arrived};

/// Separates the random streams of bots from those of usercmds and respawns.
const BOT_STREAM: u64 = 1 << 62;

/// A bot with at most this much health takes cover, in points.
const HURT_HEALTH: i32 = 35;

/// The longest time that a bot stays in cover, in µs.
const COVER: Micros = Micros(2_500_000);

/// A bot fires when its line of aim passes a foe within this distance, in units.
const NEAR_ENOUGH_UNITS: f32 = 26.0;

/// Players nearer than this are noticed from behind too, in units.
const HEARD_UNITS: f32 = 260.0;

/// The cosine of half the field of view, which is 100 degrees wide.
const FIELD_COSINE: f32 = 0.64;

/// How long a bot remembers a player who is out of sight, in µs.
const FOE_MEMORY: Micros = Micros(2_500_000);

/// The steepest pitch, in degrees.
const STEEPEST_DEG: f32 = 89.0;

/// The fastest turn, in degrees/s.
const FASTEST_DEG_S: f32 = 700.0;

/// Turns larger than this are flicks, which are quicker and less accurate, in degrees.
const FLICK_FROM_DEG: f32 = 20.0;

/// The time constant of the tremble, in s.
const TREMBLE_S: f32 = 0.2;

/// Errors below this are ignored when the bot aims at no target, in degrees.
const CONTENT_DEG: f32 = 1.5;

/// The distance to the side at which a wall is noticed, in units.
const ELBOW_ROOM_UNITS: f32 = 40.0;

/// A bot that walks less far than this within [`STUCK_AFTER`] is stuck, in units.
const STUCK_UNITS: f32 = 24.0;
const STUCK_AFTER: Micros = Micros(600_000);

/// A bot that walks to one stop for longer than this gives it up: an edge is in the way. No way takes so long.
const GIVE_UP_AFTER: Micros = Micros(6_000_000);

/// One bot.
#[derive(Clone, Debug)]
pub struct ArenaBot {
    me: EntityId,
    rng: Rng,
    routes: Arc<RouteGraph>,
    /// How long the bot takes to notice a player.
    reaction: Micros,
    /// The player to fight, who may not be noticed yet.
    foe: Option<Foe>,
    hand: BotAim,
    legs: BotPath,
    life: Option<u32>,
    favourite: WeaponId,
    choose_at: Micros,
    ask_again_at: Micros,
    cover_until: Micros,
    /// The aim point on a foe's body, in units above its origin.
    aim_height: f32,
}

impl ArenaBot {
    /// Creates a bot for each of `players` players, and computes the map's routes once for all of them.
    pub fn crew(seed: Seed, players: u16, rules: &ArenaRules) -> Vec<ArenaBot> {
        ArenaBot::crew_on(seed, players, &Arc::new(RouteGraph::new(rules)))
    }

    /// Like [`ArenaBot::crew`], with precomputed routes.
    pub fn crew_on(seed: Seed, players: u16, routes: &Arc<RouteGraph>) -> Vec<ArenaBot> {
        (0..players).map(|player| ArenaBot::new(seed, PlayerId(player), routes)).collect()
    }

    /// Creates the bot of one player.
    fn new(seed: Seed, player: PlayerId, routes: &Arc<RouteGraph>) -> ArenaBot {
        let mut rng = Rng::new(seed, BOT_STREAM | u64::from(player.0));
        ArenaBot {
            me: player.entity(),
            reaction: Micros::from_ms(160 + rng.below(140) as i64),
            foe: None,
            hand: BotAim::new(&mut rng),
            legs: BotPath::default(),
            routes: Arc::clone(routes),
            life: None,
            favourite: WeaponId::Pistol,
            choose_at: Micros::ZERO,
            ask_again_at: Micros::ZERO,
            cover_until: Micros::ZERO,
            aim_height: 8.0,
            rng,
        }
    }

    /// Returns the bot's input for a client frame of `msec`. `own` is its predicted body, `eye` its point of view,
    /// `others` what its client draws, and `now` its client's clock.
    pub fn think(
        &mut self,
        rules: &ArenaRules,
        own: &ArenaBody,
        eye: Vec3,
        others: &[(EntityId, ArenaBody)],
        now: Micros,
        msec: u8,
    ) -> Input {
        if self.life != Some(own.teleports) {
            self.begin_anew(own, now);
        }
        if !own.alive {
            return Input { msec, viewangles: self.hand.viewangles(), ..Input::default() };
        }
        let foe = self.look(rules, eye, others, now);
        let stride = self.walk(rules, own, foe.as_ref(), now);
        let fires = self.aim(rules, own, eye, foe.as_ref(), msec);
        let viewangles = self.hand.viewangles();
        let (forwardmove, sidemove) = on_keys(stride.direction, viewangles.y);
        let reload = foe.is_none() && own.clip.of(own.weapon) * 2 < rules.weapon(own.weapon).clip;
        let mut pressed = stride.buttons;
        pressed |= if fires { buttons::ATTACK } else { 0 };
        pressed |= if reload { buttons::RELOAD } else { 0 };
        let impulse = self.choose_weapon(own, foe.as_ref(), now);
        Input { msec, viewangles, forwardmove, sidemove, buttons: pressed, impulse, ..Input::default() }
    }

    /// Looks at what the client draws, and returns the player to fight, once noticed.
    fn look(&mut self, rules: &ArenaRules, eye: Vec3, others: &[(EntityId, ArenaBody)], now: Micros) -> Option<Foe> {
        self.keep_in_view(rules, eye, others, now);
        if self.foe.is_none_or(|foe| !foe.in_sight) {
            let forward = axes(self.hand.viewangles()).forward;
            let is_noticed = |body: &ArenaBody| {
                let to = body.origin - eye;
                let away = to.length();
                away < HEARD_UNITS || to.dot(forward) > away * FIELD_COSINE
            };
            let nearest = others
                .iter()
                .filter(|(id, body)| *id != self.me && body.is_target() && is_noticed(body) && sees(rules, eye, body))
                .min_by(|(_, a), (_, b)| a.origin.distance(eye).total_cmp(&b.origin.distance(eye)));
            if let Some((id, body)) = nearest {
                let noticed_at = now + self.reaction;
                self.foe = Some(Foe { id: *id, body: *body, in_sight: true, last_seen: now, noticed_at });
            }
        }
        self.foe.filter(|foe| now.0 >= foe.noticed_at.0)
    }

    fn keep_in_view(&mut self, rules: &ArenaRules, eye: Vec3, others: &[(EntityId, ArenaBody)], now: Micros) {
        let Some(foe) = &mut self.foe else { return };
        let body = others.iter().find(|(id, _)| *id == foe.id).map(|(_, body)| body);
        match body.filter(|body| body.is_target()) {
            None => self.foe = None,
            Some(body) => {
                foe.in_sight = sees(rules, eye, body);
                if foe.in_sight {
                    foe.body = *body;
                    foe.last_seen = now;
                } else if (now - foe.last_seen).0 > FOE_MEMORY.0 {
                    self.foe = None;
                }
            }
        }
    }

    fn begin_anew(&mut self, own: &ArenaBody, now: Micros) {
        self.life = Some(own.teleports);
        // Each life begins with the next weapon, so that a short session uses them all.
        self.favourite = WeaponId::ALL[(usize::from(self.me.0) + own.teleports as usize) % WeaponId::ALL.len()];
        self.choose_at = now + Micros::from_ms(4_000);
        // The body's view, after a teleport or respawn.
        self.hand.view = own.viewangles.truncate();
        self.legs.forget();
        self.foe = None;
    }

    fn walk(&mut self, rules: &ArenaRules, own: &ArenaBody, foe: Option<&Foe>, now: Micros) -> Stride {
        let seen = foe.filter(|foe| foe.in_sight);
        if let Some(foe) = seen.filter(|_| own.health <= HURT_HEALTH && now.0 >= self.cover_until.0) {
            self.legs.take_cover(rules, &self.routes, own.origin, foe.body.eye());
            self.cover_until = now + COVER;
        }
        let hides = now.0 < self.cover_until.0 && self.legs.is_under_way();
        if let Some(foe) = seen.filter(|_| !hides) {
            self.legs.forget();
            let best_units = match own.weapon {
                WeaponId::Pistol => 420.0,
                WeaponId::Shotgun => 160.0,
                WeaponId::Launcher => 380.0,
            };
            return self.legs.dance(rules, own, foe.body.origin, best_units, now, &mut self.rng);
        }
        if !self.legs.is_under_way() && now.0 >= self.cover_until.0 {
            let place = match foe {
                Some(foe) => self.routes.nearest(&rules.map, foe.body.origin, None),
                None => self.somewhere(),
            };
            self.legs.set_out(rules, &self.routes, own.origin, place);
        }
        self.legs.follow(own, now)
    }

    /// Returns a place to search. Of two random places it is the one nearer the middle of the map, where players meet.
    fn somewhere(&mut self) -> usize {
        let places = self.routes.places();
        let middle = places.iter().sum::<Vec3>() / places.len() as f32;
        let [a, b] = [(); 2].map(|()| self.rng.below(places.len() as u64) as usize);
        if places[a].distance(middle) <= places[b].distance(middle) { a } else { b }
    }

    /// Turns the view, and returns whether to fire.
    fn aim(&mut self, rules: &ArenaRules, own: &ArenaBody, eye: Vec3, foe: Option<&Foe>, msec: u8) -> bool {
        let Some(foe) = foe else {
            let stop = self.legs.next_stop().unwrap_or(own.origin + own.velocity);
            self.hand.turn(Vec2::new(0.0, yaw_of(stop - own.origin)), false, msec, &mut self.rng);
            return false;
        };
        let point = aim_point(rules, own, foe, self.aim_height);
        let line = point - eye;
        let pitch = -libm::atan2f(line.z, line.truncate().length()).to_degrees();
        let off_deg = self.hand.turn(Vec2::new(pitch, yaw_of(line)), true, msec, &mut self.rng);
        let allowed_deg = libm::atanf(NEAR_ENOUGH_UNITS / line.length().max(1.0)).to_degrees();
        foe.in_sight && off_deg < allowed_deg.max(1.0) && own.switch_ms == 0
    }

    /// Returns the impulse that selects another weapon, or 0.
    fn choose_weapon(&mut self, own: &ArenaBody, foe: Option<&Foe>, now: Micros) -> u8 {
        let is_empty = |weapon: WeaponId| own.clip.of(weapon) == 0 && own.reserve.of(weapon) == 0;
        if now.0 >= self.choose_at.0 || is_empty(self.favourite) {
            self.choose_at = now + Micros::from_ms(2_000 + self.rng.below(4_000) as i64);
            let draw = self.rng.unit_f32();
            self.favourite = match foe.map(|foe| foe.body.origin.distance(own.origin)) {
                Some(away_units) if away_units < 350.0 && draw < 0.7 => WeaponId::Shotgun,
                None if draw < 0.35 => WeaponId::Shotgun,
                Some(away_units) if away_units < 200.0 => WeaponId::Pistol,
                _ if draw > 0.7 => WeaponId::Launcher,
                _ => WeaponId::Pistol,
            };
            let has_rounds = WeaponId::ALL.into_iter().find(|weapon| !is_empty(*weapon));
            if let Some(other) = has_rounds.filter(|_| is_empty(self.favourite)) {
                self.favourite = other;
            }
            self.aim_height = if self.rng.chance(0.3) { 26.0 } else { 6.0 };
        }
        if self.favourite == own.next_weapon || now.0 < self.ask_again_at.0 {
            return 0;
        }
        // Long enough for the server's answer when weapons are not predicted.
        self.ask_again_at = now + Micros::from_ms(400);
        self.favourite.impulse()
    }
}

impl Bots for Arena {
    type Bot = ArenaBot;

    const MAPS: &'static [(&'static str, &'static str)] = BUILT_IN;

    fn bot(rules: &ArenaRules, seed: Seed, player: PlayerId) -> ArenaBot {
        ArenaBot::new(seed, player, &Arc::new(RouteGraph::new(rules)))
    }

    fn bots(rules: &ArenaRules, seed: Seed, players: u16) -> Vec<ArenaBot> {
        ArenaBot::crew(seed, players, rules)
    }

    fn think(
        bot: &mut ArenaBot,
        rules: &ArenaRules,
        own: Option<&ArenaBody>,
        others: &[(EntityId, PlacedBody<ArenaBody>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        let Some(own) = own else { return Input { msec, ..Input::default() } };
        let drawn: Vec<(EntityId, ArenaBody)> = others.iter().map(|(id, placed)| (*id, placed.body)).collect();
        bot.think(rules, own, own.eye(), &drawn, now, msec)
    }
}

/// Returns the point to aim at: the body as drawn, or the predicted position of the feet for a rocket.
fn aim_point(rules: &ArenaRules, own: &ArenaBody, foe: &Foe, height_units: f32) -> Vec3 {
    let body = &foe.body;
    if let Muzzle::Rocket { speed_units_s, .. } = rules.weapon(own.weapon).shot {
        let flight_s = body.origin.distance(own.origin) / speed_units_s.max(1.0);
        let feet = Vec3::Z * (4.0 - body.hull().half_extent_units().z);
        return body.origin + feet + body.velocity * Vec3::new(1.0, 1.0, 0.0) * flight_s;
    }
    let scale = body.hull().half_extent_units().z / 36.0;
    body.origin + Vec3::Z * height_units * scale
}

/// A player to fight.
#[derive(Clone, Copy, Debug)]
struct Foe {
    id: EntityId,
    /// The body as last seen.
    body: ArenaBody,
    in_sight: bool,
    last_seen: Micros,
    noticed_at: Micros,
}

/// Returns whether the map leaves the line to the player's eye or middle free.
fn sees(rules: &ArenaRules, eye: Vec3, body: &ArenaBody) -> bool {
    rules.map.is_clear(eye, body.eye()) || rules.map.is_clear(eye, body.origin)
}

/// A hand on a mouse: it reacts late, lags behind its target, trembles, and turns in the steps of the wire format.
#[derive(Clone, Debug)]
struct BotAim {
    /// How quickly it approaches its target, per second.
    gain: f32,
    /// The standard deviation of its tremble, in degrees.
    tremble_deg: f32,
    /// The share by which a flick may fall short or overshoot.
    flick_error: f32,
    /// Pitch and yaw in degrees, before rounding to the steps of the wire format.
    view: Vec2,
    tremble: Vec2,
    flick_gain: f32,
    flicks: bool,
}

impl BotAim {
    fn new(rng: &mut Rng) -> BotAim {
        BotAim {
            gain: 9.0 + 7.0 * rng.unit_f32(),
            tremble_deg: 0.5 + 0.9 * rng.unit_f32(),
            flick_error: 0.1 + 0.2 * rng.unit_f32(),
            view: Vec2::ZERO,
            tremble: Vec2::ZERO,
            flick_gain: 1.0,
            flicks: false,
        }
    }

    /// Turns towards `wanted` and returns the remaining error in degrees.
    fn turn(&mut self, wanted: Vec2, aims: bool, msec: u8, rng: &mut Rng) -> f32 {
        let dt = f32::from(msec) / 1_000.0;
        let mut error = wanted - self.view;
        error.y = short_way(error.y);
        if aims {
            // A random walk that returns to zero (Ornstein and Uhlenbeck 1930).
            let keep = libm::expf(-dt / TREMBLE_S);
            let push = self.tremble_deg * libm::sqrtf(1.0 - keep * keep);
            let noise = Vec2::new(rng.normal_f64() as f32, rng.normal_f64() as f32);
            self.tremble = self.tremble * keep + noise * push;
            error += self.tremble;
        } else if error.length() < CONTENT_DEG {
            return error.length();
        }
        let away = error.length();
        if away > FLICK_FROM_DEG && !self.flicks {
            self.flick_gain = 1.6 + self.flick_error * rng.normal_f64() as f32;
        }
        self.flicks = away > FLICK_FROM_DEG;
        let gain = self.gain * if self.flicks { self.flick_gain.max(0.5) } else { 1.0 };
        let share = 1.0 - libm::expf(-gain * dt);
        let step = (error * share).clamp_length_max(FASTEST_DEG_S * dt);
        self.view.x = (self.view.x + step.x).clamp(-STEEPEST_DEG, STEEPEST_DEG);
        self.view.y = short_way(self.view.y + step.y);
        (error - step).length()
    }

    /// Returns the view in steps of 1/65,536 of a turn, as in Half-Life's wire format.
    fn viewangles(&self) -> Vec3 {
        Vec3::new(on_the_wire(self.view.x), on_the_wire(self.view.y), 0.0)
    }
}

fn on_the_wire(degrees: f32) -> f32 {
    let steps = libm::roundf(degrees * (65_536.0 / 360.0)) as i32;
    f32::from(steps as i16) * (360.0 / 65_536.0)
}

/// Returns the same turn as an angle from -180 to 180 degrees.
fn short_way(degrees: f32) -> f32 {
    degrees - 360.0 * libm::roundf(degrees / 360.0)
}

/// The movement in one usercmd.
#[derive(Clone, Copy, Debug, Default)]
struct Stride {
    /// The horizontal direction; zero to stand still.
    direction: Vec3,
    buttons: u16,
}

/// A bot's movement: along routes when it searches, to and fro when it fights, and into cover when it is hurt.
#[derive(Clone, Debug, Default)]
struct BotPath {
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
    fn forget(&mut self) {
        self.path.clear();
        self.done = 0;
    }

    /// Returns whether the bot follows a path.
    fn is_under_way(&self) -> bool {
        self.done < self.path.len()
    }

    /// Returns the next stop on the path.
    fn next_stop(&self) -> Option<Vec3> {
        self.path.get(self.done).map(|way| way.walk_to)
    }

    /// Starts a path to a place.
    fn set_out(&mut self, rules: &ArenaRules, routes: &RouteGraph, from: Vec3, place: usize) {
        let start = routes.nearest(&rules.map, from, self.given_up);
        self.path = routes.path(start, place);
        let first = RouteEdge { to: start, walk_to: routes.places()[start], ducked: false, time_ms: 0 };
        self.path.insert(0, first);
        self.done = 0;
        self.times_stuck = 0;
        self.since = None;
    }

    /// Follows the path.
    fn follow(&mut self, own: &ArenaBody, now: Micros) -> Stride {
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
    fn dance(
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
    fn take_cover(&mut self, rules: &ArenaRules, routes: &RouteGraph, own: Vec3, foe_eye: Vec3) {
        let hides = |place: &Vec3| !rules.map.is_clear(foe_eye, *place);
        let away = |place: &Vec3| place.distance(own);
        let hidden = routes.places().iter().enumerate().filter(|(_, place)| hides(place));
        if let Some((place, _)) = hidden.min_by(|(_, a), (_, b)| away(a).total_cmp(&away(b))) {
            self.set_out(rules, routes, own, place);
        }
    }
}

/// Returns forward and side speed in units/s, as movement keys give them: the nearest of eight directions.
fn on_keys(direction: Vec3, yaw_deg: f32) -> (f32, f32) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_reaches_its_target_in_human_time() {
        let mut rng = Rng::new(Seed(1), 1);
        let mut hand = BotAim::new(&mut rng);
        let wanted = Vec2::new(-5.0, 90.0);
        let after = |hand: &mut BotAim, ms: u32, rng: &mut Rng| {
            (0..ms / 10).map(|_| hand.turn(wanted, true, 10, rng)).last().unwrap_or_default()
        };
        assert!(after(&mut hand, 50, &mut rng) > 20.0, "nobody turns that fast");
        assert!(after(&mut hand, 700, &mut rng) < 6.0);
        let mut exact = 0;
        for _ in 0..200 {
            hand.turn(wanted, true, 10, &mut rng);
            exact += u32::from((Vec2::new(hand.view.x, hand.view.y) - wanted).length() < 0.05);
        }
        assert!(exact < 60, "a hand trembles");
    }

    #[test]
    fn views_are_steps_of_the_wire() {
        for degrees in [0.0, 17.3, -89.0, 179.999, -180.0] {
            let steps = on_the_wire(degrees) * (65_536.0 / 360.0);
            assert!((steps - libm::roundf(steps)).abs() < 1e-3, "{degrees}");
            assert!(short_way(on_the_wire(degrees) - degrees).abs() < 0.004);
        }
    }
}
