//! Values of which only percentiles are asked for, however many there are.

use std::borrow::Cow;

use super::{Spread, Tail};

/// Values as they come, each kept once with how often it came: what comes again and again takes no room. Of more than
/// [`Counted::MOST`] different values those are kept together that differ in their last bits alone, as few as will do: their
/// percentiles are told a little too low, by less than a two thousandth of the value. It is the same in whatever order they come.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By their bits in the order of the values, without the last ones: each once, in ascending order.
    values: Vec<i32>,
    /// How often each of them came.
    counts: Vec<u64>,
    without_bits: u32,
    /// What came since these were put in order.
    fresh: Vec<i32>,
    count: u64,
}

/// So many values are put in order at once: half as many as there are, within these bounds.
const FRESH: std::ops::RangeInclusive<usize> = 1 << 13..=1 << 16;

impl Counted {
    /// Takes a value in; NaN is left out.
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

    /// So many different values are told apart in any case.
    pub const MOST: usize = 1 << 16;

    /// Whether no value came.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts what came among what was there.
    fn settle(&mut self) {
        self.fresh.iter_mut().for_each(|value| *value >>= self.without_bits);
        self.fresh.sort_unstable();
        self.merge();
        self.fresh.clear();
        while self.values.len() > Counted::MOST {
            self.without_bits += 1;
            self.halve();
        }
    }

    /// Goes from the greatest to the least, so that nothing is in the way of what is moved up.
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
        // What was there already left room over.
        self.values.drain(known..place);
        self.counts.drain(known..place);
    }

    /// Leaves out another bit.
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

    fn settled(&self) -> Cow<'_, Counted> {
        if self.fresh.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut settled = self.clone();
        settled.settle();
        Cow::Owned(settled)
    }

    /// The values in ascending order, each with how often it came.
    pub fn iter(&self) -> impl Iterator<Item = (f32, u64)> + use<> {
        let Counted { values, counts, without_bits, .. } = self.settled().into_owned();
        values.into_iter().zip(counts).map(move |(value, count)| (of_place(value, without_bits), count))
    }

    /// Their tail; `None` of no values.
    pub fn tail(&self) -> Option<Tail> {
        let settled = self.settled();
        let at = |percent| settled.at_rank(percent);
        Some(Tail { p50: at(50.0)?, p95: at(95.0)?, p99: at(99.0)? })
    }

    /// How they are spread; `None` of no values.
    pub fn spread(&self) -> Option<Spread> {
        let settled = self.settled();
        let max = of_place(*settled.values.last()?, settled.without_bits);
        Some(Spread { p50: settled.at_rank(50.0)?, p95: settled.at_rank(95.0)?, max })
    }

    /// As [`percentile`](super::percentile) of them all.
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

/// The bits of floats as numbers in the same order, and back.
fn in_order(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_values_are_spread_as_all_of_them() {
        let values = [-0.0, 3.5, f32::NAN, -7.25, 0.0, 1e9, 3.5, -1.0, f32::INFINITY, 2.0];
        let mut counted = Counted::default();
        for end in 0..=values.len() {
            assert_eq!(counted.spread(), Spread::of(values[..end].iter().copied()));
            assert_eq!(counted.tail(), Tail::of(values[..end].iter().copied()));
            values.get(end).into_iter().for_each(|value| counted.add(*value));
        }
    }

    #[test]
    fn many_values_are_counted_in_little_room_in_any_order() {
        let values: Vec<f32> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1000.0).collect();
        let (mut there, mut back) = (Counted::default(), Counted::default());
        values.iter().for_each(|value| there.add(*value));
        values.iter().rev().for_each(|value| back.add(*value));
        assert!(there.iter().eq(back.iter()) && there.iter().count() <= Counted::MOST);
        let (exact, told) = (Tail::of(values).expect("values"), there.tail().expect("values"));
        for (exact, told) in [(exact.p50, told.p50), (exact.p95, told.p95), (exact.p99, told.p99)] {
            assert!(told <= exact && exact - told < exact / 2000.0, "{exact} {told}");
        }
    }

    #[test]
    fn what_comes_again_is_counted_with_what_was_there() {
        let values: Vec<f32> = (0..50_000u32).map(|i| (i.wrapping_mul(i) % 7_919) as f32 - 300.0).collect();
        let mut counted = Counted::default();
        values.iter().for_each(|value| counted.add(*value));
        let mut ascending = values.clone();
        ascending.sort_by(f32::total_cmp);
        let each = ascending.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64));
        assert!(counted.iter().eq(each));
    }
}
