//! Falling.

use glam::Vec3;

use super::body::ArenaBody;
use super::rules::ArenaRules;
use super::solid::{Solid, SolidHull};
use hitreg_log::units::Micros;

/// The longest fall that is computed.
const LONGEST: Micros = Micros::from_s(10);

/// Moves a body along its parabola until something blocks it; there it lies. The result does not depend on the step
/// size.
pub(crate) fn fall(rules: &ArenaRules, hull: SolidHull, body: &ArenaBody, dt: Micros) -> ArenaBody {
    let dt_s = dt.min(LONGEST).as_s_f64() as f32;
    let gained = Vec3::NEG_Z * rules.movement.gravity * dt_s;
    let to = body.origin + (body.velocity + gained * 0.5) * dt_s;
    let way = rules.map.solid().sweep(hull, body.origin, to);
    if way.fraction < 1.0 {
        return ArenaBody { origin: way.end, velocity: Vec3::ZERO, on_ground: true, ..*body };
    }
    ArenaBody { origin: to, velocity: body.velocity + gained, ..*body }
}
