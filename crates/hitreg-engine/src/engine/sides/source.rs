//! The input file of one side: loaded into memory if it is short, surveyed if it is long.

use std::path::Path;

use super::ReplaySpec;
use super::unrelated::SessionIdentity;
use crate::engine::log_file::{LogFile, LogOrTrace};
use crate::engine::streamed::SurveyedLog;
use crate::engine::{Engine, EngineError};
use hitreg_log::log::FileKind;
use hitreg_log::record::SessionHeader;
use hitreg_log::store::{self, TraceFile};
use hitreg_log::trace::{Digest, SessionSource, Trace, TraceHeader, TraceSource};
use hitreg_netcode::replay::Part;

/// A trace that needs at most this many bytes of memory is loaded as a whole.
const SHORT_BYTES: usize = 8 << 20;

/// The input file of one side.
pub(super) struct ComparisonSource<'a> {
    pub(super) path: &'a Path,
    pub(super) holds: ComparisonInput,
}

/// The contents of an input file.
pub(super) enum ComparisonInput {
    Trace(Trace),
    Log(Box<LogFile>),
    LongTrace(Box<TraceFile>),
    LongLog(Box<SurveyedLog>),
}

impl<'a> ComparisonSource<'a> {
    /// Looks through what is long, and reads the rest as a whole.
    pub(super) fn of(
        engine: &Engine<'_>,
        path: &'a Path,
        ways: &[&ReplaySpec],
    ) -> Result<ComparisonSource<'a>, EngineError> {
        match ComparisonSource::long(engine, path, ways)? {
            Some(source) => Ok(source),
            None => ComparisonSource::read(engine, path, ways),
        }
    }

    /// How many bytes of it are in memory beside the traces that are made of it.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.holds {
            ComparisonInput::Log(log) => log.session.bytes(),
            ComparisonInput::Trace(_) | ComparisonInput::LongTrace(_) | ComparisonInput::LongLog(_) => 0,
        }
    }

    /// How many bytes its session takes in memory as a whole; 0 of a trace.
    pub(super) fn session_bytes(&self) -> usize {
        match &self.holds {
            ComparisonInput::Log(log) => log.session.bytes(),
            ComparisonInput::LongLog(log) => log.session_bytes(),
            ComparisonInput::Trace(_) | ComparisonInput::LongTrace(_) => 0,
        }
    }
    /// Loads the whole file.
    pub(super) fn read(
        engine: &Engine<'_>,
        path: &'a Path,
        _: &[&ReplaySpec],
    ) -> Result<ComparisonSource<'a>, EngineError> {
        let holds = match engine.read_either(path)? {
            LogOrTrace::Trace(trace) => ComparisonInput::Trace(trace),
            LogOrTrace::Log(log) => ComparisonInput::Log(log),
        };
        Ok(ComparisonSource { path, holds })
    }

    /// Surveys a long file. Returns `None` for a short file, and for a log that cannot be streamed in one of `ways`.
    pub(super) fn long(
        engine: &Engine<'_>,
        path: &'a Path,
        ways: &[&ReplaySpec],
    ) -> Result<Option<ComparisonSource<'a>>, EngineError> {
        let holds = match store::kind_of(path)? {
            FileKind::Trace => {
                let trace = TraceFile::open(path)?;
                if trace.memory() <= SHORT_BYTES {
                    return Ok(None);
                }
                ComparisonInput::LongTrace(Box::new(trace))
            }
            FileKind::Log => {
                let log = Engine::new(engine.games).survey(path)?;
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
                ComparisonInput::LongLog(Box::new(log))
            }
            FileKind::Other => return Ok(None),
        };
        Ok(Some(ComparisonSource { path, holds }))
    }

    /// The part of the session that a trace covers; `None` for a log or the trace of a whole session.
    pub(super) fn part(&self) -> Option<Part> {
        let header = match &self.holds {
            ComparisonInput::Trace(trace) => &trace.header,
            ComparisonInput::LongTrace(trace) => trace.header(),
            ComparisonInput::Log(_) | ComparisonInput::LongLog(_) => return None,
        };
        header.part.map(|[from, to]| Part { from, to })
    }

    /// What the file says about the session that it was made from.
    pub(super) fn recorded(&self) -> SessionIdentity {
        let of_trace = |header: &TraceHeader| SessionIdentity {
            game: header.game.clone(),
            log_digest: header.log_digest.clone(),
            session: header.session.clone(),
        };
        match (&self.holds, self.log()) {
            (ComparisonInput::Trace(trace), _) => of_trace(&trace.header),
            (ComparisonInput::LongTrace(trace), _) => of_trace(trace.header()),
            (_, Some((header, digest))) => SessionIdentity {
                game: header.game.clone(),
                log_digest: digest.to_string(),
                session: Some(SessionSource::of(header)),
            },
            (ComparisonInput::Log(_) | ComparisonInput::LongLog(_), None) => SessionIdentity::default(),
        }
    }
    /// The header and the digest of a log; `None` for a trace.
    pub(super) fn log(&self) -> Option<(&SessionHeader, Digest)> {
        match &self.holds {
            ComparisonInput::Trace(_) | ComparisonInput::LongTrace(_) => None,
            ComparisonInput::Log(log) => Some((&log.session.header, log.digest)),
            // The survey started at the beginning of the file, so the digest exists.
            ComparisonInput::LongLog(log) => log.digest.map(|digest| (&log.header, digest)),
        }
    }
}
