//! Percentiles and confidence intervals, as all of hitreg's output defines them.

use std::borrow::Cow;

use serde::Serialize;

/// Returns the nearest-rank percentile of ascending values: the smallest value that at least `percent` of them do not
/// exceed. `None` for an empty slice. `percent` is in `0..=100`.
pub fn percentile<T: Copy>(ascending: &[T], percent: f64) -> Option<T> {
    let rank = libm::ceil(percent / 100.0 * ascending.len() as f64) as usize;
    ascending.get(rank.max(1) - 1).copied()
}

/// Median, 95th percentile and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub p50: f32,
    /// The 95th percentile.
    pub p95: f32,
    /// The maximum.
    pub max: f32,
}

impl Spread {
    /// Summarises values in any order and ignores NaN. `None` without values.
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
    /// The 95th percentile.
    pub p95: f32,
    /// The 99th percentile.
    pub p99: f32,
}

impl Tail {
    /// Summarises values in any order and ignores NaN. `None` without values.
    pub fn of(values: impl IntoIterator<Item = f32>) -> Option<Tail> {
        let values = ascending(values);
        Some(Tail { p50: percentile(&values, 50.0)?, p95: percentile(&values, 95.0)?, p99: percentile(&values, 99.0)? })
    }
}

fn ascending(values: impl IntoIterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.into_iter().filter(|v| !v.is_nan()).collect();
    values.sort_unstable_by(f32::total_cmp);
    values
}

/// What became of the packets of one connection in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were sent up to the last one that arrived, which is included.
    pub settled: u64,
    /// Packets that arrived, each counted once.
    pub received: u64,
}

impl Delivery {
    /// Counts the next packet in the order of sending.
    pub fn add(&mut self, has_arrived: bool) {
        self.sent += 1;
        if has_arrived {
            self.settled = self.sent;
            self.received += 1;
        }
    }

    /// Packets that never arrived though a later one did.
    pub fn lost(&self) -> u64 {
        self.settled.saturating_sub(self.received)
    }

    /// Packets after the last that arrived. Nothing says whether they are lost.
    pub fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.settled)
    }
}

/// A histogram of `f32` values that stores each distinct value once with its count.
///
/// Above [`CountedValues::EXACT_VALUES_MAX`] distinct values it drops low bits of all values, as few as necessary.
/// Percentiles are then too low, by less than 1/2000 of the value. The result does not depend on the order of the
/// values.
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

/// The number of fresh values that triggers a merge: as many as there can be distinct values, which a merge passes too.
const FRESH_VALUES_MAX: usize = CountedValues::EXACT_VALUES_MAX;

impl CountedValues {
    /// Adds a value; ignores NaN.
    pub fn add(&mut self, value: f32) {
        if value.is_nan() {
            return;
        }
        self.count += 1;
        self.fresh.push(in_order(value.to_bits() as i32));
        if self.fresh.len() >= FRESH_VALUES_MAX {
            self.settle();
        }
    }

    /// Adds values, each with its number of occurrences.
    pub fn add_counted(&mut self, values: impl Iterator<Item = (f32, u64)>) {
        for (value, count) in values {
            (0..count).for_each(|_| self.add(value));
        }
    }

    /// The most distinct values in memory after a merge. Up to this number percentiles are exact.
    pub const EXACT_VALUES_MAX: usize = 1 << 16;

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
        while self.values.len() > CountedValues::EXACT_VALUES_MAX {
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

    /// Returns the nearest-rank percentile, as [`percentile`] does; `None` without values.
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

// Shares with confidence intervals: a hit rate over several logs or sessions.

/// An estimate of a share from independent samples, each of which has a part of a whole, as the hits of the shots of one
/// session.
///
/// The share is that of all samples together. Its interval is that of a ratio of two sums (Cochran 1977, *Sampling
/// Techniques*, section 6.3) with the quantile of Student's t. A sample without a whole widens it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareEstimate {
    /// The share, from 0 to 1; of a difference, from -1 to 1.
    pub share: f64,
    /// For each sample: how far it moves the share.
    residuals: Vec<f64>,
}

impl ShareEstimate {
    /// Estimates the share from the part and the whole of each sample. `None` if the wholes are 0.
    pub fn of(samples: impl Iterator<Item = (u64, u64)> + Clone) -> Option<ShareEstimate> {
        let (part, whole) = samples.clone().fold((0, 0), |sums: (u64, u64), of| (sums.0 + of.0, sums.1 + of.1));
        if whole == 0 {
            return None;
        }
        let residual = |of: (u64, u64)| {
            // In integers, so that samples with this very share have none.
            let moved = i128::from(of.0) * i128::from(whole) - i128::from(part) * i128::from(of.1);
            moved as f64 / (whole as f64 * whole as f64)
        };
        Some(ShareEstimate { share: part as f64 / whole as f64, residuals: samples.map(residual).collect() })
    }

    /// Returns the difference to the share of another quantity in the same samples.
    #[must_use]
    pub fn minus(&self, other: &ShareEstimate) -> ShareEstimate {
        let pairs = self.residuals.iter().zip(&other.residuals);
        ShareEstimate { share: self.share - other.share, residuals: pairs.map(|(x, y)| x - y).collect() }
    }

    /// Returns half the width of the interval that leaves a probability of `tail` beyond each end, for Student's t with
    /// these degrees of freedom. `None` if no sample differs from the share, which says nothing of the uncertainty.
    pub fn half_width(&self, tail: f64, degrees: usize) -> Option<f64> {
        let count = self.residuals.len() as f64;
        let squares: f64 = self.residuals.iter().map(|residual| residual * residual).sum();
        (degrees > 0 && squares > 0.0).then(|| t_quantile(tail, degrees) * libm::sqrt(squares * count / (count - 1.0)))
    }

    /// Returns half the width of the 95 % confidence interval. `None` if the samples do not tell it: too few, all alike, or
    /// so few shots that any share is possible.
    pub fn confidence_95(&self) -> Option<f64> {
        self.half_width(0.025, self.residuals.len().saturating_sub(1)).filter(|half| *half < 1.0)
    }
}

/// Returns the quantile of Student's t that a share of `tail` exceeds.
fn t_quantile(tail: f64, degrees: usize) -> f64 {
    // The angle whose tangent is t / sqrt(degrees), between its bounds.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if t_within(middle, degrees) < 1.0 - 2.0 * tail { low = middle } else { high = middle }
    }
    libm::sqrt(degrees as f64) * libm::tan(low)
}

/// Returns the probability that Student's t lies within both values of an angle (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn t_within(angle: f64, degrees: usize) -> f64 {
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    // The powers of the cosine go up to degrees - 2.
    for power in (usize::from(is_odd)..=degrees.saturating_sub(2)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    match (is_odd, degrees) {
        (true, 1) => angle * std::f64::consts::FRAC_2_PI,
        (true, _) => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        (false, _) => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::units::Seed;

    #[test]
    fn packets_in_flight_are_not_lost() {
        let mut delivery = Delivery::default();
        [true, false, true, false, false].into_iter().for_each(|has_arrived| delivery.add(has_arrived));
        assert_eq!((delivery.sent, delivery.received, delivery.lost(), delivery.in_flight()), (5, 2, 1, 2));
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<u32> = (1..=10).collect();
        let of = |p| percentile(&values, p);
        assert_eq!([of(5.0), of(50.0), of(51.0), of(95.0), of(100.0)], [Some(1), Some(5), Some(6), Some(10), Some(10)]);
        assert_eq!(percentile::<u32>(&[], 50.0), None);
    }

    #[test]
    fn missing_measurements_do_not_count() {
        assert_eq!(Spread::of([f32::NAN, 3.0, 1.0]), Some(Spread { p50: 1.0, p95: 3.0, max: 3.0 }));
        assert_eq!(Tail::of([f32::NAN]), None);
    }

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
        assert!(there.iter().eq(back.iter()) && there.iter().count() <= CountedValues::EXACT_VALUES_MAX);
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

    #[test]
    fn quantiles_are_those_of_tables() {
        let of_tables = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)];
        for (degrees, quantile) in of_tables.into_iter().chain([(100_000, 1.960)]) {
            assert!(
                (t_quantile(0.025, degrees) - quantile).abs() < 0.0006,
                "{degrees}: {}",
                t_quantile(0.025, degrees)
            );
        }
        assert!((t_quantile(0.001, 10) - 4.144).abs() < 0.001 && (t_quantile(0.1, 1) - 3.078).abs() < 0.001);
    }

    #[test]
    fn samples_of_equal_wholes_have_students_interval() {
        // Shares of 10 to 90 %, with a mean of 50 % and a variance of 0.075: 2.306 * sqrt(0.075 / 9).
        let estimate = ShareEstimate::of((1..=9).map(|hits| (hits, 10))).expect("shots");
        assert!((estimate.share - 0.5).abs() < 1e-12);
        assert!((estimate.confidence_95().expect("enough") - 0.2105).abs() < 0.0001, "{estimate:?}");
    }

    #[test]
    fn what_the_samples_do_not_tell_is_unknown() {
        let half = |samples: &[(u64, u64)]| ShareEstimate::of(samples.iter().copied()).map(|of| of.confidence_95());
        assert_eq!(half(&[]), None);
        assert_eq!(half(&[(0, 0), (0, 0)]), None);
        assert_eq!(half(&[(1, 2)]), Some(None), "one sample");
        assert_eq!(half(&[(0, 5), (0, 8)]), Some(None), "all alike");
        assert_eq!(half(&[(0, 2), (1, 2)]), Some(None), "any share is possible");
        assert!(half(&[(3, 10), (4, 10), (0, 0)]).flatten().is_some());
    }

    /// Of 95 % intervals, 95 % contain the true share: at least 93.5 and at most 97 of 100, in 2,000 sets of samples.
    #[test]
    fn intervals_contain_the_share_as_often_as_they_say() {
        let mut rng = Rng::new(Seed(7), 0);
        for samples in [8, 15, 60] {
            let mut within = 0;
            for _ in 0..2_000 {
                let mut sample = || {
                    let shots = 5 + rng.below(20);
                    ((0..shots).filter(|_| rng.below(10) < 3).count() as u64, shots)
                };
                let drawn: Vec<(u64, u64)> = (0..samples).map(|_| sample()).collect();
                let estimate = ShareEstimate::of(drawn.iter().copied()).expect("shots");
                within += u32::from((estimate.share - 0.3).abs() < estimate.confidence_95().expect("samples differ"));
            }
            assert!((1_870..=1_940).contains(&within), "{samples} samples: {within} of 2,000");
        }
    }
}
