//! Verifies log files: replays each one more than once, compares the replays with each other and with the golden, and
//! writes a new golden on request.

mod golden;
mod records;
mod verdict;

pub(crate) use golden::Goldens;
pub use golden::{BrokenProposal, Golden, GoldenUpdate, Proposal, proposals_below};
pub(crate) use records::{
    BodyRows, RecordComparison, RecordDifference, before_gap, body_trace, server_records, shot_trace,
    shows_no_simulation,
};
pub use verdict::{LogFacts, LogReport, LogVerdict, THREADS, VerdictReason, VerifiedReplay, VerifyReference, judge};

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};

use rayon::prelude::*;

use crate::build::{Build, OneSidedLog};
use crate::surveyed_log::{KeyframedRun, Leg, ReplaySinks};
use crate::{Engine, EngineError, SurveyedLog, in_order, retry_with_encoding};
use hitreg_analysis::diff::DiffError;
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::record::{EventTime, Session, SessionChunk, SessionHeader};
use hitreg_log::recorded::recorded_without;
use hitreg_log::sorted::SortedSet;
use hitreg_log::store::Target;
use hitreg_log::trace::schema::{NO_HASH, executed, frames, is_bodies, ticks};
use hitreg_log::trace::{RECORD, Table, Trace, TraceHeader};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{ReplayAttempt, ReplayError, ReplayOptions, compare_hashes};
use verdict::{ReplayFigures, judge_legs, missing_usercmd};

/// How logs are verified.
pub struct VerifyOptions<'a> {
    /// The build that replays them; `None` for the games of this build.
    pub build: Option<&'a Build>,
    /// What to do if the outcome differs from the golden.
    pub keep: GoldenUpdate,
    /// Whether a log without a golden is untestable.
    pub needs_golden: bool,
    /// Checks rollback every this many ticks: restores the world from as many ticks before, runs them again, and
    /// compares.
    pub rollback_every: Option<u32>,
    /// Whether a log with keyframes is replayed as a whole, twice, instead of in legs.
    pub whole: bool,
    /// Returns the seconds since an arbitrary start.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

hitreg_log::partial_debug!(VerifyOptions<'_> { keep, needs_golden, rollback_every, whole });

impl VerifyOptions<'_> {
    /// Verifies a log. Problems with it or its golden go into its report. `parallel` runs its replays in parallel.
    pub(crate) fn judge_log(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        goldens: &Goldens,
        parallel: bool,
    ) -> Result<LogReport, EngineError> {
        // A replay may end with a panic, after which nothing can be withdrawn.
        goldens.withdraw()?;
        // An error in the log takes precedence over one in its golden.
        let read = engine.survey(path).and_then(|log| {
            let accepted = goldens.accepted(&log.header.game)?;
            Ok((log, accepted))
        });
        let (log, accepted) = match read {
            Ok(read) => read,
            Err(error) if error.is_for_memory() => return Err(error),
            Err(error) => return Ok(LogReport::unreadable(path, error.what(path))),
        };
        let reference = VerifyReference { golden: accepted.as_deref(), rollback: self.rollback_every.is_some() };
        let runs = VerifyRuns { golden: accepted.is_some() || self.keep.writes(), parallel };
        let may_run_in_legs = !(self.build.is_some() || self.whole || self.rollback_every.is_some() || runs.golden);
        let of_legs = if may_run_in_legs { judge_in_legs(engine, &log, reference)? } else { None };
        let mut verified = match of_legs {
            Some(verified) => verified,
            None => self.judge_whole(engine, &log, reference, runs)?,
        };
        if self.needs_golden
            && verified.golden == Golden::None
            && verified.verdict == LogVerdict::Same
            && !self.keep.writes()
        {
            let detail = match goldens.path() {
                Some(path) => format!("there is no golden ({}): create it with --accept", path.display()),
                None => "a log from standard input has no golden".to_owned(),
            };
            verified = verified.with_reason(VerdictReason::NoGolden, detail);
        }
        let plays_here = engine.games.of_header(&log.header).is_ok();
        let has_other_states = matches!(verified.why, Some(VerdictReason::RecordedState | VerdictReason::Keyframe));
        let is_rerecorded = self.keep.rerecords() && has_other_states;
        let rerecorded = is_rerecorded.then(|| self.verify_rerecorded(engine, &log, reference)).transpose()?;
        Ok(LogReport { path: path.to_owned(), plays_here, ..goldens.settle(verified, rerecorded)? })
    }

    /// Replays a log as a whole, and judges the replays.
    fn judge_whole(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        reference: VerifyReference<'_>,
        runs: VerifyRuns,
    ) -> Result<LogReport, EngineError> {
        let outcome = match self.build {
            None => replay_here(engine, log, self.rollback_every, runs),
            Some(build) => replay_in_build(engine, build, log),
        }?;
        let mut facts = log.facts()?;
        let ReplaySet { replays, difference } = match outcome {
            Ok(set) => set,
            Err(why) => {
                let is_one_sided =
                    [OneSidedLog::Server, OneSidedLog::Client].iter().any(|side| why == side.to_string());
                return Ok(LogReport { is_one_sided, ..judge(&facts, Err(why), reference) });
            }
        };
        facts.contradiction = facts.contradiction.or_else(|| difference.missing_usercmd.clone());
        facts.equal_bodies = difference.equal_bodies();
        facts.replay_has_no_hash = difference.has_no_hash;
        facts.replay_is_empty = difference.is_empty;
        let can_rerecord = replays.iter().all(|replay| replay.summary.header.can(RECORD));
        let verified = LogReport { can_rerecord, ..judge(&facts, Ok(&replays), reference) };
        Ok(if verified.awaits_record_comparison() { difference.judge(self.build, verified) } else { verified })
    }

    /// Records the log's input and links again, and verifies the new log.
    fn verify_rerecorded(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        reference: VerifyReference<'_>,
    ) -> Result<golden::RerecordedLog, EngineError> {
        let folder = hitreg_log::store::temporary_folder()?;
        let target = folder.file("rerecorded.hitlog");
        if let Err(why) = rerecord(engine, self.build, log, &target)? {
            return Ok(golden::RerecordedLog { log: None, verified: LogReport::not_replayed(why) });
        }
        let again = engine.quiet().survey(target.path())?;
        let verified = self.judge_whole(engine, &again, reference, VerifyRuns { golden: true, parallel: false })?;
        Ok(golden::RerecordedLog { log: Some((folder, target.path().to_owned())), verified })
    }
}

fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| EngineError::Request(format!("cannot start {threads} threads: {error}")))
}

/// How the replays of a whole log run.
#[derive(Clone, Copy)]
struct VerifyRuns {
    /// Whether the first replay makes the text of a golden.
    golden: bool,
    /// Whether the replays run in parallel.
    parallel: bool,
}

/// The replays of a log.
struct ReplaySet {
    replays: Vec<VerifiedReplay>,
    /// The records that differ from them.
    difference: LogDifference,
}

/// Records the log's input and links again in `to`, by this build or another, or returns the reason why that is impossible.
fn rerecord(
    engine: &Engine<'_>,
    build: Option<&Build>,
    log: &SurveyedLog,
    to: &Target,
) -> Result<Result<(), String>, EngineError> {
    let outcome = match build {
        None => log.rerecord(engine, None, to)?,
        Some(build) => engine.runner.rerecord(build, &log.request()?, to.path()),
    };
    Ok(engine.check_outcome(&log.path, outcome)?.map_err(|untestable| untestable.detail()))
}

/// Replays a log in another build, as often as this build replays it, and without the cache. Returns the reason if the
/// build cannot replay it.
fn replay_in_build(
    engine: &Engine<'_>,
    build: &Build,
    log: &SurveyedLog,
) -> Result<Result<ReplaySet, String>, EngineError> {
    let runner = engine.uncached().runner;
    let session = log.session()?;
    let mut replays = Vec::with_capacity(THREADS.len());
    let mut difference = LogDifference::default();
    for _ in THREADS {
        let trace = match engine.check_outcome(&log.path, runner.trace(build, &log.request()?))? {
            Ok(trace) => trace,
            Err(untestable) => return Ok(Err(untestable.detail())),
        };
        let (of_log, of_trace) = (&session.header.game, &trace.header.game);
        if !of_trace.is_empty() && of_trace != of_log {
            return Ok(Err(format!("the build wrote a trace of the game `{of_trace}`, and the log is of `{of_log}`")));
        }
        let needed = trace.tables.iter().map(Table::row_bytes).fold(session.bytes(), usize::saturating_add);
        runner.memory.check(needed).map_err(|source| EngineError::needs_memory(&log.path, source))?;
        let ran = compare_hashes(&session, &trace);
        if replays.is_empty() {
            difference.records = RecordComparison::of_build(&session, &trace)?;
            difference.is_empty = shows_no_simulation(&session, &trace, &ran);
            difference.has_no_hash = ticks::Columns::of(&trace).hash.iter().all(|hash| *hash == NO_HASH);
        }
        if let Some(side) = OneSidedLog::of_replayed(&session, &ran) {
            return Ok(Err(side.to_string()));
        }
        replays.push(VerifiedReplay { summary: ReplaySummary::of(&trace), ran });
    }
    let first_difference = replays.first().and_then(|replay| replay.ran.first_difference);
    difference.missing_usercmd = missing_usercmd(&session, first_difference.map(|first| first.tick));
    Ok(Ok(ReplaySet { replays, difference }))
}

/// Records of a log that differ from its replays.
#[derive(Default)]
struct LogDifference {
    /// The comparison of the log's records with the first replay.
    records: RecordComparison,
    /// The first tick whose keyframe differs from the state of the last replay.
    keyframe: Option<Tick>,
    /// A usercmd that another build cannot run, because the log does not hold it.
    missing_usercmd: Option<String>,
    /// Whether another build wrote no state hash.
    has_no_hash: bool,
    /// Whether another build simulated nothing that its trace shows, although the log records bodies.
    is_empty: bool,
}

impl LogDifference {
    /// The number of recorded bodies that were compared, if all are equal; 0 if one differs.
    fn equal_bodies(&self) -> u64 {
        if self.records.first.is_some() { 0 } else { self.records.bodies }
    }

    /// Adds what another replay, or a replay of later rows, found.
    fn add(&mut self, other: LogDifference) {
        self.records.add(other.records);
        self.keyframe = self.keyframe.or(other.keyframe);
    }

    /// The verdict on a log whose other checks passed. This program replays by the log's own rules, so a log that
    /// contradicts the replay is invalid. Another build writes its rows itself, so that build differs.
    fn judge(self, build: Option<&Build>, verified: LogReport) -> LogReport {
        let has_hashes = verified.hashes_compared > 0;
        match (self.records.first, self.keyframe) {
            (Some(place), _) if has_hashes && build.is_none() => {
                let detail = format!(
                    "the log contradicts itself: its state hashes match the replay, but not its records {place}"
                );
                verified.with_reason(VerdictReason::Contradiction, detail)
            }
            (Some(place), _) => {
                let who =
                    build.map_or("the replay".to_owned(), |build| format!("the build {}", build.path().display()));
                let hashes = if has_hashes { "; the state hashes agree" } else { "" };
                let detail = format!("{who} differs from the log {place}{hashes}");
                verified.with_reason(VerdictReason::RecordedState, detail)
            }
            (None, Some(tick)) => {
                let detail = format!("the keyframe after tick {tick} differs from the replayed state");
                let recorded_differs = verified.why == Some(VerdictReason::RecordedState);
                let why = if recorded_differs { VerdictReason::RecordedState } else { VerdictReason::Keyframe };
                verified.with_reason(why, detail)
            }
            (None, None) => verified,
        }
    }
}

/// Replays a log in this build. Returns the reason if this build cannot replay it.
fn replay_here(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    rollback_every: Option<u32>,
    runs: VerifyRuns,
) -> Result<Result<ReplaySet, String>, EngineError> {
    let game = match engine.games.of_header(&log.header) {
        Ok(game) => game,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let options = ReplayOptions { rollback_every, ..ReplayOptions::default() };
    // The replays share this flag: if one needs encoded datagrams, all do.
    let encodes = AtomicBool::new(false);
    let play = |(number, threads): (usize, usize)| {
        // One replay is compared with the log's records, the other with its keyframes. A log without a server has no
        // records that the replay of its clients could contradict.
        let checks = ReplayChecks { records: number == 0 && log.has_server(), golden: runs.golden && number == 0 };
        let keyframes = if checks.records { &[] } else { &log.keyframes[..] };
        let attempt = |encodes| {
            run_checked(log, checks, |sinks| {
                log.run_to_keyframes(keyframes, game, None, ReplayAttempt { options: &options, encodes }, sinks)
            })
        };
        thread_pool(threads)?.install(|| retry_with_encoding(&encodes, attempt))
    };
    // A log that does not stream is in memory with all its rows, so its replays run one after the other.
    let outcomes: Vec<Result<_, EngineError>> = match runs.parallel && log.streams(game, &options) {
        true => THREADS.into_par_iter().enumerate().map(play).collect(),
        false => THREADS.into_iter().enumerate().map(play).collect(),
    };
    let (mut replays, mut difference) = (Vec::new(), LogDifference::default());
    for outcome in outcomes {
        match outcome {
            Ok((replay, found)) => {
                difference.add(found);
                replays.push(replay);
            }
            Err(EngineError::Replay { source: ReplayError::NeedsMemory(source), .. }) => {
                return Err(EngineError::needs_memory(&log.path, source));
            }
            Err(error @ EngineError::Replay { .. }) => return Ok(Err(error.what(&log.path))),
            Err(error) => return Err(error),
        }
    }
    Ok(Ok(ReplaySet { replays, difference }))
}

/// What is done with the rows of one replay.
#[derive(Clone, Copy)]
struct ReplayChecks {
    /// Compares the rows with the log's records.
    records: bool,
    /// Collects the figures of a golden.
    golden: bool,
}

/// Runs a replay of a log or of a leg, which compares states with keyframes, and checks its rows. Returns `None` if the
/// replay is void.
fn run_checked(
    log: &SurveyedLog,
    checks: ReplayChecks,
    run: impl FnOnce(ReplaySinks<'_>) -> Result<Option<KeyframedRun>, EngineError>,
) -> Result<Option<(VerifiedReplay, LogDifference)>, EngineError> {
    let mut summary: Option<ReplaySummary> = None;
    let mut summarize = |header: &TraceHeader, rows: &Table| {
        let new = if checks.golden { ReplaySummary::for_golden } else { ReplaySummary::new };
        summary.get_or_insert_with(|| new(header.clone())).add(rows);
    };
    let (ran, records) = match checks.records {
        true => compare_while_replaying(RecordComparer::new(&log.header, &log.survey.hidden), |sender| {
            let mut to = |header: &TraceHeader, rows: Table| {
                summarize(header, &rows);
                sender.send_rows(rows);
            };
            run(ReplaySinks { seen: &mut |chunk| sender.send_chunk(chunk), to: &mut to, progress: &mut |_| {} })
        })?,
        false => {
            let mut to = |header: &TraceHeader, rows: Table| summarize(header, &rows);
            let sinks = ReplaySinks { seen: &mut |_| {}, to: &mut to, progress: &mut |_| {} };
            (run(sinks)?, RecordComparison::default())
        }
    };
    Ok(ran.zip(summary).map(|(KeyframedRun { findings, differing_keyframe }, summary)| {
        let difference = LogDifference { records, keyframe: differing_keyframe, ..LogDifference::default() };
        (VerifiedReplay { summary, ran: findings }, difference)
    }))
}

/// Verifies a log leg by leg. Returns `None` if it has no keyframes, or if datagrams may have affected the outcome.
/// Keyframes hold no datagram state.
fn judge_in_legs(
    engine: &Engine<'_>,
    log: &SurveyedLog,
    reference: VerifyReference<'_>,
) -> Result<Option<LogReport>, EngineError> {
    let legs = log.legs();
    let Ok(game) = engine.games.of_header(&log.header) else { return Ok(None) };
    if legs.is_empty() {
        return Ok(None);
    }
    let parallel = legs.len().min(rayon::current_num_threads());
    let outcomes = in_order(legs.len(), parallel, |number| {
        let checks = ReplayChecks { records: true, golden: false };
        let leg = run_checked(log, checks, |sinks| log.run_leg(game, &legs[number], sinks))?;
        Ok(leg.map(|(VerifiedReplay { summary, ran }, found)| (ReplayFigures::of(&summary), ran, found)))
    });
    let (mut replays, mut difference) = (Vec::with_capacity(legs.len()), LogDifference::default());
    for outcome in outcomes {
        match outcome {
            Ok(Some((figures, ran, found))) => {
                difference.add(found);
                let is_off = difference.keyframe.is_some() || ran.first_difference.is_some();
                replays.push((figures, ran));
                // Legs after the first difference start from invalid states.
                if is_off {
                    break;
                }
            }
            Ok(None) => return Ok(None),
            Err(error @ EngineError::Replay { .. }) => {
                return Ok(Some(LogReport::not_replayed(error.what(&log.path))));
            }
            Err(error) => return Err(error),
        }
    }
    let mut facts = log.facts()?;
    facts.equal_bodies = difference.equal_bodies();
    let verified = LogReport {
        legs: Some(legs.len()),
        keyframes: Some(legs.iter().map(Leg::keyframes).sum()),
        ..judge_legs(&facts, &replays, reference)
    };
    // After a keyframe that differs, every other finding follows from it or comes later.
    let first_difference = replays.iter().find_map(|(_, ran)| ran.first_difference).map(|found| found.tick);
    difference.keyframe = difference.keyframe.filter(|keyframe| first_difference.is_none_or(|tick| *keyframe < tick));
    if difference.keyframe.is_some() || !verified.awaits_record_comparison() {
        difference.records = RecordComparison::default();
    }
    Ok(Some(difference.judge(None, verified)))
}

/// Compares a log's records with the replay of the log while both are read. It holds the chunks that were not compared
/// yet, and the replayed rows to compare them with. If the state hashes agree but other records differ, the log
/// contradicts itself.
struct RecordComparer<'a> {
    header: &'a SessionHeader,
    hidden: &'a SortedSet<String>,
    /// The tables that a log records, without rows.
    recorded: Trace,
    chunks: VecDeque<SessionChunk>,
    /// The rows between the last two finished ticks.
    rows_before_tick: Vec<Table>,
    /// The rows since the last finished tick.
    rows_since_tick: Vec<Table>,
    /// The last tick whose rows are complete.
    last_tick: Option<(Tick, Micros)>,
    comparison: Result<RecordComparison, DiffError>,
}

/// A message to the comparing thread: a chunk before the replay uses it, or rows of the replay.
enum VerifyInput {
    Chunk(Box<SessionChunk>),
    Rows(Table),
}

/// The sending end of the channel to the comparing thread.
struct VerifySender(SyncSender<VerifyInput>);

impl VerifySender {
    fn send_chunk(&self, chunk: &SessionChunk) {
        // Chunks wait for the next tick. An empty chunk has nothing to compare.
        if !chunk.is_empty() {
            self.send(VerifyInput::Chunk(Box::new(chunk.clone())));
        }
    }

    fn send_rows(&self, rows: Table) {
        if is_bodies(&rows.name) || [ticks::NAME, executed::NAME, frames::NAME].contains(&&*rows.name) {
            self.send(VerifyInput::Rows(rows));
        }
    }

    fn send(&self, input: VerifyInput) {
        // Sending fails only if the comparing thread panicked. The join then resumes that panic.
        let _ = self.0.send(input);
    }
}

/// The number of chunks and row groups that may wait to be compared.
const QUEUED_INPUTS_MAX: usize = 16;

/// Replays a log and compares its records on another thread. Returns the results of both.
fn compare_while_replaying<T>(
    mut comparer: RecordComparer<'_>,
    replay: impl FnOnce(&VerifySender) -> Result<T, EngineError>,
) -> Result<(T, RecordComparison), EngineError> {
    let (sender, inputs) = sync_channel(QUEUED_INPUTS_MAX);
    std::thread::scope(|scope| {
        let compare = move || {
            inputs.into_iter().for_each(|input| comparer.add(input));
            comparer
        };
        let thread = std::thread::Builder::new().name("log comparer".into()).spawn_scoped(scope, compare);
        let thread = thread.map_err(EngineError::no_thread)?;
        let sender = VerifySender(sender);
        let replayed = replay(&sender);
        drop(sender);
        match thread.join() {
            Ok(comparer) => Ok((replayed?, comparer.finish()?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl<'a> RecordComparer<'a> {
    fn new(header: &'a SessionHeader, hidden: &'a SortedSet<String>) -> RecordComparer<'a> {
        RecordComparer {
            header,
            hidden,
            recorded: recorded_without(&Session::new(header.clone()), hidden),
            chunks: VecDeque::new(),
            rows_before_tick: Vec::new(),
            rows_since_tick: Vec::new(),
            last_tick: None,
            comparison: Ok(RecordComparison::default()),
        }
    }

    fn add(&mut self, input: VerifyInput) {
        if self.comparison.as_ref().is_ok_and(|comparison| comparison.first.is_none()) {
            match input {
                VerifyInput::Chunk(chunk) => self.chunks.push_back(*chunk),
                VerifyInput::Rows(rows) => self.add_rows(rows),
            }
        }
    }

    /// Adds rows of the replay. Rows of `ticks` complete all earlier rows.
    fn add_rows(&mut self, mut rows: Table) {
        let recorded = self.recorded.table(&rows.name);
        rows.columns.retain(|column| recorded.is_some_and(|recorded| recorded.column(&column.name).is_some()));
        if rows.name == ticks::NAME {
            if let Some((tick, at)) = self.last_tick {
                let ready = self.chunks.iter().take_while(|chunk| is_before(chunk, tick, at)).count();
                self.compare(ready);
            }
            let of_rows = ticks::Columns::read(&rows);
            let last = of_rows.tick.last().zip(of_rows.at_us.last());
            self.last_tick = last.map(|(tick, at)| (Tick(*tick), Micros(*at))).or(self.last_tick);
        }
        self.rows_since_tick.push(rows);
    }

    /// Compares the remaining chunks and returns the result for all.
    ///
    /// # Errors
    /// Fails if rows of a table do not fit the rows before them, or cannot be put in order.
    fn finish(mut self) -> Result<RecordComparison, EngineError> {
        self.compare(self.chunks.len());
        Ok(self.comparison?)
    }

    /// Compares the first `chunks` chunks.
    fn compare(&mut self, chunks: usize) {
        let mut session = Session::new(self.header.clone());
        self.chunks.drain(..chunks).for_each(|chunk| session.append(chunk));
        session.put_in_order();
        let mut replayed = Trace::default();
        let mut rows =
            std::mem::take(&mut self.rows_before_tick).into_iter().chain(self.rows_since_tick.iter().cloned());
        let fits = rows.try_for_each(|rows| replayed.append(rows)).map_err(DiffError::Unread);
        let later = fits.and_then(|()| RecordComparison::of(&recorded_without(&session, self.hidden), &replayed));
        if let Ok(comparison) = &mut self.comparison {
            match later {
                Ok(later) => comparison.add(later),
                Err(error) => self.comparison = Err(error),
            }
        }
        self.rows_before_tick = std::mem::take(&mut self.rows_since_tick);
    }
}

/// Whether all records of a chunk belong to this tick and time or earlier ones.
fn is_before(chunk: &SessionChunk, tick: Tick, at: Micros) -> bool {
    let is_early = |when: Option<EventTime>| match when {
        Some(EventTime::At(then)) => then <= at,
        Some(EventTime::In(then)) => then <= tick,
        None => true,
    };
    let frames = chunk.players.iter().all(|player| is_early(player.frames.last().map(|frame| EventTime::At(frame.at))));
    let executed = chunk.players.iter().all(|player| player.executed.iter().all(|done| done.tick <= tick));
    let ticks = chunk.ticks.last().is_none_or(|last| last.tick <= tick);
    frames && executed && ticks && chunk.states.keys().iter().all(|key| key.tick <= tick)
}
