//! Verifies a log with keyframes: replays its legs independently, up to two at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::recorded_rows::{self, RecordedRows};
use super::replays::{Contradiction, LogDifference, ReplayRunner};
use crate::engine::streamed::Leg;
use crate::engine::{Engine, EngineError, Playable, StreamError, SurveyedLog};
use crate::verify::{LegFigures, LogVerdict, LogVerification, VerdictReason, VerifyReference, judge_legs};
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::record::SessionStretch;
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::Tick;

/// The maximum number of legs to replay at once. Each takes about 65 MB for its pipelines and rows.
const AT_ONCE: usize = 2;

/// The replay of one leg.
struct LegReplay {
    played: LegFigures,
    contradicts: Option<Contradiction>,
    /// The first tick whose keyframe differs from the replayed state.
    keyframe: Option<Tick>,
}

/// The number of legs and keyframes by which a log was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LegCounts {
    pub(super) legs: usize,
    pub(super) keyframes: usize,
}

/// Verifies a log leg by leg. Returns `None` if it has no keyframes, or if datagrams may have affected the outcome.
/// Keyframes hold no datagram state.
pub(super) fn verify(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    against: VerifyReference<'_>,
) -> Result<Option<(LogVerification, LegCounts)>, EngineError> {
    let legs = log.legs();
    let Ok(game) = engine.games.of_header(&log.header) else { return Ok(None) };
    if legs.is_empty() {
        return Ok(None);
    }
    let how_many = LegCounts { legs: legs.len(), keyframes: legs.iter().map(Leg::keyframes).sum() };
    let mut played = Vec::with_capacity(legs.len());
    let mut unlike = None;
    for (_, leg) in all(game, log, &legs) {
        match leg {
            Ok(Some(leg)) => {
                unlike = unlike.or(leg.keyframe);
                let is_off = unlike.is_some() || leg.played.ran.first_difference.is_some();
                played.push(leg);
                // Legs after the first difference start from invalid states.
                if is_off {
                    break;
                }
            }
            Ok(None) => return Ok(None),
            Err(StreamError::Read(error)) => return Err(error),
            Err(StreamError::Replay(error)) => {
                let why = LogVerification::without_replay(
                    LogVerdict::Untestable,
                    VerdictReason::NotReplayed,
                    error.to_string(),
                );
                return Ok(Some((why, how_many)));
            }
        }
    }
    let contradicts = played.iter_mut().find_map(|leg| leg.contradicts.take());
    let played: Vec<LegFigures> = played.into_iter().map(|leg| leg.played).collect();
    let verified = judge_legs(&log.facts()?, &played, against);
    let first_difference = played.iter().find_map(|played| played.ran.first_difference).map(|found| found.tick);
    let keyframe = unlike.filter(|keyframe| first_difference.is_none_or(|tick| *keyframe < tick));
    let is_same = verified.verdict == LogVerdict::Same && verified.hashes_compared > 0;
    // After a keyframe that differs, every other finding follows from it or comes later.
    let contradicts = contradicts.filter(|_| is_same && keyframe.is_none());
    Ok(Some((LogDifference { contradicts, keyframe }.judge(&ReplayRunner::Own, verified), how_many)))
}

type LegAttempt = Result<Option<LegReplay>, StreamError>;

/// Replays all legs, two at a time if there are enough threads. Returns them in order.
fn all(game: &dyn Playable, log: &SurveyedLog, legs: &[Leg]) -> Vec<(usize, LegAttempt)> {
    let at_once = AT_ONCE.min(rayon::current_num_threads());
    let next = AtomicUsize::new(0);
    let some = |_| -> Vec<(usize, LegAttempt)> {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let numbers = numbers.take_while(|number| *number < legs.len());
        numbers.map(|number| (number, play(game, log, &legs[number]))).collect()
    };
    let mut all: Vec<_> = (0..at_once).into_par_iter().with_max_len(1).flat_map_iter(some).collect();
    all.sort_by_key(|(number, _)| *number);
    all
}

fn play(game: &dyn Playable, log: &SurveyedLog, leg: &Leg) -> LegAttempt {
    let mut gist: Option<ReplaySummary> = None;
    let said = RecordedRows::new(&log.header, &log.survey.hidden);
    let (ran, contradicts) = recorded_rows::meanwhile(said, |said| {
        let mut seen = |chunk: &SessionStretch| said.chunk(chunk);
        let mut rows = |header: &TraceHeader, rows: Table| {
            gist.get_or_insert_with(|| ReplaySummary::new(header.clone(), false)).add(&rows);
            said.rows(rows);
        };
        log.run_leg(game, leg, &mut seen, &mut rows)
    })?;
    let played = ran.zip(gist).map(|((ran, keyframe), gist)| (LegFigures::of(&gist, ran), keyframe));
    Ok(played.map(|(played, keyframe)| LegReplay { played, contradicts, keyframe }))
}
