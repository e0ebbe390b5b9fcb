//! The calibration helper of the NeREIDS live protocol, computed by the server. It says how many milliseconds before a
//! tick the client's input for it arrives, with jitter filtered out.
//!
//! The filter is the mean of the middle half of the last frames. It is steadier than a median, and equally insensitive
//! to very late packets. When the client steps its clock, old frames say nothing about the new clock and are dropped.

use std::collections::VecDeque;

use crate::bounded::push_bounded;
use crate::state::value;
use hitreg_log::units::Micros;

/// The number of frames in the filter: about a second at 32 ms.
pub const CALIBRATION_FRAMES: usize = 32;
/// The least number of frames for a result.
const FRAMES_MIN: usize = 8;
/// Frames that deviate by more than this, [`SET_FRAMES`] in a row, show that the client stepped its clock.
const SET_ABOVE: Micros = Micros::from_ms(75);
const SET_FRAMES: usize = 4;

/// The calibration helper of one client.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// How early each of the last frames was, oldest first.
    leads: VecDeque<Micros>,
    /// The current run of consecutive frames that deviate.
    off: Vec<Micros>,
}

value!(Calibration { leads, off });

impl Calibration {
    /// Adds a frame whose input arrived at `arrived` for a tick at `computed`. Call it once per packet with the newest
    /// frame, even when that is too late or too early to be used.
    pub fn handle_frame(&mut self, arrived: Micros, computed: Micros) {
        // Clamps false times so that the mean cannot overflow. No honest client is off by an hour.
        let lead = (computed - arrived).clamp(Micros::from_s(-3600), Micros::from_s(3600));
        let is_off = self.middle().is_some_and(|middle| (lead - middle).0.abs() > SET_ABOVE.0);
        if is_off {
            self.off.push(lead);
            if self.off.len() >= SET_FRAMES {
                self.leads = std::mem::take(&mut self.off).into();
            }
            return;
        }
        self.off.clear();
        push_bounded(&mut self.leads, lead, CALIBRATION_FRAMES);
    }

    /// Returns the helper in ms, positive when input is early; `None` before enough frames arrived.
    pub fn helper_ms(&self) -> Option<i16> {
        let middle = self.middle().filter(|_| self.leads.len() >= FRAMES_MIN)?;
        let ms = (middle.0 + 500).div_euclid(1000);
        Some(ms.clamp(-i64::from(i16::MAX), i64::from(i16::MAX)) as i16)
    }

    /// Returns the mean of the middle half.
    fn middle(&self) -> Option<Micros> {
        let mut sorted: Vec<i64> = self.leads.iter().map(|lead| lead.0).collect();
        sorted.sort_unstable();
        let quarter = sorted.len() / 4;
        let half = sorted.get(quarter..sorted.len() - quarter).filter(|half| !half.is_empty())?;
        Some(Micros(half.iter().sum::<i64>() / half.len() as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::Seed;

    fn helper(leads_ms: impl IntoIterator<Item = i64>) -> Option<i16> {
        let mut calibration = Calibration::default();
        for ms in leads_ms {
            calibration.handle_frame(Micros::ZERO, Micros::from_ms(ms));
        }
        calibration.helper_ms()
    }

    #[test]
    fn calibration_measures_how_early_frames_are() {
        assert_eq!(helper([]), None);
        assert_eq!(helper([40; 7]), None);
        assert_eq!(helper([40; 8]), Some(40));
        assert_eq!(helper([-1_500; 8]), Some(-1_500));
        assert_eq!(helper([-100_000; 8]), Some(-i16::MAX));
    }

    #[test]
    fn late_outliers_do_not_count() {
        let leads = (0..200).map(|i| if i % 9 == 0 { -300 } else { 40 });
        assert_eq!(helper(leads), Some(40));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        let leads = [40; 100].into_iter().chain([-160; 8]);
        assert_eq!(helper(leads), Some(-160));
    }

    #[test]
    fn jitter_is_removed() {
        let mut rng = Rng::new(Seed(11), 0);
        let mut calibration = Calibration::default();
        let mut raw = Vec::new();
        let mut filtered = Vec::new();
        for _ in 0..2_000 {
            let lead = Micros(60_000 - rng.below(50_000) as i64);
            calibration.handle_frame(Micros::ZERO, lead);
            raw.push(lead.as_ms_f64());
            filtered.extend(calibration.helper_ms().map(f64::from));
        }
        let spread = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            libm::sqrt(values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64)
        };
        assert!(spread(&raw) > 13.0, "{}", spread(&raw));
        assert!(spread(&filtered) < 4.5, "{}", spread(&filtered));
    }
}
