//! What can be wrong with a file, in sentences that say where it is wrong and what to do.

use super::header::FileKind;
use super::version::Unreadable;
use crate::memory::NeedsMemory;
use crate::record::Misfit;

/// Why bytes could not be read as a log or a trace.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Something else altogether.
    #[error("this is no hitreg file: {what}")]
    NotHitreg {
        /// What shows it.
        what: String,
    },
    /// A trace where a log is wanted, or the other way round.
    #[error("this is a {found}, and a {wanted} is wanted here{}", hint(*wanted))]
    WrongKind {
        /// What it is.
        found: FileKind,
        /// What it should be.
        wanted: FileKind,
    },
    /// A version that this build cannot read.
    #[error("this file cannot be read: {0}")]
    Version(#[from] Unreadable),
    /// It stops before its end.
    #[error("{0}; `hitreg recover` makes a good file of what is whole of a log")]
    Torn(Torn),
    /// It stops inside its first chunk, so that nothing of it can be read.
    #[error("the file stops after {bytes} bytes, inside its header: nothing of it can be recovered")]
    HeaderTorn {
        /// Its length.
        bytes: u64,
    },
    /// Some of its bytes have changed since they were written.
    #[error("corrupt at offset {offset}: {part}: {what}{}", rescue(*offset))]
    Corrupt {
        /// Where the damaged part begins.
        offset: u64,
        /// Which part that is: `chunk 12`, `the seek table`.
        part: String,
        /// What is wrong with it.
        what: String,
    },
    /// Its chunks are sound, but a record does not belong to its header.
    #[error("at offset {offset}: chunk {chunk}: {misfit}: the program that wrote this file is at fault")]
    Misfit {
        /// Where the chunk begins.
        offset: u64,
        /// Which chunk.
        chunk: u32,
        /// What does not fit.
        misfit: Misfit,
    },
    /// It does not fit into memory as a whole.
    #[error(transparent)]
    NeedsMemory(#[from] NeedsMemory),
    /// The bytes could not be had.
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl LogError {
    /// Where the trouble begins, for those kinds that have a place.
    pub fn offset(&self) -> Option<u64> {
        match self {
            LogError::Torn(torn) => Some(torn.at_offset),
            LogError::Corrupt { offset, .. } | LogError::Misfit { offset, .. } => Some(*offset),
            LogError::HeaderTorn { .. } | LogError::NotHitreg { .. } => Some(0),
            LogError::WrongKind { .. } | LogError::Version(_) | LogError::NeedsMemory(_) | LogError::Io(_) => None,
        }
    }
}

fn hint(wanted: FileKind) -> &'static str {
    match wanted {
        FileKind::Log => ": give the recording (*.hitlog) that it was replayed from",
        FileKind::Trace => ": make one with `hitreg replay LOG -o TRACE`",
        FileKind::Other => "",
    }
}

fn rescue(offset: u64) -> &'static str {
    match offset {
        0 => "; nothing can be read without it",
        _ => "; `hitreg recover` saves what is whole of a log",
    }
}

/// A file that was cut off: a recording that was killed, a copy that did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is cut off: everything before offset {at_offset} is whole, {lost_bytes} bytes after it are lost")]
pub struct Torn {
    /// Where the last whole part ends.
    pub at_offset: u64,
    /// How many bytes of an unfinished part follow; 0 when the cut falls between two parts.
    pub lost_bytes: u64,
}

/// Why a log or trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The bytes could not be put where they belong.
    #[error("it cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// A record that does not belong to the header.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// One record, or the header, does not fit into a chunk.
    #[error("{what} takes {bytes} bytes, and a chunk holds at most {}", super::limits::MAX_CHUNK_BYTES)]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// The header declares more than a reader takes.
    #[error("the header: {0}")]
    Header(String),
    /// One record is larger than any that a reader takes.
    #[error("a record takes {bytes} bytes, and one may take at most {}", super::limits::MAX_RECORD_BYTES)]
    RecordTooLarge {
        /// Its size in memory.
        bytes: usize,
    },
    /// A table that is not one: columns of different lengths, a code without a name.
    #[error("table {table:?}: {what}")]
    BadTable {
        /// Which.
        table: String,
        /// What is wrong with it.
        what: String,
    },
    /// This writer has already failed; the file ends before that failure.
    #[error("nothing more can be written after an earlier error")]
    Poisoned,
    /// The writer was dropped before the end.
    #[error("the log was given up before its end")]
    Abandoned,
    /// The thread that compresses is gone.
    #[error("the thread that writes the log has stopped")]
    ThreadGone,
}
