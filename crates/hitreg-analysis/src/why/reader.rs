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
