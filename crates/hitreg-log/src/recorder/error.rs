//! What a recorder refuses, in sentences.

use crate::log::{LogError, WriteError};
use crate::record::Misfit;
use crate::store::StoreError;
use crate::units::Micros;

/// Why something was not recorded. What was recorded before stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// It does not belong to the session as it was described.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// It comes too late to be put into its place.
    #[error("a record of {at} comes too late: everything before {released} is written; a wider window waits longer")]
    Late {
        /// Its time.
        at: Micros,
        /// What is before this has been written.
        released: Micros,
    },
    /// The stream's ring is full.
    #[error("the recorder cannot keep up: this record is lost, and a gap in the log will say so")]
    Overrun,
    /// The recording is over.
    #[error("the recording is finished: nothing more is recorded")]
    Finished,
    /// The recording broke off.
    #[error("the recording cannot be written any more; finishing it says why")]
    Stopped,
    /// Ticks count from 1.
    #[error("there is no tick 0: ticks count from 1")]
    TickZero,
    /// There is no such kind of the team's own.
    #[error("there is no kind {kind}: the description has {kinds} kinds of its own")]
    NoKind {
        /// Its number.
        kind: usize,
        /// How many there are.
        kinds: usize,
    },
    /// A row of a kind of the team's own that is not as the kind says.
    #[error("a row of `{kind}` is {found}, and the description says {columns}")]
    Row {
        /// The kind.
        kind: String,
        /// What came.
        found: String,
        /// What should have come.
        columns: String,
    },
    /// More than a reader takes.
    #[error("a record takes {bytes} bytes, and one may take at most {most}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Fields of a usercmd that the description does not have.
    #[error("a usercmd has fields of its own, but the description has none: call `usercmd_field`")]
    NoFields,
    /// Bytes of a usercmd, in a session that does not say that there are any.
    #[error("a usercmd has bytes of its own, but the description does not say so: call `usercmd_bytes`")]
    NoBytes,
}

/// Why a recording could not be begun, or is not whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it is written to.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The description.
    #[error("the description of the session: {0}")]
    Description(String),
    /// What was kept in memory does not read.
    #[error("what was kept in memory cannot be read: {source}")]
    Kept {
        /// Why.
        source: LogError,
    },
    /// There is nothing to be saved.
    #[error("this recorder keeps nothing to be saved: it is over, or was not begun by `keep_last`")]
    NothingKept,
}
