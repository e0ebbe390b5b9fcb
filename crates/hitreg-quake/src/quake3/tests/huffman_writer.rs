//! Writes the bits of a message, for tests.

use crate::quake3::protocol::huffman;

#[derive(Clone, Debug, Default)]
pub(crate) struct HuffmanWriter {
    pub(crate) bytes: Vec<u8>,
    bit: usize,
}

impl HuffmanWriter {
    pub(crate) fn bits(&mut self, value: u32, width: u32) {
        let raw = width & 7;
        self.raw(value & ((1 << raw) - 1), raw);
        for shift in (raw..width).step_by(8) {
            let (code, length) = huffman::encode((value >> shift) as u8);
            self.raw(code, length);
        }
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.bits(u32::from(flag), 1);
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bits(u32::from(byte), 8);
    }

    pub(crate) fn long(&mut self, long: i32) {
        self.bits(long as u32, 32);
    }

    pub(crate) fn string(&mut self, text: &[u8]) {
        text.iter().for_each(|byte| self.byte(*byte));
        self.byte(0);
    }

    fn raw(&mut self, value: u32, width: u32) {
        for bit in 0..width {
            if self.bit.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (self.bit % 8);
            self.bit += 1;
        }
    }
}
