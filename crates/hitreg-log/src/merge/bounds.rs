//! Bounds on a clock offset. It accepts any number of bounds and keeps only the ones that can matter.

use super::offset::OffsetBound;

/// Bounds from one direction. It keeps the corners of the convex hull on the side of the offset. For any steady drift
/// rate between the clocks, the tightest bound is among these corners.
#[derive(Clone, Debug, Default)]
pub(super) struct OffsetBounds {
    /// Whether these are upper bounds; the default is lower bounds.
    are_above: bool,
    /// The bounds in memory, which include the tightest ones.
    pub(super) kept: Vec<OffsetBound>,
}

/// The error for a hull with too many corners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyCorners;

/// The number of bounds that triggers a reduction to the hull. Measured connections have some tens of corners.
const KEPT_MOST: usize = 4096;

impl OffsetBounds {
    pub(super) fn above() -> OffsetBounds {
        OffsetBounds { are_above: true, ..OffsetBounds::default() }
    }

    pub(super) fn add(&mut self, bound: OffsetBound) -> Result<(), TooManyCorners> {
        self.kept.push(bound);
        if self.kept.len() < KEPT_MOST {
            return Ok(());
        }
        self.reduce();
        if self.kept.len() > KEPT_MOST / 2 { Err(TooManyCorners) } else { Ok(()) }
    }

    fn reduce(&mut self) {
        self.kept.sort_unstable();
        let mut hull: Vec<OffsetBound> = Vec::new();
        for &bound in &self.kept {
            while let [.., first, second] = hull[..]
                && !self.is_corner(first, second, bound)
            {
                hull.pop();
            }
            hull.push(bound);
        }
        self.kept = hull;
    }

    /// Returns whether the second of three consecutive bounds is tighter than the line from the first to the third.
    fn is_corner(&self, first: OffsetBound, second: OffsetBound, third: OffsetBound) -> bool {
        let apart = |from: OffsetBound, to: OffsetBound| {
            (i128::from(to.seen_at.0 - from.seen_at.0), i128::from(to.offset.0) - i128::from(from.offset.0))
        };
        let ((to_second, up_second), (to_third, up_third)) = (apart(first, second), apart(first, third));
        let turn = to_second * up_third - to_third * up_second;
        if self.are_above { turn > 0 } else { turn < 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::offset::{OffsetError, between};
    use crate::units::Micros;

    /// Returns the bounds of a round trip every 10 ms between clocks that drift apart.
    fn bounds(drift_ppm: i64, count: i64) -> [Vec<OffsetBound>; 2] {
        let late = |at: i64| {
            let on_client = Micros(at - at * drift_ppm / 1_000_000);
            let took = 2_000 + (at / 10_000 * 7_919 + 12_345) % 30_011;
            let arrived = at + took;
            let arrived_on_client = Micros(arrived - arrived * drift_ppm / 1_000_000);
            [OffsetBound::above(on_client, Micros(arrived)), OffsetBound::below(Micros(at), arrived_on_client)]
        };
        let both: Vec<[OffsetBound; 2]> = (0..count).map(|n| late(10_000 * n)).collect();
        [0, 1].map(|which| both.iter().map(|pair| pair[which]).collect())
    }

    #[test]
    fn the_kept_bounds_give_the_result_of_all_bounds() {
        for drift_ppm in [0, 3, -40, 900, -20_000] {
            let [above, below] = bounds(drift_ppm, 60_000);
            let (mut kept_above, mut kept_below) = (OffsetBounds::above(), OffsetBounds::default());
            above.iter().for_each(|bound| kept_above.add(*bound).expect("few corners"));
            below.iter().for_each(|bound| kept_below.add(*bound).expect("few corners"));
            assert!(kept_above.kept.len() < KEPT_MOST && kept_below.kept.len() < KEPT_MOST);
            let (all, kept) = (between(&above, &below), between(&kept_above.kept, &kept_below.kept));
            match (all, kept) {
                (
                    Err(OffsetError::Drift { apart, rate_us_per_s, is_steady }),
                    Err(OffsetError::Drift { apart: kept_apart, rate_us_per_s: kept_rate, is_steady: kept_steady }),
                ) => {
                    assert_eq!((apart, is_steady), (kept_apart, kept_steady));
                    assert!((rate_us_per_s - kept_rate).abs() < 0.01, "{rate_us_per_s} {kept_rate}");
                    // The rate is per second of the client's clock.
                    let rate = drift_ppm as f64 / (1.0 - drift_ppm as f64 / 1e6);
                    assert!(is_steady && (rate_us_per_s - rate).abs() < 100.0, "{rate_us_per_s} {rate}");
                }
                (all, kept) => assert_eq!(all, kept, "{drift_ppm}"),
            }
        }
    }

    #[test]
    fn too_many_corners_are_reported() {
        let mut bounds = OffsetBounds::above();
        let curve = |n: i64| OffsetBound { seen_at: Micros(n), offset: Micros(n * n) };
        assert_eq!((0..5_000).try_for_each(|n| bounds.add(curve(n))), Err(TooManyCorners));
    }
}
