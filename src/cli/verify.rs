//! `hitreg verify`: does this build still make of each log what was recorded, and what was accepted?

mod junit;
mod partition;

use std::path::PathBuf;

use serde::Serialize;

use super::figures::{count, counted};
use super::output::Output;
use super::outputs::OutPath;
use super::page::{BAD, Cell, GOOD, PLAIN, Page, UNSURE};
use super::progress::Progress;
use super::replay::exercised;
use super::trouble::Trouble;
use super::{Outcome, files};
use crate::engine::{Games, Golden, LogReport, Verify};
use crate::store::Kind;
use crate::verify::{THREADS, Verdict};
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
    junit: Option<OutPath>,
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

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let junit = args.junit.as_ref().map(|path| output.files.target(path, Kind::Junit)).transpose()?;
    let logs = partition::select(&args.logs, args.partition.as_ref())?;
    let progress = Progress::of_things("verifying", logs.len() as u64);
    let verify =
        Verify { accept: args.accept, rollback_every: args.rollback, threads: args.threads.map_or(0, usize::from) };
    let results = verify.logs(&files::engine(games), &logs, &|| progress.one_done())?;
    drop(progress);
    let worst = results.iter().map(|log| log.verdict).max().unwrap_or(Verdict::Untestable);
    let report = Report { verdict: worst, logs: results };
    if let Some(target) = &junit {
        junit::write(target, &report.logs)?;
    }
    output.show(&report, |page| print(page, &report))?;
    Ok(match worst {
        Verdict::Same => Outcome::Done,
        Verdict::Differs => Outcome::Differs,
        Verdict::Untestable => Outcome::Untestable,
        Verdict::Broken => Outcome::Trouble,
    })
}

fn compared(log: &LogReport) -> String {
    let golden = match log.golden {
        Golden::None => "no golden",
        Golden::Compared => "its golden",
        Golden::Accepted => "golden accepted",
    };
    let mut parts = vec![format!("{} replays", THREADS.len()), counted(log.hashes_compared, "recorded state")];
    if log.rollbacks > 0 {
        parts.push(counted(u64::from(log.rollbacks), "rollback"));
    }
    parts.push(golden.to_owned());
    parts.join(", ")
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
            page.paragraph(11, &format!("compared: {}", compared(log)));
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
