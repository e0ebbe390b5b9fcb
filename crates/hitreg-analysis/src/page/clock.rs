//! The times of steps: the ticks of a server or the frames of a client.

use std::cell::Cell;

use serde::Serialize;

use super::packed::{PackedColumn, PageColumns};
use hitreg_log::record::value_of_setting;
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{bodies, frames, ticks, views};
use hitreg_log::trace::{TraceSource, body_tables, each_part};

/// Steps by number, with the time of each.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTimes {
    /// Ascending.
    numbers: Vec<u32>,
    times_us: Vec<i64>,
    /// Steps that came after a later one.
    late: Vec<(u32, i64)>,
    /// The last step that was looked up. The next one is nearly always close to it.
    asked: Cell<usize>,
}

/// One step of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockStep {
    /// The place of the step in its clock.
    pub(super) index: u32,
    /// The time of the step, in microseconds.
    pub(super) at_us: i64,
}

/// The same clock in the page's format.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PackedClock {
    /// The player; `None` for the server.
    player: Option<u32>,
    number: PackedColumn,
    at_us: PackedColumn,
}

impl StepTimes {
    fn push(&mut self, number: u32, at: i64) {
        match self.numbers.last() {
            Some(last) if *last == number => {}
            Some(last) if *last > number => self.late.push((number, at)),
            _ => {
                // A step is never earlier than the step before it, whatever the client's clock said.
                self.times_us.push(self.times_us.last().map_or(at, |latest| at.max(*latest)));
                self.numbers.push(number);
            }
        }
    }

    /// The clock in the order of its steps.
    fn in_order(mut self) -> StepTimes {
        if self.late.is_empty() {
            return self;
        }
        let mut steps: Vec<(u32, i64)> = self.numbers.drain(..).zip(self.times_us.drain(..)).collect();
        steps.append(&mut self.late);
        steps.sort_by_key(|(number, _)| *number);
        let mut clock = StepTimes::default();
        steps.into_iter().for_each(|(number, at)| clock.push(number, at));
        clock
    }

    /// The server's ticks. If the trace has no times of ticks, the tick rate in its settings gives them. Also returns
    /// whether the trace has the times.
    pub(super) fn of_server(trace: &dyn TraceSource) -> Result<(StepTimes, bool), String> {
        let (mut clock, mut untimed) = (StepTimes::default(), SortedSet::new());
        each_part(trace, ticks::NAME, (&["tick", "at_us"], None), &mut |rows| {
            let table = ticks::Columns::read(rows);
            match table.at_us.is_empty() {
                true => untimed.extend(table.tick),
                false => table.tick.iter().zip(table.at_us).for_each(|(tick, at)| clock.push(*tick, *at)),
            }
            Ok(())
        })?;
        if !clock.is_empty() {
            return Ok((clock.in_order(), true));
        }
        for table in body_tables(trace) {
            each_part(trace, &table, (&["tick"], None), &mut |rows| {
                untimed.extend(bodies::Columns::read(rows).tick);
                Ok(())
            })?;
        }
        let rate = value_of_setting(&trace.header().settings, "server.tick_hz");
        let rate = rate.and_then(|value| value.parse().ok()).filter(|rate: &f64| *rate > 0.0).unwrap_or(64.0);
        untimed.into_iter().for_each(|tick| clock.push(tick, (f64::from(tick) / rate * 1e6) as i64));
        Ok((clock, false))
    }

    /// The frames of each client. If the trace has no frames, the times of views are used.
    pub(super) fn of_players(trace: &dyn TraceSource) -> Result<SortedMap<u32, StepTimes>, String> {
        let mut clocks: SortedMap<u32, StepTimes> = SortedMap::new();
        each_part(trace, frames::NAME, (&["player", "command", "at_us", "server_time_us"], None), &mut |rows| {
            let table = frames::Columns::read(rows);
            let times = if table.at_us.is_empty() { table.server_time_us } else { table.at_us };
            for ((player, command), at) in table.player.iter().zip(table.command).zip(times) {
                clocks.entry(*player).or_default().push(*command, *at);
            }
            Ok(())
        })?;
        if clocks.is_empty() {
            each_part(trace, views::NAME, (&["player", "command", "drawn_at_us"], None), &mut |rows| {
                let table = views::Columns::read(rows);
                for ((player, command), at) in table.player.iter().zip(table.command).zip(table.drawn_at_us) {
                    clocks.entry(*player).or_default().push(*command, *at);
                }
                Ok(())
            })?;
        }
        Ok(clocks.into_iter().map(|(player, clock)| (player, clock.in_order())).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The time of the first step, in microseconds.
    pub(super) fn first_us(&self) -> Option<i64> {
        self.times_us.first().copied()
    }

    pub(super) fn step_of(&self, number: u32) -> Option<ClockStep> {
        let asked = self.asked.get();
        let near = [asked, asked + 1].into_iter().find(|step| self.numbers.get(*step) == Some(&number));
        let step = near.or_else(|| self.numbers.binary_search(&number).ok())?;
        self.asked.set(step);
        Some(ClockStep { index: step as u32, at_us: self.times_us[step] })
    }

    pub(super) fn pack(&self, player: Option<u32>, columns: &mut PageColumns) -> PackedClock {
        PackedClock {
            player,
            number: columns.push_steady(self.numbers.iter().map(|number| i64::from(*number)), 1.0),
            at_us: columns.push_steady(self.times_us.iter().copied(), 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_any_order_make_one_clock() {
        let mut clock = StepTimes::default();
        [(1, 10), (2, 25), (2, 99), (5, 20), (3, 30), (9, 90)]
            .into_iter()
            .for_each(|(number, at)| clock.push(number, at));
        let clock = clock.in_order();
        assert_eq!((&clock.numbers[..], &clock.times_us[..]), (&[1, 2, 3, 5, 9][..], &[10, 25, 30, 30, 90][..]));
        let steps = [9, 1, 2, 3, 4, 5].map(|number| clock.step_of(number).map(|step| (step.index, step.at_us)));
        assert_eq!(steps, [Some((4, 90)), Some((0, 10)), Some((1, 25)), Some((2, 30)), None, Some((3, 30))]);
    }
}
