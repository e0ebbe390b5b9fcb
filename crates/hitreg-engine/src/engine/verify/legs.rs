//! Verifying a log with keyframes: its legs are replayed each by itself, and two at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::played::{Contradicts, Unlike};
use super::said::{self, Said};
use crate::engine::streamed::Leg;
use crate::engine::{Engine, EngineError, Playable, StreamError, SurveyedLog};
use crate::verify::{Against, Facts, PlayedLeg, Verdict, Verified, Why, judge_legs};
use hitreg_analysis::golden::Gist;
use hitreg_log::record::Stretch;
use hitreg_log::trace::{Table, TraceHeader};
use hitreg_log::units::Tick;

/// So many legs are replayed at once at most, on however many cores: each has its pipelines and its rows in memory, some 65 MB.
const AT_ONCE: usize = 2;

/// One leg's replay.
struct LegPlayed {
    played: PlayedLeg,
    contradicts: Option<Contradicts>,
    /// The tick that a keyframe follows which is another than this replay has there.
    keyframe: Option<Tick>,
}

/// How many legs and keyframes a log was verified by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Legs {
    pub(super) legs: usize,
    pub(super) keyframes: usize,
}

/// What came of a log's legs; `None` where it has no keyframes, or where datagrams may matter, of which those say nothing.
pub(super) fn verify(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    against: Against<'_>,
) -> Result<Option<(Verified, Legs)>, EngineError> {
    let legs = log.legs();
    let Ok(game) = engine.games.of_header(&log.header) else { return Ok(None) };
    if legs.is_empty() {
        return Ok(None);
    }
    let how_many = Legs { legs: legs.len(), keyframes: legs.iter().map(Leg::keyframes).sum() };
    let mut played = Vec::with_capacity(legs.len());
    let mut unlike = None;
    for (_, leg) in all(game, log, &legs) {
        match leg {
            Ok(Some(leg)) => {
                unlike = unlike.or(leg.keyframe);
                let is_off = unlike.is_some() || leg.played.ran.first_difference.is_some();
                played.push(leg);
                // What begins behind that says nothing.
                if is_off {
                    break;
                }
            }
            Ok(None) => return Ok(None),
            Err(StreamError::Read(error)) => return Err(error),
            Err(StreamError::Replay(error)) => {
                let why = Verified::without_replay(Verdict::Untestable, Why::NotReplayed, error.to_string());
                return Ok(Some((why, how_many)));
            }
        }
    }
    let contradicts = played.iter_mut().find_map(|leg| leg.contradicts.take());
    let played: Vec<PlayedLeg> = played.into_iter().map(|leg| leg.played).collect();
    let verified = judge_legs(&Facts::of_log(&log.header, &log.survey), &played, against);
    let first_difference = played.iter().find_map(|played| played.ran.first_difference).map(|found| found.tick);
    let keyframe = unlike.filter(|keyframe| first_difference.is_none_or(|tick| *keyframe < tick));
    let is_same = verified.verdict == Verdict::Same && verified.hashes_compared > 0;
    // Where a keyframe is not what the replay has there, all else that is found follows from it or comes later.
    let contradicts = contradicts.filter(|_| is_same && keyframe.is_none());
    Ok(Some((Unlike { contradicts, keyframe }.judge(verified), how_many)))
}

type Attempt = Result<Option<LegPlayed>, StreamError>;

/// All legs in their order, two at once where there are threads.
fn all(game: &dyn Playable, log: &SurveyedLog, legs: &[Leg]) -> Vec<(usize, Attempt)> {
    let at_once = AT_ONCE.min(rayon::current_num_threads());
    let next = AtomicUsize::new(0);
    let some = |_| -> Vec<(usize, Attempt)> {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let numbers = numbers.take_while(|number| *number < legs.len());
        numbers.map(|number| (number, play(game, log, &legs[number]))).collect()
    };
    let mut all: Vec<_> = (0..at_once).into_par_iter().with_max_len(1).flat_map_iter(some).collect();
    all.sort_by_key(|(number, _)| *number);
    all
}

fn play(game: &dyn Playable, log: &SurveyedLog, leg: &Leg) -> Attempt {
    let mut gist: Option<Gist> = None;
    let said = Said::new(&log.header, &log.survey.hidden);
    let (ran, contradicts) = said::meanwhile(said, |said| {
        let mut seen = |chunk: &Stretch| said.chunk(chunk);
        let mut rows = |header: &TraceHeader, rows: Table| {
            gist.get_or_insert_with(|| Gist::new(header.clone(), false)).add(&rows);
            said.rows(rows);
        };
        log.run_leg(game, leg, &mut seen, &mut rows)
    })?;
    let played = ran.zip(gist).map(|((ran, keyframe), gist)| (PlayedLeg::of(&gist, ran), keyframe));
    Ok(played.map(|(played, keyframe)| LegPlayed { played, contradicts, keyframe }))
}
