//! The errors of decoding a datagram.

use super::MessageType;
use crate::game::BadCells;
use hitreg_log::units::{EntityId, SnapshotSeq};

/// The reason why a datagram is invalid. The receiver drops such a datagram and keeps nothing of its contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The datagram ends early.
    #[error("the datagram ends early")]
    TooShort,
    /// Bits follow the end of the message.
    #[error("the datagram goes on after its end")]
    TrailingBits,
    /// The datagram belongs to another protocol.
    #[error("the datagram is of another protocol: its filter is {0:#010x}")]
    WrongFilter(u32),
    /// The message type is unknown.
    #[error("no message has type {0}")]
    UnknownType(u8),
    /// The message has another type than expected.
    #[error("the message is a {found:?}, not a {expected:?}")]
    WrongType {
        /// The expected type.
        expected: MessageType,
        /// The type found.
        found: MessageType,
    },
    /// The seal is wrong: the sender does not have the session's key, or the datagram was changed.
    #[error("the seal does not fit the datagram")]
    WrongSeal,
    /// A field has an invalid value.
    #[error("{what} cannot be {value}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// The submessage type is unknown.
    #[error("no submessage has type {0}")]
    UnknownSubmessage(u8),
    /// An update uses a base state that the receiver does not have.
    #[error("the update of entity {entity} starts from snapshot {base}, which is not known here")]
    MissingBase {
        /// The entity.
        entity: EntityId,
        /// The snapshot that carried the base state.
        base: SnapshotSeq,
    },
    /// A snapshot is coded against one that the receiver does not have.
    #[error("the snapshot is coded against snapshot {base}, which is not known here")]
    MissingFrame {
        /// The base snapshot.
        base: SnapshotSeq,
    },
    /// The client would have to keep more than [`ENTITIES_MAX`](super::ENTITIES_MAX) entities.
    #[error("more than {} entities", super::ENTITIES_MAX)]
    TooManyEntities,
    /// The cells of an entity are not a valid state of the game.
    #[error("entity {entity}: {cells}")]
    BadBody {
        /// The entity.
        entity: EntityId,
        /// The error that the game found in the cells.
        cells: BadCells,
    },
}

impl DecodeError {
    pub(crate) const fn bad(what: &'static str, value: u64) -> DecodeError {
        DecodeError::BadValue { what, value }
    }
}
