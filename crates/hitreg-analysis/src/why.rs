//! One shot, or one correction, explained from a trace's tables alone, so that traces of any build can be asked: what the
//! shooter's screen showed, what the server made of it, and where the target was for each of them. What the tables do not
//! say is `None` here, and is never guessed.

mod asked;
mod carried;
mod correction;
mod line;
mod near;
mod places;
mod reader;
mod rejudged;
mod shot;

pub use asked::{Asked, NotThere, ShotName, player};
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

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A shot.
    Shot(Box<Shot>),
    /// A correction.
    Correction(Box<Correction>),
}

impl Why {
    /// Finds it in a trace. Whoever asks more than once asks a [`Reader`].
    ///
    /// # Errors
    /// When it is not there; the error names what is near.
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

/// A row's cell, where the table has the column.
fn cell<T: Copy>(column: &[T], row: usize) -> Option<T> {
    column.get(row).copied()
}

/// The same of a measure, which may be known for some rows only.
fn measure(column: &[f32], row: usize) -> Option<f32> {
    cell(column, row).filter(|value| value.is_finite())
}
