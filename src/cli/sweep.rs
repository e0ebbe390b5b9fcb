//! `hitreg sweep`: measures how settings affect hits, errors and traffic.

use std::path::{Path, PathBuf};

use super::builds::BuildArgs;
use super::corpus::{CheckArgs, CorpusArgs, annotations, of_one_side, print_problems};
use super::page::Page;
use super::progress::Progress;
use super::replay_args::{offered_settings, one_of};
use super::trouble::{engine_with_notes, note_gap};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::corpus::MeasuredFigures;
use crate::engine::{self, Engine, EngineError, Games, ReplaySpec, SurveyedLog, SweptLog};
use crate::page::{SweepPage, sweep_html};
use crate::replay::WhatIf;
use crate::report::{self, print_thresholds, sweep_page, what_if_line};
use crate::store::{self, FileType};
use crate::sweep::{Axis, LogFigures, PRESET, SEEDS, SweepPlan, figure_names};

/// Run logs under many values of a setting, and compare hits, view error and corrections
///
/// One or two settings take ranges (lo..hi:step) or lists (a,b,c), and presets take a list. The logs run under every
/// combination, on all cores. Each row has the totals of all logs.
///
/// Choose with --what-if how each combination is evaluated. With `replay` and `rejudge`, players aim as under the
/// recorded settings, so hits favour those settings. With `rerecord`, bots play again under each setting, and hit rates
/// have a confidence interval.
///
/// With --build, a build replays the logs with `--set KEY=VALUE`, also with settings that only the build knows. Figures
/// whose tables the build does not write are empty.
///
/// --max compares the greatest figure of all rows. A log that cannot be read does not stop the others.
#[derive(clap::Args)]
#[command(
    mut_arg("max", of_one_side),
    after_long_help = "\
Examples:
  hitreg sweep match.hitlog --set interpolation.lerp_ms=0..200:25
  hitreg sweep logs/*.hitlog --presets half-life,quake3,quakeworld
  hitreg sweep match.hitlog --set lag_compensation.max_unlag_ms=0..500:100 \\
      --set interpolation.lerp_ms=50,100 --csv sweep.csv
  hitreg sweep match.hitlog --set interpolation.lerp_ms=0..200:50 \\
      --what-if rerecord
  hitreg sweep match.hitlog --set lag_compensation.enabled=true,false \\
      --what-if rejudge
  hitreg sweep match.hitlog --build ./game --set sv_gravity=600..800:100
  hitreg sweep logs --sample 50 --presets quake3,half-life --max corrections=3%"
)]
pub(super) struct Args {
    /// Logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// A setting and its values, LO..HI:STEP or A,B,C; at most twice
    #[arg(long, value_name = "KEY=VALUES", value_parser = offered_settings(), hide_possible_values = true)]
    set: Vec<String>,
    /// Presets, separated by commas
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    presets: Vec<String>,
    /// `replay` runs the recorded input, `rejudge` changes only the hit test of each recorded shot, and `rerecord` lets
    /// bots play new sessions
    #[arg(
        long,
        value_parser = one_of(QUESTIONS),
        value_name = "replay|rejudge|rerecord",
        hide_possible_values = true,
        default_value = "replay"
    )]
    what_if: WhatIf,
    /// Number of seeds for `rerecord` [default: 16]
    #[arg(long, value_name = "N")]
    seeds: Option<u16>,
    /// The build that replays the logs [default: this one]
    #[arg(long, value_name = "BUILD")]
    build: Option<PathBuf>,
    /// Write all numbers as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<OutputPath>,
    /// Write an HTML page with a plot of each measure
    #[arg(long, value_name = "FILE")]
    report: Option<OutputPath>,
    #[command(flatten)]
    build_options: BuildArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    checks: CheckArgs,
}

/// The logs of a sweep with their figures, and what is wrong with the others.
#[derive(Default)]
struct SweptLogs {
    logs: Vec<PathBuf>,
    figures: Vec<LogFigures>,
    problems: Vec<(PathBuf, CommandError)>,
}

impl SweptLogs {
    fn add(&mut self, path: PathBuf, swept: SweptLog) -> Result<(), CommandError> {
        match swept {
            Ok(figures) => {
                self.logs.push(path);
                self.figures.push(figures);
            }
            Err(EngineError::Setting(source)) => return Err(CommandError::file(&path, source)),
            Err(error) => self.problems.push((path, error.into())),
        }
        Ok(())
    }

    /// Fails if no log is left.
    fn check(mut self) -> Result<SweptLogs, CommandError> {
        if !self.logs.is_empty() {
            return Ok(self);
        }
        let last = self.problems.pop();
        print_problems(&self.problems());
        Err(last.map_or_else(|| CommandError::request("there is no log to sweep: name one"), |(_, error)| error))
    }

    /// One sentence for each log that failed.
    fn problems(&self) -> Vec<String> {
        let sentence = |(path, error): &(PathBuf, CommandError)| match error {
            CommandError::Engine(EngineError::Missing(missing)) => {
                let next = missing.command().map_or(String::new(), |command| format!(". Run: {command}"));
                format!("{}: untestable: {}{next}", path.display(), missing.detail())
            }
            error => error.to_string(),
        };
        self.problems.iter().map(sentence).collect()
    }
}

const QUESTIONS: &[WhatIf] = &[WhatIf::Replay, WhatIf::Rejudge, WhatIf::Rerecord];

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let presets = (!args.presets.is_empty()).then(|| format!("{PRESET}={}", args.presets.join(",")));
    let axes = args.set.iter().chain(&presets).map(|text| Axis::parse(text, args.build.is_some()));
    let axes = axes.collect::<Result<Vec<Axis>, _>>().map_err(CommandError::request)?;
    let is_rerecorded = args.what_if == WhatIf::Rerecord;
    let seeds = args.seeds.filter(|_| is_rerecorded).unwrap_or(SEEDS);
    let plan = SweepPlan::new(axes, args.what_if, seeds).map_err(CommandError::request)?;
    if args.seeds.is_some() && !is_rerecorded && output.is_typed("seeds") {
        return Err(CommandError::request("--seeds applies only to --what-if rerecord: add it, or leave out --seeds"));
    }
    let csv = output.files.target_if(&args.csv, FileType::Table(figure_names()))?;
    let report = output.files.target_if(&args.report, FileType::Page)?;
    let markdown = args.checks.target(output)?;
    let corpus = args.corpus.corpus(&args.logs)?;
    let runner = args.build_options.runner(games, args.build.is_some(), output)?;
    let swept_logs = match &args.build {
        None => sweep(games, &corpus.logs, &plan)?,
        Some(_) if is_rerecorded => {
            return Err(CommandError::request("a build has no bots: leave out --what-if rerecord, or --build"));
        }
        Some(build) => {
            let engine = Engine { runner, ..engine_with_notes(games) };
            sweep_by_build(&engine, build, &corpus.logs, &plan)?
        }
    }
    .check()?;
    let swept = plan.sweep(&swept_logs.figures);
    let table = swept.table();
    if let Some(target) = &csv {
        store::save_bytes(target, table.to_csv().as_bytes())?;
    }
    if let Some(target) = &report {
        let names: Vec<String> = swept_logs.logs.iter().map(|path| path.display().to_string()).collect();
        let what_if = what_if_line(args.what_if);
        let page =
            SweepPage { names: &names, keys: &swept.keys, what_if: &what_if, columns: &table.columns, rows: &table };
        store::save_bytes(target, sweep_html(&page)?.as_bytes())?;
    }
    let problems = [swept_logs.problems(), corpus.problems.clone()].concat();
    let measured: Vec<MeasuredFigures> = swept.rows.iter().map(|row| (&row.figures).into()).collect();
    let (thresholds, outcome) = args.checks.apply(&measured);
    let page = || {
        let mut page = Page::default();
        print_thresholds(&mut page, &thresholds);
        page.append(sweep_page(&swept));
        page
    };
    let with_problems = || {
        let mut all = Page::default();
        report::print_problems(&mut all, &problems);
        all.append(page());
        all
    };
    args.checks.report(markdown.as_ref(), &with_problems, &|| annotations(&thresholds, &problems))?;
    output.show(&table, |text| text.append(page()))?;
    print_problems(&problems);
    let of_logs = swept_logs.problems.iter().map(|(_, error)| error.outcome());
    let of_list = corpus.problems.iter().map(|_| CommandOutcome::Trouble);
    let outcomes: Vec<CommandOutcome> = of_logs.chain(of_list).chain([outcome]).collect();
    Ok(CommandOutcome::worst(&outcomes))
}

/// Sweeps logs by another build.
fn sweep_by_build(
    engine: &Engine<'_>,
    build: &Path,
    logs: &[PathBuf],
    plan: &SweepPlan,
) -> Result<SweptLogs, CommandError> {
    let spec = ReplaySpec { build: Some(build.to_owned()), ..ReplaySpec::default() };
    let progress = Progress::of_things("sweeping", (plan.runs() * logs.len()) as u64);
    let figures = spec.sweep(engine, logs, plan, &|| progress.one_done())?;
    let mut swept = SweptLogs::default();
    logs.iter().cloned().zip(figures).try_for_each(|(path, figures)| swept.add(path, figures))?;
    Ok(swept)
}

/// Sweeps the logs of a game that this program plays.
fn sweep(games: &Games, logs: &[PathBuf], plan: &SweepPlan) -> Result<SweptLogs, CommandError> {
    let progress = Progress::of_things("sweeping", (plan.runs() * logs.len()) as u64);
    let mut swept = SweptLogs::default();
    let run = |group: &mut Vec<SurveyedLog>, swept: &mut SweptLogs| {
        let Some(first) = group.first() else { return Ok(()) };
        let game = games.of_header(&first.header).map_err(|error| CommandError::file(&first.path, error))?;
        let figures = engine::sweep(game, group, plan, &|| progress.one_done());
        group.drain(..).zip(figures).try_for_each(|(log, figures)| swept.add(log.path.clone(), figures))
    };
    let (mut group, mut game) = (Vec::new(), None);
    for path in logs {
        let log = match engine_with_notes(games).survey(path) {
            Ok(log) => log,
            Err(error) => {
                swept.problems.push((path.clone(), error.into()));
                continue;
            }
        };
        if game.get_or_insert_with(|| log.header.game.clone()) != &log.header.game {
            swept.problems.push((path.clone(), EngineError::other_game(path).into()));
            continue;
        }
        note_gap(path, log.survey.first_gap());
        group.push(log);
        // A group keeps all cores busy.
        if group.len() * plan.runs() >= rayon::current_num_threads() {
            run(&mut group, &mut swept)?;
        }
    }
    run(&mut group, &mut swept)?;
    Ok(swept)
}
