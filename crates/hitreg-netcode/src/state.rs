//! Serialisation of pipeline state, so that a replay can start from a keyframe.
//!
//! A state lists its fields once, with `value!`, `variants!` or `state!`; a missing field is a compile error. Bodies,
//! frames, usercmds and effects are stored once and referenced by index ([`SharedValues`]). The log's own records near
//! the keyframe come first, so that a state only refers to them.

mod shared;
mod values;

pub use shared::SharedValues;
pub(crate) use shared::{KnownRecords, KnownSnapshot};

use std::any::Any;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::game::BadCells;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros};
use hitreg_log::varint::{Cursor, put_varint, unzigzag, zigzag};
use shared::{get_new_values, put_new_values};

/// A value that can be restored from bytes alone.
pub trait StateValue: Sized {
    /// Writes the value.
    fn put(&self, to: &mut StateWriter);
    /// Reads the value.
    ///
    /// # Errors
    /// When the bytes are not a valid value.
    fn get(from: &mut StateReader) -> Result<Self, StateError>;
}

/// State that is restored in place, because parts of it follow from the settings and are not saved.
pub(crate) trait State {
    fn save(&self, to: &mut StateWriter);
    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError>;
}

impl<T: StateValue> State for T {
    fn save(&self, to: &mut StateWriter) {
        self.put(to);
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        *self = T::get(from)?;
        Ok(())
    }
}

/// Implements [`State`] for a structure from the names of its saved fields, and of the fields that are not saved.
/// `if` names a check of the restored state.
macro_rules! state {
    ($type:ident $(<$b:ident: $bound:ident>)? { $($field:ident),* $(,)? } but { $($kept:ident),* $(,)? } $(if $check:ident)?) => {
        impl $(<$b: $bound>)? $crate::state::State for $type $(<$b>)? {
            fn save(&self, to: &mut $crate::state::StateWriter) {
                let $type { $($field,)* $($kept: _,)* } = self;
                $( $crate::state::State::save($field, to); )*
            }

            fn restore(&mut self, from: &mut $crate::state::StateReader) -> Result<(), $crate::state::StateError> {
                $( $crate::state::State::restore(&mut self.$field, from)?; )*
                $( $crate::state::check(self.$check(), stringify!($type))?; )?
                Ok(())
            }
        }
    };
}
pub(crate) use state;

/// Implements [`StateValue`] for a structure from the names of all its fields. `if` names a check of the read value.
macro_rules! value {
    ($type:ident $(<$b:ident: $bound:ident>)? { $($field:ident),* $(,)? } $(if $check:ident)?) => {
        impl $(<$b: $bound>)? $crate::state::StateValue for $type $(<$b>)? {
            fn put(&self, to: &mut $crate::state::StateWriter) {
                let $type { $($field,)* } = self;
                $( $crate::state::StateValue::put($field, to); )*
            }

            fn get(from: &mut $crate::state::StateReader) -> Result<Self, $crate::state::StateError> {
                let value = $type { $($field: $crate::state::StateValue::get(from)?,)* };
                $( $crate::state::check(value.$check(), stringify!($type))?; )?
                Ok(value)
            }
        }
    };
}
pub(crate) use value;

/// Implements [`StateValue`] for an enumeration from the codes, names and fields of all its variants.
macro_rules! variants {
    ($type:ident $(<$b:ident: $bound:ident>)? {
        $($code:literal => $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?,)*
    }) => {
        impl $(<$b: $bound>)? $crate::state::StateValue for $type $(<$b>)? {
            fn put(&self, to: &mut $crate::state::StateWriter) {
                match self {
                    $( $type::$variant $(($($item),*))? $({ $($field),* })? => {
                        <u8 as $crate::state::StateValue>::put(&$code, to);
                        $( $( $crate::state::StateValue::put($item, to); )* )?
                        $( $( $crate::state::StateValue::put($field, to); )* )?
                    } )*
                }
            }

            fn get(from: &mut $crate::state::StateReader) -> Result<Self, $crate::state::StateError> {
                match <u8 as $crate::state::StateValue>::get(from)? {
                    $( $code => {
                        $( $( let $item = $crate::state::StateValue::get(from)?; )* )?
                        $( $( let $field = $crate::state::StateValue::get(from)?; )* )?
                        Ok($type::$variant $(($($item),*))? $({ $($field),* })?)
                    } )*
                    _ => Err($crate::state::StateError::Invalid(stringify!($type))),
                }
            }
        }
    };
}
pub(crate) use variants;

/// Returns an error for a `what` that is not valid.
pub(crate) fn check(is_valid: bool, what: &'static str) -> Result<(), StateError> {
    if is_valid { Ok(()) } else { Err(StateError::Invalid(what)) }
}

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
struct LastNumbers {
    of_kind: [i64; NumberKind::Effect as usize + 1],
    /// The last time about each entity.
    of_entity: SortedMap<EntityId, Micros>,
}

impl LastNumbers {
    fn of(&mut self, kind: NumberKind) -> &mut i64 {
        &mut self.of_kind[kind as usize]
    }

    /// Expects a time near the last one about the entity, or near the last time if there is none.
    fn expect_near(&mut self, entity: EntityId) {
        if let Some(Micros(time)) = self.of_entity.get(&entity) {
            self.of_kind[NumberKind::Time as usize] = *time;
        }
    }

    fn note(&mut self, entity: EntityId, time: Micros) {
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

/// The most memory that a restored state may take, in bytes.
const STATE_BYTES_MAX: usize = 256 << 20;

/// The reasons why bytes are not a valid state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    #[error("it would take more than {} MiB of memory", STATE_BYTES_MAX >> 20)]
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
    /// Reads the output of a [`StateWriter`] that had the same `known` values.
    ///
    /// # Errors
    /// When the bytes are not a state.
    pub fn new(bytes: &[u8], known: SharedValues) -> Result<StateReader, StateError> {
        let last = LastNumbers::default();
        let mut from =
            StateReader { bytes: bytes.into(), at: 0, last, shared: Vec::new(), referable: 0, left: STATE_BYTES_MAX };
        let new = get_new_values(&known.values, &mut from)?;
        let entry = |bytes| SharedEntry { bytes, value: None };
        from.shared = known.values.into_iter().chain(new).map(entry).collect();
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
        let last = self.last.of(kind);
        *last = last.wrapping_add(by);
        Ok(*last)
    }

    /// Reads a time that is near the last one about the same entity.
    pub(crate) fn time_of(&mut self, entity: EntityId) -> Result<Micros, StateError> {
        self.last.expect_near(entity);
        let time = Micros::get(self)?;
        self.last.note(entity, time);
        Ok(time)
    }

    /// Reads this number of bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u8>, StateError> {
        let end = self.at.checked_add(count).ok_or(StateError::Cut)?;
        let bytes = self.bytes.get(self.at..end).ok_or(StateError::Cut)?.to_vec();
        self.at = end;
        Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Touch;
    use crate::history::Frame;
    use crate::rink::Skater;
    use hitreg_log::units::{CommandSeq, Tick};
    use hitreg_log::usercmd::Usercmd;

    fn written(value: &impl StateValue, known: SharedValues) -> Vec<u8> {
        let mut to = StateWriter::new(known);
        value.put(&mut to);
        to.into_bytes()
    }

    fn read<T: StateValue>(bytes: &[u8], known: SharedValues) -> Result<T, StateError> {
        let mut from = StateReader::new(bytes, known)?;
        let value = T::get(&mut from)?;
        from.end().map(|()| value)
    }

    fn commands() -> Vec<Usercmd> {
        (0..200).map(|place| Usercmd { seq: CommandSeq(place % 3), ..Usercmd::default() }).collect()
    }

    #[test]
    fn equal_values_are_stored_once() {
        let bytes = written(&commands(), SharedValues::default());
        assert!(bytes.len() < 400, "{} bytes", bytes.len());
        assert_eq!(read::<Vec<Usercmd>>(&bytes, SharedValues::default()).expect("its own state"), commands());
    }

    #[test]
    fn frames_that_are_dropped_while_writing_survive_a_round_trip() {
        let frame = |tick: u32| Frame::<Skater> { tick: Tick(tick), server_time: Micros::ZERO, entities: Vec::new() };
        let mut to = StateWriter::new(SharedValues::default());
        (0..3).for_each(|tick| Arc::new(frame(tick)).put(&mut to));
        let bytes = to.into_bytes();
        let mut from = StateReader::new(&bytes, SharedValues::default()).expect("its own state");
        let read = [(); 3].map(|()| <Arc<Frame<Skater>>>::get(&mut from).expect("its own state"));
        assert_eq!(read.map(|frame| frame.tick), [0, 1, 2].map(Tick));
    }

    #[test]
    fn every_variant_survives_a_round_trip() {
        let touches =
            vec![Touch::Player(EntityId(300)), Touch::Mover(EntityId(2)), Touch::Teleporter, Touch::WaterEdge];
        let bytes = written(&touches, SharedValues::default());
        assert_eq!(read::<Vec<Touch>>(&bytes, SharedValues::default()).expect("its own state"), touches);
        let unknown = read::<Touch>(&[0, 4], SharedValues::default());
        assert!(matches!(unknown, Err(StateError::Invalid("Touch"))), "{unknown:?}");
    }

    #[test]
    fn values_that_the_reader_has_are_not_stored() {
        let mut known = SharedValues::default();
        known.add(&commands());
        let bytes = written(&commands(), known.clone());
        assert_eq!(bytes[0], 0, "no new values");
        assert_eq!(read::<Vec<Usercmd>>(&bytes, known).expect("its own state"), commands());
        let without = read::<Vec<Usercmd>>(&bytes, SharedValues::default());
        assert!(matches!(without, Err(StateError::Unknown { .. })), "{without:?}");
    }

    #[test]
    fn refuses_bytes_that_are_cut_or_go_on() {
        let bytes = written(&commands(), SharedValues::default());
        for length in 0..bytes.len() {
            assert!(read::<Vec<Usercmd>>(&bytes[..length], SharedValues::default()).is_err(), "{length} bytes");
        }
        let longer = read::<Vec<Usercmd>>(&[&bytes[..], &[0]].concat(), SharedValues::default());
        assert!(matches!(longer, Err(StateError::Long(1))), "{longer:?}");
    }

    #[test]
    fn refuses_values_that_refer_to_themselves_or_are_of_another_type() {
        // A frame of tick 0 and time 0 whose only body is shared value 0: the frame itself.
        let itself = [1, 5, 0, 0b1, 0, 0, 1, 0, 0];
        let found = read::<Arc<Frame<Skater>>>(&itself, SharedValues::default());
        assert!(matches!(found, Err(StateError::Unknown { .. })), "{found:?}");
        let both = written(&(Usercmd::default(), Usercmd::default()), SharedValues::default());
        assert!(read::<(Usercmd, Arc<[u32]>)>(&both, SharedValues::default()).is_err());
    }

    #[test]
    fn refuses_more_memory_than_a_state_may_take() {
        type Large = [u64; 4096];
        let bytes = |count: usize| written(&vec![0_u8; count], SharedValues::default());
        let most = STATE_BYTES_MAX / size_of::<Large>();
        let large = read::<Vec<Large>>(&bytes(most + 1), SharedValues::default());
        assert!(matches!(large, Err(StateError::Large)), "{large:?}");
        let cut = read::<Vec<Large>>(&bytes(most), SharedValues::default());
        assert!(matches!(cut, Err(StateError::Number(_) | StateError::Cut)), "it has room, but not {most} values");
    }
}
