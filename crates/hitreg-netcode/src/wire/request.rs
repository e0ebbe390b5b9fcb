//! Requests that a client makes outside its usercmds, and the farewell of either side. A client repeats a request until
//! a [`Notice::RequestAck`](super::Notice::RequestAck) acks it. The server answers each request number once.

use super::bits::BitWriter;
use super::header::{begin, expect};
use super::notice::{TEXT_COUNT_BITS, get_text, put_text};
use super::{DecodeError, MessageType, Wrapping16};

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// The number of the request, counted per client. A repeat has the same number.
    pub number: Wrapping16,
    /// The contents.
    pub what: RequestKind,
}

/// The kinds of request. Texts longer than [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX) bytes are cut at a character
/// boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// An out-of-character chat line.
    ChatOoc {
        /// The channel.
        channel: u8,
        /// The text.
        text: String,
    },
    /// An in-character chat line, spoken by the avatar.
    ChatIc {
        /// The style, such as yelled or whispered, in the game's own numbering.
        style: u8,
        /// The language, in the game's own numbering.
        language: u8,
        /// The text.
        text: String,
    },
    /// A game-defined request.
    Game {
        /// The contents, cut at [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX) bytes.
        bytes: Vec<u8>,
    },
}

/// The reason for ending a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The sender is done.
    Done,
    /// The other side was silent for too long.
    TimedOut,
    /// The other side sent invalid data.
    Misbehaved,
}

/// Encodes a request. The caller must seal the datagram.
pub fn encode_request(request: &ClientRequest) -> Vec<u8> {
    let mut out = begin(MessageType::RequestFromClient);
    out.put(u64::from(request.number.0), 16);
    match &request.what {
        RequestKind::ChatOoc { channel, text } => {
            out.put(0, 8);
            out.put(u64::from(*channel), 8);
            put_cut(&mut out, text);
        }
        RequestKind::ChatIc { style, language, text } => {
            out.put(1, 8);
            out.put(u64::from(*style), 8);
            out.put(u64::from(*language), 8);
            put_cut(&mut out, text);
        }
        RequestKind::Game { bytes } => {
            out.put(2, 8);
            put_text(&mut out, bytes);
        }
    }
    out.into_bytes()
}

/// Decodes a request whose seal was checked.
///
/// # Errors
/// When the datagram is not a valid request.
pub fn decode_request(datagram: &[u8]) -> Result<ClientRequest, DecodeError> {
    let mut from = expect(datagram, MessageType::RequestFromClient)?;
    let number = Wrapping16(from.get_u16()?);
    let what = match from.get_u8()? {
        0 => RequestKind::ChatOoc { channel: from.get_u8()?, text: get_text(&mut from)? },
        1 => RequestKind::ChatIc { style: from.get_u8()?, language: from.get_u8()?, text: get_text(&mut from)? },
        2 => RequestKind::Game { bytes: from.get_counted(TEXT_COUNT_BITS)? },
        code => return Err(DecodeError::bad("a request", u64::from(code))),
    };
    from.finish()?;
    Ok(ClientRequest { number, what })
}

/// Encodes a farewell. The caller must seal the datagram.
pub fn encode_disconnect(why: LeaveReason) -> Vec<u8> {
    let mut out = begin(MessageType::Disconnect);
    out.put(why as u64, 8);
    out.into_bytes()
}

/// Decodes a farewell whose seal was checked.
///
/// # Errors
/// When the datagram is not a farewell.
pub fn decode_disconnect(datagram: &[u8]) -> Result<LeaveReason, DecodeError> {
    let mut from = expect(datagram, MessageType::Disconnect)?;
    let why = match from.get_u8()? {
        0 => LeaveReason::Done,
        1 => LeaveReason::TimedOut,
        2 => LeaveReason::Misbehaved,
        code => return Err(DecodeError::bad("why a session ends", u64::from(code))),
    };
    from.finish()?;
    Ok(why)
}

fn put_cut(out: &mut BitWriter, text: &str) {
    put_text(out, &text.as_bytes()[..text.floor_char_boundary(super::TEXT_BYTES_MAX)]);
}
