//! SipHash-2-4 (Aumasson, Bernstein 2012): a short keyed hash that cannot be guessed without its key. Challenges and the
//! seals of live datagrams are made with it.

/// A key of 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64, pub u64);

impl std::fmt::Debug for Key {
    /// Keys stay out of messages and logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The hash of some bytes under a key.
pub(crate) fn siphash(key: Key, bytes: &[u8]) -> u64 {
    let mut state = State {
        v: [
            key.0 ^ 0x736f_6d65_7073_6575,
            key.1 ^ 0x646f_7261_6e64_6f6d,
            key.0 ^ 0x6c79_6765_6e65_7261,
            key.1 ^ 0x7465_6462_7974_6573,
        ],
    };
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        state.absorb(word(chunk));
    }
    let length = (bytes.len() as u64) << 56;
    state.absorb(length | word(chunks.remainder()));
    state.v[2] ^= 0xff;
    for _ in 0..4 {
        state.round();
    }
    state.v.iter().fold(0, |all, part| all ^ part)
}

struct State {
    v: [u64; 4],
}

impl State {
    fn absorb(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.v = [a, b, c, d];
    }
}

/// Up to eight bytes, the lowest first.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the paper's reference implementation: key 00..0f, messages 00, 00 01, ...
    #[test]
    fn it_is_siphash() {
        let key = Key(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(key, &message), 0xa129_ca61_49be_45e5);
        assert_eq!(siphash(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &message[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(siphash(key, &message[..8]), 0x93f5_f579_9a93_2462);
    }
}
