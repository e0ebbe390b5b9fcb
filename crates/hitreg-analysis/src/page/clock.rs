//! The times of steps: the ticks of a server or the frames of a client.

use std::collections::BTreeSet;

use serde::Serialize;

use super::packed::{ColumnSpan, PageColumns};
use crate::why::TraceRows;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{bodies, frames, ticks, views};

/// Steps by number, with the time of each.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTimes {
    numbers: Vec<u32>,
    times_us: Vec<i64>,
}

/// The same clock in the page's format.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PackedClock {
    /// The player; `None` for the server.
    player: Option<u32>,
    number: ColumnSpan,
    at_us: ColumnSpan,
}

impl StepTimes {
    fn new(mut steps: Vec<(u32, i64)>) -> StepTimes {
        steps.sort_by_key(|(number, _)| *number);
        steps.dedup_by_key(|(number, _)| *number);
        // A step is never earlier than the step before it, whatever the client's clock said.
        let mut latest = i64::MIN;
        let mut latest_so_far = |at: i64| {
            latest = latest.max(at);
            latest
        };
        StepTimes {
            times_us: steps.iter().map(|(_, at)| latest_so_far(*at)).collect(),
            numbers: steps.into_iter().map(|(number, _)| number).collect(),
        }
    }

    /// The server's ticks. If the trace has no times of ticks, the tick rate in its settings gives them. Also returns
    /// whether the trace has the times.
    pub(super) fn of_server(trace: &Trace) -> (StepTimes, bool) {
        let table = ticks::Columns::of(trace);
        if !table.at_us.is_empty() {
            return (StepTimes::new(table.tick.iter().copied().zip(table.at_us.iter().copied()).collect()), true);
        }
        let rate = trace.header.settings.iter().find(|(key, _)| key == "server.tick_hz");
        let rate = rate.and_then(|(_, value)| value.parse().ok()).filter(|rate: &f64| *rate > 0.0).unwrap_or(64.0);
        let known: BTreeSet<u32> = table.tick.iter().chain(bodies::Columns::of(trace).tick).copied().collect();
        let at = |tick: u32| (f64::from(tick) / rate * 1e6) as i64;
        (StepTimes::new(known.into_iter().map(|tick| (tick, at(tick))).collect()), false)
    }

    /// A client's frames. If the trace has no frames, the times of its views are used.
    pub(super) fn of_player(trace: &Trace, reader: &TraceRows<'_>, player: u32) -> StepTimes {
        let table = frames::Columns::of(trace);
        let times = if table.at_us.is_empty() { table.server_time_us } else { table.at_us };
        let rows = reader.frames.rows([player, 0]).iter().map(|row| *row as usize);
        let steps: Vec<_> = rows.filter_map(|row| Some((table.command[row], *times.get(row)?))).collect();
        if !steps.is_empty() {
            return StepTimes::new(steps);
        }
        let table = views::Columns::of(trace);
        let of_player = reader.views.iter().filter(|([whose, _], _)| *whose == player);
        let rows = of_player.flat_map(|(_, rows)| rows).map(|row| *row as usize);
        StepTimes::new(rows.filter_map(|row| Some((table.command[row], *table.drawn_at_us.get(row)?))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub(super) fn step_of(&self, number: u32) -> Option<u32> {
        self.numbers.binary_search(&number).ok().map(|step| step as u32)
    }

    pub(super) fn pack(&self, player: Option<u32>, columns: &mut PageColumns) -> PackedClock {
        PackedClock {
            player,
            number: columns.push_steady(self.numbers.iter().map(|number| i64::from(*number)), 1.0),
            at_us: columns.push_steady(self.times_us.iter().copied(), 1.0),
        }
    }
}
