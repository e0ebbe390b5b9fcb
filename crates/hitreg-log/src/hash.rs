//! The state hash: XXH3-64 with seed 0 over the little-endian bytes of a sequence of 32-bit words. A build in another
//! language needs only this definition and the order of the words.

use std::borrow::Cow;

use bytemuck::{NoUninit, bytes_of, cast_slice};
use xxhash_rust::xxh3::Xxh3Default;

/// Collects words and bytes into one 64-bit hash.
#[derive(Clone, Default)]
pub struct StateHasher {
    inner: Xxh3Default,
}

crate::partial_debug!(StateHasher {});

impl StateHasher {
    /// Returns a hasher with no input yet.
    pub fn new() -> StateHasher {
        StateHasher::default()
    }

    /// Adds words in order.
    #[inline]
    pub fn words(&mut self, words: &[u32]) {
        self.inner.update(&little_endian(words, u32::to_le));
    }

    /// Adds bytes in order.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.inner.update(bytes);
    }

    /// Returns the hash of everything added so far.
    pub fn finish(&self) -> u64 {
        self.inner.digest()
    }
}

/// Returns numbers as little-endian bytes. On a little-endian machine it borrows them without a copy.
pub(crate) fn little_endian<T: NoUninit>(numbers: &[T], to_le: fn(T) -> T) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(cast_slice(numbers))
    } else {
        Cow::Owned(numbers.iter().flat_map(|number| bytes_of(&to_le(*number)).to_vec()).collect())
    }
}

/// Returns the hash of one sequence of words.
pub fn hash_words(words: &[u32]) -> u64 {
    let mut hasher = StateHasher::new();
    hasher.words(words);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hash_as_their_little_endian_bytes() {
        let words: Vec<u32> = (0..200u32).map(|i| i.wrapping_mul(0x0101_0101)).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(hash_words(&words), xxhash_rust::xxh3::xxh3_64(&bytes));
    }
}
