//! `hitreg report`: writes an HTML page that shows a session.

use std::path::Path;

use serde::Serialize;

use super::builds::{BuildArgs, check_build_options};
use super::progress::Progress;
use super::replay_args::{CompareArgs, PartArgs, SideArgs};
use super::trouble::{describe_gap, engine_with_notes, note_gaps};
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::diff::{DiffOptions, TraceDiff, diff};
use crate::engine::{ComparisonSpec, Engine, Games, LogRecords, ShownReplay, SideTrace, Traces, look_for_effects};
use crate::game::Wall;
use crate::log::FileKind;
use crate::page::{PageInput, PageLog, PageSubject, html};
use crate::replay::Part;
use crate::report::{diff_line, figures, what_if_line};
use crate::store::{self, FileType, TraceFile};
use crate::trace::{TraceHeader, TraceSource};
use crate::units::Micros;

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
    compare: CompareArgs,
    #[command(flatten)]
    build_options: BuildArgs,
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

/// The sides of a page.
struct PageSides<'a> {
    names: Vec<String>,
    shown: Vec<ShownReplay>,
    context: PageContext<'a>,
    /// The difference of two sides, also in one line.
    difference: Option<(TraceDiff, String)>,
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
    let mut sides = args.sides.sides(output.files.force)?;
    (sides.replays.a.with_rejudged, sides.replays.b.with_rejudged) = (true, true);
    check_build_options(sides.run_builds(), output)?;
    let is_part = !args.part.is_whole();
    if is_part && !sides.is_single() {
        let what =
            "--from and --to show a part of one log: replay a part of each side with -o, and show the two traces";
        return Err(CommandError::request(what));
    }
    if let Some(name) =
        ["on", "tolerance", "overlap"].into_iter().find(|name| sides.is_single() && output.is_typed(name))
    {
        return Err(CommandError::request(format!(
            "--{name} has no effect without a second side: name one, or leave it out"
        )));
    }
    let engine = engine_with_notes(games);
    let shown = match sides.is_single() {
        true => PageSides::of_one(&engine, args, &sides.first)?,
        false => {
            let runner = args.build_options.runner(games, sides.run_builds(), output)?;
            PageSides::of_two(&Engine { runner, ..engine }, &sides, &args.compare)?
        }
    };
    let page = shown.html()?;
    store::save_bytes(&target, page.as_bytes())?;
    let report = ReportSummary {
        output: args.output.display().to_string(),
        bytes: page.len() as u64,
        sides: shown.names,
        difference: shown.difference.map(|(_, line)| line),
    };
    output.show(&report, |page| {
        page.line(&report.output);
        for (index, name) in report.sides.iter().enumerate() {
            page.pair(["shows", "and"][index.min(1)], name);
        }
        page.pair_if("which", report.difference.as_deref());
        page.pair("size", &figures::bytes(report.bytes));
    })
}

impl<'a> PageSides<'a> {
    /// A trace, or the replay of a log.
    fn of_one(engine: &Engine<'_>, args: &Args, path: &'a Path) -> Result<PageSides<'a>, CommandError> {
        let (shown, context) = if store::kind_of(path)? == FileKind::Trace {
            if !args.part.is_whole() {
                let what = "a page shows a whole trace. To show a part, give the log, or replay the part into a trace: \
                            hitreg replay LOG --from TIME --to TIME -o TRACE";
                return Err(CommandError::file(path, what));
            }
            let trace = TraceFile::open(path)?;
            let context = PageContext::of_traces(&[trace.header()]);
            (SideTrace::File(trace, None).into(), context)
        } else {
            let part = args.part.of(|tick| Ok(engine.time_of(path, tick)?))?.unwrap_or(Part::WHOLE);
            let records = LogRecords::open(path, part)?;
            let unknown = engine.games.of_header(records.header()).err().map(|error| error.to_string());
            let shown = if unknown.is_some() {
                SideTrace::Memory(Box::new(engine.shown_records(path, part)?)).into()
            } else {
                let progress = Progress::of_session("replaying", Micros::ZERO);
                engine.shown_replay(path, part, &mut |at, length| {
                    progress.set_length(length);
                    progress.reached(at);
                })?
            };
            (shown, PageContext::of(engine, records, unknown)?)
        };
        Ok(PageSides { names: vec![path.display().to_string()], shown: vec![shown], context, difference: None })
    }

    /// The sides of a comparison.
    fn of_two(
        engine: &Engine<'_>,
        sides: &'a ComparisonSpec,
        compare: &CompareArgs,
    ) -> Result<PageSides<'a>, CommandError> {
        let Traces { names, sides: [a, b], rejudged: [rejudged_a, rejudged_b], overlap_only, gaps } =
            sides.make_traces(engine)?;
        note_gaps(&gaps);
        let options = compare.options();
        let options = DiffOptions { overlap_only: overlap_only || options.overlap_only, ..options };
        let traces = [a.source(), b.source()];
        let mut difference = diff(traces[0], traces[1], &options).map_err(CommandError::request)?;
        look_for_effects(engine, sides, traces, &options, &mut difference)?;
        let mut line = diff_line(&difference);
        line.extend(sides.what_if().map(|what_if| format!(". {}", what_if_line(what_if))));
        let context = PageContext::of_sides(engine, sides, traces.map(TraceSource::header))?;
        let shown = [(a, rejudged_a), (b, rejudged_b)].map(|(trace, rejudged)| ShownReplay { trace, rejudged });
        Ok(PageSides { names: names.into(), shown: shown.into(), context, difference: Some((difference, line)) })
    }

    fn html(&self) -> Result<String, CommandError> {
        let PageContext { map, walls, log, notes } = &self.context;
        let log = log.as_ref().map(|log| log as &dyn PageLog);
        let notes_of = |shown: &ShownReplay| {
            let problem = shown.rejudged.as_ref().err().map(|why| format!("shots under other settings: {why}"));
            notes.iter().cloned().chain(problem).collect()
        };
        let notes: Vec<Vec<String>> = self.shown.iter().map(notes_of).collect();
        let sides = self.names.iter().zip(&self.shown).zip(&notes).map(|((name, shown), notes)| PageInput {
            name,
            map,
            trace: shown.trace.source(),
            log,
            rejudged: shown.rejudged.as_deref().unwrap_or_default(),
            notes,
        });
        let sides: Vec<PageInput<'_>> = sides.collect();
        let difference = self.difference.as_ref().map(|(difference, line)| (difference, line.as_str()));
        html(&PageSubject { sides: &sides, walls, difference }).map_err(CommandError::request)
    }
}

impl<'a> PageContext<'a> {
    /// That of traces.
    fn of_traces(headers: &[&TraceHeader]) -> PageContext<'a> {
        let gap = describe_gap(headers.iter().flat_map(|header| &header.gaps).min_by_key(|gap| gap.from));
        let notes = gap.into_iter().chain(["walls: a trace has no map".to_owned()]).collect();
        PageContext { map: String::new(), walls: Vec::new(), log: None, notes }
    }

    /// That of both sides of a comparison. The packets belong to the recorded session, so they are used only if no side
    /// changes a setting.
    fn of_sides(
        engine: &Engine<'_>,
        sides: &'a ComparisonSpec,
        headers: [&TraceHeader; 2],
    ) -> Result<PageContext<'a>, CommandError> {
        if store::kind_of(&sides.first)? == FileKind::Trace {
            return Ok(PageContext::of_traces(&headers));
        }
        let records = LogRecords::open(&sides.first, Part::WHOLE)?;
        let unknown = engine.games.of_header(records.header()).err().map(|error| error.to_string());
        let context = PageContext::of(engine, records, unknown)?;
        let log = context.log.filter(|_| sides.second.is_none() && sides.what_if().is_none());
        Ok(PageContext { log, ..context })
    }

    /// That of a log. `unknown` is the reason why this build does not play its game.
    fn of(engine: &Engine<'_>, log: LogRecords<'a>, unknown: Option<String>) -> Result<PageContext<'a>, CommandError> {
        let gap = describe_gap(log.first_gap()?.as_ref());
        let header = log.header();
        let walls = engine.walls(header);
        let no_walls = walls.is_empty().then(|| match &*header.map {
            "" => "walls: the log names no map".to_owned(),
            map => format!("walls: this build has none for the map {map}"),
        });
        let unknown = unknown.map(|why| format!("predictions, screens and hits: {why}"));
        Ok(PageContext {
            map: header.map.clone(),
            notes: gap.into_iter().chain(unknown).chain(no_walls).collect(),
            walls,
            log: Some(log),
        })
    }
}
