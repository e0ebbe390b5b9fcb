//! An index of a trace's rows, to explain many shots and corrections of it.

use super::line::AimSource;
use super::{CorrectionExplanation, ShotExplanation};
use hitreg_log::trace::schema::{bodies, corrections, errors, executed, frames, is_bodies, shots, views};
use hitreg_log::trace::{Series, Table, Trace};

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

    /// Explains the shot in a row of the `shots` table.
    pub fn shot(&self, row: usize) -> ShotExplanation {
        ShotExplanation::read(self, row)
    }

    /// Explains all corrections, by player and in the order of the table.
    pub fn corrections(&self) -> Vec<CorrectionExplanation> {
        CorrectionExplanation::all(self)
    }
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
