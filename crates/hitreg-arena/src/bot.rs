//! Bots: players driven by a seed. They see only what a client draws, and press only what a player could press.
//!
//! Bots search for each other along the map's waypoints, dodge, jump, duck, change weapons and take cover when hurt.
//! Their aim reacts late, lags and trembles. The same seed and the same views give the same inputs.

mod eyes;
mod hand;
mod legs;
mod player;
mod routes;

use std::sync::Arc;

use glam::{Vec2, Vec3};

use super::body::ArenaBody;
use super::fire::yaw_of;
use super::rules::ArenaRules;
use super::weapon::{Muzzle, WeaponId};
use eyes::{BotAttention, Foe};
use hand::BotAim;
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_log::usercmd::{Input, buttons};
use legs::{BotPath, Stride, on_keys};
pub use routes::RouteGraph;

/// Separates the random streams of bots from those of usercmds and respawns.
const BOT_STREAM: u64 = 1 << 62;

/// A bot with at most this much health takes cover, in points.
const HURT_HEALTH: i32 = 35;

/// The longest time that a bot stays in cover, in µs.
const COVER: Micros = Micros(2_500_000);

/// A bot fires when its line of aim passes a foe within this distance, in units.
const NEAR_ENOUGH_UNITS: f32 = 26.0;

/// One bot.
#[derive(Clone, Debug)]
pub struct ArenaBot {
    me: EntityId,
    rng: Rng,
    routes: Arc<RouteGraph>,
    eyes: BotAttention,
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
    /// Creates the bot of one player and computes the map's routes. To create several bots, use [`ArenaBot::crew`], which
    /// computes them once.
    pub fn new(seed: Seed, player: PlayerId, rules: &ArenaRules) -> ArenaBot {
        ArenaBot::on_routes(seed, player, &Arc::new(RouteGraph::new(rules)))
    }

    /// Creates a bot for each of `players` players.
    pub fn crew(seed: Seed, players: u16, rules: &ArenaRules) -> Vec<ArenaBot> {
        ArenaBot::crew_on(seed, players, &Arc::new(RouteGraph::new(rules)))
    }

    /// Like [`ArenaBot::crew`], with precomputed routes.
    pub fn crew_on(seed: Seed, players: u16, routes: &Arc<RouteGraph>) -> Vec<ArenaBot> {
        (0..players).map(|player| ArenaBot::on_routes(seed, PlayerId(player), routes)).collect()
    }

    fn on_routes(seed: Seed, player: PlayerId, routes: &Arc<RouteGraph>) -> ArenaBot {
        let mut rng = Rng::new(seed, BOT_STREAM | u64::from(player.0));
        ArenaBot {
            me: player.entity(),
            eyes: BotAttention::new(&mut rng),
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
        let foe = self.eyes.look(rules, self.me, eye, self.hand.viewangles(), others, now);
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

    fn begin_anew(&mut self, own: &ArenaBody, now: Micros) {
        self.life = Some(own.teleports);
        // Each life begins with the next weapon, so that a short session uses them all.
        self.favourite = WeaponId::ALL[(usize::from(self.me.0) + own.teleports as usize) % WeaponId::ALL.len()];
        self.choose_at = now + Micros::from_ms(4_000);
        self.hand.start_from(own.viewangles);
        self.legs.forget();
        self.eyes.forget();
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
            let best_units = best_distance(own.weapon);
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

/// Returns the best distance for a weapon, in units.
fn best_distance(weapon: WeaponId) -> f32 {
    match weapon {
        WeaponId::Pistol => 420.0,
        WeaponId::Shotgun => 160.0,
        WeaponId::Launcher => 380.0,
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
