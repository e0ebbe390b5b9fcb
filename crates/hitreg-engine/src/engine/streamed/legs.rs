//! Splits a log with keyframes into legs that are replayed independently. A leg starts from the state of a keyframe and
//! is compared with the later keyframes that it reaches. If all of them match, each leg starts where the one before it
//! ends.

use std::ops::Range;

use super::SurveyedLog;
use super::keyframes::KeyframeRef;
use crate::engine::{EngineError, Playable};
use hitreg_log::log::KeyframeQuery;
use hitreg_log::record::{Keyframe, SessionStretch};
use hitreg_log::store;
use hitreg_log::trace::schema::{TableSet, bodies, corrections, executed, frames, shots, ticks};
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{Part, ReplayError, ReplayFindings, ReplayOptions, ReplaySource, ReplayStart};

/// A part of a log from one keyframe to a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    /// The keyframe that the replay starts from; `None` for the beginning of the log.
    from: Option<usize>,
    /// The keyframes that the leg reaches.
    to: Range<usize>,
    /// The part whose rows the leg writes. The replay starts earlier, because its rows may depend on earlier records.
    part: Part,
}

impl Leg {
    /// The number of keyframes that the leg reaches.
    pub(crate) fn keyframes(&self) -> usize {
        self.to.len()
    }
}

/// The number of legs in a log with enough keyframes. They run at once, and each takes about 65 MB for its pipelines and
/// rows. Each also replays some time before its own part, so more legs cost more.
const LEGS: usize = 2;
/// The fewest keyframes of a leg.
const MIN_KEYFRAMES: usize = 4;
/// The tables that a log records itself, and the tables that show which features were exercised.
const TABLES: [&str; 6] = [ticks::NAME, bodies::NAME, executed::NAME, frames::NAME, corrections::NAME, shots::NAME];

impl SurveyedLog {
    /// The legs of the log, in order. Empty if it has no keyframes or they are out of order.
    pub(crate) fn legs(&self) -> Vec<Leg> {
        let in_order = |pair: &[KeyframeRef]| pair[0].tick < pair[1].tick && pair[0].at < pair[1].at;
        if self.keyframes.is_empty() || !self.keyframes.windows(2).all(in_order) {
            return Vec::new();
        }
        let last = self.survey.played().map_or(Micros::ZERO, |(_, last)| last);
        let keyframes: Vec<Micros> = self.keyframes.iter().map(|keyframe| keyframe.at).collect();
        legs(&keyframes, last, &|at| self.survey.needed_from(at))
    }

    /// Replays a leg while reading it, and returns the first tick whose recorded keyframe differs from the replayed
    /// state. Returns `None` if datagrams may have affected the outcome.
    ///
    /// # Errors
    /// Fails if the log cannot be read again, or if this build cannot continue from the leg's first keyframe.
    pub(crate) fn run_leg(
        &self,
        game: &dyn Playable,
        leg: &Leg,
        seen: &mut dyn FnMut(&SessionStretch),
        to: &mut dyn FnMut(&TraceHeader, Table),
    ) -> Result<Option<(ReplayFindings, Option<Tick>)>, EngineError> {
        let start = leg.from.map(|from| self.start_at(&self.keyframes[from])).transpose()?;
        let said = &self.keyframes[leg.to.clone()];
        let source = ReplaySource { start: start.as_ref(), ..self.source() };
        let (part, tables) = (Some(leg.part), TableSet::named(TABLES));
        let options = ReplayOptions { part, tables, without_predicted_bodies: true, ..ReplayOptions::default() };
        self.run_beside(said, game, &source, (&options, false), seen, to)
    }

    /// Reads a keyframe from the log to start a replay from it.
    fn start_at(&self, there: &KeyframeRef) -> Result<ReplayStart, EngineError> {
        let found = store::open_indexed_log(&self.path)?.keyframe(KeyframeQuery::At(there.at));
        let found = found.map_err(|source| EngineError::content(&self.path, source))?;
        let keyframe = found.map(|(keyframe, _)| keyframe);
        let keyframe = keyframe.filter(|found| (found.tick, found.at) == (there.tick, there.at));
        let keyframe = keyframe.ok_or_else(|| self.not_replayed(ReplayError::NoKeyframe))?;
        let start = ReplayStart::read(&Keyframe { stretch: there.stretch, ..keyframe }, &self.header);
        start.map_err(|source| self.not_replayed(source))
    }
}

/// Plans the legs of a log that has keyframes at these times and ends at `last`. Rows from a time on depend on records
/// since `needed_from` that time.
fn legs(keyframes: &[Micros], last: Micros, needed_from: &dyn Fn(Micros) -> Micros) -> Vec<Leg> {
    // With these keyframes, a log has one more stretch than keyframes.
    let each = (keyframes.len() + 1).div_ceil(LEGS).max(MIN_KEYFRAMES);
    let ends = (0..keyframes.len()).skip(each - 1).step_by(each).filter(|end| keyframes[*end] < last);
    let bounds: Vec<Option<usize>> = std::iter::once(None).chain(ends.map(Some)).chain([None]).collect();
    let leg = |bounds: &[Option<usize>]| {
        let [begin, end] = [bounds[0], bounds[1]];
        let from = begin.map_or(Part::WHOLE.from, |begin| keyframes[begin]);
        let since = needed_from(from);
        Leg {
            from: begin.and_then(|_| keyframes.partition_point(|at| *at <= since).checked_sub(1)),
            to: begin.map_or(0, |begin| begin + 1)..end.map_or(keyframes.len(), |end| end + 1),
            part: Part { from, to: end.map_or(Part::WHOLE.to, |end| keyframes[end]) },
        }
    };
    bounds.windows(2).map(leg).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leg_begins_where_an_earlier_leg_ends() {
        for (count, every_s) in [(1, 10), (3, 10), (4, 10), (5, 2), (29, 10), (359, 10), (900, 1)] {
            let keyframes: Vec<Micros> = (1..=count).map(|n| Micros::from_s(n * every_s)).collect();
            let needed_from = |at| at - Micros::from_s(4);
            let legs = legs(&keyframes, Micros::from_s(count * every_s + 5), &needed_from);
            let come_to = legs.iter().flat_map(|leg| leg.to.clone());
            assert!(come_to.eq(0..keyframes.len()), "each is held against once");
            assert_eq!((legs[0].from, legs[0].part.from), (None, Part::WHOLE.from));
            assert_eq!(legs[legs.len() - 1].part.to, Part::WHOLE.to);
            for (before, leg) in legs.iter().zip(&legs[1..]) {
                assert_eq!(before.part.to, leg.part.from);
                assert_eq!(keyframes[leg.to.start - 1], leg.part.from, "it ends with the keyframe that it goes up to");
                let Some(from) = leg.from else { continue };
                assert!(from < leg.to.start && keyframes[from] <= needed_from(leg.part.from));
                assert!(keyframes[from + 1] > needed_from(leg.part.from), "no sooner than it must");
            }
            assert!(count < 29 || legs.len() == LEGS, "{} legs", legs.len());
        }
        // There is nothing after a keyframe at the very end.
        let keyframes = [10, 20, 30, 40].map(Micros::from_s);
        assert_eq!(legs(&keyframes, Micros::from_s(40), &|at| at).len(), 1);
    }
}
