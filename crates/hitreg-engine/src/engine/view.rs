//! A file for inspection: its trace, and the log's data that a trace lacks.

use std::path::Path;

use super::log_file::{LogFile, LogOrTrace};
use super::{Engine, EngineError};
use hitreg_log::recorded::all_records;
use hitreg_log::trace::Trace;
use hitreg_netcode::game::Wall;

/// A trace or a log, for inspection.
#[derive(Debug)]
pub enum ViewedFile {
    /// A trace.
    Trace(Trace),
    /// A log of a game that this build plays, with the walls of its map if the game has an outline.
    Log(Box<LogFile>, Vec<Wall>),
    /// A log of another game, with the trace of its own records and the reason why it cannot be replayed.
    Unknown(Box<LogFile>, Trace, String),
}

impl Engine<'_> {
    /// Reads a file for inspection.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn look(&self, path: &Path) -> Result<ViewedFile, EngineError> {
        let log = match self.read_either(path)? {
            LogOrTrace::Trace(trace) => return Ok(ViewedFile::Trace(*trace)),
            LogOrTrace::Log(log) => log,
        };
        Ok(match self.games.of(&log.session) {
            Ok(game) => {
                let walls = game.outline(&log.session);
                ViewedFile::Log(log, walls)
            }
            Err(unknown) => {
                let says = all_records(&log.session);
                ViewedFile::Unknown(log, says, unknown.to_string())
            }
        })
    }
}
