//! Judges builds: a build is bad if it plays the log differently from the good one, or if a command says so.

use super::search::Probe;
use crate::build::condition::{BuildAnswer, Condition};
use crate::build::{Build, BuildRequest, BuildRunner, StopSignal, UntestableBuild};
use crate::engine::repeated::{disagreement, only_once};
use crate::engine::{BuildOutcome, EngineError};
use hitreg_analysis::diff::{DiffOptions, TraceVerdict, diff};
use hitreg_log::trace::Trace;

/// Judges builds by one log.
#[derive(Clone, Debug)]
pub struct BuildJudge<'a> {
    condition: Option<Condition>,
    options: DiffOptions,
    pub(super) runner: BuildRunner,
    pub(super) request: BuildRequest<'a>,
    /// An estimate of what the log's trace takes in memory.
    trace_bytes: usize,
}

/// The number of traces that a search holds: the first build's, those of both ends, and the one that is judged.
const HELD: usize = 4;

impl<'a> BuildJudge<'a> {
    /// Creates a judge. It judges by the command if there is one, and otherwise compares traces of about `trace_bytes`.
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
            let needs = |source| EngineError::NeedsMemory { path: request.log.to_owned(), source };
            runner.memory.check(trace_bytes.saturating_mul(HELD)).map_err(needs)?;
        }
        Ok(BuildJudge { condition, options, runner, request, trace_bytes })
    }

    /// The number of builds that the memory limit allows to run at once, at most `wanted`.
    pub(super) fn room(&self, wanted: usize) -> usize {
        match self.compares() {
            true => {
                (self.runner.memory.bytes() / self.trace_bytes.max(1)).saturating_sub(HELD - 1).clamp(1, wanted.max(1))
            }
            false => wanted,
        }
    }

    /// A copy of this judge that `stop` stops.
    pub(super) fn under(&self, stop: &StopSignal) -> Self {
        BuildJudge { runner: BuildRunner { stop: stop.clone(), ..self.runner.clone() }, ..self.clone() }
    }

    /// Whether this judge compares traces, and so needs the trace of the good build.
    pub(super) fn compares(&self) -> bool {
        self.condition.is_none()
    }

    pub(super) fn trace(&self, build: &Build) -> BuildOutcome<Trace> {
        EngineError::check_machine(self.request.log, self.runner.trace(build, &self.request))
    }

    /// Judges a build by comparing its trace with the good one.
    pub(super) fn compare(&self, good: &Trace, trace: &Trace) -> Result<BuildAnswer, EngineError> {
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

    /// Replays the log again, never from the cache. Returns why the build cannot be judged, if the trace is not the first one.
    pub(super) fn repeat(&self, build: &Build, first: &Trace) -> Result<Option<UntestableBuild>, EngineError> {
        let fresh = BuildRunner { cache: None, ..self.runner.clone() };
        match EngineError::check_machine(self.request.log, fresh.trace(build, &self.request))? {
            Ok(again) => disagreement(first, &again, &self.options),
            Err(untestable) => Ok(Some(UntestableBuild { reason: only_once(&untestable.reason), ..untestable })),
        }
    }

    /// Runs a build: judges it with the command, or makes its trace if there is no command.
    pub(super) fn probe(&self, build: &Build) -> Result<Probe, EngineError> {
        let Some(condition) = &self.condition else { return Ok(self.trace(build)?.map_err(BuildAnswer::Untestable)) };
        Ok(Err(condition.ask(&self.runner, self.request.log, Some(build.path()))?))
    }
}
