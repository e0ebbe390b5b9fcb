//! Decodes the entities that a server sends: baselines, full updates and deltas against an earlier packet. It keeps
//! brush models and bots, and skips everything else.

use super::wire::{Bytes, read_angle, read_coord, read_origin};
use super::{Extension, Extensions, Mover, QwdError, QwdResult};
use hitreg_log::sorted::SortedMap;

/// Number of packets that a delta can refer back to.
const BACKUP: usize = 64;
/// The most entities in a packet, with any extension.
const ENTITIES_MAX: usize = 512;

/// Animation frames of the player model that show a dead player.
const FRAMES_OF_DEATH: std::ops::RangeInclusive<u8> = 41..=102;

/// The parts of an entity that movement needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EntityState {
    number: u16,
    model: u16,
    frame: u8,
    origin: [f32; 3],
}

/// The state of entity decoding on a client.
#[derive(Debug, Default)]
pub(crate) struct EntityDecoder {
    baselines: SortedMap<u16, EntityState>,
    submodels: SortedMap<u16, u16>,
    /// Index of a standing player's model in the server's list.
    player: Option<u16>,
    sent: Vec<Option<(u32, Vec<EntityState>)>>,
    /// Whether each delta refers to the previous update, whatever its number, as in a server's recording.
    pub(crate) deltas_from_last: bool,
    last: u32,
}

impl EntityDecoder {
    /// Clears everything for a new level.
    pub(crate) fn clear(&mut self) {
        *self = EntityDecoder::default();
    }

    /// Notes that model `index` of the server's list is `name`; `*3` is submodel 3 of the map.
    pub(crate) fn name_model(&mut self, index: u16, name: &[u8]) {
        let number = name.strip_prefix(b"*").and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(submodel) = number.and_then(|digits| digits.parse().ok()) {
            self.submodels.insert(index, submodel);
        }
        if name == b"progs/player.mdl" {
            self.player = Some(index);
        }
    }

    /// Reads the body of a baseline or of a static entity, whose number is dropped.
    pub(crate) fn read_baseline(&mut self, bytes: &mut Bytes<'_>, ext: Extensions, number: Option<u16>) -> QwdResult {
        let (model, frame) = (u16::from(bytes.u8()?), bytes.u8()?);
        bytes.take(2)?;
        let mut origin = [0.0; 3];
        for axis in &mut origin {
            *axis = read_coord(bytes, ext)?;
            read_angle(bytes, ext)?;
        }
        if let Some(number) = number {
            self.baselines.insert(number, EntityState { number, model, frame, origin });
        }
        Ok(())
    }

    /// Reads a baseline that is encoded as a delta from zero (FTE).
    pub(crate) fn read_baseline_delta(&mut self, bytes: &mut Bytes<'_>, ext: Extensions, keep: bool) -> QwdResult {
        let word = bytes.u16()?;
        let entity = read_delta(bytes, ext, word, |_| EntityState::default())?;
        if keep {
            self.baselines.insert(entity.number, entity);
        }
        Ok(())
    }

    /// Reads a full update (`delta` is false) or a delta, and keeps the result for the packet `sequence`. A delta
    /// against an unknown packet is skipped and leaves no entities, as on clients.
    pub(crate) fn read_update(
        &mut self,
        bytes: &mut Bytes<'_>,
        ext: Extensions,
        sequence: u32,
        delta: bool,
    ) -> QwdResult {
        let base = if delta {
            let named = u32::from(bytes.u8()?);
            let from = if self.deltas_from_last { self.last & 0xff } else { named };
            let slot = self.sent.get(from as usize % BACKUP).and_then(Option::as_ref);
            slot.filter(|(sent, _)| sent & 0xff == from && sequence.wrapping_sub(*sent) < BACKUP as u32)
                .map(|(_, entities)| entities.clone())
        } else {
            Some(Vec::new())
        };
        let known = base.is_some();
        let mut now: SortedMap<u16, EntityState> =
            base.unwrap_or_default().into_iter().map(|e| (e.number, e)).collect();
        loop {
            let offset = bytes.offset();
            let word = bytes.u16()?;
            if word == 0 {
                break;
            }
            let baselines = &self.baselines;
            let from = |number: u16| {
                let base = now.get(&number).or_else(|| baselines.get(&number)).copied();
                base.unwrap_or(EntityState { number, ..EntityState::default() })
            };
            if word & U_REMOVE != 0 {
                let number = read_removed(bytes, ext, word)?;
                now.remove(&number);
                continue;
            }
            let entity = read_delta(bytes, ext, word, from)?;
            now.insert(entity.number, entity);
            if now.len() > ENTITIES_MAX {
                let (value, limit) = (now.len() as i64, ENTITIES_MAX as i64 + 1);
                return Err(QwdError::out_of_bounds(offset, "the number of entities", value, limit));
            }
        }
        if self.sent.is_empty() {
            self.sent.resize(BACKUP, None);
        }
        self.last = sequence;
        self.sent[sequence as usize % BACKUP] = known.then(|| (sequence, now.into_values().collect()));
        Ok(())
    }

    fn shown(&self, sequence: u32) -> &[EntityState] {
        let slot = self.sent.get(sequence as usize % BACKUP).and_then(Option::as_ref);
        slot.filter(|(sent, _)| *sent == sequence).map_or(&[][..], |(_, entities)| entities)
    }

    /// Returns number and origin of the bots in the packet `sequence`: entities with a player's model that are not
    /// dead.
    pub(crate) fn bots(&self, sequence: u32) -> impl Iterator<Item = (u16, [f32; 3])> + '_ {
        let shown = self.player.map_or(&[][..], |_| self.shown(sequence));
        let stands =
            |entity: &&EntityState| Some(entity.model) == self.player && !FRAMES_OF_DEATH.contains(&entity.frame);
        shown.iter().filter(stands).map(|entity| (entity.number, entity.origin))
    }

    /// Returns the brush models in the packet `sequence`.
    pub(crate) fn movers(&self, sequence: u32) -> impl Iterator<Item = Mover> + '_ {
        self.shown(sequence).iter().filter_map(|entity| {
            let model = *self.submodels.get(&entity.model)?;
            Some(Mover { model, origin: entity.origin })
        })
    }
}

/// The bits of the first word with the entity's number.
const NUMBER_BITS: u16 = 0x1ff;
const U_ORIGIN: [u16; 3] = [1 << 9, 1 << 10, 1 << 11];
const U_ANGLE: [u16; 3] = [1 << 0, 1 << 12, 1 << 1];
const U_FRAME: u16 = 1 << 13;
const U_REMOVE: u16 = 1 << 14;
const U_MORE: u16 = 1 << 15;
const U_MODEL: u16 = 1 << 2;
const U_COLORMAP: u16 = 1 << 3;
const U_SKIN: u16 = 1 << 4;
const U_EFFECTS: u16 = 1 << 5;
const U_FTE_EVEN_MORE: u16 = 1 << 7;
const FTE_TRANS: u16 = 1 << 1;
const FTE_MODELS: u16 = 1 << 3;
const FTE_ENTITIES: u16 = 1 << 5;
const FTE_ENTITIES2: u16 = 1 << 6;
const FTE_YET_MORE: u16 = 1 << 7;
const FTE_COLOUR: u16 = 1 << 10;

/// The number of an entity, and what its delta contains.
struct DeltaBits {
    number: u16,
    bits: u16,
    fte_bits: u16,
}

fn read_bits(bytes: &mut Bytes<'_>, ext: Extensions, word: u16) -> QwdResult<DeltaBits> {
    let mut bits = word & !NUMBER_BITS;
    if word & U_MORE != 0 {
        bits |= u16::from(bytes.u8()?);
    }
    let mut fte_bits = 0;
    if bits & U_FTE_EVEN_MORE != 0 && ext.fte != 0 {
        fte_bits = u16::from(bytes.u8()?);
        if fte_bits & FTE_YET_MORE != 0 {
            fte_bits |= u16::from(bytes.u8()?) << 8;
        }
    }
    let mut number = word & NUMBER_BITS;
    if fte_bits & FTE_ENTITIES != 0 {
        number += 512;
    }
    if fte_bits & FTE_ENTITIES2 != 0 {
        number += 1024;
    }
    Ok(DeltaBits { number, bits, fte_bits })
}

fn read_removed(bytes: &mut Bytes<'_>, ext: Extensions, word: u16) -> QwdResult<u16> {
    let extended = word & U_MORE != 0 && ext.fte != 0;
    Ok(if extended { read_bits(bytes, ext, word)?.number } else { word & NUMBER_BITS })
}

fn read_delta(
    bytes: &mut Bytes<'_>,
    ext: Extensions,
    word: u16,
    from: impl Fn(u16) -> EntityState,
) -> QwdResult<EntityState> {
    let DeltaBits { number, bits, fte_bits } = read_bits(bytes, ext, word)?;
    let mut entity = EntityState { number, ..from(number) };
    if bits & U_MODEL != 0 {
        entity.model = u16::from(bytes.u8()?) + if fte_bits & FTE_MODELS != 0 { 256 } else { 0 };
    } else if fte_bits & FTE_MODELS != 0 {
        entity.model = bytes.u16()?;
    }
    if bits & U_FRAME != 0 {
        entity.frame = bytes.u8()?;
    }
    for flag in [U_COLORMAP, U_SKIN, U_EFFECTS] {
        if bits & flag != 0 {
            bytes.u8()?;
        }
    }
    for axis in 0..3 {
        if bits & U_ORIGIN[axis] != 0 {
            entity.origin[axis] = read_origin(bytes, ext)?;
        }
        if bits & U_ANGLE[axis] != 0 {
            read_angle(bytes, ext)?;
        }
    }
    if fte_bits & FTE_TRANS != 0 && ext.has(Extension::Transparency) {
        bytes.u8()?;
    }
    if fte_bits & FTE_COLOUR != 0 && ext.has(Extension::Colour) {
        bytes.take(3)?;
    }
    Ok(entity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(entities: &mut EntityDecoder, data: &[u8], sequence: u32, delta: bool) {
        let mut bytes = Bytes::new(data, 0);
        entities.read_update(&mut bytes, Extensions::default(), sequence, delta).expect("whole");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_delta_builds_on_its_named_packet() {
        let mut entities = EntityDecoder::default();
        entities.name_model(2, b"*1");
        let full = U_MORE | U_ORIGIN[2] | 40;
        let mut data = full.to_le_bytes().to_vec();
        data.extend([U_MODEL as u8, 2, 16, 0, 0, 0]);
        update(&mut entities, &data, 300, false);
        assert_eq!(entities.movers(300).collect::<Vec<_>>(), [Mover { model: 1, origin: [0.0, 0.0, 2.0] }]);

        let mut moved = vec![300u32 as u8];
        moved.extend((U_ORIGIN[0] | 40).to_le_bytes());
        moved.extend([8, 0, 0, 0]);
        update(&mut entities, &moved, 301, true);
        assert_eq!(entities.movers(301).collect::<Vec<_>>(), [Mover { model: 1, origin: [1.0, 0.0, 2.0] }]);

        let mut gone = vec![301u32 as u8];
        gone.extend((U_REMOVE | 40).to_le_bytes());
        gone.extend([0, 0]);
        update(&mut entities, &gone, 302, true);
        assert_eq!(entities.movers(302).count(), 0);
    }

    #[test]
    fn a_delta_from_an_unknown_packet_leaves_nothing() {
        let mut entities = EntityDecoder::default();
        update(&mut entities, &[7, 0, 0], 9, true);
        assert_eq!(entities.movers(9).count(), 0);
    }

    #[test]
    fn a_standing_entity_with_a_players_model_is_a_bot() {
        let mut entities = EntityDecoder::default();
        entities.name_model(3, b"progs/player.mdl");
        let bits = U_MORE | U_ORIGIN[0] | U_FRAME | 138;
        let with_frame = |frame| {
            let mut data = bits.to_le_bytes().to_vec();
            data.extend([U_MODEL as u8, 3, frame, 16, 0, 0, 0]);
            data
        };
        update(&mut entities, &with_frame(12), 300, false);
        assert_eq!(entities.bots(300).collect::<Vec<_>>(), [(138, [2.0, 0.0, 0.0])]);
        update(&mut entities, &with_frame(60), 301, false);
        assert_eq!(entities.bots(301).count(), 0, "a body that lies there");
    }
}
