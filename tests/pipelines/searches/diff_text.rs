//! The text of comparisons and bisections, as snapshots.

use crate::disc::DiscRules;
use crate::traces::{replay_with, session, set, small};
use hitreg::bisect::{RerunStep, bisect_ticks};
use hitreg::diff::{CellValue, DiffOptions, DiffScope, NamedValue, TraceDiff, TraceSide, diff};
use hitreg::report::{bisect_page, diff_answer, diff_junit, diff_line, diff_page};
use hitreg::trace::Trace;

fn diff_of(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

fn assert_reads(name: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than the page: {line}");
        assert_eq!(line, line.trim_end(), "blanks at the end of a line");
    }
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Player 1 is slightly off for three ticks, and a hit of player 0 becomes a miss.
fn with_a_bug() -> Trace {
    let mut b = small();
    set(&mut b, "bodies", "origin.x", 7, f64::from(f32::from_bits(16f32.to_bits() + 1)));
    set(&mut b, "bodies", "origin.x", 9, 20.5);
    set(&mut b, "bodies", "velocity.x", 9, 251.0);
    set(&mut b, "bodies", "origin.x", 11, 24.75);
    for tick in 3..8 {
        set(&mut b, "ticks", "hash", tick, tick as f64);
    }
    set(&mut b, "views", "origin.x", 8, 26.0);
    set(&mut b, "views", "how", 8, 1.0);
    set(&mut b, "shots", "reason", 1, 0.0);
    set(&mut b, "shots", "target", 1, 1.0);
    set(&mut b, "shots", "hitgroup", 1, 1.0);
    set(&mut b, "shots", "damage", 1, 24.0);
    set(&mut b, "shots", "pellets", 1, 1.0);
    set(&mut b, "shots", "rewind_us", 1, 120_000.0);
    set(&mut b, "corrections", "result", 1, 0.0);
    set(&mut b, "corrections", "error_units", 1, 0.0);
    set(&mut b, "corrections", "cause", 1, 0.0);
    b
}

#[test]
fn equal_traces_read_as_the_same() {
    assert_reads("diff_same", &diff_page(&diff_of(&small(), &small())).text());
}

#[test]
fn a_bug_reads_as_its_first_divergence() {
    let found = diff_of(&small(), &with_a_bug());
    assert_reads("diff_bug", &diff_page(&found).text());
    assert_reads("diff_bug_line", &diff_line(&found));
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("diff_bug_json", serde_json::to_string_pretty(&found).expect("JSON"));
        insta::assert_snapshot!("diff_bug_junit", diff_junit("a.hittrace b.hittrace", &found).to_string().expect("XML"));
    });
}

#[test]
fn the_answer_comes_before_the_evidence() {
    let same = diff_answer(&diff_of(&small(), &small()), DiffScope::Any).text();
    assert_eq!(same.lines().count(), 1, "{same}");
    let found = diff_of(&small(), &with_a_bug());
    assert_reads("diff_bug_answer", &diff_answer(&found, DiffScope::Any).text());
    let hits = diff_answer(&found, DiffScope::Hits).text();
    assert_reads("diff_bug_hits", &hits);
    assert!(!hits.contains("bodies.origin"), "{hits}");
    let log = session(3, 6.0, DiscRules { push_units: 4.0, ..DiscRules::default() });
    let text = diff_answer(
        &diff_of(&replay_with(&log, &[]), &replay_with(&log, &["interpolation.lerp_ms=50"])),
        DiffScope::Any,
    )
    .text();
    assert!(text.lines().count() <= 26 && !text.contains('…'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("hits: A ") && text.contains("in A only"), "{text}");
}

/// A miss for another reason comes before a changed hit, and does not count as a changed shot.
#[test]
fn the_first_changed_shot_is_one_that_counts() {
    let (mut a, mut b) = (small(), with_a_bug());
    set(&mut a, "shots", "reason", 0, 1.0);
    set(&mut b, "shots", "reason", 0, 2.0);
    let text = diff_answer(&diff_of(&a, &b), DiffScope::Any).text();
    assert!(text.starts_with("1 shot changed, the first at 0.096 s. 1 more shot hit in neither"), "{text}");
}

/// The last line has the counts of the first.
#[test]
fn the_shots_below_are_those_that_the_first_line_counts() {
    let log = session(3, 12.0, DiscRules { push_units: 4.0, ..DiscRules::default() });
    let mut found = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["lag_compensation.enabled=false"]));
    let (changed, misses) = (found.hits.outcomes_changed(), 24);
    assert!(changed > 5, "{changed}");
    found.hits.other_reason = misses;
    let text = diff_answer(&found, DiffScope::Any).text();
    let more = format!("and {} more changed shots, {misses} more that hit in neither", changed - 4);
    assert!(text.contains(&more) && text.starts_with(&format!("{changed} shots changed, ")), "{more}\n{text}");
    // The long page uses the same words for the shots that it does not list.
    found.hits.only_a += 200;
    let text = diff_page(&found).text().split_whitespace().collect::<Vec<_>>().join(" ");
    let left_out = found.hits.outcomes_changed() - found.hits.changed.first().take(100).count() as u64;
    let more = format!("and {left_out} more changed shots, {misses} more that hit in neither (--format json has all)");
    assert!(text.contains(&more), "{more}\n{text}");
}

#[test]
fn a_place_has_the_tick_and_the_time_of_one_side() {
    let (a, mut b) = (small(), small());
    for (row, at_us) in (2..8).zip([70_000.0, 86_000.0, 102_000.0, 118_000.0, 134_000.0, 150_000.0]) {
        set(&mut b, "ticks", "at_us", row, at_us);
    }
    // Usercmd 4 runs in A in tick 4, at 64 ms, and in B in tick 3, at 70 ms.
    set(&mut b, "executed", "tick", 6, 3.0);
    for (a, b) in [(&a, &b), (&b, &a)] {
        let found = diff_of(a, b);
        let first = found.tables.iter().find(|table| table.name == "executed").and_then(|table| table.first.as_ref());
        let place = &first.expect("a difference").place;
        assert_eq!((place.tick, place.at_us, place.command), (Some(4), Some(64_000), Some(4)));
    }
}

/// Rows of other times are not compared, so the page does not say how many of them differ.
#[test]
fn rows_of_other_times_are_counted_apart() {
    let mut b = small();
    set(&mut b, "ticks", "at_us", 4, 81_000.0);
    for row in 0..16 {
        set(&mut b, "frames", "at_us", row, f64::from(row as u32 / 2 + 1) * 16_000.0 - 7_998.0);
    }
    let text = diff_answer(&diff_of(&small(), &b), DiffScope::Any).text();
    assert!(text.contains("\nticks: 1 row with another time in B, from 0.080 s on\nframes: 16 rows with another time in B, from 0.008 s on\n"), "{text}");
    assert!(text.contains("\nnot compared, because their times differ: 33 rows in 4 tables\n"), "{text}");
}

#[test]
fn other_settings_read_as_their_effects() {
    let (mut a, mut b) = (small(), small());
    a.header.settings = vec![("interpolation.lerp_ms".into(), "100".into())];
    b.header.settings = vec![("interpolation.lerp_ms".into(), "50".into())];
    for row in 0..14 {
        let (lerp, moved) = (f64::from(row as u32 / 2 + 2) * 16_000.0 - 58_000.0, row as f64);
        set(&mut b, "views", "drawn_at_us", row, lerp);
        set(&mut b, "views", "origin.y", row, moved);
    }
    assert_reads("diff_settings", &diff_page(&diff_of(&a, &b)).text());
}

/// A replay has more tables than the trace made by hand, and its text also fits the page.
#[test]
fn a_replay_under_other_settings_fits_the_page() {
    let log = session(3, 3.0, DiscRules { push_units: 4.0, ..DiscRules::default() });
    let found = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["interpolation.lerp_ms=50"]));
    let text = diff_page(&found).text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("\n  -interpolation.lerp_ms = 100\n  +interpolation.lerp_ms = 50\n"), "{text}");
    assert!(found.interpolation.moved > 0 && found.interpolation.distance_units.is_some_and(|d| d.p50 > 1.0));
}

#[test]
fn traces_that_cannot_be_judged() {
    let mut b = small();
    b.tables[1].columns.remove(1);
    assert_reads("diff_untestable", &diff_page(&diff_of(&small(), &b)).text());
    b.header.game = "arena".into();
    assert_reads("diff_other_game", &diff_page(&diff_of(&small(), &b)).text());
}

#[test]
fn a_bisection() {
    let (a, b) = (small(), with_a_bug());
    let found = bisect_ticks(&a, &b, &DiffOptions::default(), None).expect("no tolerance");
    assert_reads("bisect_inferred", &bisect_page(&found).text());
    let mut run = |build: TraceSide, step: &RerunStep<'_>| -> Result<Vec<NamedValue>, String> {
        let mut body = step.body.to_vec();
        if build == TraceSide::B && step.command.player == 1 {
            body[0].value = CellValue::Float(16.000002);
        }
        Ok(body)
    };
    let found = bisect_ticks(&a, &b, &DiffOptions::default(), Some(&mut run)).expect("no tolerance");
    assert_reads("bisect_reproduced", &bisect_page(&found).text());
    let same = bisect_ticks(&a, &a, &DiffOptions::default(), None).expect("no tolerance");
    assert_reads("bisect_same", &bisect_page(&same).text());
}
