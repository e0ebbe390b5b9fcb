//! Compares two replays of one log by one build. A build that disagrees with itself proves nothing about a difference.

use super::EngineError;
use crate::build::UntestableBuild;
use hitreg_analysis::diff::{DiffOptions, Divergence, TraceVerdict, diff};
use hitreg_log::trace::TraceSource;

/// The reason why a build cannot be judged, if the second replay of its log differs from the first. `None` if both
/// agree within the options.
///
/// # Errors
/// Fails if the traces cannot be compared with these options.
pub(super) fn disagreement(
    first: &dyn TraceSource,
    again: &dyn TraceSource,
    options: &DiffOptions,
) -> Result<Option<UntestableBuild>, EngineError> {
    let found = diff(first, again, &DiffOptions { brief: true, ..options.clone() })?;
    let reason = match (found.verdict, found.untestable) {
        (TraceVerdict::Same, _) => return Ok(None),
        (TraceVerdict::Untestable, Some(reason)) => format!("its two replays cannot be compared: {reason}"),
        (TraceVerdict::Untestable | TraceVerdict::Differs, _) => {
            format!("two replays by this build differ, first in {}", first_place(found.first.as_ref()))
        }
    };
    Ok(Some(UntestableBuild::because(reason)))
}

/// Says that a build gave a trace in its first replay of a log, and not in its second.
pub(super) fn only_once(reason: &str) -> String {
    format!("replays this log only the first time: {reason}")
}

/// The table, the tick and the column of a divergence, as text. Traces with different tables have no divergence.
pub(super) fn first_place(first: Option<&Divergence>) -> String {
    first.map_or("their columns".to_owned(), |first| {
        let tick = first.place.tick.map_or(String::new(), |tick| format!(", tick {tick}"));
        format!("`{}`{tick}, {}", first.table, first.field.as_deref().unwrap_or("a row that one lacks"))
    })
}
