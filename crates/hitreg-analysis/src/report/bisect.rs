//! The page of a bisection to the tick.

use super::divergence::{context, place, values};
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
            page.line("the sides have different tables or columns, but no different row");
            return page;
        }
        (TraceVerdict::Same, _) => {
            page.line(&match found.ticks_compared {
                // Clients' recordings have no server ticks.
                0 => "same".to_owned(),
                ticks => format!("same: all {} agree", counted(ticks, "tick")),
            });
            return page;
        }
        (TraceVerdict::Untestable, _) => {
            let reason = found.untestable.as_deref().unwrap_or("nothing to compare");
            page.note(0, &format!("untestable: {reason}"));
            return page;
        }
    };
    page.note(0, &format!("First divergence: {}", place(&first.table, &first.place)));
    values(&mut page, first);
    if let Some(cause) = &found.cause {
        page.note(0, &format!("cause: {} ({})", cause.cause.name(), cause.evidence));
    }
    if let Some(RerunResult::Failed { build, reason }) = &found.reran {
        let side = match build {
            TraceSide::A => "A",
            TraceSide::B => "B",
        };
        page.note(0, &format!("the build of {side} could not run the usercmds again: {reason}"));
    }
    for note in &found.notes {
        // The evidence can already name a changed setting.
        if found.cause.as_ref().is_none_or(|cause| !cause.evidence.contains(note)) {
            page.note(2, note);
        }
    }
    page.append(context(first));
    page
}
