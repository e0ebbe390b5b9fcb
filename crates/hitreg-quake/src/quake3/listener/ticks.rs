//! Numbers the server frames seen in snapshots as ticks, by server time.

use std::collections::VecDeque;

use hitreg_log::units::{Micros, Tick};

/// How many ticks a snapshot may be late.
const REMEMBERED: usize = 64;

/// The newest ticks by server time.
#[derive(Debug, Default)]
pub(super) struct NewestTicks {
    newest: VecDeque<(i32, Tick, Micros)>,
    /// The first server time, and the session time at which it was observed.
    first: Option<(i32, Micros)>,
}

impl NewestTicks {
    /// Sets the session time of the first observed server time. Session and server clocks then agree, except for the
    /// network delay.
    pub(super) fn begin(&mut self, at: Micros, server_time: i32) {
        self.first.get_or_insert((server_time, at));
    }

    /// Returns the tick of a server time in ms; `None` if it is older than all remembered ticks.
    pub(super) fn of(&mut self, at: Micros, server_time: i32, server_hz: u16) -> Option<Tick> {
        let (first, _) = *self.first.get_or_insert((server_time, at));
        let (last_time, last) = self.newest.back().map_or((i32::MIN, Tick(0)), |(time, tick, _)| (*time, *tick));
        if server_time <= last_time {
            return self.newest.iter().find(|(time, ..)| *time == server_time).map(|(_, tick, _)| *tick);
        }
        // Frames are normally evenly spaced. Otherwise each still gets a number of its own.
        let passed = (i64::from(server_time) - i64::from(first)).max(0);
        let even = 1 + passed * i64::from(server_hz) / 1000;
        let tick = u32::try_from(even).unwrap_or(u32::MAX).max(last.0.saturating_add(1));
        Some(self.add(at, server_time, Tick(tick)))
    }

    /// Returns the first tick after a server time, and its session time.
    pub(super) fn after(&self, server_time: i32) -> Option<(Tick, Micros)> {
        let after = self.newest.partition_point(|(time, ..)| *time <= server_time);
        self.newest.get(after).map(|(_, tick, at)| (*tick, *at))
    }

    /// Returns whether the first observed server time is at most this one.
    pub(super) fn has_begun(&self, server_time: i32) -> bool {
        self.first.is_some_and(|(first, _)| first <= server_time)
    }

    /// Returns the newest server time; `None` before the first tick.
    pub(super) fn newest(&self) -> Option<i32> {
        self.newest.back().map(|(time, ..)| *time)
    }

    fn add(&mut self, at: Micros, server_time: i32, tick: Tick) -> Tick {
        if self.newest.len() == REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back((server_time, tick, at));
        tick
    }

    /// Converts a server time in ms to session time.
    pub(super) fn time(&self, server_time: i32) -> Micros {
        let (first, at) = self.first.unwrap_or((server_time, Micros::ZERO));
        at + Micros::from_ms(i64::from(server_time) - i64::from(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_servers_time() {
        let mut ticks = NewestTicks::default();
        let numbers = [1000, 1050, 1050, 1200, 1201, 1050]
            .map(|time| ticks.of(Micros(i64::from(time)), time, 20).map(|tick| tick.0));
        assert_eq!(numbers, [Some(1), Some(2), Some(2), Some(5), Some(6), Some(2)]);
        assert_eq!(
            (ticks.of(Micros(9), 1100, 20), ticks.time(1200)),
            (None, Micros(1000) + Micros::from_ms(200)),
            "no client received it in time"
        );
        assert_eq!((ticks.after(1100), ticks.after(1201)), (Some((Tick(5), Micros(1200))), None));
        assert_eq!((ticks.newest(), [999, 1000].map(|time| ticks.has_begun(time))), (Some(1201), [false, true]));
    }
}
