//! The trace of one side, in memory or in a file.

use std::borrow::Cow;
use std::path::Path;

use super::source::{ComparisonInput, ComparisonSource};
use super::{MissingSide, ReplaySpec, ReplaySpecs, Traces};
use crate::build::UntestableBuild;
use crate::engine::streamed::{StreamError, SurveyedLog};
use crate::engine::{Engine, EngineError};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::store::{self, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Table, Trace, TraceSource};
use hitreg_netcode::replay::foreign_trace_memory;

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
    pub(super) fn check_memory(&self, [a, b]: [&ComparisonSource<'_>; 2], goal: Goal) -> Result<(), EngineError> {
        let mut traces = 0_usize;
        for (way, source) in [(&self.a, a), (&self.b, b)] {
            traces = traces.saturating_add(way.trace_bytes(source, goal));
        }
        let times = if goal == Goal::Memory { COMPARED } else { 1 };
        check_memory(a.path, traces.saturating_mul(times))
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
    fn trace_bytes(&self, source: &ComparisonSource<'_>, goal: Goal) -> usize {
        match (&source.holds, goal) {
            (_, Goal::Files) => 0,
            (ComparisonInput::Trace(trace), Goal::Memory) => trace.memory(),
            (ComparisonInput::Log(log), Goal::Memory) => log.survey.trace_bytes(self.tables),
        }
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

    /// Replays a log. The trace of a short one stays in memory, that of a long one goes into a temporary file.
    pub(super) fn replayed(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
    ) -> Result<Result<SideTrace, UntestableBuild>, EngineError> {
        let options = self.replay_options(engine, &log.header)?;
        let game = match engine.games.of_header(&log.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(UntestableBuild::because_of(unknown))),
        };
        let replay = || {
            if log.is_short() {
                return Ok(SideTrace::Memory(log.trace(game, &options)?));
            }
            let folder = store::temporary_folder().map_err(EngineError::from)?;
            let target = folder.file("replayed.hittrace");
            log.replay_into(game, &options, &target)?;
            Ok(SideTrace::File(TraceFile::open(target.path()).map_err(EngineError::from)?, Some(folder)))
        };
        match replay() {
            Ok(trace) => Ok(Ok(trace)),
            Err(StreamError::Read(error)) => Err(error),
            Err(StreamError::Replay(error)) => Ok(Err(UntestableBuild::not_replayed(&error))),
        }
    }
}
