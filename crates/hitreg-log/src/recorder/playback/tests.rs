use super::*;
use crate::record::{ClassId, CustomRow, ExecutionRecord, FrameRecord, OwnValue, PresenceRecord, StateRecord};
use crate::units::EntityId;
use crate::usercmd::Usercmd;

fn session(executions: &[(u16, u32, u32, Execution)]) -> Session {
    let described = Description::new("mygame").player("p0").player("p1");
    let mut session = Session::new(described.into_header().unwrap().0);
    for number in 1..=2 {
        let (tick, at) = (Tick(number), Micros(i64::from(number) * 10_000));
        session.ticks.push(TickRecord { tick, at, hash: None });
        let command = Usercmd { seq: CommandSeq(number), ..Usercmd::default() };
        session.players[0].frames.push(FrameRecord { at, command, ..FrameRecord::default() });
    }
    for &(player, command, tick, how) in executions {
        let done = ExecutionRecord { command: CommandSeq(command), tick: Tick(tick), how };
        session.players[usize::from(player)].executed.push(done);
    }
    let joined = PresenceRecord { tick: Tick(2), at: Micros(20_000), change: Presence::Joined };
    session.players[1].presence.push(joined);
    session
}

fn steps(session: &Session) -> (Vec<PlaybackStep>, usize) {
    let (mut steps, mut copied, mut all) = (PlaybackSteps::new(session), 0, Vec::new());
    let mut copy = |_| {
        copied += 1;
        Ok::<(), ()>(())
    };
    while let Some(step) = steps.next(session, &mut copy).unwrap() {
        all.push(step);
    }
    (all, copied)
}

fn input(frame: usize, how: Execution) -> PlaybackStep {
    PlaybackStep::Input { player: PlayerId(0), frame, how }
}

#[test]
fn usercmds_run_in_the_ticks_that_executed_them() {
    use Execution::{Late, Run, StoodIn};
    let mut session = session(&[(0, 1, 2, Run), (0, 2, 2, StoodIn), (0, 2, 2, Late), (0, 1, 2, Run)]);
    let key = StateRecord::shared(Tick(0), EntityId(3), Vec::new()).key();
    assert_eq!(key.class, ClassId(0));
    session.states.push(key, &[]);
    let ran = [input(0, Run), input(0, StoodIn), input(0, Run)];
    let begin = [PlaybackStep::Restore(0), PlaybackStep::Tick, PlaybackStep::Join(PlayerId(1))];
    let expected = begin.into_iter().chain(ran).chain([PlaybackStep::Tick]);
    assert_eq!(steps(&session), (expected.collect(), 2 + 4));
}

/// Player 1 joined in tick 1 of a session whose tick 2 is the first of this log, and player 0 joins in tick 2.
#[test]
fn present_players_join_before_their_bodies_are_restored() {
    let mut session = session(&[]);
    session.ticks.remove(0);
    session.players[0].frames.clear();
    let change = |tick, change| PresenceRecord { tick: Tick(tick), at: Micros(i64::from(tick) * 10_000), change };
    session.players[0].presence.push(change(2, Presence::Joined));
    session.players[1].presence = vec![change(1, Presence::Joined), change(2, Presence::Left)];
    session.states.push(StateRecord::shared(Tick(0), EntityId(1), Vec::new()).key(), &[]);
    let [zero, one] = [0, 1].map(PlayerId);
    let begin = [PlaybackStep::Join(one), PlaybackStep::Restore(0)];
    let tick = [PlaybackStep::Join(zero), PlaybackStep::Leave(one), PlaybackStep::Tick];
    assert_eq!(steps(&session).0, [&begin[..], &tick].concat());
}

#[test]
fn rows_of_custom_kinds_come_first_in_a_tick_by_their_times() {
    let mut session = session(&[]);
    let described = Description::new("mygame").player("p0").kind("events", Vec::new()).kind("chat", Vec::new());
    session.header.unknown = described.into_header().unwrap().0.unknown;
    for (kind, at) in [(0, 9_000), (1, 9_500), (0, 9_900), (0, 10_000), (1, 10_001), (1, 20_001)] {
        let row = CustomRow { kind, series: 0, values: vec![OwnValue::Number(at)] };
        session.push(Record::Row(Micros(at), row)).unwrap();
    }
    let row = |kind, row| PlaybackStep::Row { kind, row };
    let begin = [row(0, 0), row(1, 0), row(0, 1), row(0, 2), input(0, Execution::Run), PlaybackStep::Tick, row(1, 1)];
    assert_eq!(steps(&session).0[..7], begin);
    assert_eq!(steps(&session).0.len(), 7 + 3, "a row after the last tick is no step");
}

#[test]
fn without_executions_usercmds_run_by_their_times() {
    let run = Execution::Run;
    let join = PlaybackStep::Join(PlayerId(1));
    let expected = [input(0, run), PlaybackStep::Tick, join, input(1, run), PlaybackStep::Tick];
    assert_eq!(steps(&session(&[])), (expected.to_vec(), 2));
}

#[test]
fn a_number_that_is_used_again_runs_its_newest_usercmd() {
    use Execution::Run;
    let mut session = session(&[(0, 1, 1, Run), (0, 1, 2, Run), (0, 2, 2, Run)]);
    session.players[0].frames[1].command.seq = CommandSeq(1);
    let command = Usercmd { seq: CommandSeq(2), ..Usercmd::default() };
    // The clock of this usercmd is ahead of the tick that runs it.
    session.players[0].frames.push(FrameRecord { at: Micros(20_001), command, ..FrameRecord::default() });
    let join = PlaybackStep::Join(PlayerId(1));
    let expected = [input(0, Run), PlaybackStep::Tick, join, input(1, Run), input(2, Run), PlaybackStep::Tick];
    assert_eq!(steps(&session).0, expected);
}

#[test]
fn other_arguments_are_untestable() {
    let play = |args: &[&str]| Playback::from_args(args.iter().map(OsString::from), "mygame").unwrap_err();
    for args in [&["step", "a.hitlog"][..], &[], &["replay", "a.hitlog"], &["replay", "a", "-o", "b", "--mode", "x"]] {
        assert_eq!(play(args).exit_code(), 125, "{args:?}");
    }
    let usage = "replay LOG -o TRACE [--set KEY=VALUE]...";
    assert_eq!(play(&["replay", "a.hitlog"]).to_string(), format!("`-o TRACE` is missing: {usage}"));
    assert_eq!(play(&["replay", "-o", "b"]).to_string(), format!("the log is missing: {usage}"));
    assert_eq!(play(&["replay", "no-such.hitlog", "-o", "b.hittrace"]).exit_code(), 128);
}

#[test]
fn a_build_without_arguments_says_what_is_missing() {
    let error = Playback::from_args([], "mygame").unwrap_err();
    assert_eq!(error.to_string(), "the command is missing: replay LOG -o TRACE [--set KEY=VALUE]...");
    assert_eq!(error.exit_code(), 125);
}
