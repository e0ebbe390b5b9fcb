//! The times of a streamed replay's last ticks and usercmds. Rows of one table name them, and rows of another have
//! their times.

use std::collections::VecDeque;

use hitreg_log::units::Micros;

/// How long times are kept. It exceeds the time between related rows of two tables in a streamed replay, and the delay
/// of drawing.
pub(crate) const KEPT: Micros = Micros::from_s(64);
/// Older times are removed once in this time, because each removal passes over all of them.
const REMOVAL_INTERVAL: Micros = Micros::from_s(4);

/// Times in µs by number: those of ticks, or of a player's usercmds.
#[derive(Debug)]
pub(crate) struct RecentTimes {
    /// Numbers with their times, in ascending order of number.
    at_us: VecDeque<(u32, i64)>,
    /// When older times are removed next.
    removal_us: i64,
}

impl Default for RecentTimes {
    fn default() -> RecentTimes {
        RecentTimes { at_us: VecDeque::new(), removal_us: i64::MIN }
    }
}

impl RecentTimes {
    /// Adds a time. A later one of the same number replaces an earlier one.
    pub(crate) fn add(&mut self, number: u32, at_us: i64) {
        // Numbers nearly always come in order.
        let is_next = self.last().is_none_or(|last| last < number);
        match if is_next { Err(self.at_us.len()) } else { self.place_of(number) } {
            Ok(place) => self.at_us[place].1 = at_us,
            Err(place) => self.at_us.insert(place, (number, at_us)),
        }
    }

    /// Returns the time of a tick or usercmd.
    pub(crate) fn get(&self, number: u32) -> Option<i64> {
        Some(self.at_us[self.place_of(number).ok()?].1)
    }

    /// Returns the greatest number.
    pub(crate) fn last(&self) -> Option<u32> {
        self.at_us.back().map(|(number, _)| *number)
    }

    /// Returns the index of a number, or the index at which to insert it.
    fn place_of(&self, number: u32) -> Result<usize, usize> {
        self.at_us.binary_search_by_key(&number, |(number, _)| *number)
    }

    /// Returns the number of times.
    pub(crate) fn len(&self) -> usize {
        self.at_us.len()
    }

    /// Removes times that are much older than `newest_us`. Call it when all rows so far have found their times.
    pub(crate) fn forget(&mut self, newest_us: i64) {
        if newest_us >= self.removal_us {
            self.removal_us = newest_us.saturating_add(REMOVAL_INTERVAL.0);
            self.at_us.retain(|(_, at_us)| *at_us >= newest_us.saturating_sub(KEPT.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_for_64_s_and_removed_by_68_s() {
        let s = |s: u32| i64::from(s) * 1_000_000;
        let mut times = RecentTimes::default();
        for second in 0..300 {
            times.add(second, s(second));
            times.forget(s(second));
            assert_eq!(times.get(second.saturating_sub(64)), Some(s(second.saturating_sub(64))));
            assert!(times.at_us.len() <= 69, "{} times", times.at_us.len());
        }
        assert_eq!((times.get(200), times.last()), (None, Some(299)));
    }

    #[test]
    fn numbers_may_come_in_any_order_and_twice() {
        let mut times = RecentTimes::default();
        [(5, 50), (2, 20), (9, 90), (2, 21), (7, 70)].iter().for_each(|(number, at_us)| times.add(*number, *at_us));
        assert_eq!([2, 5, 6, 7, 9].map(|number| times.get(number)), [Some(21), Some(50), None, Some(70), Some(90)]);
        assert_eq!((times.len(), times.last()), (4, Some(9)));
    }
}
