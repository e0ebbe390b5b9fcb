//! Protocol 71 of Quake III's engine, decoded by an observer: datagrams, bits, deltas and messages. It follows the
//! public ioquake3 sources; each file names its source.

mod bits;
mod config_strings;
mod connection;
mod delta;
mod fields;
pub(super) mod huffman;
mod message;
mod netchan;
mod snapshot;

pub use bits::BitReadError;
pub use connection::UndecodedReason;
pub(crate) use connection::{DecodedDatagram, Quake3Connection};
pub use delta::DeltaError;
pub(crate) use delta::Quake3Usercmd;
pub(crate) use fields::*;
pub(crate) use message::Gamestate;
pub use message::MessageError;
pub use netchan::DatagramError;
pub(crate) use netchan::LONGEST_MESSAGE;
pub(crate) use snapshot::Quake3Snapshot;
#[cfg(test)]
pub(crate) use {
    bits::HuffmanReader,
    delta::{NO_ENTITY, hash_of_command, read_entity, read_player, read_usercmd},
};
