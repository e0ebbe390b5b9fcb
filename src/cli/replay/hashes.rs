//! Describes whether a replay matches the recorded session.

use super::{HashReport, ReplayReport, SessionPart};
use crate::cli::figures::count;
use crate::cli::page::{BAD, GOOD, Page, TextStyle, UNSURE};
use crate::units::{ClockTime, Micros};

pub(super) fn print(page: &mut Page, report: &ReplayReport<'_>) {
    let HashReport { compared, first_difference_tick, missing } = report.hashes;
    if compared > 0 {
        let (style, text) = compared_in_words(report, compared, first_difference_tick);
        page.styled(style, &text);
    }
    if let Some(SessionPart { from_us, to_us }) = missing {
        let [from, to] = [from_us, to_us].map(|at| ClockTime(Micros(at)));
        let text = format!(
            "A part is missing, from {from} to {to}: what is told of the time after it is not what was played."
        );
        page.marked(2, BAD, &text);
    }
}

fn compared_in_words(
    report: &ReplayReport<'_>,
    compared: u64,
    first_difference_tick: Option<u32>,
) -> (TextStyle, String) {
    match first_difference_tick {
        None if report.hashes.missing.is_some() => {
            (UNSURE, format!("  as recorded up to what is missing: {} tick hashes are the same", count(compared)))
        }
        None => {
            let so_far = if report.part.is_some() { " as far as it ran" } else { "" };
            (GOOD, format!("  as recorded{so_far}: all {} tick hashes are the same", count(compared)))
        }
        Some(tick) if report.settings_changed.is_empty() => {
            (BAD, format!("  NOT as recorded: tick {tick} is the first that differs (`hitreg verify` says more)"))
        }
        Some(tick) => (UNSURE, format!("  diverges from the recording at tick {tick}, under other settings")),
    }
}
