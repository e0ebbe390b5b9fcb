//! Reads the bits of a message: first the `width % 8` raw bits of a number, then whole bytes in the [prefix
//! code](super::huffman).

use super::huffman;

/// Why a message cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitReadError {
    /// The message has ended.
    #[error("it ends in the middle of a value")]
    Ended,
    /// The bits are not a codeword.
    #[error("it has bits that are no codeword")]
    NoCode,
}

/// The longest string in a message, in bytes; config strings are the longest.
const LONGEST_STRING: usize = 8192;

#[derive(Clone, Debug)]
pub(crate) struct HuffmanReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> HuffmanReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> HuffmanReader<'a> {
        HuffmanReader { bytes, bit: 0 }
    }

    /// Reads an unsigned number of up to 32 bits.
    pub(crate) fn bits(&mut self, width: u32) -> Result<u32, BitReadError> {
        let raw = width & 7;
        let mut value = self.peek() & ((1 << raw) - 1);
        self.skip(raw as usize)?;
        for shift in (raw..width).step_by(8) {
            let (byte, length) = huffman::decode(self.peek())?;
            self.skip(length)?;
            value |= u32::from(byte) << shift;
        }
        Ok(value)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, BitReadError> {
        Ok(self.bits(1)? != 0)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, BitReadError> {
        Ok(self.bits(8)? as u8)
    }

    pub(crate) fn short(&mut self) -> Result<i16, BitReadError> {
        Ok(self.bits(16)? as u16 as i16)
    }

    pub(crate) fn long(&mut self) -> Result<i32, BitReadError> {
        Ok(self.bits(32)? as i32)
    }

    /// Reads bytes up to a zero byte.
    pub(crate) fn string(&mut self) -> Result<Vec<u8>, BitReadError> {
        let mut string = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(string),
                _ if string.len() == LONGEST_STRING => return Err(BitReadError::Ended),
                byte => string.push(byte),
            }
        }
    }

    /// Returns the next bits, padded with zeros at the end.
    fn peek(&self) -> u32 {
        let from = self.bit / 8;
        let byte = |index: usize| u32::from(self.bytes.get(from + index).copied().unwrap_or(0)) << (8 * index);
        (byte(0) | byte(1) | byte(2)) >> (self.bit % 8)
    }

    fn skip(&mut self, bits: usize) -> Result<(), BitReadError> {
        self.bit += bits;
        if self.bit <= self.bytes.len() * 8 { Ok(()) } else { Err(BitReadError::Ended) }
    }
}
