//! A file that a side begins with: all of it in memory, or of what is long how to go through it.

use std::path::Path;

use super::Way;
use super::unrelated::Recorded;
use crate::engine::log_file::{LogFile, LogOrTrace};
use crate::engine::streamed::SurveyedLog;
use crate::engine::{Engine, EngineError};
use hitreg_log::log::FileKind;
use hitreg_log::record::Header;
use hitreg_log::store::{self, TraceFile};
use hitreg_log::trace::{Digest, SessionSource, Trace, TraceHeader, TraceSource};
use hitreg_netcode::replay::Part;

/// A trace that takes up to so many bytes in memory is read as a whole.
const SHORT_BYTES: usize = 64 << 20;

/// A file that one side begins with.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) holds: Kept,
}

/// What is in it: all of it, or of what is long how to go through it.
pub(super) enum Kept {
    Trace(Trace),
    Log(Box<LogFile>),
    LongTrace(Box<TraceFile>),
    LongLog(Box<SurveyedLog>),
}

impl<'a> Source<'a> {
    /// Reads all of it.
    pub(super) fn read(engine: &Engine<'_>, path: &'a Path, _: &[&Way]) -> Result<Source<'a>, EngineError> {
        let holds = match engine.read_either(path)? {
            LogOrTrace::Trace(trace) => Kept::Trace(trace),
            LogOrTrace::Log(log) => Kept::Log(log),
        };
        Ok(Source { path, holds })
    }

    /// Looks through what is long. `None` of what is short, and of a log that cannot be replayed as it is read in one of these
    /// ways.
    pub(super) fn long(engine: &Engine<'_>, path: &'a Path, ways: &[&Way]) -> Result<Option<Source<'a>>, EngineError> {
        let holds = match store::kind_of_regular(path) {
            Some(FileKind::Trace) => {
                let trace = TraceFile::open(path)?;
                if trace.memory() <= SHORT_BYTES {
                    return Ok(None);
                }
                Kept::LongTrace(Box::new(trace))
            }
            Some(FileKind::Log) => {
                let Some(log) = Engine::new(engine.games).survey(path)? else { return Ok(None) };
                if log.is_short() {
                    return Ok(None);
                }
                for way in ways {
                    let streams = match (&way.build, engine.games.of_header(&log.header)) {
                        (Some(_), _) => true,
                        (None, Ok(game)) => log.streams(game, &way.replay_options(engine, &log.header)?),
                        (None, Err(_)) => false,
                    };
                    if !streams {
                        return Ok(None);
                    }
                }
                (engine.read)(path, &log.header);
                Kept::LongLog(Box::new(log))
            }
            Some(FileKind::Other) | None => return Ok(None),
        };
        Ok(Some(Source { path, holds }))
    }

    /// Of a trace that is not of the whole session the part.
    pub(super) fn part(&self) -> Option<Part> {
        let header = match &self.holds {
            Kept::Trace(trace) => &trace.header,
            Kept::LongTrace(trace) => trace.header(),
            Kept::Log(_) | Kept::LongLog(_) => return None,
        };
        header.part.map(|[from, to]| Part { from, to })
    }

    /// What the file says about the session that it was made from.
    pub(super) fn recorded(&self) -> Recorded {
        let of_trace = |header: &TraceHeader| Recorded {
            game: header.game.clone(),
            log_digest: header.log_digest.clone(),
            session: header.session.clone(),
        };
        match (&self.holds, self.log()) {
            (Kept::Trace(trace), _) => of_trace(&trace.header),
            (Kept::LongTrace(trace), _) => of_trace(trace.header()),
            (_, Some((header, digest))) => Recorded {
                game: header.game.clone(),
                log_digest: digest.to_string(),
                session: Some(SessionSource::of(header)),
            },
            (Kept::Log(_) | Kept::LongLog(_), None) => Recorded::default(),
        }
    }

    /// Of a log its header and its digest.
    pub(super) fn log(&self) -> Option<(&Header, Digest)> {
        match &self.holds {
            Kept::Trace(_) | Kept::LongTrace(_) => None,
            Kept::Log(log) => Some((&log.session.header, log.digest)),
            // It was looked through from its beginning, so that it has a digest.
            Kept::LongLog(log) => log.digest.map(|digest| (&log.header, digest)),
        }
    }
}
