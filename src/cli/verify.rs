//! `hitreg verify`: checks that this build, or another, still replays each log as recorded and as accepted.

mod junit;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::builds::parse_seconds;
use super::corpus::{CorpusArgs, CorpusBar, ResultArgs, WorkerArgs, of_one_side, outcome, summary_of};
use super::output::Output;
use super::outputs::OutputPath;
use super::progress::Stopwatch;
use super::trouble::CommandError;
use super::{CommandOutcome, CommandResult, files, interrupt};
use crate::build::{Build, BuildRunner, TIME_LIMIT};
use crate::corpus::{CorpusRun, CorpusSummary, JudgedLog, LogRow, VerifiedCorpus};
use crate::engine::{Engine, EngineError, Games};
use crate::store::{self, FileType};
use crate::verify::{GoldenUpdate, LogReport, LogVerdict, VerifyOptions};

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
/// A log in which nothing happened is untestable, and so are a log with a missing part and a golden without a log. The
/// worst verdict sets the exit code: broken 128, differs 1, untestable 125, same or accepted 0.
#[derive(clap::Args)]
#[command(
    mut_arg("max", of_one_side),
    after_long_help = "\
Examples:
  hitreg verify match.hitlog
  hitreg verify match.hitlog --accept             writes match.golden
  hitreg verify fixtures --accept --rerecord      after an intended change
  hitreg verify fixtures --junit report.xml       every *.hitlog below fixtures
  hitreg verify fixtures --build ./game           a game in any language
  hitreg verify corpus --partition slice:2/4
  git bisect run sh -c 'cargo build --release || exit 125
      target/release/hitreg verify ../match.hitlog'"
)]
pub(super) struct Args {
    /// Logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
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
    /// Treat a log without a golden as untestable
    #[arg(long)]
    require_golden: bool,
    /// The build that replays: any program that runs `replay LOG -o TRACE` [default: this one]
    #[arg(long, value_name = "BUILD", conflicts_with = "rollback")]
    build: Option<PathBuf>,
    /// Time limit of a build for one log; a build that takes longer is untestable [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, requires = "build", conflicts_with_all = ["rollback", "whole"])]
    time_limit: Option<Duration>,
    /// Judge the logs of a build again, also with --results, because it may depend on files that hitreg does not check
    #[arg(long, requires = "build", conflicts_with_all = ["rollback", "whole"])]
    no_cache: bool,
    /// Every N ticks, restore the state of N ticks before, run those ticks again, and compare
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rollback: Option<u32>,
    /// Replay logs with keyframes completely, twice, and compare the traces
    #[arg(long, conflicts_with = "build")]
    whole: bool,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<OutputPath>,
    /// Print only logs that are not the same
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print for each log its counts and the compared replays, also with several logs
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    results: ResultArgs,
}

#[derive(Serialize)]
struct VerifyReport {
    verdict: LogVerdict,
    logs: Vec<LogReport>,
    /// Goldens without a log.
    #[serde(serialize_with = "crate::store::shown::paths")]
    orphans: Vec<PathBuf>,
    summary: CorpusSummary,
}

/// The most logs of which each that is the same has its own line.
const LISTED_LOGS: usize = 20;

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
    let markdown = args.results.checks.target(output)?;
    let reports = args.results.reports(output)?;
    let corpus = args.corpus.corpus(&args.logs)?;
    let share = args.corpus.share()?;
    let orphans = if share.is_none() { orphans(&args.logs)? } else { Vec::new() };
    let build = args.build.as_deref().map(Build::at).transpose().map_err(EngineError::from)?;
    let (name, digest) = args.results.build(build.as_ref(), args.no_cache)?;
    let results = args.results.folder(share)?;
    // Without a build and results, Ctrl-C ends this build's own replays at once.
    let stop = if build.is_some() || results.is_some() { interrupt::stop()? } else { Default::default() };
    let runner = BuildRunner {
        time_limit: args.time_limit.unwrap_or(TIME_LIMIT),
        cache: None,
        stop: stop.clone(),
        memory: games.memory(),
    };
    let (watch, progress) = (Stopwatch::start(), CorpusBar::new("verifying", corpus.logs.len()));
    let verify = VerifyOptions {
        build: build.as_ref(),
        keep,
        needs_golden: args.require_golden,
        rollback_every: args.rollback,
        whole: args.whole,
        clock: &|| watch.elapsed_s(),
    };
    let style = show::Verbosity { quiet: args.quiet, verbose: args.verbose, program, build: args.build.as_deref() };
    let about = LogRow {
        command: "verify".to_owned(),
        build: name,
        build_digest: digest.clone().unwrap_or_default(),
        options: args.options(),
        ..LogRow::default()
    };
    let next =
        |report: &LogReport| show::next(report, &style).into_iter().next().map_or(String::new(), |(_, next)| next);
    let engine = Engine { runner, ..files::engine(games) };
    let judge = VerifiedCorpus::new(&verify, &engine, &corpus.logs, (about, digest.is_some()), &next)?;
    let run = CorpusRun { threads: args.workers.threads(), results, stop: &stop };
    let judged = run.judge(&corpus.logs, &judge, &|log| progress.log_judged(log))?;
    drop(progress);
    let mut summary = summary_of(&judged, &corpus.problems);
    summary.problems.extend(args.results.write_reports(reports.as_ref(), &summary)?);
    let checks = &args.results.checks;
    let thresholds = checks.report_corpus(markdown.as_ref(), &mut summary)?;
    let logs: Vec<LogReport> = judged.logs.into_iter().map(JudgedLog::verified).collect();
    let lone = (!orphans.is_empty()).then_some(LogVerdict::Untestable);
    let worst = logs.iter().map(|log| log.verdict).chain(lone).max().unwrap_or(LogVerdict::Untestable);
    let report = VerifyReport { verdict: worst, logs, orphans, summary };
    if let Some(target) = &junit {
        junit::write(target, &report.logs, &report.orphans, &report.summary)?;
    }
    let has_page = report.logs.len() > LISTED_LOGS || args.results.is_given() || args.corpus.takes_a_part();
    let of_logs = match worst {
        LogVerdict::Same | LogVerdict::Accepted => CommandOutcome::Done,
        LogVerdict::Differs => CommandOutcome::Differs,
        LogVerdict::Untestable => CommandOutcome::Untestable,
        LogVerdict::Broken => CommandOutcome::Trouble,
    };
    let outcomes = [of_logs, thresholds, outcome(&report.summary, None)];
    let rank = [CommandOutcome::Trouble, CommandOutcome::Differs, CommandOutcome::Untestable];
    let outcome = rank.into_iter().find(|outcome| outcomes.contains(outcome)).unwrap_or(CommandOutcome::Done);
    let has_passed = outcome == CommandOutcome::Done;
    output.show(&report, |page| show::print(page, &report, &style, (has_page, has_passed)))?;
    Ok(outcome)
}

impl Args {
    /// The options that change verdicts, as on the command line.
    fn options(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.rollback.map(|every| format!("--rollback {every}")));
        words.extend(self.whole.then(|| "--whole".to_owned()));
        words.extend(self.require_golden.then(|| "--require-golden".to_owned()));
        words.extend(self.time_limit.map(|limit| format!("--time-limit {}", limit.as_secs_f64())));
        words.join(" ")
    }
}

/// The goldens below directories that have no log beside them.
fn orphans(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut orphans = Vec::new();
    for directory in paths.iter().filter(|path| path.is_dir()) {
        let goldens = store::files_below(directory, "golden")?;
        orphans.extend(goldens.into_iter().filter(|golden| !golden.with_extension("hitlog").exists()));
    }
    Ok(orphans)
}
