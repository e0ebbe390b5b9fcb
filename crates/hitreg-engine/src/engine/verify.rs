//! Verifying log files: each is replayed more than once, held against itself and its golden, and the golden written anew
//! when that is asked for.

mod golden;
mod legs;
mod played;
mod said;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

pub use golden::{Golden, Keep, Proposal, proposals_below};
pub use played::Player;

use super::{Engine, EngineError, SurveyedLog};
use crate::verify::{Against, Facts, Verdict, Verified, Why, judge, judge_played};
use golden::Goldens;
use hitreg_analysis::golden::is_of_first_version as golden_is_of_first_version;
use hitreg_analysis::summary::Exercised;
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::store::Targets;
use hitreg_netcode::replay::Options;

/// How logs are verified.
pub struct Verify<'a> {
    /// Who plays them.
    pub player: Player<'a>,
    /// What is done where something else comes out than the golden has.
    pub keep: Keep,
    /// Whether a log without a golden is untestable.
    pub needs_golden: bool,
    /// Every so many ticks restore the world as it was saved so many ticks before, run them again, and compare.
    pub rollback_every: Option<u32>,
    /// Whether a log with keyframes is replayed as a whole, twice, as one without is.
    pub whole: bool,
    /// How many logs are verified at the same time; 0 for one on each core.
    pub threads: usize,
    /// Says how many seconds have gone by.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// What was found about one log.
#[derive(Debug, Serialize)]
pub struct LogReport {
    /// The log.
    #[serde(serialize_with = "hitreg_log::store::shown::path")]
    pub path: PathBuf,
    /// The judgement.
    pub verdict: Verdict,
    /// What a verdict other than `same` is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The digest of the first replay's trace; `None` when nothing could be replayed.
    pub digest: Option<String>,
    /// What was exercised.
    pub exercised: Exercised,
    /// Ticks that the log holds.
    pub ticks_recorded: u64,
    /// Recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Rollbacks that were checked.
    pub rollbacks: u32,
    /// In how many legs it was replayed, each by itself from one of its keyframes on and held against those up to the next one's
    /// beginning; `None` where it was replayed as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legs: Option<usize>,
    /// The keyframes that the legs came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyframes: Option<usize>,
    /// Whether this program plays the log's game, and so can be a side of a comparison.
    #[serde(skip)]
    pub plays_here: bool,
    /// What was done with the golden.
    pub golden: Golden,
    /// The reason of any verdict but `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How what came out differs from the golden: outcomes first, digests last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<TextDiff>,
    /// How long it took. Not part of the JSON, which is the same for the same logs.
    #[serde(skip)]
    pub seconds: f64,
}

impl Verify<'_> {
    /// Verifies logs, and tells `done` of each one. What is wrong with a log or its golden is in its report.
    ///
    /// # Errors
    /// When something cannot be written that was asked for, or there are no threads.
    pub fn logs(
        &self,
        engine: &Engine<'_>,
        logs: &[PathBuf],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<LogReport>, EngineError> {
        let targets = Targets::new(logs.to_vec(), false);
        // Whatever may not be written is said before the first log is replayed.
        let goldens = logs.iter().map(|path| Goldens::of(path, self.keep, &targets));
        let goldens = goldens.collect::<Result<Vec<_>, EngineError>>()?;
        // Where there are threads left over, a log's replays run at once.
        let pool = thread_pool(self.threads)?;
        let at_once = logs.len() < pool.current_num_threads();
        let verify = |(path, goldens): (&PathBuf, &Goldens)| {
            let started = (self.clock)();
            let report = self.log(engine, path, goldens, at_once);
            done();
            report.map(|report| LogReport { seconds: (self.clock)() - started, ..report })
        };
        pool.install(|| logs.par_iter().zip(&goldens).map(verify).collect())
    }

    fn log(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        goldens: &Goldens,
        at_once: bool,
    ) -> Result<LogReport, EngineError> {
        let broken = |error: EngineError| match error.is_for_memory() {
            true => Err(error),
            false => {
                let broken = Verified::without_replay(Verdict::Broken, Why::Unreadable, error.what());
                Ok(LogReport::new(path, broken, Golden::None))
            }
        };
        // Whoever reads the log says what is wrong with it before its golden is looked at.
        let surveyed = match self.player {
            Player::Own => engine.survey(path),
            Player::Build(..) => Ok(None),
        };
        let surveyed = match surveyed {
            Ok(surveyed) => surveyed,
            Err(error) => return broken(error),
        };
        let accepted = match goldens.accepted() {
            Ok(accepted) => accepted,
            Err(error) => return broken(error),
        };
        let against = Against { golden: accepted.as_deref(), rollback: self.rollback_every.is_some() };
        let of_first_version = accepted.as_deref().is_some_and(golden_is_of_first_version);
        let streams = |log: &&SurveyedLog| {
            let game = engine.games.of_header(&log.header);
            !of_first_version && game.is_ok_and(|game| log.streams(game, &Options::default()))
        };
        let mut whole = None;
        let by_itself = |log: &&SurveyedLog| {
            let as_a_whole = self.whole || self.rollback_every.is_some() || accepted.is_some() || self.keep.writes();
            !as_a_whole && streams(log)
        };
        let in_legs = match surveyed.as_ref().filter(by_itself) {
            Some(log) => legs::verify(engine, log, against)?,
            None => None,
        };
        let by_legs = in_legs.as_ref().map(|(_, legs)| *legs);
        let mut verified = match (in_legs, surveyed.as_ref().filter(streams)) {
            (Some((verified, _)), _) => verified,
            (None, Some(log)) => {
                let golden = accepted.is_some() || self.keep.writes();
                let replays = played::streamed(engine, log, self.rollback_every, golden, at_once)?;
                let played = replays.as_ref().map(|(played, _)| &played[..]).map_err(Clone::clone);
                let verified = judge_played(&Facts::of_log(&log.header, &log.survey), played, against);
                match replays {
                    Ok((_, unlike)) if verified.verdict == Verdict::Same => unlike.judge(verified),
                    _ => verified,
                }
            }
            (None, None) => {
                let log = match engine.read_log_quietly(path, surveyed.is_some()) {
                    Ok(log) => log,
                    Err(error) => return broken(error),
                };
                let replays = self.player.replays(engine, path, &log, self.rollback_every)?;
                let verified = judge(&log.session, replays.as_deref().map_err(Clone::clone), against);
                let contradiction = match (replays.as_deref(), verified.verdict) {
                    (Ok([first, ..]), Verdict::Same) => played::contradiction(&log.session, first),
                    _ => None,
                };
                whole = Some(log);
                match contradiction {
                    Some(contradicts) => contradicts.judge(&self.player, verified),
                    None => verified,
                }
            }
        };
        if self.needs_golden && !verified.golden_compared && verified.verdict == Verdict::Same && !self.keep.writes() {
            let detail = format!("there is no golden: {} is not there", goldens.path().display());
            verified = verified.but(Verdict::Untestable, Why::NoGolden, detail);
        }
        let plays_here = whole.as_ref().is_none_or(|log| engine.games.of(&log.session).is_ok());
        let rerecorded = match self.keep.rerecords() && verified.why == Some(Why::RecordedState) {
            true => {
                let log = match whole {
                    Some(log) => log,
                    None => engine.read_log_quietly(path, true)?,
                };
                Some(self.anew(engine, path, &log, against)?)
            }
            false => None,
        };
        let (verified, golden) = goldens.settle(verified, rerecorded)?;
        let (legs, keyframes) = by_legs.map(|by| (by.legs, by.keyframes)).unzip();
        Ok(LogReport { legs, keyframes, plays_here, ..LogReport::new(path, verified, golden) })
    }

    /// The log's input and links run again by the player, and what verifying that log comes to.
    fn anew(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        log: &super::LogFile,
        against: Against<'_>,
    ) -> Result<golden::Anew, EngineError> {
        let session = match self.player.rerecord(engine, path, log)? {
            Ok(session) => session,
            Err(why) => {
                return Ok(golden::Anew {
                    session: None,
                    verified: Verified::without_replay(Verdict::Untestable, Why::NotReplayed, why),
                });
            }
        };
        let replays = self.player.replays_of(engine, path, &session, self.rollback_every)?;
        let verified = judge(&session, replays.as_deref().map_err(Clone::clone), against);
        Ok(golden::Anew { session: Some(session), verified })
    }
}

pub(super) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|source| EngineError::Threads { threads, source })
}

impl LogReport {
    fn new(path: &Path, verified: Verified, golden: Golden) -> LogReport {
        LogReport {
            path: path.to_owned(),
            verdict: verified.verdict,
            why: verified.why,
            digest: verified.digest.map(|digest| digest.to_string()),
            exercised: verified.exercised,
            ticks_recorded: verified.ticks_recorded,
            hashes_compared: verified.hashes_compared,
            rollbacks: verified.rollbacks,
            legs: None,
            keyframes: None,
            plays_here: true,
            golden,
            detail: verified.detail,
            difference: verified.difference,
            seconds: 0.0,
        }
    }
}
