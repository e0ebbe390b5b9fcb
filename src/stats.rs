//! Percentiles, the way all of hitreg's output means them.

use std::borrow::Cow;

use serde::Serialize;

/// The nearest-rank percentile of ascending values: the smallest value that at least `percent` of them do not exceed.
/// `None` of no values.
pub fn percentile<T: Copy>(ascending: &[T], percent: f64) -> Option<T> {
    let rank = libm::ceil(percent / 100.0 * ascending.len() as f64) as usize;
    ascending.get(rank.max(1) - 1).copied()
}

/// Half the width of the 95 % confidence interval around the mean of independent samples, by Student's t. `None` of fewer than
/// two.
pub fn confidence_95(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / (count - 1.0);
    Some(t_975(samples.len() - 1) * libm::sqrt(variance / count))
}

/// The 97.5 % quantile of Student's t, exact to three digits: from a table up to 30 degrees of freedom, and by Cornish and
/// Fisher's expansion beyond.
fn t_975(degrees: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, // to 10
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, // to 20
        2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042, // to 30
    ];
    if let Some(quantile) = degrees.checked_sub(1).and_then(|index| FIRST.get(index)) {
        return *quantile;
    }
    let (z, degrees) = (1.959_964, degrees as f64);
    let third = (z * z * z + z) / (4.0 * degrees);
    let fifth = (5.0 * libm::pow(z, 5.0) + 16.0 * z * z * z + 3.0 * z) / (96.0 * degrees * degrees);
    z + third + fifth
}

/// Median, 95th percentile and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub p50: f32,
    /// What 95 % do not exceed.
    pub p95: f32,
    /// The greatest.
    pub max: f32,
}

impl Spread {
    /// Of values in any order; NaN is left out. `None` of no values.
    pub fn of(values: impl IntoIterator<Item = f32>) -> Option<Spread> {
        let values = ascending(values);
        Some(Spread { p50: percentile(&values, 50.0)?, p95: percentile(&values, 95.0)?, max: *values.last()? })
    }
}

/// Median, 95th and 99th percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tail {
    /// The median.
    pub p50: f32,
    /// What 95 % do not exceed.
    pub p95: f32,
    /// What 99 % do not exceed.
    pub p99: f32,
}

impl Tail {
    /// Of values in any order; NaN is left out. `None` of no values.
    pub fn of(values: impl IntoIterator<Item = f32>) -> Option<Tail> {
        let values = ascending(values);
        Some(Tail { p50: percentile(&values, 50.0)?, p95: percentile(&values, 95.0)?, p99: percentile(&values, 99.0)? })
    }
}

/// Values as they come, each kept once with how often it came: what comes again and again takes no room. Of more than
/// [`Counted::MOST`] different values those are kept together that differ in their last bits alone, as few as will do: their
/// percentiles are told a little too low, by less than a two thousandth of the value. It is the same in whatever order they come.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By their bits in the order of the values, without the last ones.
    values: Vec<(i32, u64)>,
    without_bits: u32,
    /// What came since these were put in order.
    fresh: Vec<i32>,
    count: u64,
}

/// So many values are put in order at once.
const FRESH: usize = 1 << 16;

impl Counted {
    /// Takes a value in; NaN is left out.
    pub fn add(&mut self, value: f32) {
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.fresh.push(in_order(value.to_bits() as i32));
        if self.fresh.len() >= FRESH {
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
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.iter_mut().for_each(|value| *value >>= self.without_bits);
        fresh.sort_unstable();
        let new = fresh.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64));
        self.values = merged(std::mem::take(&mut self.values), new);
        while self.values.len() > Counted::MOST {
            self.without_bits += 1;
            let shorter = self.values.iter().map(|(value, count)| (value >> 1, *count));
            self.values = merged(Vec::new(), shorter);
        }
        fresh.clear();
        self.fresh = fresh;
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
        let Counted { values, without_bits, .. } = self.settled().into_owned();
        values.into_iter().map(move |(value, count)| (of_place(value, without_bits), count))
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
        let max = of_place(settled.values.last()?.0, settled.without_bits);
        Some(Spread { p50: settled.at_rank(50.0)?, p95: settled.at_rank(95.0)?, max })
    }

    /// As [`percentile`] of them all.
    pub fn percentile(&self, percent: f64) -> Option<f32> {
        self.settled().at_rank(percent)
    }

    fn at_rank(&self, percent: f64) -> Option<f32> {
        let rank = (libm::ceil(percent / 100.0 * self.count as f64) as u64).max(1);
        let mut before = 0;
        let at = self.values.iter().find(|(_, count)| {
            before += *count;
            before >= rank
        });
        at.map(|(value, _)| of_place(*value, self.without_bits))
    }
}

/// Both in ascending order, each value once.
fn merged(known: Vec<(i32, u64)>, new: impl Iterator<Item = (i32, u64)>) -> Vec<(i32, u64)> {
    let mut all: Vec<(i32, u64)> = Vec::with_capacity(known.len());
    let mut put = |(value, count): (i32, u64)| match all.last_mut().filter(|(last, _)| *last == value) {
        Some((_, before)) => *before += count,
        None => all.push((value, count)),
    };
    let mut known = known.into_iter().peekable();
    for next in new {
        while let Some(smaller) = known.next_if(|(value, _)| *value <= next.0) {
            put(smaller);
        }
        put(next);
    }
    known.for_each(put);
    all
}

fn of_place(place: i32, without_bits: u32) -> f32 {
    f32::from_bits(in_order(place << without_bits) as u32)
}

/// The bits of floats as numbers in the same order, and back.
fn in_order(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

fn ascending(values: impl IntoIterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.into_iter().filter(|v| !v.is_nan()).collect();
    values.sort_unstable_by(f32::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<u32> = (1..=10).collect();
        let of = |p| percentile(&values, p);
        assert_eq!([of(5.0), of(50.0), of(51.0), of(95.0), of(100.0)], [Some(1), Some(5), Some(6), Some(10), Some(10)]);
        assert_eq!(percentile::<u32>(&[], 50.0), None);
    }

    #[test]
    fn confidence_is_students() {
        // Nine samples of mean 5 and variance 7.5: 2.306 * sqrt(7.5 / 9).
        let samples: Vec<f64> = (1..=9).map(f64::from).collect();
        let half = confidence_95(&samples).expect("enough");
        assert!((half - 2.105).abs() < 0.001, "{half}");
        assert_eq!(confidence_95(&[1.0]), None);
        for (degrees, quantile) in [(1, 12.706), (15, 2.131), (30, 2.042), (31, 2.040), (40, 2.021), (120, 1.980)] {
            assert!((t_975(degrees) - quantile).abs() < 0.001, "{degrees}: {}", t_975(degrees));
        }
    }

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
    fn what_is_not_measured_does_not_count() {
        assert_eq!(Spread::of([f32::NAN, 3.0, 1.0]), Some(Spread { p50: 1.0, p95: 3.0, max: 3.0 }));
        assert_eq!(Tail::of([f32::NAN]), None);
    }
}
