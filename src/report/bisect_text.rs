//! A bisection to the tick in words.

use super::divergence_text::{divergence, place};
use super::text::{counted, wrapped};
use crate::bisect::{Reran, TickBisection};
use crate::diff::{Side, Verdict};

/// What `bisect ticks` found.
pub fn bisect_text(found: &TickBisection) -> String {
    let (first, cause) = match (&found.verdict, &found.first) {
        (Verdict::Same, _) => return format!("the same through {}\n", counted(found.ticks_compared, "tick")),
        (Verdict::Untestable, _) => {
            let reason = found.untestable.as_deref().unwrap_or("nothing to compare");
            return wrapped("", &format!("untestable: {reason}"));
        }
        (Verdict::Differs, None) => return "they differ in their tables and columns, not in any row\n".to_owned(),
        (Verdict::Differs, Some(first)) => (first, &found.cause),
    };
    let field = first.field.as_ref().map_or(String::new(), |field| format!(", {field}"));
    let mut text = wrapped("", &format!("{}{field}", place(&first.table, &first.place)));
    if let Some(cause) = cause {
        text.push_str(&wrapped("", &format!("cause: {} ({})", cause.cause.name(), cause.evidence)));
    }
    match &found.reran {
        Some(Reran::Failed { build, reason }) => {
            let side = match build {
                Side::A => "A",
                Side::B => "B",
            };
            text.push_str(&wrapped("", &format!("the build of {side} could not run its usercmds again: {reason}")));
        }
        Some(Reran::Same | Reran::Differs { .. }) | None => {}
    }
    for note in &found.notes {
        text.push_str(&wrapped("  ", note));
    }
    text.push('\n');
    text.push_str(&divergence(first));
    text
}
