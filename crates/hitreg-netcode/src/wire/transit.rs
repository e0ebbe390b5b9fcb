//! Datagrams in transit, for a keyframe. A datagram consists of states, usercmds and effects that the log nearly always
//! has near the keyframe, so it is saved by its parts and encoded again.

use super::bits::BitWriter;
use super::datagram::{Reassembly, seal, unseal};
use super::entity::get_base;
use super::message::{AckedSnapshot, COUNT_AT_BYTE, FrameInfo, OpenedMessage, open_message};
use super::notice::{OutOfSeqWarning, get_effect, get_entity, kind, put_effect};
use super::sender::controller;
use super::{
    ClientMessage, ClientReference, MessageType, ServerConnection, WINDOW, decode_commands, encode_commands, fragments,
    message_type,
};
use crate::game::{Body, Effect};
use crate::packet::Echo;
use crate::state::{KnownRecords, StateError, value, variants};
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, SnapshotSeq};

/// Datagrams of one packet or snapshot that are on their way, for a keyframe.
pub(crate) enum SavedDatagrams {
    /// As they are.
    Whole(Vec<Vec<u8>>),
    /// One datagram to the server, by its contents.
    Packet(ClientMessage),
    /// All datagrams of a snapshot, by the parts of their message.
    Snapshot(MessageParts),
}

/// A message of the server by its parts.
pub(crate) struct MessageParts {
    ack: CommandSeq,
    choked: u8,
    helper_ms: Option<i16>,
    /// The distance to the snapshot that it is coded against.
    usual_distance: Option<u32>,
    submessages: Vec<Submessage>,
}

enum Submessage {
    /// The first state of an entity.
    Define(EntityId),
    /// A state, coded against that of the snapshot this many snapshots ago.
    Update(EntityId, u32),
    Remove(EntityId),
    Effect(Effect),
    Warning(OutOfSeqWarning),
    Echo(Echo),
}

variants!(SavedDatagrams {
    0 => Whole(datagrams),
    1 => Packet(message),
    2 => Snapshot(parts),
});
value!(MessageParts { ack, choked, helper_ms, usual_distance, submessages });
variants!(Submessage {
    0 => Define(entity),
    1 => Update(entity, distance),
    2 => Remove(entity),
    3 => Effect(effect),
    4 => Warning(warning),
    5 => Echo(echo),
});

impl<B: Body> ServerConnection<B> {
    fn player(&self) -> PlayerId {
        PlayerId(self.sender.avatar.0)
    }

    /// Saves a datagram of packet `number` to the server.
    pub(crate) fn save_up(&self, number: u32, datagram: &[u8]) -> SavedDatagrams {
        let reference = ClientReference { number, ..self.reference };
        let message = unseal(self.key, datagram).ok().and_then(|opened| decode_commands(opened, &reference).ok());
        let is_same = |message: &ClientMessage| {
            message.packet.number == number && self.packet(message).is_some_and(|again| again == datagram)
        };
        match message.filter(is_same) {
            Some(message) => SavedDatagrams::Packet(message),
            None => SavedDatagrams::Whole(vec![datagram.to_vec()]),
        }
    }

    /// Saves datagrams of snapshot `seq` that arrive at the same time.
    pub(crate) fn save_down(
        &self,
        known: Option<&KnownRecords<B>>,
        seq: SnapshotSeq,
        datagrams: &[&[u8]],
    ) -> SavedDatagrams {
        let parts = known.and_then(|known| {
            let parts = self.parts(known, seq, &self.message(datagrams)?)?;
            let again = self.encoded(known, seq, &parts)?;
            again.iter().map(|datagram| &datagram[..]).eq(datagrams.iter().copied()).then_some(parts)
        });
        let whole = || datagrams.iter().map(|datagram| datagram.to_vec()).collect();
        parts.map_or_else(|| SavedDatagrams::Whole(whole()), SavedDatagrams::Snapshot)
    }

    /// Returns the datagrams of packet or snapshot `number` that were saved.
    pub(crate) fn restored(
        &self,
        known: &KnownRecords<B>,
        number: u32,
        saved: SavedDatagrams,
    ) -> Result<Vec<Vec<u8>>, StateError> {
        let datagrams = match saved {
            SavedDatagrams::Whole(datagrams) => Some(datagrams),
            SavedDatagrams::Packet(message) => self.packet(&message).map(|datagram| vec![datagram]),
            SavedDatagrams::Snapshot(parts) => self.encoded(known, SnapshotSeq(number), &parts),
        };
        datagrams.ok_or(StateError::Unknown { what: "a datagram" })
    }

    fn packet(&self, message: &ClientMessage) -> Option<Vec<u8>> {
        encode_commands(message).ok().map(|datagram| seal(self.key, datagram))
    }

    /// Returns the message in these datagrams.
    fn message(&self, datagrams: &[&[u8]]) -> Option<Vec<u8>> {
        let mut reassembly = Reassembly::default();
        let (last, first) = datagrams.split_last()?;
        let opened = unseal(self.key, last).ok()?;
        if first.is_empty() && message_type(opened).ok()? == MessageType::LiveFromServer {
            return Some(opened.to_vec());
        }
        for datagram in first {
            if reassembly.handle_fragment(unseal(self.key, datagram).ok()?).ok()?.is_some() {
                return None;
            }
        }
        Some(reassembly.handle_fragment(opened).ok()??.message)
    }

    /// Returns the parts of a message, if the log has all that it is made of.
    fn parts(&self, known: &KnownRecords<B>, seq: SnapshotSeq, message: &[u8]) -> Option<MessageParts> {
        let received = |seq| {
            let frame = &known.snapshot(self.player(), seq)?.frame;
            Some(AckedSnapshot { seq, tick: frame.tick, server_time: frame.server_time })
        };
        let opened = open_message(message, seq, self.reference.command, received).ok()?;
        let OpenedMessage { info, usual_distance, submessages: count, mut from } = opened;
        let snapshot = known.snapshot(self.player(), seq)?;
        let mut submessages = Vec::new();
        let mut defined = None;
        for _ in 0..count {
            let kind = from.get(4).ok()?;
            if kind == kind::ENTITY_DEFINITION {
                defined = Some(get_entity(&mut from).ok()?);
                // It follows from the entity, or the encoded message is another one.
                from.get_u16().ok()?;
                continue;
            }
            submessages.push(match kind {
                kind::ENTITY_UPDATE => {
                    let entity = get_entity(&mut from).ok()?;
                    let is_first = defined.take() == Some(entity);
                    let distance = if is_first { None } else { Some(get_base(&mut from, usual_distance).ok()?) };
                    let mut cells = self.base(known, seq, entity, distance)?;
                    self.sender.layout.get_update(&mut from, &mut cells).ok()?;
                    distance.map_or(Submessage::Define(entity), |distance| Submessage::Update(entity, distance))
                }
                kind::ENTITY_REMOVAL => Submessage::Remove(get_entity(&mut from).ok()?),
                kind::PACKET_ECHO => Submessage::Echo(Echo::get(&mut from).ok()?),
                kind::OUT_OF_SEQ_WARNING => Submessage::Warning(OutOfSeqWarning::get(&mut from).ok()?),
                kind::EFFECT => {
                    let origin = |entity| snapshot.frame.get(entity).map(B::position_f32);
                    Submessage::Effect(get_effect(&mut from, origin).ok()?)
                }
                _ => return None,
            });
        }
        let FrameInfo { ack, choked, helper_ms, .. } = info;
        Some(MessageParts { ack, choked, helper_ms, usual_distance, submessages })
    }

    /// Returns the state that an update is coded against: zeros for a first state, which has no distance.
    fn base(
        &self,
        known: &KnownRecords<B>,
        seq: SnapshotSeq,
        entity: EntityId,
        distance: Option<u32>,
    ) -> Option<Vec<u32>> {
        let Some(distance) = distance else { return Some(self.sender.layout.zeros.clone()) };
        let base = SnapshotSeq(seq.0.checked_sub(distance)?);
        Some(known.snapshot(self.player(), base)?.frame.get(entity)?.to_cells())
    }

    /// Encodes the datagrams of a message of these parts; `None` if the log does not have all that it is made of.
    fn encoded(&self, known: &KnownRecords<B>, seq: SnapshotSeq, parts: &MessageParts) -> Option<Vec<Vec<u8>>> {
        let MessageParts { ack, choked, helper_ms, usual_distance, ref submessages } = *parts;
        let frame = &known.snapshot(self.player(), seq)?.frame;
        let usual_frame = match usual_distance {
            Some(distance @ 1..WINDOW) => {
                let base = SnapshotSeq(seq.0.checked_sub(distance)?);
                Some((base, known.snapshot(self.player(), base)?.frame.server_time))
            }
            Some(_) => return None,
            None => None,
        };
        let info = FrameInfo { seq, tick: frame.tick, ack, server_time: frame.server_time, choked, helper_ms };
        let mut out = info.begin(usual_frame);
        let put_state = |entity: EntityId, distance: Option<u32>, out: &mut BitWriter| {
            let cells = frame.get(entity)?.to_cells();
            let base = self.base(known, seq, entity, distance)?;
            let base = distance.map(|distance| (distance, &base[..]));
            let who = (entity, controller(entity, self.sender.players));
            self.sender.layout.put_entity(who, usual_distance, base, Some(&cells), &mut |_, _| {}, out);
            Some(())
        };
        let (mut count, mut carried) = (1, Vec::new());
        for submessage in submessages {
            count += 1;
            if let Submessage::Define(entity) | Submessage::Update(entity, _) = submessage {
                if carried.contains(entity) {
                    return None;
                }
                carried.push(*entity);
            }
            match submessage {
                Submessage::Define(entity) => {
                    count += 1;
                    put_state(*entity, None, &mut out)?;
                }
                Submessage::Update(entity, distance) => put_state(*entity, Some(*distance), &mut out)?,
                Submessage::Remove(entity) => {
                    self.sender.layout.put_entity((*entity, 0), usual_distance, None, None, &mut |_, _| {}, &mut out);
                }
                Submessage::Effect(effect) => {
                    let near = frame.get(effect.entity).filter(|_| carried.contains(&effect.entity));
                    put_effect(&mut out, effect, near.map(B::position_f32));
                }
                Submessage::Warning(warning) => warning.put(&mut out),
                Submessage::Echo(echo) => echo.put(&mut out),
            }
        }
        out.replace_byte(COUNT_AT_BYTE, u8::try_from(count).ok()?);
        let datagrams = fragments(seq, out.into_bytes())?;
        Some(datagrams.into_iter().map(|datagram| seal(self.key, datagram)).collect())
    }
}
