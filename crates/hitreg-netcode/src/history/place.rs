//! The placement of one body for drawing or judging, from its states before and after a time.

use crate::game::{Body, Game, PlacedBody, PlacementKind};
use crate::settings::{OnMissing, Settings};
use hitreg_log::units::Micros;

/// The limits of placing bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementLimits {
    /// A body that moves farther than this between two states counts as teleported, in units.
    pub teleport_distance_units: f32,
    /// The longest extrapolation beyond the last known state; `None` holds the body at that state.
    pub extrapolate_max: Option<Micros>,
}

impl PlacementLimits {
    /// Returns the limits from the settings.
    pub fn of(settings: &Settings) -> PlacementLimits {
        let max = Micros::from_ms(settings.extrapolation.max_ms);
        PlacementLimits {
            teleport_distance_units: settings.teleport.distance_units as f32,
            extrapolate_max: (settings.interpolation.on_missing == OnMissing::Extrapolate).then_some(max),
        }
    }
}

/// Places a body between two states. A body that is new, or was teleported in between, is placed at the newer state.
/// Bernier (2001) says to "just move the object to the latest known position and start interpolating from there".
#[inline]
pub(crate) fn between<G: Game>(
    before: Option<(Micros, &G::Body)>,
    (after_at, after): (Micros, &G::Body),
    at: Micros,
    limits: &PlacementLimits,
) -> PlacedBody<G::Body> {
    let Some((before_at, before)) = before.filter(|(_, before)| !is_teleport(*before, after, limits)) else {
        return PlacedBody::new(after.clone(), PlacementKind::Teleported);
    };
    let fraction = (at - before_at).0 as f32 / (after_at - before_at).0 as f32;
    PlacedBody::new(G::blend(before, after, fraction.clamp(0.0, 1.0)), PlacementKind::Interpolated)
}

/// Places a body after its last known state.
pub(crate) fn beyond<G: Game>(
    rules: &G::Rules,
    last_at: Micros,
    last: &G::Body,
    at: Micros,
    limits: &PlacementLimits,
) -> PlacedBody<G::Body> {
    match limits.extrapolate_max {
        Some(max) if at > last_at => {
            let body = G::extrapolate(rules, last, (at - last_at).min(max));
            PlacedBody::new(body, PlacementKind::Extrapolated)
        }
        Some(_) | None => PlacedBody::new(last.clone(), PlacementKind::Held),
    }
}

/// Returns whether a body was teleported between two states: its teleport count changed, or it moved too far.
#[inline]
pub(crate) fn is_teleport<B: Body>(before: &B, after: &B, limits: &PlacementLimits) -> bool {
    before.teleports() != after.teleports()
        || before.offset_from(after).length_squared() > limits.teleport_distance_units.powi(2)
}
