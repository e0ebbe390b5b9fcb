//! Keys, and the keyed hash of challenges and seals: SipHash-2-4 (Aumasson, Bernstein 2012).

use siphasher::sip::SipHasher24;

/// A 128-bit key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64, pub u64);

impl std::fmt::Debug for Key {
    /// Keeps keys out of messages and logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Returns the hash of `bytes` under this key.
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        SipHasher24::new_with_keys(self.0, self.1).hash(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the paper's reference implementation: key 00..0f, messages 00, 00 01, ...
    #[test]
    fn the_seal_is_siphash() {
        let key = Key(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(&message), 0xa129_ca61_49be_45e5);
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&message[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(key.hash(&message[..8]), 0x93f5_f579_9a93_2462);
    }
}
