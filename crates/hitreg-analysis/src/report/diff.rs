//! The page of a comparison of two traces.

use super::divergence::{divergence, owner};
use super::figures::{clipped, count, counted, seconds};
use super::follow::follow;
use super::hits::hits;
use super::layout::WIDTH;
use super::page::Page;
use super::side_by_side::{interpolation, reconciliation};
use super::text_diff::settings;
use crate::diff::{DifferenceClass, Divergence, Status, TableDiff, TraceDiff, TraceVerdict};

/// One line for CI: `differs at tick 812 (12.688 s): bodies, entity 1, origin.x; hits: A 40, B 39`.
pub fn diff_line(diff: &TraceDiff) -> String {
    let rows: u64 = diff.tables.iter().map(|t| t.rows.compared).sum();
    let within: u64 = diff.tables.iter().map(|t| t.rows.within_tolerance).sum();
    let line = match diff.verdict {
        TraceVerdict::Untestable => {
            format!("untestable: {}", diff.untestable.as_deref().unwrap_or("nothing to compare"))
        }
        TraceVerdict::Same if within > 0 => {
            format!("same: {}, {} within tolerance", counted(rows, "row"), count(within))
        }
        TraceVerdict::Same => {
            let lacks = |table: &&TableDiff| matches!(table.status, Status::OnlyInA | Status::OnlyInB);
            let lone = diff.tables.iter().filter(lacks).count() as u64;
            let both = counted(diff.tables.len() as u64 - lone, "table");
            let not_compared =
                if lone > 0 { format!("; not compared: {}", counted(lone, "table")) } else { String::new() };
            format!("same: {both}, {}{not_compared}", counted(rows, "row"))
        }
        TraceVerdict::Differs => match &diff.first {
            Some(first) => {
                let drift = if diff.worst == Some(DifferenceClass::Drift) { "; drift only" } else { "" };
                let line = |both| format!("differs {}{}{drift}", first_words(first, both), hit_words(diff));
                // The time repeats the tick, and gives way in a long line.
                if line(true).chars().count() <= WIDTH { line(true) } else { line(false) }
            }
            None => format!("differs: {}", shape_words(diff)),
        },
    };
    // A name from a file may be long.
    let words: Vec<String> = line.split_whitespace().map(|word| clipped(word, WIDTH)).collect();
    words.join(" ")
}

/// The changed shots that the full report lists.
const MOST_SHOTS: usize = 100;

/// The full report: the line for CI, the tables, the first divergence, what follows from it, shots, and distributions.
pub fn diff_page(diff: &TraceDiff) -> Page {
    let mut page = Page::default();
    page.note(0, &diff_line(diff));
    for note in diff.notes_besides_settings() {
        page.note(2, note);
    }
    tables(&mut page, diff);
    if diff.verdict == TraceVerdict::Untestable {
        changed_settings(&mut page, diff, 3, usize::MAX);
        return page;
    }
    page.append(diff.first.as_ref().map(divergence).unwrap_or_default());
    changed_settings(&mut page, diff, 3, usize::MAX);
    page.append(follow(&diff.tables));
    page.append(hits(&diff.hits, MOST_SHOTS));
    page.append(reconciliation(&diff.reconciliation));
    page.append(interpolation(&diff.interpolation));
    page
}

/// The changed settings. They come after the first effect.
pub(super) fn changed_settings(page: &mut Page, diff: &TraceDiff, context: usize, most: usize) {
    if diff.settings[0] != diff.settings[1] {
        page.blank();
        settings(page, diff, context, most);
    }
}

/// The place of the first difference: with tick and time, or with the tick alone.
fn first_words(first: &Divergence, both: bool) -> String {
    let tick = first.place.tick.map(|tick| format!("at tick {tick}"));
    let at = match (tick, first.place.at_us.map(seconds)) {
        (Some(tick), Some(at)) if both => format!("{tick} ({at})"),
        (tick, at) => tick.or(at.map(|at| format!("at {at}"))).unwrap_or_default(),
    };
    let what = [Some(first.table.clone()), owner(&first.place), first.field.clone()];
    format!("{at}: {}", what.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn hit_words(diff: &TraceDiff) -> String {
    let hits = &diff.hits;
    let alike = hits.both + hits.other_target + hits.other_wound;
    match hits.changed.len() {
        0 => String::new(),
        _ => format!("; hits: A {}, B {}", alike + hits.only_a, alike + hits.only_b),
    }
}

fn shape_words(diff: &TraceDiff) -> String {
    let named = |table: &&TableDiff| !matches!(table.status, Status::Same | Status::WithinTolerance);
    let names: Vec<String> = diff.tables.iter().filter(named).map(|t| format!("{} {}", t.name, judgement(t))).collect();
    names.join(", ")
}

fn tables(page: &mut Page, diff: &TraceDiff) {
    if diff.tables.is_empty() {
        return;
    }
    let row = |table: &TableDiff| {
        let rows = &table.rows;
        let counts = [rows.a, rows.b, rows.differing, rows.only_in_a, rows.only_in_b].map(count);
        [clipped(&table.name, 16)].into_iter().chain(counts).chain([from(table)])
    };
    let columns = [">rows in A", ">rows in B", ">differing", ">only A", ">only B", ""];
    page.section("tables", &columns, diff.tables.iter().map(row));
    for table in &diff.tables {
        details(page, table);
    }
}

pub(super) fn judgement(table: &TableDiff) -> &'static str {
    match table.status {
        Status::Same if table.rows.compared == 0 => "no rows",
        Status::Same => "same",
        Status::WithinTolerance => "within",
        Status::Differs => "differs",
        Status::OnlyInA => "only in A",
        Status::OnlyInB => "only in B",
        Status::Untestable => "untestable",
    }
}

/// The table's status, or the time from which it differs.
fn from(table: &TableDiff) -> String {
    let at = table.first.as_ref().and_then(|first| first.place.at_us);
    match (table.status, at) {
        (Status::Differs, Some(at)) => format!("from {}", seconds(at)),
        _ => judgement(table).to_owned(),
    }
}

/// Details that the row of numbers does not show.
pub(super) fn column_words(table: &TableDiff) -> Vec<String> {
    let shape = &table.shape;
    let kinds = [
        (&shape.only_in_a, "only in A"),
        (&shape.only_in_b, "only in B"),
        (&shape.other_type, "with another type in B"),
    ];
    let named = kinds.into_iter().filter(|(columns, _)| !columns.is_empty());
    named.map(|(columns, what)| format!("columns {what}: {}", columns.join(", "))).collect()
}
fn details(page: &mut Page, table: &TableDiff) {
    let mut detail = |text: &str| page.note(2, &format!("{}: {text}", table.name));
    if let Some(reason) = &table.untestable {
        detail(reason);
    }
    column_words(table).iter().for_each(|words| detail(words));
    let (other_time, within) = (table.rows.other_time, table.rows.within_tolerance);
    if other_time > 0 {
        detail(&format!("not compared, because their times differ: {}", counted(other_time, "row")));
    }
    if within > 0 {
        detail(&format!("within tolerance: {}", counted(within, "row")));
    }
}
