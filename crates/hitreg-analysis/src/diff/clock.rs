//! The session time of rows without a time column: a body has the time of its tick, a view that of its client frame.

use std::borrow::Cow;

use super::join::OwnerMap;
use super::steps::StepStop;
use hitreg_log::trace::schema::{corrections, errors, frames, ticks};
use hitreg_log::trace::{ColumnData, NextRows, Table, TraceReadError, TraceSource, each_part};

/// The time of a row whose time is unknown. It sorts last.
pub(crate) const UNKNOWN: i64 = i64::MAX;

/// A time, if it is known.
pub(crate) fn known(at_us: i64) -> Option<i64> {
    (at_us != UNKNOWN).then_some(at_us)
}

/// The times of a trace's ticks. Ticks at equal distances form one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct TickTimes {
    /// Ascending by tick.
    runs: Vec<TickRun>,
}

/// Consecutive ticks at equal distances.
#[derive(Clone, Copy, Debug)]
struct TickRun {
    first: u32,
    at_us: i64,
    step_us: i64,
    more: u32,
}

impl TickRun {
    fn of(&self, ahead: u32) -> i64 {
        self.at_us.wrapping_add(self.step_us.wrapping_mul(ahead.into()))
    }
}

impl TickTimes {
    /// Reads the times of a trace's ticks. The clock is empty if the trace lacks the table or the columns.
    pub(crate) fn of(trace: &dyn TraceSource) -> Result<TickTimes, TraceReadError> {
        let columns = &["tick", "at_us"];
        let (mut clock, mut in_order) = (TickTimes::default(), true);
        each_part(trace, ticks::NAME, (columns, None), &mut |rows| {
            in_order &= clock.add(&ticks::Columns::read(rows));
            Ok(())
        })?;
        if in_order {
            return Ok(clock);
        }
        let mut all = Vec::new();
        each_part(trace, ticks::NAME, (columns, None), &mut |rows| {
            all.extend(times(&ticks::Columns::read(rows)));
            Ok(())
        })?;
        all.sort_unstable();
        let mut clock = TickTimes::default();
        all.into_iter().for_each(|(tick, at_us)| clock.push(tick, at_us));
        Ok(clock)
    }

    /// Adds ticks; false if they are not in ascending order.
    fn add(&mut self, ticks: &ticks::Columns<'_>) -> bool {
        let mut last = self.runs.last().map(|run| (run.first + run.more, run.of(run.more)));
        for next in times(ticks) {
            if last.is_some_and(|last| next < last) {
                return false;
            }
            self.push(next.0, next.1);
            last = Some(next);
        }
        true
    }

    fn push(&mut self, tick: u32, at_us: i64) {
        if let Some(run) = self.runs.last_mut()
            && run.first.checked_add(run.more).and_then(|last| last.checked_add(1)) == Some(tick)
        {
            if run.more == 0 {
                run.step_us = at_us.wrapping_sub(run.at_us);
            }
            if run.of(run.more + 1) == at_us {
                run.more += 1;
                return;
            }
        }
        self.runs.push(TickRun { first: tick, at_us, step_us: 0, more: 0 });
    }

    /// The time of a tick. For a tick with several times: the first.
    pub(crate) fn of_tick(&self, tick: u32) -> Option<i64> {
        let place = self.runs.partition_point(|run| run.first + run.more < tick);
        let run = self.runs.get(place)?;
        tick.checked_sub(run.first).map(|ahead| run.of(ahead))
    }

    /// The last tick at or before a time.
    pub(crate) fn tick_at(&self, at_us: i64) -> Option<u32> {
        let run = &self.runs[self.runs.partition_point(|run| run.at_us <= at_us).checked_sub(1)?];
        let since = at_us.saturating_sub(run.at_us);
        let ahead = if run.step_us > 0 { (since / run.step_us).min(run.more.into()) } else { run.more.into() };
        Some(run.first + ahead as u32)
    }
}

fn times<'t>(ticks: &ticks::Columns<'t>) -> impl Iterator<Item = (u32, i64)> + use<'t> {
    ticks.tick.iter().copied().zip(ticks.at_us.iter().copied())
}

/// The times of one trace's rows of one table.
pub(crate) struct RowTimes<'t> {
    clock: &'t TickTimes,
    /// The table with the times of usercmds, if the rows have only usercmd numbers.
    usercmd_rows: Option<NextRows<'t>>,
    /// For each player: its usercmds with their times, in ascending order once a request advanced to them.
    times_by_player: OwnerMap<Vec<(u32, i64)>>,
    last_read: OwnerMap<LastRead>,
    rows_read: u64,
    /// For each player: the last usercmd that was requested.
    last_requested: OwnerMap<u32>,
    /// Whether everything is read before the first request.
    reads_all_first: bool,
}

/// The last usercmd of a player that was read.
struct LastRead {
    command: u32,
    /// How many rows had been read up to it.
    rows: u64,
}

/// The player, the usercmd and the time of each row.
fn commands(table: &Table) -> impl Iterator<Item = (i64, u32, i64)> + use<'_> {
    let keys = table.u32s("player").iter().zip(table.u32s("command"));
    keys.zip(table.i64s("at_us")).map(|((player, command), at)| ((*player).into(), *command, *at))
}

/// A player without a row among this many rows is taken to be gone, until one of its rows appears.
const SILENT_ROWS_MAX: u64 = 1 << 17;

impl<'t> RowTimes<'t> {
    /// Prepares the times of a table. With `reads_all_first`, times may be in any order.
    pub(crate) fn of(
        trace: &'t dyn TraceSource,
        clock: &'t TickTimes,
        table: &Table,
        reads_all_first: bool,
    ) -> RowTimes<'t> {
        let is_number = |name: &str| table.column(name).is_some_and(|column| matches!(column.data, ColumnData::U32(_)));
        let says_time = table.column("at_us").is_some_and(|column| matches!(column.data, ColumnData::I64(_)));
        let by_command = !says_time && !is_number("tick") && is_number("player") && is_number("command");
        let times_from = if table.name == errors::NAME { corrections::NAME } else { frames::NAME };
        let mut times = RowTimes {
            clock,
            usercmd_rows: None,
            times_by_player: OwnerMap::default(),
            last_read: OwnerMap::default(),
            rows_read: 0,
            last_requested: OwnerMap::default(),
            reads_all_first,
        };
        match trace.in_memory().map(|trace| trace.table(times_from)) {
            _ if !by_command => {}
            Some(listed) => {
                for (player, command, at) in listed.into_iter().flat_map(commands) {
                    times.times_by_player.or_insert_with(player, Vec::new).push((command, at));
                }
                times.put_in_order();
            }
            None => times.usercmd_rows = Some(trace.rows(times_from, &["player", "command", "at_us"])),
        }
        times
    }

    /// Reads on until the times of these rows are known or cannot be found.
    pub(crate) fn advance(&mut self, rows: &Table) -> Result<(), StepStop> {
        if self.usercmd_rows.is_none() {
            return Ok(());
        }
        for (player, command) in rows.u32s("player").iter().zip(rows.u32s("command")) {
            let last = self.last_requested.or_insert_with((*player).into(), || *command);
            *last = (*last).max(*command);
        }
        while self.reads_all_first
            || self.last_requested.iter().any(|(player, command)| self.may_come(player, *command))
        {
            let Some(next) = &mut self.usercmd_rows else { break };
            let Some(table) = next()? else {
                self.usercmd_rows = None;
                break;
            };
            self.add(&table)?;
        }
        self.put_in_order();
        Ok(())
    }

    fn put_in_order(&mut self) {
        for known in self.times_by_player.values_mut().filter(|known| !known.is_sorted()) {
            known.sort_unstable();
        }
    }

    fn may_come(&self, player: i64, command: u32) -> bool {
        match self.last_read.get(player) {
            Some(last) => last.command <= command && self.rows_read - last.rows < SILENT_ROWS_MAX,
            None => self.rows_read < SILENT_ROWS_MAX,
        }
    }

    fn add(&mut self, table: &Table) -> Result<(), StepStop> {
        for (player, command, at) in commands(table) {
            self.rows_read += 1;
            let rows = self.rows_read;
            let last = self.last_read.or_insert_with(player, || LastRead { command, rows });
            // The usercmd may have been requested before, and answered as unknown.
            let is_late = command < last.command || rows - last.rows >= SILENT_ROWS_MAX;
            let was_requested = || self.last_requested.get(player).is_some_and(|requested| command <= *requested);
            if !self.reads_all_first && is_late && was_requested() {
                return Err(StepStop::OutOfOrder);
            }
            *last = LastRead { command: last.command.max(command), rows };
            self.times_by_player.or_insert_with(player, Vec::new).push((command, at));
        }
        Ok(())
    }

    /// Forgets usercmds that no later row can request.
    pub(crate) fn forget(&mut self, before: &OwnerMap<i64>) {
        for (player, next) in before.iter().filter(|_| !self.reads_all_first) {
            if let Some(known) = self.times_by_player.get_mut(player) {
                known.drain(..known.partition_point(|(command, _)| i64::from(*command) < *next));
            }
        }
    }

    /// The session time of each row of a table, or [`UNKNOWN`].
    pub(crate) fn of_rows<'r>(&self, table: &'r Table) -> Cow<'r, [i64]> {
        let rows = table.rows();
        let times = table.i64s("at_us");
        if times.len() >= rows && !times.is_empty() {
            return Cow::Borrowed(&times[..rows]);
        }
        let ticks = table.u32s("tick");
        if !ticks.is_empty() {
            return of_runs(&ticks[..rows], &ticks[..rows], |tick, _| self.clock.of_tick(*tick));
        }
        let (players, commands) = (table.u32s("player"), table.u32s("command"));
        if players.len() < rows || commands.len() < rows {
            return vec![UNKNOWN; rows].into();
        }
        // The index of the usercmd after each player's last one.
        let mut next: OwnerMap<usize> = OwnerMap::default();
        of_runs(&commands[..rows], &players[..rows], |command, player| {
            let known = self.times_by_player.get((*player).into())?;
            let next = next.or_insert_with((*player).into(), || 0);
            if known.get(*next).is_none_or(|(known, _)| known != command) {
                *next = known.partition_point(|(known, _)| known < command);
            }
            let at = known.get(*next).filter(|(known, _)| known == command).map(|(_, at)| *at);
            *next += usize::from(at.is_some());
            at
        })
    }
}

/// The time of each row by two numbers. Rows with equal numbers follow each other.
fn of_runs<'r>(a: &[u32], b: &[u32], mut time: impl FnMut(&u32, &u32) -> Option<i64>) -> Cow<'r, [i64]> {
    let mut times = Vec::with_capacity(a.len());
    let mut rest = b;
    for run in a.chunk_by(|x, y| x == y) {
        let (of_run, more) = rest.split_at(run.len());
        rest = more;
        for part in of_run.chunk_by(|x, y| x == y) {
            times.resize(times.len() + part.len(), time(&run[0], &part[0]).unwrap_or(UNKNOWN));
        }
    }
    times.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::schema::views;
    use hitreg_log::trace::{Column, Trace};

    fn table(name: &str, rows: &[(u32, u32, i64)], with_times: bool) -> Table {
        let column = |name: &str, of: fn(&(u32, u32, i64)) -> u32| {
            Column::new(name, ColumnData::U32(rows.iter().map(of).collect()))
        };
        let mut columns = vec![column("player", |row| row.0), column("command", |row| row.1)];
        let times = || Column::new("at_us", ColumnData::I64(rows.iter().map(|row| row.2).collect()));
        columns.extend(with_times.then(times));
        Table::new(name, columns)
    }

    /// Frames out of order, and a usercmd with two times, of which the earlier counts.
    #[test]
    fn rows_have_the_times_of_usercmds_in_any_order() {
        let made = [(1, 9, 90), (0, 3, 30), (0, 1, 10), (1, 4, 44), (0, 2, 20), (1, 4, 40)];
        let trace = Trace { tables: vec![table(frames::NAME, &made, true)], ..Trace::default() };
        let drawn = table(views::NAME, &[(0, 1, 0), (0, 2, 0), (1, 4, 0), (0, 3, 0), (0, 7, 0), (1, 9, 0)], false);
        let clock = TickTimes::default();
        let times = RowTimes::of(&trace, &clock, &drawn, true);
        assert_eq!(*times.of_rows(&drawn), [10, 20, 40, 30, UNKNOWN, 90]);
    }
}
