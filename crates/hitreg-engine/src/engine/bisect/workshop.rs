//! Builds commits in worktrees beside the user's own, and keeps the resulting traces.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::judge::BuildJudge;
use super::search::{Probe, SearchSpace};
use crate::build::condition::BuildAnswer;
use crate::build::git::{GitError, Repository, make};
use crate::build::{Build, UntestableBuild};
use crate::engine::{BuildOutcome, EngineError};
use hitreg_log::store::{self, OwnFolder, Target};
use hitreg_log::trace::Trace;

/// Builds and judges commits, several at a time, each in its own worktree.
pub(super) struct WorktreePool<'a> {
    pub(super) repository: &'a Repository,
    pub(super) judge: &'a BuildJudge<'a>,
    /// The folder for worktrees and traces. They are removed when the search ends.
    pub(super) folder: OwnFolder,
    pub(super) build_cmd: &'a str,
    pub(super) artifact: &'a Path,
    pub(super) time_limit: Duration,
    /// Serializes git's changes to worktrees.
    pub(super) git: Mutex<()>,
}

impl SearchSpace for WorktreePool<'_> {
    type Item = String;

    fn between(&self, bad: &String, goods: &[String]) -> Result<Vec<String>, EngineError> {
        Ok(self.repository.candidates(bad, goods)?)
    }

    /// The parent of the first bad commit, or the newest good commit if the parent could not be judged.
    fn last_good(&self, bad: &String, goods: &[String]) -> Result<String, EngineError> {
        match self.repository.parent(bad)?.filter(|parent| goods.contains(parent)) {
            Some(parent) => Ok(parent),
            None => Ok(self.repository.newest(goods)?.unwrap_or_else(|| goods[0].clone())),
        }
    }

    /// Builds a commit in the worktree of the slot's number, and judges it.
    fn probe(&self, commit: &String, judge: &BuildJudge<'_>, slot: usize) -> Result<Probe, EngineError> {
        if judge.compares() {
            return Ok(self.trace_in(judge, commit, slot)?.map_err(BuildAnswer::Untestable));
        }
        let build = match self.build(judge, commit, slot)? {
            Ok(build) => build,
            Err(untestable) => return Ok(Err(BuildAnswer::Untestable(untestable))),
        };
        let probed = judge.probe(&build)?;
        // The trace shows what changed in the final result. A build without a trace can still be judged by the command.
        if let Ok(trace) = judge.trace(&build)? {
            self.keep_trace(commit, &trace)?;
        }
        Ok(probed)
    }

    fn trace(&self, commit: &String) -> BuildOutcome<Trace> {
        self.trace_in(self.judge, commit, 0)
    }

    fn repeat(&self, commit: &String, first: &Trace) -> Result<Option<UntestableBuild>, EngineError> {
        match self.build(self.judge, commit, 0)? {
            Ok(build) => self.judge.repeat(&build, first),
            Err(untestable) => Ok(Some(untestable)),
        }
    }

    fn name(&self, commit: &String) -> String {
        commit.clone()
    }
}

impl WorktreePool<'_> {
    /// The trace of a commit: the saved one, or a new one.
    fn trace_in(&self, judge: &BuildJudge<'_>, commit: &str, worktree: usize) -> BuildOutcome<Trace> {
        if let Ok(trace) = store::read_trace_within(self.judge.runner.memory, self.trace_file(commit).path()) {
            return Ok(Ok(trace));
        }
        let made = match self.build(judge, commit, worktree)? {
            Ok(build) => judge.trace(&build)?,
            Err(untestable) => Err(untestable),
        };
        if let Ok(trace) = &made {
            self.keep_trace(commit, trace)?;
        }
        Ok(made)
    }

    fn build(&self, judge: &BuildJudge<'_>, commit: &str, worktree: usize) -> BuildOutcome<Build> {
        let worktree = self.folder.path().join(format!("worktree-{worktree}"));
        let artifact = worktree.join(self.artifact);
        self.check_out(&worktree, &artifact, commit)?;
        let made = make(&worktree, self.build_cmd, self.time_limit, &judge.runner.stop).and_then(|()| {
            let because = |error| UntestableBuild::because(format!("after the build command: {error}"));
            Build::at(&artifact).map_err(because)
        });
        let has_submodules = worktree.join(".gitmodules").exists();
        Ok(made.map_err(|untestable| if has_submodules { with_submodules_missing(untestable) } else { untestable }))
    }

    fn check_out(&self, worktree: &Path, artifact: &Path, commit: &str) -> Result<(), GitError> {
        let _alone = self.git.lock().unwrap_or_else(PoisonError::into_inner);
        self.repository.check_out(worktree, commit, artifact)
    }

    fn keep_trace(&self, commit: &str, trace: &Trace) -> Result<(), EngineError> {
        Ok(store::save_trace(&self.trace_file(commit), trace)?)
    }

    fn trace_file(&self, commit: &str) -> Target {
        self.folder.file(&format!("{commit}.hittrace"))
    }
}

/// Adds how to get the submodules, which git does not check out in a worktree.
fn with_submodules_missing(untestable: UntestableBuild) -> UntestableBuild {
    let reason = format!(
        "{}; the worktree has no submodules: begin --build-cmd with `git submodule update --init -q && `",
        untestable.reason
    );
    UntestableBuild { reason, ..untestable }
}
