//! `hitreg shrink`: finds a small session that still shows a problem.

use std::path::PathBuf;

use serde::Serialize;

use super::builds::{TimeLimitArgs, check_build_options};
use super::figures::{count, counted, duration};
use super::output::FileSize;
use super::page::Page;
use super::progress::Progress;
use super::replay_args::{CompareArgs, SideReplayArgs};
use super::trouble::engine_with_notes;
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::build::Build;
use crate::build::condition::Condition;
use crate::engine::{Engine, EngineError, Games};
use crate::log::WriterOptions as LogOptions;
use crate::replay::ReplayError;
use crate::shrink::{RemovedCount, Rerecorder, ShrinkError, ShrinkProperty, ShrinkStep, shrink_log};
use crate::store::{self, FileType};

/// Reduce a log to a minimal one that still shows a problem
///
/// It removes players, time, usercmds, buttons, angles, moves and own input fields, and lost, late and duplicate
/// packets. It stops when removing any single one hides the problem. The problem is defined by a command, or by two
/// builds, presets or settings that play the log differently. In that case, the same table and field must be the first
/// to differ.
///
/// The game records each reduced session again. If its build cannot, the log is only cut: it begins later, ends
/// earlier, and has fewer players and less input. All other records stay. An imported recording of a game that this
/// hitreg replays is refused, because it has no server to record it again.
///
/// A setting such as `p3.interpolation.lerp_ms` applies to the player with that number in each smaller log, so at least
/// p0 to p3 stay.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg shrink match.hitlog -o small.hitlog --b ./new-build
  hitreg shrink match.hitlog -o small.hitlog --a ./old --b ./new --on hits
  hitreg shrink match.hitlog -o small.hitlog --build ./game --while ./crashes.sh
  hitreg shrink match.hitlog -o small.hitlog --b-preset quake3 --on hits
  hitreg shrink match.hitlog -o small.hitlog --while './game verify {}'")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The small log to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
    /// Shell command that decides whether a log shows the problem; {} is replaced by the log. Exit code 1 means yes,
    /// any other code below 126 means no
    #[arg(
        long = "while",
        value_name = "CMD",
        conflicts_with_all = [
            "a", "b", "a_set", "b_set", "a_preset", "b_preset", "what_if", "open", "on", "tolerance", "overlap"
        ]
    )]
    condition: Option<String>,
    /// The build that records each reduced session, by `replay LOG --record LOG`, if it declares that it can [default:
    /// this one, or for another game the build of --a or --b]
    #[arg(long, value_name = "BUILD")]
    build: Option<PathBuf>,
    #[command(flatten)]
    replays: SideReplayArgs,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    limit: TimeLimitArgs,
}

#[derive(Serialize)]
struct ShrinkReport<'a> {
    path: String,
    from: String,
    players: usize,
    ticks: usize,
    duration_us: i64,
    size_bytes: FileSize,
    probes: u64,
    removed: &'a [RemovedCount],
    /// The difference that it still shows; `None` if a command decides.
    shows: Option<&'a str>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let replays = args.replays.replay_specs()?;
    let engine = engine_with_notes(games);
    // A trace cannot be shrunk, whatever the problem is.
    let log = engine.read_log(&args.log)?;
    if args.condition.is_none() && replays.are_plain() {
        let what = "the problem is not defined: add --while CMD, or a second side with --b BUILD, --b-set KEY=VALUE or --b-preset NAME";
        return Err(CommandError::request(what));
    }
    check_build_options(args.condition.is_some() || args.build.is_some() || replays.run_builds(), output)?;
    let target = output.files.target(&args.output, FileType::Log)?;
    let game = games.of(&log.session);
    let of_a_side = || if game.is_err() { replays.a.build.clone().or(replays.b.build.clone()) } else { None };
    let build = args.build.clone().or_else(of_a_side);
    let build = build.as_deref().map(Build::at).transpose().map_err(EngineError::from)?;
    let recorder = match (&build, game) {
        (Some(build), _) => Rerecorder::Build(build),
        (None, Ok(game)) => Rerecorder::Game(game),
        // Only this command can tell whether a log of an unknown game shows the problem.
        (None, Err(_)) if args.condition.is_some() => Rerecorder::Nothing,
        (None, Err(error)) => return Err(CommandError::file(&args.log, error)),
    };
    let quiet = Engine { runner: args.limit.runner(games)?, ..Engine::new(games) };
    let property = match &args.condition {
        Some(command) => ShrinkProperty::Condition(Condition::new(command)),
        None => ShrinkProperty::first_difference(&quiet, &args.log, &replays, args.compare.options())?,
    };
    let progress = Progress::of_steps("shrinking");
    let mut on_step = |step: &ShrinkStep| progress.step(format!("{} to go, {} tried", step.kind.name(), step.probes));
    let shrunk = shrink_log(&quiet, recorder, &args.log, &log.session, &property, &mut on_step);
    drop(progress);
    let shrunk = match shrunk {
        Ok(shrunk) => shrunk,
        Err(ShrinkError::Replay(ReplayError::NoServer)) => {
            let what = "an imported recording cannot be shrunk, because it has no server to record the rest again";
            return Err(CommandError::file(&args.log, what));
        }
        Err(ShrinkError::Property(error)) => return Err(error.into()),
        Err(error) => return Err(CommandError::file(&args.log, error)),
    };
    store::save_log(&target, &shrunk.session, LogOptions::whole())?;
    let report = ShrinkReport {
        path: args.output.display().to_string(),
        from: args.log.display().to_string(),
        players: shrunk.session.players.iter().filter(|player| !player.is_empty()).count(),
        ticks: shrunk.session.ticks.len(),
        duration_us: shrunk.session.duration().0,
        size_bytes: FileSize::of(&args.output),
        probes: shrunk.probes,
        removed: &shrunk.removed,
        shows: property.first_field(),
    };
    output.show(&report, |page| print(page, &report))
}

fn print(page: &mut Page, report: &ShrinkReport<'_>) {
    page.heading(&report.path);
    let length = duration(crate::units::Micros(report.duration_us));
    let (players, ticks) = (counted(report.players as u64, "player"), counted(report.ticks as u64, "tick"));
    page.pair("holds", &format!("{players}, {ticks} ({length}), {}", report.size_bytes));
    if let Some(shows) = report.shows {
        page.pair("shows", &format!("a first difference in {shows}"));
    }
    page.pair("tried", &format!("{} sessions; no single thing more can be taken out", count(report.probes)));
    page.blank();
    let row = |RemovedCount { kind, before, after }: &RemovedCount| {
        [kind.name().to_owned(), count(*before as u64), count(*after as u64)]
    };
    page.table(&["", ">before", ">after"], report.removed.iter().map(row));
}
