//! `hitreg diff`: shows what changed between two runs.

use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

use super::builds::BuildArgs;
use super::corpus::{CorpusArgs, ResultArgs, WorkerArgs, finish, print_problems};
use super::page::{Faint, Page, TextSpan, Unsure};
use super::replay_args::{CompareArgs, SideArgs, SideReplayArgs};
use super::trouble::{engine_with_notes, note_gaps};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputFormat, OutputPath, process};
use crate::build::Build;
use crate::corpus::{ComparedCorpus, CorpusRun, LogRow, NO_CACHE, command_line, is_corpus};
use crate::diff::{DiffOptions, DiffScope, TraceDiff, TraceVerdict, diff};
use crate::engine::{Engine, EngineError, Games, MissingSide, Traces, look_for_effects};
use crate::replay::WhatIf;
use crate::report::figures::counted;
use crate::report::{corpus_page, diff_answer, diff_junit, diff_line, diff_page, verdict_line, what_if_line, why_page};
use crate::store::{self, FileType, Target};
use crate::trace::schema::{corrections, shots};
use crate::trace::{TraceHeader, TraceSource};
use crate::why::{ShotName, Why, WhyQuery, near};

/// Compare two runs: the first difference, its effects, and changed hits
///
/// The sides can be two traces, or one log under two builds, presets or settings. With --server-build, they can be the
/// clients of two builds on one server. A single log is compared with this build's replay of it.
///
/// A corpus has one page over all its logs: verdicts, changed shots, corrections, view error, and the logs that changed
/// most. --results keeps the verdicts, so that a later run judges only what changed.
///
/// Numbers must be equal to the bit, except within a --tolerance. A build is any program that runs `replay LOG -o
/// TRACE`. A build that crashes, hangs or writes no valid trace is untestable (exit code 125), and its last output is
/// shown.
#[derive(clap::Args)]
#[command(
    mut_arg("first", |first| first.help("A trace, a log to replay, or a corpus: a directory, a quoted pattern, or @FILE with a path on each line")),
    after_long_help = "\
Examples:
  hitreg diff old.hittrace new.hittrace
  hitreg diff match.hitlog --b ./new-build
  hitreg diff match.hitlog --a ./old-build --b ./new-build --on hits
  hitreg diff match.hitlog --b-preset quake3
  hitreg diff match.hitlog --b-set interpolation.lerp_ms=50
  hitreg diff match.hitlog --server-build ./old --client-build ./new
  hitreg diff match.hitlog --b-preset quake3 --why 1
  hitreg diff match.hitlog --b ./new --tolerance origin=0.1 --junit out.xml
  hitreg diff logs --b ./new --results nightly --max hits-changed=0

With git bisect and the trace of a good commit:
  git bisect run sh -c 'make || exit 125
      hitreg diff good.hittrace match.hitlog --b ./game --summary'"
)]
pub(super) struct Args {
    #[command(flatten)]
    sides: SideArgs,
    /// Print one line
    #[arg(long)]
    summary: bool,
    /// Print everything: each differing column, usercmds, and prediction and interpolation of both sides
    #[arg(short, long, conflicts_with = "summary")]
    verbose: bool,
    /// Explain the N-th shot of the list that `--on hits` shows, on both sides, as `why` does; the first is 1
    #[arg(long, value_name = "N", conflicts_with_all = ["summary", "verbose"], value_parser = clap::value_parser!(u32).range(1..))]
    why: Option<u32>,
    /// Write a JUnit report, with a test case for each table
    #[arg(long, value_name = "FILE")]
    junit: Option<OutputPath>,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    build_options: BuildArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// The result of a comparison, with the names of both sides.
#[derive(Serialize)]
struct DiffReport<'a> {
    a: &'a str,
    b: &'a str,
    /// How the counts of hits under changed settings were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<&'static str>,
    summary: String,
    #[serde(flatten)]
    diff: &'a TraceDiff,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a ShotExplanations>,
}

/// A shot with different results, explained on both sides; a side is `None` if it lacks the shot.
#[derive(Serialize)]
struct ShotExplanations {
    shot: ShotName,
    a: Option<Why>,
    b: Option<Why>,
}

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    if let Some((path, replays)) = corpus_to_compare(args, output)? {
        return run_corpus(games, args, path, replays, program, output);
    }
    output.check_text_option("summary")?;
    output.check_text_option("verbose")?;
    let junit = output.files.target_if(&args.junit, FileType::Junit)?;
    let mut sides = args.sides.sides(output.files.force)?;
    let runner = args.build_options.runner(games, sides.run_builds(), output)?;
    let engine = Engine { runner, ..engine_with_notes(games) };
    let options = args.compare.options();
    // The detailed report needs the tables of prediction and interpolation, whatever `--on` compares.
    let brief = !args.verbose && args.why.is_none() && output.format == OutputFormat::Text;
    if brief {
        sides.replays.limit_tables(options.on.tables());
    }
    let Traces { names, sides: [a, b], overlap_only, gaps, .. } = match sides.make_traces(&engine) {
        Err(EngineError::Missing(missing)) => {
            if let Some(target) = &junit {
                write_junit(target, &untestable_junit(&missing))?;
            }
            if args.summary {
                output.show(&missing, |page| page.line(&missing.line()))?;
                return Ok(CommandOutcome::Untestable);
            }
            return Err(EngineError::Missing(missing).into());
        }
        traces => traces?,
    };
    note_gaps(&gaps);
    let options = DiffOptions { overlap_only: overlap_only || options.overlap_only, brief, ..options };
    let traces = [a.source(), b.source()];
    let mut difference = diff(traces[0], traces[1], &options).map_err(CommandError::request)?;
    look_for_effects(&engine, &sides, traces, &options, &mut difference)?;
    if let Some(target) = &junit {
        write_junit(target, &diff_junit(&format!("{} | {}", names[0], names[1]), &difference))?;
    }
    let explained = args.why.map(|number| ShotExplanations::of(number, &difference, traces)).transpose()?;
    let report = DiffReport {
        a: &names[0],
        b: &names[1],
        what_if: sides.what_if().map(WhatIf::name),
        summary: diff_line(&difference),
        diff: &difference,
        why: explained.as_ref(),
    };
    output.show(&report, |page| report.print(page, args, sides.what_if(), traces.map(TraceSource::header)))?;
    Ok(trace_outcome(difference.verdict))
}

impl DiffReport<'_> {
    fn print(&self, page: &mut Page, args: &Args, what_if: Option<WhatIf>, headers: [&TraceHeader; 2]) {
        if args.summary {
            return page.line(&self.summary);
        }
        let scope = args.compare.on;
        if self.diff.verdict == TraceVerdict::Same && !args.verbose {
            return page.append(diff_answer(self.diff, scope));
        }
        page.pair("A", self.a);
        page.pair("B", self.b);
        if let Some(what_if) = what_if {
            page.faint(0, &what_if_line(what_if));
        }
        page.blank();
        if let Some(explained) = self.why {
            return explained.print(page, headers);
        }
        if args.verbose {
            return page.append(diff_page(self.diff));
        }
        page.append(diff_answer(self.diff, scope));
        if self.diff.verdict == TraceVerdict::Differs && scope != DiffScope::Hits {
            page.blank();
            page.faint(0, "Use --verbose for every differing column, usercmds, prediction and interpolation.");
        }
    }
}

impl ShotExplanations {
    fn of(
        number: u32,
        difference: &TraceDiff,
        traces: [&dyn TraceSource; 2],
    ) -> Result<ShotExplanations, CommandError> {
        let changed = &difference.hits.changed;
        let shot = changed.get((number - 1) as usize).map_err(CommandError::request)?.ok_or_else(|| {
            let shots = counted(changed.len() as u64, "shot");
            CommandError::request(format!("--why {number}: the list has only {shots}; --on hits shows it"))
        })?;
        let shot = ShotName { shooter: shot.shooter, command: shot.command, index: Some(shot.index) };
        let why = |trace| {
            let query = WhyQuery::Shot(shot);
            let near = near(trace, &query).map_err(CommandError::request)?;
            Ok::<_, CommandError>(near.and_then(|near| Why::of(&near, &query)).ok())
        };
        Ok(ShotExplanations { shot, a: why(traces[0])?, b: why(traces[1])? })
    }

    fn print(&self, page: &mut Page, headers: [&TraceHeader; 2]) {
        for (name, why, header) in [("A", &self.a, headers[0]), ("B", &self.b, headers[1])] {
            page.heading(name);
            match why {
                Some(why) => page.append(why_page(why, &header.settings, &[])),
                None => page.note(2, &format!("{} was not fired", self.shot)),
            }
        }
    }
}

/// The exit code for a verdict.
pub(super) fn trace_outcome(verdict: TraceVerdict) -> CommandOutcome {
    match verdict {
        TraceVerdict::Same => CommandOutcome::Done,
        TraceVerdict::Differs => CommandOutcome::Differs,
        TraceVerdict::Untestable => CommandOutcome::Untestable,
    }
}

/// Shows why the sides cannot be compared, and what to do.
pub(super) fn show_missing(missing: &MissingSide, output: &mut Output) -> CommandResult {
    output.show(missing, |page| {
        page.styled(Unsure, "untestable");
        page.paragraph(2, &missing.untestable_text());
        print_last_words(page, missing.last_words());
        if missing.is_unrelated() {
            page.faint(4, "To compare them anyway, add --force.");
        }
        if let Some(command) = missing.command() {
            print_contract(page, command, BUILD_CONTRACT);
        }
    })?;
    Ok(CommandOutcome::Untestable)
}

/// Prints what a build must do, and the command that shows whether it does.
pub(super) fn print_contract(page: &mut Page, command: &str, contract: &str) {
    page.parts(vec![TextSpan::styled(Faint, "  next: "), command.into()]);
    page.faint(4, contract);
}

/// The contract of a command that replays a log in a build.
pub(super) const BUILD_CONTRACT: &str = "Each run must write the same file and exit 0 (docs/builds.md).";

/// Prints the last lines of a process's stderr.
pub(super) fn print_last_words(page: &mut Page, lines: &[String]) {
    for line in lines {
        page.faint(4, line);
    }
}

fn untestable_junit(missing: &MissingSide) -> Report {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("untestable").set_message(missing.line()).set_description(missing.last_words().join("\n"));
    let mut suite = TestSuite::new("hitreg diff");
    suite.add_test_case(TestCase::new("traces", status));
    let mut report = Report::new("hitreg diff");
    report.add_test_suite(suite);
    report
}

pub(super) fn write_junit(target: &Target, report: &Report) -> Result<(), CommandError> {
    let text = report.to_string().map_err(|error| CommandError::file(target.path(), error))?;
    Ok(store::save_bytes(target, text.as_bytes())?)
}

/// The options that only a corpus has.
const CORPUS_OPTIONS: [&str; 8] = ["sample", "seed", "partition", "threads", "results", "reports", "max", "markdown"];

/// The corpus to compare, and how each log is replayed; `None` if the command compares two files, or one log. One log
/// is a corpus if an option of a corpus was typed.
fn corpus_to_compare<'a>(
    args: &'a Args,
    output: &Output,
) -> Result<Option<(&'a Path, &'a SideReplayArgs)>, CommandError> {
    let is_asked = CORPUS_OPTIONS.iter().any(|name| output.is_typed(name));
    let corpus = args.sides.corpus().filter(|(path, _)| is_asked || is_corpus(path));
    match corpus {
        None if is_asked => Err(CommandError::request(
            "the options of a corpus, such as --results or --max, need one folder, pattern or log: leave them out, or the \
             second file or server build",
        )),
        corpus => Ok(corpus),
    }
}

fn run_corpus(
    games: &Games,
    args: &Args,
    path: &Path,
    replay_args: &SideReplayArgs,
    program: &str,
    output: &mut Output,
) -> CommandResult {
    output.check_text_option("summary")?;
    if let Some(name) = ["verbose", "why", "junit"].into_iter().find(|name| output.is_typed(name)) {
        return Err(CommandError::request(format!(
            "--{name} needs one log: the page of a corpus names the logs to look at"
        )));
    }
    let markdown = args.results.checks.target(output)?;
    let reports = args.results.reports(output)?;
    let mut replays = replay_args.replay_specs()?;
    let mut runner = args.build_options.runner(games, replays.run_builds(), output)?;
    if args.results.results.is_some() {
        // The logs that are being judged are completed.
        runner.stop = process::stop()?;
    }
    let diff = args.compare.options();
    replays.limit_tables(diff.on.tables().with(&shots::SCHEMA).with(&corrections::SCHEMA));
    let corpus = args.corpus.corpus(&[path.to_owned()])?;
    let [a, b] = replay_args.builds().map(|path| path.map(Build::at).transpose().map_err(EngineError::from));
    let build = |build: Option<&Build>| args.results.build(build, args.build_options.no_cache);
    let ((_, digest_a), (name, digest)) = (build(a?.as_ref())?, build(b?.as_ref())?);
    let limit = args.build_options.limit.to_words();
    let mut words = [replay_args.to_words(), args.compare.to_words(), limit].concat();
    words.extend((replays.run_builds() && args.build_options.no_cache).then(|| NO_CACHE.to_owned()));
    let options = command_line(&words);
    let command = |log: &str| {
        let first = ["diff", log].map(str::to_owned);
        format!("{program} {}", command_line(&first.into_iter().chain(words.iter().cloned()).collect::<Vec<_>>()))
    };
    let engine = Engine { runner, ..engine_with_notes(games) };
    let judge = ComparedCorpus {
        engine: &engine,
        replays: &replays,
        diff: &diff,
        about: LogRow {
            command: "diff".to_owned(),
            build: name,
            build_digest: digest.clone().unwrap_or_default(),
            options,
            ..LogRow::default()
        },
        depends_on: digest.and(digest_a),
        command: &command,
    };
    let results = args.results.folder(args.corpus.share()?)?;
    let run = CorpusRun { threads: args.workers.threads(), results, stop: &engine.runner.stop };
    let (_, summary) = args.results.judge("comparing", run, &judge, &corpus, &[], reports.as_ref())?;
    if args.summary {
        print_problems(&summary.problems);
    }
    finish(summary, &args.results.checks, markdown.as_ref(), output, |page, summary| match args.summary {
        true => page.line(&verdict_line(summary)),
        false => page.append(corpus_page(summary)),
    })
}
