//! What settings do: the same sessions replayed under every combination of one or two settings and presets, a row of
//! figures for each.

mod axis;
mod figures;
mod table;

use rayon::prelude::*;

pub use axis::{Axis, AxisError, PRESET};
pub use figures::Figures;
pub use table::{Cell, Table, figure_names};

use crate::pipeline::Netcode;
use crate::record::Session;
use crate::replay::{Options, ReplayError, own_settings, replay};
use crate::settings::{SettingError, Settings};
use figures::Gathered;

/// The most combinations of values in one sweep.
pub const POINTS_MAX: usize = 10_000;

/// What is to be swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    axes: Vec<Axis>,
}

/// Axes that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing is varied.
    #[error("nothing to sweep: give a setting and its values, such as interpolation.lerp_ms=0..200:50")]
    Nothing,
    /// Something is varied twice.
    #[error("`{key}` is given twice; give all its values in one list")]
    Twice {
        /// What.
        key: String,
    },
    /// More than a table can show.
    #[error("{count} settings are given; a sweep takes one or two, and presets")]
    TooManySettings {
        /// How many.
        count: usize,
    },
    /// More than anybody would wait for.
    #[error("that makes {points} combinations; the most is {POINTS_MAX}")]
    TooManyPoints {
        /// How many.
        points: usize,
    },
}

/// A session that cannot be swept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A log's own settings are none of this build's.
    #[error("log {}: {source}", .log + 1)]
    Settings {
        /// Which log, from 0.
        log: usize,
        /// Why.
        source: SettingError,
    },
    /// A replay failed.
    #[error("log {}: {source}", .log + 1)]
    Replay {
        /// Which log, from 0.
        log: usize,
        /// Why.
        source: ReplayError,
    },
}

/// The outcome: a row for each combination, in the order of the axes' values, the last axis running fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What was varied: [`PRESET`] or a setting's key, for each axis.
    pub keys: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The value of each of [`Sweep::keys`].
    pub values: Vec<String>,
    /// What all sessions together came to.
    pub figures: Figures,
}

impl Plan {
    /// A plan of these axes; presets come first, whatever their place.
    ///
    /// # Errors
    /// When they are none, too many, or not different.
    pub fn new(mut axes: Vec<Axis>) -> Result<Plan, PlanError> {
        axes.sort_by_key(|axis| axis.key() != PRESET);
        if axes.is_empty() {
            return Err(PlanError::Nothing);
        }
        for (place, axis) in axes.iter().enumerate() {
            if axes[..place].iter().any(|before| before.key() == axis.key()) {
                return Err(PlanError::Twice { key: axis.key().to_owned() });
            }
        }
        let count = axes.iter().filter(|axis| axis.key() != PRESET).count();
        if count > 2 {
            return Err(PlanError::TooManySettings { count });
        }
        let points = axes.iter().fold(1usize, |points, axis| points.saturating_mul(axis.values().len()));
        if points > POINTS_MAX {
            return Err(PlanError::TooManyPoints { points });
        }
        Ok(Plan { axes })
    }

    /// Every combination, as a value for each axis.
    pub fn points(&self) -> Vec<Vec<&str>> {
        let mut points: Vec<Vec<&str>> = vec![Vec::new()];
        for axis in &self.axes {
            let longer = points.iter().flat_map(|point| {
                axis.values().iter().map(move |value| point.iter().copied().chain([value.as_str()]).collect())
            });
            points = longer.collect();
        }
        points
    }

    /// A session's settings at one point: the preset's where presets are swept, else its own.
    fn settings(&self, session: &Session, point: &[&str]) -> Result<Settings, SettingError> {
        let mut settings = own_settings(&session.header)?;
        for (axis, value) in self.axes.iter().zip(point) {
            match axis.key() {
                PRESET => settings = settings.under_preset(value)?,
                key => settings.set(key, value)?,
            }
        }
        Ok(settings)
    }
}

/// Replays every session at every point, as many at once as there are threads. The figures of a point are those of all
/// sessions together. `done` is told each time a replay ends; there are as many as points times sessions.
///
/// # Errors
/// When a session is not one that this build can replay.
pub fn sweep<G: Netcode>(sessions: &[Session], plan: &Plan, done: &(dyn Fn() + Sync)) -> Result<Sweep, SweepError> {
    let points = plan.points();
    let one = |(point, log): (usize, usize)| -> Result<Gathered, SweepError> {
        let session = &sessions[log];
        let settings = plan.settings(session, &points[point]).map_err(|source| SweepError::Settings { log, source })?;
        let options = Options { settings: Some(settings), sizes: true, ..Options::default() };
        let replayed =
            replay::<G>(session, &options, &mut |_| {}).map_err(|source| SweepError::Replay { log, source })?;
        done();
        Ok(Gathered::of(session, &replayed))
    };
    let jobs: Vec<(usize, usize)> =
        (0..points.len()).flat_map(|point| (0..sessions.len()).map(move |log| (point, log))).collect();
    let gathered: Vec<Gathered> =
        jobs.into_par_iter().map(one).collect::<Vec<_>>().into_iter().collect::<Result<_, _>>()?;
    let mut gathered = gathered.into_iter();
    let row = |values: &Vec<&str>| {
        let together = gathered.by_ref().take(sessions.len()).fold(Gathered::default(), Gathered::plus);
        Row { values: values.iter().map(|v| (*v).to_owned()).collect(), figures: together.figures() }
    };
    let rows = points.iter().map(row).collect();
    Ok(Sweep { keys: plan.axes.iter().map(|axis| axis.key().to_owned()).collect(), rows })
}
