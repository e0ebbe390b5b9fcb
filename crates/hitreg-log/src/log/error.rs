//! Errors of log and trace files, and the limits of readers. The messages say where a file is wrong and what to do.

use serde::Serialize;

use super::header::{FileKind, UnreadableFormat};
use crate::memory::NeedsMemory;
use crate::record::MisplacedRecord;

/// Why the bytes cannot be read as a log or a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file is neither a log nor a trace.
    #[error("not a hitreg file: {what}")]
    NotHitreg {
        /// The evidence.
        what: String,
    },
    /// The file is a trace and the caller wants a log, or the reverse.
    #[error("this is a {found}, but the command needs a {wanted}{}", hint(*wanted))]
    WrongKind {
        /// The kind of the file.
        found: FileKind,
        /// The wanted kind.
        wanted: FileKind,
    },
    /// This build cannot read the file's format version.
    #[error("this file cannot be read: {0}")]
    Version(#[from] UnreadableFormat),
    /// The file ends before its last chunk or its seek table.
    #[error("{}. To save the rest, run: hitreg recover FILE -o fixed.hitlog", self.damage())]
    Torn(Truncation),
    /// The file ends inside its header, so nothing can be recovered.
    #[error(
        "truncated after {bytes} bytes, inside the header: nothing can be recovered. Copy the file again, or record the session again"
    )]
    HeaderTorn {
        /// The file's length, in bytes.
        bytes: u64,
    },
    /// Some bytes changed since they were written.
    #[error("{}{}", self.damage(), recovery_hint(*offset))]
    Corrupt {
        /// The offset where the damaged part begins, in bytes.
        offset: u64,
        /// The name of the part, such as `chunk 12` or `the seek table`.
        part: String,
        /// The damage found.
        what: String,
    },
    /// The file needs more memory than the limit.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// Reading the bytes failed.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl LogError {
    /// Returns the error for damage in a part of the file.
    pub(super) fn corrupt(offset: u64, part: impl Into<String>, what: impl Into<String>) -> LogError {
        LogError::Corrupt { offset, part: part.into(), what: what.into() }
    }

    /// Returns the error for damage in a chunk.
    pub(super) fn corrupt_chunk(offset: u64, index: u32, what: impl Into<String>) -> LogError {
        let part = if index == 0 { "the header".to_owned() } else { format!("chunk {index}") };
        LogError::corrupt(offset, part, what)
    }

    /// Returns what is wrong with the file, without advice on its recovery.
    pub fn damage(&self) -> String {
        match self {
            LogError::Torn(torn) => torn.to_string(),
            LogError::Corrupt { offset, part, what } => format!("corrupt at offset {offset}: {part}: {what}"),
            other => other.to_string(),
        }
    }

    /// Returns the offset of the error in the file; `None` for errors without a place.
    pub fn offset(&self) -> Option<u64> {
        match self {
            LogError::Torn(torn) => Some(torn.at_offset),
            LogError::Corrupt { offset, .. } => Some(*offset),
            LogError::HeaderTorn { .. } | LogError::NotHitreg { .. } => Some(0),
            LogError::WrongKind { .. } | LogError::Version(_) | LogError::NeedsMemory(_) | LogError::Io(_) => None,
        }
    }
}

fn hint(wanted: FileKind) -> &'static str {
    match wanted {
        FileKind::Log => ": give the recording (*.hitlog) that the trace was made from",
        FileKind::Trace => ": make one with `hitreg replay LOG -o TRACE`",
        FileKind::Other => "",
    }
}

fn recovery_hint(offset: u64) -> &'static str {
    match offset {
        0 => "; nothing can be read without this part. Copy the file again, or record the session again",
        _ => ". To save the other chunks of a log, run: hitreg recover FILE -o fixed.hitlog",
    }
}

fn lost(bytes: u64) -> String {
    match bytes {
        0 => "the end is missing".to_owned(),
        1 => "the last byte is damaged".to_owned(),
        bytes => format!("the last {bytes} bytes are damaged"),
    }
}

/// A file that was cut off, for example by a killed recording or an unfinished copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("truncated at offset {at_offset}: {}, everything before is intact", lost(*lost_bytes))]
pub struct Truncation {
    /// The offset where the last complete part ends, in bytes.
    #[serde(rename = "offset")]
    pub at_offset: u64,
    /// The number of bytes of the unfinished part after it; 0 if the cut is between two parts.
    #[serde(rename = "bytes")]
    pub lost_bytes: u64,
}

/// Why a log or trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Writing the bytes failed.
    #[error("cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// A record does not fit the header.
    #[error(transparent)]
    Misfit(#[from] MisplacedRecord),
    /// Writing needs more memory than the limit.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// One record, or the header, does not fit into a chunk.
    #[error("{what} takes {bytes} bytes, and a chunk holds at most {}", CHUNK_BYTES_MAX)]
    TooLarge {
        /// The kind of content.
        what: &'static str,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// The header exceeds a limit of readers.
    #[error("the header: {0}")]
    Header(String),
    /// One record exceeds the limit of readers.
    #[error("a record takes {bytes} bytes, and one may take at most {}", RECORD_BYTES_MAX)]
    RecordTooLarge {
        /// Its size in memory, in bytes.
        bytes: usize,
    },
    /// A table is invalid: columns of different lengths, or a code without a name.
    #[error("table {table:?}: {what}")]
    BadTable {
        /// The table's name.
        table: String,
        /// The problem.
        what: String,
    },
    /// This writer failed earlier; the file ends before that failure.
    #[error("nothing more can be written after an earlier error")]
    Poisoned,
    /// The writer was dropped before the end of the log.
    #[error("the log was given up before its end")]
    Abandoned,
    /// The compressing thread has stopped.
    #[error("the thread that writes the log has stopped")]
    ThreadGone,
}

/// The error of a thread that cannot be started.
pub(crate) fn no_thread(error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("no thread can be started: {error}"))
}

// Limits on what a part of a file may make its reader allocate. Readers check every limit before the allocation.

/// The most bytes of one chunk, compressed or not. Writers make far smaller chunks.
pub(crate) const CHUNK_BYTES_MAX: usize = 12 << 20;

/// The most bytes of a map in a recorder's description. The other parts of a header need room, too.
pub(crate) const MAP_BYTES_MAX: usize = CHUNK_BYTES_MAX - (1 << 20);

/// The most bytes of records in memory that a writer puts into one chunk. Writers refuse larger records.
pub(crate) const RECORD_BYTES_MAX: usize = 4 << 20;

/// The most memory for decoding one chunk. Decoding takes at most 14 times the record size for any kind of record, so
/// a reader can decode every chunk that a writer makes.
pub(crate) const CHUNK_MEMORY_BYTES_MAX: usize = 64 << 20;

/// The most players that a session may have. Games of today have up to 150. The work of a server grows with the square.
pub const LOG_PLAYERS_MAX: usize = 200;

/// The most values in MessagePack that a file's header may hold. A hundred classes of thirty fields and all players
/// come to less than half of that.
pub(crate) const HEADER_VALUES_MAX: u64 = 1 << 17;

/// The most columns of a trace table in a file.
pub(crate) const COLUMNS_MAX: usize = 4096;

/// The memory that a decoder may still allocate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, left: limit }
    }

    /// Reserves memory for `count` items of `size` bytes.
    pub(crate) fn take(&mut self, count: usize, size: usize) -> Result<(), String> {
        let left = self.left.checked_sub(count.saturating_mul(size));
        let over = || format!("its records would take more than {} MiB of memory", self.limit >> 20);
        self.left = left.ok_or_else(over)?;
        Ok(())
    }
}
