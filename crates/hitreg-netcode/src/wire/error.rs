//! Why a datagram is not believed.

use super::MessageType;
use crate::game::BadCells;
use hitreg_log::units::{EntityId, SnapshotSeq};

/// What is wrong with a datagram. Whoever receives one drops it; nothing that it said is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends in the middle of something.
    #[error("the datagram ends early")]
    TooShort,
    /// It goes on after its end.
    #[error("the datagram goes on after its end")]
    TrailingBits,
    /// It is not of this protocol.
    #[error("the datagram is of another protocol: its filter is {0:#010x}")]
    WrongFilter(u32),
    /// No message has this type.
    #[error("no message has type {0}")]
    UnknownType(u8),
    /// It is a message, but not the one that was asked for.
    #[error("the message is a {found:?}, not a {expected:?}")]
    WrongType {
        /// What was asked for.
        expected: MessageType,
        /// What it is.
        found: MessageType,
    },
    /// It was not made, or was changed, by someone without the session's key.
    #[error("the seal does not fit the datagram")]
    WrongSeal,
    /// A value that its field cannot have.
    #[error("{what} cannot be {value}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// No submessage has this type.
    #[error("no submessage has type {0}")]
    UnknownSubmessage(u8),
    /// An update starts from a state that is not known here.
    #[error("the update of entity {entity} starts from snapshot {base}, which is not known here")]
    MissingBase {
        /// The entity.
        entity: EntityId,
        /// The snapshot that carried the state.
        base: SnapshotSeq,
    },
    /// A snapshot is coded against one that is not known here.
    #[error("the snapshot is coded against snapshot {base}, which is not known here")]
    MissingFrame {
        /// The snapshot that it is coded against.
        base: SnapshotSeq,
    },
    /// More entities than a client keeps.
    #[error("more than {} entities", super::ENTITIES_MAX)]
    TooManyEntities,
    /// The cells of an entity are not a state of the game.
    #[error("entity {entity}: {cells}")]
    BadBody {
        /// The entity.
        entity: EntityId,
        /// What is wrong with them.
        cells: BadCells,
    },
}

impl DecodeError {
    pub(crate) const fn bad(what: &'static str, value: u64) -> DecodeError {
        DecodeError::BadValue { what, value }
    }
}
