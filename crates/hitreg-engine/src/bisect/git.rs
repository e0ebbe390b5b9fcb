//! Finds the commit after which a game plays a log differently. Commits are built in worktrees beside the user's own. An
//! interrupted search resumes from its saved state.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::search::{CandidateSearch, SearchSpace};
use super::{BisectResult, BuildJudge, OlderBranch, StepProgress};
use crate::build::condition::BuildAnswer;
use crate::build::git::{Repository, make};
use crate::build::{Build, UntestableBuild};
use crate::{BuildOutcome, EngineError, check};
use hitreg_log::store::{self, FolderError, LockedFolder, OwnFolder, Target};
use hitreg_log::trace::{Digest, Trace};

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
    pub search_key: &'a str,
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
            folder: state.folder.folder(),
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
            verify_ends: false,
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
        let branches = found.unsearched.iter().flat_map(|branch| [&branch.base, &branch.tip]);
        let skipped = found.skipped.iter().map(|skipped| &skipped.name);
        let named = ends.chain(&found.candidates).chain(branches).chain(skipped);
        let subject = |commit: &String| Ok((commit.clone(), repository.subject(commit)?));
        found.subjects = named.map(subject).collect::<Result<_, EngineError>>()?;
        found.subject = found.first_bad.as_ref().and_then(|bad| found.subjects.get(bad)).cloned();
        found.resumed = (resumed > 0).then_some(resumed);
        repository.remove_worktrees(state.folder.folder().path())?;
        state.folder.remove()?;
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
            self.search_key,
        )
    }
}

/// Builds and judges commits, several at a time, each in its own worktree.
struct WorktreePool<'a> {
    repository: &'a Repository,
    /// The folder for worktrees and traces. They are removed when the search ends.
    folder: &'a OwnFolder,
    build_cmd: &'a str,
    artifact: &'a Path,
    time_limit: Duration,
    /// Serializes git's changes to worktrees.
    git: Mutex<()>,
}

impl SearchSpace for WorktreePool<'_> {
    type Item = String;

    fn between(&self, bad: &String, goods: &[String]) -> Result<Vec<String>, EngineError> {
        Ok(self.repository.candidates(bad, goods)?)
    }

    fn in_order(&self, bad: &String, goods: &[String]) -> Result<Vec<String>, EngineError> {
        Ok(self.repository.candidates_in_order(bad, goods)?)
    }

    /// The first good parent of the first bad commit, or the newest good commit if no parent could be judged.
    fn last_good(&self, bad: &String, goods: &[String]) -> Result<String, EngineError> {
        match self.repository.parents(bad)?.into_iter().find(|parent| goods.contains(parent)) {
            Some(parent) => Ok(parent),
            None => Ok(self.repository.newest(goods)?.unwrap_or_else(|| goods[0].clone())),
        }
    }

    fn untried_parents(&self, bad: &String, goods: &[String]) -> Result<Vec<String>, EngineError> {
        let mut parents = self.repository.parents(bad)?;
        parents.retain(|parent| !goods.contains(parent));
        let mut untried = Vec::new();
        for parent in parents {
            // A parent on an older branch, or one that the good end contains, says nothing about `bad`.
            let bases = self.repository.merge_bases(&goods[0], &parent)?;
            if !bases.is_empty() && bases.iter().all(|base| goods.contains(base)) {
                untried.push(parent);
            }
        }
        Ok(untried)
    }

    fn older_branches(&self, bad: &String, goods: &[String]) -> Result<Vec<OlderBranch<String>>, EngineError> {
        let mut branches = Vec::new();
        for tip in self.repository.older_branches(bad, goods)? {
            let bases = self.repository.merge_bases(&goods[0], &tip)?;
            branches.extend(bases.into_iter().map(|base| OlderBranch { base, tip: tip.clone() }));
        }
        Ok(branches)
    }

    fn name(&self, commit: &String) -> String {
        commit.clone()
    }

    /// Builds a commit in the worktree of the slot's number.
    fn build(&self, commit: &String, judge: &BuildJudge<'_>, slot: usize) -> BuildOutcome<Build> {
        let worktree = self.folder.path().join(format!("worktree-{slot}"));
        let artifact = worktree.join(self.artifact);
        let alone = self.git.lock().unwrap_or_else(PoisonError::into_inner);
        self.repository.check_out(&worktree, commit, &artifact)?;
        drop(alone);
        let made = make(&worktree, self.build_cmd, self.time_limit, &judge.runner.stop).and_then(|()| {
            let because = |error| UntestableBuild::because(format!("after the build command: {error}"));
            Build::at(&artifact).map_err(because)
        });
        let has_submodules = worktree.join(".gitmodules").exists();
        Ok(EngineError::check_machine(judge.request.log, made)?
            .map_err(|untestable| if has_submodules { with_submodules_missing(untestable) } else { untestable }))
    }

    /// The trace of a commit: the saved one, or a new one.
    fn trace(&self, commit: &String, judge: &BuildJudge<'_>, slot: usize) -> BuildOutcome<Trace> {
        if let Ok(trace) = store::read_trace_within(judge.runner.memory, self.trace_file(commit).path()) {
            return Ok(Ok(trace));
        }
        match self.build(commit, judge, slot)? {
            Ok(build) => self.new_trace(commit, judge, &build),
            Err(untestable) => Ok(Err(untestable)),
        }
    }

    /// Keeps the trace, which shows what changed in the final result. A build without a trace can still be judged by the
    /// command.
    fn keep(&self, commit: &String, judge: &BuildJudge<'_>, build: &Build) -> Result<(), EngineError> {
        self.new_trace(commit, judge, build).map(drop)
    }
}

impl WorktreePool<'_> {
    /// Makes the trace of a commit, and saves it. A commit may change only files that the build reads, so a trace from
    /// the cache could be another commit's.
    fn new_trace(&self, commit: &str, judge: &BuildJudge<'_>, build: &Build) -> BuildOutcome<Trace> {
        let made = judge.fresh_trace(build)?;
        if let Ok(trace) = &made {
            store::save_trace(&self.trace_file(commit), trace)?;
        }
        Ok(made)
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

/// The folder of one search: answers, traces and worktrees.
struct SearchState {
    folder: LockedFolder,
    search: String,
}

#[derive(Serialize, Deserialize)]
struct SavedSearch {
    /// A description of the search, for people who open the file.
    search: String,
    /// The answers by commit, in the order of the trials.
    answers: Vec<(String, BuildAnswer)>,
}

impl SearchState {
    /// Opens the state of the search with this description, with the saved answers of an earlier run.
    fn open(
        cache: &Path,
        search: &str,
        restart: bool,
    ) -> Result<(SearchState, Vec<(String, BuildAnswer)>), EngineError> {
        let folder = cache.join("bisect").join(Digest::of_bytes(search.as_bytes()).to_string());
        let folder = LockedFolder::open(&folder)?;
        if restart {
            folder.remove_ending_in("hittrace")?;
        }
        // A state file that cannot be read is ignored, and the search starts from the beginning.
        let before = store::read_bytes(folder.folder().file("state.json").path()).ok();
        let before = before.and_then(|bytes| serde_json::from_slice::<SavedSearch>(&bytes).ok());
        let answers = before.filter(|file| !restart && file.search == search).map(|file| file.answers);
        Ok((SearchState { folder, search: search.to_owned() }, answers.unwrap_or_default()))
    }

    fn save(&self, answers: &[(String, BuildAnswer)]) -> Result<(), EngineError> {
        let file = SavedSearch { search: self.search.clone(), answers: answers.to_vec() };
        let text = serde_json::to_vec_pretty(&file).map_err(|source| FolderError::Io {
            folder: self.folder.folder().path().to_owned(),
            source: source.into(),
        })?;
        Ok(store::save_bytes(&self.folder.folder().file("state.json"), &text)?)
    }
}

impl From<FolderError> for EngineError {
    fn from(error: FolderError) -> EngineError {
        match error {
            FolderError::Taken { folder } => EngineError::unsuitable(
                &folder,
                "the same search is already running in another process: wait for it, or name another folder with --cache",
            ),
            FolderError::Io { folder, source } => {
                let what = format!("the search cannot be saved here ({source}): name another folder with --cache");
                EngineError::unsuitable(&folder, what)
            }
        }
    }
}
