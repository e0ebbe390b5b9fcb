//! `hitreg verify`: does this build still make of each log what was recorded, and what was accepted?

mod junit;
mod partition;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::figures::{count, counted};
use super::games::Games;
use super::output::Output;
use super::page::{BAD, Cell, GOOD, PLAIN, Page, UNSURE};
use super::progress::Progress;
use super::replay::exercised;
use super::trouble::Trouble;
use super::{Outcome, files};
use crate::replay::Options;
use crate::store;
use crate::summary::Exercised;
use crate::verify::{THREADS, Verdict, Verified, judge};
use partition::Partition;

/// Check that this build replays logs as recorded, and as accepted
///
/// Each log is replayed with 1 and with 2 threads. The replays must be the same as each other, tick by tick the same as the
/// hashes in the log, and the same as the golden beside it (LOG with the ending .golden), where there is one. A golden
/// is a text file to be read in reviews: digests, counts, and every shot in words. --accept writes it.
///
/// What was exercised is printed. A log in which nothing happened is untestable, not the same. The worst verdict decides the
/// exit code: broken 128, differs 1, untestable 125, same 0.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg verify match.hitlog
  hitreg verify match.hitlog --accept       take what comes out as its golden
  hitreg verify fixtures --junit report.xml       every *.hitlog below fixtures
  hitreg verify corpus --partition slice:2/4
  git bisect run sh -c 'cargo build --release || exit 125
      target/release/hitreg verify match.hitlog'")]
pub(super) struct Args {
    /// Logs, or directories that stand for every *.hitlog below them
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Take what comes out as the new golden of each log
    #[arg(long)]
    accept: bool,
    /// Every N ticks restore the world as it was saved N ticks before, run them again, and compare
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rollback: Option<u32>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Only the k-th of n parts of the logs, to share them among machines
    #[arg(long, value_name = "slice:K/N")]
    partition: Option<Partition>,
    /// How many logs are verified at the same time (default: one for each core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Serialize)]
struct Report {
    verdict: Verdict,
    logs: Vec<LogReport>,
}

/// What was found about one log.
#[derive(Serialize)]
struct LogReport {
    path: PathBuf,
    verdict: Verdict,
    digest: Option<String>,
    exercised: Exercised,
    hashes_compared: u64,
    rollbacks: u32,
    golden: Golden,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// What was done with the golden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Golden {
    /// There is none.
    None,
    /// The replay was compared with it.
    Compared,
    /// It was written.
    Accepted,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let logs = partition::select(&args.logs, args.partition.as_ref())?;
    let progress = Progress::of_things("verifying", logs.len() as u64);
    let pool = thread_pool(args.threads.map_or(0, usize::from))?;
    let results: Vec<LogReport> = pool.install(|| {
        let verify = |path: &PathBuf| {
            let report = verify(games, args, path);
            progress.one_done();
            report
        };
        logs.par_iter().map(verify).collect::<Result<_, _>>()
    })?;
    drop(progress);
    let worst = results.iter().map(|log| log.verdict).max().unwrap_or(Verdict::Untestable);
    let report = Report { verdict: worst, logs: results };
    if let Some(path) = &args.junit {
        junit::write(path, &report.logs)?;
    }
    output.show(&report, |page| print(page, &report))?;
    Ok(match worst {
        Verdict::Same => Outcome::Done,
        Verdict::Differs => Outcome::Differs,
        Verdict::Untestable => Outcome::Untestable,
        Verdict::Broken => Outcome::Trouble,
    })
}

fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, Trouble> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Trouble::Request(format!("{threads} threads are not to be had: {error}")))
}

fn verify(games: &Games, args: &Args, path: &Path) -> Result<LogReport, Trouble> {
    let log = match files::read_log(path) {
        Ok(log) => log,
        Err(trouble) => {
            let what = match trouble {
                Trouble::File { what, .. } => what.to_string(),
                other => other.to_string(),
            };
            return Ok(LogReport::new(path, Verified::without_replay(Verdict::Broken, what), Golden::None));
        }
    };
    let game = match games.of(&log.session) {
        Ok(game) => game,
        Err(error) => {
            let unknown = Verified::without_replay(Verdict::Untestable, error.to_string());
            return Ok(LogReport::new(path, unknown, Golden::None));
        }
    };
    let options = Options { rollback_every: args.rollback, ..Options::default() };
    let pools = THREADS.map(thread_pool);
    let mut replays = Vec::with_capacity(THREADS.len());
    for pool in pools {
        replays.push(pool?.install(|| game.replay(&log.session, &options, &mut |_| {})));
    }
    let replays = replays.into_iter().collect::<Result<Vec<_>, _>>();
    let golden_path = path.with_extension("golden");
    let golden = if args.accept { None } else { read_golden(&golden_path)? };
    let verified = judge(replays, golden.as_deref());
    let mut used = if verified.golden_compared { Golden::Compared } else { Golden::None };
    // Nothing that differs from its own log, or exercised nothing, is worth accepting.
    if let (true, Verdict::Same, Some(text)) = (args.accept, verified.verdict, &verified.golden) {
        store::save_bytes(&golden_path, text.as_bytes())?;
        used = Golden::Accepted;
    }
    Ok(LogReport::new(path, verified, used))
}

fn read_golden(path: &Path) -> Result<Option<String>, Trouble> {
    if !path.exists() {
        return Ok(None);
    }
    let text = String::from_utf8(store::read_bytes(path)?);
    text.map(Some).map_err(|_| Trouble::file(path, "this golden is not text; `--accept` writes a new one"))
}

impl LogReport {
    fn new(path: &Path, verified: Verified, golden: Golden) -> LogReport {
        LogReport {
            path: path.to_owned(),
            verdict: verified.verdict,
            digest: verified.digest.map(|digest| digest.to_string()),
            exercised: verified.exercised,
            hashes_compared: verified.hashes_compared,
            rollbacks: verified.rollbacks,
            golden,
            detail: verified.detail,
        }
    }

    fn compared(&self) -> String {
        let golden = match self.golden {
            Golden::None => "no golden",
            Golden::Compared => "its golden",
            Golden::Accepted => "golden accepted",
        };
        let mut parts = vec![format!("{} replays", THREADS.len()), counted(self.hashes_compared, "recorded state")];
        if self.rollbacks > 0 {
            parts.push(counted(u64::from(self.rollbacks), "rollback"));
        }
        parts.push(golden.to_owned());
        parts.join(", ")
    }
}

/// The name that output uses.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Untestable => "untestable",
        Verdict::Differs => "differs",
        Verdict::Broken => "broken",
    }
}

fn print(page: &mut Page, report: &Report) {
    for log in &report.logs {
        let style = match log.verdict {
            Verdict::Same => GOOD,
            Verdict::Untestable => UNSURE,
            Verdict::Differs | Verdict::Broken => BAD,
        };
        page.parts(vec![
            Cell::styled(style, format!("{:<11}", word(log.verdict))),
            log.path.display().to_string().into(),
        ]);
        if log.digest.is_some() {
            page.paragraph(11, &exercised(&log.exercised));
            page.paragraph(11, &format!("compared: {}", log.compared()));
        }
        if let Some(detail) = &log.detail {
            print_detail(page, detail);
        }
    }
    page.blank();
    page.line(&tally(&report.logs));
}

/// A sentence, or a sentence and a diff, whose lines stay as they are.
fn print_detail(page: &mut Page, detail: &str) {
    const MOST_LINES: usize = 30;
    let mut lines = detail.lines();
    if let Some(first) = lines.next() {
        page.paragraph(11, first);
    }
    let rest: Vec<&str> = lines.collect();
    for line in rest.iter().take(MOST_LINES) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            Some(_) | None => PLAIN,
        };
        page.styled(style, &format!("  {line}"));
    }
    if rest.len() > MOST_LINES {
        page.paragraph(2, &format!("({} more lines in --format json)", count((rest.len() - MOST_LINES) as u64)));
    }
}

fn tally(logs: &[LogReport]) -> String {
    let number = |verdict| logs.iter().filter(|log| log.verdict == verdict).count() as u64;
    let verdicts = [Verdict::Same, Verdict::Differs, Verdict::Untestable, Verdict::Broken];
    let parts: Vec<String> = verdicts
        .into_iter()
        .filter(|verdict| number(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(number(verdict)), word(verdict)))
        .collect();
    format!("{}: {}", counted(logs.len() as u64, "log"), parts.join(", "))
}
