//! What can be wrong with a demo, in sentences with the byte offset.

use crate::quakeworld::bytes::End;

/// Why a `.qwd` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QwdError {
    /// The file ends inside a frame, or a message ends inside a value.
    #[error("byte {offset}: the data ends in the middle of a value")]
    Truncated {
        /// Where the value starts.
        offset: usize,
    },
    /// Not one of the three kinds of frame.
    #[error(
        "byte {offset}: {kind} is no kind of frame (0 usercmd, 1 packet, 2 sequences): this is no client demo, or it is damaged"
    )]
    UnknownFrame {
        /// Where the kind stands.
        offset: usize,
        /// The byte found.
        kind: u8,
    },
    /// Not one of the kinds of block of a server's demo.
    #[error("byte {offset}: {kind} is no kind of block of a server's demo: it is damaged")]
    UnknownBlock {
        /// Where the kind stands.
        offset: usize,
        /// The number found.
        kind: u8,
    },
    /// A frame announces more than any client accepts.
    #[error("byte {offset}: a packet of {length} bytes; the protocol's limit is {limit}")]
    PacketLength {
        /// Where the length stands.
        offset: usize,
        /// The length found.
        length: i32,
        /// The longest packet.
        limit: usize,
    },
    /// The server speaks another protocol.
    #[error("byte {offset}: protocol version {version}; only QuakeWorld's 28 can be read")]
    OtherProtocol {
        /// Where the version stands.
        offset: usize,
        /// The version found.
        version: i32,
    },
    /// Recorded through a proxy, which answers in the server's place.
    #[error("byte {offset}: this demo was recorded through the proxy {name}: its acks are not the server's")]
    Proxy {
        /// Where the proxy shows.
        offset: usize,
        /// Which one.
        name: &'static str,
    },
    /// A message that QuakeWorld 2.x and its known extensions do not have.
    #[error("byte {offset}: {kind} is no message that can be read here")]
    UnknownMessage {
        /// Where the message starts.
        offset: usize,
        /// Its number.
        kind: u8,
    },
    /// A number out of its bounds.
    #[error("byte {offset}: {what} is {value}, and must be below {limit}")]
    OutOfBounds {
        /// Where the number stands.
        offset: usize,
        /// What it counts.
        what: &'static str,
        /// The number found.
        value: i64,
        /// The first number that is too large.
        limit: i64,
    },
    /// A value that is not a number where one is needed.
    #[error("byte {offset}: {what} is not a finite number")]
    NotFinite {
        /// Where the value stands.
        offset: usize,
        /// What it measures.
        what: &'static str,
    },
    /// The file holds no game: no server data, or nobody playing.
    #[error("this demo holds no {missing}: there is nothing to import")]
    Nothing {
        /// What was looked for.
        missing: &'static str,
    },
}

impl From<End> for QwdError {
    fn from(end: End) -> QwdError {
        QwdError::Truncated { offset: end.offset }
    }
}
