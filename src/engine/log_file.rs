//! Logs and traces as files that something is done with.

use std::path::Path;

use super::{Engine, EngineError};
use crate::log::{self, FileKind};
use crate::record::Session;
use crate::store;
use crate::trace::{Digest, Trace};

/// A log in memory.
#[derive(Debug)]
pub struct LogFile {
    /// What it holds.
    pub session: Session,
    /// Identifies the very file, in the headers of traces.
    pub digest: Digest,
}

/// What is in a file.
#[derive(Debug)]
pub(super) enum LogOrTrace {
    Log(LogFile),
    Trace(Trace),
}

impl Engine<'_> {
    /// Reads a log that must be whole.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn read_log(&self, path: &Path) -> Result<LogFile, EngineError> {
        self.log_in(path, &store::read_bytes(path)?)
    }

    pub(super) fn read_either(&self, path: &Path) -> Result<LogOrTrace, EngineError> {
        let bytes = store::read_bytes(path)?;
        match log::kind_of(&bytes[..bytes.len().min(128 << 10)]) {
            FileKind::Trace => {
                let trace = log::read_trace(&bytes[..]).map_err(|source| EngineError::content(path, source))?;
                Ok(LogOrTrace::Trace(trace))
            }
            // Whoever reads logs says best what is wrong with a file that is none.
            FileKind::Log | FileKind::Other => Ok(LogOrTrace::Log(self.log_in(path, &bytes)?)),
        }
    }

    fn log_in(&self, path: &Path, bytes: &[u8]) -> Result<LogFile, EngineError> {
        let session = log::read_session(bytes).map_err(|source| EngineError::content(path, source))?;
        (self.read)(path, &session.header);
        Ok(LogFile { session, digest: Digest::of_bytes(bytes) })
    }
}
