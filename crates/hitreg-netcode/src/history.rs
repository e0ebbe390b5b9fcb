//! The bounded past of a session. The server keeps the frames that each client has once its snapshot arrives; a client
//! keeps the frames that it received. Both place bodies at a past time with the same function, the server by the frames
//! up to the newest that the client acked. When no snapshot is lost, it therefore judges a shot against exactly the view
//! that the client drew.
//!
//! Nothing is rewound in place: each past is a new, immutable list of bodies.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::game::{Body, Game, PlacedBody, PlacementKind};
use crate::settings::{OnMissing, Settings};
use hitreg_log::units::{EntityId, Micros, Tick};

/// The least number of frames kept per client: Half-Life's `SV_UPDATE_BACKUP`, QuakeWorld's `UPDATE_BACKUP`.
pub const FRAMES_KEPT: usize = 64;
/// At high update rates, the frames of this time are kept. It covers the bounds of `lag_compensation.max_unlag_ms` and of
/// `interpolation.lerp_ms`, with room for jitter.
const TIME_KEPT: Micros = Micros::from_s(2);
/// The most frames kept per client, at any rate.
pub(crate) const FRAMES_MAX: usize = 2048;

/// The entities after one tick, as a snapshot of that tick carries them.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<B> {
    /// The tick.
    pub tick: Tick,
    /// The server time after the tick.
    pub server_time: Micros,
    /// The entities in ascending order of id.
    pub entities: Vec<(EntityId, B)>,
}

impl<B> Frame<B> {
    /// Returns the body of one entity.
    #[inline]
    pub fn get(&self, entity: EntityId) -> Option<&B> {
        // Players are numbered from 0 and come first, so an entity's index usually equals its id.
        if let Some((id, body)) = self.entities.get(usize::from(entity.0))
            && *id == entity
        {
            return Some(body);
        }
        body_of(&self.entities, entity)
    }
}

/// Returns the body of one entity among entities in ascending order of id.
pub(crate) fn body_of<B>(entities: &[(EntityId, B)], entity: EntityId) -> Option<&B> {
    let index = entities.binary_search_by_key(&entity, |(id, _)| *id).ok()?;
    Some(&entities[index].1)
}

/// The last frames, in ascending order of server time.
#[derive(Clone, Debug)]
pub struct History<B> {
    frames: VecDeque<Arc<Frame<B>>>,
}

impl<B> Default for History<B> {
    fn default() -> History<B> {
        History { frames: VecDeque::with_capacity(FRAMES_KEPT) }
    }
}

impl<B> History<B> {
    /// Returns all frames, oldest first.
    pub(crate) fn frames(&self) -> &VecDeque<Arc<Frame<B>>> {
        &self.frames
    }

    /// Creates a history from frames; `None` when there are too many, or when they are not in order.
    pub(crate) fn of(frames: VecDeque<Arc<Frame<B>>>) -> Option<History<B>> {
        let in_order = frames.iter().is_sorted_by(|a, b| a.server_time < b.server_time);
        (in_order && frames.len() <= FRAMES_MAX).then_some(History { frames })
    }
}

impl<B: Clone> History<B> {
    /// Adds a frame. A frame older than the newest (from a reordered snapshot) is inserted at its place. A frame that
    /// is already there is ignored. Of frames with one server time, only the one with the highest tick stays: in
    /// QuakeWorld demos, server times are arrival times, and several packets arrive in one client frame.
    pub fn push(&mut self, frame: Arc<Frame<B>>) {
        // Most frames are the newest.
        let newer = self.frames.iter().rev().take_while(|f| f.server_time >= frame.server_time).count();
        let index = self.frames.len() - newer;
        match self.frames.get_mut(index).filter(|f| f.server_time == frame.server_time) {
            Some(known) if frame.tick <= known.tick => {}
            Some(known) => *known = frame,
            None => self.frames.insert(index, frame),
        }
        while self.has_spare_frame() {
            self.frames.pop_front();
        }
    }

    /// Drops the frames that no time from `at` on needs.
    pub(crate) fn forget_before(&mut self, at: Micros) {
        while self.frames.get(1).is_some_and(|frame| frame.server_time <= at) {
            self.frames.pop_front();
        }
    }

    /// Returns whether the oldest frame is not needed any more.
    fn has_spare_frame(&self) -> bool {
        let (Some(oldest), Some(newest)) = (self.frames.front(), self.frames.back()) else { return false };
        let is_old = newest.server_time - oldest.server_time > TIME_KEPT;
        self.frames.len() > FRAMES_MAX || self.frames.len() > FRAMES_KEPT && is_old
    }

    /// Returns the newest frame.
    pub fn newest(&self) -> Option<&Arc<Frame<B>>> {
        self.frames.back()
    }

    /// Returns the frame before the newest.
    pub fn before_newest(&self) -> Option<&Arc<Frame<B>>> {
        self.frames.len().checked_sub(2).map(|i| &self.frames[i])
    }

    /// Returns the oldest frame.
    pub fn oldest(&self) -> Option<&Arc<Frame<B>>> {
        self.frames.front()
    }

    /// Returns the frames around a time: the last at or before it, and the first after it.
    pub fn around(&self, at: Micros) -> (Option<&Frame<B>>, Option<&Frame<B>>) {
        // Counts from the newest, because most lookups are among the last few frames.
        let newer = self.frames.iter().rev().take_while(|f| f.server_time > at).count();
        let after = self.frames.len() - newer;
        (after.checked_sub(1).map(|i| &*self.frames[i]), self.frames.get(after).map(|f| &**f))
    }

    /// Places every entity except `but` at time `at`, interpolated between the two frames around it, in ascending order
    /// of id. The entities are those of the newer frame, or of the newest frame when `at` is later.
    pub fn place_all<G: Game<Body = B>>(
        &self,
        rules: &G::Rules,
        at: Micros,
        but: EntityId,
        limits: &PlacementLimits,
        out: &mut Vec<(EntityId, PlacedBody<B>)>,
    ) {
        self.place_known::<G>(rules, at, Micros(i64::MAX), but, limits, out);
    }

    /// Like [`History::place_all`], by the frames up to `newest`.
    pub(crate) fn place_known<G: Game<Body = B>>(
        &self,
        rules: &G::Rules,
        at: Micros,
        newest: Micros,
        but: EntityId,
        limits: &PlacementLimits,
        out: &mut Vec<(EntityId, PlacedBody<B>)>,
    ) {
        // The oldest frame is always among the known ones.
        let newest = self.oldest().map_or(newest, |oldest| newest.max(oldest.server_time));
        let (before, after) = self.around(at.min(newest));
        let after = after.filter(|frame| frame.server_time <= newest);
        let Some(shown) = after.or(before) else { return };
        // The entities before and after the one that is left out.
        let own = shown.entities.iter().position(|(id, _)| *id == but);
        let (low, high) = shown.entities.split_at(own.unwrap_or(shown.entities.len()));
        for run in [low, high.get(1..).unwrap_or(&[])] {
            let others = run.iter();
            match (before, after) {
                (Some(before), Some(after)) => {
                    let fraction = fraction_of_way(before.server_time, after.server_time, at);
                    out.extend(others.map(|(id, body)| (*id, between::<G>(before.get(*id), body, fraction, limits))));
                }
                (Some(last), None) => {
                    out.extend(others.map(|(id, body)| (*id, beyond::<G>(rules, last.server_time, body, at, limits))));
                }
                // The time is before the oldest known state, so that state is used.
                (None, _) => {
                    out.extend(others.map(|(id, body)| (*id, PlacedBody::new(body.clone(), PlacementKind::Held))));
                }
            }
        }
    }
}

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

/// Returns how much of the time from `before` to `after` is over at `at`, from 0 to 1.
pub(crate) fn fraction_of_way(before: Micros, after: Micros, at: Micros) -> f32 {
    ((at - before).0 as f32 / (after - before).0 as f32).clamp(0.0, 1.0)
}

/// Places a body at a fraction of the way between two states. A body that is new, or was teleported in between, is
/// placed at the newer state. Bernier (2001) says to "just move the object to the latest known position and start
/// interpolating from there".
#[inline]
pub(crate) fn between<G: Game>(
    before: Option<&G::Body>,
    after: &G::Body,
    fraction: f32,
    limits: &PlacementLimits,
) -> PlacedBody<G::Body> {
    match before.filter(|before| !is_teleport(*before, after, limits)) {
        Some(before) => PlacedBody::new(G::blend(before, after, fraction), PlacementKind::Interpolated),
        None => PlacedBody::new(after.clone(), PlacementKind::Teleported),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_has_few_frames_and_in_order() {
        let frame = |at| Arc::new(Frame::<u8> { tick: Tick(0), server_time: Micros(at), entities: Vec::new() });
        let of = |times: &mut dyn Iterator<Item = i64>| History::of(times.map(frame).collect()).is_some();
        let most = FRAMES_MAX as i64;
        assert!(of(&mut (0..0)) && of(&mut (0..most)));
        assert!(!of(&mut (0..=most)), "too many");
        assert!(!of(&mut [1, 3, 2].into_iter()) && !of(&mut [1, 1].into_iter()), "not in order, or twice");
    }

    #[test]
    fn the_latest_of_several_frames_with_one_time_stays() {
        let frame = |tick, at| {
            let entities = vec![(EntityId(0), tick)];
            Arc::new(Frame { tick: Tick(tick), server_time: Micros(at), entities })
        };
        let mut history = History::<u32>::default();
        for (tick, at) in [(1, 10), (2, 10), (4, 30), (5, 30), (4, 30), (1, 10), (3, 20)] {
            history.push(frame(tick, at));
        }
        let kept: Vec<_> = history.frames().iter().map(|frame| frame.entities[0].1).collect();
        assert_eq!(kept, [2, 3, 5]);
        assert_eq!(history.newest().map(|frame| frame.tick), Some(Tick(5)));
        assert_eq!(history.before_newest().map(|frame| frame.tick), Some(Tick(3)));
        assert!(History::of(history.frames().clone()).is_some(), "a saved history can be restored");
    }

    /// At 20 frames/s, 64 frames are kept, which are 3.15 s; at 200 frames/s, those of two seconds.
    #[test]
    fn a_history_has_at_least_two_seconds_and_64_frames() {
        let kept = |hz: i64| {
            let mut history = History::<u8>::default();
            for n in 0..5_000 {
                let server_time = Micros(n * 1_000_000 / hz);
                history.push(Arc::new(Frame { tick: Tick(0), server_time, entities: Vec::new() }));
            }
            history.frames().len()
        };
        assert_eq!([20, 200, 1_000, 2_000].map(kept), [64, 401, 2_001, 2_048]);
    }
}
