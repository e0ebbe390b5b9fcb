//! Percentiles of any number of values in bounded memory.

use std::borrow::Cow;

use super::{Spread, Tail};

/// A histogram of `f32` values that stores each distinct value once with its count.
///
/// Above [`CountedValues::MOST`] distinct values it drops low bits of all values, as few as necessary. Percentiles are then
/// too low, by less than 1/2000 of the value. The result does not depend on the order of the values.
#[derive(Clone, Debug, Default)]
pub struct CountedValues {
    /// Distinct values in ascending order, as [`in_order`] maps them, without the lowest `without_bits` bits.
    values: Vec<i32>,
    /// Number of occurrences of each entry of `values`.
    counts: Vec<u64>,
    without_bits: u32,
    /// Values that `values` does not contain yet, in order of arrival.
    fresh: Vec<i32>,
    count: u64,
}

/// The number of fresh values that triggers a merge: half as many as there are distinct values, within these bounds.
const FRESH: std::ops::RangeInclusive<usize> = 1 << 13..=1 << 16;

impl CountedValues {
    /// Adds a value; ignores NaN.
    pub fn add(&mut self, value: f32) {
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.fresh.push(in_order(value.to_bits() as i32));
        if self.fresh.len() >= (self.values.len() / 2).clamp(*FRESH.start(), *FRESH.end()) {
            self.settle();
        }
    }

    /// The most distinct values in memory after a merge. Up to this number percentiles are exact.
    pub const MOST: usize = 1 << 16;

    /// Returns whether no value was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Merges the fresh values into the sorted ones.
    fn settle(&mut self) {
        self.fresh.iter_mut().for_each(|value| *value >>= self.without_bits);
        self.fresh.sort_unstable();
        self.merge();
        self.fresh.clear();
        while self.values.len() > CountedValues::MOST {
            self.without_bits += 1;
            self.halve();
        }
    }

    /// Merges from the greatest value to the least, so that no write overwrites a value that is still unread.
    fn merge(&mut self) {
        let mut known = self.values.len();
        let mut place = known + self.fresh.chunk_by(|a, b| a == b).count();
        self.values.resize(place, 0);
        self.counts.resize(place, 0);
        for same in self.fresh.chunk_by(|a, b| a == b).rev() {
            let value = same[0];
            while known > 0 && self.values[known - 1] > value {
                (known, place) = (known - 1, place - 1);
                (self.values[place], self.counts[place]) = (self.values[known], self.counts[known]);
            }
            let mut count = same.len() as u64;
            if known > 0 && self.values[known - 1] == value {
                known -= 1;
                count += self.counts[known];
            }
            place -= 1;
            (self.values[place], self.counts[place]) = (value, count);
        }
        // Values that occurred in both lists leave a gap between the unmoved and the moved ones.
        self.values.drain(known..place);
        self.counts.drain(known..place);
    }

    /// Drops one more low bit and joins values that become equal.
    fn halve(&mut self) {
        let mut kept = 0;
        for at in 0..self.values.len() {
            let (value, count) = (self.values[at] >> 1, self.counts[at]);
            if kept > 0 && self.values[kept - 1] == value {
                self.counts[kept - 1] += count;
            } else {
                (self.values[kept], self.counts[kept]) = (value, count);
                kept += 1;
            }
        }
        self.values.truncate(kept);
        self.counts.truncate(kept);
    }

    fn settled(&self) -> Cow<'_, CountedValues> {
        if self.fresh.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut settled = self.clone();
        settled.settle();
        Cow::Owned(settled)
    }

    /// Returns the values in ascending order, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (f32, u64)> + use<> {
        let CountedValues { values, counts, without_bits, .. } = self.settled().into_owned();
        values.into_iter().zip(counts).map(move |(value, count)| (of_place(value, without_bits), count))
    }

    /// Returns the median, 95th and 99th percentile; `None` without values.
    pub fn tail(&self) -> Option<Tail> {
        let settled = self.settled();
        let at = |percent| settled.at_rank(percent);
        Some(Tail { p50: at(50.0)?, p95: at(95.0)?, p99: at(99.0)? })
    }

    /// Returns the median, 95th percentile and maximum; `None` without values.
    pub fn spread(&self) -> Option<Spread> {
        let settled = self.settled();
        let max = of_place(*settled.values.last()?, settled.without_bits);
        Some(Spread { p50: settled.at_rank(50.0)?, p95: settled.at_rank(95.0)?, max })
    }

    /// Returns the nearest-rank percentile, as [`percentile`](super::percentile) does; `None` without values.
    pub fn percentile(&self, percent: f64) -> Option<f32> {
        self.settled().at_rank(percent)
    }

    fn at_rank(&self, percent: f64) -> Option<f32> {
        let rank = (libm::ceil(percent / 100.0 * self.count as f64) as u64).max(1);
        let mut before = 0;
        let at = self.values.iter().zip(&self.counts).find(|(_, count)| {
            before += **count;
            before >= rank
        });
        at.map(|(value, _)| of_place(*value, self.without_bits))
    }
}

fn of_place(place: i32, without_bits: u32) -> f32 {
    f32::from_bits(in_order(place << without_bits) as u32)
}

/// Maps the bits of floats to integers in the same order. The function is its own inverse.
fn in_order(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_values_are_spread_as_all_of_them() {
        let values = [-0.0, 3.5, f32::NAN, -7.25, 0.0, 1e9, 3.5, -1.0, f32::INFINITY, 2.0];
        let mut counted = CountedValues::default();
        for end in 0..=values.len() {
            assert_eq!(counted.spread(), Spread::of(values[..end].iter().copied()));
            assert_eq!(counted.tail(), Tail::of(values[..end].iter().copied()));
            values.get(end).into_iter().for_each(|value| counted.add(*value));
        }
    }

    #[test]
    fn many_values_take_little_memory_in_any_order() {
        let values: Vec<f32> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1000.0).collect();
        let (mut there, mut back) = (CountedValues::default(), CountedValues::default());
        values.iter().for_each(|value| there.add(*value));
        values.iter().rev().for_each(|value| back.add(*value));
        assert!(there.iter().eq(back.iter()) && there.iter().count() <= CountedValues::MOST);
        let (exact, approximate) = (Tail::of(values).expect("values"), there.tail().expect("values"));
        for (exact, approximate) in
            [(exact.p50, approximate.p50), (exact.p95, approximate.p95), (exact.p99, approximate.p99)]
        {
            assert!(approximate <= exact && exact - approximate < exact / 2000.0, "{exact} {approximate}");
        }
    }

    #[test]
    fn repeated_values_are_counted_together() {
        let values: Vec<f32> = (0..50_000u32).map(|i| (i.wrapping_mul(i) % 7_919) as f32 - 300.0).collect();
        let mut counted = CountedValues::default();
        values.iter().for_each(|value| counted.add(*value));
        let mut ascending = values.clone();
        ascending.sort_unstable_by(f32::total_cmp);
        let each = ascending.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64));
        assert!(counted.iter().eq(each));
    }
}
