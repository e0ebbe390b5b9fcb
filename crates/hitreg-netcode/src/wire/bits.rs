//! Bit-level writing and reading of datagrams, and compact encodings of numbers: varints, and the change of a cell from a
//! known value to another. All of them are lossless. Bits fill each byte from the lowest bit, and numbers are written
//! lowest bit first. A byte-aligned number of whole bytes is therefore little-endian.
//!
//! hitreg has its own bit writer because it must remove bits that turn out not to fit ([`BitWriter::cut_to`]).

use super::DecodeError;
use crate::game::CellKind;
use hitreg_log::varint::{unzigzag, zigzag};

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

    /// Appends the number of bytes in `bits` bits, then the bytes. They are cut at `most`.
    pub(crate) fn put_counted(&mut self, bytes: &[u8], most: usize, bits: u32) {
        let bytes = &bytes[..bytes.len().min(most)];
        self.put(bytes.len() as u64, bits);
        self.put_bytes(bytes);
    }

    /// Appends a text like [`BitWriter::put_counted`], cut at a character's boundary.
    pub(crate) fn put_text(&mut self, text: &str, most: usize, bits: u32) {
        self.put_counted(text.as_bytes(), text.floor_char_boundary(most), bits);
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

/// The width in bits of an integer's change, by its 3-bit class.
const INTEGER_WIDTHS: [u32; 8] = [1, 3, 5, 8, 12, 16, 24, 32];

/// The 2-bit codes for how a float's new value is written.
const FLOAT_IS_ZERO: u64 = 0;
const FLOAT_MOVED: u64 = 1;
const FLOAT_TRIMMED: u64 = 2;
const FLOAT_WHOLE: u64 = 3;
/// A trimmed float with more bits than this takes no less room than a whole one.
const FLOAT_LENGTH_MAX: u32 = 28;

/// Writes a number in chunks of `chunk` bits, lowest first. After each chunk, one bit says whether more chunks follow.
pub(crate) fn put_varint(out: &mut BitWriter, value: u64, chunk: u32) {
    let mut value = value;
    loop {
        let low = value & ((1 << chunk) - 1);
        value >>= chunk;
        out.put(low | u64::from(value != 0) << chunk, chunk + 1);
        if value == 0 {
            return;
        }
    }
}

/// Reads a number from [`put_varint`], at most 64 bits long.
pub(crate) fn get_varint(from: &mut BitReader<'_>, chunk: u32) -> Result<u64, DecodeError> {
    let mut value: u64 = 0;
    let mut shift = 0;
    loop {
        let part = from.get(chunk)?;
        if shift >= 64 || (part << shift) >> shift != part {
            return Err(DecodeError::bad("a number of more than 64 bits", part));
        }
        value |= part << shift;
        shift += chunk;
        if !from.get_bool()? {
            return Ok(value);
        }
    }
}

/// Writes a signed number: 6 bits of length, then that many bits of its zigzag code. A length of 63 means 64 bits.
pub(crate) fn put_signed(out: &mut BitWriter, value: i64) {
    let zigzag = zigzag(value);
    let length = (64 - zigzag.leading_zeros()).min(63);
    out.put(u64::from(length), 6);
    out.put(zigzag, if length == 63 { 64 } else { length });
}

/// Reads a number from [`put_signed`].
pub(crate) fn get_signed(from: &mut BitReader<'_>) -> Result<i64, DecodeError> {
    let length = from.get(6)? as u32;
    let zigzag = from.get(if length == 63 { 64 } else { length })?;
    Ok(unzigzag(zigzag))
}

/// Writes the new value of a cell. `new` must differ from `old`.
pub(crate) fn put_change(out: &mut BitWriter, kind: CellKind, old: u32, new: u32) {
    match kind {
        CellKind::F32 => put_float_change(out, old, new),
        // Each half of a 64-bit value is an integer.
        _ => {
            let change = zigzag_change(old, new);
            let class = INTEGER_WIDTHS.iter().position(|width| bits_of(change) <= *width).unwrap_or(7);
            out.put(class as u64 | u64::from(change) << 3, 3 + INTEGER_WIDTHS[class]);
        }
    }
}

/// Reads the new value of a cell.
pub(crate) fn get_change(from: &mut BitReader<'_>, kind: CellKind, old: u32) -> Result<u32, DecodeError> {
    match kind {
        CellKind::F32 => get_float_change(from, old),
        _ => {
            let class = from.get(3)? as usize;
            let change = from.get(INTEGER_WIDTHS[class])? as u32;
            apply_change(old, change)
        }
    }
}

/// Writes one bit that says whether the cell changed, then the change.
pub(crate) fn put_maybe_changed(out: &mut BitWriter, kind: CellKind, old: u32, new: u32) {
    out.put_bool(old != new);
    if old != new {
        put_change(out, kind, old, new);
    }
}

/// Reads a cell from [`put_maybe_changed`].
pub(crate) fn get_maybe_changed(from: &mut BitReader<'_>, kind: CellKind, old: u32) -> Result<u32, DecodeError> {
    if from.get_bool()? { get_change(from, kind, old) } else { Ok(old) }
}

fn put_float_change(out: &mut BitWriter, old: u32, new: u32) {
    // The bit patterns of neighbouring floats are neighbouring integers, so a small step is a small integer difference.
    // An XOR would be longer where a carry flips many bits.
    let change = zigzag_change(old, new);
    let moved = bits_of(change);
    let trimmed = 32 - new.trailing_zeros();
    if new == 0 {
        out.put(FLOAT_IS_ZERO, 2);
    } else if moved <= FLOAT_LENGTH_MAX && moved <= trimmed {
        // The highest bit is always 1, so it is not written.
        let implied = moved.saturating_sub(1);
        let low = u64::from(change) & ((1 << implied) - 1);
        out.put(FLOAT_MOVED | u64::from(moved) << 2 | low << 7, 7 + implied);
    } else if trimmed <= FLOAT_LENGTH_MAX {
        // The lowest kept bit is always 1, so it is not written.
        let kept = u64::from(new >> (32 - trimmed) >> 1);
        out.put(FLOAT_TRIMMED | u64::from(trimmed) << 2 | kept << 7, 7 + trimmed - 1);
    } else {
        out.put(FLOAT_WHOLE | u64::from(new) << 2, 2 + 32);
    }
}

fn get_float_change(from: &mut BitReader<'_>, old: u32) -> Result<u32, DecodeError> {
    match from.get(2)? {
        FLOAT_IS_ZERO => Ok(0),
        FLOAT_MOVED => {
            let length = from.get(5)? as u32;
            let implied = length.saturating_sub(1);
            let low = from.get(implied)? as u32;
            apply_change(old, if length == 0 { 0 } else { low | (1 << implied) })
        }
        FLOAT_TRIMMED => {
            let length = from.get(5)? as u32;
            if length == 0 {
                return Err(DecodeError::bad("the length of a float", 0));
            }
            let kept = ((from.get(length - 1)? as u32) << 1) | 1;
            Ok(kept << (32 - length))
        }
        _ => from.get_u32(),
    }
}

/// Returns the zigzag code of a non-zero difference, starting at 0: -1, 1, -2, 2, ...
fn zigzag_change(old: u32, new: u32) -> u32 {
    let difference = new.wrapping_sub(old) as i32;
    (((difference << 1) ^ (difference >> 31)) as u32).wrapping_sub(1)
}

fn apply_change(old: u32, change: u32) -> Result<u32, DecodeError> {
    let zigzag = change.checked_add(1).ok_or(DecodeError::bad("a change", u64::from(change)))?;
    let difference = (zigzag >> 1) ^ 0u32.wrapping_sub(zigzag & 1);
    Ok(old.wrapping_add(difference))
}

fn bits_of(value: u32) -> u32 {
    32 - value.leading_zeros()
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

    fn bits_of_change(kind: CellKind, old: u32, new: u32) -> usize {
        let mut out = BitWriter::default();
        put_change(&mut out, kind, old, new);
        out.len_bits()
    }

    #[test]
    fn common_changes_are_short() {
        assert_eq!(bits_of_change(CellKind::U32, 0, 1), 4);
        assert_eq!(bits_of_change(CellKind::U32, 1, 0), 4);
        assert_eq!(bits_of_change(CellKind::I32, 100, 83), 3 + 8);
        assert_eq!(bits_of_change(CellKind::F32, 1.5f32.to_bits(), 0), 2);
        assert_eq!(bits_of_change(CellKind::F32, 0, 270f32.to_bits()), 2 + 5 + 15);
        assert_eq!(bits_of_change(CellKind::F32, 1000f32.to_bits(), 1005f32.to_bits()), 2 + 5 + 17);
        assert_eq!(bits_of_change(CellKind::F32, 1f32.to_bits(), (-0.1f32).to_bits()), 2 + 32);
    }

    proptest! {
        #[test]
        fn every_change_survives_a_round_trip(old in any::<u32>(), new in any::<u32>(), near in -70_000i32..70_000, keep in 0u32..32) {
            let near = old.wrapping_add(near as u32);
            let round = new >> keep << keep;
            for kind in [CellKind::F32, CellKind::I32, CellKind::U32] {
                for new in [new, near, round, 0, old] {
                    let mut out = BitWriter::default();
                    put_maybe_changed(&mut out, kind, old, new);
                    prop_assert!(out.len_bits() <= 36);
                    let bytes = out.into_bytes();
                    let mut from = BitReader::new(&bytes);
                    prop_assert_eq!(get_maybe_changed(&mut from, kind, old), Ok(new));
                    prop_assert_eq!(from.finish(), Ok(()));
                }
            }
        }

        #[test]
        fn varints_and_signed_numbers_survive_a_round_trip(value in any::<u64>(), shift in 0u32..64, chunk in 1u32..9) {
            let value = value >> shift;
            let mut out = BitWriter::default();
            put_varint(&mut out, value, chunk);
            put_signed(&mut out, value as i64);
            put_signed(&mut out, (value as i64).wrapping_neg());
            let bytes = out.into_bytes();
            let mut from = BitReader::new(&bytes);
            prop_assert_eq!(get_varint(&mut from, chunk), Ok(value));
            prop_assert_eq!(get_signed(&mut from), Ok(value as i64));
            prop_assert_eq!(get_signed(&mut from), Ok((value as i64).wrapping_neg()));
            prop_assert_eq!(from.finish(), Ok(()));
        }
    }

    #[test]
    fn endless_varints_are_refused() {
        assert!(get_varint(&mut BitReader::new(&[0xff; 40]), 5).is_err());
        assert!(get_varint(&mut BitReader::new(&[0xff; 4]), 5).is_err());
    }
}
