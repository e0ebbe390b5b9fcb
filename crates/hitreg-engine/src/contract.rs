//! Tests whether a build keeps the contract of builds (docs/builds.md): it runs the build on a log, on damaged and cut
//! logs, and with arguments that it does not know.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::build::{Build, BuildRequest, OneSidedLog, ProcessEnd, UntestableBuild};
use crate::comparison::first_place;
use crate::verify::{
    BodyRows, RecordComparison, RecordDifference, before_gap, body_trace, shot_trace, shows_no_simulation,
};
use crate::{BuildOutcome, Engine, EngineError, LogFile};
use hitreg_analysis::diff::{DiffOptions, TraceVerdict, diff};
use hitreg_log::log::WriterOptions;
use hitreg_log::record::{PlayerRecords, Session, value_of_setting};
use hitreg_log::recorded::hidden_fields;
use hitreg_log::sorted::SortedMap;
use hitreg_log::store::{self, TemporaryFolder};
use hitreg_log::trace::schema::{NO_HASH, is_bodies, shots, ticks};
use hitreg_log::trace::{Digest, RECORD, Table, Trace};
use hitreg_log::units::Tick;
use hitreg_netcode::replay::{ReplayFindings, compare_hashes};
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

/// The result of a test, and what the build did.
type PointFinding = (PointResult, String);

fn kept(what: impl Into<String>) -> PointFinding {
    (PointResult::Ok, what.into())
}

fn wrong(what: impl Into<String>) -> PointFinding {
    (PointResult::Wrong, what.into())
}

fn absent(what: impl Into<String>) -> PointFinding {
    (PointResult::Absent, what.into())
}

/// Tests one build on one log.
struct ContractTest<'a> {
    engine: &'a Engine<'a>,
    build: &'a Build,
    log: &'a Path,
    file: LogFile,
    folder: TemporaryFolder,
}

/// Tests a build against the contract, with a log that it should replay. The build never runs from the cache.
///
/// # Errors
/// Fails if the log cannot be read, if the temporary folder cannot be used, or if the job was stopped.
pub fn check_contract(engine: &Engine<'_>, build: &Build, log: &Path) -> Result<Vec<ContractPoint>, EngineError> {
    store::check_regular(log)?;
    let file = engine.read_log(log)?;
    let engine = &engine.uncached();
    let test = ContractTest { engine, build, log, file, folder: store::temporary_folder()? };
    let mut points = Vec::new();
    let mut add = |point, (result, what)| points.push(ContractPoint { point, result, what });
    match test.replay(&[])? {
        Err(UntestableBuild { one_sided: Some(side), .. }) => {
            return Err(EngineError::unsuitable(log, side));
        }
        Err(untestable) => add("replays the log", wrong(untestable.detail())),
        Ok(trace) => {
            let ran = compare_hashes(&test.file.session, &trace);
            if let Some(side) = OneSidedLog::of_replayed(&test.file.session, &ran) {
                return Err(EngineError::unsuitable(log, side));
            }
            let rows: usize = trace.tables.iter().map(Table::rows).sum();
            add("replays the log", kept(format!("{} tables with {rows} rows", trace.tables.len())));
            add("names the log", test.header(&trace));
            add("same output twice", test.repeated(&trace)?);
            add("hashes as recorded", test.ticks(&trace));
            add("bodies as recorded", test.bodies(&trace, &ran)?);
            add("shots as recorded", test.shots(&trace)?);
            add("takes --set", test.setting()?);
            if let Some(finding) = test.part(&trace)? {
                add("begins within a session", finding);
            }
            add("needs only its input", test.without_optional_records()?);
            add("optional commands", test.capabilities(&trace)?);
        }
    }
    add("refuses another game", test.other_game()?);
    add("refuses a damaged log", test.damaged()?);
    let ended = test.run_to_end("hitreg-check", log, &[])?;
    add("unknown command", refusal("a command that it does not know", ended));
    let ended = test.run_to_end("replay", log, &["--set", NO_SETTING])?;
    add("unknown setting", refusal("a setting that no session has", ended));
    Ok(points)
}

impl ContractTest<'_> {
    fn trace(&self, log: &Path, log_digest: Digest, options: &[String]) -> BuildOutcome<Trace> {
        let request = BuildRequest { options, ..BuildRequest::of(log, log_digest, &self.file.session) };
        self.engine.check_outcome(self.log, self.engine.runner.trace(self.build, &request))
    }

    fn replay(&self, options: &[String]) -> BuildOutcome<Trace> {
        self.trace(self.log, self.file.digest, options)
    }

    /// Replays a changed session. Returns the trace, or why there is none.
    fn replay_changed(&self, session: &Session) -> BuildOutcome<Trace> {
        let target = self.folder.file("changed.hitlog");
        store::save_log(&target, session, WriterOptions::whole())?;
        // The changed log is temporary, so nothing is noted about it.
        let digest = self.engine.quiet().read_log(target.path())?.digest;
        self.trace(target.path(), digest, &[])
    }

    fn header(&self, trace: &Trace) -> PointFinding {
        let (game, recorded) = (&trace.header.game, &self.file.session.header.game);
        match &*trace.header.log_digest {
            _ if game != recorded => wrong(format!("the trace is of `{game}`, the log of `{recorded}`")),
            "" => absent("the trace names no log in `log_digest`, so a mix-up stays unnoticed"),
            named if named != self.file.digest.to_string() => wrong("the trace names another log"),
            _ => kept("the trace names the game and the log"),
        }
    }

    fn repeated(&self, first: &Trace) -> Result<PointFinding, EngineError> {
        Ok(match self.replay(&[])? {
            Err(untestable) => wrong(format!("only the first time: {}", untestable.detail())),
            Ok(second) if second.digest() == first.digest() => kept("two runs write equal tables"),
            Ok(second) => {
                let found = diff(first, &second, &DiffOptions::default())?;
                let place = found.first.as_ref().map(|first| first_place(Some(first)));
                let place = place.unwrap_or_else(|| first_unlike_table(first, &second));
                wrong(format!("two runs differ, first in {place}"))
            }
        })
    }

    fn ticks(&self, trace: &Trace) -> PointFinding {
        let recorded = &self.file.session.ticks;
        let hashed: Vec<(Tick, u64)> = recorded.iter().filter_map(|tick| Some((tick.tick, tick.hash?))).collect();
        let Some(rows) = trace.table(ticks::NAME).map(ticks::Columns::read) else {
            return absent("the trace has no table `ticks`: `verify` needs its hashes");
        };
        if rows.tick.len() < recorded.len() {
            return wrong(format!("the trace has {} of {} ticks", rows.tick.len(), recorded.len()));
        }
        if hashed.is_empty() {
            return absent("the log records no state hashes");
        }
        if rows.hash.is_empty() {
            return absent("the trace has no state hashes");
        }
        let replayed: SortedMap<u32, u64> = rows.tick.iter().copied().zip(rows.hash.iter().copied()).collect();
        match hashed.iter().find(|(tick, hash)| replayed.get(&tick.0) != Some(hash)) {
            Some((tick, _)) if replayed.get(&tick.0).is_none_or(|hash| *hash == NO_HASH) => {
                wrong(format!("the trace has no hash of tick {tick}, and the log has one"))
            }
            Some((tick, _)) => wrong(format!("the hash of tick {tick} is not the recorded one")),
            None => kept(format!("all {} recorded hashes", hashed.len())),
        }
    }

    fn bodies(&self, trace: &Trace, ran: &ReplayFindings) -> Result<PointFinding, EngineError> {
        let session = &*before_gap(&self.file.session);
        let recorded = body_trace(session, &trace.header);
        let is_empty = |trace: &Trace| trace.tables.iter().all(|table| !is_bodies(&table.name) || table.rows() == 0);
        match (is_empty(&recorded), is_empty(trace)) {
            (true, _) => return Ok(absent("the log records no bodies")),
            (_, true) if shows_no_simulation(session, trace, ran) => {
                return Ok(wrong("the trace has no bodies, no other results and no two state hashes"));
            }
            (_, true) => return Ok(absent("the trace has no bodies: `diff` names a tick, but no field")),
            (false, false) => {}
        }
        let (rows, compared) = (BodyRows::of(session, trace), RecordComparison::of(&recorded, trace)?);
        if let Some(first) = RecordDifference::earliest(compared.first.into_iter().chain(rows.first)) {
            return Ok(wrong(format!("not as recorded {first}")));
        }
        if !rows.absent.is_empty() {
            return Ok(absent(format!("the trace has no bodies of the class {}", rows.absent.join(", "))));
        }
        if compared.bodies == 0 {
            return Ok(absent("the log records bodies only in ticks that the trace does not have"));
        }
        let hidden = hidden_fields(session);
        let fields: Vec<&str> = hidden.iter().map(String::as_str).collect();
        Ok(kept(match fields.is_empty() {
            true => "all recorded bodies".to_owned(),
            false => {
                let why = "not compared, because viewers received different values";
                format!("all recorded bodies; {}: {why}", fields.join(", "))
            }
        }))
    }

    fn shots(&self, trace: &Trace) -> Result<PointFinding, EngineError> {
        let recorded = shot_trace(&before_gap(&self.file.session), &trace.header);
        let Some(rows) = recorded.tables.first().map(Table::rows) else {
            return Ok(absent("the log records no judged shots"));
        };
        if trace.table(shots::NAME).is_none_or(|table| table.rows() == 0) {
            return Ok(absent("the trace has no shots: `diff` shows no changed hits"));
        }
        Ok(match RecordComparison::of(&recorded, trace)?.first {
            None => kept(format!("no result differs from the {rows} recorded ones")),
            Some(place) => wrong(format!("not as recorded {place}")),
        })
    }

    fn setting(&self) -> Result<PointFinding, EngineError> {
        // hitreg itself knows the other settings, such as the tick rate, and a build may only copy them.
        let settings = || self.file.session.header.settings.iter().filter(|(key, _)| !key.starts_with("recorder."));
        let (own, known): (Vec<_>, Vec<_>) = settings().partition(|(key, _)| !Settings::is_known(key));
        let others = |(key, value): &(String, String)| {
            Some((key.clone(), other_values(key, value))).filter(|of| !of.1.is_empty())
        };
        let Some((key, values)) = own.into_iter().chain(known).find_map(others) else {
            return Ok(absent("the log records no number and no flag as a setting"));
        };
        for value in &values {
            let Ok(trace) = self.replay(&["--set".to_owned(), format!("{key}={value}")])? else { continue };
            let found = value_of_setting(&trace.header.settings, &key);
            return Ok(match found {
                Some(found) if found == value => kept(format!("--set {key}={value}")),
                Some(found) => wrong(format!("ignores --set {key}={value}: the trace has {found}")),
                None => wrong(format!("--set {key}={value}: the trace does not show the setting")),
            });
        }
        Ok(absent(format!("--set {key}={} is refused: settings cannot be compared", values.join(" and "))))
    }

    /// Tests the second half of the session, as a flight recorder or `shrink` writes it. `None` without ticks.
    fn part(&self, whole: &Trace) -> Result<Option<PointFinding>, EngineError> {
        let session = &self.file.session;
        let (Some(middle), Some(last)) = (session.ticks.get(session.ticks.len() / 2), session.ticks.last()) else {
            return Ok(None);
        };
        let mut part = session.part(middle.tick, last.tick);
        part.ticks.iter_mut().for_each(|tick| tick.hash = None);
        Ok(Some(match self.replay_changed(&part)? {
            Err(untestable) => absent(format!("a log that begins within a session: {}", untestable.detail())),
            Ok(trace) => match late_difference(whole, &trace, middle.tick)? {
                None => kept(format!("begins after tick {} as the whole session goes on", middle.tick)),
                Some(place) => absent(format!(
                    "begun after tick {}, it is not as the whole session in {place}: `shrink` cannot cut the beginning",
                    middle.tick
                )),
            },
        }))
    }

    fn without_optional_records(&self) -> Result<PointFinding, EngineError> {
        let mut few = self.file.session.clone();
        few.unknown.clear();
        few.damage.clear();
        for player in &mut few.players {
            let PlayerRecords { frames, executed, presence, .. } = std::mem::take(player);
            *player = PlayerRecords { frames, executed, presence, ..PlayerRecords::default() };
        }
        Ok(match self.replay_changed(&few)? {
            Ok(_) => kept("a log without packets, snapshots, shots and rows of its own"),
            Err(untestable) if untestable.is_refusal => {
                absent(format!("needs packets, snapshots, shots or rows of its own: {}", untestable.detail()))
            }
            Err(untestable) => wrong(untestable.detail()),
        })
    }

    fn capabilities(&self, trace: &Trace) -> Result<PointFinding, EngineError> {
        let declared = &trace.header.capabilities;
        if declared.is_empty() {
            return Ok(absent("none declared: hitreg calls only `replay`"));
        }
        if trace.header.can(RECORD) {
            let target = self.folder.file("recorded.hitlog");
            let request = BuildRequest::of(self.log, self.file.digest, &self.file.session);
            let recorded = self.engine.runner.rerecord(self.build, &request, target.path());
            if let Err(untestable) = self.engine.check_outcome(self.log, recorded)? {
                return Ok(wrong(format!("declares `record`, but: {}", untestable.detail())));
            }
        }
        Ok(kept(declared.join(", ")))
    }

    fn other_game(&self) -> Result<PointFinding, EngineError> {
        let mut other = self.file.session.clone();
        other.header.game.push_str("-other");
        let target = self.folder.file("other.hitlog");
        store::save_log(&target, &other, WriterOptions::whole())?;
        Ok(refusal("a log of another game", self.run_to_end("replay", target.path(), &[])?))
    }

    fn damaged(&self) -> Result<PointFinding, EngineError> {
        let (half, mut bytes) = (store::size_bytes(self.log)? / 2, Vec::new());
        let read = store::open(self.log)?.take(half).read_to_end(&mut bytes);
        read.map_err(|source| EngineError::unsuitable(self.log, source))?;
        let target = self.folder.file("cut.hitlog");
        store::save_bytes(&target, &bytes)?;
        Ok(match self.run_to_end("replay", target.path(), &[])? {
            Ok(ProcessEnd::Exit(0)) => wrong("replays half a file as if it were whole"),
            Ok(ProcessEnd::Exit(code)) => kept(format!("half a file gives exit code {code}")),
            Ok(other) => wrong(format!("half a file: {}", ended_as(&other))),
            Err(untestable) => wrong(untestable.detail()),
        })
    }

    /// Runs a command of the build with a log, and returns how it ended.
    fn run_to_end(&self, command: &str, log: &Path, options: &[&str]) -> BuildOutcome<ProcessEnd> {
        let limit = self.engine.runner.time_limit.min(ANSWER_LIMIT);
        let spare = self.folder.file("spare.hittrace");
        let args = [command.as_ref(), log.as_os_str(), "-o".as_ref(), spare.path().as_os_str()];
        let args: Vec<&OsStr> = args.into_iter().chain(options.iter().map(OsStr::new)).collect();
        self.engine.check_outcome(self.log, self.engine.runner.run_to_end(self.build, &args, limit))
    }
}

/// Returns other values than the recorded one to try for a setting: of a flag or a number. A build that knows the setting
/// takes at least one of them.
fn other_values(key: &str, recorded: &str) -> Vec<String> {
    let all = match (recorded, recorded.parse::<f64>()) {
        ("true", _) => vec!["false".to_owned()],
        ("false", _) => vec!["true".to_owned()],
        (_, Ok(number)) => [number + 1.0, number - 1.0, number / 2.0].map(|other| other.to_string()).to_vec(),
        _ => Vec::new(),
    };
    let is_taken = |value: &String| !Settings::is_known(key) || Settings::default().set(key, value).is_ok();
    all.into_iter().filter(|value| value != recorded && is_taken(value)).collect()
}

/// Whether a build refused what it was given.
fn refusal(given: &str, ended: Result<ProcessEnd, UntestableBuild>) -> PointFinding {
    match ended {
        // hitreg's own builds take wrong usage for trouble.
        Ok(ProcessEnd::Exit(code @ (125 | 128))) => kept(format!("exit code {code}")),
        Ok(ProcessEnd::Exit(code)) => wrong(format!("{given} gives exit code {code}, and should give 125")),
        Err(untestable) => wrong(untestable.detail()),
        Ok(other) => wrong(format!("{given} should give exit code 125: {}", ended_as(&other))),
    }
}

/// The first table with another digest, in traces without a row that differs.
fn first_unlike_table(a: &Trace, b: &Trace) -> String {
    let [of_a, of_b] = [a, b].map(|trace| trace.tables.iter().map(|table| &table.name));
    let digest = |trace: &Trace, name: &str| trace.table(name).map(Table::digest);
    let unlike = of_a.chain(of_b).find(|name| digest(a, name) != digest(b, name));
    match unlike {
        Some(name) if a.table(name).is_none() || b.table(name).is_none() => format!("`{name}`, which one lacks"),
        Some(name) => format!("the order of the rows of `{name}`"),
        None => "the order of the tables".to_owned(),
    }
}

/// Where the states after a tick are first not those of the whole session's replay: the field of a body, or the hash.
fn late_difference(whole: &Trace, part: &Trace, after: Tick) -> Result<Option<String>, EngineError> {
    let later = |table: &Table| {
        let ticks = (0..).zip(table.u32s("tick"));
        table.select(&ticks.filter(|(_, tick)| **tick > after.0).map(|(row, _)| row).collect::<Vec<u32>>())
    };
    let differs = |is_wanted: fn(&Table) -> bool| -> Result<Option<String>, EngineError> {
        let [whole, part] = [whole, part].map(|trace| {
            let tables = trace.tables.iter().filter(|table| is_wanted(table)).map(later).collect();
            Trace { header: trace.header.clone(), tables }
        });
        let found = diff(&whole, &part, &DiffOptions { overlap_only: true, ..DiffOptions::default() })?;
        Ok((found.verdict == TraceVerdict::Differs).then(|| first_place(found.first.as_ref())))
    };
    // A field says more than a hash.
    match differs(|table| is_bodies(&table.name))? {
        Some(place) => Ok(Some(place)),
        None => differs(|table| table.name == ticks::NAME),
    }
}

fn ended_as(ended: &ProcessEnd) -> String {
    crate::build::why_untestable(ended, crate::build::TIME_LIMIT_OPTION).unwrap_or_default()
}
