//! Finds the first build in a list that plays a log differently.

use std::path::PathBuf;

use super::StepProgress;
use super::judge::BuildJudge;
use super::result::BisectResult;
use super::search::{CandidateSearch, EndChecks, Probe, SearchSpace};
use crate::build::{Build, UntestableBuild};
use crate::engine::{BuildOutcome, EngineError};
use hitreg_log::trace::Trace;

/// A search in a list of builds. It assumes that the first is good and the last is bad.
#[derive(Clone, Copy, Debug)]
pub struct BuildSearch<'a> {
    /// At least two builds, oldest first.
    pub builds: &'a [PathBuf],
    /// Try the first and the last build before any other. Without this, an end is tried only if the answer depends on
    /// it.
    pub verify_ends: bool,
    /// The number of builds that run at the same time, including speculative ones.
    pub jobs: usize,
}

impl BuildSearch<'_> {
    /// Runs the search, and calls `steps` after each judged build.
    ///
    /// # Errors
    /// Fails if a build does not exist, the judge's command cannot be run, or the job was stopped. A log that a build
    /// cannot play is not an error.
    pub fn run(&self, judge: &BuildJudge<'_>, steps: &StepProgress<'_>) -> Result<BisectResult, EngineError> {
        let builds = self.builds.iter().map(|path| Build::at(path)).collect::<Result<_, _>>()?;
        let search = CandidateSearch {
            space: &BuildList { paths: self.builds, builds, judge },
            judge,
            jobs: self.jobs,
            ends: [0, self.builds.len() - 1],
            end_checks: if self.verify_ends { EndChecks::First } else { EndChecks::IfNeeded },
            answers: Vec::new(),
            save: &|_| Ok(()),
            steps,
            most: self.builds.len().ilog2().into(),
        };
        let mut found = search.run()?;
        let place = |name: &String| self.builds.iter().position(|path| path.display().to_string() == *name);
        found.candidates.sort_by_key(place);
        Ok(found)
    }
}

struct BuildList<'a> {
    paths: &'a [PathBuf],
    builds: Vec<Build>,
    judge: &'a BuildJudge<'a>,
}

impl SearchSpace for BuildList<'_> {
    type Item = usize;

    fn between(&self, bad: &usize, goods: &[usize]) -> Result<Vec<usize>, EngineError> {
        Ok(between(*bad, goods))
    }

    fn last_good(&self, _: &usize, goods: &[usize]) -> Result<usize, EngineError> {
        Ok(last(goods))
    }

    fn probe(&self, item: &usize, judge: &BuildJudge<'_>, _: usize) -> Result<Probe, EngineError> {
        judge.probe(&self.builds[*item])
    }

    fn trace(&self, item: &usize) -> BuildOutcome<Trace> {
        self.judge.trace(&self.builds[*item])
    }

    fn repeat(&self, item: &usize, first: &Trace) -> Result<Option<UntestableBuild>, EngineError> {
        self.judge.repeat(&self.builds[*item], first)
    }

    fn name(&self, item: &usize) -> String {
        self.paths[*item].display().to_string()
    }
}

fn last(goods: &[usize]) -> usize {
    goods.iter().copied().max().unwrap_or_default()
}

/// The places between the last good one and `bad`, from the middle outwards.
pub(super) fn between(bad: usize, goods: &[usize]) -> Vec<usize> {
    let good = last(goods);
    let mut places: Vec<usize> = (good + 1..bad).collect();
    places.sort_by_key(|at| at.abs_diff(good + (bad - good) / 2));
    places
}
