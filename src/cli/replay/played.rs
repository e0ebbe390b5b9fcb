//! Runs the replay of a log and collects its results.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::recorded::{JumpReport, RejudgedHit};
use super::{Args, HashReport, ReplayReport, ReplayShots, SessionPart};
use crate::cli::files;
use crate::cli::progress::{Progress, Stopwatch};
use crate::cli::trouble::CommandError;
use crate::drawing::ViewErrorCollector;
use crate::engine::{
    Engine, EngineError, Games, LogRecords, Playable, SurveyedLog, retry_with_encoding, write_replayed,
};
use crate::fairness::FairnessBuilder;
use crate::golden::ReplaySummary;
use crate::log::{TraceLayout, WriterOptions as LogOptions};
use crate::record::SessionHeader;
use crate::replay::{Part, PlayerJumps, ReplayFindings, ReplayOptions, own_settings};
use crate::report::distributions;
use crate::score::ModeScore;
use crate::store::{self, Target};
use crate::trace::schema::shots;
use crate::trace::{Table, Trace, TraceHeader};
use crate::units::Micros;

/// Accumulates figures from the rows of a replay.
struct RowCollectors {
    summary: ReplaySummary,
    weighing: FairnessBuilder,
    drawing: ViewErrorCollector,
    /// The shots, for a game that judges another server's hits again.
    hits: Option<Trace>,
}

impl RowCollectors {
    fn new(header: TraceHeader, keeps_shots: bool) -> RowCollectors {
        RowCollectors {
            weighing: FairnessBuilder::of(&header),
            drawing: ViewErrorCollector::of(&header),
            hits: keeps_shots.then(|| Trace { header: header.clone(), ..Trace::default() }),
            summary: ReplaySummary::new(header, false),
        }
    }

    fn add(&mut self, rows: &Table) {
        self.summary.add(rows);
        self.weighing.add(rows);
        self.drawing.add(rows);
        if let Some(hits) = self.hits.as_mut().filter(|_| rows.name == shots::NAME) {
            // All rows of one replay have the same columns.
            hits.append(rows.clone()).unwrap_or_default();
        }
    }
}

/// Replays a log, with a progress bar if it is `alone`. `trace` is the target of its trace, and `record` the target of
/// the run as a new log.
pub(super) fn play(
    games: &Games,
    args: &Args,
    (path, alone): (&Path, bool),
    trace: Option<&Target>,
    record: Option<&Target>,
) -> Result<ReplayReport, CommandError> {
    let (log, part) = survey(games, args, path)?;
    let part = part.map(|part| part.within(log.survey.played()));
    let (options, changed) = options(args, &log.header, part)?;
    if record.is_some() && options.judged_under.is_some() {
        return Err(CommandError::request(
            "--record does not work with --what-if rejudge, which runs nothing new: leave one out",
        ));
    }
    let game = games.of_header(&log.header).map_err(|error| CommandError::file(path, error))?;
    let progress = match alone {
        true => Progress::of_session("replaying", log.survey.duration()),
        false => Progress::hidden(),
    };
    let watch = Stopwatch::start();
    let attempt = |encoded: bool, to: &mut dyn FnMut(&TraceHeader, Table)| {
        let options = (&options, encoded);
        log.attempt(game, options, &mut |_| {}, to, &mut |at| progress.reached(at))
    };
    let (mut gathered, ran) = run(args, game, attempt, trace)?;
    let seconds = watch.elapsed_s();
    if let Some(target) = record {
        let session = Engine::new(games).read_log(path)?.session;
        let again = game.rerecord(games.memory(), &session, options.settings.as_ref());
        let again = again.map_err(|error| CommandError::file(path, error))?;
        store::save_log(target, &again, LogOptions::whole())?;
    }
    let drawn = gathered.drawing.drawn();
    let interpolation = match drawn.is_empty() && part.is_none() {
        true => scores(game, &log, &options)?,
        false => Vec::new(),
    };
    let first = log.survey.played().map_or(Micros(i64::MIN), |(first, _)| first);
    let length = part.map_or(log.survey.duration(), |part| part.to - part.from.max(first));
    let mut summary = gathered.summary.summary();
    if part.is_none() {
        summary.exercised = log.facts()?.completed(summary.exercised);
    }
    let mut goes_on = part.is_some_and(|part| log.survey.played().is_some_and(|(_, last)| part.to <= last));
    if let (Some(part), Some(network), true, true) = (part, &mut summary.network, goes_on, changed.is_empty()) {
        let lost = LogRecords::open(path, part)?.lost_packets()?;
        [&mut network.up, &mut network.down].into_iter().zip(lost).for_each(|(way, lost)| way.decide(lost));
        goes_on = false;
    }
    let digest = part.is_none().then(|| gathered.summary.digest().to_string());
    let spreads = distributions(gathered.weighing.round_trips_ms(), gathered.summary.prediction_errors());
    let header = gathered.summary.header;
    Ok(ReplayReport {
        path: path.display().to_string(),
        part: part.map(|Part { from, to }| SessionPart { from_us: from, to_us: to }),
        is_open_ended: goes_on,
        digest,
        settings_changed: changed,
        what_if: args.what_if.question().name(),
        what_if_means: args.what_if.question().meaning(),
        passed_over: games.passed_over(&log.header),
        hashes: HashReport {
            compared: ran.hashes_compared,
            first_difference_tick: ran.first_difference.map(|difference| difference.tick.0),
            missing: log.survey.first_hole().map(|gap| SessionPart { from_us: gap.from, to_us: gap.to }),
        },
        prediction: summary.prediction,
        grades: game.grades(),
        drawn,
        interpolation,
        jumps: jumps(&header, &ran.jumps),
        hits_again: gathered.hits.as_ref().map_or_else(Vec::new, |hits| RejudgedHit::of(hits, game.melee_weapons())),
        network: summary.network,
        shots: ReplayShots::of(summary.shots, header.is_open()),
        fairness: gathered.weighing.fairness(),
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
        None => &own_settings(&log.header)?,
    };
    Ok(log.score(game, settings)?)
}

/// Surveys the log, or finds the keyframe to start from, and returns the requested part.
fn survey(games: &Games, args: &Args, path: &Path) -> Result<(SurveyedLog, Option<Part>), CommandError> {
    let engine = files::engine(games);
    let part = args.part.of(|tick| Ok(engine.time_of(path, tick)?))?;
    let log = match part {
        None => engine.survey(path)?,
        Some(part) => engine.survey_from(path, part.from)?,
    };
    let is_usable = log.starts(&options(args, &log.header, part)?.0);
    Ok((if is_usable { log } else { log.from_its_beginning()? }, part))
}

/// Runs the replay, again with encoded datagrams if needed, and writes its trace if requested.
fn run(
    args: &Args,
    game: &dyn Playable,
    attempt: impl Fn(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<ReplayFindings>, EngineError>,
    trace: Option<&Target>,
) -> Result<(RowCollectors, ReplayFindings), EngineError> {
    let gather = |encoded: bool, write: &mut dyn FnMut(&TraceHeader, Table)| {
        let mut gathered: Option<RowCollectors> = None;
        let ran = attempt(encoded, &mut |header, rows| {
            let collectors = || RowCollectors::new(header.clone(), game.judges_again());
            gathered.get_or_insert_with(collectors).add(&rows);
            if args.keeps(&rows.name) {
                write(header, rows);
            }
        })?;
        Ok(gathered.zip(ran))
    };
    match trace {
        None => retry_with_encoding(&AtomicBool::new(false), |encoded| gather(encoded, &mut |_, _| {})),
        Some(target) => write_replayed(target, TraceLayout::Packed, gather),
    }
}

fn options(
    args: &Args,
    header: &SessionHeader,
    part: Option<Part>,
) -> Result<(ReplayOptions, Vec<String>), CommandError> {
    let (options, changed) = args.what_if.options(header)?;
    Ok((ReplayOptions { network: true, sizes: args.sizes, part, ..options }, changed))
}
