//! The short answer of a comparison: what differs, where first, and which shots changed.

use super::diff::{changed_settings, column_words, diff_line, diff_page, judgement};
use super::divergence::{place, values};
use super::figures::{clipped, count, counted, seconds};
use super::hits::{change, hits, more};
use super::page::Page;
use super::text_diff::settings;
use crate::diff::{
    ChangedShots, DiffScope, ShotChange, Status, TableDiff, TraceDiff, TraceVerdict, settings_that_differ,
};

/// A sentence and about 25 lines at most; for equal traces the sentence and its notes. For hits ([`DiffScope::Hits`]): every changed
/// shot, with the result on the server and on the shooter's screen.
pub fn diff_answer(diff: &TraceDiff, on: DiffScope) -> Page {
    if diff.verdict == TraceVerdict::Untestable {
        return diff_page(diff);
    }
    let mut page = Page::default();
    if let Some(story) = story(diff) {
        page.paragraph(0, &story);
    }
    page.note(0, &diff_line(diff));
    for note in diff.notes_besides_settings() {
        page.note(2, note);
    }
    if diff.verdict == TraceVerdict::Same {
        return page;
    }
    if on == DiffScope::Hits {
        page.append(hits(&diff.hits, ChangedShots::MOST));
        changed_settings(&mut page, diff, 0, MOST_SETTINGS_LINES);
        return page;
    }
    if let Some(first) = &diff.first {
        page.blank();
        page.note(0, &format!("first difference: {}", place(&first.table, &first.place)));
        values(&mut page, first);
    }
    settings(&mut page, diff, 0, MOST_SETTINGS_LINES);
    tables(&mut page, diff);
    shots(&mut page, diff);
    page
}

/// The main answer: how many shots changed, since when, and under which changed settings.
fn story(diff: &TraceDiff) -> Option<String> {
    let changed = &diff.hits.changed;
    if changed.is_empty() {
        return None;
    }
    let hits = &diff.hits;
    let first = changed.first_hits().next().and_then(|shot| shot.at_us());
    let since = first.map(|at| format!(", the first at {}", seconds(at))).unwrap_or_default();
    let under = match &settings_that_differ([&diff.settings[0], &diff.settings[1]])[..] {
        [] => String::new(),
        [one] => format!("; {} is {} in B", one.key, one.b),
        more => format!("; {} differ", counted(more.len() as u64, "setting")),
    };
    let outcomes = format!("{} changed", counted(hits.outcomes_changed(), "shot"));
    let missed = match hits.other_reason {
        0 => String::new(),
        some => format!(". {} hit in neither, for other reasons or on one side only", counted(some, "more shot")),
    };
    Some(format!("{outcomes}{since}{under}{missed}"))
}

const MOST_TABLES: usize = 6;
const MOST_SETTINGS_LINES: usize = 16;
const MOST_SHOTS: usize = 4;

fn tables(page: &mut Page, diff: &TraceDiff) {
    let differing: Vec<&TableDiff> =
        diff.tables.iter().filter(|t| !matches!(t.status, Status::Same | Status::WithinTolerance)).collect();
    page.blank();
    for table in differing.iter().take(MOST_TABLES) {
        let rows = &table.rows;
        let lacking = if diff.overlap_only { 0 } else { lacking(table) };
        let apart = rows.differing + lacking;
        let at = table.first.as_ref().and_then(|first| first.place.at_us);
        let text = match (table.status, at) {
            (Status::Differs, Some(at)) if apart == 0 && rows.other_time > 0 => {
                format!("{} with another time in B, from {} on", counted(rows.other_time, "row"), seconds(at))
            }
            (Status::Differs, Some(at)) => {
                let of = rows.compared + lacking;
                format!("{} of {} differ, from {} on", count(apart), counted(of, "row"), seconds(at))
            }
            (Status::Differs, None) if apart == 0 && !column_words(table).is_empty() => column_words(table).join("; "),
            _ => judgement(table).to_owned(),
        };
        page.note(0, &format!("{}: {text}", clipped(&table.name, 24)));
    }
    if let Some(more) = differing.len().checked_sub(MOST_TABLES).filter(|more| *more > 0) {
        page.note(0, &format!("and {}", counted(more as u64, "more table")));
    }
    not_compared(page, diff, "their times differ", |table| table.rows.other_time);
    if diff.overlap_only {
        not_compared(page, diff, "only one side has them", lacking);
    }
}

/// The number of rows that one side lacks.
fn lacking(table: &TableDiff) -> u64 {
    table.rows.only_in_a + table.rows.only_in_b
}

fn not_compared(page: &mut Page, diff: &TraceDiff, reason: &str, rows: impl Fn(&TableDiff) -> u64) {
    let left_out: Vec<u64> = diff.tables.iter().map(rows).filter(|rows| *rows > 0).collect();
    if !left_out.is_empty() {
        let tables = counted(left_out.len() as u64, "table");
        let rows = counted(left_out.iter().sum(), "row");
        page.note(0, &format!("not compared, because {reason}: {rows} in {tables}"));
    }
}

fn shots(page: &mut Page, diff: &TraceDiff) {
    let found = &diff.hits;
    if found.changed.is_empty() {
        return;
    }
    page.blank();
    let changed_in_both = found.other_target + found.other_wound;
    let otherwise =
        if changed_in_both > 0 { format!(" ({} otherwise)", count(changed_in_both)) } else { String::new() };
    let [in_both, only_a, only_b] = [found.both + changed_in_both, found.only_a, found.only_b].map(count);
    page.note(0, &format!("hits: {in_both} in both{otherwise}, {only_a} in A only, {only_b} in B only"));
    // Changed hits come before misses with another reason.
    let misses = found.changed.first().filter(|shot| shot.change == ShotChange::OtherReason);
    for shot in found.changed.first_hits().chain(misses).take(MOST_SHOTS) {
        page.note(2, &change(&shot));
    }
    let shown = found.outcomes_changed().min(MOST_SHOTS as u64);
    let changed = found.outcomes_changed() - shown;
    let misses = found.other_reason.saturating_sub(MOST_SHOTS as u64 - shown);
    if let Some(more) = more(changed, misses) {
        page.note(2, &format!("and {more} (--on hits lists all)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{DiffOptions, diff};
    use hitreg_log::trace::schema::ticks;
    use hitreg_log::trace::{Trace, TraceHeader};

    fn trace(hashes: impl Iterator<Item = (u32, u64)>) -> Trace {
        let mut rows = ticks::Writer::default();
        hashes.for_each(|(tick, hash)| rows.push(ticks::Row { tick, at_us: i64::from(tick) * 16_000, hash }));
        Trace { header: TraceHeader::default(), tables: vec![rows.finish(Vec::new())] }
    }

    /// With `--overlap`, rows that one side lacks are no difference.
    #[test]
    fn overlap_counts_only_rows_that_both_sides_have() {
        let whole = trace((1..=9).map(|tick| (tick, 1)));
        let part = trace((3..=6).map(|tick| (tick, if tick == 5 { 2 } else { 1 })));
        let page = |overlap_only| {
            let options = DiffOptions { overlap_only, ..DiffOptions::default() };
            diff_answer(&diff(&whole, &part, &options).expect("no tolerance"), DiffScope::default()).text()
        };
        let overlap = page(true);
        assert!(overlap.contains("ticks: 1 of 4 rows differ, from 0.080 s on"), "{overlap}");
        assert!(overlap.contains("not compared, because only one side has them: 5 rows in 1 table"), "{overlap}");
        let all = page(false);
        assert!(all.contains("ticks: 6 of 9 rows differ, from 0.016 s on"), "{all}");
        assert!(!all.contains("not compared"), "{all}");
    }
}
