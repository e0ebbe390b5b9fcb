//! `hitreg bisect git`: the commit that made a game play a log otherwise.

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use super::ahead::Ahead;
use super::found::{Found, Verdict};
use super::judge::{Answer, Sought};
use super::search::choose;
use super::state::State;
use super::workshop::{Probed, Workshop};
use crate::build::git::{GitError, Repository};
use crate::build::{Request, Stop, Untestable};
use crate::cli::diff::running::{Running, parse_jobs, parse_seconds};
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files, interrupt};
use crate::trace::Trace;

/// How long a build command may take when nothing else is asked for.
const BUILD_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Find the commit from which on a game plays a log otherwise
///
/// Commits are built in a worktree of their own in the cache folder: your checkout, your index and HEAD stay as they
/// are, so you may go on working. GOOD is taken for good and BAD for bad; of 100 commits about 7 are built. A commit that
/// does not build, or whose build cannot play the log, is skipped.
///
/// A run that was killed or interrupted goes on where it was when it is started again in the same words.
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
    /// Build so many commits at the same time, in a worktree each: the one that the search waits for, and those that
    /// it may need next. Most build commands keep all cores busy by themselves
    #[arg(long, value_name = "N", value_parser = parse_jobs, default_value = "1")]
    jobs: NonZero<usize>,
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
    let mut state = State::open(&args.running.folder(), &search, args.restart)?;
    let resumed = state.answers().len();
    let commits = repository.candidates(&bad, std::slice::from_ref(&good))?.len() as u64;
    let progress = Progress::of_things("bisecting", u64::from((commits + 1).ilog2()) + 1);
    let workshop = Workshop {
        repository: &repository,
        judge: &judge,
        folder: state.folder().to_owned(),
        build_cmd: &args.build_cmd,
        artifact: &args.artifact,
        time_limit: args.build_time_limit.unwrap_or(BUILD_TIME_LIMIT),
        git: Mutex::default(),
    };
    let probe = |commit: &String, stop: &Stop, place: usize| workshop.probe(commit, stop, place);
    let jobs = args.jobs.get();
    let found = std::thread::scope(|scope| {
        let ahead = Ahead::new(scope, &probe, judge.stop(), jobs);
        let (workshop, state, progress) = (&workshop, &mut state, &progress);
        Bisection { workshop, state, ahead, jobs, asked: 0, good, bad, reference: None, progress }.run()
    });
    // Whatever git or a build said after Ctrl-C, it said because of that.
    interrupt::check(judge.stop()).map_err(|_| Trouble::Interrupted { resumes: true })?;
    let mut found = found?;
    found.resumed = (resumed > 0).then_some(resumed);
    drop(progress);
    state.forget()?;
    repository.forget_missing_worktrees()?;
    output.show(&found, |page| found.print(page, "commit"))?;
    Ok(found.outcome())
}

struct Bisection<'a, 'scope, 'env> {
    workshop: &'a Workshop<'a>,
    state: &'a mut State,
    ahead: Ahead<'scope, 'env, String, Result<Probed, Trouble>>,
    jobs: usize,
    /// How many commits the search has asked for.
    asked: usize,
    good: String,
    bad: String,
    /// The good end's trace.
    reference: Option<Trace>,
    progress: &'a Progress,
}

impl Bisection<'_, '_, '_> {
    fn run(mut self) -> Result<Found, Trouble> {
        if self.workshop.judge.compares() {
            let next = self.next(&self.bad)?;
            match self.probe(&self.good.clone(), &next)? {
                Probed::Trace(Ok(trace)) => self.reference = Some(trace),
                Probed::Trace(Err(untestable)) | Probed::Answer(Answer::Untestable(untestable)) => {
                    let found = self.so_far(Verdict::Untestable);
                    return Ok(found.rests_on(&self.good, "with which all others are compared", &untestable));
                }
                Probed::Answer(Answer::Good | Answer::Bad) => {}
            }
        }
        let mut bad = self.bad.clone();
        let candidates = loop {
            let next = self.next(&bad)?;
            let Some(commit) = next.first() else { break self.candidates(&bad, &self.goods())? };
            if self.answer(commit, &next)? == Answer::Bad {
                bad = commit.clone();
            }
            self.progress.one_done();
        };
        if bad == self.bad {
            // An end that nobody has looked at is no answer.
            match self.answer(&bad, &[])? {
                Answer::Bad => {}
                Answer::Good => return Ok(Found { last_good: Some(bad), ..self.so_far(Verdict::NoneIsBad) }),
                Answer::Untestable(why) => {
                    return Ok(self.so_far(Verdict::Untestable).rests_on(&bad, "on which the answer rests", &why));
                }
            }
        }
        self.found(&bad, candidates)
    }

    /// The commit to try next, then those that may be tried after it, as many as can run at the same time.
    fn next(&self, bad: &str) -> Result<Vec<String>, Trouble> {
        let most = self.jobs + self.ahead.waiting();
        let mut next: Vec<String> = Vec::new();
        let mut told = VecDeque::from([(bad.to_owned(), self.goods())]);
        while next.len() < most {
            let Some((bad, goods)) = told.pop_front() else { break };
            let mut left = self.candidates(&bad, &goods)?;
            let between = left.len();
            left.retain(|commit| self.state.answer_of(commit).is_none());
            let Some(commit) = choose(&left, between - left.len()) else { continue };
            told.push_back((commit.clone(), goods.clone()));
            told.push_back((bad, goods.into_iter().chain([commit.clone()]).collect()));
            if !next.contains(commit) {
                next.push(commit.clone());
            }
        }
        Ok(next)
    }

    fn candidates(&self, bad: &str, goods: &[String]) -> Result<Vec<String>, Trouble> {
        Ok(self.workshop.repository.candidates(bad, goods)?)
    }

    /// All commits that are known to be good.
    fn goods(&self) -> Vec<String> {
        let good = self.state.answers().iter().filter(|(_, answer)| *answer == Answer::Good);
        [&self.good].into_iter().chain(good.map(|(commit, _)| commit)).cloned().collect()
    }

    fn found(&mut self, bad: &str, skipped: Vec<String>) -> Result<Found, Trouble> {
        let verdict = if skipped.is_empty() { Verdict::Found } else { Verdict::Range };
        let repository = self.workshop.repository;
        let parent = repository.parent(bad)?;
        let goods = self.goods();
        // Where what leads to the first bad commit could not be judged, the last of the others is the last good one.
        let good = match parent.filter(|parent| goods.contains(parent)) {
            Some(parent) => parent,
            None => repository.newest(&goods)?.unwrap_or_else(|| self.good.clone()),
        };
        let mut found = Found {
            first_bad: Some(bad.to_owned()),
            last_good: Some(good.clone()),
            subject: Some(repository.subject(bad)?),
            candidates: skipped.into_iter().chain([bad.to_owned()]).collect(),
            ..self.so_far(verdict)
        };
        // Nothing that still runs ahead may be in the way.
        self.ahead.end();
        if let (Ok(good), Ok(bad)) = (self.workshop.trace_of(&good)?, self.workshop.trace_of(bad)?) {
            found.compare(&good, &bad);
        }
        Ok(found)
    }

    fn answer(&mut self, commit: &str, next: &[String]) -> Result<Answer, Trouble> {
        if let Some(answer) = self.state.answer_of(commit) {
            return Ok(answer.clone());
        }
        let answer = match (self.probe(commit, next)?, &self.reference) {
            (Probed::Answer(answer), _) => answer,
            (Probed::Trace(Ok(trace)), Some(good)) => self.workshop.judge.compare(good, &trace)?,
            (Probed::Trace(Err(untestable)), _) => Answer::Untestable(untestable),
            (Probed::Trace(Ok(_)), None) => Answer::Untestable(Untestable::because("there is nothing to judge it by")),
        };
        self.state.remember(commit, answer.clone())?;
        Ok(answer)
    }

    /// Waits for one commit, while others that may be needed next are built beside it.
    fn probe(&mut self, commit: &str, next: &[String]) -> Result<Probed, Trouble> {
        let probed = self.ahead.get(&commit.to_owned(), next);
        self.asked += 1;
        // What was cut off says nothing, and is not to be remembered.
        interrupt::check(self.workshop.judge.stop())?;
        probed
    }

    fn so_far(&self, verdict: Verdict) -> Found {
        let in_vain = self.ahead.begun().saturating_sub(self.asked);
        Found { speculative: Some(in_vain), ..Found::of(verdict, self.state.answers()) }
    }
}
