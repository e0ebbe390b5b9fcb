//! The first place where a table differs, with its context: the usercmds of its tick, and the state before it.

use std::borrow::Cow;

use serde::Serialize;

use super::ChangedSetting;
use super::cell::{
    CellComparison, CellPair, CellValue, DifferenceClass, NumberComparison, double_ulps_apart, ulps_apart,
};
use super::clock::TickTimes;
use super::columns::TraceComparison;
use super::pairing::{NamedValue, Pairing, RowDump, RowPlace, RowSpot};
use super::scan::{DifferenceRun, ScanResult};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{ColumnRole, bodies, errors, executed, frames, is_bodies, own_input, packets, ticks};
use hitreg_log::trace::{ColumnSpan, Table, Trace, TraceReadError, TraceSource, body_tables, each_part};

/// The first place where two traces, or two tables, differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Divergence {
    /// The name of the table.
    pub table: String,
    /// The place in the session.
    pub place: RowPlace,
    /// Whether a value differs, a row is missing or the times differ.
    pub what: DivergenceKind,
    /// The column; if several differ in the row, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The value in A.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<CellValue>,
    /// The value in B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<CellValue>,
    /// The class of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<DifferenceClass>,
    /// The distance between the values, in the column's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// How many representable floats lie between the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulps: Option<u64>,
    /// The other columns that differ in the same row.
    pub others: Vec<ColumnValues>,
    /// The last earlier row of the same entity or player in which A and B agree.
    pub last_agreeing: Option<RowDump>,
    /// The last earlier authoritative state of the divergence's entity, if it is a row of another table.
    pub last_state: Option<RowDump>,
    /// In A: the usercmds that ran in the divergence's tick, or the one usercmd that it concerns. Those of its entity
    /// come first; then the order is that of the times at which clients made them, and of the players.
    pub usercmds_a: Vec<UsercmdRow>,
    /// The same for B.
    pub usercmds_b: Vec<UsercmdRow>,
}

/// What differs at a divergence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// A value differs.
    #[default]
    Value,
    /// B lacks the row.
    OnlyInA,
    /// A lacks the row.
    OnlyInB,
    /// The rows have different times; nothing else in them is compared.
    TimesDiffer,
}

/// A column's values in both traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnValues {
    /// The column.
    pub field: String,
    /// The value in A.
    pub a: CellValue,
    /// The value in B.
    pub b: CellValue,
}

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

/// A difference that repeats a changed setting, and is no effect of it.
pub(super) struct SettingEcho {
    /// The settings that it repeats. A setting may be one player's own.
    settings: &'static [&'static str],
    /// The table; `None` for every table with the column.
    table: Option<&'static str>,
    column: &'static str,
    what: DivergenceKind,
    /// Columns that follow from it in the same row.
    followers: &'static [&'static str],
    /// What carries the setting, as the beginning of a note.
    carrier: &'static str,
}

const ECHOES: &[SettingEcho] = &[
    SettingEcho {
        settings: &["interpolation.lerp_ms"],
        table: None,
        column: "lerp_msec",
        what: DivergenceKind::Value,
        followers: &[],
        carrier: "each usercmd carries the changed setting",
    },
    SettingEcho {
        settings: &["client.redundancy", "client.adaptive_redundancy"],
        table: Some(packets::NAME),
        column: "usercmds",
        what: DivergenceKind::Value,
        followers: &["bytes"],
        carrier: "each packet follows the changed setting",
    },
    SettingEcho {
        settings: &["server.tick_hz"],
        table: Some(ticks::NAME),
        column: "at_us",
        what: DivergenceKind::TimesDiffer,
        followers: &[],
        carrier: "each tick follows the changed setting",
    },
];

impl Divergence {
    /// The distance between two whole numbers, in the column's unit, with all its digits.
    pub(crate) fn whole_error(&self) -> Option<u128> {
        Some(self.a.as_ref()?.whole()?.abs_diff(self.b.as_ref()?.whole()?))
    }

    /// Creates the divergence at a spot of one table. The caller adds the last agreeing row, and
    /// [`Divergence::look_around`] adds what other tables know.
    pub(crate) fn of(
        pairing: &Pairing<'_>,
        compared: &TraceComparison<'_>,
        scan: &ScanResult,
        spot: &RowSpot,
    ) -> Divergence {
        let mut found = Divergence {
            table: pairing.a.name.clone(),
            place: RowPlace::of(pairing, compared.clocks, spot),
            ..Divergence::default()
        };
        match (spot.a, spot.b) {
            (Some(_), None) => found.what = DivergenceKind::OnlyInA,
            (None, _) => found.what = DivergenceKind::OnlyInB,
            (Some(i), Some(j)) if !pairing.same_time(i as usize, j as usize) => {
                found.what = DivergenceKind::TimesDiffer;
                found.set(values(pairing, "at_us", i as usize, j as usize));
            }
            (Some(i), Some(j)) => {
                let is_first = |run: &DifferenceRun<usize>| pairing.spot(run.first) == *spot;
                let differing =
                    scan.columns.iter().filter(|(_, runs)| runs.iter().filter(|run| run.rows > 0).any(is_first));
                let mut all = differing.filter_map(|(name, _)| values(pairing, name, i as usize, j as usize));
                found.set(all.next());
                found.others = all.collect();
            }
        }
        if let (Some(i), Some(j), Some(field)) = (spot.a, spot.b, &found.field) {
            found.measure(pairing, compared, &field.clone(), (i as usize, j as usize));
        }
        found
    }

    /// The changed setting that this divergence only repeats: nothing else differs in its row.
    pub(super) fn echo_of(&self, changed: &[ChangedSetting]) -> Option<&'static SettingEcho> {
        let is_changed = |of: &&str| changed.iter().any(|setting| setting.key.ends_with(of));
        ECHOES.iter().find(|echo| {
            self.what == echo.what
                && self.field.as_deref() == Some(echo.column)
                && echo.table.is_none_or(|table| self.table == table)
                && self.others.iter().all(|other| echo.followers.contains(&other.field.as_str()))
                && echo.settings.iter().any(&is_changed)
        })
    }

    /// Says what carries the changed setting that this divergence repeats; `None` if it is no echo.
    pub(super) fn echo_note(&self, changed: &[ChangedSetting]) -> Option<String> {
        let (echo, a, b) = (self.echo_of(changed)?, self.a.as_ref()?, self.b.as_ref()?);
        let number = |value: &CellValue| match value {
            CellValue::Integer(us) if echo.what == DivergenceKind::TimesDiffer => format!("{} ms", *us as f64 / 1e3),
            other => other.to_string(),
        };
        Some(format!("{}: {} is {} in A, {} in B", echo.carrier, echo.column, number(a), number(b)))
    }

    fn set(&mut self, values: Option<ColumnValues>) {
        if let Some(ColumnValues { field, a, b }) = values {
            (self.field, self.a, self.b) = (Some(field), Some(a), Some(b));
        }
    }

    fn measure(&mut self, pairing: &Pairing<'_>, compared: &TraceComparison<'_>, field: &str, (i, j): (usize, usize)) {
        let columns = pairing.a.column(field).zip(pairing.b.column(field));
        let cells = columns.and_then(|(a, b)| CellPair::of(&a.data, &b.data));
        // In the table of errors, each row holds the values of the field that it names.
        let of_field = pairing.a.column("field").filter(|_| pairing.a.name == errors::NAME);
        let name = of_field.and_then(|column| CellValue::at(column, i)).map(|name| name.to_string());
        let measure = match (&name, pairing.a.column(field)) {
            (Some(name), _) => compared.of_field(name),
            (None, Some(column)) => compared.of_column(column),
            (None, None) => NumberComparison::default(),
        };
        // The error is reported even within tolerance.
        let measure = NumberComparison { within: None, ..measure };
        if let Some(CellComparison::Differs { class, error }) = cells.map(|cells| cells.compare(i, j, measure)) {
            self.class = Some(class);
            self.error = error;
        }
        self.ulps = match (&self.a, &self.b) {
            (Some(CellValue::Float(a)), Some(CellValue::Float(b))) if a.is_finite() && b.is_finite() => {
                Some(ulps_apart(*a, *b))
            }
            (Some(CellValue::Double(a)), Some(CellValue::Double(b))) if a.is_finite() && b.is_finite() => {
                Some(double_ulps_apart(*a, *b))
            }
            _ => self.ulps,
        };
    }

    /// Adds the usercmds and the state before, from other tables.
    pub(super) fn look_around(
        &mut self,
        [a, b]: [&dyn TraceSource; 2],
        clocks: [&TickTimes; 2],
    ) -> Result<(), TraceReadError> {
        let rows = [rows_around(a, self, clocks[0])?, rows_around(b, self, clocks[1])?];
        let traces @ [a, b] = [&*rows[0], &*rows[1]];
        let inputs = inputs(traces);
        self.usercmds_a = ran(a, self, &inputs);
        self.usercmds_b = ran(b, self, &inputs);
        let listed = [&self.usercmds_a, &self.usercmds_b].into_iter().flatten();
        let made = made(traces, &listed.map(|usercmd| (usercmd.player, usercmd.command)).collect());
        let entity = self.place.entity;
        for usercmds in [&mut self.usercmds_a, &mut self.usercmds_b] {
            usercmds.sort_by_key(|usercmd| {
                let name = (usercmd.player, usercmd.command);
                (Some(usercmd.player) != entity, made.get(&name), name)
            });
        }
        if self.table != bodies::NAME {
            self.last_state = last_state(a, clocks[0], &self.place);
        }
        Ok(())
    }

    /// The usercmds in each run of the divergence's own player; all usercmds of the tick if the entity is no player.
    pub(crate) fn own_usercmds(&self, traces: [&Trace; 2]) -> [Vec<&UsercmdRow>; 2] {
        let of_trace = |trace: &Trace| executed::Columns::of(trace).player.iter().copied().collect::<SortedSet<u32>>();
        let players = traces.map(of_trace);
        let whose = self.place.entity.filter(|entity| players.iter().any(|known| known.contains(entity)));
        [&self.usercmds_a, &self.usercmds_b]
            .map(|list| list.iter().filter(|row| whose.is_none_or(|entity| entity == row.player)).collect())
    }
}

fn values(pairing: &Pairing<'_>, name: &str, i: usize, j: usize) -> Option<ColumnValues> {
    let a = CellValue::at(pairing.a.column(name)?, i)?;
    let b = CellValue::at(pairing.b.column(name)?, j)?;
    Some(ColumnValues { field: name.to_owned(), a, b })
}

/// A row in which A and B agree, as a report shows it.
pub(crate) fn agreeing(pairing: &Pairing<'_>, clocks: [&TickTimes; 2], spot: &RowSpot) -> RowDump {
    let (table, row) = match spot.row() {
        Some((side, row)) => (pairing.table(side), row),
        None => (pairing.a, pairing.a.rows()),
    };
    RowDump::of(table, row, RowPlace::of(pairing, clocks, spot), &pairing.key.columns)
}

/// The part of a trace that [`Divergence::look_around`] needs; the whole trace if it is in memory. Reads columns of keys
/// first, and then only the parts of the trace that have the rows.
fn rows_around<'t>(
    trace: &'t dyn TraceSource,
    found: &Divergence,
    clock: &TickTimes,
) -> Result<Cow<'t, Trace>, TraceReadError> {
    if let Some(trace) = trace.in_memory() {
        return Ok(Cow::Borrowed(trace));
    }
    let place = &found.place;
    let mut rows = Trace { header: trace.header().clone(), tables: Vec::new() };
    let mut wanted: SortedSet<(u32, u32)> = place.player.zip(place.command).into_iter().collect();
    if wanted.is_empty() {
        wanted.extend(ran_in(trace, place)?);
    }
    rows.tables.extend(pick(trace, executed::NAME, ["player", "command"], &wanted)?);
    rows.tables.extend(pick(trace, frames::NAME, ["player", "command"], &wanted)?);
    let entity = place.entity.or(place.player);
    let last_tick = place.at_us.and_then(|at| clock.tick_at(at)).max(place.tick);
    let until = last_tick.map(|last| ColumnSpan { column: "tick", first: 0, last: last.into() });
    for table in body_tables(trace) {
        let mut last = None;
        each_part(trace, &table, (&["tick", "entity"], until), &mut |rows| {
            let bodies = bodies::Columns::read(rows);
            let of_entity = bodies.tick.iter().zip(bodies.entity).filter(|(_, of)| Some(**of) == entity);
            let before =
                of_entity.map(|(tick, _)| *tick).filter(|tick| Some(*tick) > last && is_before(*tick, clock, place));
            last = before.max().or(last);
            Ok(())
        })?;
        let last = last.zip(entity).into_iter().collect();
        rows.tables.extend(pick(trace, &table, ["tick", "entity"], &last)?);
    }
    Ok(Cow::Owned(rows))
}

/// The usercmds that ran in the tick of a place, by player and number. One more shows whether the entity is a player.
fn ran_in(trace: &dyn TraceSource, place: &RowPlace) -> Result<SortedSet<(u32, u32)>, TraceReadError> {
    let columns = &["player", "command", "tick"];
    let mut ran = SortedSet::new();
    let keys = |rows: &Table| -> Vec<(u32, u32)> {
        rows.u32s("player").iter().copied().zip(rows.u32s("command").iter().copied()).collect()
    };
    if let Some(tick) = place.tick {
        let span = ColumnSpan { column: "tick", first: tick.into(), last: tick.into() };
        each_part(trace, executed::NAME, (columns, Some(span)), &mut |rows| {
            let ticks = rows.u32s("tick").iter();
            ran.extend(keys(rows).into_iter().zip(ticks).filter(|(_, of)| **of == tick).map(|(key, _)| key));
            Ok(())
        })?;
    }
    let mut rows = trace.rows(executed::NAME, columns);
    while let Some(entity) = place.entity
        && let Some(rows) = rows()?
    {
        if let Some(of_entity) = keys(&rows).into_iter().find(|(player, _)| *player == entity) {
            ran.insert(of_entity);
            break;
        }
    }
    Ok(ran)
}

/// The rows of a table whose two key columns have these values, if the trace has the table. Of a part that repeats keys
/// of earlier parts, rows may be missing.
pub(crate) fn pick(
    trace: &dyn TraceSource,
    name: &str,
    key: [&str; 2],
    wanted: &SortedSet<(u32, u32)>,
) -> Result<Option<Table>, TraceReadError> {
    let tables = trace.tables();
    let Some((shape, _)) = tables.iter().find(|(table, _)| table.name == name) else { return Ok(None) };
    let keys = |rows: &Table| -> Vec<((u32, u32), u32)> {
        let keys = rows.u32s(key[0]).iter().copied().zip(rows.u32s(key[1]).iter().copied());
        keys.zip(0..).filter(|(key, _)| wanted.contains(key)).collect()
    };
    let time = shape.time_column().map(|column| &*column.name);
    let mut times: Option<(i64, i64)> = None;
    let columns: Vec<&str> = key.into_iter().chain(time).collect();
    let (mut found, mut rows) = (SortedSet::new(), trace.rows(name, &columns));
    while found.len() < wanted.len()
        && let Some(rows) = rows()?
    {
        for (key, row) in keys(&rows) {
            found.insert(key);
            let row = row as usize;
            let tick = |name| rows.u32s(name).get(row).copied().map(i64::from);
            let at = time.and_then(|name| rows.i64s(name).get(row).copied().or_else(|| tick(name))).unwrap_or_default();
            times = Some(times.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
    }
    let mut picked = shape.without_rows();
    let Some((first, last)) = times else { return Ok(Some(picked)) };
    let span = time.map(|column| ColumnSpan { column, first, last });
    each_part(trace, name, (&[], span), &mut |rows| {
        let which: Vec<u32> = keys(rows).into_iter().map(|(_, row)| row).collect();
        if which.is_empty() { Ok(()) } else { picked.append(shape.filled(rows.select(&which))) }
    })?;
    Ok(Some(picked))
}

/// When the client made each of the `listed` usercmds, by player and number. A recording lists the usercmds of each player in turn, and a
/// replay lists them as they ran; this time is the same in both.
fn made(traces: [&Trace; 2], listed: &SortedSet<(u32, u32)>) -> SortedMap<(u32, u32), i64> {
    let mut made = SortedMap::new();
    for frames in traces.map(frames::Columns::of) {
        let names = frames.player.iter().copied().zip(frames.command.iter().copied());
        for (name, at_us) in names.zip(frames.at_us).filter(|(name, _)| listed.contains(name)) {
            made.entry(name).or_insert(*at_us);
        }
    }
    made
}

/// The usercmd that a divergence concerns. If it concerns none: the usercmds that ran in its tick.
fn ran(trace: &Trace, divergence: &Divergence, inputs: &[&str]) -> Vec<UsercmdRow> {
    let place = &divergence.place;
    let executed = executed::Columns::of(trace);
    let usercmd = |player, command, row: Option<usize>| {
        let how = row.map(|row| executed.how.get(row)).filter(|how| !how.is_empty()).map(str::to_owned);
        UsercmdRow { player, command, how, input: input(trace, player, command, inputs) }
    };
    if let (Some(player), Some(command)) = (place.player, place.command) {
        return vec![usercmd(player, command, find_usercmd(executed.player, executed.command, (player, command)))];
    }
    let Some(tick) = place.tick else { return Vec::new() };
    let rows = executed.tick.len().min(executed.player.len()).min(executed.command.len());
    let in_tick = (0..rows).filter(|&row| executed.tick[row] == tick);
    in_tick.map(|row| usercmd(executed.player[row], executed.command[row], Some(row))).collect()
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
    let Some(row) = find_usercmd(frames.player, frames.command, (player, command)) else { return Vec::new() };
    let named =
        |name: &&str| Some(NamedValue { name: (*name).to_owned(), value: CellValue::at(table.column(name)?, row)? });
    inputs.iter().filter_map(named).collect()
}

/// The row of a usercmd in two key columns.
pub(crate) fn find_usercmd(players: &[u32], commands: &[u32], (player, command): (u32, u32)) -> Option<usize> {
    players.iter().zip(commands).position(|key| key == (&player, &command))
}

/// The last authoritative state before a place, of the place's entity.
fn last_state(trace: &Trace, clock: &TickTimes, place: &RowPlace) -> Option<RowDump> {
    let entity = place.entity.or(place.player)?;
    let last_of = |bodies: &'_ Table| {
        let (ticks, entities) = (bodies.u32s("tick"), bodies.u32s("entity"));
        let before = |tick: u32| is_before(tick, clock, place);
        let rows = 0..bodies.rows().min(ticks.len()).min(entities.len());
        let last = rows.filter(|&row| entities[row] == entity && before(ticks[row])).max_by_key(|&row| ticks[row])?;
        Some((ticks[last], last))
    };
    let states = trace.tables.iter().filter(|table| is_bodies(&table.name));
    let (bodies, (tick, row)) =
        states.filter_map(|table| Some((table, last_of(table)?))).max_by_key(|(_, (tick, _))| *tick)?;
    let key = ["tick", "entity"].map(str::to_owned);
    let place = RowPlace::of_row(bodies, row, &key, clock.of_tick(tick), clock);
    Some(RowDump::of(bodies, row, place, &key))
}

fn is_before(tick: u32, clock: &TickTimes, place: &RowPlace) -> bool {
    match (clock.of_tick(tick), place.at_us) {
        (Some(at), Some(limit)) => at < limit,
        _ => place.tick.is_some_and(|limit| tick < limit),
    }
}
