//! Logs and traces as bytes: encoding, decoding, and saving what can be saved of damaged ones.
//!
//! Nothing here touches a file. The layout is written down in `docs/format.md`.

mod chunk;
mod chunks;
mod column;
mod container;
mod error;
mod frames;
mod header;
mod kinds;
mod limits;
mod reader;
mod recover;
mod schema;
mod timeline;
mod trace_file;
mod version;
mod writer;

pub use error::{LogError, Torn, WriteError};
pub use header::{FileKind, kind_of, version_of};
pub use limits::{
    MAX_CHUNK_BYTES, MAX_CHUNK_MEMORY, MAX_PLAYERS, MAX_RECORD_BYTES, grant_memory, replay_budget, session_budget,
    trace_budget,
};
pub use reader::{LogReader, read_header, read_prefix, read_session};
pub use recover::{Damage, Hole, recover};
pub use trace_file::{TraceReader, read_trace, write_trace};
pub use version::{LOG_FORMAT, Readable, TRACE_FORMAT, Unreadable, Version, check_readable_by};
pub use writer::{BackgroundLogWriter, LogWriter, Options, WhenFull, write_session};
