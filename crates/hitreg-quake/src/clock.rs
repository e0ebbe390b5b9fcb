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
    /// The last step back, until the clock reaches the time before it again.
    step: Option<ClockStep>,
    /// Number of replaced times.
    pub(crate) repaired: u64,
}

/// A step of the clock back, in µs.
#[derive(Debug)]
struct ClockStep {
    /// The time before the step, as recorded, and the first time after it.
    from: i64,
    to: i64,
    /// The sum of all steps before it.
    set_back: i64,
}

impl ClockRepair {
    /// Returns a recorded time, or the last one before it that fits. `next` is the time after it. Damaged times do not
    /// move later ones that fit again. After a step back, the clock goes on from the time before.
    pub(crate) fn repair(&mut self, now: Micros, next: Option<Micros>) -> Micros {
        let (now, next) = (now.0, next.map_or(now.0, |next| next.0));
        let is_back = |time: i64, from: i64| from.saturating_sub(time) > REORDERED;
        let mut last = *self.last.get_or_insert(now.min(next));
        // A jump back to the time before the step shows that the times between were damaged.
        if let Some(step) = self.step.take_if(|step| !is_back(now, step.from))
            && now.saturating_sub(last) > step.from.saturating_sub(step.to) / 2
        {
            (last, self.set_back) = (step.from, step.set_back);
        }
        let is_alone_ahead = is_back(next, now) && !is_back(next, last);
        let fitting = if is_alone_ahead || is_back(now, last) {
            self.repaired += 1;
            if is_back(now, last) && is_back(next, last) {
                self.step = Some(ClockStep { from: last, to: now, set_back: self.set_back });
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
        assert_eq!(repaired(&[500, 700, 0, 10, 900, 910]), (vec![500, 700, 700, 710, 900, 910], 1), "two times back");
        let slow = [500, 700, 200, 400, 650, 900, 950];
        assert_eq!(repaired(&slow), (vec![500, 700, 700, 900, 1150, 1400, 1450], 1), "a step back that stays");
    }
}
