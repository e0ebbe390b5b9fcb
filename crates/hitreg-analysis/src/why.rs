//! Explains one shot or one correction: what the shooter's screen showed, how the server judged it, and where the
//! target was for each of them. The explanation uses only a trace's tables, so it works for traces of any build. Values
//! that the tables lack are `None`.

mod asked;
mod carried;
mod correction;
mod line;
mod near;
mod places;
mod reader;
mod rejudged;
mod shot;

pub use asked::{NEAR, ShotName, WhyError, WhyQuery, player, shots_of};
pub use carried::{DrawnSnapshots, ReceivedSnapshot, UsercmdPath};
pub(crate) use correction::known_cause;
pub use correction::{CorrectionExplanation, FieldError, OtherCorrections, is_corrected};
pub use line::{AimLine, Axes, LineOffset};
pub use near::{CorrectionRows, ShotRows, near};
pub use places::{PositionKind, TargetPosition};
pub use reader::TraceRows;
pub use rejudged::{RejudgeRules, RejudgedShot, RejudgedShots};
pub(crate) use shot::shot_target;
pub use shot::{ClientFrame, ClientReplay, DrawnTarget, JudgedOutcome, ReportedHit, ShotExplanation, ShotResult};

use serde::Serialize;

use hitreg_log::trace::Trace;

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
                Why::Correction(Box::new(CorrectionExplanation::find(&reader, others, *player, *number)?))
            }
            WhyQuery::Shot(name) => Why::Shot(Box::new(reader.shot(name.row(trace)?))),
            WhyQuery::At { at_us, player } => Why::Shot(Box::new(reader.shot(asked::row_at(trace, *at_us, *player)?))),
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
