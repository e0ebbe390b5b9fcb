//! What a client asks for outside of its usercmds, and how either side leaves. Requests are sent again until a
//! [`Notice::RequestAck`](super::Notice::RequestAck) answers them; the server answers each number once.

use super::bits::BitWriter;
use super::header::{begin, expect};
use super::notice::{get_bytes, get_text, put_text};
use super::{DecodeError, MessageType, Wrapping16};

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Counted per client; a repeat has the same number.
    pub number: Wrapping16,
    /// What is asked for.
    pub what: What,
}

/// What a client may ask for. Texts are of at most [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX); what is longer is cut at
/// a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// To say something out of character.
    ChatOoc {
        /// The channel.
        channel: u8,
        /// What is said.
        text: String,
    },
    /// To let the avatar say something.
    ChatIc {
        /// How: yelled, whispered, ...; the game's own numbering.
        style: u8,
        /// In which of the game's languages.
        language: u8,
        /// What is said.
        text: String,
    },
    /// Something of the game's own.
    Game {
        /// What; cut at [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX).
        bytes: Vec<u8>,
    },
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Whoever says it has done what it came for.
    Done,
    /// Nothing was heard from the other side for long.
    TimedOut,
    /// The other side sent what cannot be.
    Misbehaved,
}

/// Encodes a request; the datagram is to be sealed.
pub fn encode_request(request: &Request) -> Vec<u8> {
    let mut out = begin(MessageType::RequestFromClient);
    out.put(u64::from(request.number.0), 16);
    match &request.what {
        What::ChatOoc { channel, text } => {
            out.put(0, 8);
            out.put(u64::from(*channel), 8);
            put_cut(&mut out, text);
        }
        What::ChatIc { style, language, text } => {
            out.put(1, 8);
            out.put(u64::from(*style), 8);
            out.put(u64::from(*language), 8);
            put_cut(&mut out, text);
        }
        What::Game { bytes } => {
            out.put(2, 8);
            put_text(&mut out, bytes);
        }
    }
    out.into_bytes()
}

/// Decodes a request whose seal was checked.
///
/// # Errors
/// When it is not what a client would send.
pub fn decode_request(datagram: &[u8]) -> Result<Request, DecodeError> {
    let mut from = expect(datagram, MessageType::RequestFromClient)?;
    let number = Wrapping16(from.get_u16()?);
    let what = match from.get_u8()? {
        0 => What::ChatOoc { channel: from.get_u8()?, text: get_text(&mut from)? },
        1 => What::ChatIc { style: from.get_u8()?, language: from.get_u8()?, text: get_text(&mut from)? },
        2 => What::Game { bytes: get_bytes(&mut from)? },
        code => return Err(DecodeError::bad("a request", u64::from(code))),
    };
    from.finish()?;
    Ok(Request { number, what })
}

/// Encodes a farewell; the datagram is to be sealed.
pub fn encode_disconnect(why: Leaving) -> Vec<u8> {
    let mut out = begin(MessageType::Disconnect);
    out.put(why as u64, 8);
    out.into_bytes()
}

/// Decodes a farewell whose seal was checked.
///
/// # Errors
/// When it is none.
pub fn decode_disconnect(datagram: &[u8]) -> Result<Leaving, DecodeError> {
    let mut from = expect(datagram, MessageType::Disconnect)?;
    let why = match from.get_u8()? {
        0 => Leaving::Done,
        1 => Leaving::TimedOut,
        2 => Leaving::Misbehaved,
        code => return Err(DecodeError::bad("why a session ends", u64::from(code))),
    };
    from.finish()?;
    Ok(why)
}

fn put_cut(out: &mut BitWriter, text: &str) {
    put_text(out, &text.as_bytes()[..text.floor_char_boundary(super::TEXT_BYTES_MAX)]);
}
