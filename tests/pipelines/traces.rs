//! Traces for comparisons: one made by hand, with known cells, and replays of the discs.

use std::sync::Arc;

use hitreg::link::{LinkModel, Loss};
use hitreg::record::Session;
use hitreg::replay::{LogSurvey, ReplayOptions, ReplayOutput, replay};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::trace::{Column, ColumnData, Table, Trace, TraceHeader};
use hitreg::verify::{LogFacts, LogReport, VerifiedReplay, VerifyReference, judge};

use crate::disc::{DiscRules, Discs};

/// Two players for eight ticks of 16 ms. Player 1 runs along x, one usercmd a tick. Player 0 stands and shoots player 1
/// in ticks 4 and 6.
pub(crate) fn small() -> Trace {
    let ticks = || 1..=8u32;
    let at_us = |tick: u32| i64::from(tick) * 16_000;
    let each = || ticks().flat_map(|tick| (0..2u32).map(move |player| (tick, player)));
    let x = |(tick, player): (u32, u32)| if player == 1 { tick as f32 * 4.0 } else { 0.0 };
    let header = TraceHeader { game: "discs".into(), mode: "closed".into(), ..TraceHeader::default() };
    let bodies = vec![
        column("tick", ColumnData::U32(each().map(|(tick, _)| tick).collect())),
        column("entity", ColumnData::U32(each().map(|(_, player)| player).collect())),
        column("origin.x", ColumnData::F32(each().map(x).collect())),
        column("origin.y", ColumnData::F32(each().map(|(_, player)| player as f32 * 300.0).collect())),
        column("velocity.x", ColumnData::F32(each().map(|(_, player)| player as f32 * 250.0).collect())),
        column("refire_ms", ColumnData::U32(each().map(|(tick, player)| (1 - player) * (200 - tick * 16)).collect())),
    ];
    let executed = vec![
        column("player", ColumnData::U32(each().map(|(_, player)| player).collect())),
        column("command", ColumnData::U32(each().map(|(tick, _)| tick).collect())),
        column("tick", ColumnData::U32(each().map(|(tick, _)| tick).collect())),
        column("how", names(&["run", "stood_in", "missing", "late", "over_budget"], &[0; 16])),
    ];
    let frames = vec![
        column("player", ColumnData::U32(each().map(|(_, player)| player).collect())),
        column("at_us", ColumnData::I64(each().map(|(tick, _)| at_us(tick) - 8_000).collect())),
        column("command", ColumnData::U32(each().map(|(tick, _)| tick).collect())),
        column("msec", ColumnData::U32(vec![16; 16])),
        column("yaw", ColumnData::F32(each().map(|(_, player)| player as f32 * 90.0).collect())),
        column("forwardmove", ColumnData::F32(each().map(|(_, player)| player as f32 * 250.0).collect())),
        column(
            "buttons",
            ColumnData::U32(each().map(|(tick, player)| u32::from(player == 0 && tick % 2 == 0)).collect()),
        ),
        column("has_body", ColumnData::U32(each().map(|(tick, _)| u32::from(tick > 1)).collect())),
        column("own.origin.x", ColumnData::F32(each().map(x).collect())),
    ];
    let corrections = vec![
        column("player", ColumnData::U32(vec![1, 1])),
        column("at_us", ColumnData::I64(vec![40_000, 104_000])),
        column("command", ColumnData::U32(vec![2, 6])),
        column("result", names(&["exact", "near", "miss"], &[0, 2])),
        column("error_units", ColumnData::F32(vec![0.0, 1.5])),
        column("reran", ColumnData::U32(vec![0, 3])),
        column("cause", names(&["none", "input_lost", "knockback"], &[0, 2])),
        column("evidence", names(&["none", "snapshot"], &[0, 1])),
    ];
    let tables = vec![
        table(
            "ticks",
            vec![
                column("tick", ColumnData::U32(ticks().collect())),
                column("at_us", ColumnData::I64(ticks().map(at_us).collect())),
                column("hash", ColumnData::U64(ticks().map(|tick| 0x1234_5678_9abc_0000 + u64::from(tick)).collect())),
            ],
        ),
        table("bodies", bodies),
        table("executed", executed),
        table("frames", frames),
        table("corrections", corrections),
        table("views", views()),
        table("shots", shots()),
    ];
    Trace { header, tables }
}

/// Player 0 sees entity 1 and player 1 sees entity 0.
fn views() -> Vec<Column> {
    let each = || (2..=8u32).flat_map(|command| (0..2u32).map(move |player| (command, player)));
    vec![
        column("player", ColumnData::U32(each().map(|(_, player)| player).collect())),
        column("command", ColumnData::U32(each().map(|(command, _)| command).collect())),
        column(
            "drawn_at_us",
            ColumnData::I64(each().map(|(command, _)| i64::from(command) * 16_000 - 108_000).collect()),
        ),
        column("entity", ColumnData::U32(each().map(|(_, player)| 1 - player).collect())),
        column(
            "origin.x",
            ColumnData::F32(each().map(|(command, player)| (1 - player) as f32 * (command * 4) as f32).collect()),
        ),
        column("origin.y", ColumnData::F32(vec![0.0; 14])),
        column("origin.z", ColumnData::F32(vec![0.0; 14])),
        column("how", names(&["interpolated", "extrapolated", "held"], &[0; 14])),
    ]
}

fn shots() -> Vec<Column> {
    let reasons = ["hit", "blocked", "wide", "not run"];
    vec![
        column("shooter", ColumnData::U32(vec![0, 0])),
        column("command", ColumnData::U32(vec![4, 6])),
        column("index", ColumnData::U32(vec![0, 0])),
        column("at_us", ColumnData::I64(vec![64_000, 96_000])),
        column("tick", ColumnData::U32(vec![4, 6])),
        column("weapon", names(&["line"], &[0, 0])),
        column("rewind_us", ColumnData::I64(vec![140_000, 141_500])),
        column("limit", names(&["none", "max_unlag"], &[0, 0])),
        column("view_error_units", ColumnData::F32(vec![0.0, 0.25])),
        column("predicted_reason", names(&reasons, &[0, 0])),
        column("predicted_target", names(&["none", "p1"], &[1, 1])),
        column("reason", names(&reasons, &[0, 2])),
        column("target", names(&["none", "p1"], &[1, 0])),
        column("hitgroup", names(&["none", "chest"], &[1, 0])),
        column("damage", ColumnData::I64(vec![24, 0])),
        column("pellets", ColumnData::U32(vec![1, 0])),
    ]
}

pub(crate) fn column(name: &str, data: ColumnData) -> Column {
    Column::new(name, data)
}

pub(crate) fn table(name: &str, columns: Vec<Column>) -> Table {
    Table::new(name, columns)
}

pub(crate) fn names(names: &[&str], codes: &[u32]) -> ColumnData {
    ColumnData::Name { names: names.iter().map(|n| (*n).to_owned()).collect(), codes: codes.to_vec() }
}

/// The cells of one column, for changes.
pub(crate) fn data<'a>(trace: &'a mut Trace, table: &str, column: &str) -> &'a mut ColumnData {
    let table = trace.tables.iter_mut().find(|t| t.name == table).expect("the table");
    &mut table.columns.iter_mut().find(|c| c.name == column).expect("the column").data
}

/// Changes one cell.
pub(crate) fn set(trace: &mut Trace, table: &str, column: &str, row: usize, value: f64) {
    match data(trace, table, column) {
        ColumnData::U32(v) => v[row] = value as u32,
        ColumnData::U64(v) => v[row] = value as u64,
        ColumnData::I64(v) => v[row] = value as i64,
        ColumnData::F32(v) => v[row] = value as f32,
        ColumnData::F64(v) => v[row] = value,
        ColumnData::Bool(v) => v[row] = value != 0.0,
        ColumnData::Name { codes, .. } => codes[row] = value as u32,
    }
}

/// Reorders the rows of a table: row i becomes the former row order[i].
pub(crate) fn reorder(table: &mut Table, order: &[usize]) {
    fn of<T: Copy>(values: &mut Vec<T>, order: &[usize]) {
        *values = order.iter().map(|row| values[*row]).collect();
    }
    for column in &mut table.columns {
        match &mut column.data {
            ColumnData::U32(v) => of(v, order),
            ColumnData::U64(v) => of(v, order),
            ColumnData::I64(v) => of(v, order),
            ColumnData::F32(v) => of(v, order),
            ColumnData::F64(v) => of(v, order),
            ColumnData::Bool(v) => of(v, order),
            ColumnData::Name { codes, .. } => of(codes, order),
        }
    }
}

/// Four discs for some seconds over a link that loses packets.
pub(crate) fn session(seed: u64, seconds: f64, rules: DiscRules) -> Session {
    let link = LinkModel { delay_ms: 40.0, loss: Loss::Random(0.02), ..LinkModel::default() };
    let scenario = Scenario { players: 4, seconds, seed, link, ..Scenario::default() };
    let header = scenario.header::<Discs>(&rules).expect("a good scenario");
    let mut session = Session::new(header);
    record_synthetic::<Discs>(&scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

/// The replay of a session under changed settings.
pub(crate) fn replay_with(session: &Session, change: &[&str]) -> Trace {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    for pair in change {
        settings.set_pair(pair).expect("a good setting");
    }
    let options = ReplayOptions { settings: Some(settings), network: true, ..ReplayOptions::default() };
    replay::<Discs>(session, &options, &mut |_| {}).expect("a log of this build").trace
}

/// Verifies replays of a session in memory.
pub(crate) fn verify_replays(session: &Session, replays: &[ReplayOutput], against: VerifyReference<'_>) -> LogReport {
    let facts = LogFacts::of_log(&session.header, &LogSurvey::of(session), 0);
    judge(&facts, Ok(&replays.iter().map(VerifiedReplay::of).collect::<Vec<_>>()), against)
}
