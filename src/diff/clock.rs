//! The session time of rows that do not carry one: a body has its tick's, a view its client frame's.

use crate::trace::schema::{corrections, errors, frames, ticks};
use crate::trace::{Table, Trace};

/// The times of a trace's ticks, client frames and acks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// (tick, time), ascending.
    ticks: Vec<(u32, i64)>,
    /// ((player, usercmd), time), ascending.
    frames: Vec<((u32, u32), i64)>,
    /// ((player, usercmd), time of the ack), ascending.
    acks: Vec<((u32, u32), i64)>,
}

impl Clock {
    /// What a trace says about its times; nothing where it lacks the tables or columns.
    pub(crate) fn of(trace: &Trace) -> Clock {
        let ticks = ticks::Columns::of(trace);
        let mut ticks: Vec<(u32, i64)> = ticks.tick.iter().copied().zip(ticks.at_us.iter().copied()).collect();
        ticks.sort_unstable();
        let (frames, acks) = (frames::Columns::of(trace), corrections::Columns::of(trace));
        Clock {
            ticks,
            frames: commands(frames.player, frames.command, frames.at_us),
            acks: commands(acks.player, acks.command, acks.at_us),
        }
    }

    /// The session time of each row of a table; `None` where it is unknown.
    pub(crate) fn of_rows(&self, table: &Table) -> Vec<Option<i64>> {
        let rows = table.rows();
        let times = table.i64s("at_us");
        if times.len() >= rows && !times.is_empty() {
            return times[..rows].iter().map(|at| Some(*at)).collect();
        }
        let ticks = table.u32s("tick");
        if !ticks.is_empty() {
            return ticks.iter().take(rows).map(|tick| self.of_tick(*tick)).collect();
        }
        let (players, commands) = (table.u32s("player"), table.u32s("command"));
        if players.len() < rows || commands.len() < rows {
            return vec![None; rows];
        }
        let known = if table.name == errors::NAME { &self.acks } else { &self.frames };
        let mut last = None;
        let time = |key| match last {
            Some((last_key, at)) if last_key == key => at,
            _ => {
                let at = known.binary_search_by_key(&key, |(k, _)| *k).ok().map(|i| known[i].1);
                last = Some((key, at));
                at
            }
        };
        players.iter().copied().zip(commands.iter().copied()).take(rows).map(time).collect()
    }

    /// The time of a tick.
    pub(crate) fn of_tick(&self, tick: u32) -> Option<i64> {
        let first = self.ticks.first()?.0;
        let guess = tick.checked_sub(first).and_then(|ahead| self.ticks.get(ahead as usize));
        match guess {
            Some((found, at)) if *found == tick => Some(*at),
            _ => self.ticks.binary_search_by_key(&tick, |(t, _)| *t).ok().map(|i| self.ticks[i].1),
        }
    }

    /// The last tick at or before a time.
    pub(crate) fn tick_at(&self, at_us: i64) -> Option<u32> {
        let after = self.ticks.partition_point(|(_, at)| *at <= at_us);
        after.checked_sub(1).map(|index| self.ticks[index].0)
    }
}

fn commands(players: &[u32], commands: &[u32], times: &[i64]) -> Vec<((u32, u32), i64)> {
    let keys = players.iter().copied().zip(commands.iter().copied());
    let mut commands: Vec<_> = keys.zip(times.iter().copied()).collect();
    commands.sort_unstable();
    commands
}
