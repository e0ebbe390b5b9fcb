//! `hitreg replay`: replays a log through this build's pipelines, prints a summary, and writes a trace on request.

mod page;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use hitreg_log::sorted::SortedMap;
use page::{JumpReport, RejudgedHit};
use serde::{Serialize, Serializer};

use super::corpus::{CorpusArgs, EachLog, WorkerArgs, are_several};
use super::figures::{count, counted, duration};
use super::page::Page;
use super::progress::{Progress, Stopwatch};
use super::replay_args::{PartArgs, WhatIfArgs, offered_tables};
use super::trouble::engine_with_notes;
use super::{CommandError, CommandResult, Output, OutputFormat, OutputPath};
use crate::drawing::{DrawingScore, ViewErrorCollector};
use crate::engine::{
    CollectedRows, Engine, EngineError, Games, LogRecords, Playable, ReplaySinks, SurveyedLog, retry_with_encoding,
    write_replayed,
};
use crate::fairness::{Fairness, FairnessBuilder};
use crate::golden::ReplaySummary;
use crate::log::{FileKind, TraceLayout, WriterOptions as LogOptions};
use crate::record::{LogContents, SessionHeader};
use crate::replay::{Part, PlayerJumps, ReplayAttempt, ReplayFindings, ReplayOptions, log_settings};
use crate::report::distributions;
use crate::score::ModeScore;
use crate::store::{self, FileType, Target};
use crate::summary::{Coverage, NetworkSummary, PredictionSummary, ShotSummary};
use crate::trace::schema::{TABLES, shots};
use crate::trace::{Table, TraceHeader};
use crate::units::Micros;

pub(super) use page::{exercised, view_error};

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
  hitreg replay match.hitlog --set lag_compensation.enabled=false \\
      --what-if rejudge
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
        value_parser = offered_tables(),
        hide_possible_values = true
    )]
    tables: Vec<String>,
    /// A new log to write: the same input, with the states of this build's server; for several logs, a folder
    #[arg(long, value_name = "LOG", conflicts_with_all = ["from", "to"])]
    record: Option<OutputPath>,
    /// Encode every datagram, to report bytes; several times slower. With wire.sizes=nominal, report nominal bytes
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
struct ReplayReport {
    path: String,
    game: String,
    mode: String,
    /// The replayed part of the session; `None` for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<SessionPart>,
    /// Whether packets after the part, which the replay does not have, decide which packets of the part are lost.
    #[serde(skip)]
    is_open_ended: bool,
    /// The digest of the trace; `None` for a part of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Settings that differ from the log's own.
    settings_changed: Vec<String>,
    /// Why the replay cannot show what some of these settings change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unanswered: Vec<String>,
    /// How the counts of hits under changed settings were made.
    what_if: &'static str,
    #[serde(skip)]
    what_if_means: &'static str,
    /// Data of a later format version that this build skips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    passed_over: Vec<String>,
    hashes: HashReport,
    prediction: PredictionSummary,
    #[serde(skip)]
    grades: &'static str,
    /// The accuracy of interpolation, if the trace has the true positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drawn: Vec<DrawingScore>,
    /// An estimate by `interpolation.mode`, if the trace lacks the true positions.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "by_mode")]
    interpolation: Vec<ModeScore>,
    /// How often snapshots visibly moved players on their own screens. Only in open loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jumps: Vec<JumpReport>,
    /// The hits that another server reported, judged again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hits_again: Vec<RejudgedHit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkSummary>,
    shots: ShotSummary,
    /// `None` if no shot was judged, because the replay has no server.
    fairness: Option<Fairness>,
    exercised: Coverage,
    session_us: Micros,
    real_time_factor: f64,
    trace: Option<String>,
    /// Round trips and prediction errors, for a terminal.
    #[serde(skip)]
    spreads: Page,
}

fn by_mode<S: Serializer>(scores: &[ModeScore], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(scores.iter().map(|score| (score.mode, score)).collect::<SortedMap<_, _>>())
}

/// A part of a session.
#[derive(Clone, Copy, Serialize)]
struct SessionPart {
    from_us: Micros,
    to_us: Micros,
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
    fn server_option(output: &Output) -> Option<&'static str> {
        ["sizes", "record"].into_iter().find(|name| output.is_typed(name))
    }

    /// Refuses an option that needs the server where only clients run: `--mode open`, or a log without a server.
    fn check_open_loop(&self, log: &Path, needs_server: Option<&str>) -> Result<(), CommandError> {
        let Some(name) = needs_server else { return Ok(()) };
        let what = format!("--{name} needs the server");
        if self.what_if.is_open() {
            let what = format!("{what}, and --mode open runs only the clients: leave one out");
            return Err(CommandError::request(what));
        }
        // The replay reports what is wrong with the log.
        let is_log = store::kind_of(log)? == FileKind::Log;
        let opened = if is_log { store::open_log(log).ok() } else { None };
        match opened.is_some_and(|log| log.header().holds() == LogContents::Clients) {
            true => Err(CommandError::file(log, format!("{what}, and this log has none: leave it out"))),
            false => Ok(()),
        }
    }

    /// Rejects names of tables that a replay does not have.
    fn check_tables(&self) -> Result<(), CommandError> {
        let Some(strange) = self.tables.iter().find(|name| TABLES.iter().all(|table| table.name != **name)) else {
            return Ok(());
        };
        let known = TABLES.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        Err(CommandError::request(format!("--tables: a replay has no table `{strange}`; it has {known}")))
    }
}

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    args.check_tables()?;
    args.what_if.check()?;
    let log = match &args.logs[..] {
        [log] if !are_several(&args.logs) && !args.corpus.takes_a_part() => log,
        _ => return run_corpus(games, args, output),
    };
    args.check_open_loop(log, Args::server_option(output))?;
    let trace_to = output.files.target_if(&args.output, FileType::Trace)?;
    let record_to = output.files.target_if(&args.record, FileType::Log)?;
    let report = play(games, args, log, true, trace_to.as_ref(), record_to.as_ref())?;
    let on_terminal = std::io::stdout().is_terminal();
    output.show(&report, |page| {
        page::print(page, &report, program);
        if on_terminal {
            page.append(report.spreads.clone());
        }
    })
}

/// Accumulates figures from the rows of a replay.
struct RowCollectors {
    summary: ReplaySummary,
    weighing: FairnessBuilder,
    drawing: ViewErrorCollector,
    /// The shots, for a game that judges another server's hits again.
    hits: Option<CollectedRows>,
}

impl RowCollectors {
    fn new(header: TraceHeader, keeps_shots: bool) -> RowCollectors {
        RowCollectors {
            weighing: FairnessBuilder::of(&header),
            drawing: ViewErrorCollector::of(&header),
            hits: keeps_shots.then(CollectedRows::default),
            summary: ReplaySummary::new(header),
        }
    }

    fn add(&mut self, rows: &Table) {
        self.summary.add(rows);
        self.weighing.add(rows);
        self.drawing.add(rows);
        if let Some(hits) = self.hits.as_mut().filter(|_| rows.name == shots::NAME) {
            hits.add(&self.summary.header, rows.clone());
        }
    }
}

/// Replays a log, with a progress bar if it is the only one (`is_only`). `trace` is the target of its trace, and `record` the target of
/// the run as a new log.
fn play(
    games: &Games,
    args: &Args,
    path: &Path,
    is_only: bool,
    trace: Option<&Target>,
    record: Option<&Target>,
) -> Result<ReplayReport, CommandError> {
    let (log, part) = survey(games, args, path)?;
    let part = part.map(|part| part.within(log.survey.played()));
    let (options, changed) = replay_options(args, &log.header, part)?;
    if record.is_some() && options.rejudge.is_some() {
        return Err(CommandError::request(
            "--record does not work with --what-if rejudge, which runs nothing new: leave one out",
        ));
    }
    let game = games.of_header(&log.header).map_err(|error| CommandError::file(path, error))?;
    let progress = Progress::of_replay(log.survey.duration(), is_only);
    let watch = Stopwatch::start();
    let attempt = |encodes: bool, to: &mut dyn FnMut(&TraceHeader, Table)| {
        let attempt = ReplayAttempt { options: &options, encodes };
        let sinks = ReplaySinks { seen: &mut |_| {}, to, progress: &mut |at| progress.reached(at) };
        log.replay_once(game, attempt, sinks)
    };
    let (mut collectors, findings) = run_attempts(args, game, attempt, trace)?;
    let seconds = watch.elapsed_s();
    if let Some(target) = record {
        let session = Engine::new(games).read_log(path)?.session;
        let rerecorded = game.rerecord(games.memory(), &session, options.settings.as_ref());
        let rerecorded = rerecorded.map_err(|error| CommandError::file(path, error))?;
        store::save_log(target, &rerecorded, LogOptions::whole())?;
    }
    let drawn = collectors.drawing.drawn();
    let hits = collectors.hits.map(CollectedRows::finish).transpose()?.unwrap_or_default();
    let interpolation = if drawn.is_empty() { scores(game, &log, &options)? } else { Vec::new() };
    let first = log.survey.played().map_or(Micros(i64::MIN), |(first, _)| first);
    let length = part.map_or(log.survey.duration(), |part| part.to - part.from.max(first));
    let clients = collectors.summary.figures.clients.clone();
    let mut summary = collectors.summary.summary();
    if part.is_none() {
        summary.exercised = log.facts()?.completed(summary.exercised);
    }
    let mut is_open_ended = part.is_some_and(|part| log.survey.played().is_some_and(|(_, last)| part.to <= last));
    if let (Some(part), Some(network), true, true) = (part, &mut summary.network, is_open_ended, changed.is_empty()) {
        let lost = LogRecords::open(path, part)?.lost_packets()?;
        [&mut network.up, &mut network.down].into_iter().zip(lost).for_each(|(way, lost)| way.decide(lost));
        is_open_ended = false;
    }
    let digest = part.is_none().then(|| collectors.summary.digest().to_string());
    let spreads = distributions(collectors.weighing.round_trips_ms(), &collectors.summary.figures.error_units);
    let header = collectors.summary.header;
    let keys = changed.iter().filter_map(|pair| Some(pair.split_once('=')?.0));
    let unanswered = header.scope(summary.shots.fired.is_some(), Some(clients)).unanswered(keys).sentences();
    Ok(ReplayReport {
        path: path.display().to_string(),
        part: part.map(|Part { from, to }| SessionPart { from_us: from, to_us: to }),
        is_open_ended,
        digest,
        settings_changed: changed,
        unanswered,
        what_if: args.what_if.what_if.name(),
        what_if_means: args.what_if.what_if.meaning(),
        passed_over: games.passed_over(&log.header),
        hashes: HashReport {
            compared: findings.hashes_compared,
            first_difference_tick: findings.first_difference.map(|difference| difference.tick.0),
            missing: log.survey.first_gap().map(|gap| SessionPart { from_us: gap.from, to_us: gap.to }),
        },
        prediction: summary.prediction,
        grades: game.grades(),
        drawn,
        interpolation,
        jumps: jumps(&header, &findings.jumps),
        hits_again: RejudgedHit::of(&hits, game.melee_weapons()),
        network: summary.network,
        fairness: summary.shots.fired.is_some().then(|| collectors.weighing.fairness()),
        shots: summary.shots,
        exercised: summary.exercised,
        session_us: length,
        real_time_factor: length.as_s_f64() / seconds.max(1e-9),
        trace: trace.map(|trace| trace.path().display().to_string()),
        game: header.game,
        mode: header.mode,
        spreads,
    })
}

/// How often players were moved on their own screens. Empty if clients predict nothing, because then every snapshot
/// moves them without a correction.
fn jumps(trace: &TraceHeader, jumped: &[PlayerJumps]) -> Vec<JumpReport> {
    let is_off = |(key, value): &(String, String)| key == "prediction.mode" && value == "off";
    if trace.settings.iter().any(is_off) { Vec::new() } else { JumpReport::of(jumped) }
}

/// Scores the interpolation modes on a log that is read again.
fn scores(game: &dyn Playable, log: &SurveyedLog, options: &ReplayOptions) -> Result<Vec<ModeScore>, CommandError> {
    let settings = match &options.settings {
        Some(settings) => settings,
        None => &log_settings(&log.header)?,
    };
    Ok(log.score(game, settings, options.part.unwrap_or(Part::WHOLE))?)
}

/// Surveys the log, or finds the keyframe to start from, and returns the requested part.
fn survey(games: &Games, args: &Args, path: &Path) -> Result<(SurveyedLog, Option<Part>), CommandError> {
    let engine = engine_with_notes(games);
    let part = args.part.of(|tick| Ok(engine.time_of(path, tick)?))?;
    let log = match part {
        None => engine.survey(path)?,
        Some(part) => engine.survey_from(path, part.from)?,
    };
    let is_usable = log.starts(&replay_options(args, &log.header, part)?.0);
    Ok((if is_usable { log } else { log.from_its_beginning()? }, part))
}

/// Runs the replay, again with encoded datagrams if needed, and writes its trace if requested.
fn run_attempts(
    args: &Args,
    game: &dyn Playable,
    replay: impl Fn(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<ReplayFindings>, EngineError>,
    trace: Option<&Target>,
) -> Result<(RowCollectors, ReplayFindings), EngineError> {
    let attempt = |encodes: bool, write: &mut dyn FnMut(&TraceHeader, Table)| {
        let mut collected: Option<RowCollectors> = None;
        let findings = replay(encodes, &mut |header, rows| {
            let collectors = || RowCollectors::new(header.clone(), game.judges_again());
            collected.get_or_insert_with(collectors).add(&rows);
            if args.keeps(&rows.name) {
                write(header, rows);
            }
        })?;
        Ok(collected.zip(findings))
    };
    match trace {
        None => retry_with_encoding(&AtomicBool::new(false), |encodes| attempt(encodes, &mut |_, _| {})),
        Some(target) => write_replayed(target, TraceLayout::Packed, attempt),
    }
}

fn replay_options(
    args: &Args,
    header: &SessionHeader,
    part: Option<Part>,
) -> Result<(ReplayOptions, Vec<String>), CommandError> {
    let (options, changed) = args.what_if.options(header)?;
    Ok((ReplayOptions { network: true, sizes: args.sizes, part, ..options }, changed))
}

/// The result of one log.
struct ReplayedLog {
    path: String,
    length: Micros,
    exercised: Coverage,
    states: String,
    /// The report in JSON, if it was requested.
    report: Option<serde_json::Value>,
}

#[derive(Serialize)]
struct CorpusReplayReport<'a> {
    /// The reports of the logs.
    logs: Vec<&'a serde_json::Value>,
    /// One sentence for each log that could not be replayed, and for each bad line of a manifest.
    problems: Vec<String>,
}

/// The most logs in the table. JSON has all.
const LISTED_LOGS: usize = 20;

fn run_corpus(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let corpus = args.corpus.corpus(&args.logs)?;
    let mut targets = |folder: &Option<OutputPath>, ending: &str, kind: FileType| match folder {
        Some(folder) => output.files.target_of_each(folder, &corpus.logs, ending, &kind).map(Some),
        None => Ok(None),
    };
    let traces = targets(&args.output, "hittrace", FileType::Trace)?;
    let records = targets(&args.record, "hitlog", FileType::Log)?;
    let format = output.format;
    let needs_server = Args::server_option(output);
    let of = |targets: &Option<Vec<Target>>, number: usize| targets.as_ref().map(|targets| targets[number].clone());
    let replayed = EachLog::run("replaying", &corpus, args.workers.threads(), &|number, log| {
        args.check_open_loop(log, needs_server)?;
        let (trace, record) = (of(&traces, number), of(&records, number));
        let report = play(games, args, log, false, trace.as_ref(), record.as_ref())?;
        let of_json =
            |report: &ReplayReport| serde_json::to_value(report).map_err(|error| CommandError::Output(error.into()));
        Ok(ReplayedLog {
            path: report.path.clone(),
            length: report.session_us,
            exercised: report.exercised,
            states: states(&report),
            report: (format == OutputFormat::Json).then(|| of_json(&report)).transpose()?,
        })
    })?;
    let report = CorpusReplayReport {
        logs: replayed.done().filter_map(|log| log.report.as_ref()).collect(),
        problems: replayed.problems(),
    };
    output.show(&report, |page| print_corpus(page, &replayed, &report.problems, args))?;
    Ok(replayed.report())
}

/// How the states compare with the recorded ones.
fn states(report: &ReplayReport) -> String {
    match report.hashes.first_difference_tick {
        _ if report.hashes.compared == 0 => "not compared".to_owned(),
        None => "as recorded".to_owned(),
        Some(tick) => format!("differ at tick {tick}"),
    }
}

fn print_corpus(page: &mut Page, replayed: &EachLog<ReplayedLog>, problems: &[String], args: &Args) {
    let logs: Vec<&ReplayedLog> = replayed.done().collect();
    let failed = match problems.len() as u64 {
        0 => String::new(),
        problems => format!(", {}", counted(problems, "problem")),
    };
    page.heading(&format!("{} replayed{failed}", counted(logs.len() as u64, "log")));
    let row = |name: &str, length: Micros, of: &Coverage, states: &str| {
        let known = |number: Option<u64>| number.map_or("-".to_owned(), count);
        let counts = [count(of.usercmds), known(of.corrections), known(of.shots), known(of.hits)];
        [name.to_owned(), duration(length)].into_iter().chain(counts).chain([states.to_owned()])
    };
    let mut rows: Vec<Vec<String>> = logs
        .iter()
        .take(LISTED_LOGS)
        .map(|log| row(&log.path, log.length, &log.exercised, &log.states).collect())
        .collect();
    let mut all = (Micros(0), Coverage::default());
    for log in &logs {
        all.0 = Micros(all.0.0 + log.length.0);
        all.1.add(&log.exercised);
    }
    rows.push(row("all", all.0, &all.1, "").collect());
    page.table(&["", ">length", ">usercmds", ">corrections", ">shots", ">hits", "states"], rows);
    if let Some(more @ 1..) = logs.len().checked_sub(LISTED_LOGS) {
        page.faint(2, &format!("and {} not listed (--format json has all)", counted(more as u64, "log")));
    }
    for (what, folder) in [("Traces", &args.output), ("Logs", &args.record)] {
        if let Some(folder) = folder {
            page.blank();
            page.line(&format!("{what} written to {}", folder.display()));
        }
    }
}
