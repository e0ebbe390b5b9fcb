//! The walker: an AI with few decisions (a target post, and when to leave), from which every step follows. Its place
//! depends only on the last decision and the time since it took effect. A client that knows these can compute the rest.

use glam::Vec3;

use super::body::{ArenaBody, Decision};
use super::fire::yaw_of;
use super::prop::{PropRandom, PropState};
use super::rules::ArenaRules;
use hitreg_log::units::Micros;

/// The walking speed in units/s.
const SPEED_UNITS_S: f32 = 140.0;

/// The pause at a post before a decision, in µs.
const STANDS_US: std::ops::Range<u32> = 100_000..700_000;

/// The time from a decision to its effect, in µs. It is long enough for every client to receive the decision.
const AHEAD_US: i32 = 750_000;

/// Advances the walker by one tick.
pub(crate) fn step(rules: &ArenaRules, body: &mut ArenaBody, state: &mut PropState, stream: PropRandom, dt: Micros) {
    *body = carry_out(rules, body, dt);
    let has_arrived = body.event_in_us <= 0 && body.velocity == Vec3::ZERO;
    if has_arrived && state.is_over(dt) {
        let posts = rules.map.props().posts.len() as u32;
        let from = body.decision.to;
        let onward = stream.draw(state, 1..posts.max(2));
        let to = ((u32::from(from) + onward) % posts.max(1)) as u8;
        body.decision = Decision { from, to };
        body.event_in_us = AHEAD_US;
        state.wait_us = stream.draw(state, STANDS_US);
    }
}

/// Returns the walker after `dt`, if it makes no further decision.
pub(crate) fn carry_out(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
    let in_us = (i64::from(body.event_in_us).saturating_sub(dt.0)).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    let gone_units = (in_us < 0).then(|| SPEED_UNITS_S * Micros(-in_us).as_s_f64() as f32);
    let round: Vec<Vec3> = rules.map.props().posts.iter().map(|post| Vec3::from_array(*post)).collect();
    let Some(place) = along(&round, body.decision, gone_units) else { return *body };
    ArenaBody {
        origin: place.origin,
        velocity: place.velocity,
        viewangles: Vec3::new(0.0, place.yaw_deg, 0.0),
        on_ground: true,
        event_in_us: in_us as i32,
        ..*body
    }
}

struct WalkerState {
    origin: Vec3,
    velocity: Vec3,
    yaw_deg: f32,
}

/// Returns its place along the way; the start of the way before it sets out. Returns `None` for posts that do not
/// exist.
fn along(round: &[Vec3], decision: Decision, gone_units: Option<f32>) -> Option<WalkerState> {
    let [from, to] = [decision.from, decision.to].map(usize::from);
    if from >= round.len() || to >= round.len() {
        return None;
    }
    let Some(mut left_units) = gone_units else { return Some(standing(round, from)) };
    let mut at = from;
    while at != to {
        let next = (at + 1) % round.len();
        let way = round[next] - round[at];
        let length = way.length();
        if left_units < length {
            let forward = way / length;
            let (origin, velocity) = (round[at] + forward * left_units, forward * SPEED_UNITS_S);
            return Some(WalkerState { origin, velocity, yaw_deg: yaw_of(way) });
        }
        left_units -= length;
        at = next;
    }
    Some(standing(round, to))
}

/// Returns its place when standing at a post, looking along the round.
fn standing(round: &[Vec3], post: usize) -> WalkerState {
    let way = round[(post + 1) % round.len()] - round[post];
    WalkerState { origin: round[post], velocity: Vec3::ZERO, yaw_deg: yaw_of(way) }
}
