//! Finds the commit after which a game plays a log differently.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::StepProgress;
use super::judge::BuildJudge;
use super::result::BisectResult;
use super::search::{CandidateSearch, EndChecks};
use super::state::SearchState;
use super::workshop::WorktreePool;
use crate::build::git::Repository;
use crate::engine::{EngineError, check};

/// A search in a range of commits. It assumes that the first is good and the last is bad. Commits are built in
/// worktrees beside the user's own. An interrupted search resumes when it is run again.
#[derive(Clone, Copy, Debug)]
pub struct GitSearch<'a> {
    /// A folder inside the repository.
    pub repository: &'a Path,
    /// `GOOD..BAD`.
    pub range: &'a str,
    /// The shell command that builds a commit. It runs at the top of a worktree.
    pub build_cmd: &'a str,
    /// The path of the built executable, relative to the top of the worktree.
    pub artifact: &'a Path,
    /// The time limit of a build command. A commit that takes longer is untestable.
    pub build_time_limit: Duration,
    /// The number of commits that are built at the same time, each in its own worktree.
    pub jobs: usize,
    /// The folder for worktrees, traces and answers. They are removed when the search ends.
    pub folder: &'a Path,
    /// Discard the saved answers of an earlier run of this search.
    pub restart: bool,
    /// A text that identifies what this search looks for, and distinguishes it from other searches.
    pub sought: &'a str,
}

impl GitSearch<'_> {
    /// Runs the search, and calls `steps` after each judged commit.
    ///
    /// # Errors
    /// Fails if git, the folder or the judge's command fails, or the job was stopped. A commit that does not build is
    /// not an error.
    pub fn run(&self, judge: &BuildJudge<'_>, steps: &StepProgress<'_>) -> Result<BisectResult, EngineError> {
        if self.artifact.is_absolute() {
            let what = "--artifact must be relative to the top of the worktree, such as target/release/game";
            return Err(EngineError::Request(what.to_owned()));
        }
        let repository = Repository::at(self.repository)?;
        let (good, bad) = repository.range(self.range)?;
        let words = self.words(judge, &repository, &good, &bad);
        let (state, answers) = SearchState::open(self.folder, &words, self.restart)?;
        let resumed = answers.len();
        let commits = repository.candidates(&bad, std::slice::from_ref(&good))?.len() as u64;
        let workshop = WorktreePool {
            repository: &repository,
            judge,
            folder: state.folder().to_owned(),
            build_cmd: self.build_cmd,
            artifact: self.artifact,
            time_limit: self.build_time_limit,
            git: Mutex::default(),
        };
        let search = CandidateSearch {
            space: &workshop,
            judge,
            jobs: self.jobs,
            ends: [good, bad],
            end_checks: EndChecks::BadIfNeeded,
            answers,
            save: &|answers| state.save(answers),
            steps,
            most: u64::from((commits + 1).ilog2()) + 1,
        };
        let found = search.run();
        // An error of git or a build after a stop is a consequence of the stop.
        check(&judge.runner.stop).map_err(|_| EngineError::Stopped { resumes: true })?;
        let mut found = found?;
        let ends = found.first_bad.iter().chain(&found.last_good);
        let named = ends.chain(&found.candidates).chain(found.skipped.iter().map(|skipped| &skipped.name));
        let subject = |commit: &String| Ok((commit.clone(), repository.subject(commit)?));
        found.subjects = named.map(subject).collect::<Result<_, EngineError>>()?;
        found.subject = found.first_bad.as_ref().and_then(|bad| found.subjects.get(bad)).cloned();
        found.resumed = (resumed > 0).then_some(resumed);
        state.forget()?;
        repository.forget_missing_worktrees()?;
        Ok(found)
    }

    fn words(&self, judge: &BuildJudge<'_>, repository: &Repository, good: &str, bad: &str) -> String {
        format!(
            "{} {good}..{bad} with {:?} in {} s giving {} on log {}, looking for {}",
            repository.folder().display(),
            self.build_cmd,
            self.build_time_limit.as_secs_f64(),
            self.artifact.display(),
            judge.request.log_digest,
            self.sought,
        )
    }
}
