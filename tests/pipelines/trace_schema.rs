//! The tables of a trace: their declarations, their documentation, and their capacity.

#![expect(clippy::disallowed_methods, reason = "an environment variable asks for a new page")]

use crate::disc::{DiscRules, Discs, TELEPORT};
use crate::{built_in, traces};
use hitreg::arena::ArenaRules;
use hitreg::bisect::bisect_ticks;
use hitreg::diff::{DiffOptions, TraceVerdict, diff};
use hitreg::golden::ReplaySummary;
use hitreg::link::{LinkModel, Loss};
use hitreg::log::{read_trace, write_trace};
use hitreg::record::Session;
use hitreg::replay::{ReplayOptions, replay};
use hitreg::session::scenario::Scenario;
use hitreg::sorted::SortedMap;
use hitreg::trace::schema::{self, TABLES, TableSchema, corrections, effects, errors, executed, frames};
use hitreg::trace::{ColumnData, Table, Trace};
use hitreg::usercmd::Input;
use hitreg::verify;

/// `HITREG_WRITE_DOCS=1 cargo test --test pipelines trace_schema` updates the page's tables.
#[test]
fn the_page_of_tables_has_every_table_and_column() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tables.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- tables -->\n", "<!-- end of tables -->");
    let (before, rest) = page.split_once(begin).expect("where the tables begin");
    let (_, after) = rest.split_once(end).expect("where they end");
    let current = format!("{before}{begin}\n{}{end}{after}", schema::document());
    if std::env::var_os("HITREG_WRITE_DOCS").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == current,
        "docs/tables.md lists other tables than crates/hitreg-log/src/trace/schema/tables.rs: run HITREG_WRITE_DOCS=1 cargo test --test pipelines trace_schema"
    );
}

/// A replay writes exactly the declared columns and the fields of the game's bodies.
#[test]
fn a_replay_writes_the_declared_columns() {
    let trace = traces::replay_with(&traces::session(3, 4.0, DiscRules::default()), &["interpolation.mode=category"]);
    assert_eq!(trace.tables.len(), TABLES.len());
    for table in &trace.tables {
        let declared = TableSchema::of(&table.name).expect("a declared table");
        let expected: Vec<String> = declared
            .columns
            .iter()
            // Optional columns exist only if a row has a value.
            .filter(|column| !column.optional || table.column(column.name).is_some())
            .flat_map(|column| column.parts.iter().map(|part| format!("{}{part}", column.name)))
            .collect();
        let written: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(written[..expected.len()], expected, "{}", table.name);
        let more = &written[expected.len()..];
        let prefix = declared.fields.map(|prefix| more.iter().all(|name| name.starts_with(prefix)));
        assert!(prefix.unwrap_or(more.is_empty()), "{}: {more:?}", table.name);
        for key in declared.key {
            assert!(table.column(key).is_some(), "{} has no {key}", table.name);
        }
    }
}

/// Returns the keys that occur more than once in a table.
fn repeated_keys(table: &Table) -> usize {
    let declared = TableSchema::of(&table.name).expect("a declared table");
    let cell = |data: &ColumnData, row: usize| match data {
        ColumnData::Name { names, codes } => names[codes[row] as usize].clone(),
        ColumnData::U32(numbers) => numbers[row].to_string(),
        ColumnData::I64(numbers) => numbers[row].to_string(),
        other => panic!("a key of type {}", other.type_name()),
    };
    let mut rows = SortedMap::<Vec<String>, usize>::new();
    for row in 0..table.rows() {
        let key = declared.key.iter().map(|key| cell(&table.column(key).expect("a key column").data, row));
        *rows.entry(key.collect()).or_default() += 1;
    }
    rows.values().filter(|rows| **rows > 1).count()
}

/// Bursts of loss hold acks back. Bots walk through the teleporter, and their knockback comes between two acks.
#[test]
fn keys_are_unique_except_where_the_declaration_says_so() {
    let link = LinkModel { delay_ms: 60.0, loss: Loss::Burst { enter: 0.01, leave: 0.06 }, ..LinkModel::default() };
    let scenario = Scenario { players: 4, seconds: 60.0, seed: 7, link, ..Scenario::default() };
    let session = built_in::record(&scenario, ArenaRules::default());
    let replayed = built_in::replay(&session, &ReplayOptions::default()).expect("a log of this build");
    let repeated = replayed.trace.tables.iter().filter(|table| repeated_keys(table) > 0);
    let repeated: Vec<&str> = repeated.map(|table| table.name.as_str()).collect();
    // A usercmd that arrives after its stand-in ran is rare.
    assert_eq!(repeated, [corrections::NAME, errors::NAME, effects::NAME]);
    let declared: Vec<&str> = TABLES.iter().filter(|table| table.repeats).map(|table| table.name).collect();
    assert_eq!(declared, [executed::NAME, corrections::NAME, errors::NAME, effects::NAME]);
}

/// The traces of a session, and of the session with other input in one usercmd.
fn with_other_input(change: impl Fn(&mut Input)) -> [Trace; 2] {
    let session = traces::session(5, 3.0, DiscRules { ghosts: true, ..DiscRules::default() });
    let mut other = session.clone();
    change(&mut other.players[1].frames[60].command.input);
    [session, other].map(|session| traces::replay_with(&session, &[]))
}

#[test]
fn differences_in_usercmds_are_not_blamed_on_the_build() {
    type Change = fn(&mut Input);
    let changes: [(&str, Change); 2] = [
        ("impulse of usercmd 61 of p1 is 0 in A, 9 in B", |input| input.impulse = TELEPORT),
        ("roll of usercmd 61 of p1 is 0 in A, 12 in B", |input| input.viewangles.z = 12.0),
    ];
    for (evidence, change) in changes {
        let [a, b] = with_other_input(change);
        let found = bisect_ticks(&a, &b, &DiffOptions::default(), None).expect("no tolerance");
        let cause = found.cause.expect("a cause");
        assert_eq!((cause.cause.name(), cause.evidence.as_str()), ("other_input", evidence));
    }
}

#[test]
fn frames_have_the_time_at_which_others_were_drawn() {
    let session = traces::session(5, 3.0, DiscRules::default());
    let lerp = |trace: &Trace| frames::Columns::of(trace).lerp_msec.to_vec();
    let recorded: usize = session.players.iter().map(|player| player.frames.len()).sum();
    assert_eq!(lerp(&traces::replay_with(&session, &["interpolation.lerp_ms=50"])), vec![50; recorded]);
}

#[test]
fn impulses_alone_count_as_exercised_input() {
    let mut session: Session = traces::session(5, 3.0, DiscRules { ghosts: true, ..DiscRules::default() });
    for frame in session.players.iter_mut().flat_map(|player| &mut player.frames) {
        frame.command.input = Input { msec: frame.command.input.msec, impulse: 3, ..Input::default() };
    }
    // The recorded hashes belong to other input.
    session.ticks.iter_mut().for_each(|tick| tick.hash = None);
    let replayed = || replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a replay");
    let replays = [replayed(), replayed()];
    // Without hashes, a golden is the only reference.
    let golden = ReplaySummary::of(&replays[0].trace).golden().expect("a golden");
    let against = verify::VerifyReference { golden: Some(&golden), rollback: false };
    let verified = traces::verify_replays(&session, &replays, against);
    assert_eq!((verified.verdict, verified.detail), (verify::LogVerdict::Same, None));
    assert_eq!(verified.exercised.active_usercmds, verified.exercised.usercmds);
}

#[test]
fn a_column_has_room_for_more_than_256_names() {
    let mut rows = effects::Writer::default();
    let kinds: Vec<String> = (0..700).map(|kind| format!("sound {kind}")).collect();
    for (entity, kind) in (0..).zip(&kinds) {
        rows.push(effects::Row { player: 0, at_us: 0, kind, entity, at: glam::Vec3::ZERO, predicted: 1 });
    }
    let trace = Trace { tables: vec![rows.finish(Vec::new())], ..Trace::default() };
    let back = read_trace(&write_trace(Vec::new(), &trace).unwrap()[..]).unwrap();
    assert_eq!(effects::Columns::of(&back).kind.iter().collect::<Vec<_>>(), kinds);
    assert_eq!(back.digest(), trace.digest());
    let mut other = trace.clone();
    if let ColumnData::Name { codes, .. } = &mut other.tables[0].columns[2].data {
        codes[699] -= 256;
    }
    assert_ne!(other.digest(), trace.digest());
    assert_eq!(diff(&trace, &other, &DiffOptions::default()).expect("no tolerance").verdict, TraceVerdict::Differs);
}

#[test]
fn a_missing_column_is_a_difference() {
    let session = traces::session(5, 3.0, DiscRules::default());
    let whole = traces::replay_with(&session, &[]);
    let mut lacking = whole.clone();
    lacking.tables[3].columns.retain(|column| column.name != "buttons");
    assert_eq!(diff(&lacking, &whole, &DiffOptions::default()).expect("no tolerance").verdict, TraceVerdict::Differs);
}
