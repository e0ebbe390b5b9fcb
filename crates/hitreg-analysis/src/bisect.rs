//! Bisecting a divergence to the tick, the entity, the field, and the cause.
//!
//! A divergence may heal, so that a later tick's agreement says nothing about the ticks before it: everything is looked
//! at once, in one pass, and nothing is recorded a second time.

mod cause;
pub mod predicted;
mod rerun;

use serde::Serialize;

pub use cause::{Found, Why};
pub use predicted::{Predicted, predicted};
pub use rerun::{Reran, Rerun, Step};

use crate::diff::{DiffError, DiffOptions, Divergence, Verdict, diff};
use hitreg_log::trace::Trace;

/// Where two runs part, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TickBisection {
    /// Whether they part at all.
    pub verdict: Verdict,
    /// Why they cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// What a reader should know of the runs: that they are of different logs, modes or settings.
    pub notes: Vec<String>,
    /// How many ticks both runs have.
    pub ticks_compared: u64,
    /// The first divergence in session time: its tick, entity and field.
    pub first: Option<Divergence>,
    /// Why they part there.
    pub cause: Option<Found>,
    /// What the usercmds of that tick do when they are run again from the last common state.
    pub reran: Option<Reran>,
}

/// Finds where two runs part, and why. `rerun` runs one usercmd in one of the two builds; without it a build is blamed
/// only because nothing else differs.
///
/// To hold a trace against its log, compare it with [`recorded`](hitreg_log::recorded::recorded()) under [`DiffOptions::overlap_only`].
///
/// # Errors
/// When a tolerance is about a column that neither trace has.
pub fn bisect_ticks(
    a: &Trace,
    b: &Trace,
    options: &DiffOptions,
    rerun: Option<&mut Rerun<'_>>,
) -> Result<TickBisection, DiffError> {
    let found = diff(a, b, options)?;
    let ticks_compared = found.tables.iter().find(|t| t.name == "ticks").map_or(0, |t| t.rows.compared);
    let mut bisection = TickBisection {
        verdict: found.verdict,
        untestable: found.untestable,
        notes: found.notes,
        ticks_compared,
        first: found.first,
        cause: None,
        reran: None,
    };
    if let Some(first) = &bisection.first {
        bisection.reran = rerun.and_then(|rerun| rerun::rerun([a, b], first, rerun));
        bisection.cause = Some(cause::classify([a, b], first, bisection.reran.as_ref()));
    }
    Ok(bisection)
}
