//! Which entities are sent first, when there is no room for all: by what changed (the update bitfield is in order of
//! importance), by the distance to the client's avatar, and by how long they have waited.
//!
//! Waiting is added, not multiplied, so that nothing starves. An entity that has waited [`OVERTAKES_AFTER`] packets
//! longer than another goes before it whatever both have to say. What was sent begins to wait anew, so whoever has
//! waited that long sees each of the others go ahead of it once at most: among `n` entities it is sent within
//! `OVERTAKES_AFTER + n` packets, if each has room for any one of them besides the client's own.

/// After this many more packets of waiting an entity goes before any other.
pub const OVERTAKES_AFTER: u32 = 32;

/// The score of everything changing, nearby.
const SCORE_MAX: f32 = 256.0 * 1024.0;
const SCORE_PER_PACKET: i64 = SCORE_MAX as i64 / OVERTAKES_AFTER as i64;
/// At this distance from the avatar a change counts half, in units.
const HALF_AT_UNITS: f32 = 512.0;
/// A state that is on its way already, and is sent again in case it is lost, counts this many times less.
const ECHO_DIVISOR: f32 = 4.0;

/// What an entity has to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urgency {
    /// The update bitfield; all bits for one that appears or goes.
    pub bits: u8,
    /// Whether the same was sent already, and nothing is known of it yet.
    pub echo: bool,
    /// From the client's avatar.
    pub distance_units: f32,
    /// For how many packets it has waited.
    pub waited: u32,
}

impl Urgency {
    /// The greater, the sooner. Computed from comparisons and integers but for the distance's share, which is one IEEE
    /// division and multiplication, so that every platform gets the same.
    pub fn score(&self) -> i64 {
        let distance = if self.distance_units >= 0.0 { self.distance_units.min(1e6) } else { 1e6 };
        let importance = (f32::from(self.bits) + 1.0) * (SCORE_MAX / 256.0);
        let heard = if self.echo { importance / ECHO_DIVISOR } else { importance };
        let near = heard * (HALF_AT_UNITS / (HALF_AT_UNITS + distance));
        near as i64 + i64::from(self.waited) * SCORE_PER_PACKET
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urgency(bits: u8, distance_units: f32, waited: u32) -> Urgency {
        Urgency { bits, echo: false, distance_units, waited }
    }

    #[test]
    fn importance_distance_and_waiting_all_count() {
        let base = urgency(0b1000, 300.0, 0).score();
        assert!(urgency(0b100_0000, 300.0, 0).score() > base);
        assert!(urgency(0b1000, 100.0, 0).score() > base);
        assert!(urgency(0b1000, 300.0, 1).score() > base);
        assert!(Urgency { echo: true, ..urgency(0b1000, 300.0, 0) }.score() < base);
        assert!(urgency(0b1000, f32::NAN, 0).score() < base);
    }

    proptest! {
        #[test]
        fn nobody_is_overtaken_for_ever(a in any::<u8>(), b in any::<u8>(), d in 0f32..1e7, e in 0f32..1e7, w in 0u32..1000) {
            let long = urgency(a, d, w + OVERTAKES_AFTER + 1);
            prop_assert!(long.score() > urgency(b, e, w).score());
        }
    }
}
