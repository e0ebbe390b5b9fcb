//! `hitreg report`: writes an HTML page that shows a session.

use std::path::Path;

use serde::Serialize;

use super::diff::running::BuildArgs;
use super::diff::sides::SideArgs;
use super::output::Output;
use super::outputs::OutputPath;
use super::part::PartArgs;
use super::progress::Progress;
use super::trouble::CommandError;
use super::{CommandResult, diff, files, replay};
use crate::diff::{DiffOptions, diff as compare};
use crate::engine::{
    ComparisonSpec, Engine, Excerpt, Games, SideRejudgement, Traces, ViewedFile, look_for_effects, rejudged,
};
use crate::game::Wall;
use crate::log::FileKind;
use crate::page::{PageInput, PageSubject, html, page_memory};
use crate::record::Session;
use crate::replay::{Part, ReplayOptions};
use crate::report::figures;
use crate::report::{diff_line, what_if_line};
use crate::store::{self, FileType, TraceFile};
use crate::trace::{Table, Trace, TraceSource};
use crate::units::Micros;
use crate::why::RejudgedShots;

/// Write an HTML page that shows a session, or the differences between two runs
///
/// The page has the map with all moving entities, a timeline, charts, and an explanation of every shot and correction.
/// With two sides, chosen as for `diff`, it overlays both, marks the first divergence, and lists the changed shots. The
/// page is one file. It needs no network, and opens from disk in Chromium and Firefox.
///
/// --from and --to select a part of a log of any length. A page holds at most 24 million views of players: about 20
/// minutes of 16 players.
///
/// A log is replayed first; a trace is shown from its tables. For a log of another game, the page shows the recorded
/// data. It marks unknown values as unknown.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg report match.hitlog -o match.html
  hitreg report match.hittrace -o match.html
  hitreg report match.hitlog --from 40:00 --to 40:30 -o fight.html
  hitreg report match.hitlog --b-set lag_compensation.enabled=false \\
      --what-if rejudge -o unlagged.html
  hitreg report old.hittrace new.hittrace -o changed.html
  hitreg report match.hitlog --a ./old-build --b ./new-build -o changed.html")]
pub(super) struct Args {
    #[command(flatten)]
    sides: SideArgs,
    /// The page to write
    #[arg(short, long, value_name = "FILE")]
    output: OutputPath,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    running: BuildArgs,
}

#[derive(Serialize)]
struct ReportSummary {
    output: String,
    bytes: u64,
    sides: Vec<String>,
    /// The difference of two sides in one line; `None` for a single side.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

/// The maximum number of views in a page. Making a page with this many views takes about 3.2 GB.
const MOST_VIEWS: usize = 24_000_000;

/// Data of both sides that their traces lack.
struct SideContext {
    map: String,
    walls: Vec<Wall>,
    session: Option<Session>,
    notes: Vec<String>,
    /// The shots of a single side, judged under other rules; `None` if its log was not loaded.
    rejudged: Option<SideRejudgement>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Page)?;
    let sides = args.sides.sides(output.files.force)?;
    args.running.check(sides.run_builds(), output)?;
    let is_part = !args.part.is_whole();
    if is_part && !sides.is_single() {
        let what =
            "--from and --to show a part of one log: replay a part of each side with -o, and show the two traces";
        return Err(CommandError::request(what));
    }
    let (names, traces, besides, difference) = match sides.is_single() {
        true => {
            let (trace, besides) = match is_part || is_long_log(games, &sides.first)? {
                true => of_part(games, args, &sides.first)?,
                false => single(games, &sides.first)?,
            };
            (vec![sides.first.display().to_string()], vec![trace], besides, None)
        }
        false => {
            let (engine, runner) = (files::engine(games), args.running.runner(games, sides.run_builds(), output)?);
            let Traces { names, made, overlap_only } = sides.traces(&engine, &runner)?;
            let [a, b] = match made {
                Ok(traces) => traces,
                Err(missing) => return diff::show_missing(&missing, &sides, output),
            };
            let options = DiffOptions { overlap_only, ..DiffOptions::default() };
            let mut found = compare(&a, &b, &options).map_err(CommandError::request)?;
            look_for_effects(&engine, &sides, &runner, [&a, &b], &options, &mut found)?;
            let mut line = diff_line(&found);
            line.extend(sides.what_if().map(|what_if| format!(". {}", what_if_line(what_if))));
            (names.to_vec(), vec![a, b], besides(games, &sides)?, Some((found, line)))
        }
    };
    let push_rejudged = match besides.rejudged {
        Some(of_side) => vec![of_side],
        None => sides.rejudged(&files::engine(games), &traces)?,
    };
    let push_rejudged: Vec<(Vec<RejudgedShots>, Vec<String>)> = push_rejudged
        .into_iter()
        .map(|of_side| match of_side {
            Ok(rejudged) => (rejudged, besides.notes.clone()),
            Err(why) => {
                let note = format!("shots under other settings: {why}");
                (Vec::new(), besides.notes.iter().cloned().chain([note]).collect())
            }
        })
        .collect();
    let shown: Vec<PageInput<'_>> = names
        .iter()
        .zip(&traces)
        .zip(&push_rejudged)
        .map(|((name, trace), (rejudged, notes))| PageInput {
            name,
            map: &besides.map,
            trace,
            session: besides.session.as_ref(),
            rejudged,
            has_map: !besides.walls.is_empty(),
            notes,
        })
        .collect();
    let difference = difference.as_ref().map(|(found, line)| (found, line.as_str()));
    let page = html(&PageSubject { sides: &shown, walls: &besides.walls, difference })?;
    store::save_bytes(&target, page.as_bytes())?;
    let difference = difference.map(|(_, line)| line.to_owned());
    let report =
        ReportSummary { output: args.output.display().to_string(), bytes: page.len() as u64, difference, sides: names };
    output.show(&report, |page| {
        page.line(&report.output);
        for (index, name) in report.sides.iter().enumerate() {
            page.pair(["shows", "and"][index.min(1)], name);
        }
        page.pair_if("which", report.difference.as_deref());
        page.pair("size", &figures::bytes(report.bytes));
    })
}

/// Whether a log is streamed. A short log, or a log of a game that this build does not play, is loaded as a whole.
fn is_long_log(games: &Games, path: &Path) -> Result<bool, CommandError> {
    if store::kind_of(path)? != FileKind::Log {
        return Ok(false);
    }
    let log = Engine::new(games).survey(path)?;
    Ok(!log.is_short() && games.of_header(&log.header).is_ok())
}

/// The replay of a part of a log.
fn of_part(games: &Games, args: &Args, path: &Path) -> Result<(Trace, SideContext), CommandError> {
    let engine = files::engine(games);
    let part = args.part.of(|tick| Ok(engine.time_of(path, tick)?))?.unwrap_or(Part::WHOLE);
    let progress = Progress::of_session("replaying", Micros::ZERO);
    let Excerpt { trace, session, walls, rejudged } = engine.excerpt(path, part, MOST_VIEWS, &mut |at, length| {
        progress.set_length(length);
        progress.reached(at);
    })?;
    Ok((trace, SideContext { rejudged: Some(Ok(rejudged)), ..SideContext::of_log(session, walls, Vec::new()) }))
}

/// Checks the memory limit for a page of one side, beside so many bytes of its trace and session.
fn check_memory<'t>(
    games: &Games,
    path: &Path,
    held: usize,
    tables: impl IntoIterator<Item = (&'t str, u64)>,
) -> Result<(), CommandError> {
    let needed = held.saturating_add(page_memory(tables));
    games.memory().check(needed).map_err(|needs| CommandError::file(path, needs))
}

/// The trace in a file, or the replay of a log.
fn single(games: &Games, path: &Path) -> Result<(Trace, SideContext), CommandError> {
    if store::kind_of(path)? == FileKind::Trace {
        let trace = TraceFile::open(path)?;
        check_memory(games, path, trace.memory(), trace.tables().iter().map(|(table, rows)| (&*table.name, *rows)))?;
    }
    let looked = files::engine(games).look(path)?;
    let (replayed, rejudged) = match &looked {
        ViewedFile::Trace(_) | ViewedFile::Unknown(..) => (None, Ok(Vec::new())),
        ViewedFile::Log(log, _) => {
            let game = games.of(&log.session).map_err(|error| CommandError::file(path, error))?;
            let options = ReplayOptions { network: true, memory: games.memory(), ..ReplayOptions::default() };
            let trace = replay::replay(game, path, &log.session, &options)?.0.trace;
            let rejudged = rejudged(game, &log.session, &options, &trace);
            (Some(trace), rejudged)
        }
    };
    let (trace, besides) = SideContext::of(looked);
    let trace = replayed.or(trace).unwrap_or_default();
    let trace_bytes = trace.tables.iter().map(Table::row_bytes).fold(0, usize::saturating_add);
    let held = trace_bytes.saturating_add(besides.session.as_ref().map_or(0, Session::bytes));
    check_memory(games, path, held, trace.tables.iter().map(|table| (&*table.name, table.rows() as u64)))?;
    Ok((trace, SideContext { rejudged: Some(rejudged), ..besides }))
}

/// The data of a common log that the traces lack. The packets belong to the recorded session, so they are used only if
/// no side changes a setting.
fn besides(games: &Games, sides: &ComparisonSpec) -> Result<SideContext, CommandError> {
    let (_, besides) = SideContext::of(files::engine(games).look(&sides.first)?);
    let is_of_one_log = sides.second.is_none();
    let session = besides.session.filter(|_| is_of_one_log && sides.what_if().is_none());
    Ok(SideContext { session, ..besides })
}

impl SideContext {
    fn of_log(session: Session, walls: Vec<Wall>, notes: Vec<String>) -> SideContext {
        SideContext {
            map: session.header.map.clone(),
            walls,
            notes: files::hole(session.first_hole()).into_iter().chain(notes).collect(),
            session: Some(session),
            rejudged: None,
        }
    }

    /// Separates the trace of a file that needs no replay from its other data.
    fn of(looked: ViewedFile) -> (Option<Trace>, SideContext) {
        match looked {
            ViewedFile::Trace(trace) => (
                Some(trace),
                SideContext { map: String::new(), walls: Vec::new(), session: None, notes: Vec::new(), rejudged: None },
            ),
            ViewedFile::Log(log, walls) => (None, SideContext::of_log(log.session, walls, Vec::new())),
            ViewedFile::Unknown(log, trace, why) => {
                let notes = vec![format!("predictions, screens and hits: {why}")];
                (Some(trace), SideContext::of_log(log.session, Vec::new(), notes))
            }
        }
    }
}
