//! The calibration helper of the NeREIDS live protocol, computed by the server. It says how many milliseconds before a
//! tick the client's input for it arrives, with jitter filtered out.
//!
//! The filter is the mean of the middle half of the last frames. It is steadier than a median, and equally insensitive
//! to very late packets. When the client steps its clock, old frames say nothing about the new clock and are dropped.
//!
//! A delay spike must not look like such a step. Packets that wait behind a delayed packet arrive together with it, so
//! they are one event with it. A step shows in packets that arrive one after the other, and all deviate to the same
//! side.

use std::collections::VecDeque;

use crate::bounded::push_bounded;
use crate::state::value;
use hitreg_log::units::Micros;

/// The number of frames in the filter: about a second at 32 ms.
pub const CALIBRATION_FRAMES: usize = 32;
/// The least number of frames for a result.
const FRAMES_MIN: usize = 8;
/// A frame that deviates by more than this is off. [`SET_FRAMES`] of them in a row, on the same side, show that the
/// client stepped its clock.
const SET_ABOVE: Micros = Micros::from_ms(75);
/// Enough for a result, so that the helper stays known.
const SET_FRAMES: usize = FRAMES_MIN;

/// The calibration helper of one client.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// How early each of the last frames was, oldest first.
    leads: VecDeque<Micros>,
    /// The current run of consecutive frames that are off, on one side.
    off: Vec<Micros>,
    /// The arrival time and the lead of the last frame.
    last: Option<(Micros, Micros)>,
}

value!(Calibration { leads, off, last });

impl Calibration {
    /// Adds a frame whose input arrived at `arrived` for a tick at `computed`. Call it once per packet with the newest
    /// frame, even when that is too late or too early to be used.
    pub fn handle_frame(&mut self, arrived: Micros, computed: Micros) {
        // Clamps false times so that the mean cannot overflow. No honest client is off by an hour.
        let lead = (computed - arrived).clamp(Micros::from_s(-3600), Micros::from_s(3600));
        let last = self.last.replace((arrived, lead));
        let middle = self.middle().unwrap_or(lead);
        if (lead - middle).0.abs() <= SET_ABOVE.0 {
            self.end_run();
            push_bounded(&mut self.leads, lead, CALIBRATION_FRAMES);
            return;
        }
        // A frame waited if it followed the last one within half of the time between their ticks.
        let waited = last.is_some_and(|(last_arrived, last_lead)| arrived - last_arrived < lead - last_lead);
        if lead < middle && waited {
            return;
        }
        if self.off.last().is_some_and(|off| (*off < middle) != (lead < middle)) {
            self.end_run();
        }
        self.off.push(lead);
        if self.off.len() >= SET_FRAMES {
            self.leads = std::mem::take(&mut self.off).into();
        }
    }

    /// Ends a run of frames that are off. Jitter made it, so its frames count as all others.
    fn end_run(&mut self) {
        for lead in self.off.drain(..) {
            push_bounded(&mut self.leads, lead, CALIBRATION_FRAMES);
        }
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

    /// Takes frames with their arrival times and tick times. Returns the helper after each.
    fn helpers(frames: impl IntoIterator<Item = (Micros, Micros)>) -> Vec<Option<i16>> {
        let mut calibration = Calibration::default();
        let frames = frames.into_iter().map(|(arrived, computed)| {
            calibration.handle_frame(arrived, computed);
            calibration.helper_ms()
        });
        frames.collect()
    }

    /// Takes a frame each 32 ms, so many ms before its tick. Returns the last helper.
    fn helper(leads_ms: impl IntoIterator<Item = i64>) -> Option<i16> {
        let frames = leads_ms.into_iter().zip(0..);
        let frames = frames.map(|(ms, i)| (Micros::from_ms(32 * i), Micros::from_ms(32 * i + ms)));
        helpers(frames).last().copied().flatten()
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
        for set_ms in [-160, -40, 120, 240] {
            let leads = || [40; 100].into_iter().chain([set_ms; 8]);
            assert_eq!(helper(leads().take(107)), Some(40));
            assert_eq!(helper(leads()), i16::try_from(set_ms).ok());
        }
    }

    #[test]
    fn a_clock_that_was_set_under_jitter_is_followed_within_a_filter() {
        let jitter = |i: i64| i * 37 % 90;
        for set_ms in [-200, 300] {
            let leads = (0..100).map(|i| 40 - jitter(i)).chain((0..40).map(|i| 40 + set_ms - jitter(i)));
            let helper = helper(leads).map(i64::from);
            assert!(helper.is_some_and(|helper| (helper - (set_ms - 4)).abs() < 20), "{set_ms} ms: {helper:?}");
        }
    }

    #[test]
    fn a_delay_spike_is_one_event() {
        for spike_ms in [80, 200, 300, 1_000] {
            // A packet of each 50 is late, and delays those behind it.
            let mut last = Micros::ZERO;
            let frames = (0..200).map(|i| {
                let delay_ms = if i % 50 == 49 { spike_ms } else { 0 };
                last = last.max(Micros::from_ms(32 * i + delay_ms));
                (last, Micros::from_ms(32 * i + 40))
            });
            let helpers = helpers(frames);
            let is_steady = helpers.iter().skip(7).all(|helper| helper.is_some_and(|ms| (ms - 40).abs() <= 10));
            assert!(is_steady, "{spike_ms} ms: {helpers:?}");
        }
    }

    #[test]
    fn jitter_on_both_sides_is_no_step() {
        let leads = (0..200).map(|i| {
            if i < 100 {
                40
            } else if i % 2 == 0 {
                240
            } else {
                -160
            }
        });
        assert_eq!(helper(leads.take(108)), Some(40));
    }

    #[test]
    fn jitter_is_removed() {
        let mut rng = Rng::new(Seed(11), 0);
        let mut calibration = Calibration::default();
        let mut raw = Vec::new();
        let mut filtered = Vec::new();
        for tick in 0..2_000 {
            let lead = Micros(60_000 - rng.below(50_000) as i64);
            let computed = Micros::from_ms(32 * tick);
            calibration.handle_frame(computed - lead, computed);
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
