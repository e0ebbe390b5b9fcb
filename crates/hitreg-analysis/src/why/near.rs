//! Reads the rows of a long trace that explain one shot, and leaves the others on disk.

use std::borrow::Cow;

use super::ShotName;
use hitreg_log::trace::schema::{bodies, executed, frames, shots, ticks, views};
use hitreg_log::trace::{ColumnSpan, Table, Trace, TraceSource, select_rows};

/// Views of the target are read for this long before and after the rewound time, in microseconds. The explanation needs
/// no views further away.
const AROUND_US: i64 = 10_000_000;

/// The rows of a trace that explain a shot. Returns the whole trace if it is already in memory.
///
/// # Errors
/// Fails with a message if the rows cannot be read.
pub fn near(trace: &dyn TraceSource, shot: ShotName) -> Result<Cow<'_, Trace>, String> {
    if let Some(trace) = trace.in_memory() {
        return Ok(Cow::Borrowed(trace));
    }
    let is_it =
        |whose: &[u32], commands: &[u32]| rows(whose.iter().zip(commands), |of| of == (&shot.shooter, &shot.command));
    let of_shot = select_rows(trace, shots::NAME, ALL, &|table: &Table| {
        let table = shots::Columns::read(table);
        is_it(table.shooter, table.command)
    })?;
    let of_frame = select_rows(trace, frames::NAME, ALL, &|table| {
        let table = frames::Columns::read(table);
        is_it(table.player, table.command)
    })?;
    let found = shots::Columns::read(&of_shot);
    let judged_us = || found.at_us.iter().zip(found.rewind_us).map(|(at, rewind)| at.saturating_sub(*rewind));
    let made_us = frames::Columns::read(&of_frame).at_us.iter().copied();
    let (judged, shown) = (around(judged_us()), around(judged_us().chain(made_us)));
    let shown = shown.map(|(first, last)| ColumnSpan { column: "drawn_at_us", first, last });
    // The tick of the shot and the tick before it.
    let ticks = around_ticks(found.tick);
    let is_its_tick =
        |tick: &u32| found.tick.iter().any(|of_shot| of_shot == tick || of_shot.checked_sub(1) == Some(*tick));
    let mut tables = vec![
        select_rows(trace, ticks::NAME, ALL, &|table| rows(ticks::Columns::read(table).tick.iter(), is_its_tick))?,
        select_rows(trace, bodies::NAME, (&[], ticks), &|table| {
            rows(bodies::Columns::read(table).tick.iter(), is_its_tick)
        })?,
        select_rows(trace, executed::NAME, ALL, &|table| {
            let table = executed::Columns::read(table);
            is_it(table.player, table.command)
        })?,
        of_frame,
        select_rows(trace, views::NAME, (&[], shown), &|table| {
            let table = views::Columns::read(table);
            let is_near = |row| match (judged, table.drawn_at_us.get(row)) {
                (Some((from, to)), Some(at)) => (from..=to).contains(at),
                _ => false,
            };
            let of_row = table.player.iter().zip(table.command).enumerate();
            rows(of_row, |(row, (player, command))| {
                *player == shot.shooter && (*command == shot.command || is_near(row))
            })
        })?,
    ];
    tables.push(of_shot);
    Ok(Cow::Owned(Trace { header: trace.header().clone(), tables }))
}

/// All columns of all rows.
const ALL: (&[&str], Option<ColumnSpan<'_>>) = (&[], None);

/// The span of these times, and [`AROUND_US`] before and after it.
fn around(times: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    let spans = times.map(|at| (at.saturating_sub(AROUND_US), at.saturating_add(AROUND_US)));
    spans.reduce(|(from, to), (first, last)| (from.min(first), to.max(last)))
}

/// The ticks from the one before these to the last of them.
fn around_ticks(ticks: &[u32]) -> Option<ColumnSpan<'static>> {
    let (first, last) = (ticks.iter().min()?, ticks.iter().max()?);
    Some(ColumnSpan { column: "tick", first: i64::from(*first) - 1, last: i64::from(*last) })
}

/// The indices of the rows that `keep` accepts.
fn rows<T>(all: impl Iterator<Item = T>, keep: impl Fn(T) -> bool) -> Vec<u32> {
    (0..).zip(all).filter_map(|(row, of)| keep(of).then_some(row)).collect()
}
