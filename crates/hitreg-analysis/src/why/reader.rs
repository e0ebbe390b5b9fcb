//! A trace that is asked for many shots and corrections: where its rows are is looked up once.

use super::{Correction, Shot};
use hitreg_log::trace::schema::{bodies, errors, executed, frames, shots, views};
use hitreg_log::trace::{Series, Trace};

/// A trace, and the rows of its tables by whose they are.
#[derive(Clone, Debug)]
pub struct Reader<'t> {
    pub(super) trace: &'t Trace,
    /// By player, in the order of usercmds.
    pub(super) frames: Series<'t>,
    /// The same.
    pub(super) executed: Series<'t>,
    /// The same.
    pub(super) errors: Series<'t>,
    /// By shooter, in the order of usercmds.
    pub(super) shots: Series<'t>,
    /// By entity, in the order of ticks.
    pub(super) bodies: Series<'t>,
    /// By player and entity, in the order of usercmds.
    pub(super) views: Series<'t>,
}

impl<'t> Reader<'t> {
    /// Looks the rows up.
    pub fn new(trace: &'t Trace) -> Reader<'t> {
        let (frames, executed) = (frames::Columns::of(trace), executed::Columns::of(trace));
        let (errors, shots) = (errors::Columns::of(trace), shots::Columns::of(trace));
        let (bodies, views) = (bodies::Columns::of(trace), views::Columns::of(trace));
        Reader {
            trace,
            frames: Series::of_one(frames.player, frames.command),
            executed: Series::of_one(executed.player, executed.command),
            errors: Series::of_one(errors.player, errors.command),
            shots: Series::of_one(shots.shooter, shots.command),
            bodies: Series::of_one(bodies.entity, bodies.tick),
            views: Series::of_two([views.player, views.entity], views.command),
        }
    }

    /// The trace.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// The frames by player.
    pub fn frames(&self) -> &Series<'t> {
        &self.frames
    }

    /// The bodies by entity.
    pub fn bodies(&self) -> &Series<'t> {
        &self.bodies
    }

    /// The views by player and entity.
    pub fn views(&self) -> &Series<'t> {
        &self.views
    }

    /// The shot in a row of the `shots` table.
    pub fn shot(&self, row: usize) -> Shot {
        Shot::read(self, row)
    }

    /// All corrections, by player in the order of the table.
    pub fn corrections(&self) -> Vec<Correction> {
        Correction::all(self)
    }
}
