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

pub use asked::{Asked, NotThere, ShotName, player, shots_of};
pub use carried::{Carried, DrawnFrom, Received};
pub use correction::{Correction, FieldError};
pub use line::{Line, Off};
pub use near::near;
pub use places::{Place, Which};
pub use reader::Reader;
pub use rejudged::{Otherwise, Rejudged, Rules};
pub use shot::{Came, Drawn, GivenHit, Judged, Made, Shot};

use serde::Serialize;

use hitreg_log::trace::Trace;

/// The explanation of a shot or a correction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The explanation of a shot.
    Shot(Box<Shot>),
    /// The explanation of a correction.
    Correction(Box<Correction>),
}

impl Why {
    /// Finds and explains a shot or a correction in a trace. For several questions about one trace, use a [`Reader`].
    ///
    /// # Errors
    /// Fails if the trace does not contain it; the error names the nearest ones.
    pub fn of(trace: &Trace, asked: &Asked) -> Result<Why, NotThere> {
        let reader = Reader::new(trace);
        Ok(match asked {
            Asked::Correction { player, number } => {
                Why::Correction(Box::new(Correction::find(&reader, *player, *number)?))
            }
            Asked::Shot(name) => Why::Shot(Box::new(reader.shot(name.row(trace)?))),
            Asked::At { at_us, player } => Why::Shot(Box::new(reader.shot(asked::row_at(trace, *at_us, *player)?))),
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
