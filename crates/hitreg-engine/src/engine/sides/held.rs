//! A side's trace: in memory, or in a file where it is long.

use std::borrow::Cow;

use super::{Missing, Traces, Way};
use crate::build::Untestable;
use crate::engine::log_file::LogFile;
use crate::engine::streamed::{StreamError, SurveyedLog};
use crate::engine::{Engine, EngineError};
use hitreg_log::store::{self, TemporaryFolder, TraceFile};
use hitreg_log::trace::{Trace, TraceSource};
use hitreg_netcode::replay::Replayed;

/// A side's trace.
#[derive(Debug)]
pub enum Held {
    /// In memory.
    Memory(Trace),
    /// In a file, and the folder that goes with it when it is no longer needed.
    File(TraceFile, Option<TemporaryFolder>),
}

impl Held {
    /// Its rows, wherever they are.
    pub fn source(&self) -> &dyn TraceSource {
        match self {
            Held::Memory(trace) => trace,
            Held::File(trace, _) => trace,
        }
    }

    /// All of it in memory.
    ///
    /// # Errors
    /// When it cannot be read any more.
    pub fn trace(&self) -> Result<Cow<'_, Trace>, EngineError> {
        Ok(match self {
            Held::Memory(trace) => Cow::Borrowed(trace),
            Held::File(trace, _) => Cow::Owned(store::read_trace(trace.path())?),
        })
    }
}

impl Traces<Held> {
    /// The same with all of it in memory.
    pub(super) fn in_memory(self) -> Result<Traces, EngineError> {
        let Traces { names, made, overlap_only } = self;
        let made = match made {
            Ok([a, b]) => Ok([a.trace()?.into_owned(), b.trace()?.into_owned()]),
            Err(missing) => Err::<_, Missing>(missing),
        };
        Ok(Traces { names, made, overlap_only })
    }
}

impl Way {
    /// The replay of a log that is in memory.
    pub(super) fn in_process(
        &self,
        engine: &Engine<'_>,
        log: &LogFile,
    ) -> Result<Result<Trace, Untestable>, EngineError> {
        let options = self.replay_options(engine, &log.session.header)?;
        let game = engine.games.of(&log.session).map_err(Untestable::because_of);
        let replayed =
            game.and_then(|game| game.replay(&log.session, &options, &mut |_| {}).map_err(Untestable::because_of));
        Ok(replayed.map(|Replayed { mut trace, .. }| {
            trace.header.log_digest = log.digest.to_string();
            trace
        }))
    }

    /// Replays a log as it is read into a file.
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
            Err(StreamError::Replay(error)) => return Ok(Err(Untestable::because_of(error))),
        }
        let trace = TraceFile::open(target.path())?;
        Ok(Ok(Held::File(trace, Some(folder))))
    }
}
