//! What ran around a divergence: the usercmds of its tick, and the state before it.

use serde::Serialize;

use super::cell::Value;
use super::clock::{Clock, numbers};
use super::divergence::Divergence;
use super::place::{Named, Place, Row};
use crate::trace::{Table, Trace};

/// A usercmd that ran, or should have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// Whose.
    pub player: u32,
    /// Its number.
    pub command: u32,
    /// What the server did about it; `None` where the trace does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// The input in it, as the `frames` table has it.
    pub input: Vec<Named>,
}

/// The columns of `frames` that are the player's input.
pub(crate) const INPUT_COLUMNS: [&str; 7] = ["msec", "pitch", "yaw", "forwardmove", "sidemove", "upmove", "buttons"];

impl Divergence {
    /// Adds what other tables know: the usercmds and the state before.
    pub(crate) fn look_around(&mut self, traces: [&Trace; 2], clocks: [&Clock; 2]) {
        let [a, b] = traces;
        self.usercmds_a = ran(a, self);
        self.usercmds_b = ran(b, self);
        if self.table != "bodies" {
            self.last_state = last_state(a, clocks[0], &self.place);
        }
    }
}

/// The usercmd that a divergence is about; or those that ran in its tick, of the entity's player if it has one.
fn ran(trace: &Trace, divergence: &Divergence) -> Vec<Ran> {
    let place = &divergence.place;
    let executed = trace.table("executed");
    if let (Some(player), Some(command)) = (place.player, place.command) {
        let how = executed.and_then(|table| {
            let row = find(table, player, command)?;
            Some(Value::at(table.column("how")?, row)?.to_string())
        });
        return vec![Ran { player, command, how, input: input(trace, player, command) }];
    }
    let (Some(table), Some(tick)) = (executed, place.tick) else { return Vec::new() };
    let columns = [numbers(table, "player"), numbers(table, "command"), numbers(table, "tick")];
    let [players, commands, ticks] = columns;
    let rows = ticks.len().min(players.len()).min(commands.len());
    let in_tick = (0..rows).filter(|&row| ticks[row] == tick);
    let whose = place.entity.filter(|entity| players.contains(entity));
    let of_entity = in_tick.filter(|&row| whose.is_none_or(|entity| entity == players[row]));
    let ran = of_entity.map(|row| Ran {
        player: players[row],
        command: commands[row],
        how: table.column("how").and_then(|c| Value::at(c, row)).map(|v| v.to_string()),
        input: input(trace, players[row], commands[row]),
    });
    ran.collect()
}

fn input(trace: &Trace, player: u32, command: u32) -> Vec<Named> {
    let Some(frames) = trace.table("frames") else { return Vec::new() };
    let Some(row) = find(frames, player, command) else { return Vec::new() };
    let named = |name: &&str| Some(Named { name: (*name).to_owned(), value: Value::at(frames.column(name)?, row)? });
    INPUT_COLUMNS.iter().filter_map(named).collect()
}

fn find(table: &Table, player: u32, command: u32) -> Option<usize> {
    let keys = numbers(table, "player").iter().zip(numbers(table, "command"));
    keys.into_iter().position(|key| key == (&player, &command))
}

/// The last authoritative state of the entity that a place is about, before it.
fn last_state(trace: &Trace, clock: &Clock, place: &Place) -> Option<Row> {
    let bodies = trace.table("bodies")?;
    let entity = place.entity.or(place.player)?;
    let (ticks, entities) = (numbers(bodies, "tick"), numbers(bodies, "entity"));
    let before = |tick: u32| match (clock.of_tick(tick), place.at_us) {
        (Some(at), Some(limit)) => at < limit,
        _ => place.tick.is_some_and(|limit| tick < limit),
    };
    let rows = 0..bodies.rows().min(ticks.len()).min(entities.len());
    let row = rows.filter(|&row| entities[row] == entity && before(ticks[row])).max_by_key(|&row| ticks[row])?;
    let key = ["tick", "entity"].map(str::to_owned);
    let place = Place::of_row(bodies, row, &key, clock.of_tick(ticks[row]), clock);
    Some(Row::of(bodies, row, place, &key))
}
