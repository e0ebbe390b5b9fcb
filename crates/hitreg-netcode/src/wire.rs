//! The live wire protocol, modelled on NeREIDS: the datagrams that servers and clients exchange. `docs/wire.md`
//! describes every bit.
//!
//! The module has no sockets and no clock: datagrams, times and addresses come in as arguments. It treats every
//! datagram as hostile. A decoder never panics, allocates no more than the datagram holds, and keeps nothing of a
//! datagram that it refuses.
//!
//! [`ClientConnection`] and [`ServerConnection`] are the two ends of a connection, and [`Endpoint`] admits clients. A
//! driver (sockets or virtual time) passes incoming datagrams to them and sends the datagrams that they return. The
//! parts:
//!
//! - [`Endpoint`] and [`ConnectMachine`] do the handshake: a challenge, a slot, a key.
//! - [`Sender`] and [`Receiver`] carry snapshots. Each entity is delta-coded without loss against the last state that
//!   the client acked. When the message has no room for all entities, important and near ones go first. Messages longer
//!   than one datagram go as [`fragments`].
//! - Notices (request acks and chat) have datagrams of their own, so that they influence no snapshot.
//! - [`encode_commands`] and [`decode_commands`] carry usercmds, each one in several packets.

mod bits;
mod bound;
mod client_connection;
mod commands;
mod datagram;
mod entity;
mod handshake;
mod message;
mod notice;
mod receiver;
mod request;
mod sender;
mod server_connection;
mod track;
mod transit;

pub(crate) use bound::{DeltaBase, DeltaBound, ExtraCounts, KNOWN_FOR, snapshot_bytes_max};
pub use client_connection::{ClientConnection, ClientEvent, DisconnectReason};
pub(crate) use commands::OWN_CELLS_MAX;
pub use commands::{
    COMMANDS_MAX, ClientMessage, ClientReference, CommandsError, PerceivedAvatar, decode_commands, encode_commands,
};
pub(crate) use datagram::MESSAGE_BYTES_MAX;
pub use datagram::{
    DATAGRAM_BYTES_MAX, FILTER, Key, MessageType, ReassembledMessage, Reassembly, SEAL_BYTES, VERSION, fragments,
    message_type, seal, unseal,
};
pub use handshake::{
    AcceptedConnection, CONFIRM_BYTES, ConnectMachine, ConnectOptions, ConnectOutcome, Endpoint, EndpointOptions,
    IgnoredReason, IncomingMessage, REQUEST_DATA_BYTES_MAX, Refusal, WELCOME_BYTES_MAX,
};
pub use message::SnapshotBitCounts;
pub use notice::{NOTICES_MAX, Notice, NoticeError, OutOfSeqWarning, TEXT_BYTES_MAX};
pub use receiver::{DecodeOutcome, Receiver, ServerDatagram};
pub use request::{
    ClientRequest, LeaveReason, REQUESTS_MAX, ReadyCount, RequestKind, TooManyRequests, decode_disconnect,
    decode_request, encode_disconnect, encode_request, encode_waiting,
};
pub use sender::{EncodeError, EncodedSnapshot, OVERTAKES_AFTER, Sender, Urgency};
pub(crate) use server_connection::PACKETS_REMEMBERED;
pub use server_connection::{QueuedSnapshot, ServerConnection, ServerEvent, UnusableDatagram};
pub use track::{ReceivedSet, SharedStates};
pub(crate) use transit::SavedDatagrams;

use crate::game::BadCells;
use hitreg_log::units::{EntityId, SnapshotSeq};

/// The number of snapshots for which both ends keep states; a delta base must be newer than this (Quake's
/// `UPDATE_BACKUP`).
pub const WINDOW: u32 = 64;

/// The most entities that a client keeps. A server with more entities sends each client the ones that matter to it.
pub const ENTITIES_MAX: usize = 16_384;

/// The reason why a datagram is invalid. The receiver drops such a datagram and keeps nothing of its contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// The client would have to keep more than [`ENTITIES_MAX`] entities.
    #[error("more than {ENTITIES_MAX} entities")]
    TooManyEntities,
    /// The cells of an entity are not a valid state of the game.
    #[error("entity {entity}: {cells}")]
    BadBody {
        /// The entity.
        entity: EntityId,
        /// The error that the game found in the cells.
        #[source]
        cells: BadCells,
    },
}

impl DecodeError {
    pub(crate) const fn bad(what: &'static str, value: u64) -> DecodeError {
        DecodeError::BadValue { what, value }
    }
}

/// The low 16 bits of a counter. At 31.25 ticks a second (32 ms, as in NeREIDS) it wraps every 35 minutes. It has a
/// meaning only relative to an index or counter less than 2^15 away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wrapping16(pub u16);

impl Wrapping16 {
    /// Returns the low 16 bits of a counter.
    pub const fn of(counter: u32) -> Wrapping16 {
        Wrapping16(counter as u16)
    }

    /// Returns how many steps `self` is after `other`; negative when it is before. A distance of exactly 2^15 reads as
    /// -32768.
    pub const fn distance_from(self, other: Wrapping16) -> i16 {
        self.0.wrapping_sub(other.0) as i16
    }

    /// Returns whether `self` comes after `other`. Of two indices exactly 2^15 apart, neither is newer.
    pub const fn is_newer_than(self, other: Wrapping16) -> bool {
        self.distance_from(other) > 0
    }

    /// Returns the index `steps` later.
    pub const fn later(self, steps: u16) -> Wrapping16 {
        Wrapping16(self.0.wrapping_add(steps))
    }

    /// Returns the counter that ends in these bits and is nearest to `reference`: from `reference - 32768` to
    /// `reference + 32767`. Returns `None` when that counter does not fit into a `u32`.
    pub const fn unwrap_near(self, reference: u32) -> Option<u32> {
        reference.checked_add_signed(self.distance_from(Wrapping16::of(reference)) as i32)
    }

    /// Returns the counter near `reference`, as [`Wrapping16::unwrap_near`] does. The error names `what` it counts.
    pub(super) fn counter_near(self, reference: u32, what: &'static str) -> Result<u32, DecodeError> {
        self.unwrap_near(reference).ok_or(DecodeError::bad(what, self.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn newer_numbers_are_recognized_across_every_wrap() {
        for start in 0..=u16::MAX {
            let index = Wrapping16(start);
            assert!(index.later(1).is_newer_than(index));
            assert!(index.later(32_767).is_newer_than(index));
            assert!(!index.later(32_768).is_newer_than(index));
            assert!(!index.is_newer_than(index.later(32_768)));
            assert!(!index.later(32_769).is_newer_than(index));
            assert!(index.is_newer_than(index.later(32_769)));
            assert!(!index.is_newer_than(index));
            assert_eq!(index.later(7).distance_from(index), 7);
            assert_eq!(index.distance_from(index.later(7)), -7);
        }
    }

    #[test]
    fn counters_are_unwrapped_around_every_wrap() {
        for wrap in 1..=u32::from(u16::MAX) {
            let edge = wrap << 16;
            for (reference, counter) in [(edge - 1, edge), (edge, edge - 1), (edge + 5, edge - 3), (edge - 3, edge + 5)]
            {
                assert_eq!(Wrapping16::of(counter).unwrap_near(reference), Some(counter));
            }
            assert_eq!(Wrapping16::of(edge - 32_768).unwrap_near(edge), Some(edge - 32_768));
            assert_eq!(Wrapping16::of(edge + 32_767).unwrap_near(edge), Some(edge + 32_767));
            assert_eq!(Wrapping16::of(edge - 32_769).unwrap_near(edge), edge.checked_add(32_767));
        }
    }

    #[test]
    fn impossible_counters_give_none() {
        assert_eq!(Wrapping16(65_535).unwrap_near(3), None);
        assert_eq!(Wrapping16(2).unwrap_near(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn near_counters_are_restored(counter in any::<u32>(), off in -32_767i32..=32_768) {
            if let Some(reference) = counter.checked_add_signed(off) {
                prop_assert_eq!(Wrapping16::of(counter).unwrap_near(reference), Some(counter));
            }
        }
    }
}
