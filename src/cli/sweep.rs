//! `hitreg sweep`: measures how settings affect hits, errors and traffic.

use std::path::{Path, PathBuf};

use super::corpus::corpus;
use super::diff::running::BuildArgs;
use super::diff::show_untestable;
use super::output::Output;
use super::outputs::OutputPath;
use super::progress::Progress;
use super::trouble::CommandError;
use super::what_if::one_of;
use super::{CommandResult, files};
use crate::engine::{Engine, EngineError, Games, ReplaySpec};
use crate::page::{SweepPage, sweep_html};
use crate::record::Session;
use crate::replay::WhatIf;
use crate::report::{sweep_page, what_if_line};
use crate::store::{self, FileType};
use crate::sweep::{Axis, PRESET, Sweep, SweepError, SweepPlan, figure_names};

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
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg sweep match.hitlog --set interpolation.lerp_ms=0..200:25
  hitreg sweep logs/*.hitlog --presets half-life,quake3,quakeworld
  hitreg sweep match.hitlog --set lag_compensation.max_unlag_ms=0..500:100 \\
      --set interpolation.lerp_ms=50,100 --csv sweep.csv
  hitreg sweep match.hitlog --set interpolation.lerp_ms=0..200:50 --what-if rerecord
  hitreg sweep match.hitlog --set lag_compensation.enabled=true,false --what-if rejudge
  hitreg sweep match.hitlog --build ./game --set sv_gravity=600..800:100")]
pub(super) struct Args {
    /// Logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// A setting and its values; at most twice
    #[arg(long, value_name = "KEY=LO..HI:STEP")]
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
    running: BuildArgs,
}

/// Checks that all logs together fit into memory, before the first is read.
fn check_memory(games: &Games, logs: &[PathBuf]) -> Result<(), CommandError> {
    let (quiet, mut held) = (Engine::new(games), 0_usize);
    for path in logs {
        let log = quiet.survey(path)?;
        held = held.saturating_add(log.session_bytes());
        games.memory().check(held).map_err(|needs| CommandError::file(path, needs))?;
    }
    Ok(())
}

const QUESTIONS: &[WhatIf] = &[WhatIf::Replay, WhatIf::Rejudge, WhatIf::Rerecord];

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let presets = (!args.presets.is_empty()).then(|| format!("{PRESET}={}", args.presets.join(",")));
    let read = if args.build.is_some() { Axis::of_build } else { Axis::parse };
    let axes = args.set.iter().chain(&presets).map(|text| read(text));
    let axes = axes.collect::<Result<Vec<Axis>, _>>().map_err(CommandError::request)?;
    let mut plan = SweepPlan::new(axes).map_err(CommandError::request)?.asking(args.what_if);
    if let Some(seeds) = args.seeds {
        if args.what_if == WhatIf::Rerecord {
            plan = plan.with_seeds(seeds).map_err(CommandError::request)?;
        } else if output.is_typed("seeds", true) {
            return Err(CommandError::request(
                "--seeds applies only to --what-if rerecord: add it, or leave out --seeds",
            ));
        }
    }
    let csv = output.files.target_if(&args.csv, FileType::Table(figure_names()))?;
    let report = output.files.target_if(&args.report, FileType::Page)?;
    let corpus = corpus(&args.logs)?;
    if let Some(problem) = corpus.problems.first() {
        return Err(CommandError::request(problem));
    }
    let runner = args.running.runner(games, args.build.is_some(), output)?;
    let swept = match &args.build {
        None => sweep(games, &corpus.logs, &plan)?,
        Some(_) if args.what_if == WhatIf::Rerecord => {
            return Err(CommandError::request("a build has no bots: leave out --what-if rerecord, or --build"));
        }
        Some(build) => {
            let spec = ReplaySpec { build: Some(build.clone()), ..ReplaySpec::default() };
            let logs: Vec<&Path> = corpus.logs.iter().map(PathBuf::as_path).collect();
            let progress = Progress::of_things("sweeping", (plan.runs() * logs.len()) as u64);
            match spec.sweep(&files::engine(games), &runner, (&logs, &plan), &|| progress.one_done())? {
                Ok(swept) => swept,
                Err(missing) => {
                    drop(progress);
                    return show_untestable(&missing, output);
                }
            }
        }
    };
    let table = swept.table();
    if let Some(target) = &csv {
        store::save_bytes(target, table.to_csv().as_bytes())?;
    }
    if let Some(target) = &report {
        let names: Vec<String> = corpus.logs.iter().map(|path| path.display().to_string()).collect();
        let what_if = what_if_line(args.what_if);
        let page =
            SweepPage { names: &names, keys: &swept.keys, what_if: &what_if, columns: &table.columns, rows: &table };
        store::save_bytes(target, sweep_html(&page)?.as_bytes())?;
    }
    output.show(&table, |page| page.append(sweep_page(&swept)))
}

/// Sweeps the logs of a game that this program plays.
fn sweep(games: &Games, logs: &[PathBuf], plan: &SweepPlan) -> Result<Sweep, CommandError> {
    check_memory(games, logs)?;
    let mut sessions: Vec<Session> = Vec::with_capacity(logs.len());
    for path in logs {
        let log = files::read_log(games, path)?;
        files::note_hole(path, log.session.first_hole());
        if sessions.first().is_some_and(|first| first.header.game != log.session.header.game) {
            return Err(EngineError::OtherGame { path: path.clone() }.into());
        }
        sessions.push(log.session);
    }
    let Some(first) = sessions.first() else {
        return Err(CommandError::request("there is no log to sweep: name one"));
    };
    let game = games.of(first).map_err(|error| CommandError::file(&logs[0], error))?;
    let progress = Progress::of_things("sweeping", (plan.runs() * sessions.len()) as u64);
    game.sweep(games.memory(), &sessions, plan, &|| progress.one_done()).map_err(|error| match error {
        SweepError::Run { log, source } => CommandError::file(&logs[log], source),
        SweepError::Settings { log, source } => CommandError::file(&logs[log], source),
    })
}
