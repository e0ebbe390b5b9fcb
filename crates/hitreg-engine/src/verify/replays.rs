//! Replays for verification: of the whole log or leg by leg, by this build or another.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::facts::missing_usercmd;
use super::recorded_rows::{self, RecordedRows};
use super::report::{LogReport, LogVerdict, VerdictReason};
use super::thread_pool;
use super::verdict::{LegFigures, THREADS, VerifiedReplay, VerifyReference, judge_legs};
use crate::build::{Build, UntestableBuild};
use crate::engine::{Engine, EngineError, Leg, SurveyedLog, check, retry_with_encoding};
use crate::in_order;
use hitreg_analysis::diff::{self, DiffOptions, diff};
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::record::SessionStretch;
use hitreg_log::recorded::{judged_shots, recorded};
use hitreg_log::store::Target;
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::Tick;
use hitreg_netcode::replay::{ReplayError, ReplayFindings, ReplayOptions, compare_hashes};

/// The replays and the records that differ from them, or the reason why there are no replays.
pub(super) type Replays = Result<(Vec<VerifiedReplay>, LogDifference), String>;

/// Records the log's input and links again in `to`, by this build or another, or returns the reason why that is impossible.
pub(super) fn rerecord(
    engine: &Engine<'_>,
    build: Option<&Build>,
    log: &SurveyedLog,
    to: &Target,
) -> Result<Result<(), String>, EngineError> {
    let made = match build {
        None => log.rerecord(engine, None, to)?,
        Some(build) => engine.runner.rerecord(build, &log.request()?, to.path()),
    };
    check(&engine.runner.stop)?;
    Ok(EngineError::check_machine(&log.path, made)?.map_err(|untestable| describe(&untestable)))
}

/// The traces of another build. It runs as often as this build replays, and without the cache.
pub(super) fn built(engine: &Engine<'_>, build: &Build, log: &SurveyedLog) -> Result<Replays, EngineError> {
    let runner = engine.uncached().runner;
    let session = log.session()?;
    let missing_usercmd = missing_usercmd(&session);
    let (mut replays, mut contradicts) = (Vec::with_capacity(THREADS.len()), None);
    for _ in THREADS {
        let made = runner.trace(build, &log.request()?);
        check(&runner.stop)?;
        let trace = match EngineError::check_machine(&log.path, made)? {
            Ok(trace) => trace,
            Err(untestable) => return Ok(Err(describe(&untestable))),
        };
        let (of_log, of_trace) = (&session.header.game, &trace.header.game);
        if !of_trace.is_empty() && of_trace != of_log {
            return Ok(Err(format!("the build wrote a trace of the game `{of_trace}`, and the log is of `{of_log}`")));
        }
        let needed = trace.tables.iter().map(Table::row_bytes).fold(session.bytes(), usize::saturating_add);
        runner.memory.check(needed).map_err(|source| log.needs_memory(source))?;
        let ran = compare_hashes(&session, &trace);
        if replays.is_empty() && ran.hashes_compared > 0 {
            contradicts = recorded(&session).ok().and_then(|says| {
                let shots = Trace { header: says.header.clone(), tables: judged_shots(&session).into_iter().collect() };
                self::contradicts(&says, &trace).or_else(|| self::contradicts(&shots, &trace))
            });
        }
        replays.push(VerifiedReplay { summary: ReplaySummary::of(&trace), ran });
    }
    Ok(Ok((replays, LogDifference { contradicts, missing_usercmd, ..LogDifference::default() })))
}

fn describe(untestable: &UntestableBuild) -> String {
    match untestable.last_words.last() {
        Some(last) => format!("{}; last output: {last}", untestable.reason),
        None => untestable.reason.clone(),
    }
}

/// The first difference between a log and its replay although their state hashes agree, as text such as
/// `` in `ticks`, first in tick 5: at_us``.
pub(super) struct Contradiction(String);

impl Contradiction {
    /// The verdict on a log with a contradiction. This program replays by the log's own rules, so the log is invalid.
    /// Another build writes its rows itself, so that build differs.
    fn judge(&self, build: Option<&Build>, verified: LogReport) -> LogReport {
        let Contradiction(place) = self;
        match build {
            None => {
                let detail = format!(
                    "the log contradicts itself: its state hashes match the replay, but not its records {place}"
                );
                verified.but(LogVerdict::Broken, VerdictReason::Contradiction, detail)
            }
            Some(build) => {
                let detail = format!(
                    "the build {} differs from the log {place}; the state hashes agree",
                    build.path().display()
                );
                verified.but(LogVerdict::Differs, VerdictReason::RecordedState, detail)
            }
        }
    }
}

/// The first difference between a log's records and the same rows of its replay.
pub(super) fn contradicts(says: &Trace, played: &Trace) -> Option<Contradiction> {
    let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    let found = diff(says, played, &options).ok()?;
    let first = found.first.filter(|_| found.verdict == diff::TraceVerdict::Differs)?;
    let at = first.place.tick.map_or(String::new(), |tick| format!(" in tick {tick}"));
    let field = first.field.as_deref().unwrap_or("a row");
    Some(Contradiction(format!("in `{}`, first{at}: {field}", first.table)))
}

/// Records of a log that differ from its replays.
#[derive(Default)]
pub(super) struct LogDifference {
    /// A record that differs from the first replay although the state hashes agree.
    pub(super) contradicts: Option<Contradiction>,
    /// The first tick whose keyframe differs from the state of the last replay.
    pub(super) keyframe: Option<Tick>,
    /// A usercmd that another build cannot run, because the log does not hold it.
    pub(super) missing_usercmd: Option<String>,
}

impl LogDifference {
    /// The verdict on a log whose other checks passed.
    pub(super) fn judge(self, build: Option<&Build>, verified: LogReport) -> LogReport {
        match self {
            LogDifference { contradicts: Some(contradicts), .. } => contradicts.judge(build, verified),
            LogDifference { keyframe: Some(tick), .. } => {
                let detail = format!("the keyframe after tick {tick} differs from the replayed state");
                let recorded_differs = verified.why == Some(VerdictReason::RecordedState);
                let why = if recorded_differs { VerdictReason::RecordedState } else { VerdictReason::Keyframe };
                verified.but(LogVerdict::Differs, why, detail)
            }
            LogDifference { contradicts: None, keyframe: None, .. } => verified,
        }
    }
}

/// Replays a log in this build, in parallel if `at_once`.
pub(super) fn own(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    rollback_every: Option<u32>,
    golden: bool,
    at_once: bool,
) -> Result<Replays, EngineError> {
    let game = match engine.games.of_header(&log.header) {
        Ok(game) => game,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let options = ReplayOptions { rollback_every, ..ReplayOptions::default() };
    // The replays share this flag: if one needs encoded datagrams, all do.
    let encoded = AtomicBool::new(false);
    let play = |(number, threads): (usize, usize)| {
        // One replay is compared with the log's records, the other with its keyframes. A log without a server has no
        // records that the replay of its clients could contradict.
        let records = number == 0 && log.has_server();
        let attempt = |encoded| {
            compared(log, records, golden && number == 0, |seen, to| {
                log.replay_beside(game, !records, (&options, encoded), seen, to)
            })
        };
        thread_pool(threads)?.install(|| retry_with_encoding(&encoded, attempt))
    };
    // A log that does not stream is in memory with all its rows, so its replays run one after the other.
    let made: Vec<Result<_, EngineError>> = match at_once && log.streams(game, &options) {
        true => THREADS.into_par_iter().enumerate().map(play).collect(),
        false => THREADS.into_iter().enumerate().map(play).collect(),
    };
    let (mut all, mut unlike) = (Vec::new(), LogDifference::default());
    for made in made {
        match made {
            Ok((played, found)) => {
                let contradicts = found.contradicts.filter(|_| played.ran.hashes_compared > 0);
                unlike.contradicts = unlike.contradicts.or(contradicts);
                unlike.keyframe = unlike.keyframe.or(found.keyframe);
                all.push(played);
            }
            Err(EngineError::Replay { source: ReplayError::NeedsMemory(source), .. }) => {
                return Err(log.needs_memory(source));
            }
            Err(EngineError::Replay { source, .. }) => return Ok(Err(source.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(Ok((all, unlike)))
}

type ComparedReplay = Result<Option<(VerifiedReplay, LogDifference)>, EngineError>;

/// Runs a replay of a log or of a leg. `run` compares the states with keyframes. With `records`, the rows are compared
/// with the log's records. `golden` collects the figures for the golden.
fn compared(
    log: &SurveyedLog,
    records: bool,
    golden: bool,
    run: impl FnOnce(
        &mut dyn FnMut(&SessionStretch),
        &mut dyn FnMut(&TraceHeader, Table),
    ) -> Result<Option<(ReplayFindings, Option<Tick>)>, EngineError>,
) -> ComparedReplay {
    let mut summary: Option<ReplaySummary> = None;
    let mut gather = |header: &TraceHeader, rows: &Table| {
        summary.get_or_insert_with(|| ReplaySummary::new(header.clone(), golden)).add(rows);
    };
    let (ran, contradicts) = match records {
        true => recorded_rows::meanwhile(RecordedRows::new(&log.header, &log.survey.hidden), |comparer| {
            run(&mut |chunk| comparer.chunk(chunk), &mut |header, rows| {
                gather(header, &rows);
                comparer.rows(rows);
            })
        })?,
        false => (run(&mut |_| {}, &mut |header, rows| gather(header, &rows))?, None),
    };
    let played = ran.zip(summary);
    Ok(played.map(|((ran, keyframe), summary)| {
        (VerifiedReplay { summary, ran }, LogDifference { contradicts, keyframe, ..LogDifference::default() })
    }))
}

/// Verifies a log leg by leg. Returns `None` if it has no keyframes, or if datagrams may have affected the outcome.
/// Keyframes hold no datagram state.
pub(super) fn in_legs(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    against: VerifyReference<'_>,
) -> Result<Option<LogReport>, EngineError> {
    let legs = log.legs();
    let Ok(game) = engine.games.of_header(&log.header) else { return Ok(None) };
    if legs.is_empty() {
        return Ok(None);
    }
    let counted =
        |report| LogReport { legs: Some(legs.len()), keyframes: Some(legs.iter().map(Leg::keyframes).sum()), ..report };
    let at_once = legs.len().min(rayon::current_num_threads());
    let replays = in_order(legs.len(), at_once, |number| {
        let leg = compared(log, true, false, |seen, to| log.run_leg(game, &legs[number], seen, to))?;
        Ok(leg.map(|(VerifiedReplay { summary, ran }, unlike)| (LegFigures::of(&summary, ran), unlike)))
    });
    let (mut played, mut unlike) = (Vec::with_capacity(legs.len()), LogDifference::default());
    for leg in replays {
        match leg {
            Ok(Some((leg, found))) => {
                unlike.keyframe = unlike.keyframe.or(found.keyframe);
                unlike.contradicts = unlike.contradicts.or(found.contradicts);
                let is_off = unlike.keyframe.is_some() || leg.ran.first_difference.is_some();
                played.push(leg);
                // Legs after the first difference start from invalid states.
                if is_off {
                    break;
                }
            }
            Ok(None) => return Ok(None),
            Err(EngineError::Replay { source, .. }) => {
                return Ok(Some(LogReport::not_replayed(source.to_string())));
            }
            Err(error) => return Err(error),
        }
    }
    let verified = judge_legs(&log.facts()?, &played, against);
    let first_difference = played.iter().find_map(|played| played.ran.first_difference).map(|found| found.tick);
    let keyframe = unlike.keyframe.filter(|keyframe| first_difference.is_none_or(|tick| *keyframe < tick));
    let is_same = verified.verdict == LogVerdict::Same && verified.hashes_compared > 0;
    // After a keyframe that differs, every other finding follows from it or comes later.
    let contradicts = unlike.contradicts.filter(|_| is_same && keyframe.is_none());
    Ok(Some(counted(LogDifference { contradicts, keyframe, ..LogDifference::default() }.judge(None, verified))))
}
