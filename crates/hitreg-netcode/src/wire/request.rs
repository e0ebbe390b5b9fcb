//! A client's requests, the farewell of either side, and the message before a session begins. The client repeats each
//! request until a `REQUEST_ACK` answers it; the server acts on each once, in order.

use std::collections::VecDeque;

use super::datagram::{begin, expect};
use super::notice::{TEXT_BYTES_MAX, TEXT_COUNT_BITS, get_text};
use super::{DecodeError, MessageType, Wrapping16};
use crate::state::{StateError, StateReader, StateValue, StateWriter, value};
use hitreg_log::units::Micros;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// The number of the request, counted per client. A repeat has the same number.
    pub number: Wrapping16,
    /// The contents.
    pub what: RequestKind,
}

/// The kinds of request. Texts longer than [`TEXT_BYTES_MAX`] bytes are cut at a character
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
        /// The contents, cut at [`TEXT_BYTES_MAX`] bytes.
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
            out.put_text(text, TEXT_BYTES_MAX, TEXT_COUNT_BITS);
        }
        RequestKind::ChatIc { style, language, text } => {
            out.put(1, 8);
            out.put(u64::from(*style), 8);
            out.put(u64::from(*language), 8);
            out.put_text(text, TEXT_BYTES_MAX, TEXT_COUNT_BITS);
        }
        RequestKind::Game { bytes } => {
            out.put(2, 8);
            out.put_counted(bytes, TEXT_BYTES_MAX, TEXT_COUNT_BITS);
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
    let code = from.get_u8()?;
    let why = [LeaveReason::Done, LeaveReason::TimedOut, LeaveReason::Misbehaved].get(usize::from(code)).copied();
    let why = why.ok_or(DecodeError::bad("why a session ends", u64::from(code)))?;
    from.finish()?;
    Ok(why)
}

/// A client sends at most one request in this time, new or repeated; a server that gets no ack, one datagram of notices.
pub(super) const AGAIN_AFTER: Micros = Micros::from_ms(250);
/// The most requests that may wait for an answer.
pub const REQUESTS_MAX: usize = 64;

/// Too many of the client's requests are unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{REQUESTS_MAX} requests wait for the server's answers already")]
pub struct TooManyRequests;

/// The client side: the unanswered requests. Only the first of them is sent at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestQueue {
    next: Wrapping16,
    waiting: VecDeque<ClientRequest>,
    /// When a request was last sent.
    sent_at: Option<Micros>,
}

impl RequestQueue {
    fn is_valid(&self) -> bool {
        self.waiting.len() <= REQUESTS_MAX
    }

    pub(super) fn push(&mut self, what: RequestKind) -> Result<Wrapping16, TooManyRequests> {
        if self.waiting.len() >= REQUESTS_MAX {
            return Err(TooManyRequests);
        }
        let number = self.next;
        self.next = number.later(1);
        self.waiting.push_back(ClientRequest { number, what });
        Ok(number)
    }

    /// Returns the request to send now.
    pub(super) fn poll(&mut self, now: Micros) -> Option<&ClientRequest> {
        let first = self.waiting.front()?;
        if self.sent_at.is_some_and(|sent| now - sent < AGAIN_AFTER) {
            return None;
        }
        self.sent_at = Some(now);
        Some(first)
    }

    pub(super) fn handle_answer(&mut self, number: Wrapping16) {
        self.waiting.pop_front_if(|first| first.number == number);
    }
}

value!(RequestQueue { next, waiting, sent_at } if is_valid);

impl StateValue for ClientRequest {
    fn put(&self, to: &mut StateWriter) {
        encode_request(self).put(to);
    }

    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        decode_request(&Vec::get(from)?).map_err(|_| StateError::Invalid("ClientRequest"))
    }
}

/// The number of ready players, and the number that the session waits for. A client reports only itself: 0 or 1 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyCount {
    /// The number of ready players.
    pub ready: u16,
    /// The number of players that the session waits for.
    pub slots: u16,
}

/// Encodes the message. The caller must seal the datagram.
pub fn encode_waiting(waiting: ReadyCount) -> Vec<u8> {
    let mut out = begin(MessageType::Waiting);
    out.put(u64::from(waiting.ready), 16);
    out.put(u64::from(waiting.slots), 16);
    out.into_bytes()
}

/// Decodes the message from a datagram whose seal was checked.
///
/// # Errors
/// When the datagram is not a valid `Waiting` message.
pub(crate) fn decode_waiting(datagram: &[u8]) -> Result<ReadyCount, DecodeError> {
    let mut from = expect(datagram, MessageType::Waiting)?;
    let waiting = ReadyCount { ready: from.get_u16()?, slots: from.get_u16()? };
    from.finish()?;
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_messages_survive_a_round_trip() {
        let waiting = ReadyCount { ready: 3, slots: 8 };
        assert_eq!(decode_waiting(&encode_waiting(waiting)), Ok(waiting));
        assert!(decode_waiting(&encode_waiting(waiting)[..8]).is_err());
    }
}
