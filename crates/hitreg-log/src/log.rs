//! Encodes logs and traces as bytes, decodes them, and recovers damaged logs.
//!
//! This module does no file I/O. `docs/format.md` describes the layout.
//!
//! A build with a game of its own reads a log like this; [`trace`](crate::trace) shows how it writes its trace:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use hitreg_log::record::Execution;
//!
//! # let file: &[u8] = include_bytes!("../../../fixtures/compat/log-v1.0.hitlog");
//! let session = hitreg_log::log::read_session(file)?;
//! let mut places = vec![0.0; session.players.len()];
//! for (player, place) in session.players.iter().zip(&mut places) {
//!     for ran in player.executed.iter().filter(|ran| ran.how == Execution::Run) {
//!         // Usercmds are in the order of their numbers.
//!         if let Ok(row) = player.frames.binary_search_by_key(&ran.command, |frame| frame.command.seq) {
//!             let input = &player.frames[row].command.input;
//!             *place += input.forwardmove * f32::from(input.msec) / 1000.0;
//!         }
//!     }
//! }
//! assert!(places.iter().any(|place| *place != 0.0));
//! # Ok(())
//! # }
//! ```

mod chunk;
mod chunks;
mod column;
mod container;
mod error;
mod header;
mod index;
mod keyframes;
mod kinds;
mod lookalike;
mod reader;
mod recover;
mod table;
mod trace_file;
mod writer;

pub(crate) use chunk::CHUNK_KEYS;
pub use error::{LOG_PLAYERS_MAX, LogError, Truncation, WriteError};
pub(crate) use error::{MAP_BYTES_MAX, RECORD_BYTES_MAX, no_thread};
pub(crate) use header::check_players;
pub use header::{FORMAT, FileKind, FormatVersion, UnreadableFormat, check_readable_by, kind_of};
pub use index::{FileIndex, IndexedRows, IndexedTable};
pub use keyframes::{RewriteError, keyframes_of, write_keyframes};
pub(crate) use kinds::EXTRA_BYTES;
pub(crate) use lookalike::START_BYTES;
pub use lookalike::{Lookalike, looks_like};
pub use reader::{
    IndexedLog, KeyframeQuery, LogReader, SeekResult, read_header, read_prefix, read_prefix_within, read_session,
    read_session_within,
};
pub use recover::{DamagedPart, LogDamage, RecoveredLog, recover};
pub use trace_file::{
    IndexedTrace, TraceLayout, TraceReader, TraceWriter, read_trace, read_trace_within, write_trace,
    write_trace_meanwhile,
};
pub(crate) use writer::RecordCounter;
pub use writer::{BackgroundLogWriter, LogWriter, MergeWriter, QueuePolicy, WriterOptions, write_session};
