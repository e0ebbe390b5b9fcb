//! The input file of one side.

use std::path::Path;

use super::same_session::SessionIdentity;
use crate::engine::streamed::SurveyedLog;
use crate::engine::{Engine, EngineError};
use hitreg_log::log::FileKind;
use hitreg_log::store::{self, TraceFile};
use hitreg_log::trace::{SessionSource, TraceHeader, TraceSource};
use hitreg_netcode::replay::Part;

/// The input file of one side.
pub(super) struct ComparisonSource<'a> {
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
    pub(super) fn of(engine: &Engine<'_>, path: &'a Path) -> Result<ComparisonSource<'a>, EngineError> {
        let holds = match store::kind_of(path)? {
            FileKind::Trace => ComparisonInput::Trace(Box::new(TraceFile::open(path)?)),
            // The log reader gives the best error message for a file of neither kind.
            FileKind::Log | FileKind::Other => ComparisonInput::Log(Box::new(engine.survey(path)?)),
        };
        Ok(ComparisonSource { path, holds })
    }

    /// How many bytes its session takes in memory as a whole; 0 of a trace.
    pub(super) fn session_bytes(&self) -> usize {
        match &self.holds {
            ComparisonInput::Trace(_) => 0,
            ComparisonInput::Log(log) => log.session_bytes(),
        }
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

    /// The log; `None` for a trace.
    pub(super) fn log(&self) -> Option<&SurveyedLog> {
        match &self.holds {
            ComparisonInput::Trace(_) => None,
            ComparisonInput::Log(log) => Some(log),
        }
    }
}
