//! The props of a map: trees, apples, bells and the walker. The seed decides when they act.

use glam::Vec3;

use super::body::{ArenaBody, BodyKind};
use super::rules::ArenaRules;
use super::state::ArenaWorld;
use super::{apple, bell, walker};
use hitreg_log::rng::Rng;
use hitreg_log::units::{EntityId, Micros, Seed};
use hitreg_netcode::game::WorldSink;

/// Separates the random streams of props from those of usercmds, respawns and bots.
const PROP_STREAM: u64 = 3 << 62;

/// The server-only state of a prop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PropState {
    /// The time until its next action, in µs.
    pub(crate) wait_us: u32,
    /// The number of random draws so far.
    pub(crate) turn: u32,
}

impl PropState {
    /// Advances the wait, and returns whether it is over.
    pub(crate) fn is_over(&mut self, dt: Micros) -> bool {
        self.wait_us = self.wait_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        self.wait_us == 0
    }
}

/// The random stream of one prop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PropRandom {
    seed: Seed,
    id: EntityId,
}

impl PropRandom {
    /// Draws a number from a non-empty range.
    pub(crate) fn draw(self, state: &mut PropState, range: std::ops::Range<u32>) -> u32 {
        let stream = PROP_STREAM | (u64::from(self.id.0) << 32) | u64::from(state.turn);
        state.turn = state.turn.wrapping_add(1);
        range.start + Rng::new(self.seed, stream).below(u64::from(range.end - range.start)) as u32
    }
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
        let stream = PropRandom { seed: world.seed, id };
        let origin = Vec3::from_array(at);
        let mut body = ArenaBody { kind, origin, alive: true, ..ArenaBody::default() };
        let mut state = PropState::default();
        match kind {
            BodyKind::Apple => apple::hang(origin, &mut body, &mut state, stream),
            BodyKind::Bell => bell::fall_silent(rules, &mut body, &mut state, stream),
            BodyKind::Walker => body = walker::carry_out(rules, &body, Micros::ZERO),
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
        let stream = PropRandom { seed: world.seed, id: *id };
        match body.kind {
            BodyKind::Apple => {
                let twig = twigs.next().unwrap_or(body.origin);
                apple::step(rules, twig, body, state, stream, dt);
            }
            BodyKind::Bell => bell::step(rules, *id, body, state, stream, dt, out),
            BodyKind::Walker => walker::step(rules, body, state, stream, dt),
            BodyKind::Tree | BodyKind::Player | BodyKind::Rocket | BodyKind::Arrow => {}
        }
    }
}
