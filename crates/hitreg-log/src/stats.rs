//! Percentiles and confidence intervals, as all of hitreg's output defines them.

mod counted;

use serde::Serialize;

pub use counted::CountedValues;

/// Returns the nearest-rank percentile of ascending values: the smallest value that at least `percent` of them do not
/// exceed. `None` for an empty slice. `percent` is in `0..=100`.
pub fn percentile<T: Copy>(ascending: &[T], percent: f64) -> Option<T> {
    let rank = libm::ceil(percent / 100.0 * ascending.len() as f64) as usize;
    ascending.get(rank.max(1) - 1).copied()
}

/// Returns half the width of the 95 % confidence interval around the mean of independent samples, by Student's t.
/// `None` for fewer than two samples.
pub fn confidence_95(samples: &[f64]) -> Option<f64> {
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>() / (count - 1.0);
    Some(t_975(samples.len() - 1) * libm::sqrt(variance / count))
}

/// Returns the 97.5 % quantile of Student's t, exact to three digits. A table gives it up to 30 degrees of freedom, the
/// Cornish-Fisher expansion beyond.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn missing_measurements_do_not_count() {
        assert_eq!(Spread::of([f32::NAN, 3.0, 1.0]), Some(Spread { p50: 1.0, p95: 3.0, max: 3.0 }));
        assert_eq!(Tail::of([f32::NAN]), None);
    }
}
