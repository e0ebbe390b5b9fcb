//! One other player as one player received it, over a time without gaps.

use std::collections::VecDeque;

use super::Scores;
use crate::game::{Body, Game};
use crate::history::{PlacementLimits, between, beyond, is_teleport};
use crate::settings::Settings;
use hitreg_log::units::Micros;

/// A received state: its server time and body.
pub(super) type ReceivedState<B> = (Micros, B);

/// The states still to be left out, and the one before them. A state is left out when all states are there that had
/// arrived when it was drawn.
pub(super) struct SampleTrack<B>(VecDeque<ReceivedState<B>>);

/// The modes of drawing.
pub(super) struct DrawingModes<'a, G: Game> {
    rules: &'a G::Rules,
    limits: PlacementLimits,
    /// The limits for drawing the present.
    present: PlacementLimits,
    lerp: Micros,
}

impl<'a, G: Game> DrawingModes<'a, G> {
    pub(super) fn new(rules: &'a G::Rules, settings: &Settings) -> DrawingModes<'a, G> {
        let limits = PlacementLimits::of(settings);
        let present =
            PlacementLimits { extrapolate_max: Some(Micros::from_ms(settings.extrapolation.max_ms)), ..limits };
        DrawingModes { rules, limits, present, lerp: Micros::from_ms(settings.interpolation.lerp_ms) }
    }
}

impl<B> Default for SampleTrack<B> {
    fn default() -> Self {
        SampleTrack(VecDeque::new())
    }
}

impl<B: Body> SampleTrack<B> {
    pub(super) fn add<G: Game<Body = B>>(
        &mut self,
        sample: ReceivedState<B>,
        modes: &DrawingModes<'_, G>,
        scores: &mut Scores,
    ) {
        // A state of the same time takes the place of the last one, as in [`History::push`](crate::history::History).
        self.0.pop_back_if(|(at, _)| *at == sample.0);
        self.0.push_back(sample);
        while self.has_all(modes) {
            self.leave_out(modes, scores);
        }
    }

    /// Finishes the track; no more states follow.
    pub(super) fn end<G: Game<Body = B>>(mut self, modes: &DrawingModes<'_, G>, scores: &mut Scores) {
        while self.0.len() > 1 {
            self.leave_out(modes, scores);
        }
    }

    /// Returns whether the next state is there, and also one that had not arrived when it was drawn.
    fn has_all<G: Game<Body = B>>(&self, modes: &DrawingModes<'_, G>) -> bool {
        let Some((at, _)) = self.0.get(1) else { return false };
        self.0.iter().skip(2).any(|(later, _)| *later > *at + modes.lerp)
    }

    /// Draws the second state from the others, and drops the first.
    fn leave_out<G: Game<Body = B>>(&mut self, modes: &DrawingModes<'_, G>, scores: &mut Scores) {
        let DrawingModes { rules, limits, present, lerp } = modes;
        let samples = self.0.make_contiguous();
        let [(last_at, last), (at, truth), later @ ..] = samples else { return };
        if !is_teleport(last, truth, limits) && at > last_at {
            let come = later.iter().take_while(|(later, _)| *later <= *at + *lerp).count();
            let after = &later[..come];
            // Without a later state, interpolation has no target.
            let history = match after.first() {
                Some((t, next)) => between::<G>(Some((*last_at, last)), (*t, next), *at, limits),
                None => beyond::<G>(rules, *last_at, last, *at, limits),
            };
            let two_point = match after {
                [] => beyond::<G>(rules, *last_at, last, *at, limits),
                [(t, next)] => between::<G>(Some((*last_at, last)), (*t, next), *at, limits),
                // Two-point interpolation keeps only the last two states. Both are later, so the earlier of them is the
                // nearest.
                [.., (t0, before), (t, next)] => between::<G>(Some((*t0, before)), (*t, next), *at, limits),
            };
            let extrapolated = beyond::<G>(rules, *last_at, last, *at, present);
            let drawn = [&*last, &extrapolated.body, &two_point.body, &history.body];
            scores.samples += 1;
            for (errors, body) in scores.errors_units.iter_mut().zip(drawn) {
                errors.add(body.offset_from(truth).length());
            }
        }
        self.0.pop_front();
    }
}
