//! The live protocol, after NeREIDS: what servers and clients say to each other, as datagrams. `docs/wire.md` describes
//! every bit.
//!
//! No sockets and no clock: datagrams, times and addresses come in as arguments. Every datagram may be made by an
//! enemy: reading one never panics, allocates no more than it holds, and keeps nothing of one that is refused.
//!
//! [`ClientConnection`] and [`ServerConnection`] are the two ends of a connection, and [`Endpoint`] lets clients in. Whoever
//! drives them (sockets, virtual time) hands in what comes and sends what they put out. Within:
//!
//! - [`Endpoint`] and [`Connecting`] connect: a challenge, a place, a key.
//! - [`Sender`] and [`Receiver`] carry snapshots: each entity told from the last state that the client acked, lossless to
//!   the bit, the important and near ones first when there is no room for all.
//!   What is longer than a datagram goes as [`fragments`].
//! - [`encode_commands`] and [`decode_commands`] carry usercmds, each several times.

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
mod told;
mod track;
mod usercmd;
mod waiting;
mod wrapping;

pub(crate) use bound::{Besides, KNOWN_FOR, Known, snapshot_bytes_max, told_bytes_max};
pub use commands::{
    COMMANDS_MAX, ClientMessage, ClientReference, CommandsError, Perceived, decode_commands, encode_commands,
};
pub(crate) use connection::PACKETS_REMEMBERED;
pub use connection::{
    ClientConnection, ClientEvent, Lost, REQUESTS_MAX, Sent, ServerConnection, ServerEvent, TooManyRequests, Unusable,
};
pub use error::DecodeError;
pub(crate) use fragment::MESSAGE_BYTES_MAX;
pub use fragment::{Reassembled, Reassembly, fragments};
pub use handshake::{
    ASKED_BYTES_MAX, Accepted, CONFIRM_BYTES, ConnectOptions, Connecting, Endpoint, EndpointOptions, Ignored, Incoming,
    Outcome, Refusal, WELCOME_BYTES_MAX,
};
pub use header::{DATAGRAM_BYTES_MAX, FILTER, MessageType, SEAL_BYTES, VERSION, message_type, seal, unseal};
pub use key::Key;
pub use notice::{NOTICES_MAX, Notice, NoticeError, OutOfSeqWarning, TEXT_BYTES_MAX};
pub use priority::{OVERTAKES_AFTER, Urgency};
pub use receiver::{Decoded, Received, Receiver};
pub use request::{Leaving, Request, What, decode_disconnect, decode_request, encode_disconnect, encode_request};
pub use sender::{EncodeError, Encoded, Sender};
pub use told::Told;
pub use track::ReceivedSet;
pub(crate) use waiting::decode_waiting;
pub use waiting::{Waiting, encode_waiting};
pub use wrapping::Wrapping16;

/// How many snapshots back a base may be, and states are kept for; Quake's `UPDATE_BACKUP`.
pub const WINDOW: u32 = 64;

/// The most entities that a client keeps. A server that has more tells each client of those that matter to it.
pub const ENTITIES_MAX: usize = 16_384;
