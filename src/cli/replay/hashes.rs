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
        let text = format!("A part is missing, from {from} to {to}: results after it do not match the played session.");
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
            (UNSURE, format!("  as recorded up to the missing part: {} tick hashes match", count(compared)))
        }
        None => {
            let so_far = if report.part.is_some() { ", up to the end of the part" } else { "" };
            (GOOD, format!("  as recorded{so_far}: all {} tick hashes match the recording", count(compared)))
        }
        Some(tick) if report.settings_changed.is_empty() => {
            let log = &report.path;
            (BAD, format!("  NOT as recorded from tick {tick} on. Run: hitreg bisect ticks {log}"))
        }
        Some(tick) => (UNSURE, format!("  differs from the recording from tick {tick} on, because of other settings")),
    }
}
