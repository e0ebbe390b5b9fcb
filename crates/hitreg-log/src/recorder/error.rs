//! Errors of a recorder.

use crate::log::{LogError, WriteError};
use crate::record::{MisplacedRecord, TextError, TickRecord};
use crate::store::StoreError;
use crate::units::{Micros, Tick};

/// Why a push was refused. Earlier records are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The record does not fit the description of the session.
    #[error(transparent)]
    Misfit(#[from] MisplacedRecord),
    /// The record is older than the reorder window.
    #[error("a record of {at} is too late: everything before {released} is written. Set a wider reorder window")]
    Late {
        /// Time of the record.
        at: Micros,
        /// Records before this time have been written.
        released: Micros,
    },
    /// The stream's ring is full.
    #[error(
        "the recorder cannot keep up: this record is lost, and the log will have a gap record. Use a larger ring, or a recorder that waits"
    )]
    Overrun,
    /// The recording has ended.
    #[error("the recording is finished: nothing more is recorded")]
    Finished,
    /// The recording stopped because of a write error.
    #[error("the recording failed earlier; finishing it returns the reason")]
    Stopped,
    /// Ticks count from 1.
    #[error("there is no tick 0: ticks count from 1")]
    TickZero,
    /// Usercmds count from 1.
    #[error("there is no usercmd 0: usercmds count from 1")]
    UsercmdZero,
    /// The tick contradicts another one: with later times, ticks have higher numbers, and each number is pushed once.
    #[error(
        "tick {} at {} does not follow tick {} at {}: later ticks have higher numbers. When the server counts from 1 again, start a new recording or go on from the last number",
        tick.tick, tick.at, other.tick, other.at
    )]
    TickOrder {
        /// The refused tick.
        tick: TickRecord,
        /// The recorded tick that it contradicts.
        other: TickRecord,
    },
    /// The state or the executed usercmd belongs to a tick that was refused.
    #[error("tick {tick} was refused, and so are its states and usercmds")]
    OfRefusedTick {
        /// The refused tick.
        tick: Tick,
    },
    /// No custom kind has this number.
    #[error("there is no kind {kind}: the description declares {kinds} kinds")]
    NoKind {
        /// The requested number.
        kind: usize,
        /// Number of custom kinds.
        kinds: usize,
    },
    /// A row does not match the columns of its custom kind.
    #[error("a row of `{kind}` is {found}, and the description says {columns}")]
    Row {
        /// Name of the kind.
        kind: String,
        /// Types of the values in the row.
        found: String,
        /// Types of the declared columns.
        columns: String,
    },
    /// The record is larger than a reader accepts.
    #[error("a record takes {bytes} bytes, and one may take at most {most}")]
    TooLarge {
        /// Size of the record, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// A text cannot be recorded.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A usercmd has custom fields that the description does not declare.
    #[error("a usercmd has extra fields, but the description declares no fields of usercmds")]
    NoFields,
    /// A usercmd has extra bytes that the description does not declare.
    #[error("a usercmd has extra bytes, but the description does not declare them")]
    NoBytes,
}

/// Why a recording could not start, or is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The file could not be created or finished.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The description is invalid.
    #[error("the description of the session: {0}")]
    Description(String),
    /// The span of a flight recorder is out of range.
    #[error("a flight recorder keeps from 1 s to 1000000 s, and not {} s", span.as_s_f64())]
    Span {
        /// The requested span.
        span: Micros,
    },
    /// The part kept in memory could not be read.
    #[error("the data kept in memory cannot be read: {source}")]
    Kept {
        /// The cause.
        source: LogError,
    },
    /// The recorder keeps nothing in memory, or has ended.
    #[error("this recorder has nothing to save: it is finished, or was not started with `keep_last`")]
    NothingKept,
}
