//! Values that a state holds many times, such as the bodies that both ends of every connection know, and the records of a
//! log near a keyframe.
//!
//! A new value is stored as its difference from the most similar earlier value of the same length. Most bodies share
//! all but a few words with one that the log has nearby.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::{StateError, StateReader, StateValue, StateWriter, check};
use crate::game::{Body, Effect};
use crate::history::Frame;
use hitreg_log::sorted::{Entry, SortedMap};
use hitreg_log::units::{EntityId, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::Usercmd;
use hitreg_log::varint::put_varint;

/// The most earlier values that a new value is compared with, apart from the neighbours of the most similar one.
const COMPARED_MAX: usize = 1024;

/// The bytes of a word. Bodies consist of words, and values are compared by words.
const WORD: usize = size_of::<u32>();
/// The bytes of the words that have their bits in one byte.
const BLOCK: usize = 8 * WORD;

/// Values that are stored once and referenced by index, each as its bytes.
#[derive(Clone, Debug, Default)]
pub struct SharedValues {
    pub(super) values: Vec<Arc<[u8]>>,
    /// The place of each value by its XXH3-64, or by the next free number where another value has the same hash.
    places: SortedMap<u64, usize>,
}

impl SharedValues {
    /// Adds all values in `value` that can be shared, so that a state does not store them.
    pub fn add(&mut self, value: &impl StateValue) {
        let mut to = StateWriter::new(std::mem::take(self));
        value.put(&mut to);
        *self = to.shared;
    }

    pub(super) fn index_of(&mut self, value: &[u8]) -> usize {
        let mut hash = xxh3_64(value);
        loop {
            match self.places.entry(hash) {
                Entry::Occupied(place) if *self.values[*place.get()] == *value => return *place.get(),
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
                Entry::Vacant(place) => {
                    let index = *place.insert(self.values.len());
                    self.values.push(value.into());
                    return index;
                }
            }
        }
    }
}

/// The earlier values by length, oldest first.
struct EarlierValues(SortedMap<usize, Vec<Arc<[u8]>>>);

impl EarlierValues {
    fn new(known: &[Arc<[u8]>]) -> EarlierValues {
        let mut earlier = EarlierValues(SortedMap::new());
        known.iter().for_each(|value| earlier.push(value));
        earlier
    }

    fn push(&mut self, value: &Arc<[u8]>) {
        self.0.entry(value.len()).or_default().push(Arc::clone(value));
    }

    /// Returns how many values of the same length ago the most similar one came; 0 if none is more similar than zeros.
    fn distance(&self, value: &[u8]) -> usize {
        let others = self.0.get(&value.len()).map_or(&[][..], |others| others);
        let zeros = value.chunks(WORD).filter(|word| word.iter().any(|byte| *byte != 0)).count();
        let step = others.len().div_ceil(COMPARED_MAX).max(1);
        let best = most_similar(value, others, (1..=others.len()).step_by(step), (zeros, 0));
        let (_, distance) = best;
        let near = distance.saturating_sub(step).max(1)..=(distance + step).min(others.len());
        if step == 1 || distance == 0 { distance } else { most_similar(value, others, near, best).1 }
    }

    /// Returns the value of this length at a distance, as [`EarlierValues::distance`] counts it.
    fn at(&self, length: usize, distance: usize) -> Option<&[u8]> {
        let others = self.0.get(&length)?;
        others.get(others.len().checked_sub(distance)?).map(|other| &other[..])
    }
}

/// Returns the least number of differing words and its distance, among `best` and the others at these distances.
fn most_similar(
    value: &[u8],
    others: &[Arc<[u8]>],
    distances: impl Iterator<Item = usize>,
    mut best: (usize, usize),
) -> (usize, usize) {
    for distance in distances {
        let differing = differing_words(value, &others[others.len() - distance], best.0);
        if differing < best.0 {
            best = (differing, distance);
        }
    }
    best
}

/// Returns the number of words in which two values of the same length differ. Stops early when it reaches `most`.
fn differing_words(a: &[u8], b: &[u8], most: usize) -> usize {
    let ((words, rest), (others, other_rest)) = (a.as_chunks::<WORD>(), b.as_chunks::<WORD>());
    let mut differing = usize::from(rest != other_rest);
    // Keyframes spend most of their time here, so these are plain loops: pieces of a crate do not inline iterators.
    let mut from = 0;
    while from < words.len() && differing < most {
        let to = words.len().min(from + BLOCK / WORD);
        for index in from..to {
            differing += usize::from(words[index] != others[index]);
        }
        from = to;
    }
    differing
}

/// Writes the new values, each as its difference from an earlier one: all lengths, all distances, one bit for each word
/// that differs, and the differences. These are ordered by their place in the value, and by byte, so that similar bytes
/// are together.
pub(super) fn put_new_values(known: &[Arc<[u8]>], new: &[Arc<[u8]>], out: &mut Vec<u8>) {
    let mut earlier = EarlierValues::new(known);
    let (mut distances, mut bits, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for value in new {
        let distance = earlier.distance(value);
        put_varint(&mut distances, distance as u64);
        let other = earlier.at(value.len(), distance).into_iter().flatten().copied().chain(std::iter::repeat(0));
        let difference: Vec<u8> = value.iter().zip(other).map(|(byte, other)| byte ^ other).collect();
        for (block, words_of_byte) in difference.chunks(BLOCK).enumerate() {
            let mut differs = 0;
            for (bit, word) in words_of_byte.chunks(WORD).enumerate() {
                let mut filled = [0; WORD];
                filled[..word.len()].copy_from_slice(word);
                if filled != [0; WORD] {
                    differs |= 1_u8 << bit;
                    words.push((8 * block + bit, filled));
                }
            }
            bits.push(differs);
        }
        earlier.push(value);
    }
    words.sort_by_key(|(place, _)| *place);
    put_varint(out, new.len() as u64);
    new.iter().for_each(|value| put_varint(out, value.len() as u64));
    out.extend(distances);
    out.extend(bits);
    (0..WORD).for_each(|byte| out.extend(words.iter().map(|(_, word)| word[byte])));
}

/// The most memory that one value takes while it is read, in bytes, apart from its content.
const READ_VALUE_BYTES: usize = 96;

/// Reads what [`put_new_values`] wrote.
pub(super) fn get_new_values(known: &[Arc<[u8]>], from: &mut StateReader) -> Result<Vec<Arc<[u8]>>, StateError> {
    let count = from.count(READ_VALUE_BYTES)?;
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let length = usize::get(from)?;
        from.charge(length)?;
        lengths.push(length);
    }
    let distances = (0..count).map(|_| usize::get(from)).collect::<Result<Vec<_>, _>>()?;
    let bits = from.take(lengths.iter().map(|length| length.div_ceil(BLOCK)).sum())?;
    let differing = bits.iter().map(|bits| bits.count_ones() as usize).sum::<usize>();
    let words = from.take(differing * WORD)?;
    from.charge(differing * size_of::<(usize, usize)>())?;
    let mut places = Vec::with_capacity(differing);
    let mut bits = bits.into_iter();
    for (value, length) in lengths.iter().enumerate() {
        for (block, bits) in bits.by_ref().take(length.div_ceil(BLOCK)).enumerate() {
            places.extend((0..8).filter(|bit| bits >> bit & 1 == 1).map(|bit| (8 * block + bit, value)));
        }
    }
    places.sort_by_key(|(place, _)| *place);
    let mut values: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; *length]).collect();
    for (index, (place, value)) in places.into_iter().enumerate() {
        let value = values[value].get_mut(place * WORD..).unwrap_or_default();
        check(!value.is_empty(), "shared value")?;
        let word = words.iter().skip(index).step_by(differing);
        value.iter_mut().zip(word).for_each(|(byte, word)| *byte = *word);
    }
    let mut earlier = EarlierValues::new(known);
    let mut new = Vec::with_capacity(count);
    for (mut value, distance) in values.into_iter().zip(distances) {
        if distance > 0 {
            let other = earlier.at(value.len(), distance).ok_or(StateError::Unknown { what: "a shared value" })?;
            value.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
        }
        let value = Arc::from(value);
        earlier.push(&value);
        new.push(value);
    }
    Ok(new)
}

/// Snapshots and usercmds that a state need not store, because its reader has them.
#[derive(Debug)]
pub(crate) struct KnownRecords<B> {
    snapshots: SortedMap<(PlayerId, SnapshotSeq), KnownSnapshot<B>>,
    values: SharedValues,
}

/// A snapshot that the log has.
#[derive(Debug)]
pub(crate) struct KnownSnapshot<B> {
    pub(crate) frame: Arc<Frame<B>>,
    pub(crate) effects: Vec<Effect>,
}

impl<B> Default for KnownRecords<B> {
    fn default() -> KnownRecords<B> {
        KnownRecords { snapshots: SortedMap::new(), values: SharedValues::default() }
    }
}

impl<B: Body> KnownRecords<B> {
    pub(crate) fn add_command(&mut self, command: &Usercmd) {
        self.values.add(command);
    }

    /// Adds frames in ascending order of tick. The states of one entity get successive indices, so that references to
    /// them are small.
    pub(crate) fn add_frames(&mut self, frames: &[Arc<Frame<B>>]) {
        let mut bodies: Vec<&(EntityId, B)> = frames.iter().flat_map(|frame| &frame.entities).collect();
        bodies.sort_by_key(|(entity, _)| *entity);
        bodies.iter().for_each(|(_, body)| self.values.add(body));
        frames.iter().for_each(|frame| self.values.add(frame));
    }

    pub(crate) fn add_snapshot(&mut self, player: PlayerId, seq: SnapshotSeq, snapshot: KnownSnapshot<B>) {
        self.values.add(&snapshot.effects);
        self.snapshots.insert((player, seq), snapshot);
    }

    pub(crate) fn snapshot(&self, player: PlayerId, seq: SnapshotSeq) -> Option<&KnownSnapshot<B>> {
        self.snapshots.get(&(player, seq))
    }

    /// Returns the values that a state may refer to.
    pub(crate) fn values(&self) -> SharedValues {
        self.values.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(values: &[&[u8]]) -> Vec<Arc<[u8]>> {
        values.iter().map(|value| Arc::from(*value)).collect()
    }

    fn written(known: &[Arc<[u8]>], new: &[Arc<[u8]>]) -> Vec<u8> {
        let mut out = Vec::new();
        put_new_values(known, new, &mut out);
        out
    }

    fn read(known: &[Arc<[u8]>], bytes: &[u8]) -> Result<Vec<Arc<[u8]>>, StateError> {
        // A state without shared values starts with a zero.
        let mut from = StateReader::new(&[&[0], bytes].concat(), SharedValues::default())?;
        let new = get_new_values(known, &mut from)?;
        from.end().map(|()| new)
    }

    #[test]
    fn values_of_any_length_survive_a_round_trip() {
        let known = shared(&[b"", b"\0\0\0\0", b"word", b"words and more words that fill two blocks: 8 x 4 bytes"]);
        let new = shared(&[
            b"w",
            b"ward",
            b"words",
            b"",
            b"words",
            b"words and more words that fill two blocks: 9 x 4 bytes",
            b"words and less words that fill two blocks: 9 x 4 bytes",
            b"\0\0\0\0\0",
        ]);
        assert_eq!(read(&known, &written(&known, &new)).expect("its own values"), new);
        assert_eq!(read(&[], &written(&[], &new)).expect("its own values"), new);
    }

    #[test]
    fn a_value_is_stored_as_its_difference_from_the_most_similar_one() {
        let known = shared(&[&[7; 400], &[8; 400], &[9; 400]]);
        let mut value = [8; 400];
        value[200] = 0;
        let bytes = written(&known, &shared(&[&value]));
        // One value of 400 bytes, two values back, with one word in 13 bytes of bits.
        assert_eq!(bytes.len(), 1 + 2 + 1 + 13 + WORD);
        assert_eq!(bytes[..4], [1, 0x90, 3, 2]);
    }

    #[test]
    fn the_most_similar_of_very_many_values_is_found_among_those_near_the_best() {
        let value = |index: u32| (0..10).flat_map(|word| (index / (1 << word)).to_le_bytes()).collect::<Vec<u8>>();
        let known: Vec<Arc<[u8]>> = (0..3 * COMPARED_MAX as u32).map(|index| value(index).into()).collect();
        let index = COMPARED_MAX + COMPARED_MAX / 4 + 1;
        let mut new = value(index as u32);
        new[0] ^= 0xFF;
        let distance = EarlierValues::new(&known).distance(&new);
        assert!((known.len() - distance).abs_diff(index) <= 1, "{distance}");
        let new = [Arc::from(new)];
        assert_eq!(read(&known, &written(&known, &new)).expect("its own values"), new);
    }

    #[test]
    fn refuses_differences_from_values_that_do_not_exist_and_words_beyond_the_end() {
        let missing = read(&shared(&[b"word"]), &[1, 4, 2, 0]);
        assert!(matches!(missing, Err(StateError::Unknown { .. })), "{missing:?}");
        let beyond = read(&[], &[1, 4, 0, 0b10, 1, 1, 1, 1]);
        assert!(matches!(beyond, Err(StateError::Invalid(_))), "{beyond:?}");
        let cut = read(&[], &[1, 4, 0, 0b1, 1, 1, 1]);
        assert!(matches!(cut, Err(StateError::Cut)), "{cut:?}");
        let cut = read(&[], &[&[1, 0x80, 0x80, 4, 0][..], &[0xFF; 2048], &[1; 1 << 15]].concat());
        assert!(matches!(cut, Err(StateError::Cut)), "{cut:?}");
        let large = read(&[], &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xF, 0]);
        assert!(matches!(large, Err(StateError::Large)), "{large:?}");
    }
}
