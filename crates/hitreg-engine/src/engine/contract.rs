//! Tests whether a build keeps the contract of builds (docs/builds.md): it runs the build on a log, on damaged and cut
//! logs, and with arguments that it does not know.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::{Engine, EngineError, check};
use crate::build::{Build, BuildRequest, BuildRunner, ProcessEnd, UntestableBuild};
use hitreg_analysis::diff::{DiffOptions, TraceVerdict, diff};
use hitreg_log::log::WriterOptions;
use hitreg_log::record::{PlayerRecords, Session};
use hitreg_log::recorded::all_records;
use hitreg_log::store::{self, TemporaryFolder};
use hitreg_log::trace::schema::{NO_HASH, bodies, ticks};
use hitreg_log::trace::{Digest, RECORD, Table, Trace};
use hitreg_log::units::Tick;
use hitreg_netcode::settings::Settings;

/// The most time for an answer to arguments that a build does not know.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A setting that no session has.
const NO_SETTING: &str = "hitreg_check.none=1";

/// One point of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContractPoint {
    /// What was tested.
    pub point: &'static str,
    /// The result.
    pub result: PointResult,
    /// What the build did, and what to change.
    pub what: String,
}

/// How a build does on one point of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointResult {
    /// It keeps the contract.
    Ok,
    /// It breaks the contract.
    Wrong,
    /// It lacks something optional, which some commands need.
    Absent,
}

/// Runs the tests of one build on one log.
struct ContractTest<'a> {
    engine: &'a Engine<'a>,
    runner: &'a BuildRunner,
    build: &'a Build,
    folder: TemporaryFolder,
    points: Vec<ContractPoint>,
}

/// Tests a build against the contract, with a log that it should replay. The build never runs from the cache.
///
/// # Errors
/// Fails if the log cannot be read, if the temporary folder cannot be used, or if the job was stopped.
pub fn check_contract(
    engine: &Engine<'_>,
    build: &Build,
    runner: &BuildRunner,
    log: &Path,
) -> Result<Vec<ContractPoint>, EngineError> {
    let file = engine.read_log(log)?;
    let runner = BuildRunner { cache: None, ..runner.clone() };
    let folder = store::temporary_folder()?;
    let mut test = ContractTest { engine, runner: &runner, build, folder, points: Vec::new() };
    let trace = test.replay("replays the log", log, file.digest)?;
    if let Some(trace) = trace {
        test.header(&file.session, &trace, file.digest);
        test.repeated(log, file.digest, &trace)?;
        test.ticks(&file.session, &trace);
        test.bodies(&file.session, &trace)?;
        test.setting(log, file.digest, &file.session)?;
        test.part(&file.session, &trace)?;
        test.without_optional_records(&file.session)?;
        test.capabilities(log, file.digest, &trace)?;
    }
    test.other_game(&file.session)?;
    test.damaged(log)?;
    test.unknown_command(log)?;
    test.unknown_setting(log)?;
    check(&runner.stop)?;
    Ok(test.points)
}

impl ContractTest<'_> {
    fn add(&mut self, point: &'static str, result: PointResult, what: impl Into<String>) {
        self.points.push(ContractPoint { point, result, what: what.into() });
    }

    fn trace(&self, log: &Path, log_digest: Digest, options: &[String]) -> Result<Trace, UntestableBuild> {
        self.runner.trace(self.build, &BuildRequest { log, log_digest, options })
    }

    /// Replays a changed session. Returns the trace, or why there is none.
    fn changed(&self, session: &Session) -> Result<Result<Trace, UntestableBuild>, EngineError> {
        let target = self.folder.file("changed.hitlog");
        store::save_log(&target, session, WriterOptions::whole())?;
        let digest = self.engine.read_log(target.path())?.digest;
        let trace = self.trace(target.path(), digest, &[]);
        check(&self.runner.stop)?;
        Ok(trace)
    }

    fn replay(&mut self, point: &'static str, log: &Path, digest: Digest) -> Result<Option<Trace>, EngineError> {
        let made = EngineError::check_memory(log, self.trace(log, digest, &[]))?;
        check(&self.runner.stop)?;
        Ok(match made {
            Ok(trace) => {
                let rows: usize = trace.tables.iter().map(hitreg_log::trace::Table::rows).sum();
                self.add(point, PointResult::Ok, format!("{} tables with {rows} rows", trace.tables.len()));
                Some(trace)
            }
            Err(untestable) => {
                self.add(point, PointResult::Wrong, said(&untestable));
                None
            }
        })
    }

    fn header(&mut self, session: &Session, trace: &Trace, digest: Digest) {
        let (game, recorded) = (&trace.header.game, &session.header.game);
        let (result, what) = match &*trace.header.log_digest {
            _ if game != recorded => (PointResult::Wrong, format!("the trace is of `{game}`, the log of `{recorded}`")),
            "" => {
                (PointResult::Absent, "the trace names no log in `log_digest`, so a mix-up stays unnoticed".to_owned())
            }
            named if named != digest.to_string() => (PointResult::Wrong, "the trace names another log".to_owned()),
            _ => (PointResult::Ok, "the trace names the game and the log".to_owned()),
        };
        self.add("names the log", result, what);
    }

    fn repeated(&mut self, log: &Path, digest: Digest, first: &Trace) -> Result<(), EngineError> {
        let second = self.trace(log, digest, &[]);
        check(&self.runner.stop)?;
        let (result, what) = match second {
            Err(untestable) => (PointResult::Wrong, format!("only the first time: {}", said(&untestable))),
            Ok(second) if second.digest() == first.digest() => {
                (PointResult::Ok, "two runs write equal tables".to_owned())
            }
            Ok(second) => {
                let place = difference(first, &second)?.unwrap_or("the number of tables".to_owned());
                (PointResult::Wrong, format!("two runs differ, first in {place}"))
            }
        };
        self.add("same output twice", result, what);
        Ok(())
    }

    fn ticks(&mut self, session: &Session, trace: &Trace) {
        let rows = trace.tables.iter().find(|table| table.name == ticks::NAME);
        let rows = rows.map(ticks::Columns::read);
        let hashed = session.ticks.iter().filter_map(|tick| Some((tick.tick, tick.hash?)));
        let hashed: Vec<(Tick, u64)> = hashed.collect();
        let (result, what) = match rows {
            None => (PointResult::Absent, "the trace has no table `ticks`: `verify` needs its hashes".to_owned()),
            Some(rows) if rows.tick.len() < session.ticks.len() => {
                let [has, of] = [rows.tick.len(), session.ticks.len()];
                (PointResult::Wrong, format!("the trace has {has} of {of} ticks"))
            }
            Some(_) if hashed.is_empty() => (PointResult::Absent, "the log records no state hashes".to_owned()),
            Some(rows) if rows.hash.is_empty() => (PointResult::Absent, "the trace has no state hashes".to_owned()),
            Some(rows) => {
                let replayed: hitreg_log::sorted::SortedMap<u32, u64> =
                    rows.tick.iter().copied().zip(rows.hash.iter().copied()).collect();
                let differs = hashed.iter().find(|(tick, hash)| replayed.get(&tick.0) != Some(hash));
                match differs {
                    Some((tick, _)) if replayed.get(&tick.0).is_none_or(|hash| *hash == NO_HASH) => {
                        (PointResult::Wrong, format!("the trace has no hash of tick {tick}, and the log has one"))
                    }
                    Some((tick, _)) => (PointResult::Wrong, format!("the hash of tick {tick} is not the recorded one")),
                    None => (PointResult::Ok, format!("all {} recorded hashes", hashed.len())),
                }
            }
        };
        self.add("hashes as recorded", result, what);
    }

    fn bodies(&mut self, session: &Session, trace: &Trace) -> Result<(), EngineError> {
        let recorded = all_records(session);
        let of = |trace: &Trace| Trace {
            header: trace.header.clone(),
            tables: trace.tables.iter().filter(|table| table.name.starts_with(bodies::NAME)).cloned().collect(),
        };
        let (recorded, replayed) = (of(&recorded), of(trace));
        let is_empty = |trace: &Trace| trace.tables.iter().all(|table| table.rows() == 0);
        let (result, what) = match (is_empty(&recorded), is_empty(&replayed)) {
            (true, _) => (PointResult::Absent, "the log records no bodies".to_owned()),
            (_, true) => (PointResult::Absent, "the trace has no bodies: `diff` names a tick, but no field".to_owned()),
            (false, false) => match difference(&recorded, &replayed)? {
                None => (PointResult::Ok, "all recorded bodies".to_owned()),
                Some(place) => (PointResult::Wrong, format!("not as recorded, first in {place}")),
            },
        };
        self.add("bodies as recorded", result, what);
        Ok(())
    }

    fn setting(&mut self, log: &Path, digest: Digest, session: &Session) -> Result<(), EngineError> {
        // hitreg itself knows the other settings, such as the tick rate, and a build may only copy them.
        let settings = || session.header.settings.iter().filter(|(key, _)| !key.starts_with("recorder."));
        let own = settings().find(|(key, _)| !Settings::is_known(key));
        let Some((key, value)) = own.or(settings().next()) else {
            self.add("takes --set", PointResult::Absent, "the log records no settings");
            return Ok(());
        };
        let made = self.trace(log, digest, &["--set".to_owned(), format!("{key}={value}")]);
        check(&self.runner.stop)?;
        let (result, what) = match made {
            Ok(trace) if trace.header.settings.iter().any(|(known, _)| known == key) => {
                (PointResult::Ok, format!("--set {key}={value}"))
            }
            Ok(_) => (PointResult::Wrong, format!("the trace does not show the setting {key}")),
            Err(_) => (PointResult::Absent, format!("--set {key}={value} is refused: settings cannot be compared")),
        };
        self.add("takes --set", result, what);
        Ok(())
    }

    /// The second half of the session, as a flight recorder or `shrink` writes it.
    fn part(&mut self, session: &Session, whole: &Trace) -> Result<(), EngineError> {
        let (Some(middle), Some(last)) = (session.ticks.get(session.ticks.len() / 2), session.ticks.last()) else {
            return Ok(());
        };
        let mut part = session.part(middle.tick, last.tick);
        part.ticks.iter_mut().for_each(|tick| tick.hash = None);
        let (result, what) = match self.changed(&part)? {
            Err(untestable) => {
                (PointResult::Absent, format!("a log that begins within a session: {}", said(&untestable)))
            }
            Ok(trace) => match late_difference(whole, &trace, middle.tick)? {
                None => (PointResult::Ok, format!("begins after tick {} as the whole session goes on", middle.tick)),
                Some(place) => {
                    let what = format!("begun after tick {}, it is not as the whole session in {place}", middle.tick);
                    (PointResult::Absent, format!("{what}: `shrink` cannot cut the beginning"))
                }
            },
        };
        self.add("begins within a session", result, what);
        Ok(())
    }

    fn without_optional_records(&mut self, session: &Session) -> Result<(), EngineError> {
        let mut few = session.clone();
        few.unknown.clear();
        few.damage.clear();
        for player in &mut few.players {
            let PlayerRecords { frames, executed, presence, .. } = std::mem::take(player);
            *player = PlayerRecords { frames, executed, presence, ..PlayerRecords::default() };
        }
        let (result, what) = match self.changed(&few)? {
            Ok(_) => (PointResult::Ok, "a log without packets, snapshots, shots and rows of its own".to_owned()),
            Err(untestable) if untestable.is_refusal => {
                let what = format!("needs packets, snapshots, shots or rows of its own: {}", said(&untestable));
                (PointResult::Absent, what)
            }
            Err(untestable) => (PointResult::Wrong, said(&untestable)),
        };
        self.add("needs only its input", result, what);
        Ok(())
    }

    fn capabilities(&mut self, log: &Path, log_digest: Digest, trace: &Trace) -> Result<(), EngineError> {
        let declared = &trace.header.capabilities;
        if declared.is_empty() {
            self.add("optional commands", PointResult::Absent, "none declared: hitreg calls only `replay`");
            return Ok(());
        }
        let mut outcome = (PointResult::Ok, declared.join(", "));
        if trace.header.can(RECORD) {
            let target = self.folder.file("recorded.hitlog");
            let request = BuildRequest { log, log_digest, options: &[] };
            if let Err(untestable) = self.runner.rerecord(self.build, &request, target.path()) {
                outcome = (PointResult::Wrong, format!("declares `record`, but: {}", said(&untestable)));
            }
        }
        check(&self.runner.stop)?;
        self.add("optional commands", outcome.0, outcome.1);
        Ok(())
    }

    fn other_game(&mut self, session: &Session) -> Result<(), EngineError> {
        let mut other = session.clone();
        other.header.game = format!("{}-other", session.header.game);
        let target = self.folder.file("other.hitlog");
        store::save_log(&target, &other, WriterOptions::whole())?;
        let ended = self.replay_ended(target.path())?;
        self.expect_refusal("refuses another game", "a log of another game", &ended);
        Ok(())
    }

    fn damaged(&mut self, log: &Path) -> Result<(), EngineError> {
        let (half, mut bytes) = (store::size_bytes(log)? / 2, Vec::new());
        let read = store::open(log)?.take(half).read_to_end(&mut bytes);
        read.map_err(|source| EngineError::unsuitable(log, source))?;
        let target = self.folder.file("cut.hitlog");
        store::save_bytes(&target, &bytes)?;
        let (result, what) = match self.replay_ended(target.path())? {
            ProcessEnd::Exit(0) => (PointResult::Wrong, "replays half a file as if it were whole".to_owned()),
            ProcessEnd::Exit(code) => (PointResult::Ok, format!("half a file gives exit code {code}")),
            other => (PointResult::Wrong, format!("half a file: {}", ended_as(&other))),
        };
        self.add("refuses a damaged log", result, what);
        Ok(())
    }

    fn unknown_command(&mut self, log: &Path) -> Result<(), EngineError> {
        let ended =
            self.ended(&[OsStr::new("hitreg-check"), log.as_os_str(), OsStr::new("-o"), self.spare().as_os_str()])?;
        self.expect_refusal("unknown command", "a command that it does not know", &ended);
        Ok(())
    }

    fn unknown_setting(&mut self, log: &Path) -> Result<(), EngineError> {
        let spare = self.spare();
        let args = [
            "replay".as_ref(),
            log.as_os_str(),
            "-o".as_ref(),
            spare.as_os_str(),
            "--set".as_ref(),
            NO_SETTING.as_ref(),
        ];
        let ended = self.ended(&args)?;
        self.expect_refusal("unknown setting", "a setting that no session has", &ended);
        Ok(())
    }

    fn expect_refusal(&mut self, point: &'static str, given: &str, ended: &ProcessEnd) {
        let (result, what) = match ended {
            ProcessEnd::Exit(125) => (PointResult::Ok, "exit code 125".to_owned()),
            // hitreg's own builds take wrong usage for trouble.
            ProcessEnd::Exit(128) => (PointResult::Ok, "exit code 128".to_owned()),
            ProcessEnd::Exit(code) => {
                (PointResult::Wrong, format!("{given} gives exit code {code}, and should give 125"))
            }
            other => (PointResult::Wrong, format!("{given} should give exit code 125: {}", ended_as(other))),
        };
        self.add(point, result, what);
    }

    /// A file that the build may write.
    fn spare(&self) -> std::path::PathBuf {
        self.folder.file("spare.hittrace").path().to_owned()
    }

    fn replay_ended(&self, log: &Path) -> Result<ProcessEnd, EngineError> {
        self.ended(&["replay".as_ref(), log.as_os_str(), "-o".as_ref(), self.spare().as_os_str()])
    }

    fn ended(&self, args: &[&OsStr]) -> Result<ProcessEnd, EngineError> {
        let limit = self.runner.time_limit.min(ANSWER_LIMIT);
        let ended = self.runner.ended(self.build, args, limit);
        check(&self.runner.stop)?;
        ended.map_err(|source| EngineError::unsuitable(self.build.path(), source))
    }
}

/// Where two traces differ first, in the tables that both have.
fn difference(a: &Trace, b: &Trace) -> Result<Option<String>, EngineError> {
    let found = diff(a, b, &DiffOptions { overlap_only: true, ..DiffOptions::default() })?;
    if found.verdict != TraceVerdict::Differs {
        return Ok(None);
    }
    Ok(Some(found.first.as_ref().map_or("their columns".to_owned(), |first| {
        let tick = first.place.tick.map_or(String::new(), |tick| format!(", tick {tick}"));
        format!("`{}`{tick}, {}", first.table, first.field.as_deref().unwrap_or("a row that one lacks"))
    })))
}

/// Where the states after a tick are first not those of the whole session's replay: the field of a body, or the hash.
fn late_difference(whole: &Trace, part: &Trace, after: Tick) -> Result<Option<String>, EngineError> {
    let is_of_state = |table: &Table| table.name == ticks::NAME || table.name.starts_with(bodies::NAME);
    let later = |trace: &Trace, wanted: &dyn Fn(&Table) -> bool| Trace {
        header: trace.header.clone(),
        tables: trace
            .tables
            .iter()
            .filter(|table| is_of_state(table) && wanted(table))
            .map(|table| {
                let rows: Vec<u32> =
                    (0..).zip(table.u32s("tick")).filter(|(_, tick)| **tick > after.0).map(|row| row.0).collect();
                table.select(&rows)
            })
            .collect(),
    };
    let differs = |wanted: &dyn Fn(&Table) -> bool| difference(&later(whole, wanted), &later(part, wanted));
    // A field says more than a hash.
    let in_bodies = differs(&|table| table.name != ticks::NAME)?;
    Ok(match in_bodies {
        Some(place) => Some(place),
        None => differs(&|table| table.name == ticks::NAME)?,
    })
}

fn said(untestable: &UntestableBuild) -> String {
    match untestable.last_words.last() {
        Some(words) => format!("{} ({words})", untestable.reason),
        None => untestable.reason.clone(),
    }
}

fn ended_as(ended: &ProcessEnd) -> String {
    crate::build::why_untestable(ended).unwrap_or_default()
}
