//! Reads the rows of a long trace that explain one shot, and leaves the others on disk.

use std::borrow::Cow;

use super::ShotName;
use hitreg_log::trace::schema::{bodies, executed, frames, shots, ticks, views};
use hitreg_log::trace::{Table, Trace, TraceSource, select_rows};

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
    let of_shot = select_rows(trace, shots::NAME, &[], &|table: &Table| {
        let table = shots::Columns::read(table);
        is_it(table.shooter, table.command)
    })?;
    let found = shots::Columns::read(&of_shot);
    let judged_us = found.at_us.iter().zip(found.rewind_us).map(|(at, rewind)| at.saturating_sub(*rewind));
    let span = judged_us.fold(None, |span: Option<(i64, i64)>, at| {
        let (first, last) = span.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    });
    let span = span.map(|(first, last)| first.saturating_sub(AROUND_US)..=last.saturating_add(AROUND_US));
    let is_around =
        |drawn_at_us: Option<&i64>| span.as_ref().zip(drawn_at_us).is_some_and(|(span, at)| span.contains(at));
    // The tick of the shot and the tick before it.
    let is_its_tick =
        |tick: &u32| found.tick.iter().any(|of_shot| of_shot == tick || of_shot.checked_sub(1) == Some(*tick));
    let mut tables = vec![
        select_rows(trace, ticks::NAME, &[], &|table| rows(ticks::Columns::read(table).tick.iter(), is_its_tick))?,
        select_rows(trace, bodies::NAME, &[], &|table| rows(bodies::Columns::read(table).tick.iter(), is_its_tick))?,
        select_rows(trace, executed::NAME, &[], &|table| {
            let table = executed::Columns::read(table);
            is_it(table.player, table.command)
        })?,
        select_rows(trace, frames::NAME, &[], &|table| {
            let table = frames::Columns::read(table);
            is_it(table.player, table.command)
        })?,
        select_rows(trace, views::NAME, &[], &|table| {
            let table = views::Columns::read(table);
            let of_row = table.player.iter().zip(table.command).enumerate();
            rows(of_row, |(row, (player, command))| {
                *player == shot.shooter && (*command == shot.command || is_around(table.drawn_at_us.get(row)))
            })
        })?,
    ];
    tables.push(of_shot);
    Ok(Cow::Owned(Trace { header: trace.header().clone(), tables }))
}

/// The indices of the rows that `keep` accepts.
fn rows<T>(all: impl Iterator<Item = T>, keep: impl Fn(T) -> bool) -> Vec<u32> {
    (0..).zip(all).filter_map(|(row, of)| keep(of).then_some(row)).collect()
}
