//! The page of a bisection to the tick.

use super::divergence::{divergence, place};
use super::figures::counted;
use super::page::Page;
use crate::bisect::{RerunResult, TickBisection};
use crate::diff::{TraceSide, TraceVerdict};

/// The page of a `bisect ticks` result.
pub fn bisect_page(found: &TickBisection) -> Page {
    let mut page = Page::default();
    let first = match (&found.verdict, &found.first) {
        (TraceVerdict::Differs, Some(first)) => first,
        (TraceVerdict::Differs, None) => {
            page.line("they differ in their tables and columns, not in any row");
            return page;
        }
        (TraceVerdict::Same, _) => {
            page.line(&match found.ticks_compared {
                // Clients' recordings have no server ticks.
                0 => "the same".to_owned(),
                ticks => format!("the same through {}", counted(ticks, "tick")),
            });
            return page;
        }
        (TraceVerdict::Untestable, _) => {
            let reason = found.untestable.as_deref().unwrap_or("nothing to compare");
            page.note(0, &format!("untestable: {reason}"));
            return page;
        }
    };
    let field = first.field.as_ref().map_or(String::new(), |field| format!(", {field}"));
    page.note(0, &format!("{}{field}", place(&first.table, &first.place)));
    if let Some(cause) = &found.cause {
        page.note(0, &format!("cause: {} ({})", cause.cause.name(), cause.evidence));
    }
    if let Some(RerunResult::Failed { build, reason }) = &found.reran {
        let side = match build {
            TraceSide::A => "A",
            TraceSide::B => "B",
        };
        page.note(0, &format!("the build of {side} could not run its usercmds again: {reason}"));
    }
    for note in &found.notes {
        page.note(2, note);
    }
    page.append(divergence(first));
    page
}
