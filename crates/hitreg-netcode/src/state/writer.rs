//! Saves state as bytes.

use std::any::Any;
use std::sync::Arc;

use super::StateValue;
use super::shared::{SharedValues, put_new_values};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros};
use hitreg_log::varint::{put_varint, zigzag};
use xxhash_rust::xxh3::xxh3_64;

/// The kinds of numbers that are written as differences from the last one.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberKind {
    Time,
    Command,
    Snapshot,
    Tick,
    Body,
    Frame,
    Usercmd,
    Effect,
}

/// The last numbers, which the next numbers are near to.
#[derive(Debug, Default)]
pub(super) struct LastNumbers {
    of_kind: [i64; NumberKind::Effect as usize + 1],
    /// The last time about each entity.
    of_entity: SortedMap<EntityId, Micros>,
}

impl LastNumbers {
    pub(super) fn of(&mut self, kind: NumberKind) -> &mut i64 {
        &mut self.of_kind[kind as usize]
    }

    /// Expects a time near the last one about the entity, or near the last time if there is none.
    pub(super) fn expect_near(&mut self, entity: EntityId) {
        if let Some(Micros(time)) = self.of_entity.get(&entity) {
            self.of_kind[NumberKind::Time as usize] = *time;
        }
    }

    pub(super) fn note(&mut self, entity: EntityId, time: Micros) {
        self.of_entity.insert(entity, time);
    }
}

/// The room for the bytes of a shared value, which most bodies and usercmds do not exceed.
const SHARED_BYTES: usize = 256;

/// Writes state to bytes.
#[derive(Debug)]
pub struct StateWriter {
    bytes: Vec<u8>,
    last: LastNumbers,
    pub(super) shared: SharedValues,
    /// The indices of frames by address; many holders share a frame. Each entry holds its frame, so that no other frame
    /// gets the address.
    frames: SortedMap<usize, (Arc<dyn Any + Send + Sync>, i64)>,
    /// The number of shared values that the reader has.
    known: usize,
}

impl StateWriter {
    /// Creates a writer for a reader that has the `known` values. Without them, equal states give equal bytes.
    pub fn new(known: SharedValues) -> StateWriter {
        let (bytes, last, frames) = (Vec::new(), LastNumbers::default(), SortedMap::new());
        StateWriter { bytes, last, frames, known: known.values.len(), shared: known }
    }

    /// Returns the bytes: the shared values that the reader does not have, and the state.
    pub fn into_bytes(self) -> Vec<u8> {
        let (known, new) = self.shared.values.split_at(self.known);
        let mut out = Vec::new();
        put_new_values(known, new, &mut out);
        out.extend(self.bytes);
        out
    }

    /// Returns the XXH3-64 of the shared values and of the state.
    pub(crate) fn digest(&self) -> u64 {
        let mut all = Vec::new();
        put_varint(&mut all, self.shared.values.len() as u64);
        for value in &self.shared.values {
            put_varint(&mut all, value.len() as u64);
            all.extend_from_slice(value);
        }
        all.extend_from_slice(&self.bytes);
        xxh3_64(&all)
    }

    /// Writes the index of a shared value, whose bytes do not depend on what was written before.
    pub(super) fn shared(&mut self, kind: NumberKind, put: impl FnOnce(&mut StateWriter)) {
        let index = self.index_of(put);
        self.near_number(kind, index);
    }

    /// Writes the index of a frame.
    pub(super) fn shared_frame<F: Any + Send + Sync>(&mut self, frame: &Arc<F>, put: impl FnOnce(&mut StateWriter)) {
        let address = Arc::as_ptr(frame) as usize;
        let index = match self.frames.get(&address) {
            Some((_, index)) => *index,
            None => {
                let index = self.index_of(put);
                self.frames.insert(address, (Arc::clone(frame) as _, index));
                index
            }
        };
        self.near_number(NumberKind::Frame, index);
    }

    fn index_of(&mut self, put: impl FnOnce(&mut StateWriter)) -> i64 {
        let room = Vec::with_capacity(SHARED_BYTES);
        let (bytes, last) = (std::mem::replace(&mut self.bytes, room), std::mem::take(&mut self.last));
        put(self);
        let value = std::mem::replace(&mut self.bytes, bytes);
        self.last = last;
        self.shared.index_of(&value) as i64
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Writes words and their number.
    pub(crate) fn words(&mut self, words: &[u32]) {
        self.number(words.len() as u64);
        words.iter().for_each(|word| self.word(*word));
    }

    pub(super) fn number(&mut self, number: u64) {
        put_varint(&mut self.bytes, number);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.number(zigzag(number));
    }

    pub(super) fn near_number(&mut self, kind: NumberKind, number: i64) {
        let last = std::mem::replace(self.last.of(kind), number);
        self.signed(number.wrapping_sub(last));
    }

    /// Writes a time that is near the last one about the same entity.
    pub(crate) fn time_of(&mut self, entity: EntityId, time: Micros) {
        self.last.expect_near(entity);
        time.put(self);
        self.last.note(entity, time);
    }
}
