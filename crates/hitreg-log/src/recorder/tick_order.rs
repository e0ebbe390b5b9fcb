//! Refuses ticks whose numbers contradict their times. Readers take states and usercmds of a tick by its number.

use super::PushError;
use crate::record::TickRecord;
use crate::sorted::SortedMap;
use crate::units::{Micros, Tick};

/// The recorded ticks that another tick may still precede, and the last one before them.
#[derive(Debug, Default)]
pub(super) struct TickOrder {
    at: SortedMap<Tick, Micros>,
}

impl TickOrder {
    /// Adds a tick that is not before `released`. Ticks may come in any order.
    ///
    /// # Errors
    /// When an earlier or simultaneous tick has a higher number, a later one has a lower number, or the number is known.
    pub(super) fn add(&mut self, tick: TickRecord, released: Micros) -> Result<(), PushError> {
        let before = self.at.range(..=tick.tick).next_back();
        let contradicts = |(number, at): &(&Tick, &Micros)| **number == tick.tick || **at > tick.at;
        let after = || self.at.range(tick.tick..).next().filter(|(_, at)| **at <= tick.at);
        if let Some((number, at)) = before.filter(contradicts).or_else(after) {
            return Err(PushError::TickOrder { tick, other: TickRecord { tick: *number, at: *at, hash: None } });
        }
        self.at.insert(tick.tick, tick.at);
        while self.at.values().nth(1).is_some_and(|at| *at < released) {
            self.at.pop_first();
        }
        Ok(())
    }

    /// Removes a tick that could not be recorded.
    pub(super) fn remove(&mut self, tick: Tick) {
        self.at.remove(&tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_in_any_order_and_only_contradictions_are_refused() {
        let mut order = TickOrder::default();
        let mut add = |number: u32, ms: i64| {
            let tick = TickRecord { tick: Tick(number), at: Micros::from_ms(ms), hash: None };
            match order.add(tick, Micros::from_ms(100)) {
                Ok(()) => None,
                Err(PushError::TickOrder { other, .. }) => Some(other.tick.0),
                Err(error) => panic!("{error}"),
            }
        };
        // The first tick of a log may have any number. Ticks of one frame have equal times.
        let pushed = [(5, 110), (7, 120), (6, 115), (8, 120), (20, 400)];
        assert_eq!(pushed.map(|(number, ms)| add(number, ms)), [None; 5]);
        // The number again, a later number with an earlier time, an earlier number with a later time, a restart.
        assert_eq!(
            [(7, 120), (9, 119), (6, 130), (1, 500)].map(|(number, ms)| add(number, ms)),
            [7, 8, 6, 5].map(Some)
        );
        assert_eq!([(9, 121), (21, 401)].map(|(number, ms)| add(number, ms)), [None; 2], "refused ticks do no harm");
    }

    #[test]
    fn ticks_before_the_window_are_forgotten_except_the_last() {
        let mut order = TickOrder::default();
        for number in 1..=10_000u32 {
            let at = Micros::from_ms(10 * i64::from(number));
            let tick = TickRecord { tick: Tick(number), at, hash: None };
            order.add(tick, at - Micros::from_ms(250)).unwrap();
            assert!(order.at.len() <= 27, "{} ticks", order.at.len());
        }
        let at = Micros::from_ms(200_000);
        let other = TickRecord { tick: Tick(10_000 - 25 - 1), at: Micros::from_ms(99_740), hash: None };
        let tick = TickRecord { tick: Tick(1), at, hash: None };
        assert_eq!(order.add(tick, at), Err(PushError::TickOrder { tick, other }));
        order.remove(Tick(10_000));
        assert_eq!(order.add(TickRecord { tick: Tick(10_000), ..tick }, at), Ok(()));
    }
}
