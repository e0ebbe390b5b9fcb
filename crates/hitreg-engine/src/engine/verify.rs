//! Verifies log files: replays each one more than once, compares the replays with each other and with the golden, and
//! writes a new golden on request.

mod golden;
mod legs;
mod recorded_rows;
mod replays;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

pub use golden::{Golden, GoldenUpdate, Proposal, proposals_below};
pub use replays::ReplayRunner;

use super::{Engine, EngineError, SurveyedLog};
use crate::verify::{LogVerdict, LogVerification, VerdictReason, VerifyReference, judge_played};
use golden::Goldens;
use hitreg_analysis::summary::Coverage;
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::store::Targets;

/// How logs are verified.
pub struct VerifyOptions<'a> {
    /// The build that replays them.
    pub player: ReplayRunner<'a>,
    /// What to do if the outcome differs from the golden.
    pub keep: GoldenUpdate,
    /// Whether a log without a golden is untestable.
    pub needs_golden: bool,
    /// Checks rollback every this many ticks: restores the world from as many ticks before, runs them again, and
    /// compares.
    pub rollback_every: Option<u32>,
    /// Whether a log with keyframes is replayed as a whole, twice, instead of in legs.
    pub whole: bool,
    /// The number of logs to verify at the same time; 0 for one per core.
    pub threads: usize,
    /// Returns the seconds since an arbitrary start.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

/// The result for one log.
#[derive(Debug, Serialize)]
pub struct LogReport {
    /// The path of the log.
    #[serde(serialize_with = "hitreg_log::store::shown::path")]
    pub path: PathBuf,
    /// The verdict.
    pub verdict: LogVerdict,
    /// The subject of a verdict other than `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<VerdictReason>,
    /// The digest of the first replay's trace; `None` if no replay succeeded.
    pub digest: Option<String>,
    /// The features that the session exercised.
    pub exercised: Coverage,
    /// The number of ticks in the log.
    pub ticks_recorded: u64,
    /// The number of recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// The number of rollback checks.
    pub rollbacks: u32,
    /// The number of legs, if the log was replayed in legs. Each leg starts from a keyframe and is compared with the
    /// later keyframes that it reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legs: Option<usize>,
    /// The number of keyframes that the legs were compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyframes: Option<usize>,
    /// Whether this program can replay the log's game, and so use the log in a comparison.
    #[serde(skip)]
    pub plays_here: bool,
    /// What was done with the golden.
    pub golden: Golden,
    /// The reason for a verdict other than `same`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The differences from the golden: outcomes first, digests last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<TextDiff>,
    /// The duration in seconds. It is left out of the JSON, which is the same in every run.
    #[serde(skip)]
    pub seconds: f64,
}

impl VerifyOptions<'_> {
    /// Verifies logs, and calls `done` after each. Problems with a log or its golden go into its report.
    ///
    /// # Errors
    /// Fails if a requested file cannot be written, or if threads cannot be started.
    pub fn logs(
        &self,
        engine: &Engine<'_>,
        logs: &[PathBuf],
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<LogReport>, EngineError> {
        let targets = Targets::new(logs.to_vec(), false);
        // All write permissions are checked before the first replay.
        let goldens = logs.iter().map(|path| Goldens::of(path, self.keep, &targets));
        let goldens = goldens.collect::<Result<Vec<_>, EngineError>>()?;
        // With threads to spare, the replays of one log run in parallel.
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
                let broken =
                    LogVerification::without_replay(LogVerdict::Broken, VerdictReason::Unreadable, error.what());
                Ok(LogReport::new(path, broken, Golden::None))
            }
        };
        // An error in the log takes precedence over one in its golden.
        let (log, accepted) = match engine.survey(path).and_then(|log| Ok((log, goldens.accepted()?))) {
            Ok(read) => read,
            Err(error) => return broken(error),
        };
        let against = VerifyReference { golden: accepted.as_deref(), rollback: self.rollback_every.is_some() };
        let writes_golden = accepted.is_some() || self.keep.writes();
        let may_run_in_legs = !(self.whole || self.rollback_every.is_some() || writes_golden);
        let in_legs = match &self.player {
            ReplayRunner::Own if may_run_in_legs => legs::verify(engine, &log, against)?,
            _ => None,
        };
        let by_legs = in_legs.as_ref().map(|(_, legs)| *legs);
        let mut verified = match in_legs {
            Some((verified, _)) => verified,
            None => self.replayed(engine, &log, against, (writes_golden, at_once))?,
        };
        if self.needs_golden && !verified.golden_compared && verified.verdict == LogVerdict::Same && !self.keep.writes()
        {
            let detail = format!("there is no golden ({}): create it with --accept", goldens.path().display());
            verified = verified.but(LogVerdict::Untestable, VerdictReason::NoGolden, detail);
        }
        let plays_here = engine.games.of_header(&log.header).is_ok();
        let rerecorded = match self.keep.rerecords() && verified.why == Some(VerdictReason::RecordedState) {
            true => Some(self.anew(engine, &log, against)?),
            false => None,
        };
        let (verified, golden) = goldens.settle(verified, rerecorded)?;
        let (legs, keyframes) = by_legs.map(|by| (by.legs, by.keyframes)).unzip();
        Ok(LogReport { legs, keyframes, plays_here, ..LogReport::new(path, verified, golden) })
    }

    /// Replays a log as a whole, and judges the replays. `golden` makes the text of its golden; `at_once` runs the
    /// replays in parallel.
    fn replayed(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
        (golden, at_once): (bool, bool),
    ) -> Result<LogVerification, EngineError> {
        let replays = self.player.replays(engine, log, self.rollback_every, (golden, at_once))?;
        let played = replays.as_ref().map(|(played, _)| &played[..]).map_err(Clone::clone);
        let verified = judge_played(&log.facts()?, played, against);
        Ok(match replays {
            Ok((_, unlike)) if verified.verdict == LogVerdict::Same => unlike.judge(&self.player, verified),
            _ => verified,
        })
    }

    /// Records the log's input and links again, and verifies the new log.
    fn anew(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
    ) -> Result<golden::RerecordedLog, EngineError> {
        let folder = hitreg_log::store::temporary_folder()?;
        let target = folder.file("anew.hitlog");
        if let Err(why) = self.player.rerecord(engine, log, &target)? {
            let verified = LogVerification::without_replay(LogVerdict::Untestable, VerdictReason::NotReplayed, why);
            return Ok(golden::RerecordedLog { log: None, verified });
        }
        let again = Engine::new(engine.games).survey(target.path())?;
        let verified = self.replayed(engine, &again, against, (true, false))?;
        Ok(golden::RerecordedLog { log: Some((folder, target.path().to_owned())), verified })
    }
}

pub(super) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|source| EngineError::Threads { threads, source })
}

impl LogReport {
    fn new(path: &Path, verified: LogVerification, golden: Golden) -> LogReport {
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
