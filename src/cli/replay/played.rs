//! Runs the replay of a log, in memory or streamed, and collects its results.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use super::recorded::JumpReport;
use super::{Args, score};
use crate::cli::files;
use crate::cli::page::Page;
use crate::cli::progress::{Progress, Stopwatch};
use crate::cli::trouble::CommandError;
use crate::drawing::{DrawingScore, ViewErrorCollector};
use crate::engine::{Games, Playable, ScoringError, StreamError, SurveyedLog, can_be_read_twice, until_whole};
use crate::fairness::{Fairness, FairnessBuilder};
use crate::golden::ReplaySummary;
use crate::log::{WriterOptions as LogOptions, write_trace_meanwhile};
use crate::record::{GapRecord, SessionHeader};
use crate::replay::{HashDifference, Part, PlayerJumps, ReplayOptions, StreamReport, own_settings};
use crate::report::DistributionCollector;
use crate::score::ModeScore;
use crate::store::{self, Target};
use crate::summary::Summary;
use crate::trace::{Table, Trace, TraceHeader};
use crate::units::Micros;
use crate::verify::LogFacts;

/// The results of a replay.
pub(super) struct ReplayResult {
    pub(super) header: SessionHeader,
    pub(super) trace: TraceHeader,
    pub(super) part: Option<Part>,
    pub(super) digest: Option<String>,
    pub(super) summary: Summary,
    pub(super) fairness: Fairness,
    pub(super) drawn: Vec<DrawingScore>,
    pub(super) scores: Vec<ModeScore>,
    pub(super) jumps: Vec<JumpReport>,
    /// The whole trace, if the replay ran in memory.
    pub(super) whole: Option<Trace>,
    pub(super) spreads: Page,
    pub(super) hashes_compared: u64,
    pub(super) first_difference: Option<HashDifference>,
    /// The first missing part of the session.
    pub(super) hole: Option<GapRecord>,
    pub(super) changed: Vec<String>,
    pub(super) length: Micros,
    pub(super) seconds: f64,
}

/// Accumulates figures from the rows of a replay.
struct RowCollectors {
    gist: ReplaySummary,
    weighing: FairnessBuilder,
    drawing: ViewErrorCollector,
    spreads: DistributionCollector,
}

impl RowCollectors {
    /// Starts with a replay that writes rows in groups.
    fn new(header: TraceHeader) -> RowCollectors {
        let spreads = DistributionCollector::of(&header);
        RowCollectors { spreads, ..RowCollectors::of_tables(header) }
    }

    /// Starts with a replay that writes each table as a whole.
    fn of_tables(header: TraceHeader) -> RowCollectors {
        let (weighing, drawing) = (FairnessBuilder::of(&header), ViewErrorCollector::of(&header));
        RowCollectors {
            gist: ReplaySummary::new(header, false),
            weighing,
            drawing,
            spreads: DistributionCollector::default(),
        }
    }

    fn add(&mut self, rows: &Table) {
        self.gist.add(rows);
        self.weighing.add(rows);
        self.drawing.add(rows);
        self.spreads.add(rows);
    }
}

/// Replays a log. `trace` is the target of its trace, and `record` the target of the run as a new log.
pub(super) fn play(
    games: &Games,
    args: &Args,
    trace: Option<&Target>,
    record: Option<&Target>,
) -> Result<ReplayResult, CommandError> {
    // Recording a run needs the session in memory, and a trace to a stream cannot be written twice.
    let as_read = record.is_none() && !trace.is_some_and(Target::is_stream);
    let surveyed = match as_read {
        true => survey(games, args)?,
        false => None,
    };
    let Some((log, part)) = surveyed else { return whole(games, args, false, trace, record) };
    let part = part.map(|part| part.within(log.survey.played()));
    let (options, changed) = options(args, &log.header, part)?;
    let game = games.of_header(&log.header).map_err(|error| CommandError::file(&args.log, error))?;
    if !log.streams(game, &options) {
        return whole(games, args, true, trace, record);
    }
    let progress = Progress::of_session("replaying", log.survey.duration());
    let watch = Stopwatch::start();
    let attempt = |encoded: bool, to: &mut dyn FnMut(&TraceHeader, Table)| {
        let options = (&options, encoded);
        log.attempt(game, options, &mut |_| {}, to, &mut |at| progress.reached(at))
    };
    let (gathered, ran) = streamed(args, &attempt, trace)?;
    let seconds = watch.elapsed_s();
    let drawn = gathered.drawing.drawn();
    let scores = match drawn.is_empty() && part.is_none() {
        true => scores(game, args, &log, &options)?,
        false => Vec::new(),
    };
    let length = part.map_or(log.survey.duration(), length_of);
    let mut summary = gathered.gist.summary();
    if part.is_none() {
        summary.exercised = LogFacts::of_log(&log.header, &log.survey).completed(summary.exercised);
    }
    let SurveyedLog { header, .. } = log;
    Ok(ReplayResult {
        header,
        part,
        digest: part.is_none().then(|| gathered.gist.digest().to_string()),
        summary,
        fairness: gathered.weighing.fairness(),
        drawn,
        scores,
        jumps: jumps(&gathered.gist.header, &ran.jumps),
        whole: None,
        spreads: gathered.spreads.page(),
        hashes_compared: ran.hashes_compared,
        first_difference: ran.first_difference,
        // A log with a missing part is replayed as a whole.
        hole: None,
        trace: gathered.gist.header,
        changed,
        length,
        seconds,
    })
}

/// How often players were moved on their own screens. Empty if clients predict nothing, because then every snapshot
/// moves them without a correction.
fn jumps(trace: &TraceHeader, jumped: &[PlayerJumps]) -> Vec<JumpReport> {
    let is_off = |(key, value): &(String, String)| key == "prediction.mode" && value == "off";
    if trace.settings.iter().any(is_off) { Vec::new() } else { JumpReport::of(jumped) }
}

/// Scores the interpolation modes on a log that is read again.
fn scores(
    game: &dyn Playable,
    args: &Args,
    log: &SurveyedLog,
    options: &ReplayOptions,
) -> Result<Vec<ModeScore>, CommandError> {
    let settings = match &options.settings {
        Some(settings) => settings,
        None => &own_settings(&log.header)?,
    };
    match log.score(game, settings) {
        Ok(Some(scores)) => Ok(scores),
        Ok(None) => score(game, &args.log, &files::read_log_again(&args.log)?.session, options),
        Err(ScoringError::Read(error)) => Err(error.into()),
        Err(ScoringError::Score(error)) => Err(CommandError::file(&args.log, error)),
    }
}

/// Surveys the log, or finds the keyframe to start from, and returns the requested part.
fn survey(games: &Games, args: &Args) -> Result<Option<(SurveyedLog, Option<Part>)>, CommandError> {
    if !can_be_read_twice(&args.log) {
        return Ok(None);
    }
    let engine = files::engine(games);
    let part = args.part.of(|tick| Ok(engine.time_of(&args.log, tick)?))?;
    let found = match part {
        None => engine.survey(&args.log)?,
        Some(part) => engine.survey_from(&args.log, Part::needs_from(part.from))?,
    };
    let Some(log) = found else { return Ok(None) };
    let is_usable = log.starts(&options(args, &log.header, part)?.0);
    Ok(Some((if is_usable { log } else { log.from_its_beginning()? }, part)))
}

type ReplayAttempt<'a> =
    dyn Fn(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<StreamReport>, StreamError> + Sync + 'a;

/// Streams the replay, again with encoded datagrams if needed, and writes its trace if requested.
fn streamed(
    args: &Args,
    attempt: &ReplayAttempt<'_>,
    trace: Option<&Target>,
) -> Result<(RowCollectors, StreamReport), CommandError> {
    let failed = |error| match error {
        StreamError::Read(error) => error.into(),
        StreamError::Replay(error) => CommandError::file(&args.log, error),
    };
    until_whole(&AtomicBool::new(false), |encoded| {
        let mut gathered: Option<RowCollectors> = None;
        let mut gather = |header: &TraceHeader, rows: &Table| {
            gathered.get_or_insert_with(|| RowCollectors::new(header.clone())).add(rows);
        };
        let (ran, unnamed) = match trace {
            None => (attempt(encoded, &mut |header, rows| gather(header, &rows)), None),
            Some(target) => {
                let mut ran = Ok(None);
                let unnamed = store::prepare(target, |out| {
                    ran = write_trace_meanwhile(out, |write| {
                        attempt(encoded, &mut |header, rows| {
                            gather(header, &rows);
                            if args.keeps(&rows.name) {
                                write(header, rows);
                            }
                        })
                    })?;
                    Ok(())
                })?;
                (ran, Some(unnamed))
            }
        };
        let whole = gathered.zip(ran.map_err(failed)?);
        if let (Some(_), Some(unnamed)) = (&whole, unnamed) {
            unnamed.put()?;
        }
        Ok(whole)
    })
}

/// Replays a log that is loaded into memory.
fn whole(
    games: &Games,
    args: &Args,
    told: bool,
    trace: Option<&Target>,
    record: Option<&Target>,
) -> Result<ReplayResult, CommandError> {
    let log = match told {
        true => files::read_log_again(&args.log)?,
        false => files::read_log(&args.log)?,
    };
    let ticks = &log.session.ticks;
    let part = args.part.of(|tick| Ok(ticks.iter().find(|record| record.tick == tick).map(|record| record.at)))?;
    let part = part.map(|part| part.within(log.session.played()));
    let (options, changed) = options(args, &log.session.header, part)?;
    let game = games.of(&log.session).map_err(|error| CommandError::file(&args.log, error))?;
    let (mut replayed, seconds) = super::replay(game, &args.log, &log.session, &options)?;
    replayed.trace.header.log_digest = log.digest.to_string();
    if let Some(target) = trace {
        store::save_trace(target, &kept(args, &replayed.trace))?;
    }
    if let Some(target) = record {
        if options.judged_under.is_some() {
            return Err(CommandError::Request(
                "--record does not work with --what-if rejudge, which runs nothing new: leave one out".to_owned(),
            ));
        }
        let again = game.rerecord(&log.session, options.settings.as_ref());
        let again = again.map_err(|error| CommandError::file(&args.log, error))?;
        store::save_log(target, &again, LogOptions::whole())?;
    }
    let mut gathered = RowCollectors::of_tables(replayed.trace.header.clone());
    replayed.trace.tables.iter().for_each(|table| gathered.add(table));
    let drawn = gathered.drawing.drawn();
    let scores = match drawn.is_empty() && part.is_none() {
        true => score(game, &args.log, &log.session, &options)?,
        false => Vec::new(),
    };
    let mut summary = gathered.gist.summary();
    if part.is_none() {
        summary.exercised = LogFacts::of(&log.session).completed(summary.exercised);
    }
    Ok(ReplayResult {
        hole: log.session.first_hole().copied(),
        length: part.map_or(log.session.duration(), length_of),
        header: log.session.header,
        part,
        digest: part.is_none().then(|| gathered.gist.digest().to_string()),
        summary,
        fairness: gathered.weighing.fairness(),
        drawn,
        scores,
        jumps: jumps(&replayed.trace.header, &PlayerJumps::of(&replayed.jumps)),
        spreads: gathered.spreads.page(),
        hashes_compared: replayed.hashes_compared,
        first_difference: replayed.first_difference,
        trace: replayed.trace.header.clone(),
        whole: Some(replayed.trace),
        changed,
        seconds,
    })
}

/// The requested tables of a trace.
fn kept<'t>(args: &Args, trace: &'t Trace) -> Cow<'t, Trace> {
    if trace.tables.iter().all(|table| args.keeps(&table.name)) {
        return Cow::Borrowed(trace);
    }
    let tables = trace.tables.iter().filter(|table| args.keeps(&table.name)).cloned().collect();
    Cow::Owned(Trace { header: trace.header.clone(), tables })
}

fn length_of(part: Part) -> Micros {
    part.to - part.from
}

fn options(
    args: &Args,
    header: &SessionHeader,
    part: Option<Part>,
) -> Result<(ReplayOptions, Vec<String>), CommandError> {
    let (options, changed) = args.what_if.options(header)?;
    Ok((ReplayOptions { network: true, sizes: args.sizes, part, ..options }, changed))
}
