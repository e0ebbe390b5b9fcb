//! Finds the commit after which a game plays a log differently.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::StepProgress;
use super::ahead::ProbePool;
use super::judge::{BuildAnswer, BuildJudge};
use super::result::{BisectResult, SearchVerdict};
use super::search::choose;
use super::state::SearchState;
use super::workshop::{CommitProbe, WorktreePool};
use crate::build::git::Repository;
use crate::build::{StopSignal, UntestableBuild};
use crate::engine::{EngineError, check};
use hitreg_log::trace::Trace;

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
            return Err(EngineError::AbsoluteArtifact);
        }
        let repository = Repository::at(self.repository)?;
        let (good, bad) = repository.range(self.range)?;
        let mut state = SearchState::open(self.folder, &self.words(judge, &repository, &good, &bad), self.restart)?;
        let resumed = state.answers().len();
        let commits = repository.candidates(&bad, std::slice::from_ref(&good))?.len() as u64;
        let most = u64::from((commits + 1).ilog2()) + 1;
        let workshop = WorktreePool {
            repository: &repository,
            judge,
            folder: state.folder().to_owned(),
            build_cmd: self.build_cmd,
            artifact: self.artifact,
            time_limit: self.build_time_limit,
            git: Mutex::default(),
        };
        let probe = |commit: &String, stop: &StopSignal, place: usize| workshop.probe(commit, stop, place);
        let found = std::thread::scope(|scope| {
            let ahead = ProbePool::new(scope, &probe, judge.stop(), judge.room(self.jobs));
            let (workshop, state, jobs) = (&workshop, &mut state, self.jobs);
            GitBisection { workshop, state, ahead, jobs, asked: 0, good, bad, reference: None, steps, most }.run()
        });
        // An error of git or a build after a stop is a consequence of the stop.
        check(judge.stop()).map_err(|_| EngineError::Stopped { resumes: true })?;
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
            judge.log_digest(),
            self.sought,
        )
    }
}

struct GitBisection<'a, 'scope, 'env> {
    workshop: &'a WorktreePool<'a>,
    state: &'a mut SearchState,
    ahead: ProbePool<'scope, 'env, String, Result<CommitProbe, EngineError>>,
    jobs: usize,
    /// The number of commits that the search asked for.
    asked: usize,
    good: String,
    bad: String,
    /// The trace of the good end.
    reference: Option<Trace>,
    steps: &'a StepProgress<'a>,
    /// The estimated number of steps.
    most: u64,
}

impl GitBisection<'_, '_, '_> {
    fn run(mut self) -> Result<BisectResult, EngineError> {
        if self.workshop.judge.compares() {
            let next = self.next(&self.bad)?;
            match self.probe(&self.good.clone(), &next)? {
                CommitProbe::Trace(Ok(trace)) => self.reference = Some(trace),
                CommitProbe::Trace(Err(untestable)) | CommitProbe::Answer(BuildAnswer::Untestable(untestable)) => {
                    let found = self.so_far(SearchVerdict::Untestable);
                    return Ok(found.rests_on(&self.good, "the reference for all others", &untestable));
                }
                CommitProbe::Answer(BuildAnswer::Good | BuildAnswer::Bad) => {}
            }
        }
        let mut bad = self.bad.clone();
        let mut tried = 0;
        let candidates = loop {
            let next = self.next(&bad)?;
            let Some(commit) = next.first() else { break self.candidates(&bad, &self.goods())? };
            if self.answer(commit, &next)? == BuildAnswer::Bad {
                bad = commit.clone();
            }
            tried += 1;
            (self.steps)(tried, self.most);
        };
        if bad == self.bad {
            // An end that was only assumed must be tried before it becomes part of the answer.
            match self.answer(&bad, &[])? {
                BuildAnswer::Bad => {}
                BuildAnswer::Good => {
                    return Ok(BisectResult { last_good: Some(bad), ..self.so_far(SearchVerdict::NoneIsBad) });
                }
                BuildAnswer::Untestable(why) => {
                    return Ok(self.so_far(SearchVerdict::Untestable).rests_on(&bad, "which decides the answer", &why));
                }
            }
        }
        self.found(&bad, candidates)
    }

    /// The commit to try next, then speculative ones, up to the number of free slots.
    fn next(&self, bad: &str) -> Result<Vec<String>, EngineError> {
        let most = self.workshop.judge.room(self.jobs + self.ahead.waiting());
        let mut next: Vec<String> = Vec::new();
        let mut ranges = VecDeque::from([(bad.to_owned(), self.goods())]);
        while next.len() < most {
            let Some((bad, goods)) = ranges.pop_front() else { break };
            let mut left = self.candidates(&bad, &goods)?;
            let between = left.len();
            left.retain(|commit| self.state.answer_of(commit).is_none());
            let Some(commit) = choose(&left, between - left.len()) else { continue };
            ranges.push_back((commit.clone(), goods.clone()));
            ranges.push_back((bad, goods.into_iter().chain([commit.clone()]).collect()));
            if !next.contains(commit) {
                next.push(commit.clone());
            }
        }
        Ok(next)
    }

    fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, EngineError> {
        Ok(self.workshop.repository.candidates(bad, goods)?)
    }

    /// All commits that are known to be good.
    fn goods(&self) -> Vec<String> {
        let good = self.state.answers().iter().filter(|(_, answer)| *answer == BuildAnswer::Good);
        [&self.good].into_iter().chain(good.map(|(commit, _)| commit)).cloned().collect()
    }

    fn found(&mut self, bad: &str, skipped: Vec<String>) -> Result<BisectResult, EngineError> {
        let verdict = if skipped.is_empty() { SearchVerdict::Found } else { SearchVerdict::Range };
        let repository = self.workshop.repository;
        let parent = repository.parent(bad)?;
        let goods = self.goods();
        // If the parent of the first bad commit could not be judged, report the newest good commit.
        let good = match parent.filter(|parent| goods.contains(parent)) {
            Some(parent) => parent,
            None => repository.newest(&goods)?.unwrap_or_else(|| self.good.clone()),
        };
        let mut found = BisectResult {
            first_bad: Some(bad.to_owned()),
            last_good: Some(good.clone()),
            candidates: skipped.into_iter().chain([bad.to_owned()]).collect(),
            ..self.so_far(verdict)
        };
        // Stop speculative builds before the traces are made.
        self.ahead.end();
        if let (Ok(good), Ok(bad)) = (self.workshop.trace_of(&good)?, self.workshop.trace_of(bad)?) {
            found.compare(&good, &bad);
        }
        Ok(found)
    }

    fn answer(&mut self, commit: &str, next: &[String]) -> Result<BuildAnswer, EngineError> {
        if let Some(answer) = self.state.answer_of(commit) {
            return Ok(answer.clone());
        }
        let answer = match (self.probe(commit, next)?, &self.reference) {
            (CommitProbe::Answer(answer), _) => answer,
            (CommitProbe::Trace(Ok(trace)), Some(good)) => self.workshop.judge.compare(good, &trace)?,
            (CommitProbe::Trace(Err(untestable)), _) => BuildAnswer::Untestable(untestable),
            (CommitProbe::Trace(Ok(_)), None) => {
                BuildAnswer::Untestable(UntestableBuild::because("there is nothing to judge it by"))
            }
        };
        self.state.remember(commit, answer.clone())?;
        Ok(answer)
    }

    /// Waits for the probe of one commit, while speculative builds run beside it.
    fn probe(&mut self, commit: &str, next: &[String]) -> Result<CommitProbe, EngineError> {
        let probed = self.ahead.get(&commit.to_owned(), next);
        self.asked += 1;
        // The result of a stopped probe is invalid and must not be saved.
        check(self.workshop.judge.stop())?;
        probed
    }

    fn so_far(&self, verdict: SearchVerdict) -> BisectResult {
        let in_vain = self.ahead.begun().saturating_sub(self.asked);
        BisectResult { speculative: Some(in_vain), ..BisectResult::of(verdict, self.state.answers()) }
    }
}
