//! Reruns of usercmds by `bisect`: only usercmds that both runs executed, and only among other bodies with known
//! positions.

use hitreg::bisect::{RerunResult, RerunStep, bisect_ticks};
use hitreg::diff::{DiffOptions, DiffScope, NamedValue, TraceSide};
use hitreg::trace::{ColumnData, Trace};

use crate::disc::DiscRules;
use crate::traces::{data, replay_with, session};

fn trace() -> Trace {
    replay_with(&session(5, 4.0, DiscRules { ghosts: true, ..DiscRules::default() }), &[])
}

fn on_state() -> DiffOptions {
    DiffOptions { on: DiffScope::State, ..DiffOptions::default() }
}

/// The row of a player in a tick, of `bodies` or of `executed`.
fn row(trace: &Trace, table: &str, player: u32, tick: u32) -> usize {
    let known = trace.table(table).expect("the table");
    let of = if table == "bodies" { "entity" } else { "player" };
    let mut rows = known.u32s("tick").iter().zip(known.u32s(of));
    rows.position(|key| key == (&tick, &player)).expect("a row")
}

fn move_by(trace: &mut Trace, player: u32, tick: u32, units: f32) {
    let row = row(trace, "bodies", player, tick);
    let ColumnData::F32(x) = data(trace, "bodies", "origin.x") else { panic!("a coordinate") };
    x[row] += units;
}

fn how(trace: &mut Trace, player: u32, tick: u32, how: &str) {
    let row = row(trace, "executed", player, tick);
    let ColumnData::Name { names, codes } = data(trace, "executed", "how") else { panic!("names") };
    let code = names.iter().position(|name| name == how).unwrap_or_else(|| {
        names.push(how.to_owned());
        names.len() - 1
    });
    codes[row] = code as u32;
}

const TICK: u32 = 100;

/// Whether `bisect` reran a usercmd of player 1 for a moved body, and the other players in the rerun.
fn rerun(a: &Trace, b: &Trace, options: &DiffOptions) -> (bool, Vec<u32>) {
    let mut among = Vec::new();
    let mut run = |_: TraceSide, step: &RerunStep<'_>| -> Result<Vec<NamedValue>, String> {
        among = step.others.keys().map(|owner| owner.entity).collect();
        Ok(step.body.to_vec())
    };
    let found = bisect_ticks(a, b, options, Some(&mut run)).expect("no bad tolerance");
    assert_eq!(found.first.expect("a body is elsewhere").place.tick, Some(TICK));
    if let Some(reran) = &found.reran {
        assert!(matches!(reran, RerunResult::Same), "{reran:?}");
    }
    (found.reran.is_some(), among)
}

#[test]
fn only_usercmds_of_both_runs_are_rerun() {
    let a = trace();
    let mut b = a.clone();
    move_by(&mut b, 1, TICK, 50.0);
    assert!(rerun(&a, &b, &on_state()).0);
    for (of_a, of_b) in [("late", "late"), ("missing", "missing"), ("stood_in", "stood_in"), ("run", "late")] {
        let (mut a, mut b) = (a.clone(), b.clone());
        how(&mut a, 1, TICK, of_a);
        how(&mut b, 1, TICK, of_b);
        assert!(!rerun(&a, &b, &on_state()).0, "{of_a} {of_b}");
    }
}

#[test]
fn a_rerun_has_the_bodies_that_agree_in_both() {
    let a = trace();
    let mut b = a.clone();
    move_by(&mut b, 1, TICK, 50.0);
    assert_eq!(rerun(&a, &b, &on_state()).1, [0, 1, 2, 3]);
    // Another player already differs within the tolerance.
    move_by(&mut b, 2, TICK - 1, 0.5);
    let tolerant =
        DiffOptions { tolerances: ["origin=1".parse().expect("a tolerance")].into_iter().collect(), ..on_state() };
    assert_eq!(rerun(&a, &b, &tolerant).1, [0, 1, 3]);
}

#[test]
fn another_players_input_can_be_the_cause() {
    let mut a = trace();
    a.tables.retain(|table| table.name != "bodies");
    let mut b = a.clone();
    let hash = a.table("ticks").expect("ticks").u32s("tick").iter().position(|tick| *tick == TICK).expect("the tick");
    let ColumnData::U64(hashes) = data(&mut b, "ticks", "hash") else { panic!("hashes") };
    hashes[hash] ^= 1;
    let cause =
        |b: &Trace| bisect_ticks(&a, b, &on_state(), None).expect("no tolerance").cause.map(|found| found.cause.name());
    let same_input = cause(&b);
    assert_ne!(same_input, Some("other_input"));
    // The last player of the tick has other input.
    let command = a.table("executed").expect("executed").u32s("command")[row(&a, "executed", 3, TICK)];
    let frames = a.table("frames").expect("frames");
    let mut rows = frames.u32s("player").iter().zip(frames.u32s("command"));
    let frame = rows.position(|key| key == (&3, &command)).expect("the usercmd");
    let mut other = b.clone();
    let ColumnData::F32(forward) = data(&mut other, "frames", "forwardmove") else { panic!("a speed") };
    forward[frame] += 1.0;
    assert_eq!(cause(&other), Some("other_input"));
    // A build without client frames has no input to compare.
    let mut silent = b.clone();
    silent.tables.retain(|table| table.name != "frames");
    assert_eq!(cause(&silent), same_input);
}
