//! Decodes bodies in a server's datagrams bit by bit from docs/wire.md. It shares no code with the encoder and decoder
//! of sessions.

use hitreg_log::sorted::SortedMap;

/// The document's positions of a body's cells.
#[derive(Clone, Debug, Default)]
pub(super) struct CellPositions {
    /// The cells of each bit of the update bitfield, in the order of the body.
    pub(super) groups: [Vec<usize>; 8],
    /// Whether each cell is a float.
    pub(super) is_float: Vec<bool>,
    /// The cell that says whether the body is on the ground.
    pub(super) ground: usize,
    /// Pitch, yaw and roll, which follow the groups of bits 1 and 0; `None` when they are ordinary cells.
    pub(super) turn: Option<[usize; 3]>,
}

/// One entity's update in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The low 16 bits of the tick.
    pub(super) tick: u16,
    pub(super) entity: u16,
    pub(super) bits: u8,
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
}

/// The state that one client has received so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientDatagrams {
    positions: CellPositions,
    parts: SortedMap<u64, SortedMap<u64, Vec<u8>>>,
    /// The states by entity and snapshot.
    states: SortedMap<(u16, u64), Vec<u32>>,
    pub(super) updates: Vec<Update>,
    /// The number of messages that do not follow the document.
    pub(super) unread: usize,
}

/// Message types.
const LIVE_FROM_SERVER: u64 = 8;
const FRAGMENT_FROM_SERVER: u64 = 10;
/// The length of a seal in bytes.
const SEAL: usize = 4;
/// The length of filter and type in bytes.
const BEGINNING: usize = 5;
/// The width of an integer's change in bits, by class.
const WIDTHS: [u32; 8] = [1, 3, 5, 8, 12, 16, 24, 32];

impl ClientDatagrams {
    pub(super) fn new(positions: CellPositions) -> ClientDatagrams {
        ClientDatagrams { positions, ..ClientDatagrams::default() }
    }

    /// Takes a sealed datagram.
    pub(super) fn hear(&mut self, datagram: &[u8]) {
        let Some((bytes, _seal)) = datagram.split_last_chunk::<SEAL>() else { return };
        let mut from = DocumentBits { bytes, at: 32 };
        match from.get(8) {
            Some(LIVE_FROM_SERVER) => self.read(bytes),
            Some(FRAGMENT_FROM_SERVER) => {
                let (Some(number), Some(place), Some(count)) = (from.get(32), from.get(8), from.get(8)) else { return };
                let parts = self.parts.entry(number).or_default();
                parts.insert(place, bytes[BEGINNING + 6..].to_vec());
                if parts.len() as u64 == count {
                    let whole: Vec<u8> = parts.values().flatten().copied().collect();
                    self.read(&whole);
                }
            }
            _ => {}
        }
    }

    /// Takes a complete message without its seal.
    pub(super) fn read(&mut self, message: &[u8]) {
        let mut updates = Vec::new();
        let read = self.read_message(&mut DocumentBits { bytes: message, at: 8 * BEGINNING }, &mut updates);
        self.unread += usize::from(read.is_none());
        self.updates.extend(updates);
    }

    fn read_message(&mut self, from: &mut DocumentBits<'_>, updates: &mut Vec<Update>) -> Option<()> {
        let tick = from.get(16)? as u16;
        let (_ack, _helper) = (from.get(16)?, from.get(16)?);
        let (mut number, mut usual, mut defined) = (0, None, None);
        for _ in 0..from.get(8)? {
            let kind = from.get(4)?;
            match kind {
                0 => (number, usual) = from.frame()?,
                1 => from.skip(&[16, 16])?,
                2 => {
                    defined = Some(from.varint(5)? as u16);
                    from.skip(&[16])?;
                }
                3 => {
                    let entity = from.varint(5)? as u16;
                    let old = match defined.take() {
                        Some(id) => (id == entity).then(|| vec![0; self.positions.is_float.len()])?,
                        None => {
                            let distance = if from.get(1)? == 1 { usual? } else { from.varint(4)? };
                            self.states.get(&(entity, number.checked_sub(distance)?))?.clone()
                        }
                    };
                    let update = self.positions.update(from, tick, entity, old)?;
                    self.states.insert((entity, number), update.new.clone());
                    updates.push(update);
                }
                4 => drop(from.varint(5)?),
                5 => from.text_after(&[16, 16])?,
                6 => from.text_after(&[16, 16, 8])?,
                7 => {
                    from.skip(&[16])?;
                    from.varint(5)?;
                    from.text_after(&[8, 8])?;
                }
                8 => from.effect()?,
                9 => from.skip(&[16, 16, 16])?,
                _ => return None,
            }
        }
        // Only padding of the last byte may be left.
        (from.bytes.len() * 8 - from.at < 8).then_some(())
    }
}

impl CellPositions {
    fn update(&self, from: &mut DocumentBits<'_>, tick: u16, entity: u16, old: Vec<u32>) -> Option<Update> {
        let bits = from.get(8)? as u8;
        let mut update = Update { tick, entity, bits, new: old.clone(), old };
        for bit in (0..8).rev().filter(|bit| bits >> bit & 1 == 1) {
            let group = &self.groups[bit];
            for (cell, _) in group.iter().zip(from.mask(group.len())?).filter(|(_, changed)| *changed) {
                self.change(from, *cell, &mut update)?;
            }
            let Some([pitch, yaw, roll]) = self.turn else { continue };
            let is_on_ground = update.new[self.ground] != 0;
            match bit {
                1 if is_on_ground => {
                    let is_upright = from.get(1)? == 1;
                    self.maybe(from, yaw, &mut update)?;
                    if is_upright {
                        (update.new[pitch], update.new[roll]) = (0, 0);
                    } else {
                        self.maybe(from, roll, &mut update)?;
                    }
                }
                1 => [pitch, yaw, roll].into_iter().try_for_each(|cell| self.maybe(from, cell, &mut update))?,
                0 if is_on_ground => self.maybe(from, pitch, &mut update)?,
                _ => {}
            }
        }
        Some(update)
    }

    fn maybe(&self, from: &mut DocumentBits<'_>, cell: usize, update: &mut Update) -> Option<()> {
        if from.get(1)? == 1 { self.change(from, cell, update) } else { Some(()) }
    }

    fn change(&self, from: &mut DocumentBits<'_>, cell: usize, update: &mut Update) -> Option<()> {
        let old = update.old[cell];
        update.new[cell] = if self.is_float[cell] { from.float_change(old)? } else { from.integer_change(old)? };
        Some(())
    }
}

/// A bit reader: lowest bit first in bytes and numbers.
struct DocumentBits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl DocumentBits<'_> {
    fn get(&mut self, count: u32) -> Option<u64> {
        let mut number = 0;
        for place in 0..count {
            let byte = *self.bytes.get(self.at / 8)?;
            number |= u64::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(number)
    }

    fn skip(&mut self, counts: &[u32]) -> Option<()> {
        counts.iter().try_for_each(|count| self.get(*count).map(drop))
    }

    fn varint(&mut self, chunk: u32) -> Option<u64> {
        let mut number = 0;
        for place in 0..64 / chunk {
            number |= self.get(chunk)? << (place * chunk);
            if self.get(1)? == 0 {
                return Some(number);
            }
        }
        None
    }

    fn mask(&mut self, count: usize) -> Option<Vec<bool>> {
        let nibbles = match count {
            0..=4 => vec![true; count.div_ceil(4)],
            _ => (0..count.div_ceil(4)).map(|_| Some(self.get(1)? == 1)).collect::<Option<Vec<bool>>>()?,
        };
        (0..count).map(|cell| if nibbles[cell / 4] { Some(self.get(1)? == 1) } else { Some(false) }).collect()
    }

    fn integer_change(&mut self, old: u32) -> Option<u32> {
        let width = WIDTHS[self.get(3)? as usize];
        let zigzag = (self.get(width)? as u32).wrapping_add(1);
        Some(old.wrapping_add(unzigzag(zigzag)))
    }

    fn float_change(&mut self, old: u32) -> Option<u32> {
        match self.get(2)? {
            0 => Some(0),
            1 => {
                let length = self.get(5)? as u32;
                let number = if length == 0 { 0 } else { self.get(length - 1)? as u32 | 1 << (length - 1) };
                Some(old.wrapping_add(unzigzag(number.wrapping_add(1))))
            }
            2 => {
                let length = self.get(5)? as u32;
                let highest = (self.get(length.checked_sub(1)?)? as u32) << 1 | 1;
                Some(highest << (32 - length))
            }
            _ => Some(self.get(32)? as u32),
        }
    }

    /// Returns the snapshot's number, and the distance to the base that most entities use.
    fn frame(&mut self) -> Option<(u64, Option<u64>)> {
        let frame = if self.get(1)? == 1 {
            let (number, distance) = (self.get(16)?, self.get(6)?);
            let length = self.get(6)? as u32;
            self.skip(&[if length == 63 { 64 } else { length }])?;
            (number, Some(distance))
        } else {
            let number = self.get(32)?;
            self.skip(&[32, 32, 64])?;
            (number, None)
        };
        if self.get(1)? == 1 {
            self.skip(&[8])?;
        }
        Some(frame)
    }

    fn effect(&mut self) -> Option<()> {
        self.skip(&[8])?;
        self.varint(5)?;
        self.skip(&[1, 1])?;
        for _ in 0..3 {
            if self.get(1)? == 1 {
                self.float_change(0)?;
            }
        }
        Some(())
    }

    fn text_after(&mut self, counts: &[u32]) -> Option<()> {
        self.skip(counts)?;
        let bytes = self.get(7)? as u32;
        (0..bytes).try_for_each(|_| self.skip(&[8]))
    }
}

fn unzigzag(number: u32) -> u32 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
