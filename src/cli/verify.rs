//! `hitreg verify` and `hitreg review`: check that a build still replays each log as recorded and as accepted.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

use super::builds::parse_seconds;
use super::corpus::{CorpusArgs, ORPHAN, ResultArgs, WorkerArgs, corpus_outcome, of_one_side, print_problems};
use super::diff::write_junit;
use super::figures::{count, counted};
use super::page::{Bad, Faint, Good, Page, Strong, TextSpan, Unsure};
use super::progress::Stopwatch;
use super::replay::exercised;
use super::trouble::engine_with_notes;
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputFormat, OutputPath, process};
use crate::build::{Build, BuildRunner, TIME_LIMIT};
use crate::corpus::{CorpusRun, CorpusSummary, JudgedLog, LogRow, VerifiedCorpus, name_of};
use crate::diff::TraceVerdict;
use crate::engine::{Engine, EngineError, Games};
use crate::golden::GoldenChange;
use crate::report::layout::WIDTH;
use crate::report::{corpus_page, verdict_line};
use crate::store::shown::shell_path;
use crate::store::{self, FileType, Target, is_standard_stream};
use crate::text_diff::{LineOrigin, TextDiff};
use crate::verify::{
    Golden, GoldenUpdate, LogReport, LogVerdict, Proposal, VerdictReason, VerifyOptions, proposals_below,
};

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

/// With more logs than this, logs that are the same have no line of their own.
const LISTED_LOGS: usize = 20;

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    output.check_text_option("quiet")?;
    output.check_text_option("verbose")?;
    let junit = output.files.target_if(&args.junit, FileType::Junit)?;
    let keep = args.golden_update(output)?;
    let markdown = args.results.checks.target(output)?;
    let reports = args.results.reports(output)?;
    let corpus = args.corpus.corpus(&args.logs);
    if let (Err(CommandError::EmptyShare { .. }), Some(target)) = (&corpus, &junit) {
        // A CI job collects the report of every share.
        write_report(target, &[], &[], &CorpusSummary::default())?;
    }
    let corpus = corpus?;
    let share = args.corpus.share()?;
    let orphans = if share.is_none() { orphans(&args.logs)? } else { Vec::new() };
    let build = args.build.as_deref().map(Build::at).transpose().map_err(EngineError::from)?;
    let (name, digest) = args.results.build(build.as_ref(), args.no_cache)?;
    let results = args.results.folder(share)?;
    // Without a build and results, Ctrl-C ends this build's own replays at once.
    let stop = if build.is_some() || results.is_some() { process::stop()? } else { Default::default() };
    let runner = BuildRunner {
        time_limit: args.time_limit.unwrap_or(TIME_LIMIT),
        cache: None,
        stop: stop.clone(),
        memory: games.memory(),
    };
    let watch = Stopwatch::start();
    let verify = VerifyOptions {
        build: build.as_ref(),
        keep,
        needs_golden: args.require_golden,
        rollback_every: args.rollback,
        whole: args.whole,
        clock: &|| watch.elapsed_s(),
    };
    let about = LogRow {
        command: "verify".to_owned(),
        build: name,
        build_digest: digest.clone().unwrap_or_default(),
        options: args.options(),
        ..LogRow::default()
    };
    let next = |report: &LogReport| {
        next_commands(report, args, program).into_iter().next().map_or(String::new(), |(_, next)| next)
    };
    let engine = Engine { runner, ..engine_with_notes(games) };
    let judge = VerifiedCorpus::new(&verify, &engine, &corpus.logs, about, digest.is_some(), &next)?;
    let run = CorpusRun { threads: args.workers.threads(), results, stop: &stop };
    let (judged, mut summary) = args.results.judge("verifying", run, &judge, &corpus, &orphans, reports.as_ref())?;
    args.results.checks.report_corpus(markdown.as_ref(), &mut summary)?;
    let logs: Vec<LogReport> = judged.logs.into_iter().map(JudgedLog::verified).collect();
    let lone = (!orphans.is_empty()).then_some(LogVerdict::Untestable);
    let verdict = logs.iter().map(|log| log.verdict).chain(lone).max().unwrap_or(LogVerdict::Untestable);
    let report = VerifyReport { verdict, logs, orphans, summary };
    if let Some(target) = &junit {
        write_report(target, &report.logs, &report.orphans, &report.summary)?;
    }
    let of_corpus = corpus_outcome(&report.summary, &report.summary.thresholds);
    let outcome = CommandOutcome::worst(&[log_outcome(verdict), of_corpus]);
    output.show(&report, |page| report.print(page, args, program, outcome))?;
    Ok(outcome)
}

fn log_outcome(verdict: LogVerdict) -> CommandOutcome {
    match verdict {
        LogVerdict::Same | LogVerdict::Accepted => CommandOutcome::Done,
        LogVerdict::Differs => CommandOutcome::Differs,
        LogVerdict::Untestable => CommandOutcome::Untestable,
        LogVerdict::Broken => CommandOutcome::Trouble,
    }
}

impl Args {
    fn golden_update(&self, output: &Output) -> Result<GoldenUpdate, CommandError> {
        match (self.accept, self.propose, self.rerecord) {
            (true, _, rerecord) => Ok(GoldenUpdate::Accept { rerecord }),
            (false, true, rerecord) => Ok(GoldenUpdate::Propose { rerecord }),
            (false, false, false) => Ok(GoldenUpdate::Nothing),
            // A default from the config file applies where a golden is written.
            (false, false, true) if !output.is_typed("rerecord") => Ok(GoldenUpdate::Nothing),
            (false, false, true) => {
                let what = "--rerecord needs --accept, which writes log and golden, or --propose";
                Err(CommandError::request(what))
            }
        }
    }

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

/// The goldens below directories that have no log beside them. The corpus has a problem for each unreadable directory.
fn orphans(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut orphans = Vec::new();
    for directory in paths.iter().filter(|path| path.is_dir()) {
        let goldens = store::listed_files_below(directory, &["golden"], &mut Vec::new())?;
        for golden in goldens.into_iter().filter(|golden| !golden.with_extension("hitlog").exists()) {
            if store::is_of(&golden, &FileType::Golden)? {
                orphans.push(golden);
            }
        }
    }
    Ok(orphans)
}

/// Writes the report. Every verdict that makes the command fail is a failure or an error. Logs that differ are failures;
/// broken and untestable logs are errors. A golden without a log is an error, because a test is missing. So is each of
/// the summary's problems besides the logs, such as a missing log of a manifest. An exceeded threshold is a failure, and
/// one without a measured value an error.
fn write_report(
    target: &Target,
    logs: &[LogReport],
    orphans: &[PathBuf],
    summary: &CorpusSummary,
) -> Result<(), CommandError> {
    let mut suite = TestSuite::new("hitreg verify");
    for log in logs {
        let mut case = TestCase::new(log.path.display().to_string(), junit_status(log));
        case.set_classname("hitreg.verify").set_time(Duration::from_secs_f64(log.seconds));
        if was_replayed(log) {
            case.set_system_out(exercised(&log.exercised));
        }
        suite.add_test_case(case);
    }
    let orphans = orphans.iter().map(|golden| (golden.display().to_string(), LogVerdict::Untestable, ORPHAN));
    let problems = summary.problems.iter().map(|problem| (problem.clone(), LogVerdict::Broken, problem.as_str()));
    let mut add = |name: String, mut status: TestCaseStatus, kind: &str, message: &str| {
        status.set_type(kind).set_message(message);
        let mut case = TestCase::new(name, status);
        case.set_classname("hitreg.verify");
        suite.add_test_case(case);
    };
    for (name, verdict, message) in orphans.chain(problems) {
        add(name, TestCaseStatus::non_success(NonSuccessKind::Error), &name_of(verdict), message);
    }
    for result in &summary.thresholds {
        let status = match result.verdict {
            TraceVerdict::Same => TestCaseStatus::success(),
            TraceVerdict::Differs => TestCaseStatus::non_success(NonSuccessKind::Failure),
            TraceVerdict::Untestable => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        add(format!("--max {}", result.threshold.figure.name()), status, &name_of(result.verdict), &result.text());
    }
    let mut report = Report::new("hitreg");
    report.add_test_suite(suite);
    write_junit(target, &report)
}

fn junit_status(log: &LogReport) -> TestCaseStatus {
    let mut status = match log.verdict {
        LogVerdict::Same | LogVerdict::Accepted => return TestCaseStatus::success(),
        LogVerdict::Differs => TestCaseStatus::non_success(NonSuccessKind::Failure),
        LogVerdict::Untestable | LogVerdict::Broken => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let detail = log.detail.as_deref().unwrap_or_default();
    let difference = log.difference.as_ref().map_or(String::new(), |difference| format!("\n{difference}"));
    status.set_type(name_of(log.verdict)).set_message(detail).set_description(format!("{detail}{difference}"));
    status
}

impl VerifyReport {
    /// Prints the logs, and then the page of the corpus, or only its first line. A quiet run prints it only if something
    /// failed.
    fn print(&self, page: &mut Page, args: &Args, program: &str, outcome: CommandOutcome) {
        let has_page = self.logs.len() > LISTED_LOGS || args.results.ask_for_page() || args.corpus.takes_a_part();
        let mut logs: Vec<&LogReport> = self.logs.iter().collect();
        logs.sort_by_key(|log| log.verdict);
        let is_long = args.verbose || logs.len() == 1;
        for log in logs {
            match log.verdict {
                LogVerdict::Same if args.quiet || has_page && !args.verbose => {}
                LogVerdict::Same if !is_long => print_line(page, log),
                _ => print_log(page, log, args, program),
            }
        }
        for golden in &self.orphans {
            page.parts(vec![TextSpan::styled(Unsure, "orphan     "), golden.display().to_string().into()]);
            page.paragraph(11, ORPHAN);
        }
        if !args.quiet || outcome != CommandOutcome::Done {
            page.blank();
            if has_page { page.append(corpus_page(&self.summary)) } else { page.line(&verdict_line(&self.summary)) }
        }
        if !has_page {
            for problem in &self.summary.problems {
                page.marked(0, Bad, &format!("problem    {problem}"));
            }
        }
    }
}

fn head_of(log: &LogReport) -> Vec<TextSpan> {
    let style = match log.verdict {
        LogVerdict::Same | LogVerdict::Accepted => Good,
        LogVerdict::Untestable => Unsure,
        LogVerdict::Differs | LogVerdict::Broken => Bad,
    };
    // JSON and JUnit reports always have the verdict's name.
    let word = if log.verdict == LogVerdict::Same { "ok".to_owned() } else { name_of(log.verdict) };
    vec![TextSpan::styled(style, format!("{word:<11}")), log.path.display().to_string().into()]
}

fn print_line(page: &mut Page, log: &LogReport) {
    let mut parts = head_of(log);
    let hits = log.exercised.hits.map_or("hits not known".to_owned(), |hits| counted(hits, "hit"));
    let figures = format!("{}, {hits}", counted(log.exercised.ticks, "tick"));
    let used: usize = parts.iter().map(|part| part.text.chars().count()).sum();
    if used + 2 + figures.len() > WIDTH {
        page.parts(parts);
        return page.faint(11, &figures);
    }
    parts.push(TextSpan::styled(Faint, format!("  {figures}")));
    page.parts(parts);
}

/// Whether the log was replayed, so that its counts are known.
fn was_replayed(log: &LogReport) -> bool {
    log.digest.is_some() || log.legs.is_some()
}

fn print_log(page: &mut Page, log: &LogReport, args: &Args, program: &str) {
    page.parts(head_of(log));
    if was_replayed(log) {
        page.paragraph(11, &exercised(&log.exercised));
        page.paragraph(11, &describe_comparison(log));
    }
    if let Some(detail) = &log.detail {
        page.paragraph(11, detail);
    }
    if let Some(difference) = &log.difference {
        page.text_diff(difference, DIFFERENCE_LINES_MAX, "in --format json");
    }
    for (label, next) in next_commands(log, args, program) {
        page.parts(vec![TextSpan::styled(Faint, format!("           {label}: ")), next.into()]);
    }
}

/// Whether `--accept` writes a golden: for a log that was judged, or that lacks only a golden.
fn takes_golden(log: &LogReport) -> bool {
    let is_accepted = log.verdict == LogVerdict::Same || log.why == Some(VerdictReason::NeedsGolden);
    is_accepted && !is_standard_stream(&log.path)
}

fn describe_comparison(log: &LogReport) -> String {
    let golden = match log.golden {
        Golden::None if takes_golden(log) => "no golden (create one with --accept)",
        Golden::None if log.why == Some(VerdictReason::NoGolden) => "no golden",
        Golden::None => match log.verdict {
            LogVerdict::Same | LogVerdict::Accepted => "no golden",
            LogVerdict::Differs => "no golden (none is written for a log that differs)",
            LogVerdict::Untestable => "no golden (none is written for an untestable log)",
            LogVerdict::Broken => "no golden (none is written for a broken log)",
        },
        Golden::Compared if log.why == Some(VerdictReason::Golden) || log.difference.is_some() => "golden compared",
        Golden::Compared => "golden matches",
        Golden::Accepted => "golden written",
        Golden::Rerecorded => "log and golden written",
        Golden::Proposed => "golden proposed",
    };
    let replays = match (log.legs, log.keyframes) {
        (Some(legs), Some(keyframes)) => {
            let keyframes = counted(keyframes as u64, "keyframe");
            format!("replayed once in {}, {keyframes} compared", counted(legs as u64, "part"))
        }
        _ if log.replays_differ || log.why == Some(VerdictReason::Replays) => {
            "replayed twice, with different results".to_owned()
        }
        _ => "replayed twice, identical".to_owned(),
    };
    let is_other =
        matches!(log.why, Some(VerdictReason::RecordedState | VerdictReason::Keyframe | VerdictReason::Replays));
    let outcome = if log.tick.is_some() || is_other { "compared" } else { "match the recording" };
    let states = match log.hashes_recorded {
        0 => "no tick hashes in the log".to_owned(),
        recorded => format!("{} of {} tick hashes {outcome}", count(log.hashes_compared), count(recorded)),
    };
    let rollbacks = (log.rollbacks > 0).then(|| counted(u64::from(log.rollbacks), "rollback"));
    let parts = [replays, states].into_iter().chain(rollbacks).chain([golden.to_owned()]);
    parts.collect::<Vec<_>>().join("; ")
}

/// The maximum number of lines of a golden's difference.
const DIFFERENCE_LINES_MAX: usize = 30;

/// The commands to run next, in order, each with its label.
fn next_commands(log: &LogReport, args: &Args, program: &str) -> Vec<(&'static str, String)> {
    if log.is_one_sided {
        return Vec::new();
    }
    if let (Some(VerdictReason::NotReplayed), Some(build)) = (log.why, args.build.as_deref()) {
        return vec![("next", format!("{} replay {} -o test.hittrace", shell_path(build), shell_path(&log.path)))];
    }
    let Some(why) = log.why.filter(|why| log.verdict == LogVerdict::Differs || *why == VerdictReason::NeedsGolden)
    else {
        return Vec::new();
    };
    let path = shell_path(&log.path);
    let limit = args.time_limit.map_or(String::new(), |limit| format!(" --time-limit {}", limit.as_secs_f64()));
    let with = |option: &str| {
        args.build.as_deref().map_or(String::new(), |build| format!(" {option} {}{limit}", shell_path(build)))
    };
    let accept = |label| (label, format!("{program} verify {path}{} --accept", with("--build")));
    const INTENDED: &str = "if intended";
    match why {
        VerdictReason::Golden if log.golden == Golden::Proposed => vec![("next", format!("{program} review {path}"))],
        // The log's own records are side A for another game, and they agree with the replay.
        VerdictReason::Golden if !log.plays_here => vec![accept(INTENDED)],
        // A golden has no rows, so the commands show the changes in the shots of the replay. Without a build and a changed
        // shot, a comparison of the log with its replay would find nothing: the states are as recorded.
        VerdictReason::Golden => {
            let shot = log.difference.as_ref().and_then(changed_shot);
            let look = match (shot, args.build.as_deref()) {
                (Some(shot), None) => ("why", format!("{program} why {path} {shot}")),
                (None, None) => ("to review", format!("{program} verify {path} --propose")),
                (_, Some(_)) => ("why", format!("{program} diff {path}{}", with("--b"))),
            };
            vec![look, accept(INTENDED)]
        }
        VerdictReason::NeedsGolden => vec![accept("next")],
        VerdictReason::RecordedState => {
            let look = ("why", format!("{program} bisect ticks {path}{}", with("--b")));
            // Only a part that began at a keyframe may differ: then the game does not save all of its state.
            let unsaved = log.legs.map(|_| ("if that agrees", format!("{program} verify {path} --rollback 1")));
            [look].into_iter().chain(unsaved).collect()
        }
        VerdictReason::Keyframe => {
            vec![("to write new keyframes", format!("{program} keyframes {path} -o new.hitlog"))]
        }
        VerdictReason::Rollback => vec![("next", format!("{program} verify {path} --rollback 1"))],
        VerdictReason::Replays
        | VerdictReason::NoGolden
        | VerdictReason::Gap
        | VerdictReason::NothingCompared
        | VerdictReason::NotReplayed
        | VerdictReason::Contradiction
        | VerdictReason::Unreadable => Vec::new(),
    }
}

/// The first changed shot of the replay in a golden's difference, named as in `hitreg why`: `p1#197`.
fn changed_shot(difference: &TextDiff) -> Option<String> {
    let replayed = difference.lines.iter().filter(|line| line.of == LineOrigin::After);
    let mut names = replayed.filter_map(|line| {
        let text: String = line.words.iter().map(|words| words.text.as_str()).collect();
        let mut words = text.strip_prefix("tick ")?.split_whitespace().skip(1);
        let (player, command) = (words.next()?, words.next()?);
        (player.starts_with('p') && command.starts_with('#')).then(|| format!("{player}{command}"))
    });
    names.next()
}

/// Accept or reject the goldens that `verify --propose` wrote
///
/// With --rerecord, the proposed log is accepted or rejected with its golden. A proposal is refused if its log or golden
/// changed after it. Without a terminal, and without --accept or --reject, the proposals are listed. Exit code 1 means
/// that proposals remain.
///
/// A table has the number of proposals by kind of difference: `digests`, `counts`, `shots`, `hits` or `new`. Each
/// proposal is of the last of these kinds that applies. With --kind, --accept and --reject take only proposals of these
/// kinds.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg verify fixtures --propose --rerecord; hitreg review fixtures
  hitreg review fixtures --accept             accept all
  hitreg review corpus --accept --kind digests,counts")]
pub(super) struct ReviewArgs {
    /// Logs, or directories of logs
    #[arg(value_name = "LOG", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Accept all
    #[arg(long)]
    accept: bool,
    /// Reject all, and keep the existing goldens
    #[arg(long, conflicts_with = "accept")]
    reject: bool,
    /// Only proposals with these kinds of difference
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(&GoldenChange::NAMES[1..]),
        hide_possible_values = true
    )]
    kind: Vec<String>,
}

/// The decision on a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReviewOutcome {
    Accepted,
    Rejected,
    Left,
}

#[derive(Serialize)]
struct ReviewedProposal {
    #[serde(flatten)]
    proposal: Proposal,
    done: ReviewOutcome,
}

pub(super) fn run_review(args: &ReviewArgs, output: &mut Output) -> CommandResult {
    // A pager of the output would read the same terminal.
    let is_interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let asks = !args.accept && !args.reject && output.format == OutputFormat::Text && is_interactive;
    let mut reviewed = Vec::new();
    let mut leaves_the_rest = false;
    let is_chosen =
        |proposal: &Proposal| args.kind.is_empty() || args.kind.iter().any(|kind| kind == proposal.kind.name());
    let mut unread = Vec::new();
    let (proposals, broken) = proposals_below(&args.paths, &mut unread)?;
    for proposal in broken {
        // A broken proposal has no kind.
        let decided = if args.reject && args.kind.is_empty() { proposal.reject() } else { Err(proposal.error) };
        unread.extend(decided.err());
    }
    let (chosen, others): (Vec<Proposal>, Vec<Proposal>) = proposals.into_iter().partition(is_chosen);
    let chosen_count = chosen.len();
    for (number, proposal) in (1..).zip(chosen) {
        let done = match (args.accept, args.reject) {
            (true, _) => ReviewOutcome::Accepted,
            (_, true) => ReviewOutcome::Rejected,
            _ if asks && !leaves_the_rest => {
                output.show(&proposal, |page| print_proposal(page, &proposal, (number, chosen_count)))?;
                match ask()? {
                    Some(done) => done,
                    None => {
                        leaves_the_rest = true;
                        ReviewOutcome::Left
                    }
                }
            }
            _ => ReviewOutcome::Left,
        };
        let decided = match done {
            ReviewOutcome::Accepted => proposal.accept(),
            ReviewOutcome::Rejected => proposal.reject(),
            ReviewOutcome::Left => Ok(()),
        };
        let done = if decided.is_ok() { done } else { ReviewOutcome::Left };
        unread.extend(decided.err());
        reviewed.push(ReviewedProposal { proposal, done });
    }
    reviewed.extend(others.into_iter().map(|proposal| ReviewedProposal { proposal, done: ReviewOutcome::Left }));
    output.show(&reviewed, |page| print_review(page, &reviewed, chosen_count, asks))?;
    print_problems(&unread.iter().map(EngineError::to_string).collect::<Vec<_>>());
    let is_left = reviewed.iter().any(|reviewed| reviewed.done == ReviewOutcome::Left);
    Ok(match unread.is_empty() {
        false => CommandOutcome::Trouble,
        true if is_left => CommandOutcome::Differs,
        true => CommandOutcome::Done,
    })
}

/// Asks for a decision on the proposal shown; `None` to stop and leave the others.
fn ask() -> Result<Option<ReviewOutcome>, CommandError> {
    loop {
        let mut to = anstream::stderr();
        write!(to, "accept, reject, skip or quit? [a/r/s/q] ")?;
        to.flush()?;
        let mut line = String::new();
        // End of input means quit.
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim() {
            "a" | "accept" => return Ok(Some(ReviewOutcome::Accepted)),
            "r" | "reject" => return Ok(Some(ReviewOutcome::Rejected)),
            "s" | "skip" => return Ok(Some(ReviewOutcome::Left)),
            "q" | "quit" => return Ok(None),
            _ => {}
        }
    }
}

/// Prints a proposal under a heading with its kind and its place among the others.
fn print_proposal(page: &mut Page, proposal: &Proposal, (number, of): (usize, usize)) {
    let golden = shell_path(&proposal.golden);
    page.styled(Strong, &format!("{} ({}, {number} of {of})", proposal.golden.display(), proposal.kind.name()));
    if let Some(log) = &proposal.log {
        page.paragraph(2, &format!("with {}, recorded again", log.display()));
    }
    match &proposal.difference {
        Some(difference) => {
            let accepted = if proposal.kind == GoldenChange::New { "/dev/null" } else { &golden };
            page.text_diff(difference, DIFFERENCE_LINES_MAX, &format!("in: diff -u {accepted} {golden}.new"));
        }
        None => page.paragraph(2, "the outcome is the same"),
    }
}

/// The most proposals in the text. JSON has all.
const LISTED_PROPOSALS: usize = 20;

/// Prints the number of proposals of each kind, and then the first `chosen` proposals.
fn print_review(page: &mut Page, reviewed: &[ReviewedProposal], chosen: usize, were_shown: bool) {
    if reviewed.is_empty() {
        page.line("No golden waits to be reviewed");
        page.faint(0, "`verify LOG --propose` proposes changed goldens.");
        return;
    }
    for (number, ReviewedProposal { proposal, done }) in (1..).zip(&reviewed[..chosen.min(LISTED_PROPOSALS)]) {
        let word = match done {
            ReviewOutcome::Accepted => "accepted   ",
            ReviewOutcome::Rejected => "rejected   ",
            ReviewOutcome::Left => "waits      ",
        };
        if *done == ReviewOutcome::Left && !were_shown {
            print_proposal(page, proposal, (number, chosen));
        }
        page.parts(vec![TextSpan::styled(Faint, word), proposal.golden.display().to_string().into()]);
    }
    if let Some(more @ 1..) = chosen.checked_sub(LISTED_PROPOSALS) {
        page.faint(0, &format!("and {} not listed (--format json has all)", counted(more as u64, "golden")));
    }
    let row = |kind: GoldenChange| {
        let of_kind = || reviewed.iter().filter(|reviewed| reviewed.proposal.kind == kind);
        let count_of = |done| count(of_kind().filter(|reviewed| reviewed.done == done).count() as u64);
        let counts = [ReviewOutcome::Left, ReviewOutcome::Accepted, ReviewOutcome::Rejected].map(count_of);
        let cells = [kind.name().to_owned()].into_iter().chain(counts).chain([kind.meaning().to_owned()]);
        of_kind().next().map(|_| cells.collect::<Vec<_>>())
    };
    page.section("kind", &[">wait", ">accepted", ">rejected", ""], GoldenChange::ALL.into_iter().filter_map(row));
    if reviewed.iter().any(|reviewed| reviewed.done == ReviewOutcome::Left) {
        page.blank();
        page.faint(0, "--accept and --reject take all goldens; --kind KINDS limits them to kinds.");
    }
}
