//! Apples. An apple hangs, falls when the seed decides, lies for a while, and hangs again.

use glam::Vec3;

use super::body::ArenaBody;
use super::fall::fall;
use super::prop::{PropRandom, PropState};
use super::rules::ArenaRules;
use super::solid::SolidHull;
use hitreg_log::units::Micros;

/// How long an apple hangs before it falls, in µs.
const HANGS_US: std::ops::Range<u32> = 1_000_000..5_000_000;

/// How long an apple lies on the ground, in µs.
const LIES_US: u32 = 1_500_000;

pub(crate) fn hang(twig: Vec3, body: &mut ArenaBody, state: &mut PropState, stream: PropRandom) {
    *body = ArenaBody { origin: twig, velocity: Vec3::ZERO, on_ground: false, ..*body };
    state.wait_us = stream.draw(state, HANGS_US);
}

/// Advances an apple by one tick.
pub(crate) fn step(
    rules: &ArenaRules,
    twig: Vec3,
    body: &mut ArenaBody,
    state: &mut PropState,
    stream: PropRandom,
    dt: Micros,
) {
    if falls(body) {
        *body = fall(rules, SolidHull::Point, body, dt);
        if body.on_ground {
            state.wait_us = LIES_US;
        }
    } else if state.is_over(dt) {
        if body.on_ground {
            body.teleports = body.teleports.wrapping_add(1);
            hang(twig, body, state, stream);
        } else {
            *body = fall(rules, SolidHull::Point, body, dt);
        }
    }
}

/// Returns the apple after `dt` of physics alone.
pub(crate) fn simulate(rules: &ArenaRules, body: &ArenaBody, dt: Micros) -> ArenaBody {
    if falls(body) { fall(rules, SolidHull::Point, body, dt) } else { *body }
}

fn falls(body: &ArenaBody) -> bool {
    !body.on_ground && body.velocity != Vec3::ZERO
}
