//! `hitreg bisect git`: the commit that made a game play a log otherwise.

use std::path::PathBuf;
use std::time::Duration;

use super::found::{Found, Verdict};
use super::judge::{Answer, Judge, Sought};
use super::search::choose;
use super::state::State;
use crate::build::git::{GitError, Repository, make};
use crate::build::{Build, Request, Untestable};
use crate::cli::diff::running::{Running, parse_seconds};
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files};
use crate::trace::Trace;

/// How long a build command may take when nothing else is asked for.
const BUILD_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Find the commit from which on a game plays a log otherwise
///
/// Commits are built in a worktree of their own in the cache folder: your checkout, your index and HEAD stay as they
/// are, so you may go on working. GOOD is taken for good and BAD for bad; of 100 commits about 7 are built. A commit that
/// does not build, or whose build cannot play the log, is skipped.
///
/// A run that was killed goes on where it was when it is started again in the same words.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect git match.hitlog v1.0..HEAD \\
      --build-cmd 'cargo build --release' --artifact target/release/game
  hitreg bisect git match.hitlog v1.0..HEAD --on hits \\
      --build-cmd make --artifact game
  hitreg bisect git match.hitlog v1.0.. --build-cmd make --artifact game \\
      --while '{build} verify {}'")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The range of commits
    #[arg(value_name = "GOOD..BAD")]
    range: String,
    /// The shell command that builds a commit; it runs at the top of a worktree
    #[arg(long, value_name = "CMD")]
    build_cmd: String,
    /// Where the build is then, from the top of the worktree
    #[arg(long, value_name = "PATH")]
    artifact: PathBuf,
    /// The repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repo: PathBuf,
    /// A build command that takes longer makes the commit untestable [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    build_time_limit: Option<Duration>,
    /// Forget what an earlier run of this search had found
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    sought: Sought,
    #[command(flatten)]
    running: Running,
}

impl From<GitError> for Trouble {
    fn from(error: GitError) -> Trouble {
        Trouble::Request(error.to_string())
    }
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    if args.artifact.is_absolute() {
        let what = "--artifact is a path from the top of the worktree, such as target/release/game";
        return Err(Trouble::Request(what.to_owned()));
    }
    let log = files::read_log(&args.log)?;
    let repository = Repository::at(&args.repo)?;
    let (good, bad) = repository.range(&args.range)?;
    let request = Request { log: &args.log, log_digest: log.digest, options: &[] };
    let judge = args.sought.judge(&args.running, request)?;
    let search = format!(
        "{} {good}..{bad} with {:?} giving {} on log {}, looking for {}",
        repository.folder().display(),
        args.build_cmd,
        args.artifact.display(),
        log.digest,
        args.sought.words(),
    );
    let state = State::open(&args.running.folder(), &search, args.restart)?;
    let resumed = state.answers().len();
    let commits = repository.candidates(&bad, std::slice::from_ref(&good))?.len() as u64;
    let progress = Progress::of_things("bisecting", u64::from((commits + 1).ilog2()) + 1);
    let mut bisection = Bisection { args, repository, judge, state, good, bad, reference: None, progress };
    let mut found = bisection.run()?;
    found.resumed = (resumed > 0).then_some(resumed);
    let Bisection { repository, state, progress, .. } = bisection;
    drop(progress);
    repository.remove(&state.worktree())?;
    state.forget()?;
    output.show(&found, |page| found.print(page, "commit"))?;
    Ok(found.outcome())
}

struct Bisection<'a> {
    args: &'a Args,
    repository: Repository,
    judge: Judge<'a>,
    state: State,
    good: String,
    bad: String,
    /// The good end's trace.
    reference: Option<Trace>,
    progress: Progress,
}

impl Bisection<'_> {
    fn run(&mut self) -> Result<Found, Trouble> {
        if self.judge.compares() {
            match self.trace(&self.good.clone())? {
                Ok(trace) => self.reference = Some(trace),
                Err(untestable) => {
                    return Ok(
                        self.cannot_say(&format!("{}, with which all others are compared: {untestable}", self.good))
                    );
                }
            }
        }
        let mut bad = self.bad.clone();
        let candidates = loop {
            let mut left = self.repository.candidates(&bad, &self.goods())?;
            let between = left.len();
            left.retain(|commit| self.state.answer_of(commit).is_none());
            let Some(commit) = choose(&left, between - left.len()) else {
                break self.repository.candidates(&bad, &self.goods())?;
            };
            if self.answer(commit)? == Answer::Bad {
                bad = commit.clone();
            }
            self.progress.one_done();
        };
        if bad == self.bad {
            // An end that nobody has looked at is no answer.
            match self.answer(&bad)? {
                Answer::Bad => {}
                Answer::Good => {
                    return Ok(Found { last_good: Some(bad), ..Found::of(Verdict::NoneIsBad, self.state.answers()) });
                }
                Answer::Untestable(why) => {
                    return Ok(self.cannot_say(&format!("{bad}, on which the answer rests: {why}")));
                }
            }
        }
        self.found(&bad, candidates)
    }

    /// All commits that are known to be good.
    fn goods(&self) -> Vec<String> {
        let good = self.state.answers().iter().filter(|(_, answer)| *answer == Answer::Good);
        [&self.good].into_iter().chain(good.map(|(commit, _)| commit)).cloned().collect()
    }

    fn found(&mut self, bad: &str, skipped: Vec<String>) -> Result<Found, Trouble> {
        let verdict = if skipped.is_empty() { Verdict::Found } else { Verdict::Range };
        let parent = self.repository.parent(bad)?;
        let goods = self.goods();
        // Where what leads to the first bad commit could not be judged, the last of the others is the last good one.
        let good = match parent.filter(|parent| goods.contains(parent)) {
            Some(parent) => parent,
            None => self.repository.newest(&goods)?.unwrap_or_else(|| self.good.clone()),
        };
        let mut found = Found {
            first_bad: Some(bad.to_owned()),
            last_good: Some(good.clone()),
            subject: Some(self.repository.subject(bad)?),
            candidates: skipped.into_iter().chain([bad.to_owned()]).collect(),
            ..Found::of(verdict, self.state.answers())
        };
        if let (Ok(good), Ok(bad)) = (self.trace(&good)?, self.trace(bad)?) {
            found.compare(&good, &bad);
        }
        Ok(found)
    }

    fn answer(&mut self, commit: &str) -> Result<Answer, Trouble> {
        if let Some(answer) = self.state.answer_of(commit) {
            return Ok(answer.clone());
        }
        let answer = match self.reference.take() {
            Some(good) => {
                let answer = self.compared(&good, commit);
                self.reference = Some(good);
                answer?
            }
            None => self.asked(commit)?,
        };
        self.state.remember(commit, answer.clone())?;
        Ok(answer)
    }

    fn compared(&self, good: &Trace, commit: &str) -> Result<Answer, Trouble> {
        match self.trace(commit)? {
            Ok(trace) => self.judge.compare(good, &trace),
            Err(untestable) => Ok(Answer::Untestable(untestable)),
        }
    }

    fn asked(&self, commit: &str) -> Result<Answer, Trouble> {
        let build = match self.build(commit)? {
            Ok(build) => build,
            Err(untestable) => return Ok(Answer::Untestable(untestable)),
        };
        let answer = self.judge.ask(build.path())?;
        // Its trace shows in the end what changed; a build that gives none may still be asked.
        if let Ok(trace) = self.judge.trace(&build) {
            self.state.keep_trace(commit, &trace)?;
        }
        Ok(answer.unwrap_or_else(|| Answer::Untestable(Untestable::because("there is nothing to judge it by"))))
    }

    /// A commit's trace: an earlier one, or by building it.
    fn trace(&self, commit: &str) -> Result<Result<Trace, Untestable>, Trouble> {
        if let Some(trace) = self.state.trace(commit) {
            return Ok(Ok(trace));
        }
        let made = match self.build(commit)? {
            Ok(build) => self.judge.trace(&build),
            Err(untestable) => Err(untestable),
        };
        if let Ok(trace) = &made {
            self.state.keep_trace(commit, trace)?;
        }
        Ok(made)
    }

    fn build(&self, commit: &str) -> Result<Result<Build, Untestable>, Trouble> {
        let worktree = self.state.worktree();
        let artifact = worktree.join(&self.args.artifact);
        // What an earlier commit has left must not be taken for what this one builds.
        let _ = std::fs::remove_file(&artifact);
        self.repository.check_out(&worktree, commit)?;
        let limit = self.args.build_time_limit.unwrap_or(BUILD_TIME_LIMIT);
        if let Err(untestable) = make(&worktree, &self.args.build_cmd, limit) {
            return Ok(Err(untestable));
        }
        Ok(Build::at(&artifact).map_err(|error| Untestable::because(format!("after the build command: {error}"))))
    }

    fn cannot_say(&self, reason: &str) -> Found {
        Found { untestable: Some(reason.to_owned()), ..Found::of(Verdict::Untestable, self.state.answers()) }
    }
}
