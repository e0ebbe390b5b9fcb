//! 16-bit sequence indices that wrap: which of two is newer, and which full counter an index belongs to.

use super::DecodeError;

/// The low 16 bits of a counter. At 31.25 ticks a second (32 ms, as in NeREIDS) it wraps every 35 minutes. It has a
/// meaning only relative to an index or counter less than 2^15 away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wrapping16(pub u16);

impl Wrapping16 {
    /// Returns the low 16 bits of a counter.
    pub const fn of(counter: u32) -> Wrapping16 {
        Wrapping16(counter as u16)
    }

    /// Returns how many steps `self` is after `other`; negative when it is before. A distance of exactly 2^15 reads as
    /// -32768.
    pub const fn distance_from(self, other: Wrapping16) -> i16 {
        self.0.wrapping_sub(other.0) as i16
    }

    /// Returns whether `self` comes after `other`. Of two indices exactly 2^15 apart, neither is newer.
    pub const fn is_newer_than(self, other: Wrapping16) -> bool {
        self.distance_from(other) > 0
    }

    /// Returns the index `steps` later.
    pub const fn later(self, steps: u16) -> Wrapping16 {
        Wrapping16(self.0.wrapping_add(steps))
    }

    /// Returns the counter that ends in these bits and is nearest to `reference`: from `reference - 32768` to
    /// `reference + 32767`. Returns `None` when that counter does not fit into a `u32`.
    pub const fn unwrap_near(self, reference: u32) -> Option<u32> {
        reference.checked_add_signed(self.distance_from(Wrapping16::of(reference)) as i32)
    }

    /// Returns the counter near `reference`, as [`Wrapping16::unwrap_near`] does. The error names `what` it counts.
    pub(super) fn counter_near(self, reference: u32, what: &'static str) -> Result<u32, DecodeError> {
        self.unwrap_near(reference).ok_or(DecodeError::bad(what, self.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn newer_numbers_are_recognized_across_every_wrap() {
        for start in 0..=u16::MAX {
            let index = Wrapping16(start);
            assert!(index.later(1).is_newer_than(index));
            assert!(index.later(32_767).is_newer_than(index));
            assert!(!index.later(32_768).is_newer_than(index));
            assert!(!index.is_newer_than(index.later(32_768)));
            assert!(!index.later(32_769).is_newer_than(index));
            assert!(index.is_newer_than(index.later(32_769)));
            assert!(!index.is_newer_than(index));
            assert_eq!(index.later(7).distance_from(index), 7);
            assert_eq!(index.distance_from(index.later(7)), -7);
        }
    }

    #[test]
    fn counters_are_unwrapped_around_every_wrap() {
        for wrap in 1..=u32::from(u16::MAX) {
            let edge = wrap << 16;
            for (reference, counter) in [(edge - 1, edge), (edge, edge - 1), (edge + 5, edge - 3), (edge - 3, edge + 5)]
            {
                assert_eq!(Wrapping16::of(counter).unwrap_near(reference), Some(counter));
            }
            assert_eq!(Wrapping16::of(edge - 32_768).unwrap_near(edge), Some(edge - 32_768));
            assert_eq!(Wrapping16::of(edge + 32_767).unwrap_near(edge), Some(edge + 32_767));
            assert_eq!(Wrapping16::of(edge - 32_769).unwrap_near(edge), edge.checked_add(32_767));
        }
    }

    #[test]
    fn impossible_counters_give_none() {
        assert_eq!(Wrapping16(65_535).unwrap_near(3), None);
        assert_eq!(Wrapping16(2).unwrap_near(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn near_counters_are_restored(counter in any::<u32>(), off in -32_767i32..=32_768) {
            if let Some(reference) = counter.checked_add_signed(off) {
                prop_assert_eq!(Wrapping16::of(counter).unwrap_near(reference), Some(counter));
            }
        }
    }
}
