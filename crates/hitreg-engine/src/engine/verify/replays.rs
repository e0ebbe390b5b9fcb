//! Replays for verification, by this build or another.

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::recorded_rows::{self, RecordedRows};
use super::thread_pool;
use crate::build::{Build, BuildRunner, UntestableBuild};
use crate::engine::{Engine, EngineError, Playable, StreamError, SurveyedLog, check, until_whole};
use crate::verify::{LogVerdict, LogVerification, THREADS, VerdictReason, VerifiedReplay};
use hitreg_analysis::diff::{self, DiffOptions, diff};
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::log::WriterOptions as LogOptions;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::SessionStretch;
use hitreg_log::recorded::recorded;
use hitreg_log::store::{self, Target};
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::Tick;
use hitreg_netcode::replay::{ReplayError, ReplayOptions, held_against};

/// The build that replays a log.
pub enum ReplayRunner<'a> {
    /// The games of this build.
    Own,
    /// Another executable that supports `replay LOG -o TRACE`.
    Build(&'a Build, &'a BuildRunner),
}

/// The replays and the records that differ from them, or the reason why there are no replays.
pub(super) type Replays = Result<(Vec<VerifiedReplay>, LogDifference), String>;

impl ReplayRunner<'_> {
    /// Replays a log, and compares the replays with its records. `golden` makes the text of its golden; `at_once` runs
    /// the replays in parallel.
    pub(super) fn replays(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        rollback_every: Option<u32>,
        (golden, at_once): (bool, bool),
    ) -> Result<Replays, EngineError> {
        match self {
            ReplayRunner::Own => own(engine, log, rollback_every, golden, at_once),
            ReplayRunner::Build(build, runner) => built(build, runner, log),
        }
    }

    /// Records the log's input and links again in `to`, or returns the reason why that is impossible.
    pub(super) fn rerecord(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        to: &Target,
    ) -> Result<Result<(), String>, EngineError> {
        let ReplayRunner::Build(build, runner) = self else {
            let game = match engine.games.of_header(&log.header) {
                Ok(game) => game,
                Err(unknown) => return Ok(Err(unknown.to_string())),
            };
            return match game.rerecord(&log.session()?, None) {
                Ok(session) => Ok(Ok(store::save_log(to, &session, LogOptions::whole())?)),
                Err(ReplayError::NeedsMemory(source)) => Err(log.needs_memory(source)),
                Err(error) => Ok(Err(error.to_string())),
            };
        };
        let made = runner.rerecord(build, &log.request()?, to.path());
        check(&runner.stop)?;
        match made {
            Ok(()) => Ok(Ok(())),
            Err(untestable) => {
                EngineError::check_memory(log.path(), &untestable)?;
                Ok(Err(in_words(&untestable)))
            }
        }
    }
}

/// The traces of another build. It runs as often as this build replays, and without the cache.
fn built(build: &Build, runner: &BuildRunner, log: &SurveyedLog) -> Result<Replays, EngineError> {
    let runner = BuildRunner { cache: None, ..runner.clone() };
    let session = log.session()?;
    let (mut replays, mut contradicts) = (Vec::with_capacity(THREADS.len()), None);
    for _ in THREADS {
        let made = runner.trace(build, &log.request()?);
        check(&runner.stop)?;
        let trace = match made {
            Ok(trace) => trace,
            Err(untestable) => {
                EngineError::check_memory(log.path(), &untestable)?;
                return Ok(Err(in_words(&untestable)));
            }
        };
        let needed = trace.tables.iter().map(Table::row_bytes).fold(session.bytes(), usize::saturating_add);
        MemoryLimit::current().check(needed).map_err(|source| log.needs_memory(source))?;
        let replayed = held_against(&session, trace);
        if replays.is_empty() && replayed.hashes_compared > 0 {
            contradicts = recorded(&session).ok().and_then(|says| self::contradicts(&says, &replayed.trace));
        }
        replays.push(VerifiedReplay { gist: ReplaySummary::of(&replayed.trace), ran: replayed.report() });
    }
    Ok(Ok((replays, LogDifference { contradicts, keyframe: None })))
}

fn in_words(untestable: &UntestableBuild) -> String {
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
    fn judge(&self, player: &ReplayRunner<'_>, verified: LogVerification) -> LogVerification {
        let Contradiction(place) = self;
        match player {
            ReplayRunner::Own => {
                let detail = format!(
                    "the log contradicts itself: its state hashes match the replay, but not its records {place}"
                );
                verified.but(LogVerdict::Broken, VerdictReason::Contradiction, detail)
            }
            ReplayRunner::Build(build, _) => {
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
}

impl LogDifference {
    /// The verdict on a log whose other checks passed.
    pub(super) fn judge(self, player: &ReplayRunner<'_>, verified: LogVerification) -> LogVerification {
        match self {
            LogDifference { contradicts: Some(contradicts), .. } => contradicts.judge(player, verified),
            LogDifference { keyframe: Some(tick), .. } => {
                let detail = format!("the keyframe after tick {tick} differs from the replayed state");
                verified.but(LogVerdict::Differs, VerdictReason::RecordedState, detail)
            }
            LogDifference { contradicts: None, keyframe: None } => verified,
        }
    }
}

/// Replays a log in this build, in parallel if `at_once`.
fn own(
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
    // A log without a server has no records that the replay of its clients could contradict.
    let has_server = log.has_server();
    let play = |(number, threads): (usize, usize)| {
        let attempt = |encoded| match number {
            0 if has_server => beside_records(game, log, (&options, encoded), golden),
            number => beside_keyframes(game, log, (&options, encoded), golden && number == 0),
        };
        thread_pool(threads)?.install(|| until_whole(&encoded, attempt))
    };
    // A log that does not stream is in memory with all its rows, so its replays run one after the other.
    let made: Vec<Result<_, StreamError>> = match at_once && log.streams(game, &options) {
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
            Err(StreamError::Replay(ReplayError::NeedsMemory(source))) => return Err(log.needs_memory(source)),
            Err(StreamError::Replay(error)) => return Ok(Err(error.to_string())),
            Err(StreamError::Read(error)) => return Err(error),
        }
    }
    Ok(Ok((all, unlike)))
}

type StreamedReplay = Result<Option<(VerifiedReplay, LogDifference)>, StreamError>;

/// Replays a log and compares the rows with the log's records. `golden` collects the figures for the golden.
fn beside_records(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: (&ReplayOptions, bool),
    golden: bool,
) -> StreamedReplay {
    let mut gist: Option<ReplaySummary> = None;
    let said = RecordedRows::new(&log.header, &log.survey.hidden);
    let (ran, contradicts) = recorded_rows::meanwhile(said, |said| {
        let mut seen = |chunk: &SessionStretch| said.chunk(chunk);
        let mut rows = |header: &TraceHeader, rows: Table| {
            gist.get_or_insert_with(|| ReplaySummary::new(header.clone(), golden)).add(&rows);
            said.rows(rows);
        };
        log.attempt(game, options, &mut seen, &mut rows, &mut |_| {})
    })?;
    Ok(ran.zip(gist).map(|(ran, gist)| (VerifiedReplay { gist, ran }, LogDifference { contradicts, keyframe: None })))
}

/// Replays a log and compares the states with the log's keyframes. `golden` collects the figures for the golden.
fn beside_keyframes(
    game: &dyn Playable,
    log: &SurveyedLog,
    options: (&ReplayOptions, bool),
    golden: bool,
) -> StreamedReplay {
    let mut gist: Option<ReplaySummary> = None;
    let mut rows = |header: &TraceHeader, rows: Table| {
        gist.get_or_insert_with(|| ReplaySummary::new(header.clone(), golden)).add(&rows);
    };
    let ran = log.attempt_beside_keyframes(game, options, &mut rows)?;
    Ok(ran
        .zip(gist)
        .map(|((ran, keyframe), gist)| (VerifiedReplay { gist, ran }, LogDifference { contradicts: None, keyframe })))
}
