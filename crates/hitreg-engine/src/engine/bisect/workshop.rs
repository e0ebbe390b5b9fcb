//! Builds commits in worktrees beside the user's own, and keeps the resulting traces.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::judge::{BuildAnswer, BuildJudge};
use crate::build::git::{GitError, Repository, make};
use crate::build::{Build, StopSignal, UntestableBuild};
use crate::engine::EngineError;
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

/// The result of building and judging one commit.
pub(super) enum CommitProbe {
    /// The trace of the log, or why there is none. The search compares it.
    Trace(Result<Trace, UntestableBuild>),
    /// The answer of the judge's command.
    Answer(BuildAnswer),
}

impl WorktreePool<'_> {
    /// Builds a commit in the worktree of this number, and judges it.
    pub(super) fn probe(&self, commit: &str, stop: &StopSignal, worktree: usize) -> Result<CommitProbe, EngineError> {
        let judge = self.judge.under(stop);
        if judge.compares() {
            return Ok(CommitProbe::Trace(self.trace(&judge, commit, worktree)?));
        }
        let build = match self.build(&judge, commit, worktree)? {
            Ok(build) => build,
            Err(untestable) => return Ok(CommitProbe::Answer(BuildAnswer::Untestable(untestable))),
        };
        let answer = judge.ask(build.path())?;
        // The trace shows what changed in the final result. A build without a trace can still be judged by the command.
        if let Ok(trace) = judge.trace(&build)? {
            self.keep_trace(commit, &trace)?;
        }
        let nothing = || BuildAnswer::Untestable(UntestableBuild::because("there is nothing to judge it by"));
        Ok(CommitProbe::Answer(answer.unwrap_or_else(nothing)))
    }

    /// The trace of a commit: the saved one, or a new one if no other build is running.
    pub(super) fn trace_of(&self, commit: &str) -> Result<Result<Trace, UntestableBuild>, EngineError> {
        self.trace(self.judge, commit, 0)
    }

    fn trace(
        &self,
        judge: &BuildJudge<'_>,
        commit: &str,
        worktree: usize,
    ) -> Result<Result<Trace, UntestableBuild>, EngineError> {
        if let Ok(trace) = store::read_trace_within(self.judge.memory(), self.trace_file(commit).path()) {
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

    fn build(
        &self,
        judge: &BuildJudge<'_>,
        commit: &str,
        worktree: usize,
    ) -> Result<Result<Build, UntestableBuild>, EngineError> {
        let worktree = self.folder.path().join(format!("worktree-{worktree}"));
        let artifact = worktree.join(self.artifact);
        self.check_out(&worktree, &artifact, commit)?;
        if let Err(untestable) = make(&worktree, self.build_cmd, self.time_limit, judge.stop()) {
            return Ok(Err(untestable));
        }
        Ok(Build::at(&artifact).map_err(|error| UntestableBuild::because(format!("after the build command: {error}"))))
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
