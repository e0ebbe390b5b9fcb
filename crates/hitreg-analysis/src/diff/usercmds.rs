//! The context of a divergence: the usercmds of its tick, and the state before it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cell::CellValue;
use super::clock::TickTimes;
use super::divergence::Divergence;
use super::place::{NamedValue, RowDump, RowPlace};
use hitreg_log::trace::schema::{ColumnRole, bodies, executed, frames, own_input};
use hitreg_log::trace::{Table, Trace, TraceSource};

/// A usercmd that ran or should have run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UsercmdRow {
    /// The player.
    pub player: u32,
    /// The usercmd's number.
    pub command: u32,
    /// What the server did with it; `None` if the trace does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Its input, from the `frames` table.
    pub input: Vec<NamedValue>,
}

impl Divergence {
    /// Adds the usercmds and the state before, from other tables.
    pub(crate) fn look_around(&mut self, traces: [&Trace; 2], clocks: [&TickTimes; 2]) {
        let [a, b] = traces;
        let inputs = inputs(traces);
        self.usercmds_a = ran(a, self, &inputs);
        self.usercmds_b = ran(b, self, &inputs);
        if self.table != bodies::NAME {
            self.last_state = last_state(a, clocks[0], &self.place);
        }
    }
}

/// Reads the part of a trace that [`Divergence::look_around`] needs, if the trace is not in memory.
pub(crate) fn around(trace: &dyn TraceSource, found: &Divergence, clock: &TickTimes) -> Result<Trace, String> {
    let place = &found.place;
    let mut around = Trace { header: trace.header().clone(), tables: Vec::new() };
    let mut owner_ran = false;
    around.tables.extend(pick(trace, executed::NAME, &mut |rows| {
        let executed = executed::Columns::read(rows);
        let mut is_of = |row: usize| match (place.player, place.command) {
            (Some(player), Some(command)) => {
                executed.player.get(row) == Some(&player) && executed.command.get(row) == Some(&command)
            }
            // One more row shows whether the entity is a player.
            _ => {
                let first_of_entity =
                    !owner_ran && place.entity.is_some_and(|entity| executed.player.get(row) == Some(&entity));
                owner_ran |= first_of_entity;
                first_of_entity || place.tick.is_some_and(|tick| executed.tick.get(row) == Some(&tick))
            }
        };
        (0..rows.rows() as u32).filter(|row| is_of(*row as usize)).collect()
    })?);
    let ran = executed::Columns::of(&around);
    let mut wanted: BTreeSet<(u32, u32)> = ran.player.iter().copied().zip(ran.command.iter().copied()).collect();
    wanted.extend(place.player.zip(place.command));
    around.tables.extend(pick(trace, frames::NAME, &mut |rows| {
        let frames = frames::Columns::read(rows);
        let keys = frames.player.iter().copied().zip(frames.command.iter().copied());
        (0..).zip(keys).filter(|(_, key)| wanted.contains(key)).map(|(row, _)| row).collect()
    })?);
    let entity = place.entity.or(place.player);
    let mut last = None;
    around.tables.extend(pick(trace, bodies::NAME, &mut |rows| {
        let bodies = bodies::Columns::read(rows);
        let of = (0..)
            .zip(bodies.tick.iter().zip(bodies.entity))
            .filter(|(_, (tick, of))| Some(**of) == entity && is_before(**tick, clock, place));
        let row = of.max_by_key(|(_, (tick, _))| **tick).filter(|(_, (tick, _))| last <= Some(**tick));
        last = row.map(|(_, (tick, _))| *tick).or(last);
        row.map(|(row, _)| row).into_iter().collect()
    })?);
    Ok(around)
}

/// Some rows of a table, if the trace has it.
fn pick(
    trace: &dyn TraceSource,
    name: &str,
    which: &mut dyn FnMut(&Table) -> Vec<u32>,
) -> Result<Option<Table>, String> {
    let tables = trace.tables();
    let Some((shape, _)) = tables.iter().find(|(table, _)| table.name == name) else { return Ok(None) };
    let (mut picked, mut rows) = (shape.without_rows(), trace.rows(name, &[]));
    while let Some(more) = rows()? {
        let more = shape.filled(more);
        let which = which(&more);
        if !which.is_empty() {
            picked.append(more.select(&which))?;
        }
    }
    Ok(Some(picked))
}

/// The usercmd that a divergence concerns. If it concerns none: the usercmds that ran in its tick, those of the entity
/// first.
fn ran(trace: &Trace, divergence: &Divergence, inputs: &[&str]) -> Vec<UsercmdRow> {
    let place = &divergence.place;
    let executed = executed::Columns::of(trace);
    let usercmd = |player, command, row: Option<usize>| {
        let how = row.map(|row| executed.how.get(row)).filter(|how| !how.is_empty()).map(str::to_owned);
        UsercmdRow { player, command, how, input: input(trace, player, command, inputs) }
    };
    if let (Some(player), Some(command)) = (place.player, place.command) {
        return vec![usercmd(player, command, find(executed.player, executed.command, (player, command)))];
    }
    let Some(tick) = place.tick else { return Vec::new() };
    let rows = executed.tick.len().min(executed.player.len()).min(executed.command.len());
    let mut in_tick: Vec<usize> = (0..rows).filter(|&row| executed.tick[row] == tick).collect();
    in_tick.sort_by_key(|&row| Some(executed.player[row]) != place.entity);
    in_tick.into_iter().map(|row| usercmd(executed.player[row], executed.command[row], Some(row))).collect()
}

impl Divergence {
    /// The usercmds in each run of the divergence's own player; all usercmds of the tick if the entity is no player.
    pub(crate) fn own_usercmds(&self, traces: [&Trace; 2]) -> [Vec<&UsercmdRow>; 2] {
        let of_trace = |trace: &Trace| executed::Columns::of(trace).player.iter().copied().collect::<BTreeSet<u32>>();
        let players = traces.map(of_trace);
        let whose = self.place.entity.filter(|entity| players.iter().any(|known| known.contains(entity)));
        [&self.usercmds_a, &self.usercmds_b]
            .map(|list| list.iter().filter(|row| whose.is_none_or(|entity| entity == row.player)).collect())
    }
}

/// The input columns that both traces have. A column that an older build does not write is not a different input.
fn inputs<'t>(traces: [&'t Trace; 2]) -> Vec<&'t str> {
    let lacks = |trace: &Trace, name| trace.table(frames::NAME).is_some_and(|frames| frames.column(name).is_none());
    let own = traces[0].table(frames::NAME).map(|frames| own_input(frames).map(|column| column.name.as_str()));
    let fixed = frames::SCHEMA.names_of(ColumnRole::Input).map(|name| -> &'t str { name });
    let names = fixed.chain(own.into_iter().flatten());
    names.filter(|name| !traces.iter().any(|trace| lacks(trace, name))).collect()
}

fn input(trace: &Trace, player: u32, command: u32, inputs: &[&str]) -> Vec<NamedValue> {
    let Some(table) = trace.table(frames::NAME) else { return Vec::new() };
    let frames = frames::Columns::read(table);
    let Some(row) = find(frames.player, frames.command, (player, command)) else { return Vec::new() };
    let named =
        |name: &&str| Some(NamedValue { name: (*name).to_owned(), value: CellValue::at(table.column(name)?, row)? });
    inputs.iter().filter_map(named).collect()
}

fn find(players: &[u32], commands: &[u32], (player, command): (u32, u32)) -> Option<usize> {
    players.iter().zip(commands).position(|key| key == (&player, &command))
}

/// The last authoritative state before a place, of the place's entity.
fn last_state(trace: &Trace, clock: &TickTimes, place: &RowPlace) -> Option<RowDump> {
    let bodies = trace.table(bodies::NAME)?;
    let entity = place.entity.or(place.player)?;
    let (ticks, entities) = (bodies.u32s("tick"), bodies.u32s("entity"));
    let before = |tick: u32| is_before(tick, clock, place);
    let rows = 0..bodies.rows().min(ticks.len()).min(entities.len());
    let row = rows.filter(|&row| entities[row] == entity && before(ticks[row])).max_by_key(|&row| ticks[row])?;
    let key = ["tick", "entity"].map(str::to_owned);
    let place = RowPlace::of_row(bodies, row, &key, clock.of_tick(ticks[row]), clock);
    Some(RowDump::of(bodies, row, place, &key))
}

fn is_before(tick: u32, clock: &TickTimes, place: &RowPlace) -> bool {
    match (clock.of_tick(tick), place.at_us) {
        (Some(at), Some(limit)) => at < limit,
        _ => place.tick.is_some_and(|limit| tick < limit),
    }
}
