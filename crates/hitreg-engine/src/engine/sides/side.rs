//! The input file of one side and its trace, in memory or in a file. A single log is compared with its own replay.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::same_session::SessionIdentity;
use super::{MissingSide, ReplaySpec, ReplaySpecs, Traces};
use crate::build::UntestableBuild;
use crate::engine::streamed::{collect_replayed, write_replayed};
use crate::engine::{BuildOutcome, Engine, EngineError, ShownReplay, SurveyedLog};
use hitreg_analysis::bisect::{PredictionTraces, predicted};
use hitreg_analysis::diff::TraceSide;
use hitreg_log::log::{FileKind, TraceLayout};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::{GapRecord, LogContents, Session};
use hitreg_log::recorded::recorded;
use hitreg_log::store::{self, TemporaryFolder, TraceFile};
use hitreg_log::trace::{SessionSource, Table, Trace, TraceHeader, TraceSource};
use hitreg_netcode::replay::{Part, foreign_trace_memory};

/// The input file of one side.
pub(in crate::engine) struct ComparisonSource<'a> {
    pub(super) path: &'a Path,
    pub(super) holds: ComparisonInput,
}

/// What an input file is.
pub(super) enum ComparisonInput {
    Trace(Box<TraceFile>),
    Log(Box<SurveyedLog>),
}

impl<'a> ComparisonSource<'a> {
    /// Surveys a log, or indexes a trace.
    pub(in crate::engine) fn of(engine: &Engine<'_>, path: &'a Path) -> Result<ComparisonSource<'a>, EngineError> {
        let holds = match store::kind_of(path)? {
            FileKind::Trace => ComparisonInput::Trace(Box::new(TraceFile::open(path)?)),
            // The log reader gives the best error message for a file of neither kind.
            FileKind::Log | FileKind::Other => ComparisonInput::Log(Box::new(engine.survey(path)?)),
        };
        Ok(ComparisonSource { path, holds })
    }

    /// The part of the session that a trace covers; `None` for a log or the trace of a whole session.
    pub(super) fn part(&self) -> Option<Part> {
        let ComparisonInput::Trace(trace) = &self.holds else { return None };
        trace.header().part.map(|[from, to]| Part { from, to })
    }

    /// What the file says about the session that it was made from.
    pub(super) fn recorded(&self) -> SessionIdentity {
        match &self.holds {
            ComparisonInput::Trace(trace) => {
                let TraceHeader { game, log_digest, session, .. } = trace.header().clone();
                SessionIdentity { game, log_digest, session }
            }
            ComparisonInput::Log(log) => SessionIdentity {
                game: log.header.game.clone(),
                log_digest: log.digest.map_or(String::new(), |digest| digest.to_string()),
                session: Some(SessionSource::of(&log.header)),
            },
        }
    }

    /// The first missing part of a log, with its path.
    pub(super) fn gap(&self) -> Option<(PathBuf, GapRecord)> {
        let gap = self.log()?.survey.first_hole()?;
        Some((self.path.to_owned(), *gap))
    }

    /// The log; `None` for a trace.
    pub(in crate::engine) fn log(&self) -> Option<&SurveyedLog> {
        match &self.holds {
            ComparisonInput::Trace(_) => None,
            ComparisonInput::Log(log) => Some(log),
        }
    }
}

/// The memory that comparing two traces takes, as a multiple of their size.
const COMPARED: usize = 2;

/// The trace of one side.
#[derive(Debug)]
pub enum SideTrace {
    /// A trace in memory.
    Memory(Trace),
    /// A trace in a file. Dropping the folder deletes the file.
    File(TraceFile, Option<TemporaryFolder>),
}

impl SideTrace {
    /// The rows of the trace.
    pub fn source(&self) -> &dyn TraceSource {
        match self {
            SideTrace::Memory(trace) => trace,
            SideTrace::File(trace, _) => trace,
        }
    }

    /// Loads the whole trace into memory.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn trace(&self, memory: MemoryLimit) -> Result<Cow<'_, Trace>, EngineError> {
        Ok(match self {
            SideTrace::Memory(trace) => Cow::Borrowed(trace),
            SideTrace::File(trace, _) => Cow::Owned(store::read_trace_within(memory, trace.path())?),
        })
    }
}

impl SurveyedLog {
    /// Keeps the rows of a replay of the log, or of a part, that `attempt` makes, as [`collect_replayed`] runs it: of a
    /// short log or part in memory, of a long one in a temporary file.
    ///
    /// # Errors
    /// Fails if the trace cannot be written, and as `attempt` does.
    pub(in crate::engine) fn keep_replayed<T>(
        &self,
        part: Option<Part>,
        attempt: impl FnMut(bool, &mut dyn FnMut(&TraceHeader, Table)) -> Result<Option<T>, EngineError>,
    ) -> Result<SideTrace, EngineError> {
        if self.is_short() || part.is_some_and(|part| self.is_short_part(part)) {
            return Ok(SideTrace::Memory(collect_replayed(attempt)?));
        }
        let folder = store::temporary_folder()?;
        let target = folder.file("replayed.hittrace");
        write_replayed(&target, TraceLayout::Raw, attempt)?;
        Ok(SideTrace::File(TraceFile::open(target.path())?, Some(folder)))
    }
}

impl ReplaySpecs {
    /// An estimate by counts of the memory of both sides' traces while they are compared, in bytes.
    pub(crate) fn compared_bytes(&self, engine: &Engine<'_>, session: &Session) -> Result<usize, EngineError> {
        let [a, b] = [&self.a, &self.b].map(|spec| spec.trace_bytes_of(engine, session));
        Ok(a?.saturating_add(b?).saturating_mul(COMPARED))
    }
}

impl ReplaySpec {
    pub(super) fn trace_bytes_of(&self, engine: &Engine<'_>, session: &Session) -> Result<usize, EngineError> {
        if self.build.is_some() {
            return Ok(foreign_trace_memory(session));
        }
        let options = self.replay_options(engine, &session.header)?;
        // The replay itself reports what is wrong with the log.
        let game = engine.games.of(session).ok();
        Ok(game.and_then(|game| game.trace_memory(session, &options).ok()).unwrap_or_default())
    }

    /// Replays a log. The trace of a short one stays in memory, that of a long one goes into a temporary file.
    /// `for_page` also judges the shots under other rules.
    pub(super) fn replayed(&self, engine: &Engine<'_>, log: &SurveyedLog, for_page: bool) -> BuildOutcome<ShownReplay> {
        let options = self.replay_options(engine, &log.header)?;
        let game = match engine.games.of_header(&log.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(UntestableBuild::because_of(unknown))),
        };
        let replayed = match for_page {
            true => log.replayed_and_rejudged(game, &options, |rows| rows, &mut |_| {}),
            false => log
                .keep_replayed(options.part, |encoded, put| {
                    log.attempt(game, (&options, encoded), &mut |_| {}, put, &mut |_| {})
                })
                .map(ShownReplay::from),
        };
        match replayed {
            Ok(replayed) => Ok(Ok(replayed)),
            Err(EngineError::Replay { source, .. }) => Ok(Err(UntestableBuild::not_replayed(&source))),
            Err(error) => Err(error),
        }
    }
}

/// Compares a log with its replay. A server's log is compared by its states, a client's log by the server's acks.
pub(super) fn against_itself(engine: &Engine<'_>, source: &ComparisonSource<'_>) -> Result<Traces, EngineError> {
    let Some(log) = source.log() else {
        let what = "a single trace has nothing to compare with: name a second trace";
        return Err(EngineError::Request(what.to_owned()));
    };
    let (path, plain) = (source.path, ReplaySpec::default());
    let of_build = plain.name(source);
    if let Some(hole) = log.survey.first_hole() {
        return Err(MissingSide::incomplete(path, hole).into());
    }
    // What the log says takes about as much as the log.
    let replayed = log.survey.trace_bytes(plain.tables);
    let needed = log.session_bytes.saturating_mul(2).saturating_add(replayed);
    let needs = |source| EngineError::NeedsMemory { path: path.to_owned(), source };
    engine.games.memory().check(needed).map_err(needs)?;
    if log.header.holds() == LogContents::Clients {
        let replayed = plain.trace(engine, source, (TraceSide::B, false))?.trace;
        let made = predicted(&*replayed.trace(engine.games.memory())?);
        let names = [format!("{}, the server's states", path.display()), format!("{of_build}: {}", tally(&made))];
        let made = [made.said, made.predicted].map(SideTrace::Memory);
        return Ok(Traces::of_recorded(names, made));
    }
    let no_states = |source| EngineError::unsuitable(path, source);
    let says = recorded(&log.session()?).map_err(no_states)?;
    let names = [format!("{}, as recorded", path.display()), of_build];
    let replayed = plain.trace(engine, source, (TraceSide::B, false))?.trace;
    Ok(Traces::of_recorded(names, [SideTrace::Memory(says), replayed]))
}

fn tally(made: &PredictionTraces) -> String {
    let PredictionTraces { checked, misses, .. } = made;
    match made.misses - made.explained {
        _ if made.misses == 0 => format!("{checked} acks, no corrections"),
        0 => format!("{checked} acks, {misses} corrections, each with a cause"),
        without => format!("{checked} acks, {misses} corrections, {without} without a cause"),
    }
}
