//! Repairs the times of a recording: a clock runs forward, so a time that does not fit its neighbours is damaged.

use hitreg_log::units::Micros;

/// Largest step back, in µs, of what was merely recorded out of order.
const REORDERED: i64 = 100_000;
/// The latest repaired time, in µs, so that sums of damaged times do not overflow.
const LATEST: i64 = i64::MAX / 256;

/// The clock of a recording, time by time.
#[derive(Debug, Default)]
pub(crate) struct ClockRepair {
    /// The last time that fits, as recorded, in µs.
    last: Option<i64>,
    /// The sum of all steps back, in µs.
    set_back: i64,
    /// Number of replaced times.
    pub(crate) repaired: u64,
}

impl ClockRepair {
    /// Returns a recorded time, or the last one before it that fits. `next` is the time after it. A single damaged time
    /// does not move others. After a step back, the clock goes on from the time before.
    pub(crate) fn repair(&mut self, now: Micros, next: Option<Micros>) -> Micros {
        let (now, next) = (now.0, next.map_or(now.0, |next| next.0));
        let last = *self.last.get_or_insert(now.min(next));
        let is_back = |time: i64, from: i64| from.saturating_sub(time) > REORDERED;
        let is_alone_ahead = is_back(next, now) && !is_back(next, last);
        let fitting = if is_alone_ahead || is_back(now, last) {
            self.repaired += 1;
            if is_back(now, last) && is_back(next, last) {
                self.set_back = self.set_back.saturating_add(last.saturating_sub(now));
                self.last = Some(now);
                now
            } else {
                last
            }
        } else {
            self.last = Some(now.max(last));
            now
        };
        Micros(fitting.saturating_add(self.set_back).min(LATEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_time_moves_no_other() {
        let repaired = |times: &[i64]| {
            let mut clock = ClockRepair::default();
            let next = times.iter().skip(1).map(|ms| Some(Micros::from_ms(*ms))).chain([None]);
            let times: Vec<i64> =
                times.iter().zip(next).map(|(ms, next)| clock.repair(Micros::from_ms(*ms), next).0 / 1000).collect();
            (times, clock.repaired)
        };
        assert_eq!(repaired(&[500, 700, 690, 9_000]), (vec![500, 700, 690, 9_000], 0), "out of order");
        assert_eq!(repaired(&[500, 700, 9_000, 900, 910]), (vec![500, 700, 700, 900, 910], 1), "ahead");
        assert_eq!(repaired(&[500, 700, 0, 900, 910]), (vec![500, 700, 700, 900, 910], 1), "back");
        assert_eq!(repaired(&[9_000, 700, 900]), (vec![700, 700, 900], 1), "the first");
        assert_eq!(repaired(&[500, 700, 200, 210, 230]), (vec![500, 700, 700, 710, 730], 1), "a step back");
    }
}
