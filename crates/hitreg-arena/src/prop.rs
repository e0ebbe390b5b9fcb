//! The props of a map: trees, apples, bells and the walker. The seed decides when they act.
//!
//! An apple hangs, falls when the seed decides, lies for a while, and hangs again. A bell rings when the seed decides; the
//! position in its sound then follows from the start time alone.
//!
//! The walker is an AI with few decisions (a target post, and when to leave), from which every step follows. Its place
//! depends only on the last decision and the time since it took effect. A client that knows these can compute the rest.

use std::ops::Range;

use glam::Vec3;

use crate::body::{ArenaBody, BodyKind, Decision};
use crate::game::ArenaEffect;
use crate::rules::ArenaRules;
use crate::shot::yaw_of;
use crate::solid::{Solid, SolidHull};
use crate::state::ArenaWorld;
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros, Seed};
use hitreg_netcode::game::WorldSink;

/// Separates the random streams of props from those of usercmds, respawns and bots.
const PROP_STREAM: u64 = 3 << 62;

/// How long an apple hangs before it falls, in µs.
const APPLE_HANGS_US: Range<u32> = 1_000_000..5_000_000;

/// How long an apple lies on the ground, in µs.
const APPLE_LIES_US: u32 = 1_500_000;

/// How long a bell is silent between ringings, in µs.
const BELL_SILENT_US: Range<u32> = 1_000_000..3_000_000;

/// The walker's speed in units/s.
const WALKER_UNITS_S: f32 = 140.0;

/// The walker's pause at a post before a decision, in µs.
const WALKER_STANDS_US: Range<u32> = 100_000..700_000;

/// The time from a walker's decision to its effect, in µs. It is long enough for every client to receive the decision.
const WALKER_AHEAD_US: i32 = 750_000;

/// The longest fall that is computed.
const FALL_TIME_MAX: Micros = Micros::from_s(10);

/// The server-only state of a prop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PropState {
    /// The time until its next action, in µs.
    pub(crate) wait_us: u32,
    /// The number of random draws so far.
    pub(crate) turn: u32,
}

/// One prop of a world.
struct Prop<'a> {
    rules: &'a ArenaRules,
    seed: Seed,
    id: EntityId,
    body: &'a mut ArenaBody,
    state: &'a mut PropState,
}

/// Adds the map's props to a world that holds only players: trees, apples, bells and the walker.
pub(crate) fn place(rules: &ArenaRules, world: &mut ArenaWorld) {
    let props = rules.map.props();
    let bells = props.bells.iter().map(|bell| (BodyKind::Bell, bell.origin));
    let walker = props.posts.first().filter(|_| props.posts.len() > 1).map(|post| (BodyKind::Walker, *post));
    let all = (props.trees.iter().map(|at| (BodyKind::Tree, *at)))
        .chain(props.apples.iter().map(|at| (BodyKind::Apple, *at)))
        .chain(bells)
        .chain(walker);
    for (kind, at) in all {
        // There are far fewer players and props than ids.
        let id = EntityId(world.entities.len() as u16);
        let origin = Vec3::from_array(at);
        let mut body = ArenaBody { kind, origin, alive: true, ..ArenaBody::default() };
        let mut state = PropState::default();
        let mut prop = Prop { rules, seed: world.seed, id, body: &mut body, state: &mut state };
        match kind {
            BodyKind::Apple => prop.hang(origin),
            BodyKind::Bell => prop.fall_silent(),
            BodyKind::Walker => body = carry_out(rules, &body, Micros::ZERO),
            BodyKind::Tree | BodyKind::Player | BodyKind::Rocket | BodyKind::Arrow => {}
        }
        world.entities.push((id, body));
        world.props.push(state);
    }
}

/// Advances all props by one tick.
pub(crate) fn step(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let first = usize::from(world.players);
    let twigs = rules.map.props().apples.iter();
    let mut twigs = twigs.map(|twig| Vec3::from_array(*twig));
    for (state, (id, body)) in world.props.iter_mut().zip(&mut world.entities[first..]) {
        let mut prop = Prop { rules, seed: world.seed, id: *id, body, state };
        match prop.body.kind {
            BodyKind::Apple => {
                let twig = twigs.next().unwrap_or(prop.body.origin);
                prop.step_apple(twig, dt);
            }
            BodyKind::Bell => prop.step_bell(dt, out),
            BodyKind::Walker => prop.step_walker(dt),
            BodyKind::Tree | BodyKind::Player | BodyKind::Rocket | BodyKind::Arrow => {}
        }
    }
}

impl Prop<'_> {
    /// Draws a number from a non-empty range.
    fn draw(&mut self, range: Range<u32>) -> u32 {
        let stream = PROP_STREAM | (u64::from(self.id.0) << 32) | u64::from(self.state.turn);
        self.state.turn = self.state.turn.wrapping_add(1);
        range.start + Rng::new(self.seed, stream).below(u64::from(range.end - range.start)) as u32
    }

    /// Advances the wait, and returns whether it is over.
    fn wait_is_over(&mut self, dt: Micros) -> bool {
        self.state.wait_us = self.state.wait_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        self.state.wait_us == 0
    }

    fn hang(&mut self, twig: Vec3) {
        *self.body = ArenaBody { origin: twig, velocity: Vec3::ZERO, on_ground: false, ..*self.body };
        self.state.wait_us = self.draw(APPLE_HANGS_US);
    }

    fn step_apple(&mut self, twig: Vec3, dt: Micros) {
        if is_falling(self.body) {
            *self.body = fall(self.rules, SolidHull::Point, self.body, dt);
            if self.body.on_ground {
                self.state.wait_us = APPLE_LIES_US;
            }
        } else if self.wait_is_over(dt) {
            if self.body.on_ground {
                self.body.teleports = self.body.teleports.wrapping_add(1);
                self.hang(twig);
            } else {
                *self.body = fall(self.rules, SolidHull::Point, self.body, dt);
            }
        }
    }

    fn fall_silent(&mut self) {
        self.body.event_in_us = -bell_length_us(self.rules, self.body);
        self.state.wait_us = self.draw(BELL_SILENT_US);
    }

    fn step_bell(&mut self, dt: Micros, out: &mut impl WorldSink) {
        let over = -bell_length_us(self.rules, self.body);
        if self.body.event_in_us > over {
            *self.body = play_bell(self.rules, self.body, dt);
            if self.body.event_in_us == over {
                self.fall_silent();
            }
        } else if self.wait_is_over(dt) {
            self.body.event_in_us = 0;
            self.body.teleports = self.body.teleports.wrapping_add(1);
            out.effect(ArenaEffect::Bell.by(self.id, self.body.origin));
        }
    }

    fn step_walker(&mut self, dt: Micros) {
        *self.body = carry_out(self.rules, self.body, dt);
        let has_arrived = self.body.event_in_us <= 0 && self.body.velocity == Vec3::ZERO;
        if has_arrived && self.wait_is_over(dt) {
            let posts = self.rules.map.props().posts.len() as u32;
            let from = self.body.decision.to;
            let onward = self.draw(1..posts.max(2));
            let to = ((u32::from(from) + onward) % posts.max(1)) as u8;
            self.body.decision = Decision { from, to };
            self.body.event_in_us = WALKER_AHEAD_US;
            self.state.wait_us = self.draw(WALKER_STANDS_US);
        }
    }
}

/// Returns the apple after `dt` of physics alone.
pub(crate) fn simulate_apple(rules: &ArenaRules, apple: &ArenaBody, dt: Micros) -> ArenaBody {
    if is_falling(apple) { fall(rules, SolidHull::Point, apple, dt) } else { *apple }
}

fn is_falling(apple: &ArenaBody) -> bool {
    !apple.on_ground && apple.velocity != Vec3::ZERO
}

/// Moves a body along its parabola until something blocks it; there it lies. The result does not depend on the step
/// size.
pub(crate) fn fall(rules: &ArenaRules, hull: SolidHull, body: &ArenaBody, dt: Micros) -> ArenaBody {
    let dt_s = dt.min(FALL_TIME_MAX).as_s_f64() as f32;
    let gained = Vec3::NEG_Z * rules.movement.gravity * dt_s;
    let to = body.origin + (body.velocity + gained * 0.5) * dt_s;
    let way = rules.map.solid().sweep(hull, body.origin, to);
    if way.fraction < 1.0 {
        return ArenaBody { origin: way.end, velocity: Vec3::ZERO, on_ground: true, ..*body };
    }
    ArenaBody { origin: to, velocity: body.velocity + gained, ..*body }
}

/// Returns the bell with its sound advanced by `dt`, up to its end.
pub(crate) fn play_bell(rules: &ArenaRules, bell: &ArenaBody, dt: Micros) -> ArenaBody {
    let on_us = i32::try_from(dt.0).unwrap_or(i32::MAX);
    ArenaBody { event_in_us: bell.event_in_us.saturating_sub(on_us).max(-bell_length_us(rules, bell)), ..*bell }
}

/// Returns the length of a bell's sound in µs.
fn bell_length_us(rules: &ArenaRules, bell: &ArenaBody) -> i32 {
    let origin = bell.origin.to_array();
    let place = rules.map.props().bells.iter().find(|place| place.origin == origin);
    place.map_or(0, |place| i32::from(place.length_ms) * 1_000)
}

/// Returns the walker after `dt`, if it makes no further decision.
pub(crate) fn carry_out(rules: &ArenaRules, walker: &ArenaBody, dt: Micros) -> ArenaBody {
    let in_us = (i64::from(walker.event_in_us).saturating_sub(dt.0)).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    let gone_units = (in_us < 0).then(|| WALKER_UNITS_S * Micros(-in_us).as_s_f64() as f32);
    let round: Vec<Vec3> = rules.map.props().posts.iter().map(|post| Vec3::from_array(*post)).collect();
    let Some((origin, velocity, facing)) = along(&round, walker.decision, gone_units) else { return *walker };
    let viewangles = Vec3::new(0.0, yaw_of(facing), 0.0);
    ArenaBody { origin, velocity, viewangles, on_ground: true, event_in_us: in_us as i32, ..*walker }
}

/// Returns a walker's place along the way, its velocity, and where it looks; the start of the way before it sets out.
/// Returns `None` for posts that do not exist.
fn along(round: &[Vec3], decision: Decision, gone_units: Option<f32>) -> Option<(Vec3, Vec3, Vec3)> {
    let [from, to] = [decision.from, decision.to].map(usize::from);
    if from >= round.len() || to >= round.len() {
        return None;
    }
    let way_from = |post: usize| round[(post + 1) % round.len()] - round[post];
    let mut post = from;
    if let Some(mut left_units) = gone_units {
        while post != to {
            let way = way_from(post);
            let length = way.length();
            if left_units < length {
                let forward = way / length;
                return Some((round[post] + forward * left_units, forward * WALKER_UNITS_S, way));
            }
            left_units -= length;
            post = (post + 1) % round.len();
        }
    }
    // At a post, the walker looks along the round.
    Some((round[post], Vec3::ZERO, way_from(post)))
}
