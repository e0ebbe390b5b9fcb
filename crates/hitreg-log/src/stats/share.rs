//! Shares with confidence intervals: a hit rate over several logs or sessions.

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
        match t_within(middle, degrees) < 1.0 - 2.0 * tail {
            true => low = middle,
            false => high = middle,
        }
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
