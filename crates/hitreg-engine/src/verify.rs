//! Verifies log files: replays each one more than once, compares the replays with each other and with the golden, and
//! writes a new golden on request.

mod facts;
mod golden;
mod recorded_rows;
mod replays;
mod report;
mod verdict;

use std::path::Path;

pub use facts::LogFacts;
pub use golden::{Golden, GoldenUpdate, Proposal, proposals_below};
pub use report::{LogReport, LogVerdict, VerdictReason};
pub use verdict::{THREADS, VerifiedReplay, VerifyReference, judge};

use crate::build::{Build, OneSidedLog};
use crate::engine::{Engine, EngineError, SurveyedLog};
pub(crate) use golden::Goldens;
use hitreg_log::trace::RECORD;

/// How logs are verified.
pub struct VerifyOptions<'a> {
    /// The build that replays them; `None` for the games of this build.
    pub build: Option<&'a Build>,
    /// What to do if the outcome differs from the golden.
    pub keep: GoldenUpdate,
    /// Whether a log without a golden is untestable.
    pub needs_golden: bool,
    /// Checks rollback every this many ticks: restores the world from as many ticks before, runs them again, and
    /// compares.
    pub rollback_every: Option<u32>,
    /// Whether a log with keyframes is replayed as a whole, twice, instead of in legs.
    pub whole: bool,
    /// Returns the seconds since an arbitrary start.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

impl VerifyOptions<'_> {
    /// Verifies a log. Problems with it or its golden go into its report.
    pub(crate) fn log(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        goldens: &Goldens,
        at_once: bool,
    ) -> Result<LogReport, EngineError> {
        // An error in the log takes precedence over one in its golden.
        let (log, accepted) = match engine.survey(path).and_then(|log| Ok((log, goldens.accepted()?))) {
            Ok(read) => read,
            Err(error) if error.is_for_memory() => return Err(error),
            Err(error) => {
                goldens.withdraw()?;
                return Ok(LogReport::unreadable(path, error.what()));
            }
        };
        let against = VerifyReference { golden: accepted.as_deref(), rollback: self.rollback_every.is_some() };
        let writes_golden = accepted.is_some() || self.keep.writes();
        let may_run_in_legs = !(self.whole || self.rollback_every.is_some() || writes_golden);
        let in_legs = match self.build {
            None if may_run_in_legs => replays::in_legs(engine, &log, against)?,
            _ => None,
        };
        let mut verified = match in_legs {
            Some(verified) => verified,
            None => self.replayed(engine, &log, against, (writes_golden, at_once))?,
        };
        if self.needs_golden
            && verified.golden == Golden::None
            && verified.verdict == LogVerdict::Same
            && !self.keep.writes()
        {
            let detail = match goldens.path() {
                Some(path) => format!("there is no golden ({}): create it with --accept", path.display()),
                None => "a log from standard input has no golden".to_owned(),
            };
            verified = verified.but(LogVerdict::Untestable, VerdictReason::NoGolden, detail);
        }
        let plays_here = engine.games.of_header(&log.header).is_ok();
        let has_other_states = matches!(verified.why, Some(VerdictReason::RecordedState | VerdictReason::Keyframe));
        let rerecorded = match self.keep.rerecords() && has_other_states {
            true => Some(self.verify_rerecorded(engine, &log, against)?),
            false => None,
        };
        Ok(LogReport { path: path.to_owned(), plays_here, ..goldens.settle(verified, rerecorded)? })
    }

    /// Replays a log as a whole, and judges the replays. `golden` makes the text of its golden; `at_once` runs the
    /// replays in parallel.
    fn replayed(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
        (golden, at_once): (bool, bool),
    ) -> Result<LogReport, EngineError> {
        let replays = match self.build {
            None => replays::own(engine, log, self.rollback_every, golden, at_once),
            Some(build) => replays::built(engine, build, log),
        }?;
        let played = replays.as_ref().map(|(played, _)| &played[..]).map_err(Clone::clone);
        let side = OneSidedLog::of_surveyed(&log.header, &log.survey);
        let is_one_sided = side.zip(played.as_ref().err()).is_some_and(|(side, why)| *why == side.to_string());
        let mut facts = log.facts()?;
        let missing = replays.as_ref().ok().and_then(|(_, unlike)| unlike.missing_usercmd.clone());
        facts.contradiction = facts.contradiction.or(missing);
        let can_rerecord =
            played.as_ref().is_ok_and(|played| played.iter().all(|replay| replay.summary.header.can(RECORD)));
        let verified = LogReport { can_rerecord, is_one_sided, ..judge(&facts, played, against) };
        // A golden does not count for a replay that contradicts its log.
        let passes_so_far = verified.verdict == LogVerdict::Same || verified.why == Some(VerdictReason::Golden);
        Ok(match replays {
            Ok((_, unlike)) if passes_so_far => unlike.judge(self.build, verified),
            _ => verified,
        })
    }

    /// Records the log's input and links again, and verifies the new log.
    fn verify_rerecorded(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
    ) -> Result<golden::RerecordedLog, EngineError> {
        let folder = hitreg_log::store::temporary_folder()?;
        let target = folder.file("anew.hitlog");
        if let Err(why) = replays::rerecord(engine, self.build, log, &target)? {
            return Ok(golden::RerecordedLog { log: None, verified: LogReport::not_replayed(why) });
        }
        let again = engine.quiet().survey(target.path())?;
        let verified = self.replayed(engine, &again, against, (true, false))?;
        Ok(golden::RerecordedLog { log: Some((folder, target.path().to_owned())), verified })
    }
}

fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| EngineError::Request(format!("cannot start {threads} threads: {error}")))
}
