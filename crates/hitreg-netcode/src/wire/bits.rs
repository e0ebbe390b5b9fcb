//! Bit-level writing and reading of datagrams. Bits fill each byte from the lowest bit, and numbers are written lowest
//! bit first. A byte-aligned number of whole bytes is therefore little-endian.
//!
//! hitreg has its own bit writer because it must remove bits that turn out not to fit ([`BitWriter::cut_to`]).

use super::DecodeError;

/// Appends bits to a byte vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitWriter {
    /// The bytes, and zeros after them: numbers are written eight bytes at a time.
    bytes: Vec<u8>,
    bits: usize,
}

/// The zeros that a full vector grows by.
const GROWTH_BYTES: usize = 128;

impl BitWriter {
    /// Appends the lowest `bits` (0 to 64) of `value`.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits == 64 || value >> bits == 0, "{value} does not fit {bits} bits");
        if bits > 56 {
            self.put(value & 0xffff_ffff, 32);
            return self.put(value >> 32, bits - 32);
        }
        let (first, used) = (self.bits / 8, self.bits % 8);
        if first + 8 > self.bytes.len() {
            self.bytes.resize(first + GROWTH_BYTES, 0);
        }
        if let Some(window) = self.bytes[first..].first_chunk_mut() {
            *window = (u64::from_le_bytes(*window) | value << used).to_le_bytes();
        }
        self.bits += bits as usize;
    }

    pub(crate) fn put_bool(&mut self, value: bool) {
        self.put(u64::from(value), 1);
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        if self.bits.is_multiple_of(8) {
            self.bytes.truncate(self.bits / 8);
            self.bytes.extend_from_slice(bytes);
            self.bits += bytes.len() * 8;
        } else {
            bytes.iter().for_each(|byte| self.put(u64::from(*byte), 8));
        }
    }

    /// Appends the number of bytes in `bits` bits, then the bytes.
    pub(crate) fn put_counted(&mut self, bytes: &[u8], bits: u32) {
        self.put(bytes.len() as u64, bits);
        self.put_bytes(bytes);
    }

    pub(crate) fn len_bits(&self) -> usize {
        self.bits
    }

    /// Removes everything after the first `bits` bits.
    pub(crate) fn cut_to(&mut self, bits: usize) {
        self.bits = self.bits.min(bits);
        self.bytes.truncate(self.bits.div_ceil(8));
        let used = self.bits % 8;
        if let (true, Some(last)) = (used > 0, self.bytes.last_mut()) {
            *last &= (1 << used) - 1;
        }
    }

    /// Replaces a whole byte that has already been written.
    pub(crate) fn replace_byte(&mut self, index: usize, byte: u8) {
        if index < self.bits / 8 {
            self.bytes[index] = byte;
        }
    }

    /// Returns the bytes. The unused bits of the last byte are 0.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.bits.div_ceil(8));
        self.bytes
    }
}

/// Reads bits from a datagram. Every read is bounds-checked.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// Passes over the next `bits` bits.
    pub(crate) fn skip(&mut self, bits: usize) -> Result<(), DecodeError> {
        if bits > self.bytes.len() * 8 - self.at {
            return Err(DecodeError::TooShort);
        }
        self.at += bits;
        Ok(())
    }

    /// Returns the next `bits` (0 to 64) bits.
    #[inline]
    pub(crate) fn get(&mut self, bits: u32) -> Result<u64, DecodeError> {
        let (first, used) = (self.at / 8, self.at % 8);
        // Nearly every number lies within the next eight bytes.
        if bits <= 56
            && let Some(window) = self.bytes.get(first..).and_then(<[u8]>::first_chunk)
        {
            self.at += bits as usize;
            return Ok((u64::from_le_bytes(*window) >> used) & ((1 << bits) - 1));
        }
        self.get_slowly(bits)
    }

    /// Returns the next bits where they are many, or near the end.
    #[cold]
    fn get_slowly(&mut self, bits: u32) -> Result<u64, DecodeError> {
        if bits as usize > self.bytes.len() * 8 - self.at {
            return Err(DecodeError::TooShort);
        }
        let (first, used) = (self.at / 8, self.at % 8);
        self.at += bits as usize;
        let mut window = [0; 16];
        for (byte, from) in window.iter_mut().zip(&self.bytes[first..self.at.div_ceil(8)]) {
            *byte = *from;
        }
        Ok(((u128::from_le_bytes(window) >> used) & ((1 << bits) - 1)) as u64)
    }

    pub(crate) fn get_bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.get(1)? == 1)
    }

    pub(crate) fn get_u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.get(8)? as u8)
    }

    pub(crate) fn get_u16(&mut self) -> Result<u16, DecodeError> {
        Ok(self.get(16)? as u16)
    }

    pub(crate) fn get_u32(&mut self) -> Result<u32, DecodeError> {
        Ok(self.get(32)? as u32)
    }

    /// Returns the next `count` bytes. It allocates only after checking that they exist.
    pub(crate) fn get_bytes(&mut self, count: usize) -> Result<Vec<u8>, DecodeError> {
        if count * 8 > self.bytes.len() * 8 - self.at {
            return Err(DecodeError::TooShort);
        }
        if self.at.is_multiple_of(8) {
            let first = self.at / 8;
            self.at += count * 8;
            return Ok(self.bytes[first..first + count].to_vec());
        }
        (0..count).map(|_| self.get_u8()).collect()
    }

    /// Returns bytes from [`BitWriter::put_counted`].
    pub(crate) fn get_counted(&mut self, bits: u32) -> Result<Vec<u8>, DecodeError> {
        let count = self.get(bits)? as usize;
        self.get_bytes(count)
    }

    /// Checks that only the zero bits that pad the last byte are left.
    pub(crate) fn finish(&mut self) -> Result<(), DecodeError> {
        let left = self.bytes.len() * 8 - self.at;
        if left >= 8 || self.get(left as u32)? != 0 { Err(DecodeError::TrailingBits) } else { Ok(()) }
    }

    /// Checks that all remaining bits are 0.
    pub(crate) fn finish_padding(&mut self) -> Result<(), DecodeError> {
        while self.at < self.bytes.len() * 8 {
            let left = (self.bytes.len() * 8 - self.at).min(64);
            if self.get(left as u32)? != 0 {
                return Err(DecodeError::TrailingBits);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lowest_bit_comes_first() {
        let mut out = BitWriter::default();
        out.put(0b1, 1);
        out.put(0b10, 2);
        out.put(0x1ff, 9);
        assert_eq!(out.into_bytes(), [0b1111_1101, 0b0000_1111]);
        let mut out = BitWriter::default();
        out.put(0x0102_0304, 32);
        assert_eq!(out.into_bytes(), [4, 3, 2, 1]);
    }

    fn masked(value: u64, bits: u32) -> u64 {
        if bits == 64 { value } else { value & ((1 << bits) - 1) }
    }

    proptest! {
        #[test]
        fn written_bits_are_read_back(values in prop::collection::vec((any::<u64>(), 0u32..=64), 0..50)) {
            let mut out = BitWriter::default();
            for (value, bits) in &values {
                out.put(masked(*value, *bits), *bits);
            }
            let total: usize = values.iter().map(|(_, bits)| *bits as usize).sum();
            prop_assert_eq!(out.len_bits(), total);
            let bytes = out.into_bytes();
            prop_assert_eq!(bytes.len(), total.div_ceil(8));
            let mut from = BitReader::new(&bytes);
            for (value, bits) in &values {
                prop_assert_eq!(from.get(*bits), Ok(masked(*value, *bits)));
            }
            prop_assert_eq!(from.finish(), Ok(()));
            prop_assert_eq!(from.get(9), Err(DecodeError::TooShort));
        }

        #[test]
        fn truncation_leaves_no_trace(first in any::<u64>(), bits in 0u32..64, second in any::<u64>()) {
            let mut out = BitWriter::default();
            out.put(masked(first, bits), bits);
            let whole = out.clone().into_bytes();
            out.put(second, 64);
            out.cut_to(bits as usize);
            prop_assert_eq!(out.into_bytes(), whole);
        }
    }
}
