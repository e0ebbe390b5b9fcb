//! Random numbers that are part of the format: the same seed gives the same numbers on every machine and in every
//! version. Each use creates its own generator from its key (seed, player, usercmd). One player's shots therefore never
//! shift another player's random numbers.

use crate::units::{CommandSeq, PlayerId, Seed};

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, each output a full mix of them.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Returns a generator for one purpose. Different `stream` words give unrelated sequences from one seed.
    pub fn new(seed: Seed, stream: u64) -> Rng {
        let mut rng = Rng { state: seed.0 ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
        rng.state = rng.next_u64();
        rng
    }

    /// Returns the generator of one usercmd. Server and client draw the same numbers from it.
    pub fn for_command(seed: Seed, player: PlayerId, command: CommandSeq) -> Rng {
        Rng::new(seed, (u64::from(player.0) << 32) | u64::from(command.0))
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number that is uniform in `0..n`; 0 when `n` is 0. The bias is below `n / 2^64`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a number that is uniform in `[0, 1)`, in steps of 2^-24.
    pub fn unit_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / 16_777_216.0
    }

    /// Returns a number that is uniform in `[0, 1)`, in steps of 2^-53.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Returns a number that is uniform in `[-1, 1)`.
    pub fn signed_f32(&mut self) -> f32 {
        self.unit_f32() * 2.0 - 1.0
    }

    /// Returns `true` with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit_f64() < p
    }

    /// Returns a normal number with mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal_f64(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit_f64()));
        radius * libm::cos(std::f64::consts::TAU * self.unit_f64())
    }
}

/// Returns the stream of a generator for one purpose: four ASCII letters in the upper half, a number in the lower.
/// Recorded sessions depend on it, so the letters of a purpose never change.
pub const fn stream(purpose: [u8; 4], number: u32) -> u64 {
    (u32::from_be_bytes(purpose) as u64) << 32 | number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_part_of_the_format() {
        let mut rng = Rng::new(Seed(1), 2);
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(drawn, [12_017_601_128_915_079_454, 7_876_820_519_921_869_660, 12_285_402_284_224_189_678]);
    }

    #[test]
    fn players_and_commands_have_their_own_streams() {
        let first = |p, c| Rng::for_command(Seed(7), PlayerId(p), CommandSeq(c)).next_u64();
        assert_ne!(first(0, 1), first(1, 1));
        assert_ne!(first(0, 1), first(0, 2));
        assert_eq!(first(3, 9), first(3, 9));
    }
}
