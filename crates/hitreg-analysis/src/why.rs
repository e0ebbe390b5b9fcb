//! Explains one shot or one correction: what the shooter's screen showed, how the server judged it, and where the
//! target was for each of them. The explanation uses only a trace's tables, so it works for traces of any build. Values
//! that the tables lack are `None`.

mod correction;
mod places;
mod rows;
mod shot;

use std::str::FromStr;

use serde::Serialize;

use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{IMPACT, shots};
use hitreg_log::units::{ClockTime, Micros};

pub(crate) use correction::known_cause;
pub use correction::{CorrectionExplanation, FieldError, OtherCorrections, is_corrected};
pub use places::{AimLine, Axes, LineOffset, PositionKind, TargetPosition};
pub use rows::{CorrectionRows, ShotRows, TraceRows, near};
pub use shot::{
    ClientFrame, ClientReplay, DrawnTarget, JudgedOutcome, PlacingSnapshots, RejudgeRules, RejudgedShot, RejudgedShots,
    Relocation, ReportedHit, ShotExplanation, ShotResult, SnapshotName, UsercmdPath,
};
pub(crate) use shot::{hitgroup_in_words, other_drawing_mode, shot_target};

/// The explanation of a shot or a correction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The explanation of a shot.
    Shot(Box<ShotExplanation>),
    /// The explanation of a correction.
    Correction(Box<CorrectionExplanation>),
}

impl Why {
    /// The axes of the game's positions.
    pub fn axes(&self) -> Axes {
        match self {
            Why::Shot(shot) => shot.line.map(|line| line.axes).unwrap_or_default(),
            Why::Correction(correction) => correction.axes,
        }
    }

    /// The players that the explanation is about.
    pub fn players(&self) -> Vec<u32> {
        match self {
            Why::Shot(shot) => {
                let about = shot.about.as_deref().and_then(|who| player(who).ok());
                [Some(shot.shooter), about].into_iter().flatten().collect()
            }
            Why::Correction(correction) => vec![correction.player],
        }
    }

    /// The player and number of the shot's or correction's usercmd.
    pub fn usercmd(&self) -> (u32, u32) {
        match self {
            Why::Shot(shot) => (shot.shooter, shot.command),
            Why::Correction(correction) => (correction.player, correction.command),
        }
    }

    /// Finds and explains a shot or a correction in a trace. For several questions about one trace, use a [`TraceRows`].
    ///
    /// # Errors
    /// Fails if the trace does not contain it; the error names the nearest ones.
    pub fn of(trace: &Trace, asked: &WhyQuery) -> Result<Why, WhyError> {
        Why::of_part(trace, asked, &OtherCorrections::default())
    }

    /// Like [`Why::of`], in the trace of a part whose corrections lie between `others`.
    ///
    /// # Errors
    /// As [`Why::of`].
    pub fn of_part(trace: &Trace, asked: &WhyQuery, others: &OtherCorrections) -> Result<Why, WhyError> {
        let reader = TraceRows::new(trace);
        Ok(match asked {
            WhyQuery::Correction { player, number } => {
                Why::Correction(Box::new(reader.correction(others, *player, *number)?))
            }
            WhyQuery::Shot(name) => Why::Shot(Box::new(reader.shot(name.row(trace)?))),
            WhyQuery::At { at_us, player } => Why::Shot(Box::new(reader.shot(row_at(trace, *at_us, *player)?))),
        })
    }
}

/// The value of a column in a row; `None` if the table lacks the column.
fn cell<T: Copy>(column: &[T], row: usize) -> Option<T> {
    column.get(row).copied()
}

/// The value of a measurement in a row; `None` if the table lacks it or the value is not finite.
fn measure(column: &[f32], row: usize) -> Option<f32> {
    cell(column, row).filter(|value| value.is_finite())
}

/// A search by time only accepts shots that were judged within this distance.
pub const SEARCH_DISTANCE_MAX: Micros = Micros::from_s(10);

/// The shot or correction to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyQuery {
    /// A shot by name.
    Shot(ShotName),
    /// The shot that the server judged nearest to a time.
    At {
        /// The session time, in microseconds.
        at_us: i64,
        /// Considers only this player's shots; `None` for all players.
        player: Option<u32>,
    },
    /// A correction of a player.
    Correction {
        /// The player.
        player: u32,
        /// The number of the correction, from 1.
        number: u32,
    },
}

impl WhyQuery {
    /// The shot that is asked for, among the shots of a trace.
    ///
    /// # Errors
    /// Fails if the trace does not contain the shot; the error names the nearest ones. Also fails if a correction is
    /// asked for.
    pub fn shot(&self, trace: &Trace) -> Result<ShotName, WhyError> {
        let row = match *self {
            WhyQuery::Shot(name) => name.row(trace)?,
            WhyQuery::At { at_us, player } => row_at(trace, at_us, player)?,
            WhyQuery::Correction { .. } => return Err(WhyError::none_in(trace)),
        };
        let shots = shots::Columns::of(trace);
        ShotName::of(&shots, row).ok_or_else(|| WhyError::none_in(trace))
    }
}

/// The name of a shot: `p0#95`, or `p0#95.1` for a further shot of the same usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShotName {
    /// The shooter.
    pub shooter: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// The index of the shot within its usercmd; `None` for the first.
    pub index: Option<u32>,
}

impl serde::Serialize for ShotName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a shot or correction was not found, with the nearest ones, or why a text names none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WhyError(pub(super) String);

impl WhyError {
    /// The error for a log without a table of corrections.
    pub fn no_correction_table() -> WhyError {
        let what = "the log does not record corrections: name the build that replays it (--build), or record a table \
                    `corrections`";
        WhyError(what.to_owned())
    }

    /// The error for a trace without shots.
    fn none_in(trace: &Trace) -> WhyError {
        let what = match trace.header.is_recorded() {
            true => "the log records no shots: name the build that replays it (--build), or record its shots",
            false if trace.header.is_open() => "there are no shots in it: in open loop, no server judges shots",
            false => "there are no shots in it: the server judged none",
        };
        WhyError(what.to_owned())
    }
}

impl FromStr for ShotName {
    type Err = WhyError;

    fn from_str(text: &str) -> Result<ShotName, WhyError> {
        let read = || {
            let (shooter, rest) = text.split_once('#')?;
            // The name of a projectile's impact on a page.
            let (rest, impact) =
                rest.strip_suffix(" impact").map_or((rest, None), |rest| (rest, Some(u32::from(IMPACT))));
            let (command, index) = match rest.split_once('.') {
                Some((command, index)) => (command, Some(index.parse().ok()?)),
                None => (rest, impact),
            };
            Some(ShotName { shooter: player(shooter).ok()?, command: command.parse().ok()?, index })
        };
        let what = || format!("`{text}` does not name a shot: write player and usercmd number, such as p0#95");
        read().ok_or_else(|| WhyError(what()))
    }
}

impl std::fmt::Display for ShotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}#{}", self.shooter, self.command)?;
        // A projectile's first impact has the name of its launch.
        let further = self.index.filter(|index| *index > 0 && *index != u32::from(IMPACT));
        further.map_or(Ok(()), |index| write!(f, ".{index}"))
    }
}

/// Parses a player: `p3` or `3`.
///
/// # Errors
/// Fails if the text is neither.
pub fn player(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('p').unwrap_or(text);
    number.parse().map_err(|_| format!("`{text}` does not name a player: write p3, for example"))
}

/// A player's shots, in the order of their usercmds.
///
/// # Errors
/// Fails if the player did not shoot.
pub fn shots_of(trace: &Trace, player: u32) -> Result<Vec<ShotName>, WhyError> {
    let shots = shots::Columns::of(trace);
    let mut rows = rows_of(trace, Some(player))?;
    rows.sort_by_key(|row| (cell(shots.command, *row), cell(shots.index, *row)));
    let mut names: Vec<ShotName> = rows.into_iter().filter_map(|row| ShotName::of(&shots, row)).collect();
    names.dedup_by_key(|name| name.to_string());
    Ok(names)
}

impl ShotName {
    /// The name of the shot in a row of the `shots` table.
    fn of(shots: &shots::Columns<'_>, row: usize) -> Option<ShotName> {
        let [shooter, command] = [cell(shots.shooter, row)?, cell(shots.command, row)?];
        Some(ShotName { shooter, command, index: cell(shots.index, row) })
    }

    /// The row of this shot in the `shots` table.
    fn row(self, trace: &Trace) -> Result<usize, WhyError> {
        let shots = shots::Columns::of(trace);
        let mut of_shooter = rows_of(trace, Some(self.shooter))?;
        let is_asked = |row: &usize| {
            cell(shots.command, *row) == Some(self.command)
                && self.index.is_none_or(|index| cell(shots.index, *row) == Some(index))
        };
        // The impact of a projectile has a higher index than its launch, whatever the order of their rows.
        let found = of_shooter.iter().copied().filter(is_asked);
        let found = found.min_by_key(|row| cell(shots.index, *row));
        found.ok_or_else(|| {
            of_shooter.sort_by_key(|row| cell(shots.command, *row).unwrap_or(0).abs_diff(self.command));
            let mut nearest = of_shooter[..of_shooter.len().min(4)].to_vec();
            nearest.sort_by_key(|row| (cell(shots.command, *row), cell(shots.index, *row)));
            let names = nearest.into_iter().filter_map(|row| ShotName::of(&shots, row));
            let mut nearest: Vec<String> = names.map(|name| name.to_string()).collect();
            nearest.dedup();
            WhyError(format!("there is no shot {self}; the nearest are {}", nearest.join(", ")))
        })
    }
}

/// The row of the shot that was judged nearest to a time. For a projectile, this is its launch.
fn row_at(trace: &Trace, at_us: i64, player: Option<u32>) -> Result<usize, WhyError> {
    let shots = shots::Columns::of(trace);
    let rows = rows_of(trace, player)?;
    let off = |row: &usize| {
        let at = cell(shots.at_us, *row);
        (at.map_or(u64::MAX, |at| at.abs_diff(at_us)), cell(shots.impact, *row), *row)
    };
    let row = rows.into_iter().min_by_key(off).ok_or_else(|| WhyError::none_in(trace))?;
    if let (Some(nearest), Some(at)) = (ShotName::of(&shots, row), cell(shots.at_us, row))
        && at.abs_diff(at_us) > SEARCH_DISTANCE_MAX.0.unsigned_abs()
    {
        let (within, asked, at) = (SEARCH_DISTANCE_MAX.0 / 1_000_000, ClockTime(Micros(at_us)), ClockTime(Micros(at)));
        let what = format!("no shot was judged within {within} s of {asked}; the nearest is {nearest}, at {at}");
        return Err(WhyError(what));
    }
    Ok(row)
}

fn rows_of(trace: &Trace, player: Option<u32>) -> Result<Vec<usize>, WhyError> {
    let shots = shots::Columns::of(trace);
    let rows = (0..shots.shooter.len()).filter(|row| player.is_none_or(|player| shots.shooter[*row] == player));
    let rows: Vec<usize> = rows.collect();
    match (rows.is_empty(), player) {
        (false, _) => Ok(rows),
        (true, Some(player)) if !shots.shooter.is_empty() => {
            let shooters: SortedSet<u32> = shots.shooter.iter().copied().collect();
            let shooters: Vec<String> = shooters.iter().map(|player| format!("p{player}")).collect();
            Err(WhyError(format!("p{player} did not shoot: choose one of {}", shooters.join(", "))))
        }
        (true, _) => Err(WhyError::none_in(trace)),
    }
}
