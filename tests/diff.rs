//! Comparing traces: what is the same is the same however it is written down, what differs is named, and what makes no
//! sense is said to make none.

mod disc;
mod traces;

use disc::Rules;
use hitreg::diff::{Class, DiffOptions, On, Status, TraceDiff, Verdict, What, diff};
use hitreg::rng::Rng;
use hitreg::trace::{Data, Trace};
use hitreg::units::Seed;
use traces::{column, data, replayed, session, set, small, table};

fn compared(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

fn status(diff: &TraceDiff, name: &str) -> Status {
    diff.tables.iter().find(|t| t.name == name).expect("the table").status
}

#[test]
fn a_trace_is_the_same_as_itself() {
    for trace in [small(), replayed(&session(1, 4.0, Rules { push_units: 4.0, ..Rules::default() }), &[])] {
        let found = compared(&trace, &trace);
        assert_eq!((found.verdict, &found.first), (Verdict::Same, &None));
        assert!(found.tables.iter().all(|t| t.status == Status::Same && t.rows.compared == t.rows.a));
        assert_eq!((found.hits.only_a, found.hits.only_b, found.hits.changed.len()), (0, 0, 0));
        assert!(found.hits.both > 0 && found.interpolation.moved == 0 && found.interpolation.compared > 0);
    }
}

#[test]
fn one_bit_in_one_field_at_one_tick_is_found_fifty_times_of_fifty() {
    let whole = replayed(&session(7, 6.0, Rules { push_units: 4.0, ..Rules::default() }), &[]);
    let places: [(&str, &[&str]); 5] = [
        ("bodies", &["origin.x", "origin.y", "velocity.x", "velocity.y", "hits_taken", "viewangles.y"]),
        ("bodies", &["refire_ms"]),
        ("views", &["origin.x", "origin.y", "yaw", "drawn_at_us", "how"]),
        ("shots", &["rewind_us", "view_error_units", "damage", "aim_off_degrees"]),
        ("effects", &["at.x", "at.y", "predicted"]),
    ];
    let mut rng = Rng::new(Seed(50), 0);
    let mut found = 0;
    for case in 0..50 {
        let (name, fields) = places[case % places.len()];
        let field = fields[rng.below(fields.len() as u64) as usize];
        let mut planted = whole.clone();
        let rows = whole.table(name).expect("the table").rows();
        let row = flip(data(&mut planted, name, field), rows, &mut rng);
        let result = compared(&whole, &planted);
        let first = result.first.as_ref().expect("one bit is a difference");
        let key = |key: &str| match whole.table(name).and_then(|t| t.column(key)).map(|c| &c.data) {
            Some(Data::U32(values)) => Some(values[row]),
            _ => None,
        };
        let place = (first.place.entity, first.place.player, first.place.command);
        assert_eq!((first.table.as_str(), first.field.as_deref()), (name, Some(field)), "case {case}");
        assert_eq!(place, (key("entity"), key("player").or(key("shooter")), key("command")), "case {case}");
        assert_eq!(first.place.tick, Some(tick_of(&whole, name, row)), "case {case}");
        assert_eq!((first.what, first.others.len()), (What::Value, 0));
        let differing: u64 = result.tables.iter().map(|t| t.rows.differing).sum();
        assert_eq!(differing, 1, "case {case}");
        found += 1;
    }
    assert_eq!(found, 50);
}

/// Flips one bit in one row, of which it tells the number. A float that is none stays as it is.
fn flip(data: &mut Data, rows: usize, rng: &mut Rng) -> usize {
    loop {
        let (row, bit) = (rng.below(rows as u64) as usize, rng.below(32));
        match data {
            Data::U32(v) => v[row] ^= 1 << bit,
            Data::I64(v) => v[row] ^= 1 << bit,
            Data::U64(v) => v[row] ^= 1 << bit,
            Data::F32(v) if v[row].is_nan() => continue,
            Data::F32(v) => v[row] = f32::from_bits(v[row].to_bits() ^ (1 << bit)),
            Data::Name { codes, .. } => codes[row] ^= 1,
        }
        return row;
    }
}

/// The tick of a row: its own, or the last one before its client frame.
fn tick_of(trace: &Trace, name: &str, row: usize) -> u32 {
    let numbers = |table: &str, column: &str| match &trace.table(table).expect("a table").column(column)?.data {
        Data::U32(values) => Some(values.clone()),
        _ => None,
    };
    let times = |table: &str| match trace.table(table).and_then(|t| t.column("at_us")).map(|c| &c.data) {
        Some(Data::I64(values)) => Some(values.clone()),
        _ => None,
    };
    if let Some(ticks) = numbers(name, "tick") {
        return ticks[row];
    }
    let at = times(name).map(|t| t[row]).or_else(|| {
        let key = (numbers(name, "player")?[row], numbers(name, "command")?[row]);
        let (players, commands) = (numbers("frames", "player")?, numbers("frames", "command")?);
        let frame = (0..players.len()).find(|&f| (players[f], commands[f]) == key)?;
        Some(times("frames")?[frame])
    });
    let at = at.expect("a time");
    let ticks = times("ticks").expect("ticks").into_iter().zip(numbers("ticks", "tick").expect("ticks"));
    ticks.rev().find(|(time, _)| *time <= at).expect("a tick before it").1
}

#[test]
fn ticks_of_different_times_are_not_compared() {
    let (a, mut b) = (small(), small());
    set(&mut b, "ticks", "at_us", 3, 65_000.0);
    set(&mut b, "ticks", "hash", 3, 1.0);
    set(&mut b, "bodies", "origin.x", 7, 99.0);
    let found = compared(&a, &b);
    let first = found.first.as_ref().expect("the times differ");
    assert_eq!((first.table.as_str(), first.what, first.place.tick), ("ticks", What::TimesDiffer, Some(4)));
    let ticks = &found.tables[0].rows;
    assert_eq!((ticks.other_time, ticks.differing), (1, 0));
    let bodies = &found.tables[1].rows;
    assert_eq!((bodies.other_time, bodies.differing, bodies.compared), (2, 0, 14));
}

#[test]
fn a_body_is_not_compared_with_none() {
    let (a, mut b) = (small(), small());
    set(&mut b, "frames", "has_body", 5, 0.0);
    set(&mut b, "frames", "own.origin.x", 5, 0.0);
    let fields = &compared(&a, &b).tables[3].fields;
    assert_eq!(fields.iter().map(|f| f.field.as_str()).collect::<Vec<_>>(), ["has_body"]);
}

#[test]
fn tolerances_are_by_column_and_excuse_the_hash_that_follows() {
    let (a, mut b) = (small(), small());
    set(&mut b, "bodies", "origin.x", 7, 16.05);
    set(&mut b, "ticks", "hash", 3, 1.0);
    let options = |text: &str| DiffOptions {
        tolerances: [text.parse().expect("a tolerance")].into_iter().collect(),
        ..DiffOptions::default()
    };
    assert_eq!(compared(&a, &b).verdict, Verdict::Differs);
    let tolerant = diff(&a, &b, &options("origin=0.1")).expect("there is such a column");
    assert_eq!((tolerant.verdict, status(&tolerant, "bodies")), (Verdict::Same, Status::WithinTolerance));
    assert_eq!(diff(&a, &b, &options("origin=0.01")).expect("a column").verdict, Verdict::Differs);
    set(&mut b, "ticks", "hash", 5, 1.0);
    let unseen = diff(&a, &b, &options("origin=0.1")).expect("a column");
    let first = unseen.first.expect("a hash that no body explains");
    assert_eq!((first.table.as_str(), first.place.tick, first.class), ("ticks", Some(6), Some(Class::Hash)));
    let error = diff(&a, &b, &options("orgin=0.1")).expect_err("no such column");
    assert!(error.to_string().ends_with("the nearest is `origin`"), "{error}");
}

#[test]
fn what_heals_is_told_from_what_persists() {
    let (a, mut b) = (small(), small());
    for tick in 3..=5 {
        set(&mut b, "bodies", "origin.x", tick * 2 - 1, tick as f64 * 4.0 + 1.0);
    }
    for tick in 4..=8 {
        set(&mut b, "bodies", "refire_ms", tick * 2 - 2, 0.0);
    }
    let found = compared(&a, &b);
    let bodies = &found.tables[1];
    let by_field: Vec<_> = bodies.fields.iter().map(|f| (f.field.as_str(), f.rows, f.healed)).collect();
    assert_eq!(by_field, [("origin.x", 3, true), ("refire_ms", 5, false)]);
    assert_eq!(bodies.fields[0].last.tick, Some(5));
    assert_eq!(bodies.fields[0].largest.as_ref().map(|l| l.error), Some(1.0));
    let spread: Vec<_> = bodies.spread.iter().map(|g| (g.at_us, g.series, g.fields)).collect();
    assert_eq!(spread, [(Some(48_000), 1, 1), (Some(64_000), 2, 2)]);
    let first = found.first.expect("a divergence");
    let agreeing = first.last_agreeing.expect("a tick before");
    assert_eq!((agreeing.place.tick, agreeing.place.entity), (Some(2), Some(1)));
    assert_eq!(first.usercmds_a.iter().map(|r| (r.player, r.command)).collect::<Vec<_>>(), [(1, 3)]);
}

#[test]
fn only_one_side_of_a_log_can_be_asked_about() {
    let (a, mut b) = (small(), small());
    set(&mut b, "bodies", "origin.x", 7, 99.0);
    let on = |on| diff(&a, &b, &DiffOptions { on, ..DiffOptions::default() }).expect("no tolerance").verdict;
    assert_eq!([On::State, On::Hits, On::Views, On::Corrections].map(on), {
        use Verdict::{Differs, Same};
        [Differs, Same, Same, Same]
    });
    set(&mut b, "shots", "rewind_us", 0, 0.0);
    let hits =
        |b: &Trace| diff(&a, b, &DiffOptions { on: On::Hits, ..DiffOptions::default() }).expect("no tolerance").verdict;
    assert_eq!(hits(&b), Verdict::Same);
    set(&mut b, "shots", "damage", 0, 25.0);
    assert_eq!(hits(&b), Verdict::Differs);
}

#[test]
fn foreign_tables_are_told_apart_by_a_declared_key_or_by_all_they_have() {
    let with = |values: &[u32], heat: &[f32]| {
        let mut trace = small();
        let columns = vec![column("id", Data::U32(values.to_vec())), column("heat", Data::F32(heat.to_vec()))];
        trace.tables.push(table("furnaces", columns));
        trace
    };
    let (a, b) = (with(&[1, 2, 3], &[0.5, 1.5, 2.5]), with(&[3, 1, 2], &[2.5, 0.5, 1.0]));
    let rows = |options: &DiffOptions| diff(&a, &b, options).expect("no tolerance").tables[7].rows;
    assert_eq!((rows(&DiffOptions::default()).only_in_a, rows(&DiffOptions::default()).differing), (1, 0));
    let keys = [("furnaces".to_owned(), vec!["id".to_owned()])].into_iter().collect();
    let declared = DiffOptions { keys, ..DiffOptions::default() };
    assert_eq!((rows(&declared).only_in_a, rows(&declared).differing), (0, 1));
}
