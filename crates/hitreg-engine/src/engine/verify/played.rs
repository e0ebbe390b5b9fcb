//! Replays for verification, by this build or another.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

use super::said::{self, RecordedRows};
use super::thread_pool;
use crate::build::{Build, BuildRequest, BuildRunner, UntestableBuild};
use crate::engine::{Engine, EngineError, LogFile, Playable, StreamError, SurveyedLog, check, until_whole};
use crate::verify::{LogVerdict, LogVerification, THREADS, VerdictReason, VerifiedReplay};
use hitreg_analysis::diff::{self, DiffOptions, diff};
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::log::WriterOptions as LogOptions;
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{Session, SessionStretch};
use hitreg_log::recorded::recorded;
use hitreg_log::store;
use hitreg_log::trace::{Digest, Table, Trace, TraceHeader};
use hitreg_log::units::Tick;
use hitreg_netcode::replay::{ReplayError, ReplayOptions, ReplayOutput, held_against};

/// The build that replays a log.
pub enum ReplayRunner<'a> {
    /// The games of this build.
    Own,
    /// Another executable that supports `replay LOG -o TRACE`.
    Build(&'a Build, &'a BuildRunner),
}

type Replays = Result<Vec<ReplayOutput>, String>;

impl ReplayRunner<'_> {
    /// All replays of a log, or the reason why there are none.
    pub(super) fn replays(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        log: &LogFile,
        rollback_every: Option<u32>,
    ) -> Result<Replays, EngineError> {
        match self {
            ReplayRunner::Own => own(engine, path, &log.session, rollback_every),
            ReplayRunner::Build(build, runner) => built(build, runner, path, log.digest, &log.session),
        }
    }

    /// All replays of a session that is not in a file.
    pub(super) fn replays_of(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        session: &Session,
        rollback_every: Option<u32>,
    ) -> Result<Replays, EngineError> {
        let ReplayRunner::Build(build, runner) = self else { return own(engine, path, session, rollback_every) };
        let folder = store::temporary_folder()?;
        let target = folder.file("anew.hitlog");
        store::save_log(&target, session, LogOptions::whole())?;
        let digest = Digest::of_bytes(&store::read_bytes(target.path())?);
        built(build, runner, target.path(), digest, session)
    }

    /// Records the log's input and links again as a new session, or returns the reason why that is impossible.
    pub(super) fn rerecord(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        log: &LogFile,
    ) -> Result<Result<Session, String>, EngineError> {
        let ReplayRunner::Build(build, runner) = self else {
            let game = engine.games.of(&log.session).map_err(|error| error.to_string());
            return match game.map(|game| game.rerecord(&log.session, None)) {
                Ok(Err(ReplayError::NeedsMemory(source))) => {
                    Err(EngineError::NeedsMemory { path: path.to_owned(), source })
                }
                Ok(rerecorded) => Ok(rerecorded.map_err(|error| error.to_string())),
                Err(unknown) => Ok(Err(unknown)),
            };
        };
        let folder = store::temporary_folder()?;
        let target = folder.file("anew.hitlog");
        let request = BuildRequest { log: path, log_digest: log.digest, options: &[] };
        let made = runner.rerecord(build, &request, target.path());
        check(&runner.stop)?;
        match made {
            Ok(()) => Ok(Ok(engine.read_log(target.path())?.session)),
            Err(untestable) => {
                EngineError::check_memory(path, &untestable)?;
                Ok(Err(in_words(&untestable)))
            }
        }
    }
}

fn own(
    engine: &Engine<'_>,
    path: &Path,
    session: &Session,
    rollback_every: Option<u32>,
) -> Result<Replays, EngineError> {
    let game = match engine.games.of(session) {
        Ok(game) => game,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let options = ReplayOptions { rollback_every, ..ReplayOptions::default() };
    // All replays are in memory at the end. What is wrong with the log they say themselves.
    let each = game.trace_memory(session, &options).unwrap_or_default();
    check_memory(path, session.bytes().saturating_add(each.saturating_mul(THREADS.len())))?;
    let mut replays = Vec::with_capacity(THREADS.len());
    for threads in THREADS {
        replays.push(thread_pool(threads)?.install(|| game.replay(session, &options, &mut |_| {})));
    }
    match replays.into_iter().collect::<Result<_, _>>() {
        Err(ReplayError::NeedsMemory(source)) => Err(EngineError::NeedsMemory { path: path.to_owned(), source }),
        played => Ok(played.map_err(|error| error.to_string())),
    }
}

fn check_memory(path: &Path, needed: usize) -> Result<(), EngineError> {
    let needs = |source| EngineError::NeedsMemory { path: path.to_owned(), source };
    MemoryLimit::current().check(needed).map_err(needs)
}
/// The traces of another build. It runs as often as this build replays, and without the cache.
fn built(
    build: &Build,
    runner: &BuildRunner,
    path: &Path,
    digest: Digest,
    session: &Session,
) -> Result<Replays, EngineError> {
    let runner = BuildRunner { cache: None, ..runner.clone() };
    let request = BuildRequest { log: path, log_digest: digest, options: &[] };
    let mut replays = Vec::with_capacity(THREADS.len());
    for _ in THREADS {
        let made = runner.trace(build, &request);
        check(&runner.stop)?;
        let trace = match made {
            Ok(trace) => trace,
            Err(untestable) => {
                EngineError::check_memory(path, &untestable)?;
                return Ok(Err(in_words(&untestable)));
            }
        };
        // The other ones take about as much.
        let each = trace.tables.iter().map(Table::row_bytes).fold(0, usize::saturating_add);
        check_memory(path, session.bytes().saturating_add(each.saturating_mul(THREADS.len())))?;
        replays.push(held_against(session, trace));
    }
    Ok(Ok(replays))
}

fn in_words(untestable: &UntestableBuild) -> String {
    match untestable.last_words.last() {
        Some(last) => format!("{}; last output: {last}", untestable.reason),
        None => untestable.reason.clone(),
    }
}

/// Finds where a log contradicts its replay although their state hashes agree.
pub(super) fn contradiction(session: &Session, replayed: &ReplayOutput) -> Option<Contradiction> {
    if replayed.hashes_compared == 0 {
        return None;
    }
    contradicts(&recorded(session).ok()?, &replayed.trace)
}

/// The first difference between a log and its replay although their state hashes agree, as text such as
/// `` in `ticks`, first in tick 5: at_us``.
pub(super) struct Contradiction(String);

impl Contradiction {
    /// The verdict on a log with a contradiction. This program replays by the log's own rules, so the log is invalid.
    /// Another build writes its rows itself, so that build differs.
    pub(super) fn judge(&self, player: &ReplayRunner<'_>, verified: LogVerification) -> LogVerification {
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

/// The replays and the records that differ from them, or the reason why there are no replays.
type StreamedReplays = Result<(Vec<VerifiedReplay>, LogDifference), String>;

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
    pub(super) fn judge(self, verified: LogVerification) -> LogVerification {
        match self {
            LogDifference { contradicts: Some(contradicts), .. } => contradicts.judge(&ReplayRunner::Own, verified),
            LogDifference { keyframe: Some(tick), .. } => {
                let detail = format!("the keyframe after tick {tick} differs from the replayed state");
                verified.but(LogVerdict::Differs, VerdictReason::RecordedState, detail)
            }
            LogDifference { contradicts: None, keyframe: None } => verified,
        }
    }
}

/// Streams this build's replays of a log, in parallel if `at_once`, and compares them with the log's records.
pub(super) fn streamed(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    rollback_every: Option<u32>,
    golden: bool,
    at_once: bool,
) -> Result<StreamedReplays, EngineError> {
    let game = match engine.games.of_header(&log.header) {
        Ok(game) => game,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let options = ReplayOptions { rollback_every, ..ReplayOptions::default() };
    // The replays share this flag: if one needs encoded datagrams, all do.
    let encoded = AtomicBool::new(false);
    // A log without a server has no records that the replay of its clients could contradict.
    let has_server = log.streams_closed(&options);
    let play = |(number, threads): (usize, usize)| {
        let attempt = |encoded| match number {
            0 if has_server => beside_records(game, log, (&options, encoded), golden),
            number => beside_keyframes(game, log, (&options, encoded), golden && number == 0),
        };
        thread_pool(threads)?.install(|| until_whole(&encoded, attempt))
    };
    let made: Vec<Result<_, StreamError>> = match at_once {
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
    let (ran, contradicts) = said::meanwhile(said, |said| {
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
