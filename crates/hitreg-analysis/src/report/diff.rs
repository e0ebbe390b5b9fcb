//! A comparison of two traces for people and CI: the short answer, the full page, and a JUnit report.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::divergence::{divergence, is_time, owner, place, values};
use super::figures::{clipped, count, counted, distance, ms, seconds};
use super::hits::{change, hits, more};
use super::layout::WIDTH;
use super::page::{Page, one_line};
use crate::corpus::paired;
use crate::diff::{
    ChangedShots, DiffScope, DifferenceClass, Divergence, FieldDiff, InterpolationDiff, Reconciliation, RowPlace,
    ShotChange, TableDiff, TableStatus, TraceDiff, TraceVerdict, settings_that_differ,
};
use crate::text_diff::TextDiff;
use hitreg_log::stats::Spread;
use hitreg_log::trace::schema::{bodies, frames};

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
            let lacks = |table: &&TableDiff| matches!(table.status, TableStatus::OnlyInA | TableStatus::OnlyInB);
            let lone = diff.tables.iter().filter(lacks).count() as u64;
            let both = counted(diff.tables.len() as u64 - lone, "table");
            let not_compared =
                if lone > 0 { format!("; not compared: {}", counted(lone, "table")) } else { String::new() };
            format!("same: {both}, {}{not_compared}", counted(rows, "row"))
        }
        TraceVerdict::Differs if diff.is_of_other_parts => {
            "differs: A and B are different parts of a session; --overlap compares common rows".to_owned()
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
const LISTED_SHOTS_MAX: usize = 100;

/// The full report: the line for CI, the tables, the first divergence, what follows from it, shots, and distributions.
pub fn diff_page(diff: &TraceDiff) -> Page {
    let mut page = Page::default();
    line_and_notes(&mut page, diff);
    tables(&mut page, diff);
    if diff.verdict == TraceVerdict::Untestable {
        changed_settings(&mut page, diff, 3, usize::MAX);
        return page;
    }
    diff.first.iter().for_each(|first| divergence(&mut page, first));
    changed_settings(&mut page, diff, 3, usize::MAX);
    follow(&mut page, &diff.tables);
    hits(&mut page, &diff.hits, LISTED_SHOTS_MAX);
    reconciliation(&mut page, &diff.reconciliation);
    interpolation(&mut page, &diff.interpolation);
    page
}

fn line_and_notes(page: &mut Page, diff: &TraceDiff) {
    page.note(0, &diff_line(diff));
    for note in diff.notes_besides_settings() {
        page.note(2, note);
    }
}

/// The changed settings. They come after the first effect.
fn changed_settings(page: &mut Page, diff: &TraceDiff, context: usize, most: usize) {
    if diff.settings[0] != diff.settings[1] {
        page.blank();
        settings_diff(page, diff, context, most);
    }
}

/// The settings of both sides if some differ, with `context` equal settings around each difference.
fn settings_diff(page: &mut Page, diff: &TraceDiff, context: usize, most: usize) {
    let [a, b] = &diff.settings;
    let text = |settings: &[(String, String)]| -> String {
        settings.iter().map(|(key, value)| format!("{}\n", one_line(&format!("{key} = {value}")))).collect()
    };
    let mut found = TextDiff::default();
    found.add(["@@ settings @@", "@@"], &text(a), &text(b), context);
    page.text_diff(&found, most, "with --verbose");
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
    let alike = hits.in_both();
    match hits.changed.len() {
        0 => String::new(),
        _ => format!("; hits: A {}, B {}", alike + hits.only_a, alike + hits.only_b),
    }
}

fn shape_words(diff: &TraceDiff) -> String {
    let named = |table: &&TableDiff| !matches!(table.status, TableStatus::Same | TableStatus::WithinTolerance);
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

fn judgement(table: &TableDiff) -> &'static str {
    match table.status {
        TableStatus::Same if table.rows.compared == 0 => "no rows",
        TableStatus::Same => "same",
        TableStatus::WithinTolerance => "within",
        TableStatus::Differs => "differs",
        TableStatus::OnlyInA => "only in A",
        TableStatus::OnlyInB => "only in B",
        TableStatus::Untestable => "untestable",
    }
}

/// The table's status, or the time from which it differs.
fn from(table: &TableDiff) -> String {
    let at = table.first.as_ref().and_then(|first| first.place.at_us);
    match (table.status, at) {
        (TableStatus::Differs, Some(at)) => format!("from {}", seconds(at)),
        _ => judgement(table).to_owned(),
    }
}

/// Details that the row of numbers does not show.
fn column_words(table: &TableDiff) -> Vec<String> {
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
    line_and_notes(&mut page, diff);
    if diff.verdict == TraceVerdict::Same {
        return page;
    }
    if on == DiffScope::Hits {
        hits(&mut page, &diff.hits, ChangedShots::KEPT_MAX);
        changed_settings(&mut page, diff, 0, SETTINGS_LINES_MAX);
        return page;
    }
    if let Some(first) = &diff.first {
        page.blank();
        page.note(0, &format!("first difference: {}", place(&first.table, &first.place)));
        values(&mut page, first);
    }
    settings_diff(&mut page, diff, 0, SETTINGS_LINES_MAX);
    differing_tables(&mut page, diff);
    changed_shots(&mut page, diff);
    page
}

/// The main answer: how many shots changed, since when, and under which changed settings. `None` for traces of different
/// parts, where most changed shots are only outside of one part.
fn story(diff: &TraceDiff) -> Option<String> {
    let changed = &diff.hits.changed;
    if changed.is_empty() || diff.is_of_other_parts {
        return None;
    }
    let hits = &diff.hits;
    let first = changed.first_hits().next().and_then(|shot| shot.at_us);
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

const TABLES_MAX: usize = 6;
const SETTINGS_LINES_MAX: usize = 16;
const ANSWER_SHOTS_MAX: usize = 4;

fn differing_tables(page: &mut Page, diff: &TraceDiff) {
    let differing: Vec<&TableDiff> =
        diff.tables.iter().filter(|t| !matches!(t.status, TableStatus::Same | TableStatus::WithinTolerance)).collect();
    page.blank();
    for table in differing.iter().take(TABLES_MAX) {
        let rows = &table.rows;
        let lacking = if diff.overlap_only { 0 } else { lacking(table) };
        let apart = rows.differing + lacking;
        let at = table.first.as_ref().and_then(|first| first.place.at_us);
        let text = match (table.status, at) {
            (TableStatus::Differs, Some(at)) if apart == 0 && rows.other_time > 0 => {
                format!("{} with another time in B, from {} on", counted(rows.other_time, "row"), seconds(at))
            }
            (TableStatus::Differs, Some(at)) => {
                let of = rows.compared + lacking;
                format!("{} of {} differ, from {} on", count(apart), counted(of, "row"), seconds(at))
            }
            (TableStatus::Differs, None) if apart == 0 && !column_words(table).is_empty() => {
                column_words(table).join("; ")
            }
            _ => judgement(table).to_owned(),
        };
        page.note(0, &format!("{}: {text}", clipped(&table.name, 24)));
    }
    if let Some(more) = differing.len().checked_sub(TABLES_MAX).filter(|more| *more > 0) {
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

fn changed_shots(page: &mut Page, diff: &TraceDiff) {
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
    for shot in found.changed.first_hits().chain(misses).take(ANSWER_SHOTS_MAX) {
        page.note(2, &change(&shot));
    }
    let shown = found.outcomes_changed().min(ANSWER_SHOTS_MAX as u64);
    let changed = found.outcomes_changed() - shown;
    let misses = found.other_reason.saturating_sub(ANSWER_SHOTS_MAX as u64 - shown);
    if let Some(more) = more(changed, misses) {
        page.note(2, &format!("and {more} (--on hits lists all)"));
    }
}

/// Creates the report. `name` is the name of the suite, such as the paths of the traces. A table that differs is a
/// failure, and a table that cannot be judged an error. If the traces cannot be judged at all, one test case gives the
/// reason.
pub fn diff_junit(name: &str, diff: &TraceDiff) -> Report {
    let mut suite = TestSuite::new(name);
    for table in &diff.tables {
        suite.add_test_case(case(table));
    }
    if let (TraceVerdict::Untestable, Some(reason)) = (diff.verdict, &diff.untestable) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(reason.as_str());
        suite.add_test_case(TestCase::new("traces", status));
    }
    suite.set_system_out(diff_page(diff).text());
    suite.add_property(("summary", diff_line(diff).as_str()));
    let mut report = Report::new("hitreg diff");
    report.add_test_suite(suite);
    report
}

fn case(table: &TableDiff) -> TestCase {
    let (mut status, message) = match table.status {
        TableStatus::Same if table.rows.compared == 0 => {
            (TestCaseStatus::skipped(), Some("neither side has rows".to_owned()))
        }
        TableStatus::Same | TableStatus::WithinTolerance => (TestCaseStatus::success(), None),
        TableStatus::Differs | TableStatus::OnlyInA | TableStatus::OnlyInB => {
            (TestCaseStatus::non_success(NonSuccessKind::Failure), Some(table_line(table)))
        }
        TableStatus::Untestable => {
            (TestCaseStatus::non_success(NonSuccessKind::Error), Some(table.untestable.clone().unwrap_or_default()))
        }
    };
    if let Some(message) = message {
        status.set_message(message);
    }
    let mut case = TestCase::new(table.name.as_str(), status);
    case.set_classname("hitreg.diff");
    case.set_assertions(usize::try_from(table.rows.compared).unwrap_or(usize::MAX));
    case
}

/// Where a table first differs, in one line.
fn table_line(table: &TableDiff) -> String {
    match &table.first {
        Some(first) => {
            let field = first.field.as_ref().map_or(String::new(), |field| format!(", {field}"));
            format!("{}{field}", place(&table.name, &first.place))
        }
        None => format!("{} {}", table.name, judgement(table)),
    }
}

/// Lists every column that differs: how often, for how many entities or players, by how much, from when to when, and
/// whether it heals.
fn follow(page: &mut Page, tables: &[TableDiff]) {
    if tables.iter().all(|table| table.fields.is_empty()) {
        return;
    }
    let rows =
        tables.iter().flat_map(|table| table.fields.iter().take(FIELDS_MAX).map(|field| effect_row(table, field)));
    page.section("effects", &[">rows", ">who", ">largest", "from", "to", "then"], rows);
    for table in tables {
        if let Some(more) = table.fields.len().checked_sub(FIELDS_MAX).filter(|more| *more > 0) {
            page.note(2, &format!("and {} of {}", counted(more as u64, "more column"), clipped(&table.name, 40)));
        }
    }
    let spreads = |table: &&TableDiff| [bodies::NAME, frames::NAME].contains(&&*table.name) && table.spread.len() > 1;
    if let Some(table) = tables.iter().find(spreads) {
        page.note(2, &spread_words(table));
    }
}

/// From one hour on, a time is not shown in milliseconds.
const LONG_US: f64 = 3.6e9;

/// How many columns of one table are listed.
const FIELDS_MAX: usize = 8;

fn effect_row(table: &TableDiff, field: &FieldDiff) -> [String; 7] {
    let largest = field.largest.as_ref().map_or("-".to_owned(), |largest| match is_time(&field.field) {
        true if largest.error < LONG_US => ms(largest.error as i64),
        true => format!("{:.1e} s", largest.error / 1e6),
        false => distance(largest.error),
    });
    let then = match (field.class, field.healed) {
        (DifferenceClass::Drift, true) => "drift reconverges",
        (DifferenceClass::Drift, false) => "drifts",
        (DifferenceClass::Hash | DifferenceClass::Difference, true) => "reconverges",
        (DifferenceClass::Hash | DifferenceClass::Difference, false) => "persists",
    };
    let name = clipped(&format!("{}.{}", table.name, field.field), 32);
    let [rows, series] = [field.rows, field.series].map(count);
    [name, rows, series, largest, when(&field.first), when(&field.last), then.to_owned()]
}

fn when(place: &RowPlace) -> String {
    match (place.at_us, place.tick) {
        (Some(at), _) => seconds(at),
        (None, Some(tick)) => format!("tick {tick}"),
        (None, None) => "-".to_owned(),
    }
}

/// How far a divergence has spread, as text:
/// `spread of bodies: 3 columns of 1 entity at 0.453 s, 5 of 2 by 0.700 s, 9 of 4 by 1.375 s`.
fn spread_words(table: &TableDiff) -> String {
    let (Some(first), Some(last)) = (table.spread.first(), table.spread.last()) else { return String::new() };
    let at = |at_us: Option<i64>| at_us.map_or("an unknown time".to_owned(), seconds);
    let middle = table.spread.get(table.spread.len() / 2).filter(|_| table.spread.len() > 2);
    let middle = middle.map_or(String::new(), |m| format!(", {} of {} by {}", m.fields, m.series, at(m.at_us)));
    let who = match (table.name.as_str(), first.series) {
        (bodies::NAME, 1) => "entity",
        (bodies::NAME, _) => "entities",
        (_, 1) => "player",
        _ => "players",
    };
    format!(
        "spread of {}: {} of {} {who} at {}{middle}, {} of {} by {}",
        table.name,
        counted(first.fields, "column"),
        first.series,
        at(first.at_us),
        last.fields,
        last.series,
        at(last.at_us)
    )
}

/// The table of both traces' predictions.
fn reconciliation(page: &mut Page, both: &Reconciliation) {
    let (a, b) = (&both.a, &both.b);
    if a.checked + b.checked == 0 {
        return;
    }
    let mut rows = vec![
        counts("predictions checked", a.checked, b.checked),
        counts("exact", a.exact, b.exact),
        counts("near", a.near, b.near),
    ];
    let causes = paired([&a.misses_by_cause, &b.misses_by_cause]);
    rows.extend(causes.into_iter().map(|(cause, [a, b])| counts(&format!("misses: {cause}"), a, b)));
    rows.extend(spread("error, units", a.error_units, b.error_units));
    rows.extend(spread("usercmds run again", both.reran_a, both.reran_b));
    page.section("reconciliation", &SIDES, rows);
    let c = &both.corrected;
    if c.both + c.only_a + c.only_b > 0 {
        let of = count(c.both + c.only_a + c.only_b + c.neither);
        let (both, only_a, only_b) = (count(c.both), count(c.only_a), count(c.only_b));
        page.note(
            2,
            &format!("corrected in both {both}, only in A {only_a}, only in B {only_b}, of {of} checked in both"),
        );
    }
}

/// The table of both traces' views: how they drew the other entities.
fn interpolation(page: &mut Page, both: &InterpolationDiff) {
    if both.a.views + both.b.views == 0 {
        return;
    }
    let mut rows = vec![counts("views", both.a.views, both.b.views)];
    rows.extend(paired([&both.a.how, &both.b.how]).into_iter().map(|(how, [a, b])| counts(&how, a, b)));
    page.section("interpolation", &SIDES, rows);
    let compared = count(both.compared.saturating_sub(both.relocated));
    page.note(
        2,
        &match (both.moved, both.distance_units, both.distance_max_units) {
            _ if both.compared <= both.relocated => "nothing that both drew can be compared".to_owned(),
            (0, ..) => format!("drawn in the same places: all {compared} in both"),
            (moved, Some(apart), Some(max)) => format!(
                "drawn apart: {} of {compared}; distance p50 {}, p95 {}, p99 {}, max {} units",
                count(moved),
                distance(f64::from(apart.p50)),
                distance(f64::from(apart.p95)),
                distance(f64::from(apart.p99)),
                distance(f64::from(max)),
            ),
            (moved, ..) => format!("drawn apart: {} of {compared}", count(moved)),
        },
    );
    if both.relocated > 0 {
        let views = counted(both.relocated, "view");
        page.note(2, &format!("excluded: {views} of entities that spawned or teleported at another time in B"));
    }
}

const SIDES: [&str; 2] = [">A", ">B"];

fn counts(what: &str, a: u64, b: u64) -> [String; 3] {
    [clipped(what, 40), count(a), count(b)]
}

fn spread(what: &str, a: Option<Spread>, b: Option<Spread>) -> Vec<[String; 3]> {
    type Part = fn(Spread) -> f32;
    let parts: [(&str, Part); 3] = [("p50", |s| s.p50), ("p95", |s| s.p95), ("max", |s| s.max)];
    let text = |spread: Option<Spread>, part: Part| spread.map_or("-".to_owned(), |s| distance(f64::from(part(s))));
    let row = |(name, part): &(&str, Part)| [format!("{what}, {name}"), text(a, *part), text(b, *part)];
    if a.is_none() && b.is_none() { Vec::new() } else { parts.iter().map(row).collect() }
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
