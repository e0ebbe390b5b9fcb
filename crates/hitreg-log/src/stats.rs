//! Percentiles and confidence intervals, as all of hitreg's output defines them.

mod counted;
mod share;

use serde::Serialize;

pub use counted::CountedValues;
pub use share::ShareEstimate;

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
    fn missing_measurements_do_not_count() {
        assert_eq!(Spread::of([f32::NAN, 3.0, 1.0]), Some(Spread { p50: 1.0, p95: 3.0, max: 3.0 }));
        assert_eq!(Tail::of([f32::NAN]), None);
    }
}
