//! An attacker on the network path who sees every datagram and sends others: modified, truncated, delayed, from another
//! connection, or forged. Neither end may accept any of them as authentic.

use hitreg_log::rng::Rng;
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::session::Intruder;

/// An attacker whose choices come from a seed.
pub(super) struct RandomIntruder {
    rng: Rng,
    chance: f64,
    /// A stored datagram to send in place of another, with its number. Datagrams that arrive at the same time are
    /// ordered by number.
    kept: (u32, Vec<u8>),
}

impl RandomIntruder {
    pub(super) fn new(seed: Seed, chance: f64) -> RandomIntruder {
        RandomIntruder { rng: Rng::new(seed, 0x696e_7472), chance, kept: (0, Vec::new()) }
    }

    fn worsened(&mut self, number: u32, datagram: &[u8]) -> (u32, Vec<u8>) {
        let mut bytes = datagram.to_vec();
        let place = self.rng.below(bytes.len().max(1) as u64) as usize;
        match self.rng.below(6) {
            0 => bytes.truncate(place),
            1 => bytes.extend((0..self.rng.below(40)).map(|n| n as u8)),
            2 => bytes.iter_mut().skip(1).for_each(|byte| *byte = self.rng.next_u64() as u8),
            3 => return std::mem::replace(&mut self.kept, (number, bytes)),
            // Unchanged: a duplicate.
            4 => {}
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << self.rng.below(8);
                }
            }
        }
        (number, bytes)
    }
}

impl Intruder for RandomIntruder {
    fn sees(&mut self, _player: PlayerId, number: u32, datagram: &[u8]) -> Option<(Micros, u32, Vec<u8>)> {
        if !self.rng.chance(self.chance) {
            return None;
        }
        // Arrival must be later than sending, because clocks are set by it.
        let after = Micros(1 + self.rng.below(200_000) as i64);
        let (number, bytes) = self.worsened(number, datagram);
        Some((after, number, bytes))
    }
}
