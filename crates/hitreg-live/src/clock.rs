//! The process clock, in microseconds since its start.

use std::time::{Duration, Instant};

use hitreg_log::units::{Hz, Micros};

/// A monotonic clock. Its copies show the same time on all threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonotonicClock {
    started: Instant,
}

impl MonotonicClock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "the clock of live sessions reads the system time")]
    pub(super) fn start() -> MonotonicClock {
        MonotonicClock { started: Instant::now() }
    }

    pub(super) fn now(self) -> Micros {
        Micros(self.started.elapsed().as_micros() as i64)
    }

    /// Returns a unique time for one event. The function returns only after that time has passed. Everything that the
    /// event causes, on any thread, therefore gets a later time. A replay orders events by these times alone.
    pub(super) fn stamp(self) -> Micros {
        let stamp = self.now();
        while self.now() <= stamp {
            std::hint::spin_loop();
        }
        stamp
    }

    /// Returns the duration until `then`; zero when it has passed.
    pub(super) fn until(self, then: Micros) -> Duration {
        Duration::from_micros((then - self.now()).0.max(0).unsigned_abs())
    }
}

/// A periodic schedule that skips missed turns instead of catching up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    first: Micros,
    hz: Hz,
    turn: i64,
}

impl Schedule {
    /// Creates a schedule with `hz` turns per second, starting at `first`.
    pub(super) fn new(first: Micros, hz: Hz) -> Schedule {
        Schedule { first, hz, turn: 0 }
    }

    /// Returns the time of the next turn.
    pub(super) fn due(&self) -> Micros {
        self.first + self.hz.turn(self.turn)
    }

    /// Delays the next turn and all later ones by `late`.
    pub(super) fn delay(&mut self, late: Micros) {
        self.first += late;
    }

    /// Moves to the first turn after `now`. Returns the number of turns skipped.
    pub(super) fn advance(&mut self, now: Micros) -> u64 {
        self.turn += 1;
        let next = self.hz.turns_in(now - self.first) + 1;
        let missed = (next - self.turn).max(0);
        self.turn += missed;
        missed.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_times_are_in_the_past() {
        let clock = MonotonicClock::start();
        let mut last = Micros(-1);
        for _ in 0..1_000 {
            let stamp = clock.stamp();
            assert!(last < stamp && stamp < clock.now());
            last = stamp;
        }
    }

    #[test]
    fn missed_turns_are_skipped() {
        let mut schedule = Schedule::new(Micros(500), Hz::parse("64").expect("a rate"));
        assert_eq!(schedule.due(), Micros(500));
        assert_eq!(schedule.advance(Micros(600)), 0);
        assert_eq!(schedule.due(), Micros(500 + 15_625));
        assert_eq!(schedule.advance(Micros(500 + 3 * 15_625 + 1)), 2);
        assert_eq!(schedule.due(), Micros(500 + 4 * 15_625));
        schedule.delay(Micros(70));
        assert_eq!(schedule.due(), Micros(570 + 4 * 15_625));
        assert_eq!(schedule.advance(Micros(600 + 4 * 15_625)), 0);
        assert_eq!(schedule.due(), Micros(570 + 5 * 15_625));
    }
}
