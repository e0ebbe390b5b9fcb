//! Streamed comparisons equal comparisons in memory, for any changes and any lengths of parts.

use std::io::Cursor;

use crate::built_in::{record, replay};
use hitreg::arena::ArenaRules;
use hitreg::bisect::bisect_ticks;
use hitreg::diff::{DiffOptions, DiffScope, TraceVerdict, diff};
use hitreg::link::{LinkModel, Loss};
use hitreg::log::{IndexedTrace, read_trace, write_trace};
use hitreg::record::Session;
use hitreg::replay::ReplayOptions;
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::store::TraceFile;
use hitreg::trace::{ColumnSpan, NextRows, Table, Trace, TraceHeader, TraceSource};
use hitreg::units::Seed;
use proptest::prelude::*;

use crate::traces::{reorder, set, small};

/// A trace that gives its rows in parts.
struct SlicedTrace<'t> {
    trace: &'t Trace,
    shapes: Vec<(Table, u64)>,
    rows: usize,
}

fn slice_rows(trace: &Trace, rows: usize) -> SlicedTrace<'_> {
    let shape = |table: &Table| (part(table, 0..0), table.rows() as u64);
    SlicedTrace { trace, shapes: trace.tables.iter().map(shape).collect(), rows }
}

fn part(table: &Table, rows: std::ops::Range<usize>) -> Table {
    let mut part = table.clone();
    reorder(&mut part, &rows.collect::<Vec<_>>());
    part
}

impl TraceSource for SlicedTrace<'_> {
    fn header(&self) -> &TraceHeader {
        &self.trace.header
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.shapes.iter().map(|(table, rows)| (table, *rows)).collect()
    }

    fn rows_between<'s>(&'s self, table: &'s str, _: &'s [&'s str], _: Option<ColumnSpan<'s>>) -> NextRows<'s> {
        let (table, mut next) = (self.trace.table(table), 0);
        Box::new(move || {
            let Some(table) = table.filter(|table| next < table.rows()) else { return Ok(None) };
            let rows = next..table.rows().min(next + self.rows);
            next = rows.end;
            Ok(Some(part(table, rows)))
        })
    }

    fn silence(&self) -> usize {
        self.rows * 200
    }
}

fn session() -> Session {
    let link = LinkModel { delay_ms: 40.0, loss: Loss::Random(0.05), ..LinkModel::default() };
    let scenario = Scenario { players: 3, seconds: 6.0, link, ..Scenario::default() };
    record(&scenario, ArenaRules::default())
}

fn replay_with(session: &Session, set: &[&str]) -> Trace {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("its own settings");
    set.iter().for_each(|pair| settings.set_pair(pair).expect("a good setting"));
    let options = ReplayOptions { settings: Some(settings), network: true, ..ReplayOptions::default() };
    replay(session, &options).expect("a log of this build").trace
}

fn assert_same_streamed(a: &Trace, b: &Trace, sizes: [usize; 2], options: &DiffOptions) {
    let whole = diff(a, b, options).expect("they can be compared");
    let parts = [slice_rows(a, sizes[0]), slice_rows(b, sizes[1])];
    let streamed = diff(&parts[0], &parts[1], options).expect("they can be compared");
    // Compared as text, because NaN is not equal to itself.
    if format!("{whole:?}") != format!("{streamed:?}") {
        for (whole, streamed) in whole.tables.iter().zip(&streamed.tables) {
            assert_eq!(format!("{whole:#?}"), format!("{streamed:#?}"));
        }
        assert_eq!(format!("{whole:#?}"), format!("{streamed:#?}"));
    }
}

/// Writes both traces to files, and compares the results on files with those in memory.
fn assert_same_in_files(a: &Trace, b: &Trace, options: &DiffOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("a", a), ("b", b)].map(|(name, trace)| file_of(&folder.path().join(name), trace));
    let (in_memory, in_files) = (diff(a, b, options), diff(&files[0], &files[1], options));
    assert_eq!(format!("{in_memory:#?}"), format!("{in_files:#?}"));
    let brief = DiffOptions { brief: true, ..options.clone() };
    let brief = diff(&files[0], &files[1], &brief).expect("comparable");
    let whole = in_files.expect("comparable");
    assert_eq!(format!("{:#?}", (whole.verdict, &whole.tables)), format!("{:#?}", (brief.verdict, &brief.tables)));
    let (in_memory, in_files) = (bisect_ticks(a, b, options, None), bisect_ticks(&files[0], &files[1], options, None));
    assert_eq!(format!("{in_memory:#?}"), format!("{in_files:#?}"));
}

fn file_of(path: &std::path::Path, trace: &Trace) -> TraceFile {
    let bytes = write_trace(Vec::new(), trace).expect("memory takes everything");
    std::fs::write(path, bytes).expect("a file");
    TraceFile::open(path).expect("a trace")
}

/// Whether a table has the same rows is known by its packed chunks, whatever else is in the files.
#[test]
fn equal_tables_of_different_files_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, trace: &Trace| file_of(&folder.path().join(name), trace);
    let a = replay_with(&session(), &[]);
    let mut b = a.clone();
    b.header.settings.clear();
    set(&mut b, "bodies", "alive", 7, 3.0);
    let files = [file("a", &a), file("b", &b), file("c", &a)];
    for (table, rows) in files[0].tables() {
        let same = |other: &TraceFile| files[0].has_same_rows(other, &table.name).expect("undamaged");
        assert!(same(&files[2]) && same(&files[1]) == (table.name != "bodies"), "{}: {rows}", table.name);
    }
    assert!(!files[0].has_same_rows(&files[1], "no table").expect("undamaged"));
    // Damage is found although the other file has the same.
    let damaged = ["d", "e"].map(|name| {
        let path = folder.path().join(name);
        let mut bytes = std::fs::read(folder.path().join("a")).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).expect("a file");
        TraceFile::open(&path).expect("its ends are undamaged")
    });
    let tables = files[0].tables().into_iter().map(|(table, _)| table.name.as_str());
    assert!(tables.into_iter().any(|table| damaged[0].has_same_rows(&damaged[1], table).is_err()));
    assert!(diff(&damaged[0], &damaged[1], &DiffOptions::default()).is_err());
}

#[test]
fn streamed_diffs_of_settings_equal_those_in_memory() {
    let session = session();
    let a = replay_with(&session, &[]);
    for set in [&[][..], &["interpolation.lerp_ms=50"], &["lag_compensation.enabled=false"], &["server.tick_hz=50"]] {
        let b = replay_with(&session, set);
        for sizes in [[64, 64], [1000, 37], [100_000, 10]] {
            assert_same_streamed(&a, &b, sizes, &DiffOptions::default());
        }
        for on in [DiffScope::Any, DiffScope::State, DiffScope::Hits, DiffScope::Views] {
            assert_same_in_files(&a, &b, &DiffOptions { on, ..DiffOptions::default() });
        }
        let tolerances =
            ["origin=0.5", "rewind_us=20000"].map(|t| t.parse().expect("a tolerance")).into_iter().collect();
        for options in [
            DiffOptions { tolerances, ..DiffOptions::default() },
            DiffOptions { on: DiffScope::Hits, ..DiffOptions::default() },
            DiffOptions { overlap_only: true, ..DiffOptions::default() },
        ] {
            assert_same_streamed(&a, &b, [64, 50], &options);
        }
        let one = DiffOptions::default();
        assert_eq!(diff(&a, &b, &one).expect("comparable").verdict == TraceVerdict::Same, set.is_empty());
    }
}

/// Changes a table at a place: removes or repeats a row, moves it to a later place or the end, or changes a value.
fn edit(trace: &mut Trace, (table, what, place, far): (usize, usize, f64, usize), rng: &mut Rng) {
    let table = table % trace.tables.len();
    let rows = trace.tables[table].rows();
    if rows == 0 {
        return;
    }
    let row = ((rows - 1) as f64 * place) as usize;
    let mut order: Vec<usize> = (0..rows).collect();
    match what {
        0 => drop(order.drain(row..(row + 1 + far).min(rows))),
        1 => order.insert(row, row),
        2 => {
            let moved = order.remove(row);
            order.insert((row + far).min(rows - 1), moved);
        }
        3 => {
            let moved = order.remove(row);
            order.push(moved);
        }
        _ => {
            let target = &trace.tables[table];
            let column = &target.columns[rng.below(target.columns.len() as u64) as usize];
            let (name, column) = (target.name.clone(), column.name.clone());
            let is_name = !target.names(&column).names.is_empty();
            set(trace, &name, &column, row, if is_name { 0.0 } else { rng.below(9) as f64 });
            return;
        }
    }
    reorder(&mut trace.tables[table], &order);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn streamed_diffs_of_edited_traces_equal_those_in_memory(
        edits in prop::collection::vec((0usize..14, 0usize..6, prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64], 0usize..40), 1..9),
        sizes in (1usize..300, 1usize..300), seed in any::<u64>(), is_small in any::<bool>(),
    ) {
        static REPLAYED: std::sync::LazyLock<Trace> = std::sync::LazyLock::new(|| replay_with(&session(), &[]));
        let a = if is_small { small() } else { REPLAYED.clone() };
        let (mut b, mut rng) = (a.clone(), Rng::new(Seed(seed), 0));
        edits.into_iter().for_each(|change| edit(&mut b, change, &mut rng));
        let sizes = if is_small { [1 + sizes.0 % 4, 1 + sizes.1 % 4] } else { [sizes.0, sizes.1] };
        assert_same_streamed(&a, &b, sizes, &DiffOptions::default());
        assert_same_in_files(&a, &b, &DiffOptions::default());
        assert_same_streamed(&b, &a, sizes, &DiffOptions { overlap_only: true, ..DiffOptions::default() });
    }
}

/// The parts of a file, found by the index, have the rows of the file.
#[test]
fn the_parts_of_a_file_are_its_rows() {
    let trace = replay_with(&session(), &[]);
    let file = write_trace(Vec::new(), &trace).expect("memory takes all");
    let index = IndexedTrace::open(Cursor::new(&file)).expect("a trace");
    assert_eq!(index.header(), &trace.header);
    let whole = read_trace(&file[..]).expect("a trace");
    for (table, (shape, rows)) in whole.tables.iter().zip(index.tables()) {
        assert_eq!((&table.name, table.rows() as u64), (&shape.name, rows));
        let parts = index.chunks_of(&shape.name, None);
        let parts = parts.map(|chunk| index.chunk(Cursor::new(&file), chunk, &[]).expect("a part"));
        let together = parts.reduce(|mut so_far, more| {
            so_far.append(more).expect("rows of the same table");
            so_far
        });
        assert!(together.is_none_or(|together| together.digest() == table.digest()), "{}", table.name);
    }
    let chunk = index.chunks_of("frames", None).next().expect("there are frames");
    let named = index.chunk(Cursor::new(&file), chunk, &["player", "command"]).expect("a part");
    assert_eq!(named.columns.iter().map(|c| &*c.name).collect::<Vec<_>>(), ["player", "command"]);
    for place in (0..file.len()).step_by(file.len() / 64) {
        let mut changed = file.clone();
        changed[place] ^= 1;
        // The chunk is as it was, or its error says so.
        let part = index.chunk(Cursor::new(&changed), chunk, &["player", "command"]);
        assert!(part.is_ok_and(|part| part == named) || index.chunk(Cursor::new(&changed), chunk, &[]).is_err());
    }
    assert!(index.chunk(Cursor::new(&file[..60]), chunk, &[]).is_err());
}
