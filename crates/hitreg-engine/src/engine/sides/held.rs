//! The trace of one side, in memory or in a file.

use std::borrow::Cow;
use std::path::Path;

use super::{Missing, Traces, Way};
use crate::build::Untestable;
use crate::engine::log_file::LogFile;
use crate::engine::streamed::{StreamError, SurveyedLog};
use crate::engine::{Engine, EngineError};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::store::{self, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Table, Trace, TraceSource};
use hitreg_netcode::replay::Replayed;

/// The memory that comparing two traces takes, as a multiple of their size.
const COMPARED: usize = 2;

/// The trace of one side.
#[derive(Debug)]
pub enum Held {
    /// A trace in memory.
    Memory(Trace),
    /// A trace in a file. Dropping the folder deletes the file.
    File(TraceFile, Option<TemporaryFolder>),
}

impl Held {
    /// The rows of the trace.
    pub fn source(&self) -> &dyn TraceSource {
        match self {
            Held::Memory(trace) => trace,
            Held::File(trace, _) => trace,
        }
    }

    /// The memory that the whole trace needs, in bytes.
    fn memory(&self) -> usize {
        match self {
            Held::Memory(trace) => trace.tables.iter().map(Table::row_bytes).fold(0, usize::saturating_add),
            Held::File(trace, _) => trace.memory(),
        }
    }

    /// Loads the whole trace into memory.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn trace(&self) -> Result<Cow<'_, Trace>, EngineError> {
        Ok(match self {
            Held::Memory(trace) => Cow::Borrowed(trace),
            Held::File(trace, _) => Cow::Owned(store::read_trace(trace.path())?),
        })
    }
}

impl Traces<Held> {
    /// Loads both traces into memory.
    ///
    /// # Errors
    /// Fails if both need more memory than the limit, or if a file cannot be read. The memory error names the file
    /// `of`.
    pub(super) fn in_memory(self, of: &Path) -> Result<Traces, EngineError> {
        let Traces { names, made, overlap_only } = self;
        if let Ok(traces) = &made {
            let both = traces.iter().map(Held::memory).fold(0, usize::saturating_add);
            let needed = both.saturating_mul(COMPARED);
            let needs = |source| EngineError::NeedsMemory { path: of.to_owned(), source };
            MemoryLimit::current().check(needed).map_err(needs)?;
        }
        let made = match made {
            Ok([a, b]) => Ok([a.trace()?.into_owned(), b.trace()?.into_owned()]),
            Err(missing) => Err::<_, Missing>(missing),
        };
        Ok(Traces { names, made, overlap_only })
    }
}

impl Way {
    /// Replays a log that is in memory.
    pub(super) fn in_process(
        &self,
        engine: &Engine<'_>,
        log: &LogFile,
    ) -> Result<Result<Trace, Untestable>, EngineError> {
        let options = self.replay_options(engine, &log.session.header)?;
        let game = engine.games.of(&log.session).map_err(Untestable::because_of);
        let replayed = game.and_then(|game| {
            let replayed = game.replay(&log.session, &options, &mut |_| {});
            replayed.map_err(|error| Untestable::not_replayed(&error))
        });
        Ok(replayed.map(|Replayed { mut trace, .. }| {
            trace.header.log_digest = log.digest.to_string();
            trace
        }))
    }

    /// Replays a log while reading it, and writes the trace to a temporary file.
    pub(super) fn in_file(
        &self,
        engine: &Engine<'_>,
        log: &SurveyedLog,
    ) -> Result<Result<Held, Untestable>, EngineError> {
        let options = self.replay_options(engine, &log.header)?;
        let game = match engine.games.of_header(&log.header) {
            Ok(game) => game,
            Err(unknown) => return Ok(Err(Untestable::because_of(unknown))),
        };
        let folder = store::temporary_folder()?;
        let target = folder.file("replayed.hittrace");
        match log.replay_into(game, &options, &target) {
            Ok(()) => {}
            Err(StreamError::Read(error)) => return Err(error),
            Err(StreamError::Replay(error)) => return Ok(Err(Untestable::not_replayed(&error))),
        }
        let trace = TraceFile::open(target.path())?;
        Ok(Ok(Held::File(trace, Some(folder))))
    }
}
