//! Bells. A bell rings when the seed decides. The position in its sound then follows from the start time alone.

use super::body::ArenaBody;
use super::effect::ArenaEffect;
use super::prop::{PropRandom, PropState};
use super::rules::ArenaRules;
use hitreg_log::units::{EntityId, Micros};
use hitreg_netcode::game::WorldSink;

/// How long a bell is silent between ringings, in µs.
const SILENT_US: std::ops::Range<u32> = 1_000_000..3_000_000;

pub(crate) fn fall_silent(rules: &ArenaRules, body: &mut ArenaBody, state: &mut PropState, stream: PropRandom) {
    body.event_in_us = -length_us(rules, body);
    state.wait_us = stream.draw(state, SILENT_US);
}

/// Advances a bell by one tick.
pub(crate) fn step(
    rules: &ArenaRules,
    id: EntityId,
    body: &mut ArenaBody,
    state: &mut PropState,
    stream: PropRandom,
    dt: Micros,
    out: &mut impl WorldSink,
) {
    let over = -length_us(rules, body);
    if body.event_in_us > over {
        *body = play(rules, body, dt);
        if body.event_in_us == over {
            fall_silent(rules, body, state, stream);
        }
    } else if state.is_over(dt) {
        body.event_in_us = 0;
        body.teleports = body.teleports.wrapping_add(1);
        out.effect(ArenaEffect::Bell.by(id, body.origin));
    }
}

/// Returns the bell with its sound advanced by `dt`, up to its end.
pub(crate) fn play(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
    let on_us = i32::try_from(dt.0).unwrap_or(i32::MAX);
    ArenaBody { event_in_us: body.event_in_us.saturating_sub(on_us).max(-length_us(rules, body)), ..*body }
}

/// Returns the length of a bell's sound in µs.
fn length_us(rules: &ArenaRules, body: &ArenaBody) -> i32 {
    let place = body.origin.to_array();
    let bell = rules.map.props().bells.iter().find(|bell| bell.origin == place);
    bell.map_or(0, |bell| i32::from(bell.length_ms) * 1_000)
}
