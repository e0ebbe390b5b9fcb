//! Restores state from bytes, which are untrusted.

use std::any::Any;
use std::sync::Arc;

use super::shared::{Predecessors, SharedValues};
use super::writer::{LastNumbers, NumberKind};
use crate::game::BadCells;
use hitreg_log::varint::{Cursor, unzigzag};

/// The most memory that a restored state may take, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// The reasons why bytes are not a valid state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The bytes end early.
    #[error("it ends in the middle")]
    Cut,
    /// A number is incomplete or too long.
    #[error("{0}")]
    Number(String),
    /// Bytes follow the end of the state.
    #[error("it goes on for {0} bytes after its end")]
    Long(usize),
    /// A part has values that it cannot have.
    #[error("no {0} has such values")]
    Invalid(&'static str),
    /// The state would take too much memory.
    #[error("it would take more than {} MiB of memory", MOST_BYTES >> 20)]
    Large,
    /// A body or a world is invalid.
    #[error(transparent)]
    Cells(#[from] BadCells),
    /// The state refers to something that the log does not have.
    #[error("it names {what} that the log does not have near it")]
    Unknown {
        /// The missing item.
        what: &'static str,
    },
}

/// Reads state from bytes.
#[derive(Debug)]
pub struct StateReader {
    bytes: Arc<[u8]>,
    /// The index of the next byte.
    at: usize,
    last: LastNumbers,
    shared: Vec<SharedEntry>,
    /// The number of shared values that may be referenced here. A shared value refers to earlier ones only.
    referable: usize,
    left: usize,
}

/// A shared value, as bytes and as read from them.
#[derive(Debug)]
struct SharedEntry {
    bytes: Arc<[u8]>,
    value: Option<Box<dyn Any>>,
}

impl StateReader {
    /// Reads the output of a [`StateWriter`](super::StateWriter) that had the same `known` values.
    ///
    /// # Errors
    /// When the bytes are not a state.
    pub fn new(bytes: &[u8], known: SharedValues) -> Result<StateReader, StateError> {
        let mut predecessors = Predecessors::of(&known.values);
        let entry = |bytes| SharedEntry { bytes, value: None };
        let shared: Vec<SharedEntry> = known.values.into_iter().map(entry).collect();
        let last = LastNumbers::default();
        let mut from = StateReader { bytes: bytes.into(), at: 0, last, shared, referable: 0, left: MOST_BYTES };
        for _ in 0..from.count(size_of::<SharedEntry>())? {
            let length = from.count(1)?;
            let value = predecessors.differences(&from.bytes[from.at..from.at + length]).into();
            from.at += length;
            predecessors.push(&value);
            from.shared.push(entry(value));
        }
        from.referable = from.shared.len();
        Ok(from)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn end(&self) -> Result<(), StateError> {
        if self.left_bytes() == 0 { Ok(()) } else { Err(StateError::Long(self.left_bytes())) }
    }

    pub(super) fn left_bytes(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads the index of a shared value, and the value when it is read for the first time.
    pub(super) fn shared<T: Clone + 'static>(
        &mut self,
        kind: NumberKind,
        get: impl FnOnce(&mut StateReader) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let unknown = StateError::Unknown { what: "a shared value" };
        let index = usize::try_from(self.near_number(kind)?).unwrap_or(usize::MAX);
        let Some(entry) = self.shared[..self.referable].get(index) else { return Err(unknown) };
        if let Some(value) = &entry.value {
            return value.downcast_ref().cloned().ok_or(unknown);
        }
        let bytes = std::mem::replace(&mut self.bytes, Arc::clone(&entry.bytes));
        let (at, last) = (std::mem::take(&mut self.at), std::mem::take(&mut self.last));
        let referable = std::mem::replace(&mut self.referable, index);
        let value = get(self)?;
        self.end()?;
        (self.bytes, self.at, self.last, self.referable) = (bytes, at, last, referable);
        self.charge(size_of::<T>())?;
        self.shared[index].value = Some(Box::new(value.clone()));
        Ok(value)
    }

    pub(super) fn byte(&mut self) -> Result<u8, StateError> {
        let byte = self.bytes.get(self.at).copied().ok_or(StateError::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn word(&mut self) -> Result<u32, StateError> {
        let word = self.bytes[self.at..].first_chunk().copied().ok_or(StateError::Cut)?;
        self.at += size_of::<u32>();
        Ok(u32::from_le_bytes(word))
    }

    /// Reads words and their number.
    pub(crate) fn words(&mut self) -> Result<Vec<u32>, StateError> {
        let count = self.count(size_of::<u32>())?;
        (0..count).map(|_| self.word()).collect()
    }

    pub(super) fn number(&mut self) -> Result<u64, StateError> {
        let mut cursor = Cursor::new(&self.bytes[self.at..]);
        let number = cursor.varint().map_err(StateError::Number)?;
        self.at = self.bytes.len() - cursor.left();
        Ok(number)
    }

    pub(super) fn signed(&mut self) -> Result<i64, StateError> {
        self.number().map(unzigzag)
    }

    pub(super) fn near_number(&mut self, kind: NumberKind) -> Result<i64, StateError> {
        let by = self.signed()?;
        let last = &mut self.last[kind as usize];
        *last = last.wrapping_add(by);
        Ok(*last)
    }

    /// Reads the number of items that follow. Each takes at least one byte here, and `each` bytes of memory.
    pub(super) fn count(&mut self, each: usize) -> Result<usize, StateError> {
        let count = usize::try_from(self.number()?).map_err(|_| StateError::Cut)?;
        if count > self.left_bytes() {
            return Err(StateError::Cut);
        }
        self.charge(count.saturating_mul(each))?;
        Ok(count)
    }

    /// Counts memory that the state takes.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), StateError> {
        self.left = self.left.checked_sub(bytes).ok_or(StateError::Large)?;
        Ok(())
    }
}
