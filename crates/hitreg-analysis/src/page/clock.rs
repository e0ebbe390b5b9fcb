//! The times of steps: the ticks of a server or the frames of a client.

use std::cell::Cell;

use serde::Serialize;

use super::packed::{PackedColumn, PageColumns};
use hitreg_log::record::{GapRecord, value_of_setting};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{bodies, frames, ticks, views};
use hitreg_log::trace::{TraceReadError, TraceSource, body_tables, each_part};

/// Steps by number, with the time of each.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTimes {
    /// Ascending.
    numbers: Vec<u32>,
    times_us: Vec<i64>,
    /// Steps that came after a later one.
    late: Vec<(u32, i64)>,
    /// The steps before which records are missing, by their places, in ascending order.
    after_gaps: Vec<u32>,
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
    /// Whether records are missing between the step before and this one.
    pub(super) is_after_gap: bool,
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

    /// The clock in the order of its steps, with its gaps.
    fn finish(self, gaps: &[GapRecord], is_of: impl Fn(&GapRecord) -> bool) -> StepTimes {
        let clock = self.in_order();
        // The times of a gap are those of any records around it, so its middle is surely between two steps.
        let middles = gaps.iter().filter(|gap| is_of(gap)).map(|gap| gap.from.0.midpoint(gap.to.0));
        let places = middles.map(|middle| clock.times_us.partition_point(|at| *at < middle));
        let mut after_gaps: Vec<u32> = places.map(|place| place as u32).collect();
        after_gaps.sort_unstable();
        StepTimes { after_gaps, ..clock }
    }

    /// The server's ticks. If the trace has no times of ticks, the tick rate in its settings gives them. Also returns
    /// whether the trace has the times.
    pub(super) fn of_server(trace: &dyn TraceSource) -> Result<(StepTimes, bool), TraceReadError> {
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
            return Ok((clock.finish(&trace.header().gaps, |gap| gap.player.is_none()), true));
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
    pub(super) fn of_players(trace: &dyn TraceSource) -> Result<SortedMap<u32, StepTimes>, TraceReadError> {
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
        let finished = |(player, clock): (u32, StepTimes)| {
            let is_of = |gap: &GapRecord| gap.player.is_none_or(|of| u32::from(of.0) == player);
            (player, clock.finish(&trace.header().gaps, is_of))
        };
        Ok(clocks.into_iter().map(finished).collect())
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
        let index = step as u32;
        let is_after_gap = self.after_gaps.binary_search(&index).is_ok();
        Some(ClockStep { index, at_us: self.times_us[step], is_after_gap })
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
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};
    use hitreg_log::units::{Micros, PlayerId};

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

    /// Ticks and frames with consecutive numbers, and missing records between their times. A gap of another player, and
    /// one of a player for the server, leave them as they are.
    #[test]
    fn a_step_after_missing_records_says_so() {
        let table = |name: &str, columns: [&str; 3]| {
            let times = ColumnData::I64([10, 20, 30, 990, 1000].map(|ms| ms * 1000).into());
            let [player, number] = [vec![3; 5], (1..=5).collect()].map(ColumnData::U32);
            let columns = columns.into_iter().zip([player, number, times]);
            Table::new(name, columns.map(|(name, data)| Column::new(name, data)).collect())
        };
        let tables =
            vec![table(ticks::NAME, ["player", "tick", "at_us"]), table(frames::NAME, ["player", "command", "at_us"])];
        let trace = Trace { tables, ..Trace::default() };
        let steps_after_gaps = |gaps: [Option<PlayerId>; 1]| {
            let mut trace = trace.clone();
            let gap = |player| GapRecord {
                from: Micros::from_ms(34),
                to: Micros::from_ms(985),
                player,
                ..GapRecord::default()
            };
            trace.header.gaps = gaps.map(gap).into();
            let (server, _) = StepTimes::of_server(&trace).expect("ticks");
            let client = StepTimes::of_players(&trace).expect("frames").remove(&3).expect("a clock");
            [server, client].map(|clock| {
                let is_after = |number: &u32| clock.step_of(*number).is_some_and(|step| step.is_after_gap);
                (1..=5).filter(is_after).collect::<Vec<u32>>()
            })
        };
        assert_eq!(steps_after_gaps([None]), [vec![4], vec![4]]);
        assert_eq!(steps_after_gaps([Some(PlayerId(3))]), [vec![], vec![4]]);
        assert_eq!(steps_after_gaps([Some(PlayerId(2))]), [const { Vec::<u32>::new() }; 2]);
    }
}
