//! Datagrams in transit, for a keyframe. A datagram consists of states, usercmds and effects that the log nearly always
//! has near the keyframe, so it is saved by its parts and encoded again.

use super::bits::BitWriter;
use super::change::{get_base, put_change};
use super::fragment::Reassembly;
use super::frame::{AckedSnapshot, FrameInfo};
use super::header::{COUNT_AT_BYTE, ServerHeader, seal, unseal};
use super::layout::BodyLayout;
use super::notice::{Notice, OutOfSeqWarning, get_effect, get_entity, kind, put_effect};
use super::page::SUBMESSAGES_MAX;
use super::{
    ClientMessage, ClientReference, Key, MessageType, WINDOW, Wrapping16, decode_commands, encode_commands, fragments,
    message_type,
};
use crate::game::{Body, Effect};
use crate::history::Frame;
use crate::packet::{ClientPacket, Echo};
use crate::state::{KnownFrames, KnownSnapshot, Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::{CommandSeq, EntityId, PlayerId, SnapshotSeq};

/// What both ends of a connection know of its datagrams.
pub(super) struct TransitContext<'c, B> {
    pub(super) key: Key,
    pub(super) layout: &'c BodyLayout<B>,
    pub(super) player: PlayerId,
    pub(super) players: u16,
    pub(super) reference: ClientReference,
}

/// A message of the server by its parts.
struct MessageParts {
    ack: CommandSeq,
    choked: u8,
    calibration_ms: Option<i16>,
    /// The distance to the snapshot that it is coded against.
    usual: Option<u32>,
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
    Notice(Wrapping16, Notice),
    Echo(Echo),
}

/// The first bytes of a saved datagram or submessage.
mod code {
    pub(super) const AS_IT_IS: u8 = 0;
    pub(super) const BY_PARTS: u8 = 1;

    pub(super) const DEFINE: u8 = 0;
    pub(super) const UPDATE_USUAL: u8 = 1;
    pub(super) const UPDATE: u8 = 2;
    pub(super) const REMOVE: u8 = 3;
    pub(super) const KNOWN_EFFECT: u8 = 4;
    pub(super) const EFFECT: u8 = 5;
    pub(super) const WARNING: u8 = 6;
    pub(super) const NOTICE: u8 = 7;
    pub(super) const ECHO: u8 = 8;
}

impl<B: Body> TransitContext<'_, B> {
    /// Saves a datagram of packet `number` to the server.
    pub(super) fn save_up(&self, number: u32, datagram: &[u8], to: &mut StateWriter<'_, B>) {
        let reference = ClientReference { number, ..self.reference };
        let message = unseal(self.key, datagram).ok().and_then(|opened| decode_commands(opened, &reference).ok());
        let is_same = |message: &ClientMessage| {
            let again = encode_commands(message).map(|datagram| seal(self.key, datagram));
            message.packet.number == number && again.is_ok_and(|again| again == datagram)
        };
        let Some(message) = message.filter(is_same) else {
            to.byte(code::AS_IT_IS);
            return to.bytes(datagram);
        };
        let ClientMessage { packet: ClientPacket { number: _, ack, commands }, received_before, perceived } = message;
        to.byte(code::BY_PARTS);
        to.of_player(self.player);
        ack.put(to);
        commands.put(to);
        // All bits are set on a line without loss.
        (!received_before).put(to);
        perceived.put(to);
    }

    pub(super) fn restore_up(&self, number: u32, from: &mut Restorer<'_, B>) -> Result<Vec<u8>, StateError> {
        if from.byte()? == code::AS_IT_IS {
            return from.bytes();
        }
        from.of_player(self.player);
        let packet = ClientPacket { number, ack: StateValue::<B>::get(from)?, commands: StateValue::<B>::get(from)? };
        let (received_before, perceived): (u32, _) = StateValue::<B>::get(from)?;
        let message = ClientMessage { packet, received_before: !received_before, perceived };
        let datagram = encode_commands(&message).map_err(|_| StateError::Unknown { what: "usercmds" })?;
        Ok(seal(self.key, datagram))
    }

    /// Saves datagrams of snapshot `number` that arrive at the same time.
    pub(super) fn save_down(&self, number: u32, datagrams: &[&[u8]], to: &mut StateWriter<'_, B>) {
        let seq = SnapshotSeq(number);
        let known = to.known().and_then(|known| Some((known, known.snapshot(self.player, seq)?)));
        let parts = known.and_then(|(known, snapshot)| {
            let message = self.message(datagrams)?;
            let parts = self.parts(known, seq, &message)?;
            let again = self.datagrams(seq, self.encoded(known, seq, &parts)?)?;
            again.iter().map(|datagram| &datagram[..]).eq(datagrams.iter().copied()).then_some((parts, snapshot))
        });
        let Some((parts, snapshot)) = parts else {
            to.byte(code::AS_IT_IS);
            to.number(datagrams.len() as u64);
            return datagrams.iter().for_each(|datagram| to.bytes(datagram));
        };
        to.byte(code::BY_PARTS);
        let MessageParts { ack, choked, calibration_ms, usual, submessages } = parts;
        (ack, choked).put(to);
        (calibration_ms, usual).put(to);
        to.number(submessages.len() as u64);
        let mut expected = EntityOrder::of(&snapshot.frame, self.player.entity());
        for submessage in &submessages {
            match submessage {
                Submessage::Define(entity) => {
                    to.byte(code::DEFINE);
                    expected.put(*entity, to);
                }
                Submessage::Update(entity, distance) if Some(*distance) == usual => {
                    to.byte(code::UPDATE_USUAL);
                    expected.put(*entity, to);
                }
                Submessage::Update(entity, distance) => {
                    to.byte(code::UPDATE);
                    expected.put(*entity, to);
                    distance.put(to);
                }
                Submessage::Remove(entity) => {
                    to.byte(code::REMOVE);
                    entity.put(to);
                }
                Submessage::Effect(effect) => match snapshot.effects.iter().position(|known| is_same(known, effect)) {
                    Some(place) => {
                        to.byte(code::KNOWN_EFFECT);
                        place.put(to);
                    }
                    None => {
                        to.byte(code::EFFECT);
                        effect.put(to);
                    }
                },
                Submessage::Warning(warning) => {
                    to.byte(code::WARNING);
                    StateValue::put(warning, to);
                }
                Submessage::Notice(number, notice) => {
                    to.byte(code::NOTICE);
                    number.put(to);
                    StateValue::put(notice, to);
                }
                Submessage::Echo(echo) => {
                    to.byte(code::ECHO);
                    echo.put(to);
                }
            }
        }
    }

    pub(super) fn restore_down(&self, number: u32, from: &mut Restorer<'_, B>) -> Result<Vec<Vec<u8>>, StateError> {
        if from.byte()? == code::AS_IT_IS {
            let count = from.count(size_of::<Vec<u8>>())?;
            return (0..count).map(|_| from.bytes()).collect();
        }
        let seq = SnapshotSeq(number);
        let known = from.known();
        let unknown = StateError::Unknown { what: "a snapshot in transit" };
        let Some(snapshot) = known.snapshot(self.player, seq) else { return Err(unknown) };
        let (ack, choked) = StateValue::<B>::get(from)?;
        let (calibration_ms, usual): (_, Option<u32>) = StateValue::<B>::get(from)?;
        let count =
            from.count_up_to(SUBMESSAGES_MAX as usize, size_of::<Submessage>(), "the submessages of a snapshot")?;
        let mut expected = EntityOrder::of(&snapshot.frame, self.player.entity());
        let mut submessages = Vec::with_capacity(count);
        for _ in 0..count {
            submessages.push(match from.byte()? {
                code::DEFINE => Submessage::Define(expected.get(from)?),
                code::UPDATE_USUAL => {
                    let distance = usual.ok_or(StateError::Value { what: "the base of an update", found: 0 })?;
                    Submessage::Update(expected.get(from)?, distance)
                }
                code::UPDATE => Submessage::Update(expected.get(from)?, StateValue::<B>::get(from)?),
                code::REMOVE => Submessage::Remove(StateValue::<B>::get(from)?),
                code::KNOWN_EFFECT => {
                    let place: usize = StateValue::<B>::get(from)?;
                    let effect = snapshot.effects.get(place).copied();
                    Submessage::Effect(effect.ok_or(StateError::Unknown { what: "an effect" })?)
                }
                code::EFFECT => Submessage::Effect(StateValue::<B>::get(from)?),
                code::WARNING => Submessage::Warning(StateValue::<B>::get(from)?),
                code::NOTICE => Submessage::Notice(StateValue::<B>::get(from)?, StateValue::<B>::get(from)?),
                code::ECHO => Submessage::Echo(StateValue::<B>::get(from)?),
                found => return Err(StateError::Value { what: "a submessage", found: found.into() }),
            });
        }
        let parts = MessageParts { ack, choked, calibration_ms, usual, submessages };
        let message = self.encoded(known, seq, &parts);
        let datagrams = message.and_then(|message| self.datagrams(seq, message)).ok_or(unknown)?;
        from.charge(datagrams.iter().map(Vec::len).sum())?;
        Ok(datagrams)
    }

    /// Returns the message in these datagrams.
    fn message(&self, datagrams: &[&[u8]]) -> Option<Vec<u8>> {
        let mut reassembly = Reassembly::new();
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

    fn datagrams(&self, seq: SnapshotSeq, message: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        let datagrams = fragments(seq, message)?;
        Some(datagrams.into_iter().map(|datagram| seal(self.key, datagram)).collect())
    }

    /// Returns the parts of a message, if the log has all that it is made of.
    fn parts(&self, known: &KnownFrames<B>, seq: SnapshotSeq, message: &[u8]) -> Option<MessageParts> {
        let (header, count, mut from) = ServerHeader::read(message).ok()?;
        let received = |seq| {
            let KnownSnapshot { frame, .. } = known.snapshot(self.player, seq)?;
            Some(AckedSnapshot { seq, tick: frame.tick, server_time: frame.server_time })
        };
        let (info, usual) = FrameInfo::get(&mut from, &header, seq, self.reference.command, received).ok()?;
        let snapshot = known.snapshot(self.player, seq)?;
        let mut submessages = Vec::new();
        let mut defined = None;
        for _ in 1..count {
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
                    let distance = if is_first { 0 } else { get_base(&mut from, usual).ok()? };
                    let base = self.base(known, seq, entity, (!is_first).then_some(distance))?;
                    let mut cells = base.map_or_else(|| self.layout.zeros.clone(), |(_, cells)| cells);
                    self.layout.get_update(&mut from, &mut cells).ok()?;
                    if is_first { Submessage::Define(entity) } else { Submessage::Update(entity, distance) }
                }
                kind::ENTITY_REMOVAL => Submessage::Remove(get_entity(&mut from).ok()?),
                kind::PACKET_ECHO => Submessage::Echo(Echo::get(&mut from).ok()?),
                kind::OUT_OF_SEQ_WARNING => Submessage::Warning(OutOfSeqWarning::get(&mut from).ok()?),
                kind::REQUEST_ACK | kind::CHAT_EVENT_OOC | kind::CHAT_EVENT_IC => {
                    let (number, notice) = Notice::get(&mut from, kind).ok()?;
                    Submessage::Notice(number, notice)
                }
                kind::EFFECT => {
                    let origin = |entity| snapshot.frame.get(entity).map(B::origin);
                    Submessage::Effect(get_effect(&mut from, origin).ok()?)
                }
                _ => return None,
            });
        }
        let FrameInfo { ack, choked, .. } = info;
        Some(MessageParts { ack, choked, calibration_ms: header.calibration_ms, usual, submessages })
    }

    /// Returns the state that an update is coded against, with its distance; `None` inside for a first state.
    fn base(
        &self,
        known: &KnownFrames<B>,
        seq: SnapshotSeq,
        entity: EntityId,
        distance: Option<u32>,
    ) -> Option<Option<(u32, Vec<u32>)>> {
        let Some(distance) = distance else { return Some(None) };
        let base = SnapshotSeq(seq.0.checked_sub(distance)?);
        let mut cells = vec![0; B::CELLS];
        known.snapshot(self.player, base)?.frame.get(entity)?.write(&mut cells);
        Some(Some((distance, cells)))
    }

    /// Encodes a message of these parts; `None` if the log does not have all that it is made of.
    fn encoded(&self, known: &KnownFrames<B>, seq: SnapshotSeq, parts: &MessageParts) -> Option<Vec<u8>> {
        let MessageParts { ack, choked, calibration_ms, usual, submessages } = parts;
        let (ack, choked, calibration_ms, usual) = (*ack, *choked, *calibration_ms, *usual);
        let frame = &known.snapshot(self.player, seq)?.frame;
        let usual_frame = match usual {
            Some(distance @ 1..WINDOW) => {
                let base = SnapshotSeq(seq.0.checked_sub(distance)?);
                Some((base, known.snapshot(self.player, base)?.frame.server_time))
            }
            Some(_) => return None,
            None => None,
        };
        let header = ServerHeader { frame: Wrapping16::of(frame.tick.0), ack: Wrapping16::of(ack.0), calibration_ms };
        let mut out = header.begin();
        FrameInfo { seq, tick: frame.tick, ack, server_time: frame.server_time, choked }.put(&mut out, usual_frame);
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
                    self.put_state(known, frame, (seq, usual), (*entity, None), &mut out)?;
                }
                Submessage::Update(entity, distance) => {
                    self.put_state(known, frame, (seq, usual), (*entity, Some(*distance)), &mut out)?;
                }
                Submessage::Remove(entity) => {
                    put_change(self.layout, (*entity, 0), usual, None, None, &mut |_, _| {}, &mut out);
                }
                Submessage::Effect(effect) => {
                    let near = frame.get(effect.entity).filter(|_| carried.contains(&effect.entity));
                    put_effect(&mut out, effect, near.map(B::origin));
                }
                Submessage::Warning(warning) => warning.put(&mut out),
                Submessage::Notice(number, notice) => notice.put(&mut out, *number),
                Submessage::Echo(echo) => Echo::put(*echo, &mut out),
            }
        }
        out.replace_byte(COUNT_AT_BYTE, u8::try_from(count).ok()?);
        Some(out.into_bytes())
    }

    fn put_state(
        &self,
        known: &KnownFrames<B>,
        frame: &Frame<B>,
        (seq, usual): (SnapshotSeq, Option<u32>),
        (entity, distance): (EntityId, Option<u32>),
        out: &mut BitWriter,
    ) -> Option<()> {
        let mut cells = vec![0; B::CELLS];
        frame.get(entity)?.write(&mut cells);
        let base = self.base(known, seq, entity, distance)?;
        let base = base.as_ref().map(|(distance, cells)| (*distance, &cells[..]));
        let controller = super::sender::controller(entity, self.players);
        put_change(self.layout, (entity, controller), usual, base, Some(&cells), &mut |_, _| {}, out);
        Some(())
    }
}

/// Returns whether two effects are bit-identical.
fn is_same(a: &Effect, b: &Effect) -> bool {
    a == b && a.at.to_array().map(f32::to_bits) == b.at.to_array().map(f32::to_bits)
}

/// The entities of a frame in about the order in which a snapshot carries them.
struct EntityOrder(Vec<EntityId>);

impl EntityOrder {
    fn of<B: Body>(frame: &Frame<B>, own: EntityId) -> EntityOrder {
        let viewer = frame.get(own).map(B::origin).unwrap_or_default();
        let mut order: Vec<(bool, f32, EntityId)> =
            frame.entities.iter().map(|(id, body)| (*id != own, body.origin().distance(viewer), *id)).collect();
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        EntityOrder(order.into_iter().map(|(_, _, id)| id).collect())
    }

    /// Writes the next entity. One that the frame lacks cannot be encoded, and is not written.
    fn put<B: Body>(&mut self, entity: EntityId, to: &mut StateWriter<'_, B>) {
        let place = self.0.iter().position(|other| *other == entity).unwrap_or(self.0.len());
        to.number(place as u64);
        if place < self.0.len() {
            self.0.remove(place);
        }
    }

    fn get<B: Body>(&mut self, from: &mut Restorer<'_, B>) -> Result<EntityId, StateError> {
        let found = from.number()?;
        match usize::try_from(found).ok().filter(|place| *place < self.0.len()) {
            Some(place) => Ok(self.0.remove(place)),
            None => Err(StateError::Value { what: "an entity in transit", found }),
        }
    }
}
