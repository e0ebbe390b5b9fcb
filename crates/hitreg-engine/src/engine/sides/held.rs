//! The trace of one side, in memory or in a file.

use std::borrow::Cow;
use std::path::Path;

use super::source::{ComparisonInput, ComparisonSource};
use super::{MissingSide, ReplaySpec, ReplaySpecs, Traces};
use crate::build::UntestableBuild;
use crate::engine::log_file::LogFile;
use crate::engine::streamed::{StreamError, SurveyedLog};
use crate::engine::{Engine, EngineError};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::store::{self, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Table, Trace, TraceSource};
use hitreg_netcode::replay::{ReplayOutput, foreign_trace_memory};

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

    /// The memory that the whole trace needs, in bytes.
    fn memory(&self) -> usize {
        match self {
            SideTrace::Memory(trace) => trace.tables.iter().map(Table::row_bytes).fold(0, usize::saturating_add),
            SideTrace::File(trace, _) => trace.memory(),
        }
    }

    /// Loads the whole trace into memory.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn trace(&self) -> Result<Cow<'_, Trace>, EngineError> {
        Ok(match self {
            SideTrace::Memory(trace) => Cow::Borrowed(trace),
            SideTrace::File(trace, _) => Cow::Owned(store::read_trace(trace.path())?),
        })
    }

    fn into_trace(self) -> Result<Trace, EngineError> {
        match self {
            SideTrace::Memory(trace) => Ok(trace),
            SideTrace::File(trace, _) => Ok(store::read_trace(trace.path())?),
        }
    }
}

impl Traces<SideTrace> {
    /// The same with all of it in memory, beside so many bytes.
    ///
    /// # Errors
    /// Fails if both need more memory than the limit, or if a file cannot be read. The memory error names the file
    /// `of`.
    pub(super) fn in_memory(self, of: &Path, beside: usize) -> Result<Traces, EngineError> {
        let Traces { names, made, overlap_only } = self;
        if let Ok(traces) = &made {
            let both = traces.iter().map(SideTrace::memory).fold(0, usize::saturating_add);
            check_memory(of, both.saturating_mul(COMPARED).saturating_add(beside))?;
        }
        let made = match made {
            Ok([a, b]) => Ok([a.into_trace()?, b.into_trace()?]),
            Err(missing) => Err::<_, MissingSide>(missing),
        };
        Ok(Traces { names, made, overlap_only })
    }
}

/// Checks what is about to be done with a log or file against the memory limit.
pub(super) fn check_memory(of: &Path, needed: usize) -> Result<(), EngineError> {
    let needs = |source| EngineError::NeedsMemory { path: of.to_owned(), source };
    MemoryLimit::current().check(needed).map_err(needs)
}

/// Where both sides' traces go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Those of what is long go into files, whose rows are compared as they are read.
    Files,
    /// All of them are compared in memory.
    Memory,
}

impl ReplaySpecs {
    /// Checks an estimate by counts before either side is replayed.
    ///
    /// # Errors
    /// When the memory limit does not suffice for both.
    pub(super) fn check_memory(
        &self,
        engine: &Engine<'_>,
        [a, b]: [&ComparisonSource<'_>; 2],
        goal: Goal,
    ) -> Result<(), EngineError> {
        let held = a.held_bytes().saturating_add(if std::ptr::eq(a, b) { 0 } else { b.held_bytes() });
        let mut traces = 0_usize;
        for (way, source) in [(&self.a, a), (&self.b, b)] {
            traces = traces.saturating_add(way.trace_bytes(engine, source, goal)?);
        }
        let times = if goal == Goal::Memory { COMPARED } else { 1 };
        check_memory(a.path, traces.saturating_mul(times).saturating_add(held))
    }

    /// An estimate by counts of what both sides' traces of a session take while they are compared in memory.
    pub(in crate::engine) fn compared_bytes(
        &self,
        engine: &Engine<'_>,
        session: &Session,
    ) -> Result<usize, EngineError> {
        let [a, b] = [&self.a, &self.b].map(|way| way.trace_bytes_of(engine, session));
        Ok(a?.saturating_add(b?).saturating_mul(COMPARED))
    }
}

impl ReplaySpec {
    /// An estimate of what this side's trace takes in memory; 0 of one that goes into a file.
    fn trace_bytes(
        &self,
        engine: &Engine<'_>,
        source: &ComparisonSource<'_>,
        goal: Goal,
    ) -> Result<usize, EngineError> {
        Ok(match (&source.holds, goal) {
            (ComparisonInput::Trace(trace), _) => {
                trace.tables.iter().map(Table::row_bytes).fold(0, usize::saturating_add)
            }
            (ComparisonInput::Log(log), _) => self.trace_bytes_of(engine, &log.session)?,
            (ComparisonInput::LongTrace(_) | ComparisonInput::LongLog(_), Goal::Files) => 0,
            (ComparisonInput::LongTrace(trace), Goal::Memory) => trace.memory(),
            (ComparisonInput::LongLog(log), Goal::Memory) => log.survey.trace_bytes(self.tables),
        })
    }

    pub(super) fn trace_bytes_of(&self, engine: &Engine<'_>, session: &Session) -> Result<usize, EngineError> {
        if self.build.is_some() {
            return Ok(foreign_trace_memory(session));
        }
        let options = self.replay_options(engine, &session.header)?;
        // Whoever replays it says what is wrong with it.
        let game = engine.games.of(session).ok();
        Ok(game.and_then(|game| game.trace_memory(session, &options).ok()).unwrap_or_default())
    }
    /// Replays a log that is in memory.
    pub(super) fn in_process(
        &self,
        engine: &Engine<'_>,
        log: &LogFile,
    ) -> Result<Result<Trace, UntestableBuild>, EngineError> {
        let options = self.replay_options(engine, &log.session.header)?;
        let game = engine.games.of(&log.session).map_err(UntestableBuild::because_of);
        let replayed = game.and_then(|game| {
            let replayed = game.replay(&log.session, &options, &mut |_| {});
            replayed.map_err(|error| UntestableBuild::not_replayed(&error))
        });
        Ok(replayed.map(|ReplayOutput { mut trace, .. }| {
            trace.header.log_digest = log.digest.to_string();
            trace
        }))
    }

    /// Replays a log while reading it, and writes the trace to a temporary file.
    pub(super) fn in_file(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
    ) -> Result<Result<SideTrace, UntestableBuild>, EngineError> {
        let options = self.replay_options(engine, &log.header)?;
        let game = match engine.games.of_header(&log.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(UntestableBuild::because_of(unknown))),
        };
        let folder = store::temporary_folder()?;
        let target = folder.file("replayed.hittrace");
        match log.replay_into(game, &options, &target) {
            Ok(()) => {}
            Err(StreamError::Read(error)) => return Err(error),
            Err(StreamError::Replay(error)) => return Ok(Err(UntestableBuild::not_replayed(&error))),
        }
        let trace = TraceFile::open(target.path())?;
        Ok(Ok(SideTrace::File(trace, Some(folder))))
    }
}
