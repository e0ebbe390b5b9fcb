//! Contents of a server's datagrams that are not entity states. Notices (request acks and chat) have datagrams of their
//! own, which are repeated until the client acks them. The client reads each notice once and in order. Warnings and
//! effects are submessages of a snapshot, and are sent once.
//!
//! No log holds notices, so they must not influence snapshots: they take neither their room nor their rate.

use std::collections::VecDeque;

use glam::Vec3;

use super::bits::{BitReader, BitWriter};
use super::bits::{get_maybe_changed, get_varint, put_maybe_changed, put_varint};
use super::datagram::{DATAGRAM_BYTES_MAX, SEAL_BYTES, begin, expect};
use super::request::AGAIN_AFTER;
use super::{DecodeError, MessageType, Wrapping16};
use crate::game::{CellKind, Effect};
use crate::packet::Echo;
use crate::state::{value, variants};
use hitreg_log::units::{EntityId, Micros};

/// The longest text or answer, in bytes.
pub const TEXT_BYTES_MAX: usize = 127;
/// The bits of the length of a text or answer.
pub(super) const TEXT_COUNT_BITS: u32 = 7;
/// The most chat lines that may wait for a client's ack. The ack of its request has room besides them.
pub const NOTICES_MAX: usize = 64;
/// The chunk size of an entity id, which is a varint.
pub(crate) const ID_CHUNK_BITS: u32 = 5;

/// The 4-bit types of submessages and notices.
pub(crate) mod kind {
    pub(crate) const FRAME: u64 = 0;
    pub(crate) const OUT_OF_SEQ_WARNING: u64 = 1;
    pub(crate) const ENTITY_DEFINITION: u64 = 2;
    pub(crate) const ENTITY_UPDATE: u64 = 3;
    pub(crate) const ENTITY_REMOVAL: u64 = 4;
    pub(crate) const REQUEST_ACK: u64 = 5;
    pub(crate) const CHAT_EVENT_OOC: u64 = 6;
    pub(crate) const CHAT_EVENT_IC: u64 = 7;
    pub(crate) const EFFECT: u64 = 8;
    pub(crate) const PACKET_ECHO: u64 = 9;
}

/// `OUT_OF_SEQ_WARNING`: the client's last usercmd arrived too early or too late to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfSeqWarning {
    /// The index of that usercmd.
    pub index: Wrapping16,
    /// Number of ticks by which the usercmd was ahead of the server's next tick. Below 0 it was too late; by more than
    /// 1.024 s it was too early.
    pub difference: i16,
}

/// A message that a client receives reliably, once and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `REQUEST_ACK`: the answer to a client's request.
    RequestAck {
        /// The number of the request.
        request: Wrapping16,
        /// The answer, at most [`TEXT_BYTES_MAX`] bytes.
        answer: Vec<u8>,
    },
    /// `CHAT_EVENT_OOC`: an out-of-character chat line.
    ChatOoc {
        /// The connection of the speaker; 0 is the server.
        sender: u16,
        /// The channel.
        channel: u8,
        /// The text, at most [`TEXT_BYTES_MAX`] bytes.
        text: String,
    },
    /// `CHAT_EVENT_IC`: an in-character chat line.
    ChatIc {
        /// The speaking entity.
        entity: EntityId,
        /// The style, such as yelled or whispered, in the game's own numbering.
        style: u8,
        /// The language, in the game's own numbering.
        language: u8,
        /// The text, at most [`TEXT_BYTES_MAX`] bytes.
        text: String,
    },
}

/// The reasons for refusing a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoticeError {
    /// The text is too long.
    #[error("a text of {0} bytes: at most {TEXT_BYTES_MAX} go")]
    TooLong(usize),
    /// Too many notices wait for the client's ack.
    #[error("too many notices wait for the client's ack")]
    Full,
}

/// The server's unacked notices for one client.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    /// The number of the oldest waiting notice, or of the next one when none waits.
    first: Wrapping16,
    waiting: VecDeque<Notice>,
    /// When waiting notices were last sent; `None` after an ack.
    sent_at: Option<Micros>,
}

/// How many notices wait at most: all chat, and one ack, because a client makes one request at a time.
const WAITING_MAX: usize = NOTICES_MAX + 1;

/// The index of the byte that holds the number of notices in a datagram.
const COUNT_AT_BYTE: usize = 7;

impl Outbox {
    fn is_valid(&self) -> bool {
        self.waiting.len() <= WAITING_MAX && self.waiting.iter().all(|notice| notice.bytes().len() <= TEXT_BYTES_MAX)
    }

    pub(super) fn push(&mut self, notice: Notice) -> Result<(), NoticeError> {
        let length = notice.bytes().len();
        if length > TEXT_BYTES_MAX {
            return Err(NoticeError::TooLong(length));
        }
        // Chat leaves room for the ack.
        let waiting_max = if matches!(notice, Notice::RequestAck { .. }) { WAITING_MAX } else { NOTICES_MAX };
        if self.waiting.len() >= waiting_max {
            return Err(NoticeError::Full);
        }
        self.waiting.push_back(notice);
        Ok(())
    }

    /// Returns whether the ack of a request waits.
    pub(super) fn acks_request(&self) -> bool {
        self.waiting.iter().any(|notice| matches!(notice, Notice::RequestAck { .. }))
    }

    /// Returns the datagram to send at `now`, not yet sealed: the oldest waiting notices, as many as fit.
    pub(super) fn poll(&mut self, now: Micros) -> Option<Vec<u8>> {
        if self.waiting.is_empty() || self.sent_at.is_some_and(|sent| now - sent < AGAIN_AFTER) {
            return None;
        }
        self.sent_at = Some(now);
        let mut out = begin(MessageType::Notices);
        out.put(u64::from(self.first.0), 16);
        debug_assert_eq!(out.len_bits(), COUNT_AT_BYTE * 8);
        out.put(0, 8);
        let mut count = 0;
        for notice in &self.waiting {
            let before = out.len_bits();
            notice.put(&mut out);
            if out.len_bits() > 8 * (DATAGRAM_BYTES_MAX - SEAL_BYTES) {
                out.cut_to(before);
                break;
            }
            count += 1;
        }
        out.replace_byte(COUNT_AT_BYTE, count);
        Some(out.into_bytes())
    }

    /// Drops the notices before `next`, which the client has received.
    pub(super) fn handle_ack(&mut self, next: Wrapping16) {
        while next.is_newer_than(self.first) && self.waiting.pop_front().is_some() {
            self.first = self.first.later(1);
            self.sent_at = None;
        }
    }
}

/// Decodes the notices of a datagram whose seal was checked, with their numbers.
pub(super) fn decode_notices(datagram: &[u8]) -> Result<Vec<(Wrapping16, Notice)>, DecodeError> {
    let mut from = expect(datagram, MessageType::Notices)?;
    let first = Wrapping16(from.get_u16()?);
    let count = u16::from(from.get_u8()?);
    let notices: Vec<_> =
        (0..count).map(|i| Ok((first.later(i), Notice::get(&mut from)?))).collect::<Result<_, _>>()?;
    from.finish()?;
    Ok(notices)
}

/// Encodes a client's ack of all notices before `next`. The caller must seal the datagram.
pub(super) fn encode_notices_ack(next: Wrapping16) -> Vec<u8> {
    let mut out = begin(MessageType::NoticesAck);
    out.put(u64::from(next.0), 16);
    out.into_bytes()
}

/// Decodes an ack whose seal was checked.
pub(super) fn decode_notices_ack(datagram: &[u8]) -> Result<Wrapping16, DecodeError> {
    let mut from = expect(datagram, MessageType::NoticesAck)?;
    let next = Wrapping16(from.get_u16()?);
    from.finish()?;
    Ok(next)
}

value!(OutOfSeqWarning { index, difference });
value!(Outbox { first, waiting, sent_at } if is_valid);
variants!(Notice {
    0 => RequestAck { request, answer },
    1 => ChatOoc { sender, channel, text },
    2 => ChatIc { entity, style, language, text },
});

impl Notice {
    fn put(&self, out: &mut BitWriter) {
        let kind = match self {
            Notice::RequestAck { .. } => kind::REQUEST_ACK,
            Notice::ChatOoc { .. } => kind::CHAT_EVENT_OOC,
            Notice::ChatIc { .. } => kind::CHAT_EVENT_IC,
        };
        out.put(kind, 4);
        match self {
            Notice::RequestAck { request, .. } => out.put(u64::from(request.0), 16),
            Notice::ChatOoc { sender, channel, .. } => {
                out.put(u64::from(*sender), 16);
                out.put(u64::from(*channel), 8);
            }
            Notice::ChatIc { entity, style, language, .. } => {
                put_varint(out, u64::from(entity.0), ID_CHUNK_BITS);
                out.put(u64::from(*style), 8);
                out.put(u64::from(*language), 8);
            }
        }
        out.put_counted(self.bytes(), TEXT_BYTES_MAX, TEXT_COUNT_BITS);
    }

    fn get(from: &mut BitReader<'_>) -> Result<Notice, DecodeError> {
        let notice = match from.get(4)? {
            kind::REQUEST_ACK => {
                Notice::RequestAck { request: Wrapping16(from.get_u16()?), answer: from.get_counted(TEXT_COUNT_BITS)? }
            }
            kind::CHAT_EVENT_OOC => {
                Notice::ChatOoc { sender: from.get_u16()?, channel: from.get_u8()?, text: get_text(from)? }
            }
            kind::CHAT_EVENT_IC => Notice::ChatIc {
                entity: get_entity(from)?,
                style: from.get_u8()?,
                language: from.get_u8()?,
                text: get_text(from)?,
            },
            unknown => return Err(DecodeError::bad("the type of a notice", unknown)),
        };
        Ok(notice)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Notice::RequestAck { answer, .. } => answer,
            Notice::ChatOoc { text, .. } | Notice::ChatIc { text, .. } => text.as_bytes(),
        }
    }
}

impl OutOfSeqWarning {
    pub(crate) fn put(&self, out: &mut BitWriter) {
        out.put(kind::OUT_OF_SEQ_WARNING, 4);
        out.put(u64::from(self.index.0), 16);
        out.put(u64::from(self.difference as u16), 16);
    }

    pub(crate) fn get(from: &mut BitReader<'_>) -> Result<OutOfSeqWarning, DecodeError> {
        Ok(OutOfSeqWarning { index: Wrapping16(from.get_u16()?), difference: from.get_u16()? as i16 })
    }
}

impl Echo {
    pub(crate) fn put(self, out: &mut BitWriter) {
        out.put(kind::PACKET_ECHO, 4);
        for number in [self.packet, self.held_ms, self.lost] {
            out.put(u64::from(number), 16);
        }
    }

    /// Reads an echo after its type.
    pub(crate) fn get(from: &mut BitReader<'_>) -> Result<Echo, DecodeError> {
        Ok(Echo { packet: from.get_u16()?, held_ms: from.get_u16()?, lost: from.get_u16()? })
    }
}

/// Writes an effect. Its origin is coded relative to `near`: its entity's origin, when the same datagram carries that
/// entity.
pub(crate) fn put_effect(out: &mut BitWriter, effect: &Effect, near: Option<Vec3>) {
    out.put(kind::EFFECT, 4);
    out.put(u64::from(effect.kind), 8);
    put_varint(out, u64::from(effect.entity.0), ID_CHUNK_BITS);
    out.put_bool(effect.predictable);
    out.put_bool(near.is_some());
    for (old, new) in near.unwrap_or(Vec3::ZERO).to_array().into_iter().zip(effect.at.to_array()) {
        put_maybe_changed(out, CellKind::F32, old.to_bits(), new.to_bits());
    }
}

/// Reads an effect after its type. `carried` returns the origin of an entity that the same datagram carries.
pub(crate) fn get_effect(
    from: &mut BitReader<'_>,
    carried: impl Fn(EntityId) -> Option<Vec3>,
) -> Result<Effect, DecodeError> {
    let kind = from.get_u8()?;
    let entity = get_entity(from)?;
    let predictable = from.get_bool()?;
    let near = match from.get_bool()? {
        true => carried(entity).ok_or(DecodeError::bad("the entity of an effect", u64::from(entity.0)))?,
        false => Vec3::ZERO,
    };
    let mut at = near.to_array();
    for axis in &mut at {
        *axis = f32::from_bits(get_maybe_changed(from, CellKind::F32, axis.to_bits())?);
    }
    Ok(Effect { kind, entity, at: Vec3::from_array(at), predictable })
}

pub(crate) fn get_entity(from: &mut BitReader<'_>) -> Result<EntityId, DecodeError> {
    let id = get_varint(from, ID_CHUNK_BITS)?;
    u16::try_from(id).map(EntityId).map_err(|_| DecodeError::bad("an entity's id", id))
}

pub(crate) fn get_text(from: &mut BitReader<'_>) -> Result<String, DecodeError> {
    let bytes = from.get_counted(TEXT_COUNT_BITS)?;
    String::from_utf8(bytes).map_err(|e| DecodeError::bad("a byte of text", e.utf8_error().valid_up_to() as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_notices_an_ack_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let datagram = |of| [begin(of).into_bytes(), bytes.clone()].concat();
            let notices = decode_notices(&datagram(MessageType::Notices));
            prop_assert!(notices.is_err() || bytes.len() >= 3, "{notices:?}");
            let next = decode_notices_ack(&datagram(MessageType::NoticesAck));
            prop_assert_eq!(next.is_ok(), bytes.len() == 2);
            prop_assert!(decode_notices(&datagram(MessageType::NoticesAck)).is_err());
        }
    }
}
