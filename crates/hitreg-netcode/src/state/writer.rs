//! Saves state as bytes.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::shared::{Predecessors, SharedValues};
use hitreg_log::varint::{put_varint, zigzag};

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

/// The last number of each kind.
pub(super) type LastNumbers = [i64; NumberKind::Effect as usize + 1];

/// The room for the bytes of a shared value, which most bodies and usercmds do not exceed.
const SHARED_BYTES: usize = 256;

/// Writes state to bytes.
#[derive(Debug)]
pub struct StateWriter {
    bytes: Vec<u8>,
    last: LastNumbers,
    shared: SharedValues,
    /// The indices of frames by address; many holders share a frame. Each entry holds its frame, so that no other frame
    /// gets the address.
    frames: BTreeMap<usize, (Arc<dyn Any + Send + Sync>, i64)>,
    /// The number of shared values that the reader has.
    known: usize,
}

impl StateWriter {
    /// Creates a writer for a reader that has the `known` values. Without them, equal states give equal bytes.
    pub fn new(known: SharedValues) -> StateWriter {
        let (bytes, last, frames) = (Vec::new(), LastNumbers::default(), BTreeMap::new());
        StateWriter { bytes, last, frames, known: known.values.len(), shared: known }
    }

    /// Returns the bytes: the shared values that the reader does not have, and the state.
    pub fn into_bytes(self) -> Vec<u8> {
        let (known, new) = self.shared.values.split_at(self.known);
        let mut predecessors = Predecessors::of(known);
        let mut out = Vec::new();
        put_varint(&mut out, new.len() as u64);
        for value in new {
            put_varint(&mut out, value.len() as u64);
            out.extend(predecessors.differences(value));
            predecessors.push(value);
        }
        out.extend(self.bytes);
        out
    }

    pub(super) fn into_shared(self) -> SharedValues {
        self.shared
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
        let last = std::mem::replace(&mut self.last[kind as usize], number);
        self.signed(number.wrapping_sub(last));
    }
}
