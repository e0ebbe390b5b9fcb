//! Verdicts of comparisons: tables without a comparison, tolerances, the context of a difference, and notes about the
//! traces.

use crate::traces::{data, set, small};
use hitreg::diff::{DiffOptions, TableStatus, TraceDiff, TraceVerdict, diff};
use hitreg::trace::{ColumnData, Trace};

fn diff_of(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

fn status(diff: &TraceDiff, name: &str) -> TableStatus {
    diff.tables.iter().find(|t| t.name == name).expect("the table").status
}

fn rows_of(trace: &mut Trace, table: &str, rows: usize) {
    let table = trace.tables.iter_mut().find(|known| known.name == table).expect("the table");
    for column in &mut table.columns {
        match &mut column.data {
            ColumnData::U32(v) => v.truncate(rows),
            ColumnData::U64(v) => v.truncate(rows),
            ColumnData::I64(v) => v.truncate(rows),
            ColumnData::F32(v) => v.truncate(rows),
            ColumnData::F64(v) => v.truncate(rows),
            ColumnData::Bool(v) => v.truncate(rows),
            ColumnData::Name { codes, .. } => codes.truncate(rows),
        }
    }
}

#[test]
fn states_of_other_times_are_untestable_if_none_match() {
    let (a, mut b) = (small(), small());
    for row in 0..7 {
        set(&mut b, "ticks", "at_us", row, 1_000_000.0 + row as f64);
    }
    let some = diff_of(&a, &b);
    assert_eq!((status(&some, "ticks"), status(&some, "bodies")), (TableStatus::Differs, TableStatus::Same));
    set(&mut b, "ticks", "at_us", 7, 2_000_000.0);
    let none = diff_of(&a, &b);
    assert_eq!((status(&none, "ticks"), status(&none, "bodies")), (TableStatus::Differs, TableStatus::Untestable));
    // Two empty tables are the same.
    let mut empty = [a, b];
    empty.iter_mut().for_each(|trace| rows_of(trace, "bodies", 0));
    assert_eq!(status(&diff_of(&empty[0], &empty[1]), "bodies"), TableStatus::Same);
}

#[test]
fn a_hash_is_tolerated_only_with_all_bodies_of_its_tick() {
    let (a, mut b) = (small(), small());
    set(&mut b, "bodies", "origin.x", 7, 16.05);
    set(&mut b, "ticks", "hash", 3, 1.0);
    let options = DiffOptions {
        tolerances: ["origin=0.1".parse().expect("a tolerance")].into_iter().collect(),
        ..Default::default()
    };
    let within = diff(&a, &b, &options).expect("a column");
    assert_eq!((within.verdict, status(&within, "ticks")), (TraceVerdict::Same, TableStatus::WithinTolerance));
    // The other body of the same tick.
    set(&mut b, "bodies", "origin.y", 6, 5.0);
    let differs = diff(&a, &b, &options).expect("a column");
    assert_eq!((status(&differs, "ticks"), status(&differs, "bodies")), (TableStatus::Differs, TableStatus::Differs));
}

#[test]
fn traces_of_other_logs_or_modes_are_noted() {
    let of = |log: &str, mode: &str| {
        let mut trace = small();
        (trace.header.log_digest, trace.header.mode) = (log.to_owned(), mode.to_owned());
        trace
    };
    let notes = |a: [&str; 2], b: [&str; 2]| diff_of(&of(a[0], a[1]), &of(b[0], b[1])).notes;
    assert_eq!(notes(["1", "closed"], ["2", "closed"]), ["A and B are replays of different logs"]);
    assert_eq!(notes(["1", "open"], ["1", "closed"]), ["A was replayed open loop, B closed loop"]);
    let rejudged = ["B is rejudged: only results of shots can differ"];
    assert_eq!(notes(["1", "closed"], ["1", "closed, rejudged"]), rejudged);
    for [a, b] in [["1", "1"], ["", "2"], ["1", ""], ["", ""]] {
        assert!(notes([a, "closed"], [b, "closed"]).is_empty(), "{a:?} {b:?}");
    }
}

/// Usercmds that a build copied from the log are no client that ran.
#[test]
fn settings_of_clients_need_a_client_that_had_a_body_or_drew() {
    let verdict = |has_body: bool, draws: bool| {
        let mut traces = [small(), small()];
        for (trace, lerp) in traces.iter_mut().zip(["50", "0"]) {
            trace.header.settings = vec![("interpolation.lerp_ms".to_owned(), lerp.to_owned())];
            let ColumnData::U32(flags) = data(trace, "frames", "has_body") else { panic!("flags") };
            flags.fill(has_body.into());
            trace.tables.retain(|table| draws || table.name != "views");
        }
        let [a, b] = traces;
        diff_of(&a, &b).verdict
    };
    assert_eq!(verdict(false, false), TraceVerdict::Untestable);
    assert_eq!(verdict(true, false), TraceVerdict::Same);
    assert_eq!(verdict(false, true), TraceVerdict::Same);
}

#[test]
fn the_state_before_a_difference_is_of_the_previous_tick() {
    let (a, mut b) = (small(), small());
    set(&mut b, "shots", "damage", 0, 99.0);
    let before = |a: &Trace, b: &Trace| {
        let first = diff_of(a, b).first.expect("a shot differs");
        (first.place.tick, first.last_state.expect("a state").place.tick)
    };
    assert_eq!(before(&a, &b), (Some(4), Some(3)));
    // Without times, the tick numbers give the order.
    let mut timeless = [a, b];
    for trace in &mut timeless {
        trace.tables.retain(|table| table.name != "ticks");
        trace.tables.iter_mut().for_each(|table| table.columns.retain(|column| column.name != "at_us"));
    }
    assert_eq!(before(&timeless[0], &timeless[1]), (Some(4), Some(3)));
}

#[test]
fn a_row_with_only_a_time_belongs_to_the_tick_of_that_time() {
    let (a, mut b) = (small(), small());
    let ColumnData::I64(times) = data(&mut b, "corrections", "at_us") else { panic!("times") };
    assert_eq!(times[1], 104_000);
    for (at_us, tick) in [(96_000.0, 6), (111_999.0, 6), (112_000.0, 7)] {
        let [mut a, mut b] = [a.clone(), small()];
        set(&mut a, "corrections", "at_us", 1, at_us);
        set(&mut b, "corrections", "at_us", 1, at_us);
        set(&mut b, "corrections", "error_units", 1, 9.0);
        assert_eq!(diff_of(&a, &b).first.expect("a difference").place.tick, Some(tick), "{at_us}");
    }
}
