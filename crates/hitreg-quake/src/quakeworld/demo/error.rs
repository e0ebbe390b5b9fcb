//! Errors of demos, with their byte offsets.

use crate::quakeworld::bytes::UnexpectedEnd;

/// Why a demo could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QwdError {
    /// The file ends inside a frame, or a message ends inside a value.
    #[error("byte {offset}: the data ends in the middle of a value")]
    Truncated {
        /// Offset of the value.
        offset: usize,
    },
    /// A frame has an unknown kind.
    #[error(
        "byte {offset}: {kind} is not a kind of frame (0 usercmd, 1 packet, 2 sequences): this is not a client demo, or it is damaged"
    )]
    UnknownFrame {
        /// Offset of the kind.
        offset: usize,
        /// The byte found.
        kind: u8,
    },
    /// A block of a server's demo has an unknown kind.
    #[error("byte {offset}: {kind} is not a kind of block of a server's demo: the demo is damaged")]
    UnknownBlock {
        /// Offset of the kind.
        offset: usize,
        /// The number found.
        kind: u8,
    },
    /// A frame has a length above the limit of clients.
    #[error("byte {offset}: a packet of {length} bytes; the protocol's limit is {limit}")]
    PacketLength {
        /// Offset of the length.
        offset: usize,
        /// The length found.
        length: i32,
        /// The longest packet.
        limit: usize,
    },
    /// The server uses another protocol version.
    #[error("byte {offset}: protocol version {version}; only QuakeWorld's 28 can be read")]
    OtherProtocol {
        /// Offset of the version.
        offset: usize,
        /// The version found.
        version: i32,
    },
    /// A proxy took the server's place in the recording.
    #[error("byte {offset}: this demo was recorded through the proxy {name}: its acks are not the server's")]
    Proxy {
        /// Offset at which the proxy appears.
        offset: usize,
        /// Name of the proxy.
        name: &'static str,
    },
    /// A message has a number that QuakeWorld 2.x and its known extensions do not define.
    #[error("byte {offset}: {kind} is not a known message: the demo is damaged, or of a modified protocol")]
    UnknownMessage {
        /// Offset of the message.
        offset: usize,
        /// Number of the message.
        kind: u8,
    },
    /// A number is out of bounds.
    #[error("byte {offset}: {what} is {value}, and must be below {limit}")]
    OutOfBounds {
        /// Offset of the number.
        offset: usize,
        /// The counted quantity.
        what: &'static str,
        /// The number found.
        value: i64,
        /// The smallest number that is too large.
        limit: i64,
    },
    /// A value is not a finite number.
    #[error("byte {offset}: {what} is not a finite number")]
    NotFinite {
        /// Offset of the value.
        offset: usize,
        /// The measured quantity.
        what: &'static str,
    },
    /// The file contains no game: no server data, or no player.
    #[error("this demo has no {missing}, so there is nothing to import")]
    Nothing {
        /// The missing part.
        missing: &'static str,
    },
}

/// What a reader of a demo returns.
pub(crate) type QwdResult<T = ()> = Result<T, QwdError>;

impl From<UnexpectedEnd> for QwdError {
    fn from(end: UnexpectedEnd) -> QwdError {
        QwdError::Truncated { offset: end.offset }
    }
}
