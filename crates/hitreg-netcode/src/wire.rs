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
//! - [`encode_commands`] and [`decode_commands`] carry usercmds, each one in several packets.

mod bit_counts;
mod bits;
mod bound;
mod change;
mod commands;
mod connection;
mod entity;
mod error;
mod fragment;
mod frame;
mod handshake;
mod header;
mod key;
mod layout;
mod notice;
mod number;
mod page;
mod priority;
mod receiver;
mod request;
mod ring;
mod sender;
mod shared_states;
mod track;
mod transit;
mod usercmd;
mod waiting;
mod wrapping;

pub use bit_counts::SnapshotBitCounts;
pub(crate) use bound::{DeltaBase, DeltaBound, ExtraBits, KNOWN_FOR, snapshot_bytes_max};
pub use commands::{
    COMMANDS_MAX, ClientMessage, ClientReference, CommandsError, PerceivedAvatar, decode_commands, encode_commands,
};
pub(crate) use connection::PACKETS_REMEMBERED;
pub use connection::{
    ClientConnection, ClientEvent, DisconnectReason, QueuedSnapshot, REQUESTS_MAX, ServerConnection, ServerEvent,
    TooManyRequests, UnusableDatagram,
};
pub use error::DecodeError;
pub(crate) use fragment::MESSAGE_BYTES_MAX;
pub use fragment::{ReassembledMessage, Reassembly, fragments};
pub use handshake::{
    ASKED_BYTES_MAX, AcceptedConnection, CONFIRM_BYTES, ConnectMachine, ConnectOptions, ConnectOutcome, Endpoint,
    EndpointOptions, IgnoredReason, IncomingMessage, Refusal, WELCOME_BYTES_MAX,
};
pub use header::{DATAGRAM_BYTES_MAX, FILTER, MessageType, SEAL_BYTES, VERSION, message_type, seal, unseal};
pub use key::Key;
pub use notice::{NOTICES_MAX, Notice, NoticeError, OutOfSeqWarning, TEXT_BYTES_MAX};
pub use priority::{OVERTAKES_AFTER, Urgency};
pub use receiver::{DecodeOutcome, Receiver, ServerDatagram};
pub use request::{
    ClientRequest, LeaveReason, RequestKind, decode_disconnect, decode_request, encode_disconnect, encode_request,
};
pub use sender::{EncodeError, EncodedSnapshot, Sender};
pub use shared_states::SharedStates;
pub use track::ReceivedSet;
pub(crate) use transit::SavedDatagrams;
pub(crate) use usercmd::OWN_CELLS_MAX;
pub(crate) use waiting::decode_waiting;
pub use waiting::{ReadyCount, encode_waiting};
pub use wrapping::Wrapping16;

/// The number of snapshots for which both ends keep states; a delta base must be newer than this (Quake's
/// `UPDATE_BACKUP`).
pub const WINDOW: u32 = 64;

/// The most entities that a client keeps. A server with more entities sends each client the ones that matter to it.
pub const ENTITIES_MAX: usize = 16_384;
