//! Judges the logs of a corpus on all cores: verifies each log, or compares two sides over each. Long logs come first, so
//! that no core waits for the last one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::results::ResultFolder;
use crate::build::StopSignal;
use crate::verify::{Goldens, LogReport, LogVerdict, VerdictReason, VerifyOptions};
use crate::{Engine, EngineError, ReplaySpecs, Traces, file_digest, for_one_log};
use hitreg_analysis::corpus::{LogRow, ResultRow, compared_rows, name_of};
use hitreg_analysis::diff::{DiffError, DiffOptions, Divergence, diff};
use hitreg_analysis::summary::Coverage;
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::{self, FileIdentity, StoreError, StoreErrorKind, Targets};
use hitreg_log::trace::Digest;
use hitreg_log::units::Tick;

/// Judges one log after the other.
pub trait CorpusJudge: Sync {
    /// What the judge keeps of a log besides its rows.
    type Report: Send;

    /// The row of a log before it is judged: the command, the build and the options.
    fn about(&self) -> LogRow;

    /// What the verdict on a log depends on besides its bytes, the build and the options, such as its golden. `None` if
    /// the verdict depends on more than files, so that it cannot be reused.
    fn depends_on(&self, log: &Path) -> Option<String>;

    /// Whether a later run may reuse the verdict in this row. A build that failed may have failed because of the machine.
    fn may_reuse(&self, row: &LogRow) -> bool;

    /// Whether the judge may write the logs that it judges.
    fn writes_logs(&self) -> bool {
        false
    }

    /// Judges a log. `about` is its row so far; the row of the log is the last of the result.
    ///
    /// # Errors
    /// When the log cannot be judged. An error that is not about one log ends the run.
    fn judge(&self, log: &Path, about: LogRow) -> Result<(Vec<ResultRow>, Self::Report), EngineError>;
}

/// What became of a log.
#[derive(Debug)]
pub struct JudgedLog<R> {
    /// The rows; the last one is that of the log.
    pub rows: Vec<ResultRow>,
    /// The judge's report; `None` for an earlier verdict, and for a log that could not be judged.
    pub report: Option<R>,
}

/// What became of all logs.
#[derive(Debug)]
pub struct JudgedCorpus<R> {
    /// The logs, in the order of the corpus.
    pub logs: Vec<JudgedLog<R>>,
    /// Why the rest of the results was not kept.
    pub problem: Option<StoreError>,
}

/// A run over a corpus.
#[derive(Debug)]
pub struct CorpusRun<'a> {
    /// How many logs are judged at the same time; 0 for one on each core.
    pub threads: usize,
    /// Where results are kept.
    pub results: Option<ResultFolder>,
    /// Stops the run after the logs that are being judged.
    pub stop: &'a StopSignal,
}

impl CorpusRun<'_> {
    /// Judges the logs and returns the results in their order. Problems with a log become its verdict, and the other
    /// logs are judged. `done` receives what became of each log, as soon as it is known. If results cannot be kept, the
    /// rest of the run keeps none.
    ///
    /// # Errors
    /// When threads cannot be started, when an error is not about one log, or when the run was stopped.
    pub fn judge<J: CorpusJudge>(
        self,
        logs: &[PathBuf],
        judge: &J,
        done: &(dyn Fn(&LogRow) + Sync),
    ) -> Result<JudgedCorpus<J::Report>, EngineError> {
        let resumes = self.results.is_some();
        let identities: Vec<Option<FileIdentity>> = logs.iter().map(|log| FileIdentity::of(log)).collect();
        let keeper = ResultKeeper { folder: Mutex::new(self.results), problem: Mutex::new(None) };
        let is_only = logs.len() == 1;
        let work = |number: usize| {
            if self.stop.is_stopped() {
                return Err(EngineError::Stopped { resumes });
            }
            let log = judge_log(&logs[number], identities[number], judge, is_only, &keeper)?;
            if let Some(ResultRow::Log(row)) = log.rows.last() {
                done(row);
            }
            Ok(log)
        };
        let logs = match for_each_log(logs, self.threads, &work) {
            Err(EngineError::Stopped { .. }) => return Err(EngineError::Stopped { resumes }),
            Ok(_) if self.stop.is_stopped() => return Err(EngineError::Stopped { resumes }),
            judged => judged?,
        };
        keeper.keep(ResultFolder::finish);
        let problem = keeper.problem.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(JudgedCorpus { logs, problem })
    }
}

/// Calls `work` with the index of each log, on `threads` workers; 0 for one on each core. Long logs come first. Returns
/// the results in the order of the logs. No further log begins after an error.
///
/// # Errors
/// When `work` fails.
pub fn for_each_log<T: Send, E: From<EngineError> + Send>(
    logs: &[PathBuf],
    threads: usize,
    work: &(dyn Fn(usize) -> Result<T, E> + Sync),
) -> Result<Vec<T>, E> {
    let bytes = |log: &PathBuf| FileIdentity::of(log).map(|identity| identity.bytes);
    let mut order: Vec<_> = (0..).zip(logs).map(|(number, log)| (std::cmp::Reverse(bytes(log)), number)).collect();
    order.sort_unstable();
    let all = if threads > 0 { threads } else { rayon::current_num_threads() };
    let workers = all.clamp(1, logs.len().max(1));
    // A worker with one log after the other has no other threads to wait for.
    let threads = all / workers;
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<Result<T, E>>>> = Mutex::new(logs.iter().map(|_| None).collect());
    let all_work = || {
        while let Some((_, number)) = order.get(next.fetch_add(1, Ordering::Relaxed))
            && !failed.load(Ordering::Relaxed)
        {
            let result = work(*number);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            lock(&results)[*number] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let start = || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
            let worker = std::thread::Builder::new().name("corpus".into());
            worker.spawn_scoped(scope, move || pool.install(all_work)).ok()
        };
        // If the system allows fewer workers, there are fewer. The last one is this thread.
        if (0..workers).map_while(|_| start()).count() == 0 {
            all_work();
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

/// The folder of results, for all workers.
struct ResultKeeper {
    folder: Mutex<Option<ResultFolder>>,
    problem: Mutex<Option<StoreError>>,
}

impl ResultKeeper {
    fn with<T>(&self, use_it: impl FnOnce(&mut ResultFolder) -> Option<T>) -> Option<T> {
        use_it(lock(&self.folder).as_mut()?)
    }

    /// Writes to the folder. After a failure, such as a full disk, the run goes on without it.
    fn keep(&self, write: impl FnOnce(&mut ResultFolder) -> Result<(), StoreError>) {
        let mut folder = lock(&self.folder);
        if let Some(Err(error)) = folder.as_mut().map(write) {
            lock(&self.problem).get_or_insert(error);
            *folder = None;
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Judges a log, unless an earlier verdict holds. If the only log needs too much memory, the run fails.
fn judge_log<J: CorpusJudge>(
    log: &Path,
    identity: Option<FileIdentity>,
    judge: &J,
    is_only: bool,
    keeper: &ResultKeeper,
) -> Result<JudgedLog<J::Report>, EngineError> {
    let name = log.display().to_string();
    let mut about = LogRow { log: name.clone(), ..judge.about() };
    let keep = |mut rows: Vec<ResultRow>, report| {
        keeper.keep(|results| results.keep(&mut rows));
        Ok(JudgedLog { rows, report })
    };
    let broken = |about: LogRow, detail: String| {
        let row = LogRow { verdict: "broken".to_owned(), detail, ..about };
        keep(vec![ResultRow::Log(Box::new(row))], None)
    };
    let change = || match FileIdentity::of(log) {
        now if now == identity || judge.writes_logs() => None,
        None => Some("the file disappeared during the run: restore it, and run the command again".to_owned()),
        Some(_) => Some(EngineError::from(StoreError::new(log, StoreErrorKind::Changed)).what(log)),
    };
    // A pipe can be read only once.
    if let Some(identity) = identity {
        match digest(log, identity, keeper) {
            Ok(digest) => about.log_digest = digest,
            Err(error) => return broken(about, change().unwrap_or_else(|| EngineError::from(error).what(log))),
        }
    }
    let is_kept = identity.is_some() && lock(&keeper.folder).is_some();
    let depends_on = is_kept.then(|| judge.depends_on(log)).flatten();
    let parts = [&about.command, &about.log_digest, &about.build_digest, &about.options];
    let parts = parts.into_iter().chain(&depends_on).map(String::as_str).collect::<Vec<_>>().join("\n");
    about.key = Digest::of_bytes(parts.as_bytes()).to_string();
    let may_reuse = depends_on.is_some();
    let earlier = || keeper.with(|results| results.rows(&about.key, &name));
    if let Some(rows) = may_reuse.then(earlier).flatten() {
        return Ok(JudgedLog { rows, report: None });
    }
    // A pipe may be endless.
    if identity.is_some() {
        describe(log, &mut about);
    }
    let judged = for_one_log(log, || judge.judge(log, about.clone()));
    match (judged, change()) {
        (Ok((mut rows, report)), None) => {
            if let Some(ResultRow::Log(row)) = rows.last_mut() {
                row.is_reusable = may_reuse && judge.may_reuse(row);
            }
            keep(rows, Some(report))
        }
        (Err(error), _) if !error.is_about_one_log() => Err(error),
        (Err(error), _) if is_only && error.is_for_memory() => Err(error),
        (Ok(_) | Err(_), Some(change)) => broken(about, change),
        (Err(error), None) => broken(about, error.what(log)),
    }
}

/// The digest of a log's bytes: the known one of an unchanged file, or that of its content.
fn digest(log: &Path, identity: FileIdentity, keeper: &ResultKeeper) -> Result<String, StoreError> {
    // Runs in several folders may share the results, so a relative path does not name a file. A file whose path is no
    // text is read again.
    let place = store::canonical(log)?.into_os_string().into_string().ok();
    let known = |place: &String| keeper.with(|results| results.digest(place, &identity));
    if let Some(digest) = place.as_ref().and_then(known) {
        return Ok(digest);
    }
    let digest = file_digest(log)?.to_string();
    if let Some(place) = place {
        keeper.keep(|results| results.note_digest(&place, &identity, &digest));
    }
    Ok(digest)
}

/// Adds what the log's header says. The judge says what is wrong with a log that cannot be read.
fn describe(log: &Path, about: &mut LogRow) {
    if let Ok(reader) = store::open_log(log) {
        let header = reader.header();
        about.game.clone_from(&header.game);
        about.map.clone_from(&header.map);
        about.preset = header.preset.clone().unwrap_or_default();
        about.players = header.players.len() as u64;
    }
}

/// A verification of any log of a corpus.
pub struct VerifiedCorpus<'a> {
    options: &'a VerifyOptions<'a>,
    engine: &'a Engine<'a>,
    goldens: SortedMap<PathBuf, Goldens>,
    /// The command, the build and the options.
    about: LogRow,
    /// Whether files determine the build, so that a later run may reuse a verdict.
    may_reuse: bool,
    /// The command that explains a difference.
    next: &'a (dyn Fn(&LogReport) -> String + Sync),
}

hitreg_log::partial_debug!(VerifiedCorpus<'_> { about });

impl<'a> VerifiedCorpus<'a> {
    /// Prepares the verification of these logs, and checks that all requested files may be written.
    ///
    /// # Errors
    /// Fails if a requested file cannot be written.
    pub fn new(
        options: &'a VerifyOptions<'a>,
        engine: &'a Engine<'a>,
        logs: &[PathBuf],
        about: LogRow,
        may_reuse: bool,
        next: &'a (dyn Fn(&LogReport) -> String + Sync),
    ) -> Result<VerifiedCorpus<'a>, EngineError> {
        let targets = Targets::new(logs.to_vec());
        let goldens = logs.iter().map(|path| Ok((path.clone(), Goldens::of(path, options.keep, &targets)?)));
        let goldens = goldens.collect::<Result<_, EngineError>>()?;
        // A run that writes goldens judges every log, so that it writes every golden.
        let may_reuse = may_reuse && !options.keep.writes();
        Ok(VerifiedCorpus { options, engine, goldens, about, may_reuse, next })
    }

    /// Where the states of a replay first differ from the recorded ones; `None` if the log has too few records.
    fn first_difference(&self, log: &Path, report: &LogReport) -> Option<Divergence> {
        if report.why != Some(VerdictReason::RecordedState) {
            return None;
        }
        let mut replays = ReplaySpecs::default();
        replays.b.build = self.options.build.map(|build| build.path().to_owned());
        let [a, b] = replays.of_log(log).make_traces(self.engine).ok()?.sides;
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        diff(a.source(), b.source(), &options).ok()?.first
    }
}

impl CorpusJudge for VerifiedCorpus<'_> {
    type Report = LogReport;

    fn about(&self) -> LogRow {
        self.about.clone()
    }

    fn depends_on(&self, log: &Path) -> Option<String> {
        let digest = match self.goldens.get(log)?.path().filter(|golden| golden.exists()) {
            Some(golden) => Digest::of_bytes(&store::read_regular(golden).ok()?).to_string(),
            None => String::new(),
        };
        self.may_reuse.then_some(digest)
    }

    fn may_reuse(&self, row: &LogRow) -> bool {
        self.options.build.is_none() || row.why != name_of(VerdictReason::NotReplayed)
    }

    fn writes_logs(&self) -> bool {
        self.options.keep.rerecords()
    }

    fn judge(&self, log: &Path, about: LogRow) -> Result<(Vec<ResultRow>, LogReport), EngineError> {
        let Some(goldens) = self.goldens.get(log) else {
            return Err(StoreError::not_found(log).into());
        };
        let started = (self.options.clock)();
        // With threads to spare, the replays of one log run in parallel.
        let parallel = rayon::current_num_threads() > 1;
        let mut report = self.options.judge_log(self.engine, log, goldens, parallel)?;
        report.seconds = (self.options.clock)() - started;
        let first = self.first_difference(log, &report);
        let row = LogRow {
            verdict: name_of(report.verdict),
            why: report.why.map(name_of).unwrap_or_default(),
            detail: report.detail.clone().unwrap_or_default(),
            tick: report.tick.map(|tick| i64::from(tick.0)),
            table: first.as_ref().map(|first| first.table.clone()).unwrap_or_default(),
            field: first.and_then(|first| first.field).unwrap_or_default(),
            next: (self.next)(&report),
            ticks: report.exercised.ticks,
            usercmds: report.exercised.usercmds,
            shots_b: report.exercised.shots,
            hits_b: report.exercised.hits,
            corrections_b: report.exercised.corrections,
            trace_digest: report.digest.clone(),
            active_usercmds: report.exercised.active_usercmds,
            hashes_recorded: report.hashes_recorded,
            hashes_compared: report.hashes_compared,
            rollbacks: report.rollbacks,
            legs: report.legs.map(|legs| legs as u64),
            keyframes: report.keyframes.map(|keyframes| keyframes as u64),
            golden: name_of(report.golden),
            ..about
        };
        let row = row.with_view_errors(&report.view_errors);
        Ok((vec![ResultRow::Log(Box::new(row))], report))
    }
}

impl JudgedLog<LogReport> {
    /// The report on the log; that of an earlier verdict has what its row has.
    pub fn verified(self) -> LogReport {
        let of_row = |row: &ResultRow| match row {
            ResultRow::Log(row) => Some(LogReport::of_row(row)),
            _ => None,
        };
        let report = self.report.or_else(|| self.rows.last().and_then(of_row));
        report.unwrap_or_else(|| LogReport::new(LogVerdict::Broken))
    }
}

impl LogReport {
    fn of_row(row: &LogRow) -> LogReport {
        let parsed = |name: &str| serde_json::Value::from(name);
        let verdict = serde_json::from_value(parsed(&row.verdict)).unwrap_or(LogVerdict::Broken);
        let why = serde_json::from_value(parsed(&row.why)).ok();
        let count = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        LogReport {
            path: PathBuf::from(&row.log),
            why: why.or((verdict == LogVerdict::Broken).then_some(VerdictReason::Unreadable)),
            detail: Some(row.detail.clone()).filter(|detail| !detail.is_empty()),
            tick: row.tick.and_then(|tick| u32::try_from(tick).ok()).map(Tick),
            exercised: Coverage {
                ticks: row.ticks,
                usercmds: row.usercmds,
                active_usercmds: row.active_usercmds,
                corrections: row.corrections_b,
                shots: row.shots_b,
                hits: row.hits_b,
            },
            digest: row.trace_digest.clone(),
            hashes_recorded: row.hashes_recorded,
            hashes_compared: row.hashes_compared,
            rollbacks: row.rollbacks,
            legs: count(row.legs),
            keyframes: count(row.keyframes),
            golden: serde_json::from_value(parsed(&row.golden)).unwrap_or_default(),
            ..LogReport::new(verdict)
        }
    }
}

/// A comparison of two sides, for any log.
pub struct ComparedCorpus<'a> {
    /// The games, and how builds run.
    pub engine: &'a Engine<'a>,
    /// How both sides replay a log.
    pub replays: &'a ReplaySpecs,
    /// What counts as a difference.
    pub diff: &'a DiffOptions,
    /// The command, the build and the options.
    pub about: LogRow,
    /// The digest of side A's build; `None` if files do not determine both builds, so that no verdict is reused.
    pub depends_on: Option<String>,
    /// Returns the command line that compares one log, by its path.
    pub command: &'a (dyn Fn(&str) -> String + Sync),
}

hitreg_log::partial_debug!(ComparedCorpus<'_> { about });

impl CorpusJudge for ComparedCorpus<'_> {
    type Report = ();

    fn about(&self) -> LogRow {
        self.about.clone()
    }

    fn depends_on(&self, _: &Path) -> Option<String> {
        self.depends_on.clone()
    }

    fn may_reuse(&self, row: &LogRow) -> bool {
        row.verdict != "untestable" || !self.replays.run_builds()
    }

    fn judge(&self, log: &Path, about: LogRow) -> Result<(Vec<ResultRow>, ()), EngineError> {
        let sides = self.replays.of_log(log);
        let traces = sides.make_traces(self.engine);
        let Traces { sides: [a, b], overlap_only, .. } = match traces {
            Err(EngineError::Missing(missing)) => {
                let (detail, next) = (missing.detail(), missing.command().unwrap_or_default().to_owned());
                let row = LogRow { verdict: "untestable".to_owned(), detail, next, ..about };
                return Ok((vec![ResultRow::Log(Box::new(row))], ()));
            }
            traces => traces?,
        };
        let traces = [a.source(), b.source()];
        let options = DiffOptions { overlap_only: overlap_only || self.diff.overlap_only, ..self.diff.clone() };
        let found = diff(traces[0], traces[1], &options)?;
        let command = (self.command)(&about.log);
        Ok((compared_rows((about, &command), traces, &found, overlap_only).map_err(DiffError::Unread)?, ()))
    }
}
