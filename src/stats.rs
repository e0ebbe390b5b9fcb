//! Percentiles, the way all of hitreg's output means them.

use serde::Serialize;

/// The nearest-rank percentile of ascending values: the smallest value that at least `percent` of them do not exceed.
/// `None` of no values.
pub fn percentile<T: Copy>(ascending: &[T], percent: f64) -> Option<T> {
    let rank = libm::ceil(percent / 100.0 * ascending.len() as f64) as usize;
    ascending.get(rank.max(1) - 1).copied()
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
    fn what_is_not_measured_does_not_count() {
        assert_eq!(Spread::of([f32::NAN, 3.0, 1.0]), Some(Spread { p50: 1.0, p95: 3.0, max: 3.0 }));
        assert_eq!(Tail::of([f32::NAN]), None);
    }
}
