//! Malformed traces are reported and never cause a panic.

use crate::traces::{data, names, small};
use hitreg::diff::{DiffOptions, TableStatus, TraceDiff, TraceVerdict, diff};
use hitreg::rng::Rng;
use hitreg::trace::{ColumnData, Trace};
use hitreg::units::Seed;

fn diff_of(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

#[test]
fn columns_of_different_lengths_cannot_be_judged() {
    let (a, mut b) = (small(), small());
    if let ColumnData::F32(values) = data(&mut b, "bodies", "origin.x") {
        values.pop();
    }
    for found in [diff_of(&a, &b), diff_of(&b, &b)] {
        assert_eq!(found.verdict, TraceVerdict::Untestable);
        let reason = found.untestable.expect("a reason");
        assert!(reason.contains("`bodies`") && reason.contains("values"), "{reason}");
    }
}

#[test]
fn a_name_that_is_not_listed_cannot_be_judged() {
    let (a, mut b) = (small(), small());
    *data(&mut b, "views", "how") = names(&["held"], &[1; 14]);
    let found = diff_of(&a, &b);
    assert_eq!(found.tables[5].status, TableStatus::Untestable);
}

#[test]
fn missing_tables_columns_and_keys_are_named() {
    let (a, mut b) = (small(), small());
    b.tables.remove(6);
    b.tables[1].columns.retain(|c| c.name != "velocity.x");
    b.tables[3].columns.retain(|c| c.name != "command");
    let found = diff_of(&a, &b);
    assert_eq!(found.verdict, TraceVerdict::Differs);
    assert_eq!(found.tables[1].shape.only_in_a, ["velocity.x"]);
    assert_eq!(found.tables[6].status, TableStatus::OnlyInA);
    assert!(found.tables[3].untestable.as_ref().expect("a reason").contains("`command`"));
    let overlap = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    let found = diff(&a, &b, &overlap).expect("no tolerance");
    assert_eq!((found.tables[1].status, found.verdict), (TableStatus::Same, TraceVerdict::Untestable));
}

#[test]
fn a_repeated_table_cannot_be_judged() {
    let (a, mut b) = (small(), small());
    b.tables.push(a.tables[0].clone());
    assert_eq!(diff_of(&a, &b).tables[0].status, TableStatus::Untestable);
    assert_eq!(diff_of(&b, &a).tables[0].status, TableStatus::Untestable);
}

#[test]
fn traces_of_different_games_or_of_nothing_cannot_be_judged() {
    let (a, mut b) = (small(), small());
    b.header.game = "arena".into();
    assert_eq!(diff_of(&a, &b).verdict, TraceVerdict::Untestable);
    let empty = Trace::default();
    assert_eq!(diff_of(&empty, &empty).verdict, TraceVerdict::Untestable);
}

/// Any damage in any column gives a result whose text fits the page.
#[test]
fn damaged_traces_never_cause_a_panic() {
    let mut rng = Rng::new(Seed(9), 0);
    for _ in 0..600 {
        let (mut a, mut b) = (small(), small());
        for _ in 0..=rng.below(4) {
            let broken = if rng.chance(0.5) { &mut a } else { &mut b };
            let index = rng.below(broken.tables.len() as u64) as usize;
            break_table(broken, index, &mut rng);
        }
        let found = diff_of(&a, &b);
        let text = hitreg::report::diff_page(&found).text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let _ = serde_json::to_string(&found).expect("JSON");
        let _ = hitreg::report::diff_junit("broken", &found).to_string().expect("XML");
        let _ = hitreg::bisect::bisect_ticks(&a, &b, &DiffOptions::default(), None).expect("no tolerance");
    }
}

fn break_table(trace: &mut Trace, index: usize, rng: &mut Rng) {
    let table = &mut trace.tables[index];
    let column = rng.below(table.columns.len().max(1) as u64) as usize;
    match rng.below(7) {
        0 => table.columns.clear(),
        1 if column < table.columns.len() => {
            table.columns.remove(column);
        }
        2 if column < table.columns.len() => table.columns[column].data = ColumnData::U32(vec![u32::MAX; 3]),
        3 if column < table.columns.len() => table.columns[column].data = ColumnData::F32(vec![f32::NAN; table.rows()]),
        4 if column < table.columns.len() => table.columns[column].data = ColumnData::I64(vec![i64::MIN; table.rows()]),
        5 if column < table.columns.len() => table.columns[column].name = "x".repeat(90),
        _ => table.name = "a_table_of_another_build_with_a_long_name".into(),
    }
}
