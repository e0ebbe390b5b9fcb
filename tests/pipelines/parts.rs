//! A part of a session has the rows of the whole replay that are of that part, all of them and no others.

use std::collections::BTreeMap;

use hitreg::arena::Arena;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::replay::{Mode, Options, Part, ReplayError, replay};
use hitreg::session::scenario::Scenario;
use hitreg::trace::{Data, Table, Trace};
use hitreg::units::Micros;

use crate::streams::{file, record, together};

/// Each row in words, sorted: names get their codes in the order in which they come, and a shot of which nothing became has its row
/// at the end of the session.
fn rows(table: &Table) -> Vec<String> {
    let value = |data: &Data, row: usize| match data {
        Data::U32(values) => values[row].to_string(),
        Data::U64(values) => values[row].to_string(),
        Data::I64(values) => values[row].to_string(),
        Data::F32(values) => values[row].to_bits().to_string(),
        Data::Name { names, codes } => names[codes[row] as usize].clone(),
    };
    let row = |row| {
        let cells = table.columns.iter().map(|column| format!("{}={}", column.name, value(&column.data, row)));
        cells.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = (0..table.rows()).map(row).collect();
    rows.sort_unstable();
    rows
}

fn all_rows(trace: &Trace) -> BTreeMap<&str, Vec<String>> {
    trace.tables.iter().map(|table| (table.name.as_str(), rows(table))).filter(|(_, rows)| !rows.is_empty()).collect()
}

fn scenarios() -> [Scenario; 3] {
    let link = LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(15.0),
        loss: Loss::Random(0.1),
        duplicate: 0.05,
        reorder: 0.05,
        reorder_ms: 60.0,
        ..LinkModel::default()
    };
    let of = |preset: &str, players, link| Scenario {
        players,
        seconds: 20.0,
        preset: preset.to_owned(),
        link,
        ..Scenario::default()
    };
    [of("half-life", 6, link.clone()), of("nereids", 3, link), of("quake3", 4, LinkModel::default())]
}

/// Parts one after the other have the rows of the whole, each the rows that are of its time, however the log is replayed.
#[test]
fn a_part_has_its_rows_of_the_whole_replay() {
    for scenario in scenarios() {
        let session = record(&scenario);
        let file = file(&session, Micros::from_s(1));
        let whole = replay::<Arena>(&session, &Options { network: true, ..Options::default() }, &mut |_| {});
        let whole = whole.expect("a log of this build").trace;
        let tick = whole.table("ticks").expect("it has ticks").i64s("at_us")[333];
        let bounds = [i64::MIN, 3_000_000, 3_001_000, tick, 12_345_678, i64::MAX].map(Micros);
        let mut together_again: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for bounds in bounds.windows(2) {
            let part = Part { from: bounds[0], to: bounds[1] };
            let options = Options { network: true, part: Some(part), ..Options::default() };
            let cut = replay::<Arena>(&session, &options, &mut |_| {}).expect("a log of this build").trace;
            let (streamed, ran, _) = together(&file, &options);
            let (is, was) = (all_rows(&streamed), all_rows(&cut));
            assert_eq!(is.keys().collect::<Vec<_>>(), was.keys().collect::<Vec<_>>(), "{part:?}");
            for (table, was) in was {
                assert!(is[table] == was, "{}, {part:?}: `{table}` is another", scenario.preset);
                together_again.entry(table.to_owned()).or_default().extend(was);
            }
            assert!(ran.first_difference.is_none());
            for table in &streamed.tables {
                assert!(table.i64s("at_us").iter().all(|at| part.has(Micros(*at))), "{}", table.name);
            }
        }
        together_again.values_mut().for_each(|rows| rows.sort_unstable());
        let whole = all_rows(&whole);
        assert!(whole.len() >= 10, "{:?}", whole.keys());
        for (table, rows) in whole {
            assert!(together_again[table] == rows, "{}: `{table}` in parts is another", scenario.preset);
        }
    }
}

/// What comes after a part is not read.
#[test]
fn a_replay_ends_with_its_part() {
    let session = record(&scenarios()[2]);
    let options = |to| Options {
        part: Some(Part { from: Micros::from_s(2), to: Micros::from_s(to) }),
        ..Options::default()
    };
    let file = file(&session, Micros::from_ms(500));
    let compared = |to| together(&file, &options(to)).1.hashes_compared;
    assert!(compared(4) < compared(8) && compared(8) < compared(16));
}

/// Open loop has no server, and its rows are cut alike.
#[test]
fn a_part_of_open_loop_is_cut_from_the_whole() {
    let session = record(&scenarios()[0]);
    let part = Part { from: Micros::from_s(5), to: Micros::from_s(6) };
    let options = Options { mode: Mode::Open, part: Some(part), ..Options::default() };
    let cut = replay::<Arena>(&session, &options, &mut |_| {}).expect("a log of this build").trace;
    let frames = cut.table("frames").expect("a replay has frames");
    assert!(frames.rows() > 100 && frames.i64s("at_us").iter().all(|at| part.has(Micros(*at))));
    let views = cut.table("views").expect("a replay has views");
    let commands = |table: &Table| -> Vec<(u32, u32)> {
        let mut all: Vec<_> = table.u32s("player").iter().copied().zip(table.u32s("command").iter().copied()).collect();
        all.dedup();
        all
    };
    assert!(commands(views).iter().all(|key| commands(frames).contains(key)));
}

#[test]
fn a_part_that_is_none_is_refused() {
    let session = record(&Scenario { players: 2, seconds: 3.0, ..Scenario::default() });
    let refused = |from, to| {
        let part = Part { from: Micros::from_s(from), to: Micros::from_s(to) };
        replay::<Arena>(&session, &Options { part: Some(part), ..Options::default() }, &mut |_| {})
            .expect_err("no part of it")
    };
    assert!(matches!(refused(2, 1), ReplayError::EmptyPart { .. }));
    assert!(matches!(refused(1, 1), ReplayError::EmptyPart { .. }));
    let error = refused(1, 9);
    assert!(error.to_string().starts_with("0:09 is not in the session, which is from 0:0"), "{error}");
    assert!(matches!(refused(4, 5), ReplayError::NotInSession { .. }));
}
