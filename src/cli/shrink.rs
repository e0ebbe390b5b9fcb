//! `hitreg shrink`: the smallest session that still shows something.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use serde::Serialize;

use super::diff::looking::Looking;
use super::diff::running::Running;
use super::diff::sides::Ways;
use super::figures::{bytes, count, counted, duration};
use super::games::Games;
use super::output::Output;
use super::page::{Align, Page};
use super::trouble::Trouble;
use super::{Outcome, files, interrupt};
use crate::build::condition::{Answer, Condition};
use crate::build::{Runner, Stop};
use crate::diff::{DiffOptions, TraceDiff, Verdict, diff};
use crate::log::Options as LogOptions;
use crate::record::Session;
use crate::replay::ReplayError;
use crate::shrink::{Removed, ShrinkError, Step};
use crate::store;

/// Make a log as small as it can be and still show something
///
/// Players, time, usercmds, buttons, angles, moves, lost, late and doubled packets are taken out for as long as the
/// rest still shows it; in the end no single one can go. What it shows is said by a command, or by two builds, presets or
/// settings that play the log otherwise: then the same table and field must be the first to differ.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg shrink match.hitlog -o small.hitlog --b ./new-build
  hitreg shrink match.hitlog -o small.hitlog --a ./old --b ./new --on hits
  hitreg shrink match.hitlog -o small.hitlog --b-preset quake3 --on hits
  hitreg shrink match.hitlog -o small.hitlog --while './game verify {}'")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Where the small log goes
    #[arg(short, long, value_name = "LOG")]
    output: PathBuf,
    /// Ask a shell command whether a log still shows it: {} stands for the log; exit code 1 means that it does,
    /// anything else below 126 that it does not
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["a", "b", "a_set", "b_set", "a_preset", "b_preset"])]
    condition: Option<String>,
    #[command(flatten)]
    ways: Ways,
    #[command(flatten)]
    looking: Looking,
    #[command(flatten)]
    running: Running,
}

/// Whether a session shows it cannot be said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct CannotTell(String);

#[derive(Serialize)]
struct Report<'a> {
    path: &'a Path,
    from: &'a Path,
    players: usize,
    ticks: usize,
    duration_us: i64,
    size_bytes: u64,
    probes: u64,
    removed: &'a [Removed],
    /// What it still shows, where that is a difference.
    shows: Option<&'a str>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    if args.condition.is_none() && args.ways.are_plain() {
        let what = "what should the small log show? Give a command by --while, or two builds or settings by --b";
        return Err(Trouble::Request(what.to_owned()));
    }
    let log = files::read_log(&args.log)?;
    let game = games.of(&log.session).map_err(|error| Trouble::file(&args.log, error))?;
    let property = Property::of(games, args)?;
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut progress = |step: &Step| {
        bar.set_message(format!("shrinking: {} to go, {} tried", step.kind.name(), step.probes));
    };
    let shrunk = game.shrink(&log.session, &|session| property.shows(session), &mut progress);
    bar.finish_and_clear();
    let shrunk = match shrunk {
        Ok(shrunk) => shrunk,
        Err(ShrinkError::Replay(ReplayError::NoServer)) => {
            let what = "an imported recording has no server that could record what is left of it: it cannot be shrunk";
            return Err(Trouble::file(&args.log, what));
        }
        Err(error @ (ShrinkError::NotShown | ShrinkError::NotReproduced | ShrinkError::Replay(_))) => {
            return Err(Trouble::file(&args.log, error));
        }
        Err(ShrinkError::Property(CannotTell(why))) => {
            // Whatever could not be told after that could not because of it.
            interrupt::check(property.stop())?;
            return Err(Trouble::Request(why));
        }
    };
    store::save_log(&args.output, &shrunk.session, LogOptions::whole())?;
    let report = Report {
        path: &args.output,
        from: &args.log,
        players: shrunk.session.players.len(),
        ticks: shrunk.session.ticks.len(),
        duration_us: shrunk.session.duration().0,
        size_bytes: files::size_bytes(&args.output),
        probes: shrunk.probes,
        removed: &shrunk.removed,
        shows: property.sought(),
    };
    output.show(&report, |page| print(page, &report))?;
    Ok(Outcome::Done)
}

/// What a session must still show.
enum Property<'a> {
    Asked(Condition, Stop),
    Differs { games: &'a Games, ways: &'a Ways, runner: Runner, options: DiffOptions, sought: String },
}

impl<'a> Property<'a> {
    fn of(games: &'a Games, args: &'a Args) -> Result<Property<'a>, Trouble> {
        if let Some(command) = &args.condition {
            let stop = interrupt::stop()?;
            return Ok(Property::Asked(Condition::new(command, args.running.time_limit(), stop.clone()), stop));
        }
        // Every candidate is another log: nothing of it would ever be wanted again.
        let runner = Runner { cache: None, ..args.running.runner()? };
        let options = args.looking.options();
        let found = compare(games, &args.ways, &runner, &options, &args.log);
        interrupt::check(&runner.stop)?;
        let found = found.map_err(Trouble::Request)?;
        let sought = found.as_ref().and_then(sought_in).ok_or_else(|| {
            Trouble::file(&args.log, "the two sides play it alike, or one cannot play it: there is nothing to keep")
        })?;
        Ok(Property::Differs { games, ways: &args.ways, runner, options, sought })
    }

    fn sought(&self) -> Option<&str> {
        match self {
            Property::Asked(..) => None,
            Property::Differs { sought, .. } => Some(sought),
        }
    }

    fn stop(&self) -> &Stop {
        match self {
            Property::Asked(_, stop) => stop,
            Property::Differs { runner, .. } => &runner.stop,
        }
    }

    fn shows(&self, session: &Session) -> Result<bool, CannotTell> {
        if self.stop().is_stopped() {
            return Err(CannotTell("interrupted".to_owned()));
        }
        let folder = tempfile::tempdir().map_err(|error| CannotTell(format!("no temporary folder: {error}")))?;
        let path = folder.path().join("candidate.hitlog");
        store::save_log(&path, session, LogOptions::whole()).map_err(|error| CannotTell(error.to_string()))?;
        match self {
            Property::Asked(condition, stop) => match condition.ask(&path, None) {
                _ if stop.is_stopped() => Err(CannotTell("interrupted".to_owned())),
                Ok(Answer::Shows) => Ok(true),
                Ok(Answer::Gone | Answer::Unknown(_)) => Ok(false),
                Err(error) => Err(CannotTell(error.to_string())),
            },
            Property::Differs { games, ways, runner, options, sought } => {
                let found = compare(games, ways, runner, options, &path).map_err(CannotTell)?;
                Ok(found.as_ref().and_then(sought_in).is_some_and(|shown| shown == *sought))
            }
        }
    }
}

/// The comparison of both sides' traces of a log; `None` when one side has none.
fn compare(
    games: &Games,
    ways: &Ways,
    runner: &Runner,
    options: &DiffOptions,
    log: &Path,
) -> Result<Option<TraceDiff>, String> {
    let traces = ways.traces(games, runner, log).map_err(|trouble| trouble.to_string())?;
    let Ok([a, b]) = traces.made else { return Ok(None) };
    diff(&a, &b, options).map(Some).map_err(|error| error.to_string())
}

/// What differs first: the table and the field, wherever it does.
fn sought_in(found: &TraceDiff) -> Option<String> {
    let first = found.first.as_ref().filter(|_| found.verdict == Verdict::Differs)?;
    Some(format!("{} {}", first.table, first.field.as_deref().unwrap_or("rows")))
}

fn print(page: &mut Page, report: &Report<'_>) {
    page.heading(&report.path.display().to_string());
    let length = duration(crate::units::Micros(report.duration_us));
    let (players, ticks) = (counted(report.players as u64, "player"), counted(report.ticks as u64, "tick"));
    page.pair("holds", &format!("{players}, {ticks} ({length}), {}", bytes(report.size_bytes)));
    if let Some(shows) = report.shows {
        page.pair("shows", &format!("a first difference in {shows}"));
    }
    page.pair("tried", &format!("{} sessions; no single thing more can be taken out", count(report.probes)));
    page.blank();
    let right = Align::Right;
    let rows: Vec<_> = report
        .removed
        .iter()
        .map(|removed| {
            [removed.kind.name().to_owned(), count(removed.before as u64), count(removed.after as u64)]
                .map(super::page::Cell::from)
                .into()
        })
        .collect();
    page.table(&[("", Align::Left), ("before", right), ("after", right)], &rows);
}
