//! Bisects a divergence to the tick, the entity, the field and the cause.
//!
//! A divergence may heal, so agreement in a later tick does not show that earlier ticks agree. Therefore one pass
//! compares all ticks, and nothing is recorded twice.

mod around;
mod cause;
mod changed_shot;
pub mod predicted;
mod rerun;

use serde::Serialize;

pub use cause::{CauseFinding, DivergenceCause, DivergenceOrigin};
pub use predicted::{PredictionTraces, predicted};
pub use rerun::{RerunFn, RerunResult, RerunStep, StateOwner};

use crate::diff::{DiffError, DiffOptions, Divergence, TraceVerdict, diff};
use hitreg_log::trace::TraceSource;

/// Where two runs diverge, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TickBisection {
    /// Whether the runs diverge.
    pub verdict: TraceVerdict,
    /// Why the runs cannot be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untestable: Option<String>,
    /// Notes on what differs between the runs' logs, modes and settings.
    pub notes: Vec<String>,
    /// How many ticks both runs have.
    pub ticks_compared: u64,
    /// The first divergence in session time: its tick, entity and field.
    pub first: Option<Divergence>,
    /// Why the runs diverge there.
    pub cause: Option<CauseFinding>,
    /// The result of running that tick's usercmds again from the last common state.
    pub reran: Option<RerunResult>,
}

/// Finds where two runs diverge, and why. Of traces in files, only rows at the divergence are kept. `rerun` runs one usercmd in one of the two builds. Without it, the cause is a
/// build only if nothing else differs.
///
/// To compare a trace with its log, pass [`recorded`](hitreg_log::recorded::recorded()) and set
/// [`DiffOptions::overlap_only`].
///
/// # Errors
/// When neither trace has a column that a tolerance names, or a trace cannot be read.
pub fn bisect_ticks(
    a: &dyn TraceSource,
    b: &dyn TraceSource,
    options: &DiffOptions,
    rerun: Option<&mut RerunFn<'_>>,
) -> Result<TickBisection, DiffError> {
    let found = diff(a, b, &DiffOptions { brief: true, ..options.clone() })?;
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
        let around = |trace| around::around(trace, first).map_err(DiffError::Unread);
        let (around_a, around_b) = (around(a)?, around(b)?);
        let traces = [&*around_a, &*around_b];
        bisection.reran = rerun.and_then(|rerun| rerun::rerun(traces, first, rerun));
        let have_executed = [a, b].into_iter().all(around::has_executed);
        bisection.cause = Some(cause::classify(traces, have_executed, first, bisection.reran.as_ref()));
    }
    Ok(bisection)
}
