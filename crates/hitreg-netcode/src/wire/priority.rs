//! The order in which entities are sent when there is no room for all of them. The order depends on three things: the
//! changed fields (the update bitfield is sorted by importance), the distance to the client's avatar, and the number of
//! packets waited.
//!
//! Waiting adds to the score, so that no entity starves. An entity that has waited [`OVERTAKES_AFTER`] packets longer
//! than another goes first, whatever the two changes are. A sent entity starts waiting from 0, so each other entity
//! overtakes a long-waiting one at most once. Among `n` entities, each one is therefore sent within `OVERTAKES_AFTER +
//! n` packets, if each packet has room for any one of them besides the client's own body.

/// An entity that has waited this many packets longer than another is sent before it.
pub const OVERTAKES_AFTER: u32 = 32;

/// The score of a nearby entity with all bits set.
const SCORE_MAX: f32 = 256.0 * 1024.0;
const SCORE_PER_PACKET: i64 = SCORE_MAX as i64 / OVERTAKES_AFTER as i64;
/// The distance from the avatar, in units, at which a change counts half.
const HALF_AT_UNITS: f32 = 512.0;
/// The divisor for a state that was already sent and is repeated in case it was lost.
const ECHO_DIVISOR: f32 = 4.0;

/// The inputs of an entity's priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urgency {
    /// The update bitfield; all bits are set for an entity that appears or disappears.
    pub bits: u8,
    /// Whether the same state was already sent but not yet acked.
    pub echo: bool,
    /// The distance from the client's avatar, in units.
    pub distance_units: f32,
    /// The number of packets that the entity has waited.
    pub waited: u32,
}

impl Urgency {
    /// Returns the score; entities with a higher score are sent sooner. Only the distance term uses floats, in one IEEE
    /// division and one multiplication, so every platform computes the same score.
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
    fn urgency_depends_on_importance_distance_and_waiting() {
        let base = urgency(0b1000, 300.0, 0).score();
        assert!(urgency(0b100_0000, 300.0, 0).score() > base);
        assert!(urgency(0b1000, 100.0, 0).score() > base);
        assert!(urgency(0b1000, 300.0, 1).score() > base);
        assert!(Urgency { echo: true, ..urgency(0b1000, 300.0, 0) }.score() < base);
        assert!(urgency(0b1000, f32::NAN, 0).score() < base);
    }

    proptest! {
        #[test]
        fn no_entity_is_overtaken_for_ever(a in any::<u8>(), b in any::<u8>(), d in 0f32..1e7, e in 0f32..1e7, w in 0u32..1000) {
            let long = urgency(a, d, w + OVERTAKES_AFTER + 1);
            prop_assert!(long.score() > urgency(b, e, w).score());
        }
    }
}
