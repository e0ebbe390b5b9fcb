//! The searches of `hitreg bisect`: the first tick where two runs differ, and the build or commit that introduced it.

mod git;
mod search;
mod ticks;

pub use git::GitSearch;
pub use ticks::{TickBisectionResult, bisect_ticks, body_argument, step};

use std::path::PathBuf;

use serde::Serialize;

use crate::build::condition::{BuildAnswer, Condition};
use crate::build::{Build, BuildRequest, BuildRunner, StopSignal, UntestableBuild};
use crate::comparison::{disagreement, only_once};
use crate::{BuildOutcome, EngineError};
use hitreg_analysis::diff::{DiffOptions, TraceDiff, TraceVerdict, diff};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;
use search::{CandidateSearch, SearchSpace};

/// A progress callback: steps done, and about how many there will be.
pub type StepProgress<'a> = dyn Fn(u64, u64) + 'a;

/// The outcome of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchVerdict {
    /// The first bad candidate was found.
    Found,
    /// The first bad candidate is one of several, because those in between could not be judged.
    Range,
    /// None is bad, including the last.
    NoneIsBad,
    /// All are bad, including the first.
    AllAreBad,
    /// The good or bad end cannot be judged, so there is no answer.
    #[default]
    Untestable,
}

/// The result of a search.
#[derive(Debug, Default, Serialize)]
pub struct BisectResult {
    /// The judgement.
    pub verdict: SearchVerdict,
    /// The first candidate that is known to be bad.
    pub first_bad: Option<String>,
    /// The last candidate that is known to be good.
    pub last_good: Option<String>,
    /// The first bad commit's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The subject lines of all commits in this result.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub subjects: SortedMap<String, String>,
    /// All candidates that may be the first bad one.
    pub candidates: Vec<String>,
    /// Branches that were not searched, although the first bad candidate contains them: where they began, the replay
    /// already differs from the good end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsearched: Vec<OlderBranch<String>>,
    /// The number of candidates that were tried and used.
    pub probes: usize,
    /// The number of speculative probes that were started but not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculative: Option<usize>,
    /// How many of `probes` come from an earlier, interrupted run of this search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<usize>,
    /// Candidates that could not be judged.
    pub skipped: Vec<SkippedCandidate>,
    /// All candidates that were tried, in order.
    pub tested: Vec<TestedCandidate>,
    /// The reason why the search has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// The last lines on stderr of the build that could not be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
    /// The difference between the last good and the first bad candidate.
    pub diff: Option<TraceDiff>,
}

/// A branch that began before the good end of a search.
#[derive(Clone, Debug, Serialize)]
pub struct OlderBranch<T> {
    /// The last commit that both the branch and the good end contain.
    pub base: T,
    /// The branch's last commit.
    pub tip: T,
}

impl<T> OlderBranch<T> {
    fn map<U>(&self, to: impl Fn(&T) -> U) -> OlderBranch<U> {
        OlderBranch { base: to(&self.base), tip: to(&self.tip) }
    }
}

/// A candidate that could not be judged.
#[derive(Debug, Serialize)]
pub struct SkippedCandidate {
    /// Its path or commit.
    pub name: String,
    /// Why it could not be judged.
    #[serde(flatten)]
    pub why: UntestableBuild,
}

/// A candidate that was tried.
#[derive(Debug, Serialize)]
pub struct TestedCandidate {
    /// Its path or commit.
    pub name: String,
    /// The answer. As JSON it is one word.
    #[serde(serialize_with = "BuildAnswer::serialize_word")]
    pub answer: BuildAnswer,
}

/// Judges builds by one log.
#[derive(Clone, Debug)]
pub struct BuildJudge<'a> {
    condition: Option<Condition>,
    options: DiffOptions,
    runner: BuildRunner,
    request: BuildRequest<'a>,
    /// An estimate of what the log's trace takes in memory.
    trace_bytes: usize,
}

/// The number of traces that a search holds: the first build's, those of both ends, and the one that is judged.
const HELD_TRACES: usize = 4;

impl<'a> BuildJudge<'a> {
    /// Creates a judge. With a command, it judges by that. Without one, it compares traces of about `trace_bytes`.
    ///
    /// # Errors
    /// When the command never names the build, or the memory limit does not suffice for the traces of a search.
    pub fn new(
        condition: Option<Condition>,
        options: DiffOptions,
        runner: BuildRunner,
        request: BuildRequest<'a>,
        trace_bytes: usize,
    ) -> Result<BuildJudge<'a>, EngineError> {
        if condition.as_ref().is_some_and(|condition| !condition.names_build()) {
            let what = "the command of --while does not use the build: write {build} for its path";
            return Err(EngineError::Request(what.to_owned()));
        }
        if condition.is_none() {
            let needed = trace_bytes.saturating_mul(HELD_TRACES);
            runner.memory.check(needed).map_err(|source| EngineError::needs_memory(request.log, source))?;
        }
        Ok(BuildJudge { condition, options, runner, request, trace_bytes })
    }

    /// The number of builds that the memory limit allows to run at once, at most `wanted`.
    fn room(&self, wanted: usize) -> usize {
        match self.compares() {
            true => (self.runner.memory.bytes() / self.trace_bytes.max(1))
                .saturating_sub(HELD_TRACES - 1)
                .clamp(1, wanted.max(1)),
            false => wanted,
        }
    }

    /// A copy of this judge that `stop` stops.
    fn with_stop(&self, stop: &StopSignal) -> Self {
        BuildJudge { runner: BuildRunner { stop: stop.clone(), ..self.runner.clone() }, ..self.clone() }
    }

    /// Whether this judge compares traces, and so needs the trace of the good build.
    fn compares(&self) -> bool {
        self.condition.is_none()
    }

    fn trace(&self, build: &Build) -> BuildOutcome<Trace> {
        EngineError::check_machine(self.request.log, self.runner.trace(build, &self.request))
    }

    /// Judges a build by comparing its trace with the good one.
    fn compare(&self, good: &Trace, trace: &Trace) -> Result<BuildAnswer, EngineError> {
        let found = diff(good, trace, &self.options)?;
        Ok(match found.verdict {
            TraceVerdict::Same => BuildAnswer::Good,
            TraceVerdict::Differs => BuildAnswer::Bad,
            TraceVerdict::Untestable => {
                let reason = found.untestable.unwrap_or_else(|| "its trace cannot be compared".to_owned());
                BuildAnswer::Untestable(UntestableBuild::because(reason))
            }
        })
    }

    /// The trace of a replay that runs now: never one from the cache.
    fn fresh_trace(&self, build: &Build) -> BuildOutcome<Trace> {
        let runner = BuildRunner { cache: None, ..self.runner.clone() };
        EngineError::check_machine(self.request.log, runner.trace(build, &self.request))
    }

    /// Replays the log again. Returns why the build cannot be judged, if the trace is not the first one.
    fn repeat(&self, build: &Build, first: &Trace) -> Result<Option<UntestableBuild>, EngineError> {
        match self.fresh_trace(build)? {
            Ok(again) => disagreement(first, &again, &self.options),
            Err(untestable) => Ok(Some(UntestableBuild { reason: only_once(&untestable.reason), ..untestable })),
        }
    }
}

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
            space: &BuildList { paths: self.builds, builds },
            judge,
            jobs: self.jobs,
            ends: [0, self.builds.len() - 1],
            verify_ends: self.verify_ends,
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
}

impl SearchSpace for BuildList<'_> {
    type Item = usize;

    fn between(&self, bad: &usize, goods: &[usize]) -> Result<Vec<usize>, EngineError> {
        Ok(between(*bad, goods))
    }

    fn last_good(&self, _: &usize, goods: &[usize]) -> Result<usize, EngineError> {
        Ok(last(goods))
    }

    fn name(&self, item: &usize) -> String {
        self.paths[*item].display().to_string()
    }

    fn build(&self, item: &usize, _: &BuildJudge<'_>, _: usize) -> BuildOutcome<Build> {
        Ok(Ok(self.builds[*item].clone()))
    }
}

fn last(goods: &[usize]) -> usize {
    goods.iter().copied().max().unwrap_or_default()
}

/// The places between the last good one and `bad`, from the middle outwards.
fn between(bad: usize, goods: &[usize]) -> Vec<usize> {
    let good = last(goods);
    let mut places: Vec<usize> = (good + 1..bad).collect();
    places.sort_by_key(|at| at.abs_diff(good + (bad - good) / 2));
    places
}
