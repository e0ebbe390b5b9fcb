//! Verifies log files: replays each one more than once, compares the replays with each other and with the golden, and
//! writes a new golden on request.

mod golden;
mod records;
mod verdict;

pub(crate) use golden::Goldens;
pub use golden::{Golden, GoldenUpdate, Proposal, proposals_below};
pub(crate) use records::{BodyRows, RecordComparison, RecordDifference, before_hole, of_bodies, of_shots};
pub use verdict::{LogFacts, LogReport, LogVerdict, THREADS, VerdictReason, VerifiedReplay, VerifyReference, judge};

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};

use rayon::prelude::*;

use crate::build::{Build, OneSidedLog};
use crate::engine::{Engine, EngineError, SurveyedLog, retry_with_encoding};
use crate::in_order;
use crate::surveyed_log::{Leg, ReplaySinks};
use hitreg_analysis::diff::DiffError;
use hitreg_analysis::golden::ReplaySummary;
use hitreg_log::record::{EventTime, Session, SessionChunk, SessionHeader};
use hitreg_log::recorded::recorded_without;
use hitreg_log::sorted::SortedSet;
use hitreg_log::store::Target;
use hitreg_log::trace::schema::{NO_HASH, executed, frames, is_bodies, ticks};
use hitreg_log::trace::{RECORD, Table, Trace, TraceHeader};
use hitreg_log::units::{Micros, Tick};
use hitreg_netcode::replay::{ReplayAttempt, ReplayError, ReplayFindings, ReplayOptions, compare_hashes};
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

impl std::fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifyOptions")
            .field("keep", &self.keep)
            .field("needs_golden", &self.needs_golden)
            .field("rollback_every", &self.rollback_every)
            .field("whole", &self.whole)
            .finish_non_exhaustive()
    }
}

impl VerifyOptions<'_> {
    /// Verifies a log. Problems with it or its golden go into its report.
    pub(crate) fn log(
        &self,
        engine: &Engine<'_>,
        path: &Path,
        goldens: &Goldens,
        at_once: bool,
    ) -> Result<LogReport, EngineError> {
        // A replay may end with a panic, after which nothing can be withdrawn.
        goldens.withdraw()?;
        // An error in the log takes precedence over one in its golden.
        let (log, accepted) = match engine.survey(path).and_then(|log| Ok((log, goldens.accepted()?))) {
            Ok(read) => read,
            Err(error) if error.is_for_memory() => return Err(error),
            Err(error) => return Ok(LogReport::unreadable(path, error.what(path))),
        };
        let against = VerifyReference { golden: accepted.as_deref(), rollback: self.rollback_every.is_some() };
        let writes_golden = accepted.is_some() || self.keep.writes();
        let may_run_in_legs = !(self.whole || self.rollback_every.is_some() || writes_golden);
        let in_legs = match self.build {
            None if may_run_in_legs => in_legs(engine, &log, against)?,
            _ => None,
        };
        let mut verified = match in_legs {
            Some(verified) => verified,
            None => self.replayed(engine, &log, against, (writes_golden, at_once))?,
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
            verified = verified.but(LogVerdict::Untestable, VerdictReason::NoGolden, detail);
        }
        let plays_here = engine.games.of_header(&log.header).is_ok();
        let has_other_states = matches!(verified.why, Some(VerdictReason::RecordedState | VerdictReason::Keyframe));
        let rerecorded = match self.keep.rerecords() && has_other_states {
            true => Some(self.verify_rerecorded(engine, &log, against)?),
            false => None,
        };
        Ok(LogReport { path: path.to_owned(), plays_here, ..goldens.settle(verified, rerecorded)? })
    }

    /// Replays a log as a whole, and judges the replays. `golden` makes the text of its golden; `at_once` runs the
    /// replays in parallel.
    fn replayed(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
        (golden, at_once): (bool, bool),
    ) -> Result<LogReport, EngineError> {
        let replays = match self.build {
            None => own_replays(engine, log, self.rollback_every, golden, at_once),
            Some(build) => built_replays(engine, build, log),
        }?;
        let played = replays.as_ref().map(|(played, _)| &played[..]).map_err(Clone::clone);
        let says = |side: &OneSidedLog| played.as_ref().is_err_and(|why| *why == side.to_string());
        let is_one_sided = [OneSidedLog::Server, OneSidedLog::Client].iter().any(says);
        let mut facts = log.facts()?;
        if let Ok((_, unlike)) = &replays {
            facts.contradiction = facts.contradiction.or_else(|| unlike.missing_usercmd.clone());
            facts.bodies_compared = unlike.records.bodies;
            facts.replay_has_no_hash = unlike.has_no_hash;
        }
        let can_rerecord =
            played.as_ref().is_ok_and(|played| played.iter().all(|replay| replay.summary.header.can(RECORD)));
        let verified = LogReport { can_rerecord, is_one_sided, ..judge(&facts, played, against) };
        Ok(match replays {
            Ok((_, unlike)) if verified.passes_so_far() => unlike.judge(self.build, verified),
            _ => verified,
        })
    }

    /// Records the log's input and links again, and verifies the new log.
    fn verify_rerecorded(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
        against: VerifyReference<'_>,
    ) -> Result<golden::RerecordedLog, EngineError> {
        let folder = hitreg_log::store::temporary_folder()?;
        let target = folder.file("anew.hitlog");
        if let Err(why) = rerecord(engine, self.build, log, &target)? {
            return Ok(golden::RerecordedLog { log: None, verified: LogReport::not_replayed(why) });
        }
        let again = engine.quiet().survey(target.path())?;
        let verified = self.replayed(engine, &again, against, (true, false))?;
        Ok(golden::RerecordedLog { log: Some((folder, target.path().to_owned())), verified })
    }
}

fn thread_pool(threads: usize) -> Result<rayon::ThreadPool, EngineError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| EngineError::Request(format!("cannot start {threads} threads: {error}")))
}

/// The replays and the records that differ from them, or the reason why there are no replays.
type Replays = Result<(Vec<VerifiedReplay>, LogDifference), String>;

/// Records the log's input and links again in `to`, by this build or another, or returns the reason why that is impossible.
fn rerecord(
    engine: &Engine<'_>,
    build: Option<&Build>,
    log: &SurveyedLog,
    to: &Target,
) -> Result<Result<(), String>, EngineError> {
    let made = match build {
        None => log.rerecord(engine, None, to)?,
        Some(build) => engine.runner.rerecord(build, &log.request()?, to.path()),
    };
    Ok(engine.ran(&log.path, made)?.map_err(|untestable| untestable.detail()))
}

/// The traces of another build. It runs as often as this build replays, and without the cache.
fn built_replays(engine: &Engine<'_>, build: &Build, log: &SurveyedLog) -> Result<Replays, EngineError> {
    let runner = engine.uncached().runner;
    let session = log.session()?;
    let mut replays = Vec::with_capacity(THREADS.len());
    let (mut records, mut has_no_hash) = (RecordComparison::default(), false);
    for _ in THREADS {
        let trace = match engine.ran(&log.path, runner.trace(build, &log.request()?))? {
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
            records = RecordComparison::of_build(&session, &trace)?;
            has_no_hash = ticks::Columns::of(&trace).hash.iter().all(|hash| *hash == NO_HASH);
        }
        if let Some(side) = OneSidedLog::of_replayed(&session, &ran) {
            return Ok(Err(side.to_string()));
        }
        replays.push(VerifiedReplay { summary: ReplaySummary::of(&trace), ran });
    }
    let difference = replays.first().and_then(|replay| replay.ran.first_difference);
    let missing_usercmd = missing_usercmd(&session, difference.map(|difference| difference.tick));
    Ok(Ok((replays, LogDifference { records, missing_usercmd, has_no_hash, ..LogDifference::default() })))
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
}

impl LogDifference {
    /// The verdict on a log whose other checks passed. This program replays by the log's own rules, so a log that
    /// contradicts the replay is invalid. Another build writes its rows itself, so that build differs.
    fn judge(self, build: Option<&Build>, verified: LogReport) -> LogReport {
        let has_hashes = verified.hashes_compared > 0;
        match (self.records.first, self.keyframe) {
            (Some(place), _) if has_hashes && build.is_none() => {
                let detail = format!(
                    "the log contradicts itself: its state hashes match the replay, but not its records {place}"
                );
                verified.but(LogVerdict::Broken, VerdictReason::Contradiction, detail)
            }
            (Some(place), _) => {
                let who =
                    build.map_or("the replay".to_owned(), |build| format!("the build {}", build.path().display()));
                let hashes = if has_hashes { "; the state hashes agree" } else { "" };
                let detail = format!("{who} differs from the log {place}{hashes}");
                verified.but(LogVerdict::Differs, VerdictReason::RecordedState, detail)
            }
            (None, Some(tick)) => {
                let detail = format!("the keyframe after tick {tick} differs from the replayed state");
                let recorded_differs = verified.why == Some(VerdictReason::RecordedState);
                let why = if recorded_differs { VerdictReason::RecordedState } else { VerdictReason::Keyframe };
                verified.but(LogVerdict::Differs, why, detail)
            }
            (None, None) => verified,
        }
    }
}

/// Replays a log in this build, in parallel if `at_once`.
fn own_replays(
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
    let encodes = AtomicBool::new(false);
    let play = |(number, threads): (usize, usize)| {
        // One replay is compared with the log's records, the other with its keyframes. A log without a server has no
        // records that the replay of its clients could contradict.
        let records = number == 0 && log.has_server();
        let attempt = |encodes| {
            compared(log, records, golden && number == 0, |sinks| {
                log.replay_beside(game, !records, ReplayAttempt { options: &options, encodes }, sinks)
            })
        };
        thread_pool(threads)?.install(|| retry_with_encoding(&encodes, attempt))
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
                unlike.records.add(found.records);
                unlike.keyframe = unlike.keyframe.or(found.keyframe);
                all.push(played);
            }
            Err(EngineError::Replay { source: ReplayError::NeedsMemory(source), .. }) => {
                return Err(EngineError::needs_memory(&log.path, source));
            }
            Err(error @ EngineError::Replay { .. }) => return Ok(Err(error.what(&log.path))),
            Err(error) => return Err(error),
        }
    }
    Ok(Ok((all, unlike)))
}

/// Runs a replay of a log or of a leg. `run` compares the states with keyframes. With `records`, the rows are compared
/// with the log's records. `golden` collects the figures for the golden.
fn compared(
    log: &SurveyedLog,
    records: bool,
    golden: bool,
    run: impl FnOnce(ReplaySinks<'_>) -> Result<Option<(ReplayFindings, Option<Tick>)>, EngineError>,
) -> Result<Option<(VerifiedReplay, LogDifference)>, EngineError> {
    let mut summary: Option<ReplaySummary> = None;
    let mut gather = |header: &TraceHeader, rows: &Table| {
        summary.get_or_insert_with(|| ReplaySummary::new(header.clone(), golden)).add(rows);
    };
    let (ran, records) = match records {
        true => meanwhile(RecordedRows::new(&log.header, &log.survey.hidden), |comparer| {
            let mut to = |header: &TraceHeader, rows: Table| {
                gather(header, &rows);
                comparer.rows(rows);
            };
            run(ReplaySinks { seen: &mut |chunk| comparer.chunk(chunk), to: &mut to, progress: &mut |_| {} })
        })?,
        false => {
            let mut to = |header: &TraceHeader, rows: Table| gather(header, &rows);
            let sinks = ReplaySinks { seen: &mut |_| {}, to: &mut to, progress: &mut |_| {} };
            (run(sinks)?, RecordComparison::default())
        }
    };
    let played = ran.zip(summary);
    Ok(played.map(|((ran, keyframe), summary)| {
        (VerifiedReplay { summary, ran }, LogDifference { records, keyframe, ..LogDifference::default() })
    }))
}

/// Verifies a log leg by leg. Returns `None` if it has no keyframes, or if datagrams may have affected the outcome.
/// Keyframes hold no datagram state.
fn in_legs(
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
        let leg = compared(log, true, false, |sinks| log.run_leg(game, &legs[number], sinks))?;
        Ok(leg.map(|(VerifiedReplay { summary, ran }, unlike)| (ReplayFigures::of(&summary), ran, unlike)))
    });
    let (mut played, mut unlike) = (Vec::with_capacity(legs.len()), LogDifference::default());
    for leg in replays {
        match leg {
            Ok(Some((figures, ran, found))) => {
                unlike.keyframe = unlike.keyframe.or(found.keyframe);
                unlike.records.add(found.records);
                let is_off = unlike.keyframe.is_some() || ran.first_difference.is_some();
                played.push((figures, ran));
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
    facts.bodies_compared = unlike.records.bodies;
    let verified = judge_legs(&facts, &played, against);
    let first_difference = played.iter().find_map(|(_, ran)| ran.first_difference).map(|found| found.tick);
    let keyframe = unlike.keyframe.filter(|keyframe| first_difference.is_none_or(|tick| *keyframe < tick));
    // After a keyframe that differs, every other finding follows from it or comes later.
    let counts = verified.passes_so_far() && keyframe.is_none();
    let records = if counts { unlike.records } else { RecordComparison::default() };
    Ok(Some(counted(LogDifference { records, keyframe, ..LogDifference::default() }.judge(None, verified))))
}

/// Compares a log's records with the replay of the log while both are read. It holds the chunks that were not compared
/// yet, and the replayed rows to compare them with. If the state hashes agree but other records differ, the log
/// contradicts itself.
struct RecordedRows<'a> {
    header: &'a SessionHeader,
    hidden: &'a SortedSet<String>,
    /// The tables that a log records, without rows.
    recorded: Trace,
    chunks: VecDeque<SessionChunk>,
    /// The rows between the last two finished ticks, and the rows since the last one.
    before: Vec<Table>,
    rows: Vec<Table>,
    /// The last tick whose rows are complete.
    reached: Option<(Tick, Micros)>,
    found: Result<RecordComparison, DiffError>,
}

/// A message to the comparing thread: a chunk before the replay uses it, or rows of the replay.
enum VerifyInput {
    Chunk(Box<SessionChunk>),
    Rows(Table),
}

/// The sending end of the channel to the comparing thread.
struct VerifySender(SyncSender<VerifyInput>);

impl VerifySender {
    fn chunk(&self, chunk: &SessionChunk) {
        // Chunks wait for the next tick. An empty chunk has nothing to compare.
        if !chunk.is_empty() {
            self.tell(VerifyInput::Chunk(Box::new(chunk.clone())));
        }
    }

    fn rows(&self, rows: Table) {
        if is_bodies(&rows.name) || [ticks::NAME, executed::NAME, frames::NAME].contains(&&*rows.name) {
            self.tell(VerifyInput::Rows(rows));
        }
    }

    fn tell(&self, heard: VerifyInput) {
        // Sending fails only if the comparing thread panicked. The join then resumes that panic.
        let _ = self.0.send(heard);
    }
}

/// The number of chunks and row groups that may wait to be compared.
const WAITING: usize = 16;

/// Replays a log and compares its records on another thread. Returns the results of both.
fn meanwhile<T>(
    mut said: RecordedRows<'_>,
    replay: impl FnOnce(&VerifySender) -> Result<T, EngineError>,
) -> Result<(T, RecordComparison), EngineError> {
    let (telling, waiting) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let listen = move || {
            waiting.into_iter().for_each(|heard| said.add(heard));
            said
        };
        let listener = std::thread::Builder::new().name("log comparer".into()).spawn_scoped(scope, listen);
        let listener = listener.map_err(EngineError::no_thread)?;
        let telling = VerifySender(telling);
        let made = replay(&telling);
        drop(telling);
        match listener.join() {
            Ok(said) => Ok((made?, said.end()?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl<'a> RecordedRows<'a> {
    fn new(header: &'a SessionHeader, hidden: &'a SortedSet<String>) -> RecordedRows<'a> {
        let recorded = recorded_without(&Session::new(header.clone()), hidden);
        let (chunks, before, rows) = (VecDeque::new(), Vec::new(), Vec::new());
        RecordedRows {
            header,
            hidden,
            recorded,
            chunks,
            before,
            rows,
            reached: None,
            found: Ok(RecordComparison::default()),
        }
    }

    fn add(&mut self, heard: VerifyInput) {
        if self.found.as_ref().is_ok_and(|found| found.first.is_none()) {
            match heard {
                VerifyInput::Chunk(chunk) => self.chunks.push_back(*chunk),
                VerifyInput::Rows(rows) => self.rows(rows),
            }
        }
    }

    /// Adds rows of the replay. Rows of `ticks` complete all earlier rows.
    fn rows(&mut self, mut rows: Table) {
        let recorded = self.recorded.table(&rows.name);
        rows.columns.retain(|column| recorded.is_some_and(|recorded| recorded.column(&column.name).is_some()));
        if rows.name == ticks::NAME {
            if let Some((tick, at)) = self.reached {
                let is_there = |chunk: &SessionChunk| is_before(chunk, tick, at);
                let ready = self.chunks.iter().take_while(|chunk| is_there(chunk)).count();
                self.compare(ready);
            }
            let of_rows = ticks::Columns::read(&rows);
            let last = of_rows.tick.last().zip(of_rows.at_us.last());
            self.reached = last.map(|(tick, at)| (Tick(*tick), Micros(*at))).or(self.reached);
        }
        self.rows.push(rows);
    }

    /// Compares the remaining chunks and returns the result for all.
    ///
    /// # Errors
    /// Fails if rows of a table do not fit the rows before them, or cannot be put in order.
    fn end(mut self) -> Result<RecordComparison, EngineError> {
        self.compare(self.chunks.len());
        Ok(self.found?)
    }

    /// Compares the first `chunks` chunks.
    fn compare(&mut self, chunks: usize) {
        let mut session = Session::new(self.header.clone());
        self.chunks.drain(..chunks).for_each(|chunk| session.append(chunk));
        session.put_in_order();
        let mut played = Trace::default();
        let mut rows = std::mem::take(&mut self.before).into_iter().chain(self.rows.iter().cloned());
        let fits = rows.try_for_each(|rows| played.append(rows)).map_err(DiffError::Unread);
        let compared = fits.and_then(|()| RecordComparison::of(&recorded_without(&session, self.hidden), &played));
        if let Ok(found) = &mut self.found {
            match compared {
                Ok(later) => found.add(later),
                Err(error) => self.found = Err(error),
            }
        }
        self.before = std::mem::take(&mut self.rows);
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
