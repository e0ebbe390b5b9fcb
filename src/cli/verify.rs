//! `hitreg verify`: checks that this build, or another, still replays each log as recorded and as accepted.

mod junit;
mod partition;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::diff::running::parse_seconds;
use super::output::Output;
use super::outputs::OutputPath;
use super::progress::{Progress, Stopwatch};
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult, files, interrupt};
use crate::build::{Build, BuildRunner, StopSignal, TIME_LIMIT};
use crate::engine::{EngineError, Games};
use crate::store::FileType;
use crate::verify::{GoldenUpdate, LogReport, LogVerdict, ReplayRunner, VerifyOptions};
use partition::Partition;
pub(super) use show::MOST_LINES;

/// Check that this build replays logs as recorded, and as accepted
///
/// Each log is replayed twice, with 1 and with 2 threads. Both replays must be identical, and match the recorded state
/// hash of every tick. If there is a golden beside the log (LOG with the extension .golden), they must match it, too.
///
/// A log with keyframes is replayed once, in parts from one keyframe to a later one. Each part must end in the recorded
/// state. --whole replays it like any other log.
///
/// A golden is a text file for code reviews: digests, counts, and a line for every shot. --accept writes it, and shows
/// the changes. --propose writes LOG.golden.new beside it for `hitreg review`. After an intended change of the
/// simulation, --rerecord also records the log again.
///
/// A log in which nothing happened is untestable, and so is a log with a missing part. The worst verdict sets the exit
/// code: broken 128, differs 1, untestable 125, same or accepted 0.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg verify match.hitlog
  hitreg verify match.hitlog --accept             writes match.golden
  hitreg verify fixtures --accept --rerecord      after an intended change
  hitreg verify fixtures --junit report.xml       every *.hitlog below fixtures
  hitreg verify fixtures --build ./game           a game in any language
  hitreg verify corpus --partition slice:2/4
  git bisect run sh -c 'cargo build --release || exit 125
      target/release/hitreg verify ../match.hitlog'")]
pub(super) struct Args {
    /// Logs, or directories to search for *.hitlog
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Write the golden of each log from this replay
    #[arg(long)]
    accept: bool,
    /// Write LOG.golden.new beside each golden that differs, for `hitreg review`
    #[arg(long, conflicts_with = "accept")]
    propose: bool,
    /// If recorded states differ, record the log again from its input and links; with --accept or --propose
    #[arg(long)]
    rerecord: bool,
    /// Treat a log without a golden as untestable, and a golden without a log, too
    #[arg(long)]
    require_golden: bool,
    /// The build that replays: any program that runs `replay LOG -o TRACE` [default: this one]
    #[arg(long, value_name = "BUILD", conflicts_with = "rollback")]
    build: Option<PathBuf>,
    /// Time limit of a build for one log; a build that takes longer is untestable [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, requires = "build", conflicts_with_all = ["rollback", "whole"])]
    time_limit: Option<Duration>,
    /// Every N ticks, restore the state of N ticks before, run those ticks again, and compare
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rollback: Option<u32>,
    /// Replay logs with keyframes completely, twice, and compare the traces
    #[arg(long, conflicts_with = "build")]
    whole: bool,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<OutputPath>,
    /// Verify only part K of N, to distribute logs over machines
    #[arg(long, value_name = "slice:K/N")]
    partition: Option<Partition>,
    /// Number of logs to verify in parallel [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print only logs that are not the same
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print for each log its counts and the compared replays, also with several logs
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Serialize)]
struct VerifyReport {
    verdict: LogVerdict,
    logs: Vec<LogReport>,
    /// Goldens without a log.
    #[serde(serialize_with = "crate::store::shown::paths")]
    orphans: Vec<PathBuf>,
}

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    output.check_text_option("quiet", args.quiet)?;
    output.check_text_option("verbose", args.verbose)?;
    let junit = output.files.target_if(&args.junit, FileType::Junit)?;
    let keep = match (args.accept, args.propose, args.rerecord) {
        (true, _, rerecord) => GoldenUpdate::Accept { rerecord },
        (false, true, rerecord) => GoldenUpdate::Propose { rerecord },
        (false, false, false) => GoldenUpdate::Nothing,
        // A default from the config file applies where a golden is written.
        (false, false, true) if !output.is_typed("rerecord", true) => GoldenUpdate::Nothing,
        (false, false, true) => {
            let what = "--rerecord needs --accept, which writes log and golden, or --propose";
            return Err(CommandError::request(what));
        }
    };
    let logs = partition::select(&args.logs, args.partition.as_ref())?;
    let orphans = if args.partition.is_none() { partition::orphans(&args.logs)? } else { Vec::new() };
    let build = args.build.as_deref().map(Build::at).transpose().map_err(EngineError::from)?;
    // Ctrl-C ends this build's own replays at once.
    let stop = if build.is_some() { interrupt::stop()? } else { StopSignal::default() };
    let runner =
        BuildRunner { time_limit: args.time_limit.unwrap_or(TIME_LIMIT), cache: None, stop, memory: games.memory() };
    let (watch, progress) = (Stopwatch::start(), Progress::of_things("verifying", logs.len() as u64));
    let verify = VerifyOptions {
        player: build.as_ref().map_or(ReplayRunner::Own, |build| ReplayRunner::Build(build, &runner)),
        keep,
        needs_golden: args.require_golden,
        rollback_every: args.rollback,
        whole: args.whole,
        threads: args.threads.map_or(0, usize::from),
        clock: &|| watch.elapsed_s(),
    };
    let results = verify.logs(&files::engine(games), &logs, &|| progress.one_done())?;
    drop(progress);
    let lone = (args.require_golden && !orphans.is_empty()).then_some(LogVerdict::Untestable);
    let worst = results.iter().map(|log| log.verdict).chain(lone).max().unwrap_or(LogVerdict::Untestable);
    let report = VerifyReport { verdict: worst, logs: results, orphans };
    if let Some(target) = &junit {
        junit::write(target, &report.logs)?;
    }
    let style = show::Verbosity { quiet: args.quiet, verbose: args.verbose, program, build: args.build.as_deref() };
    output.show(&report, |page| show::print(page, &report, &style))?;
    Ok(match worst {
        LogVerdict::Same | LogVerdict::Accepted => CommandOutcome::Done,
        LogVerdict::Differs => CommandOutcome::Differs,
        LogVerdict::Untestable => CommandOutcome::Untestable,
        LogVerdict::Broken => CommandOutcome::Trouble,
    })
}

/// The verdict's name in the output.
fn word(verdict: LogVerdict) -> &'static str {
    match verdict {
        LogVerdict::Same => "same",
        LogVerdict::Accepted => "accepted",
        LogVerdict::Untestable => "untestable",
        LogVerdict::Differs => "differs",
        LogVerdict::Broken => "broken",
    }
}
