//! `hitreg report`: writes an HTML page that shows a session.

use std::path::Path;

use serde::Serialize;

use super::builds::{BuildArgs, check_build_options};
use super::progress::Progress;
use super::replay_args::{PartArgs, SideArgs};
use super::trouble::{engine_with_notes, hole, note_gaps};
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::diff::{DiffOptions, diff};
use crate::engine::{
    ComparisonSpec, Engine, Games, LogRecords, ShownReplay, SideRejudgement, SideTrace, Traces, look_for_effects,
};
use crate::game::Wall;
use crate::log::FileKind;
use crate::page::{PageInput, PageLog, PageSubject, html};
use crate::replay::Part;
use crate::report::{diff_line, figures, what_if_line};
use crate::store::{self, FileType, TraceFile};
use crate::trace::{TraceHeader, TraceSource};
use crate::units::Micros;
use crate::why::RejudgedShots;

/// Write an HTML page that shows a session, or the differences between two runs
///
/// The page has the map with all moving entities, a timeline, charts, and an explanation of every shot and correction.
/// With two sides, chosen as for `diff`, it overlays both, marks the first divergence, and lists the changed shots. The
/// page is one file. It needs no network, and opens from disk in Chromium and Firefox.
///
/// --from and --to select a part of a log. A page of a long session lists every shot and correction, and draws paths and
/// charts more coarsely; its last tab says how. For 16 players, that begins after 5 minutes.
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

/// What all sides of a page have in common.
struct PageContext<'a> {
    map: String,
    walls: Vec<Wall>,
    log: Option<LogRecords<'a>>,
    notes: Vec<String>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Page)?;
    let sides = args.sides.sides(output.files.force)?;
    check_build_options(sides.run_builds(), output)?;
    let is_part = !args.part.is_whole();
    if is_part && !sides.is_single() {
        let what =
            "--from and --to show a part of one log: replay a part of each side with -o, and show the two traces";
        return Err(CommandError::request(what));
    }
    let engine = engine_with_notes(games);
    let (names, traces, rejudged, context, difference) = match sides.is_single() {
        true => {
            let (trace, rejudged, context) = single(&engine, args, &sides.first)?;
            (vec![sides.first.display().to_string()], vec![trace], vec![rejudged], context, None)
        }
        false => {
            let runner = args.running.runner(games, sides.run_builds(), output)?;
            let engine = Engine { runner, ..engine.clone() };
            let Traces { names, made: [a, b], rejudged, overlap_only, gaps } = sides.traces_for_page(&engine)?;
            note_gaps(&gaps);
            let options = DiffOptions { overlap_only, ..DiffOptions::default() };
            let both = [a.source(), b.source()];
            let mut found = diff(both[0], both[1], &options).map_err(CommandError::request)?;
            look_for_effects(&engine, &sides, both, &options, &mut found)?;
            let mut line = diff_line(&found);
            line.extend(sides.what_if().map(|what_if| format!(". {}", what_if_line(what_if))));
            let context = common(&engine, &sides, both.map(TraceSource::header))?;
            (names.to_vec(), vec![a, b], rejudged.into(), context, Some((found, line)))
        }
    };
    let with_notes = |of_side: SideRejudgement| match of_side {
        Ok(rejudged) => (rejudged, context.notes.clone()),
        Err(why) => {
            let note = format!("shots under other settings: {why}");
            (Vec::new(), context.notes.iter().cloned().chain([note]).collect())
        }
    };
    let rejudged: Vec<(Vec<RejudgedShots>, Vec<String>)> = rejudged.into_iter().map(with_notes).collect();
    let log = context.log.as_ref().map(|log| log as &dyn PageLog);
    let sides_shown = names.iter().zip(&traces).zip(&rejudged);
    let shown: Vec<PageInput<'_>> = sides_shown
        .map(|((name, trace), (rejudged, notes))| PageInput {
            name,
            map: &context.map,
            trace: trace.source(),
            log,
            rejudged,
            notes,
        })
        .collect();
    let difference = difference.as_ref().map(|(found, line)| (found, line.as_str()));
    let page =
        html(&PageSubject { sides: &shown, walls: &context.walls, difference }).map_err(CommandError::request)?;
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

/// What a page of a trace, or of the replay of a log, shows.
fn single<'a>(
    engine: &Engine<'_>,
    args: &Args,
    path: &'a Path,
) -> Result<(SideTrace, SideRejudgement, PageContext<'a>), CommandError> {
    if store::kind_of(path)? == FileKind::Trace {
        if !args.part.is_whole() {
            let what = "a page shows a whole trace. To show a part, give the log, or replay the part into a trace: hitreg \
                        replay LOG --from TIME --to TIME -o TRACE";
            return Err(CommandError::file(path, what));
        }
        let trace = TraceFile::open(path)?;
        let context = PageContext::of_traces(&[trace.header()]);
        return Ok((SideTrace::File(trace, None), Ok(Vec::new()), context));
    }
    let part = args.part.of(|tick| Ok(engine.time_of(path, tick)?))?.unwrap_or(Part::WHOLE);
    let records = LogRecords::open(path, part)?;
    let game = engine.games.of_header(records.header()).map_err(|error| error.to_string());
    let (trace, rejudged) = match &game {
        Err(_) => (SideTrace::Memory(Box::new(engine.shown_records(path, part)?)), Ok(Vec::new())),
        Ok(_) => {
            let progress = Progress::of_session("replaying", Micros::ZERO);
            let ShownReplay { trace, rejudged } = engine.shown_replay(path, part, &mut |at, length| {
                progress.set_length(length);
                progress.reached(at);
            })?;
            (trace, rejudged)
        }
    };
    Ok((trace, rejudged, PageContext::of(engine, records, game.err())?))
}

/// What both sides of a comparison have in common. The packets belong to the recorded session, so they are used only if
/// no side changes a setting.
fn common<'a>(
    engine: &Engine<'_>,
    sides: &'a ComparisonSpec,
    traces: [&TraceHeader; 2],
) -> Result<PageContext<'a>, CommandError> {
    if store::kind_of(&sides.first)? == FileKind::Trace {
        return Ok(PageContext::of_traces(&traces));
    }
    let records = LogRecords::open(&sides.first, Part::WHOLE)?;
    let unknown = engine.games.of_header(records.header()).err().map(|error| error.to_string());
    let context = PageContext::of(engine, records, unknown)?;
    let is_of_one_log = sides.second.is_none();
    let log = context.log.filter(|_| is_of_one_log && sides.what_if().is_none());
    Ok(PageContext { log, ..context })
}

impl<'a> PageContext<'a> {
    /// That of traces.
    fn of_traces(headers: &[&TraceHeader]) -> PageContext<'a> {
        let hole = hole(headers.iter().flat_map(|header| &header.gaps).min_by_key(|gap| gap.from));
        let notes = hole.into_iter().chain(["walls: a trace has no map".to_owned()]).collect();
        PageContext { map: String::new(), walls: Vec::new(), log: None, notes }
    }

    /// That of a log. `unknown` says why this build does not play its game.
    fn of(engine: &Engine<'_>, log: LogRecords<'a>, unknown: Option<String>) -> Result<PageContext<'a>, CommandError> {
        let hole = hole(log.first_gap()?.as_ref());
        let header = log.header();
        let walls = engine.walls(header);
        let no_walls = walls.is_empty().then(|| match &*header.map {
            "" => "walls: the log names no map".to_owned(),
            map => format!("walls: this build has none for the map {map}"),
        });
        let unknown = unknown.map(|why| format!("predictions, screens and hits: {why}"));
        Ok(PageContext {
            map: header.map.clone(),
            notes: hole.into_iter().chain(unknown).chain(no_walls).collect(),
            walls,
            log: Some(log),
        })
    }
}
