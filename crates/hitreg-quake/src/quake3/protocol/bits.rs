//! Reads the bits of a message: first the `width % 8` raw bits of a number, then whole bytes in a prefix code.
//!
//! The code is static. At start, the engine feeds an adaptive coder the frequencies of one recorded game (ioquake3's msg.c and
//! huffman.c). The result is constant, so this file contains the codewords.

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
const STRING_BYTES_MAX: usize = 8192;

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
            let (byte, length) = decode(self.peek())?;
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
                _ if string.len() == STRING_BYTES_MAX => return Err(BitReadError::Ended),
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

/// Codeword of each byte below a leading 1 that marks its length. The lowest bit comes first on the wire.
#[rustfmt::skip]
const CODES: [u16; 256] = [
    0x006, 0x03b, 0x0c8, 0x0ec, 0x1a1, 0x111, 0x090, 0x07f, 0x035, 0x0b4, 0x0e9, 0x08b, 0x093, 0x06d, 0x139, 0x2ac,
    0x0a5, 0x258, 0x3f0, 0x3f8, 0x5dd, 0x7f3, 0x62b, 0x723, 0x2f4, 0x58d, 0x4ab, 0x763, 0x5eb, 0x143, 0x24f, 0x1d4,
    0x077, 0x4d3, 0x244, 0x6cd, 0x7c5, 0x7f9, 0x70d, 0x7cd, 0x294, 0x5ac, 0x433, 0x414, 0x671, 0x6f0, 0x3f4, 0x178,
    0x0a7, 0x1c3, 0x1ef, 0x397, 0x153, 0x1b1, 0x20d, 0x361, 0x207, 0x2f1, 0x399, 0x591, 0x523, 0x2bc, 0x344, 0x5f3,
    0x1cf, 0x0d0, 0x0fc, 0x084, 0x121, 0x151, 0x280, 0x270, 0x33d, 0x463, 0x6d7, 0x771, 0x39d, 0x6ab, 0x5c7, 0x733,
    0x32c, 0x49d, 0x56b, 0x76b, 0x5d3, 0x571, 0x5e3, 0x633, 0x4d7, 0x6cb, 0x370, 0x2a8, 0x2c7, 0x305, 0x2eb, 0x1d8,
    0x2f3, 0x13c, 0x3ab, 0x38f, 0x297, 0x0b0, 0x141, 0x34f, 0x05c, 0x128, 0x2bd, 0x2c4, 0x198, 0x28f, 0x10c, 0x1b3,
    0x185, 0x18c, 0x147, 0x179, 0x0d9, 0x0c0, 0x117, 0x119, 0x14b, 0x1e1, 0x1a3, 0x173, 0x16f, 0x0e8, 0x088, 0x0e5,
    0x05f, 0x0a9, 0x0cc, 0x0fd, 0x10f, 0x183, 0x101, 0x187, 0x167, 0x1e7, 0x157, 0x174, 0x3cb, 0x3c4, 0x281, 0x24d,
    0x331, 0x563, 0x380, 0x7d7, 0x42b, 0x545, 0x46b, 0x43d, 0x72b, 0x4f9, 0x4e3, 0x645, 0x52b, 0x431, 0x7eb, 0x5b9,
    0x314, 0x5f9, 0x533, 0x42c, 0x6dd, 0x5c1, 0x71d, 0x5d1, 0x338, 0x461, 0x6e3, 0x745, 0x66b, 0x4cd, 0x4cb, 0x54d,
    0x238, 0x7c1, 0x63d, 0x7bc, 0x4c5, 0x7ac, 0x7e3, 0x699, 0x7d3, 0x614, 0x603, 0x5bc, 0x69d, 0x781, 0x663, 0x48d,
    0x154, 0x303, 0x15d, 0x060, 0x089, 0x7c7, 0x707, 0x1b8, 0x3f1, 0x62c, 0x445, 0x403, 0x51d, 0x5c5, 0x74d, 0x41d,
    0x200, 0x7b9, 0x4dd, 0x581, 0x50d, 0x4b9, 0x5cd, 0x794, 0x5bd, 0x594, 0x78d, 0x558, 0x7bd, 0x4c1, 0x7dd, 0x4f8,
    0x2d1, 0x291, 0x499, 0x6f8, 0x423, 0x471, 0x6d3, 0x791, 0x0c9, 0x631, 0x507, 0x661, 0x623, 0x118, 0x605, 0x6c1,
    0x5d7, 0x4f0, 0x6c5, 0x700, 0x7d1, 0x7a8, 0x61d, 0xd00, 0x405, 0x758, 0x6f9, 0x5a8, 0x6b9, 0x68d, 0x0af, 0x064,
];

/// Length of the longest codeword, in bits.
const CODE_BITS_MAX: u32 = 11;

/// For each value of the next [`CODE_BITS_MAX`] bits: the byte and the length of its codeword; length 0 if no codeword
/// matches.
static DECODE: [(u8, u8); 1 << CODE_BITS_MAX] = decode_table();

const fn decode_table() -> [(u8, u8); 1 << CODE_BITS_MAX] {
    let mut table = [(0, 0); 1 << CODE_BITS_MAX];
    let mut byte = 0;
    while byte < 256 {
        let length = CODES[byte].ilog2();
        let mut index = CODES[byte] as usize - (1 << length);
        while index < 1 << CODE_BITS_MAX {
            table[index] = (byte as u8, length as u8);
            index += 1 << length;
        }
        byte += 1;
    }
    table
}

/// Returns the byte for the next bits and the length of its codeword. `bits` has at least [`CODE_BITS_MAX`] bits,
/// padded with zeros.
fn decode(bits: u32) -> Result<(u8, usize), BitReadError> {
    match DECODE[(bits & ((1 << CODE_BITS_MAX) - 1)) as usize] {
        (_, 0) => Err(BitReadError::NoCode),
        (byte, length) => Ok((byte, usize::from(length))),
    }
}

/// Returns a byte's codeword, lowest bit first, and its length.
#[cfg(test)]
pub(crate) fn encode(byte: u8) -> (u32, u32) {
    let code = u32::from(CODES[usize::from(byte)]);
    (code - (1 << code.ilog2()), code.ilog2())
}
