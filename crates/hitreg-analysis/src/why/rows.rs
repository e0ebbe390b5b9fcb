//! The rows of a trace that explain its shots and corrections: an index of all of them, and a selection for one shot or
//! correction, so that the rows of a long session need not be in memory.

use std::borrow::Cow;

use super::correction::{AMBIGUOUS_MIN, is_corrected};
use super::places::{AimSource, first_with_angles};
use super::{OtherCorrections, ShotName, WhyError, WhyQuery, cell, shot_target};
use hitreg_log::trace::schema::{bodies, corrections, errors, executed, frames, is_bodies, shots, ticks, views};
use hitreg_log::trace::{ColumnSpan, Series, Table, Trace, TraceReadError, TraceSource, select_rows};

/// A trace, with indices of its tables.
#[derive(Clone, Debug)]
pub struct TraceRows<'t> {
    pub(crate) trace: &'t Trace,
    /// Frames by player, in the order of usercmds.
    pub(crate) frames: Series<'t>,
    /// Executed usercmds by player, in order.
    pub(super) executed: Series<'t>,
    /// Corrections by player, in the order of usercmds.
    pub(super) corrections: Series<'t>,
    /// Errors by player, in the order of usercmds.
    pub(super) errors: Series<'t>,
    /// Shots by shooter, in the order of usercmds.
    pub(super) shots: Series<'t>,
    /// The tables with bodies, each with its rows by entity, in the order of ticks.
    pub(super) bodies: Vec<(&'t Table, Series<'t>)>,
    /// Views by player and entity, in the order of usercmds.
    pub(crate) views: Series<'t>,
    /// The source of the direction of every line of fire; `None` if the game has no view angles.
    pub(super) aim: Option<AimSource>,
}

impl<'t> TraceRows<'t> {
    /// Creates the indices of a trace.
    pub fn new(trace: &'t Trace) -> TraceRows<'t> {
        let (frames, executed) = (frames::Columns::of(trace), executed::Columns::of(trace));
        let (errors, shots) = (errors::Columns::of(trace), shots::Columns::of(trace));
        let (corrections, views) = (corrections::Columns::of(trace), views::Columns::of(trace));
        let by_entity = |table: &'t Table| {
            let rows = bodies::Columns::read(table);
            (table, Series::of_one(rows.entity, rows.tick))
        };
        TraceRows {
            trace,
            frames: Series::of_one(frames.player, frames.command),
            executed: Series::of_one(executed.player, executed.command),
            corrections: Series::of_one(corrections.player, corrections.command),
            errors: Series::of_one(errors.player, errors.command),
            shots: Series::of_one(shots.shooter, shots.command),
            bodies: trace.tables.iter().filter(|table| is_bodies(&table.name)).map(by_entity).collect(),
            views: Series::of_two([views.player, views.entity], views.command),
            aim: AimSource::of(trace),
        }
    }

    /// The state of an entity after a tick: its table and its row.
    pub(super) fn body(&self, tick: u32, entity: u32) -> Option<(&'t Table, usize)> {
        self.bodies.iter().find_map(|(table, rows)| Some((*table, rows.at([entity, 0], tick).next()?)))
    }

    /// The last teleport or spawn of an entity after `since_us`, up to a tick: what it was, its tick, and the session time
    /// of that tick. A change of the body's `teleports` shows it.
    pub(super) fn last_relocation(&self, tick: u32, entity: u32, since_us: i64) -> Option<(&'static str, u32, i64)> {
        let ticks = ticks::Columns::of(self.trace);
        let last = ticks.tick.iter().position(|known| *known == tick)?;
        let count = |(table, row): (&Table, usize)| cell(table.u32s("teleports"), row);
        let is_dead = |(table, row): (&Table, usize)| Some(table.column("alive")?.data.is_zero(row));
        for row in (1..=last).rev().take(RELOCATION_TICKS as usize) {
            let (tick, before) = (ticks.tick[row], ticks.tick[row - 1]);
            let at_us = cell(ticks.at_us, row).filter(|at| *at > since_us)?;
            let (of_tick, of_before) = (count(self.body(tick, entity)?)?, self.body(before, entity));
            if of_before.and_then(count) == Some(of_tick) {
                continue;
            }
            let how = match of_before.map(is_dead) {
                None | Some(Some(true)) => "spawned",
                Some(Some(false)) => "teleported",
                Some(None) => "teleported or spawned",
            };
            return Some((how, tick, at_us));
        }
        None
    }

    /// Whether the trace has bodies after a tick, but none of an entity that it has after the tick before.
    pub(super) fn is_removed(&self, tick: u32, entity: u32) -> bool {
        let had = tick.checked_sub(1).is_some_and(|before| self.body(before, entity).is_some());
        let has_tick = || self.bodies.iter().any(|(table, _)| table.u32s("tick").contains(&tick));
        had && self.body(tick, entity).is_none() && has_tick()
    }
}

/// A teleport or spawn of a shot's target is sought in this many ticks up to the shot: 10 s at 128 Hz.
const RELOCATION_TICKS: u32 = 1_280;

/// Views of the target are read for this long before and after the rewound time, in microseconds. The explanation needs
/// no views further away.
const AROUND_US: i64 = 10_000_000;

/// A usercmd is nearly always due within this many ticks of its shot.
const DUE_TICKS: i64 = 1_000;

/// The rows that explain a shot.
#[derive(Clone, Debug)]
pub struct ShotRows {
    shot: ShotName,
    /// The shot's rows in `shots`: the shots of its usercmd, and the impacts of its projectiles.
    rows: Table,
    /// The entity that the explanation of each of these rows is about; `None` if it is not known.
    about: Vec<Option<u32>>,
    /// The first and the last time of views that can show where the target was judged.
    shown: Option<(i64, i64)>,
}

impl ShotRows {
    /// The tables that explain a shot, besides `shots`.
    pub const TABLES: [&'static str; 5] = [ticks::NAME, bodies::NAME, executed::NAME, frames::NAME, views::NAME];

    /// Finds the rows of a shot among the shots of a trace.
    pub fn of(trace: &Trace, shot: ShotName) -> ShotRows {
        let table = shots::Columns::of(trace);
        let usercmds = table.shooter.iter().zip(table.command);
        let is_its = |of| of == (&shot.shooter, &shot.command);
        let rows = trace.table(shots::NAME).map(|table| table.select_where(usercmds, is_its)).unwrap_or_default();
        let of_shot = Trace { tables: vec![rows.clone()], ..Trace::default() };
        let about = (0..rows.rows()).map(|row| shot_target(&of_shot, row)).collect();
        let found = shots::Columns::read(&rows);
        let judged = found.at_us.iter().zip(found.rewind_us).map(|(at, rewind)| at.saturating_sub(*rewind));
        let shown = around(judged);
        ShotRows { shot, about, shown, rows }
    }

    /// The session time from the first to the last row that explains the shot, in microseconds; `None` if it is not
    /// known.
    pub fn span(&self) -> Option<(i64, i64)> {
        let last = shots::Columns::read(&self.rows).at_us.iter().max()?.saturating_add(AROUND_US);
        self.shown.map(|(first, to)| (first, to.max(last)))
    }

    /// Where the rows of a table are that explain the shot, if that is known. They may be elsewhere.
    fn within(&self, table: &str) -> Option<ColumnSpan<'static>> {
        let of = |column, (first, last)| ColumnSpan { column, first, last };
        let ticks = shots::Columns::read(&self.rows).tick;
        let ticks =
            ticks.iter().min().zip(ticks.iter().max()).map(|(first, last)| (i64::from(*first), i64::from(*last)));
        match table {
            views::NAME => self.shown.map(|shown| of("drawn_at_us", shown)),
            bodies::NAME => ticks.map(|(first, last)| of("tick", (first - i64::from(RELOCATION_TICKS), last))),
            executed::NAME => ticks.map(|(first, last)| of("tick", (first - DUE_TICKS, last + DUE_TICKS))),
            _ => self.span().map(|span| of("at_us", span)),
        }
    }

    /// Whether the shot launched a projectile whose impact is unknown.
    pub fn lacks_impact(&self) -> bool {
        let table = shots::Columns::read(&self.rows);
        table.reason.iter().any(|reason| reason == "launched") && !table.impact.contains(&1)
    }

    /// The rows of a table that explain the shot.
    pub fn select(&self, table: &Table) -> Table {
        let ShotName { shooter, command, .. } = self.shot;
        // The tick of the shot and the tick before it; of the target, also earlier ones.
        let of_shot = shots::Columns::read(&self.rows).tick;
        let is_its_tick =
            |tick: &u32| of_shot.iter().any(|of_shot| of_shot == tick || of_shot.checked_sub(1) == Some(*tick));
        match table.name.as_str() {
            ticks::NAME => {
                let is_before = |tick: &u32| of_shot.iter().any(|of_shot| leads_to(*tick, *of_shot));
                table.select_where(table.u32s("tick").iter(), is_before)
            }
            bodies::NAME => {
                let rows = bodies::Columns::read(table);
                let is_targets = |tick: u32, entity: u32| {
                    let mut of_row = of_shot.iter().zip(&self.about);
                    of_row.any(|(of_shot, about)| *about == Some(entity) && leads_to(tick, *of_shot))
                };
                let explains = |(tick, entity): (&u32, &u32)| is_its_tick(tick) || is_targets(*tick, *entity);
                table.select_where(rows.tick.iter().zip(rows.entity), explains)
            }
            executed::NAME => of_usercmd(table, shooter, command),
            frames::NAME => {
                let rows = frames::Columns::read(table);
                let is_its =
                    |row: usize| (rows.player.get(row), rows.command.get(row)) == (Some(&shooter), Some(&command));
                let its: Vec<usize> = (0..rows.rows).filter(|row| is_its(*row)).collect();
                // A usercmd with view angles shows that the game has them, even if those of the shot are 0.
                let with_angles = first_with_angles(&rows).filter(|_| !its.is_empty());
                table.select_where(0..rows.rows, |row| its.contains(&row) || with_angles == Some(row))
            }
            views::NAME => {
                let rows = views::Columns::read(table);
                let is_near = |row: usize| match (self.shown, rows.drawn_at_us.get(row)) {
                    (Some((from, to)), Some(at)) => (from..=to).contains(at),
                    _ => false,
                };
                let of_row = rows.player.iter().zip(rows.command).enumerate();
                let explains =
                    |(row, (player, of)): (usize, (&u32, &u32))| *player == shooter && (*of == command || is_near(row));
                table.select_where(of_row, explains)
            }
            _ => table.select(&[]),
        }
    }

    /// A trace with these rows, which [`ShotRows::select`] selected, and the rows of the shot.
    pub fn with(self, mut selected: Trace) -> Trace {
        selected.tables.retain(|table| table.name != shots::NAME);
        selected.tables.push(self.rows);
        selected
    }
}

/// Whether a tick is the shot's, or one of those before it in which a teleport or spawn is sought.
fn leads_to(tick: u32, of_shot: u32) -> bool {
    of_shot.checked_sub(tick).is_some_and(|before| before <= RELOCATION_TICKS)
}

/// The rows that explain a correction.
#[derive(Clone, Debug)]
pub struct CorrectionRows {
    player: u32,
    command: u32,
    at_us: Option<i64>,
    /// The rows of all corrections, which number it.
    corrected: Table,
}

impl CorrectionRows {
    /// The tables that explain a correction, besides `corrections`.
    pub const TABLES: [&'static str; 3] = [bodies::NAME, frames::NAME, errors::NAME];

    /// The rows of `corrections` in which a state was corrected.
    pub fn corrected(table: &Table) -> Table {
        let rows = corrections::Columns::read(table);
        table.select_where(0..rows.rows, |row| is_corrected(&rows, row))
    }

    /// Counts [corrected](CorrectionRows::corrected) rows by player.
    pub fn count(corrected: &Table, players: usize) -> Vec<u32> {
        let mut counts = vec![0; players];
        for player in corrections::Columns::read(corrected).player {
            counts[*player as usize] += 1;
        }
        counts
    }

    /// Finds the `number`-th correction of a player among [corrected](CorrectionRows::corrected) rows. They lie between
    /// `others`.
    ///
    /// # Errors
    /// Fails if the player has fewer corrections.
    pub fn of(
        corrected: Table,
        others: &OtherCorrections,
        player: u32,
        number: u32,
    ) -> Result<CorrectionRows, WhyError> {
        let of_all = Trace { tables: vec![corrected], ..Trace::default() };
        let row = super::correction::row(&of_all, others, player, number)?;
        let table = corrections::Columns::of(&of_all);
        let (command, at_us) = (table.command.get(row).copied().unwrap_or_default(), table.at_us.get(row).copied());
        let corrected = of_all.tables.into_iter().next().unwrap_or_default();
        Ok(CorrectionRows { player, command, at_us, corrected })
    }

    /// The player, the acked usercmd, and the time of the ack in microseconds.
    pub fn ack(&self) -> (u32, u32, Option<i64>) {
        (self.player, self.command, self.at_us)
    }

    /// The rows of a table that explain the correction.
    pub fn select(&self, table: &Table) -> Table {
        match table.name.as_str() {
            // The table `errors` lacks bits of large whole numbers; the player's body on the server has them.
            bodies::NAME => table.select_where(table.u32s("entity").iter(), |entity| *entity == self.player),
            frames::NAME | errors::NAME => of_usercmd(table, self.player, self.command),
            _ => table.select(&[]),
        }
    }

    /// A trace with these rows, which [`CorrectionRows::select`] selected, and the rows of all corrections.
    pub fn with(self, mut selected: Trace) -> Trace {
        selected.tables.retain(|table| table.name != corrections::NAME);
        selected.tables.push(self.corrected);
        selected
    }
}

/// The rows of a trace that answer a question. Returns the whole trace if it is already in memory.
///
/// # Errors
/// Fails with a message if the rows cannot be read, or if the trace does not contain the shot or correction.
pub fn near<'t>(
    trace: &'t dyn TraceSource,
    asked: &WhyQuery,
) -> Result<Result<Cow<'t, Trace>, WhyError>, TraceReadError> {
    if let Some(trace) = trace.in_memory() {
        return Ok(Ok(Cow::Borrowed(trace)));
    }
    let header = trace.header().clone();
    if let WhyQuery::Correction { player, number } = *asked {
        let corrected = select_rows(trace, corrections::NAME, (&[], None), &CorrectionRows::corrected)?;
        let rows = match CorrectionRows::of(corrected, &OtherCorrections::default(), player, number) {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(error)),
        };
        let made = around(rows.at_us.into_iter()).map(|(first, last)| ColumnSpan { column: "at_us", first, last });
        let select = |table: &Table| rows.select(table);
        let of = |name: &'static str| found_near(trace, name, made, &select);
        let mut tables = vec![of(frames::NAME)?, of(errors::NAME)?];
        let large = large_fields(&tables[1]);
        if !large.is_empty() {
            let columns: Vec<&str> = ["tick", "entity"].into_iter().chain(large.iter().map(String::as_str)).collect();
            tables.push(select_rows(trace, bodies::NAME, (&columns, None), &select)?);
        }
        return Ok(Ok(Cow::Owned(rows.with(Trace { header, tables }))));
    }
    let fired =
        Trace { header: header.clone(), tables: vec![select_rows(trace, shots::NAME, (&[], None), &Table::clone)?] };
    let shot = match asked.shot(&fired) {
        Ok(shot) => shot,
        Err(error) => return Ok(Err(error)),
    };
    let rows = ShotRows::of(&fired, shot);
    let of = |name: &'static str| found_near(trace, name, rows.within(name), &|table| rows.select(table));
    let tables = ShotRows::TABLES.into_iter().map(of).collect::<Result<_, _>>()?;
    Ok(Ok(Cow::Owned(rows.with(Trace { header, tables }))))
}

/// The fields in rows of `errors` whose values may be whole numbers with bits that the table lacks.
fn large_fields(errors: &Table) -> Vec<String> {
    let rows = errors::Columns::read(errors);
    let is_large = |row: &usize| {
        let values = [rows.predicted, rows.authoritative].map(|values| values.get(*row).copied().unwrap_or_default());
        values.iter().any(|value| value.abs() >= AMBIGUOUS_MIN)
    };
    (0..rows.rows).filter(is_large).map(|row| rows.field.get(row).to_owned()).collect()
}

/// The selected rows of a table near a span, or of the whole table if there are none.
fn found_near(
    trace: &dyn TraceSource,
    name: &str,
    span: Option<ColumnSpan<'_>>,
    select: &dyn Fn(&Table) -> Table,
) -> Result<Table, TraceReadError> {
    let near = span.map(|span| select_rows(trace, name, (&[], Some(span)), select)).transpose()?;
    near.filter(|near| near.rows() > 0).map_or_else(|| select_rows(trace, name, (&[], None), select), Ok)
}

/// The span of these times, and [`AROUND_US`] before and after it.
fn around(times: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    let spans = times.map(|at| (at.saturating_sub(AROUND_US), at.saturating_add(AROUND_US)));
    spans.reduce(|(from, to), (first, last)| (from.min(first), to.max(last)))
}

/// The rows of a player's usercmd, in a table with the columns `player` and `command`.
fn of_usercmd(table: &Table, player: u32, command: u32) -> Table {
    table.select_where(table.u32s("player").iter().zip(table.u32s("command")), |of| of == (&player, &command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::PositionKind;
    use hitreg_log::trace::{Column, ColumnData};

    /// A server's own log has no views. Its second class has a table of its own.
    #[test]
    fn a_target_of_any_class_is_where_the_server_judged_it() {
        let numbers = |name: &str, value: u32| Column::new(name, ColumnData::U32(vec![value]));
        let singles = |name: &str, value: f32| Column::new(name, ColumnData::F32(vec![value]));
        let times = |name: &str, value: i64| Column::new(name, ColumnData::I64(vec![value]));
        let word = |name: &str, value: &str| {
            Column::new(name, ColumnData::Name { names: vec![value.to_owned()], codes: vec![0] })
        };
        let drone =
            vec![numbers("tick", 7), numbers("entity", 100), singles("origin.x", 3.0), singles("origin.y", 4.0)];
        let shot = vec![
            numbers("shooter", 0),
            numbers("command", 5),
            numbers("index", 0),
            numbers("tick", 7),
            times("at_us", 70_000),
            times("rewind_us", 0),
            word("reason", "hit"),
            word("target", "entity 100"),
        ];
        let tables = vec![
            Table::new("bodies.drone", drone),
            Table::new(shots::NAME, shot),
            Table::new(views::NAME, vec![Column::new("player", ColumnData::U32(Vec::new()))]),
        ];
        let trace = Trace { tables, ..Trace::default() };
        let found = TraceRows::new(&trace).shot(0);
        for which in [PositionKind::Judged, PositionKind::Present] {
            let place = found.place_of(which).expect("a place");
            assert_eq!(place.origin.map(|at| at.to_array()), Some([3.0, 4.0, 0.0]), "{which:?}");
        }
    }
}
