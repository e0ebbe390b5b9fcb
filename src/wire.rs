//! The live protocol, after NeREIDS: what servers and clients say to each other, as datagrams. `docs/wire.md` describes
//! every bit.
//!
//! No sockets and no clock: datagrams, times and addresses come in as arguments. Every datagram may be made by an
//! enemy: reading one never panics, allocates no more than it holds, and keeps nothing of one that is refused.
//!
//! - [`Lobby`] and [`Knock`] connect: a challenge, a place, a key.
//! - [`Sender`] and [`Receiver`] carry snapshots: each entity told from the last state that the client acked, lossless to
//!   the bit, the important and near ones first when there is no room for all.
//!   What is longer than a datagram goes as [`fragments`].
//! - [`encode_commands`] and [`decode_commands`] carry usercmds, each several times; [`Redundancy`] says how often.
//! - [`Calibration`] and [`Steering`] bring a client's frames to the server in time.

mod bits;
mod calibration;
mod change;
mod commands;
mod entity;
mod error;
mod fragment;
mod frame;
mod handshake;
mod header;
mod layout;
mod notice;
mod number;
mod priority;
mod receiver;
mod redundancy;
mod request;
mod ring;
mod sender;
mod siphash;
mod steering;
mod track;
mod usercmd;
mod waiting;
mod wrapping;

pub use calibration::{CALIBRATION_FRAMES, Calibration};
pub use commands::{
    COMMANDS_MAX, ClientMessage, ClientReference, CommandsError, Perceived, decode_commands, encode_commands,
};
pub use error::DecodeError;
pub use fragment::{FRAGMENTS_MAX, MESSAGE_BYTES_MAX, Reassembled, Reassembly, fragments};
pub use handshake::{
    CONFIRM_BYTES, GAME_NAME_BYTES_MAX, Heard, Ignored, Knock, KnockOptions, Lobby, LobbyOptions, Outcome,
    REQUEST_BYTES, Refusal, Session, WELCOME_BYTES_MAX,
};
pub use header::{DATAGRAM_BYTES_MAX, FILTER, MessageType, SEAL_BYTES, VERSION, message_type, seal, unseal};
pub(crate) use layout::Layout;
pub use layout::{Networked, Role};
pub use notice::{NOTICES_MAX, Notice, NoticeError, OutOfSeqWarning, TEXT_BYTES_MAX};
pub use priority::OVERTAKES_AFTER;
pub use receiver::{Decoded, Received, Receiver};
pub use redundancy::{Redundancy, RedundancyOptions};
pub use request::{Leaving, Request, What, decode_disconnect, decode_request, encode_disconnect, encode_request};
pub use sender::{EncodeError, Encoded, Sender};
pub use siphash::Key;
pub use steering::{Steering, SteeringOptions};
pub use track::ReceivedSet;
pub use waiting::{Waiting, decode_waiting, encode_waiting};
pub use wrapping::Wrapping16;

/// How many snapshots back a base may be, and states are kept for; Quake's `UPDATE_BACKUP`.
pub const WINDOW: u32 = 64;

/// The most entities that a client keeps.
pub const ENTITIES_MAX: usize = 1024;
