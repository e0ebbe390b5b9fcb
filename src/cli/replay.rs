//! `hitreg replay`: replays a log through this build's pipelines, prints a summary, and writes a trace on request.

mod corpus;
mod hashes;
mod network;
mod played;
mod recorded;

use crate::units::ClockTime;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::corpus::{CorpusArgs, WorkerArgs};
use super::figures::{count, counted, duration, measure, replay_mode, share, speed};
use super::output::Output;
use super::outputs::OutputPath;
use super::page::Page;
use super::part::PartArgs;
use super::progress::{Progress, Stopwatch};
use super::trouble::CommandError;
use super::what_if::WhatIfArgs;
use super::{CommandResult, each_log, offered};
use crate::drawing::DrawingScore;
use crate::engine::{Games, Playable};
use crate::fairness::{CoverHits, Fairness};
use crate::log::FileKind;
use crate::record::{LogContents, Session};
use crate::replay::{ReplayOptions, ReplayOutput};
use crate::score::ModeScore;
use crate::stats::{Spread, Tail};
use crate::store::{self, FileType, Target};
use crate::summary::{Coverage, NetworkSummary, PlayedPredictions, PredictionShare, PredictionSummary, ShotSummary};
use crate::trace::schema::{TABLES, TableSchema};
use played::ReplayResult;
use recorded::{JumpReport, RejudgedHit};

/// Replay a log, and measure prediction, interpolation and hits
///
/// Closed loop runs the server and all clients again, on the recorded usercmds and links. Under the log's own settings,
/// it must match the recording, and the page says whether it does. Open loop runs only the clients, on the recorded
/// snapshots, and compares each prediction with the recorded state. It needs no server, so it works on recordings of
/// real games.
///
/// --from and --to limit the output to a part. The session before the part also runs, and the session after it is not
/// read.
///
/// --set and --preset run the same input under other settings. With --what-if rejudge, the session runs as recorded,
/// and only the hit test of each shot uses the other settings.
///
/// Several logs are replayed in parallel, with a row for each. Then -o and --record name folders, where each output has
/// the name of its log. A log that fails does not stop the others.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg replay match.hitlog
  hitreg replay match.hitlog -o match.hittrace
  hitreg replay logs -o traces/                    every *.hitlog below logs
  hitreg replay match.hitlog -o shots.hittrace --tables shots,corrections
  hitreg replay match.hitlog --from 40:00 --to 40:30 -o fight.hittrace
  hitreg replay match.hitlog --record again.hitlog
  hitreg replay match.hitlog --set lag_compensation.enabled=false --what-if rejudge
  hitreg replay match.hitlog --preset quakeworld --format json")]
pub(super) struct Args {
    /// Logs, directories to search for *.hitlog, quoted patterns, or @FILE with a path on each line
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// The trace to write, with all output of the pipelines; for several logs, the folder of their traces
    #[arg(short, long, value_name = "TRACE")]
    output: Option<OutputPath>,
    /// Write only these tables, such as `shots,corrections`
    #[arg(
        long,
        value_name = "NAMES",
        requires = "output",
        value_delimiter = ',',
        value_parser = offered::tables(),
        hide_possible_values = true
    )]
    tables: Vec<String>,
    /// A new log to write: the same input, with the states of this build's server; for several logs, a folder
    #[arg(long, value_name = "LOG", conflicts_with_all = ["from", "to"])]
    record: Option<OutputPath>,
    /// Encode every datagram, to report bytes; several times slower
    #[arg(long)]
    sizes: bool,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    what_if: WhatIfArgs,
    #[command(flatten)]
    corpus: CorpusArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Serialize)]
struct ReplayReport<'a> {
    path: String,
    game: &'a str,
    mode: &'a str,
    /// The replayed part of the session; `None` for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<SessionPart>,
    /// The digest of the trace; `None` for a part of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Settings that differ from the log's own.
    settings_changed: &'a [String],
    /// How the counts of hits under changed settings were made.
    what_if: &'static str,
    #[serde(skip)]
    what_if_means: &'static str,
    /// Data of a later format version that this build skips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<String>,
    hashes: HashReport,
    prediction: &'a PredictionSummary,
    #[serde(skip)]
    grades: &'static str,
    /// The accuracy of interpolation, if the trace has the true positions.
    #[serde(skip_serializing_if = "<[DrawingScore]>::is_empty")]
    drawn: &'a [DrawingScore],
    /// An estimate by `interpolation.mode`, if the trace lacks the true positions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    interpolation: BTreeMap<&'static str, &'a ModeScore>,
    /// How often snapshots visibly moved players on their own screens. Only in open loop.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    jumps: &'a [JumpReport],
    /// The hits that another server reported, judged again.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hits_again: &'a [RejudgedHit],
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a NetworkSummary>,
    shots: &'a ShotSummary,
    fairness: &'a Fairness,
    exercised: &'a Coverage,
    session_us: i64,
    real_time_factor: f64,
    trace: Option<String>,
}

/// A part of a session.
#[derive(Clone, Copy, Serialize)]
struct SessionPart {
    from_us: i64,
    to_us: i64,
}

/// Whether the replay matches the recorded session.
#[derive(Serialize)]
struct HashReport {
    compared: u64,
    first_difference_tick: Option<u32>,
    /// The first missing part of the session. After it, the replay does not match the played session.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<SessionPart>,
}

impl Args {
    /// Whether the trace should contain a table.
    fn keeps(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }

    /// The typed option that needs the server.
    fn server_option(&self, output: &Output) -> Option<&'static str> {
        let given = [("sizes", self.sizes), ("record", self.record.is_some())];
        given.into_iter().find(|(name, is_given)| output.is_typed(name, *is_given)).map(|(name, _)| name)
    }

    /// Refuses an option that needs the server where only clients run: `--mode open`, or a log without a server.
    fn check_open_loop(&self, log: &Path, needs_server: Option<&str>) -> Result<(), CommandError> {
        let Some(name) = needs_server else { return Ok(()) };
        let what = format!("--{name} needs the server");
        if self.what_if.is_open() {
            let what = format!("{what}, and --mode open runs only the clients: leave one out");
            return Err(CommandError::request(what));
        }
        // Whoever replays the log says what is wrong with it.
        let is_log = store::kind_of(log)? == FileKind::Log;
        let opened = if is_log { store::open_log(log).ok() } else { None };
        match opened.is_some_and(|log| log.header().holds() == LogContents::Clients) {
            true => Err(CommandError::file(log, format!("{what}, and this log has none: leave it out"))),
            false => Ok(()),
        }
    }

    /// Rejects names of tables that a replay does not have.
    fn check_tables(&self) -> Result<(), CommandError> {
        let Some(strange) = self.tables.iter().find(|name| TableSchema::of(name).is_none()) else { return Ok(()) };
        let known = TABLES.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        Err(CommandError::request(format!("--tables: a replay has no table `{strange}`; it has {known}")))
    }
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    args.check_tables()?;
    args.what_if.check()?;
    let log = match &args.logs[..] {
        [log] if !each_log::are_several(&args.logs) && !args.corpus.is_given() => log,
        _ => return corpus::run(games, args, output),
    };
    args.check_open_loop(log, args.server_option(output))?;
    let trace_to = output.files.target_if(&args.output, FileType::Trace)?;
    let record_to = output.files.target_if(&args.record, FileType::Log)?;
    let mut played = played::play(games, args, (log, true), trace_to.as_ref(), record_to.as_ref())?;
    let spreads = std::mem::take(&mut played.spreads);
    let report = report_of(games, args, log, &played, trace_to.as_ref());
    let on_terminal = std::io::stdout().is_terminal();
    output.show(&report, |page| {
        print(page, &report, &played.scores);
        if on_terminal {
            page.append(spreads);
        }
    })
}

/// The report on a replay.
fn report_of<'a>(
    games: &Games,
    args: &'a Args,
    log: &Path,
    played: &'a ReplayResult,
    trace: Option<&Target>,
) -> ReplayReport<'a> {
    ReplayReport {
        path: log.display().to_string(),
        game: &played.trace.game,
        mode: &played.trace.mode,
        part: played.part.map(|part| SessionPart { from_us: part.from.0, to_us: part.to.0 }),
        digest: played.digest.clone(),
        settings_changed: &played.changed,
        what_if: args.what_if.question().name(),
        what_if_means: args.what_if.question().meaning(),
        passed_over: games.passed_over(&played.header),
        hashes: HashReport {
            compared: played.hashes_compared,
            first_difference_tick: played.first_difference.map(|difference| difference.tick.0),
            missing: played.hole.map(|gap| SessionPart { from_us: gap.from.0, to_us: gap.to.0 }),
        },
        prediction: &played.summary.prediction,
        grades: games.of_header(&played.header).map_or("", |game| game.grades()),
        drawn: &played.drawn,
        interpolation: played.scores.iter().map(|score| (score.mode, score)).collect(),
        jumps: &played.jumps,
        hits_again: &played.hits_again,
        network: played.summary.network.as_ref(),
        shots: &played.summary.shots,
        fairness: &played.fairness,
        exercised: &played.summary.exercised,
        session_us: played.length.0,
        real_time_factor: played.length.as_s_f64() / played.seconds.max(1e-9),
        trace: trace.map(|trace| trace.path().display().to_string()),
    }
}

/// Replays with a progress bar, and returns the duration in seconds.
pub(super) fn replay(
    game: &dyn Playable,
    path: &Path,
    session: &Session,
    options: &ReplayOptions,
) -> Result<(ReplayOutput, f64), CommandError> {
    let progress = Progress::of_session("replaying", session.duration());
    let watch = Stopwatch::start();
    let replayed = game.replay(session, options, &mut |at| progress.reached(at));
    let seconds = watch.elapsed_s();
    Ok((replayed.map_err(|error| CommandError::file(path, error))?, seconds))
}

fn print(page: &mut Page, report: &ReplayReport<'_>, scores: &[ModeScore]) {
    page.heading(&format!("{}: {}, {}", report.path, report.game, replay_mode(report.mode)));
    let length = duration(crate::units::Micros(report.session_us));
    page.pair("speed", &format!("{length} at {}", speed(report.real_time_factor)));
    page.pair("replayed", &exercised(report.exercised));
    if !report.settings_changed.is_empty() {
        page.pair("settings", &report.settings_changed.join(" "));
        page.pair("what-if", &format!("{}. {}.", report.what_if, report.what_if_means));
    }
    if !report.passed_over.is_empty() {
        page.pair("skipped", &report.passed_over.join(", "));
    }
    if let Some(SessionPart { from_us, to_us }) = report.part {
        let [from, to] = [from_us, to_us].map(|at| ClockTime(crate::units::Micros(at)));
        page.pair("part", &format!("{from} to {to}"));
    }
    if let Some(digest) = &report.digest {
        page.pair("digest", digest);
    }
    hashes::print(page, report);
    if report.prediction.checked > 0 {
        print_prediction(page, report.prediction, report.grades);
    }
    JumpReport::print(page, report.jumps);
    print_drawn(page, report.drawn);
    print_interpolation(page, scores);
    if report.shots.fired > 0 {
        print_shots(page, report.shots, &report.fairness.all, RejudgedHit::are_of_no_shot(report.hits_again));
    }
    RejudgedHit::print(page, report.hits_again);
    if let Some(network) = report.network {
        network::print(page, network);
    }
    if let Some(trace) = &report.trace {
        page.blank();
        page.line(&format!("Trace written to {trace}"));
    }
}

/// Describes what a replay exercised.
pub(super) fn exercised(exercised: &Coverage) -> String {
    let Coverage { ticks, usercmds, corrections, shots, hits, .. } = exercised;
    let parts =
        [(*ticks, "tick"), (*usercmds, "usercmd"), (*corrections, "correction"), (*shots, "shot"), (*hits, "hit")];
    parts.map(|(number, one)| counted(number, one)).join(", ")
}

fn print_prediction(page: &mut Page, prediction: &PredictionSummary, grades: &str) {
    let ran = if prediction.as_played.is_some() { ", with the server's usercmd times" } else { "" };
    page.heading(&format!("Prediction, compared with the server's state after the same usercmds{ran}"));
    let row = |name: &str, PredictionShare { checked, exact, near }: PredictionShare| {
        let [exactly, nearly] = [exact, exact + near].map(|acks| share(acks, checked));
        [name.to_owned(), count(checked), exactly, nearly, count(checked - exact - near)]
    };
    let all = PredictionShare { checked: prediction.checked, exact: prediction.exact, near: prediction.near };
    let mut rows = vec![row("on the ground", prediction.ground), row("in the air", prediction.air), row("all", all)];
    if let Some(PlayedPredictions { ground, air }) = prediction.as_played {
        rows.extend([row("on the ground, as played", ground), row("in the air, as played", air)]);
    }
    page.table(&["", ">acks", ">exact", ">exact or near", ">misses"], rows);
    page.paragraph(2, &format!("{grades}; miss: neither"));
    if let Some(error) = &prediction.error_units {
        let [p50, p95, max] = [error.p50, error.p95, error.max].map(measure);
        let apart = match prediction.relocations {
            0 => String::new(),
            some => format!(" ({} by spawns, deaths and teleports excluded)", counted(some, "correction")),
        };
        page.paragraph(2, &format!("position error: median {p50}, p95 {p95}, max {max} units{apart}"));
    }
    if !prediction.misses_by_cause.is_empty() {
        let mut causes: Vec<(&String, &u64)> = prediction.misses_by_cause.iter().collect();
        causes.sort_by_key(|(_, misses)| std::cmp::Reverse(**misses));
        let text = |(cause, misses): (&String, &u64)| {
            format!("{} {} ({})", cause.replace('_', " "), count(*misses), share(*misses, prediction.checked))
        };
        page.pair("misses", &causes.into_iter().map(text).collect::<Vec<_>>().join(", "));
    }
}

fn print_drawn(page: &mut Page, drawn: &[DrawingScore]) {
    if drawn.is_empty() {
        return;
    }
    page.heading("Interpolation: distance of drawn players from their true position at that time");
    let row = |drawn: &DrawingScore| {
        let [p50, p95, p99] = percentiles(drawn.error_units);
        [drawn.by.clone(), count(drawn.views), p50, p95, p99]
    };
    // The distance between two ends of a teleport is no error of interpolation.
    let is_teleport = |drawn: &&DrawingScore| drawn.by == "teleported";
    let rows = drawn.iter().filter(|drawn| !is_teleport(drawn)).map(row);
    page.table(&["units", ">views", ">p50", ">p95", ">p99"], rows);
    let teleports: u64 = drawn.iter().filter(is_teleport).map(|drawn| drawn.views).sum();
    if teleports > 0 {
        page.faint(2, &format!("excluded: {} across a spawn or teleport", counted(teleports, "view")));
    }
}

fn print_interpolation(page: &mut Page, scores: &[ModeScore]) {
    if scores.iter().all(|score| score.samples == 0) {
        return;
    }
    page.heading("Interpolation, estimated: each recorded state drawn from its neighbours, in units");
    let row = |score: &ModeScore| {
        let [p50, p95, p99] = percentiles(score.error_units);
        [score.mode.to_owned(), count(score.samples), p50, p95, p99]
    };
    page.table(&["interpolation.mode", ">samples", ">p50", ">p95", ">p99"], scores.iter().map(row));
}

fn percentiles(errors: Option<Tail>) -> [String; 3] {
    errors.map_or(["-"; 3].map(str::to_owned), |tail| [tail.p50, tail.p95, tail.p99].map(measure))
}

fn print_shots(page: &mut Page, shots: &ShotSummary, exposure: &CoverHits, only_hits: bool) {
    page.heading("Shots");
    let hit = match only_hits {
        true => format!("{} hits reported by the recorded server; misses are not known", count(shots.hit)),
        false => format!("{} of {} hit ({})", count(shots.hit), count(shots.fired), share(shots.hit, shots.fired)),
    };
    page.pair("server", &hit);
    if shots.launched + shots.impacts > 0 {
        page.pair("projectiles", &format!("{} launched, {}", count(shots.launched), counted(shots.impacts, "impact")));
    }
    if shots.not_run > 0 {
        let why = "predicted, but never run by the server: not counted";
        page.pair("not run", &format!("{} {why}", counted(shots.not_run, "shot")));
    }
    let on_screen = format!("{} hit on the shooter's screen", count(shots.predicted_hit));
    let (predicted, rest) = match shots.fired.saturating_sub(shots.predicted) {
        0 => ("shot", String::new()),
        1 => ("predicted shot", "; 1 shot was not predicted".to_owned()),
        others => ("predicted shot", format!("; {} shots were not predicted", count(others))),
    };
    let agreed = format!(
        "client and server agree on {} of {} ({}){rest}",
        count(shots.agreed),
        counted(shots.predicted, predicted),
        share(shots.agreed, shots.predicted)
    );
    let screen = match shots.predicted {
        0 => "no shot was predicted in this log".to_owned(),
        _ => format!("{on_screen}; {agreed}"),
    };
    page.pair("screen", &screen);
    let view_error = match only_hits {
        true => "not known: the log does not say whether the server rewound its shots".to_owned(),
        false => view_error(shots),
    };
    page.pair("view error", &view_error);
    if exposure.known > 0 {
        let hidden_for = exposure.in_cover_ms.map(|ms| match exposure.in_cover {
            1 => format!("; the target had been out of sight for {} ms on its own screen", measure(ms.p50)),
            _ => format!(
                "; targets had been out of sight on their own screens for {} ms (median; max {})",
                measure(ms.p50),
                measure(ms.max)
            ),
        });
        let hits = counted(exposure.known, "hitscan hit");
        let text = format!("{} of {hits}{}", count(exposure.in_cover), hidden_for.unwrap_or_default());
        page.pair("in cover", &text);
    }
}

/// How far targets were judged from where the shooters saw them.
pub(super) fn view_error(shots: &ShotSummary) -> String {
    match (shots.view_error_units, shots.rewound) {
        (Some(Spread { max: 0.0, .. }), _) => {
            "0 units: the server judged every target exactly where the shooter saw it".to_owned()
        }
        (Some(Spread { p50, p95, max }), _) => {
            let [p50, p95, max] = [p50, p95, max].map(measure);
            format!("median {p50}, p95 {p95}, max {max} units between target drawn and target judged")
        }
        (None, 0) => "no shot was rewound".to_owned(),
        (None, rewound) => format!("not known for the {} with a rewind", counted(rewound, "shot")),
    }
}
