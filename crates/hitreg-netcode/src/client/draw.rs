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
    pub(super) but: EntityId,
}

/// Draws the last snapshot, unchanged.
pub(super) fn last<G: Game>(others: &OthersDrawer<'_, G>, out: &mut Vec<(EntityId, PlacedBody<G::Body>)>) {
    place_newest(others, out, |_, _, body| PlacedBody::new(body.clone(), PlacementKind::Held));
}

/// Extrapolates the last snapshot to `at`, the estimated present of the server.
pub(super) fn extrapolated<G: Game>(
    others: &OthersDrawer<'_, G>,
    at: Micros,
    out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
) {
    let limits = PlacementLimits { extrapolate_max: Some(others.max_extrapolation), ..*others.limits };
    place_newest(others, out, |frame, _, body| beyond::<G>(others.rules, frame.server_time, body, at, &limits));
}

/// Interpolates between the last two snapshots only, always moving towards the last.
pub(super) fn two_point<G: Game>(
    others: &OthersDrawer<'_, G>,
    at: Micros,
    out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
) {
    let before = others.history.before_newest();
    place_newest(others, out, |newest, id, body| {
        if at >= newest.server_time {
            return beyond::<G>(others.rules, newest.server_time, body, at, others.limits);
        }
        let known = before.and_then(|f| f.get(id).map(|b| (f.server_time, b)));
        between::<G>(known, (newest.server_time, body), at, others.limits)
    });
}

/// Places every entity of the last snapshot except the client's own, in ascending order of id.
fn place_newest<G: Game>(
    others: &OthersDrawer<'_, G>,
    out: &mut Vec<(EntityId, PlacedBody<G::Body>)>,
    place: impl Fn(&Frame<G::Body>, EntityId, &G::Body) -> PlacedBody<G::Body>,
) {
    let Some(frame) = others.history.newest() else { return };
    let seen = frame.entities.iter().filter(|(id, _)| *id != others.but);
    out.extend(seen.map(|(id, body)| (*id, place(frame, *id, body))));
}
