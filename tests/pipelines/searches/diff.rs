//! Compares traces: equal traces are the same in any representation, differences are named, and malformed traces are
//! reported.

use crate::disc::DiscRules;
use crate::traces::{column, data, names, replay_with, session, set, small, table};
use hitreg::diff::{
    DiffOptions, DiffScope, DifferenceClass, DivergenceKind, TableStatus, TraceDiff, TraceVerdict, diff,
};
use hitreg::rng::Rng;
use hitreg::trace::{Column, ColumnData, Table, Trace};
use hitreg::units::Seed;

fn diff_of(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

fn status(diff: &TraceDiff, name: &str) -> TableStatus {
    diff.tables.iter().find(|t| t.name == name).expect("the table").status
}

#[test]
fn a_trace_is_the_same_as_itself() {
    for trace in [small(), replay_with(&session(1, 4.0, DiscRules { push_units: 4.0, ..DiscRules::default() }), &[])] {
        let found = diff_of(&trace, &trace);
        assert_eq!((found.verdict, &found.first), (TraceVerdict::Same, &None));
        assert!(found.tables.iter().all(|t| t.status == TableStatus::Same && t.rows.compared == t.rows.a));
        assert_eq!((found.hits.only_a, found.hits.only_b, found.hits.changed.len()), (0, 0, 0));
        assert!(found.hits.both > 0 && found.interpolation.moved == 0 && found.interpolation.compared > 0);
    }
}

/// A shot that never ran has the time of its frame, which is before the server's judgement of it in the other trace.
#[test]
fn a_shot_that_only_one_server_judged_differs_when_it_was_judged() {
    let a = small();
    let mut b = a.clone();
    for (name, value) in [("at_us", 50_000.0), ("tick", 0.0), ("reason", 3.0)] {
        set(&mut b, "shots", name, 1, value);
    }
    for sides in [[&a, &b], [&b, &a]] {
        let place = diff_of(sides[0], sides[1]).first.expect("a difference").place;
        assert_eq!((place.at_us, place.tick, place.command), (Some(96_000), Some(6), Some(6)));
    }
}

/// The states of another class are states: they come before the hash, belong to `state`, and have tolerances.
#[test]
fn states_of_all_classes_are_compared() {
    let mut a = small();
    let ticks = a.table("ticks").expect("ticks").u32s("tick").to_vec();
    let crates = vec![
        column("tick", ColumnData::U32(ticks.clone())),
        column("entity", ColumnData::U32(vec![9; ticks.len()])),
        column("origin.x", ColumnData::F32(ticks.iter().map(|tick| *tick as f32).collect())),
    ];
    a.tables.push(table("bodies.crate", crates));
    let mut b = a.clone();
    set(&mut b, "bodies.crate", "origin.x", 4, 5.05);
    let ColumnData::U64(hashes) = data(&mut b, "ticks", "hash") else { panic!("hashes are whole") };
    hashes[4] ^= 1;
    for on in [DiffScope::Any, DiffScope::State] {
        let of = |tolerances: &str| {
            let tolerances = tolerances.split_whitespace().map(|text| text.parse().expect("a tolerance")).collect();
            diff(&a, &b, &DiffOptions { on, tolerances, ..DiffOptions::default() }).expect("comparable")
        };
        let found = of("");
        let first = found.first.as_ref().expect("a difference");
        assert_eq!(
            (&*first.table, first.field.as_deref(), first.place.entity),
            ("bodies.crate", Some("origin.x"), Some(9))
        );
        assert_eq!(found.verdict, TraceVerdict::Differs);
        let found = of("origin=0.1");
        assert_eq!((found.verdict, status(&found, "bodies.crate")), (TraceVerdict::Same, TableStatus::WithinTolerance));
        assert_eq!(of("origin=0.01").verdict, TraceVerdict::Differs);
    }
}

#[test]
fn one_bit_in_one_field_is_found_in_all_of_50_cases() {
    let whole = replay_with(&session(7, 6.0, DiscRules { push_units: 4.0, ..DiscRules::default() }), &[]);
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
        let result = diff_of(&whole, &planted);
        let first = result.first.as_ref().expect("one bit is a difference");
        let key = |key: &str| match whole.table(name).and_then(|t| t.column(key)).map(|c| &c.data) {
            Some(ColumnData::U32(values)) => Some(values[row]),
            _ => None,
        };
        let place = (first.place.entity, first.place.player, first.place.command);
        assert_eq!((first.table.as_str(), first.field.as_deref()), (name, Some(field)), "case {case}");
        assert_eq!(place, (key("entity"), key("player").or(key("shooter")), key("command")), "case {case}");
        assert_eq!(first.place.tick, Some(tick_of(&whole, name, row)), "case {case}");
        assert_eq!((first.what, first.others.len()), (DivergenceKind::Value, 0));
        let differing: u64 = result.tables.iter().map(|t| t.rows.differing).sum();
        assert_eq!(differing, 1, "case {case}");
        found += 1;
    }
    assert_eq!(found, 50);
}

/// Flips one bit in one row and returns the row's number. NaN stays unchanged.
fn flip(data: &mut ColumnData, rows: usize, rng: &mut Rng) -> usize {
    loop {
        let (row, bit) = (rng.below(rows as u64) as usize, rng.below(32));
        match data {
            ColumnData::U32(v) => v[row] ^= 1 << bit,
            ColumnData::I64(v) => v[row] ^= 1 << bit,
            ColumnData::U64(v) => v[row] ^= 1 << bit,
            ColumnData::F64(v) => v[row] = f64::from_bits(v[row].to_bits() ^ (1 << bit)),
            ColumnData::Bool(v) => v[row] ^= true,
            ColumnData::F32(v) if v[row].is_nan() => continue,
            ColumnData::F32(v) => v[row] = f32::from_bits(v[row].to_bits() ^ (1 << bit)),
            ColumnData::Name { codes, .. } => codes[row] ^= 1,
        }
        return row;
    }
}

/// The tick of a row: its own, or the last one before its client frame.
fn tick_of(trace: &Trace, name: &str, row: usize) -> u32 {
    let numbers = |table: &str, column: &str| match &trace.table(table).expect("a table").column(column)?.data {
        ColumnData::U32(values) => Some(values.clone()),
        _ => None,
    };
    let times = |table: &str| match trace.table(table).and_then(|t| t.column("at_us")).map(|c| &c.data) {
        Some(ColumnData::I64(values)) => Some(values.clone()),
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
    let found = diff_of(&a, &b);
    let first = found.first.as_ref().expect("the times differ");
    assert_eq!((first.table.as_str(), first.what, first.place.tick), ("ticks", DivergenceKind::TimesDiffer, Some(4)));
    let ticks = &found.tables[0].rows;
    assert_eq!((ticks.other_time, ticks.differing), (1, 0));
    let bodies = &found.tables[1].rows;
    assert_eq!((bodies.other_time, bodies.differing, bodies.compared), (2, 0, 14));
}

/// The time of a row that has one of its own is a value like the others, in tables of packets and of a build's own.
#[test]
fn send_times_are_compared() {
    for (name, key) in [("packets", vec![]), ("snapshots", vec![]), ("casts", vec!["player", "number"])] {
        let number = if name == "casts" { "number" } else { &name[..name.len() - 1] };
        let columns = vec![
            Column::new("player", ColumnData::U32(vec![0, 0, 1])),
            Column::new(number, ColumnData::U32(vec![1, 2, 1])),
            Column::new("at_us", ColumnData::I64(vec![10_000, 20_000, 30_000])),
        ];
        let (mut a, mut b) = (small(), small());
        let table = Table::new(name, columns).keyed_by(key);
        a.tables.push(table.clone());
        b.tables.push(table);
        set(&mut b, name, "at_us", 1, 21_000.0);
        let found = diff_of(&a, &b);
        let first = found.first.as_ref().expect("a difference");
        assert_eq!((first.table.as_str(), first.field.as_deref()), (name, Some("at_us")));
        let rows = &found.tables.iter().find(|table| table.name == name).expect("the table").rows;
        assert_eq!((rows.other_time, rows.differing, rows.compared), (0, 1, 3), "{name}");
    }
}

#[test]
fn a_body_is_not_compared_with_a_missing_one() {
    let (a, mut b) = (small(), small());
    set(&mut b, "frames", "has_body", 5, 0.0);
    set(&mut b, "frames", "own.origin.x", 5, 0.0);
    let fields = &diff_of(&a, &b).tables[3].fields;
    assert_eq!(fields.iter().map(|f| f.field.as_str()).collect::<Vec<_>>(), ["has_body"]);
}

/// The differing columns of `views` or `frames`.
fn differing_columns(found: &TraceDiff, table: &str) -> Vec<String> {
    let table = found.tables.iter().find(|t| t.name == table).expect("the table");
    table.fields.iter().map(|f| f.field.clone()).collect()
}

#[test]
fn a_predicted_body_is_not_compared_with_a_confirmed_one() {
    // The client of B predicts nothing in two frames: it shows the server's last state.
    let (mut a, mut b) = (small(), small());
    for trace in [&mut a, &mut b] {
        let frames = trace.tables.iter_mut().find(|t| t.name == "frames").expect("frames");
        frames.columns.push(column("ran", ColumnData::U32(vec![1; 16])));
        frames.columns.push(column("drawn.x", ColumnData::F32(vec![0.0; 16])));
    }
    for row in [7, 9] {
        set(&mut b, "frames", "ran", row, 0.0);
        set(&mut b, "frames", "own.origin.x", row, 4.0);
        set(&mut b, "frames", "drawn.x", row, 4.0);
    }
    let found = diff_of(&a, &b);
    assert_eq!(differing_columns(&found, "frames"), ["ran"]);
    assert_eq!(found.verdict, TraceVerdict::Differs);
    // If both clients predict, or neither does, their bodies are compared.
    set(&mut a, "frames", "ran", 7, 0.0);
    let found = diff_of(&a, &b);
    assert_eq!(differing_columns(&found, "frames"), ["own.origin.x", "ran", "drawn.x"]);
    let rows: Vec<u64> = found.tables[3].fields.iter().map(|f| f.rows).collect();
    assert_eq!(rows, [1, 1, 1]);
}

#[test]
fn a_judged_shot_is_not_compared_with_one_that_never_ran() {
    // The server of B never ran the shot: its row has the client's time, and no target or rewind.
    let (a, mut b) = (small(), small());
    set(&mut b, "shots", "reason", 0, 3.0);
    set(&mut b, "shots", "at_us", 0, 56_000.0);
    for (name, value) in [("tick", 0.0), ("rewind_us", 0.0), ("target", 0.0), ("hitgroup", 0.0), ("damage", 0.0)] {
        set(&mut b, "shots", name, 0, value);
    }
    let found = diff_of(&a, &b);
    assert_eq!(differing_columns(&found, "shots"), ["reason"]);
    assert_eq!((found.hits.only_a, found.hits.changed.len()), (1, 1));
    // Both servers judged the shot: all columns are compared.
    set(&mut b, "shots", "reason", 0, 1.0);
    let all = ["at_us", "tick", "rewind_us", "reason", "target", "hitgroup", "damage"];
    assert_eq!(differing_columns(&diff_of(&a, &b), "shots"), all);
    // A client's result is compared with the other client's, never with a server's.
    let (mut a, mut b) = (small(), small());
    for trace in [&mut a, &mut b] {
        *data(trace, "shots", "predicted_reason") = names(&["hit", "wide", "not predicted"], &[0, 0]);
    }
    set(&mut b, "shots", "predicted_reason", 1, 2.0);
    set(&mut b, "shots", "predicted_target", 1, 0.0);
    assert_eq!(differing_columns(&diff_of(&a, &b), "shots"), ["predicted_reason"]);
}

#[test]
fn a_predicted_effect_is_not_compared_with_one_that_the_server_sent() {
    let effects = |predicted: u32, x: f32| {
        let mut trace = small();
        let columns = vec![
            column("player", ColumnData::U32(vec![0])),
            column("at_us", ColumnData::I64(vec![64_000])),
            column("kind", names(&["shot"], &[0])),
            column("entity", ColumnData::U32(vec![0])),
            column("at.x", ColumnData::F32(vec![x])),
            column("predicted", ColumnData::U32(vec![predicted])),
        ];
        trace.tables.push(table("effects", columns));
        trace
    };
    assert_eq!(differing_columns(&diff_of(&effects(1, 5.0), &effects(0, 9.0)), "effects"), ["predicted"]);
    assert_eq!(differing_columns(&diff_of(&effects(1, 5.0), &effects(1, 9.0)), "effects"), ["at.x"]);
}

#[test]
fn a_state_is_predicted_on_its_own_in_both_runs_of_presets() {
    // One run predicts. The other shows the state that the server confirmed a round trip ago.
    let log = session(5, 3.0, DiscRules::default());
    let found = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["prediction.mode=off"]));
    let frames = differing_columns(&found, "frames");
    assert!(frames.contains(&"ran".to_owned()), "{frames:?}");
    assert!(frames.iter().all(|field| !field.starts_with("own.") && !field.starts_with("drawn.")), "{frames:?}");
}

#[test]
fn differences_of_angles_take_the_short_way() {
    let (mut a, mut b) = (small(), small());
    set(&mut a, "frames", "yaw", 3, 355.0);
    set(&mut b, "frames", "yaw", 3, 0.0);
    let found = diff_of(&a, &b);
    let yaw = &found.tables[3].fields[0];
    assert_eq!((yaw.field.as_str(), yaw.largest.as_ref().map(|largest| largest.error)), ("yaw", Some(5.0)));
    assert_eq!(found.first.as_ref().and_then(|first| first.error), Some(5.0));
    let tolerant = |within: &str| DiffOptions {
        tolerances: [within.parse().expect("a tolerance")].into_iter().collect(),
        ..DiffOptions::default()
    };
    assert_eq!(diff(&a, &b, &tolerant("yaw=5")).expect("a column").verdict, TraceVerdict::Same);
    assert_eq!(diff(&a, &b, &tolerant("yaw=4.9")).expect("a column").verdict, TraceVerdict::Differs);
    // The same direction with other bits is a difference.
    set(&mut a, "frames", "yaw", 3, 360.0);
    let found = diff_of(&a, &b);
    assert_eq!((found.verdict, found.worst), (TraceVerdict::Differs, Some(DifferenceClass::Drift)));
    // A correction of an angle, whose field the table of errors names in a column.
    let errors = |predicted: f32| {
        let mut trace = small();
        let columns = vec![
            column("player", ColumnData::U32(vec![1, 1])),
            column("command", ColumnData::U32(vec![2, 2])),
            column("field", names(&["viewangles.y", "origin.x"], &[0, 1])),
            column("predicted", ColumnData::F32(vec![predicted, 1.0])),
        ];
        trace.tables.push(table("errors", columns));
        trace
    };
    let found = diff(&errors(-179.0), &errors(179.0), &DiffOptions::default()).expect("no tolerance");
    assert_eq!(found.first.as_ref().and_then(|first| first.error), Some(2.0));
    let turned = diff(&errors(-179.0), &errors(179.0), &tolerant("yaw=2")).expect("a column");
    assert_eq!(status(&turned, "errors"), TableStatus::WithinTolerance);
}

#[test]
fn settings_without_any_effect_are_named() {
    let log = session(3, 3.0, DiscRules::default());
    let changed = |found: &TraceDiff| -> Vec<String> {
        found.settings_without_effect.iter().map(|setting| setting.key.clone()).collect()
    };
    let teleport = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["teleport.distance_units=9000"]));
    assert_eq!(
        (teleport.verdict, changed(&teleport)),
        (TraceVerdict::Same, vec!["teleport.distance_units".to_owned()])
    );
    assert_eq!(teleport.notes, ["teleport.distance_units 128 → 9000 changed nothing in this log"]);
    // No replay makes other usercmds than the recorded ones, so equal replays say nothing about such a setting.
    let slow = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["client.cmd_hz=30"]));
    assert_eq!((slow.verdict, changed(&slow).len()), (TraceVerdict::Untestable, 0));
    let reason = "the log holds the usercmds that the clients sent, and a replay cannot change client.cmd_hz";
    assert_eq!(
        (slow.untestable.as_deref(), &slow.notes[..]),
        (Some(reason), &["client.cmd_hz is 64 in A, 30 in B".to_owned()][..])
    );
    // An older build's trace may lack the setting.
    let mut old = replay_with(&log, &[]);
    old.header.settings.retain(|(key, _)| key != "client.cmd_hz");
    assert_eq!(diff_of(&old, &replay_with(&log, &["client.cmd_hz=30"])).verdict, TraceVerdict::Same);
    let lerp = diff_of(&replay_with(&log, &[]), &replay_with(&log, &["interpolation.lerp_ms=50"]));
    assert_eq!((lerp.verdict, changed(&lerp).len()), (TraceVerdict::Differs, 0));
    let echo = "each usercmd carries the changed setting: lerp_msec is 100 in A, 50 in B";
    assert_eq!(lerp.notes, [echo, "interpolation.lerp_ms is 100 in A, 50 in B"]);
    // B draws others at another time, and has no other corrections because of it.
    let options = DiffOptions { on: DiffScope::Corrections, ..DiffOptions::default() };
    let (a, b) = (replay_with(&log, &[]), replay_with(&log, &["interpolation.lerp_ms=50"]));
    let corrections = diff(&a, &b, &options).expect("no tolerance");
    assert_eq!(corrections.notes, ["interpolation.lerp_ms 100 → 50 changed nothing in the corrections"]);
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
    assert_eq!(diff_of(&a, &b).verdict, TraceVerdict::Differs);
    let tolerant = diff(&a, &b, &options("origin=0.1")).expect("there is such a column");
    assert_eq!((tolerant.verdict, status(&tolerant, "bodies")), (TraceVerdict::Same, TableStatus::WithinTolerance));
    assert_eq!(diff(&a, &b, &options("origin=0.01")).expect("a column").verdict, TraceVerdict::Differs);
    set(&mut b, "ticks", "hash", 5, 1.0);
    let unseen = diff(&a, &b, &options("origin=0.1")).expect("a column");
    let first = unseen.first.expect("a hash that no body explains");
    assert_eq!((first.table.as_str(), first.place.tick, first.class), ("ticks", Some(6), Some(DifferenceClass::Hash)));
    let error = diff(&a, &b, &options("orgin=0.1")).expect_err("no such column");
    assert!(error.to_string().ends_with("(did you mean `origin`?)"), "{error}");
}

#[test]
fn differences_that_end_are_distinguished_from_lasting_ones() {
    let (a, mut b) = (small(), small());
    for tick in 3..=5 {
        set(&mut b, "bodies", "origin.x", tick * 2 - 1, tick as f64 * 4.0 + 1.0);
    }
    for tick in 4..=8 {
        set(&mut b, "bodies", "refire_ms", tick * 2 - 2, 0.0);
    }
    let found = diff_of(&a, &b);
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
    let usercmds: Vec<_> = first.usercmds_a.iter().map(|r| (r.player, r.command)).collect();
    assert_eq!(usercmds, [(1, 3), (0, 3)], "those of the entity first");
}

#[test]
fn a_comparison_can_be_limited_to_one_side() {
    let (a, mut b) = (small(), small());
    set(&mut b, "bodies", "origin.x", 7, 99.0);
    let on = |on| diff(&a, &b, &DiffOptions { on, ..DiffOptions::default() }).expect("no tolerance").verdict;
    assert_eq!([DiffScope::State, DiffScope::Hits, DiffScope::Views, DiffScope::Corrections].map(on), {
        use TraceVerdict::{Differs, Same};
        [Differs, Same, Same, Same]
    });
    set(&mut b, "shots", "rewind_us", 0, 0.0);
    let hits = |b: &Trace| {
        diff(&a, b, &DiffOptions { on: DiffScope::Hits, ..DiffOptions::default() }).expect("no tolerance").verdict
    };
    assert_eq!(hits(&b), TraceVerdict::Same);
    set(&mut b, "shots", "damage", 0, 25.0);
    assert_eq!(hits(&b), TraceVerdict::Differs);
}

#[test]
fn rows_of_foreign_tables_match_by_key_or_by_all_columns() {
    let with = |values: &[u32], heat: &[f32], key: &[&str]| {
        let mut trace = small();
        let columns =
            vec![column("id", ColumnData::U32(values.to_vec())), column("heat", ColumnData::F32(heat.to_vec()))];
        trace.tables.push(table("furnaces", columns).keyed_by(key.iter().copied()));
        trace
    };
    let rows = |key: &[&str]| {
        let (a, b) = (with(&[1, 2, 3], &[0.5, 1.5, 2.5], key), with(&[3, 1, 2], &[2.5, 0.5, 1.0], key));
        let rows = diff(&a, &b, &DiffOptions::default()).expect("no tolerance").tables[7].rows;
        (rows.only_in_a, rows.differing)
    };
    assert_eq!(rows(&[]), (1, 0));
    assert_eq!(rows(&["id"]), (0, 1));
}
