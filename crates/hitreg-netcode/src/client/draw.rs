//! The ways of drawing the others (Bernier 2001, "Display of Targets"): the last snapshot, its extrapolation, the last
//! two snapshots, or the position history.

use crate::game::{Game, PlacedBody, PlacementKind};
use crate::history::{Frame, History, PlacementLimits, between, beyond};
use hitreg_log::units::{EntityId, Micros};

pub(super) struct OthersDrawer<'a, G: Game> {
    pub(super) rules: &'a G::Rules,
    pub(super) history: &'a History<G::Body>,
    pub(super) limits: &'a PlacementLimits,
    pub(super) max_extrapolation: Micros,
    pub(super) latency: Micros,
    pub(super) but: EntityId,
}

pub(super) fn last<G: Game>(others: &OthersDrawer<'_, G>, out: &mut Vec<(EntityId, PlacedBody<G::Body>)>) {
    let Some(frame) = others.history.newest() else { return };
    let held = |(id, body): &(EntityId, G::Body)| (*id, PlacedBody::new(body.clone(), PlacementKind::Held));
    out.extend(seen(frame, others.but).map(held));
}

/// Extrapolates the last snapshot to the estimated present of the server: by its age on the client's clock plus the
/// latency.
pub(super) fn extrapolated<G: Game>(
    others: &OthersDrawer<'_, G>,
    at: Micros,
    out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
) {
    let Some(frame) = others.history.newest() else { return };
    let limits = PlacementLimits { extrapolate_max: Some(others.max_extrapolation), ..*others.limits };
    let place = |(id, body): &(EntityId, G::Body)| {
        (*id, beyond::<G>(others.rules, frame.server_time, body, at + others.latency, &limits))
    };
    out.extend(seen(frame, others.but).map(place));
}

/// Interpolates between the last two snapshots only, always moving towards the last.
pub(super) fn two_point<G: Game>(
    others: &OthersDrawer<'_, G>,
    at: Micros,
    out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
) {
    let Some(newest) = others.history.newest() else { return };
    let before = others.history.before_newest();
    let place = |(id, body): &(EntityId, G::Body)| {
        let placed = if at >= newest.server_time {
            beyond::<G>(others.rules, newest.server_time, body, at, others.limits)
        } else {
            let known = before.and_then(|f| f.get(*id).map(|b| (f.server_time, b)));
            between::<G>(known, (newest.server_time, body), at, others.limits)
        };
        (*id, placed)
    };
    out.extend(seen(newest, others.but).map(place));
}

fn seen<B>(frame: &Frame<B>, but: EntityId) -> impl Iterator<Item = &(EntityId, B)> {
    frame.entities.iter().filter(move |(id, _)| *id != but)
}
