//! Statements of the founding documents on live sessions, over real sockets and in real time. They do not depend on the
//! speed of the machine. `hitreg claims` measures all others in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use crate::stage::{has_sockets, record};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::record::{Execution, PlayerRecords};
use hitreg::session::scenario::Scenario;
use hitreg::units::{CommandSeq, Micros, Tick};

/// The number of packets with a usercmd, and whether one of them reached the server.
fn reached(player: &PlayerRecords, seq: CommandSeq) -> (usize, bool) {
    let arrived: BTreeSet<u32> = player.reached.iter().map(|arrival| arrival.number).collect();
    let holds = |newest: CommandSeq, count: u8| (newest.0 + 1 - u32::from(count)..=newest.0).contains(&seq.0);
    let carriers: Vec<u32> =
        player.sent.iter().filter(|packet| holds(packet.newest, packet.count)).map(|packet| packet.number).collect();
    (carriers.len(), carriers.iter().any(|number| arrived.contains(number)))
}

#[test]
fn input_is_lost_only_by_four_lost_packets_in_a_row() {
    if !has_sockets() {
        return;
    }
    let scenario = Scenario {
        players: 6,
        seconds: 6.0,
        settings: [("client.redundancy".to_owned(), "4".to_owned())].into(),
        // At this rate some input is lost in most runs. The checks below must hold in every run.
        link: LinkModel { delay_ms: 30.0, loss: Loss::Random(0.25), ..LinkModel::default() },
        ..Scenario::default()
    };
    let (session, _) = record(&scenario);
    let (mut packets_lost, mut ran, mut lost) = (0, 0, 0);
    for player in &session.players {
        packets_lost += player.sent.len() - player.reached.len();
        for executed in &player.executed {
            if executed.how == Execution::Run {
                ran += 1;
                continue;
            }
            lost += 1;
            let (carriers, came) = reached(player, executed.command);
            assert!(carriers >= 4 && !came, "{executed:?}: {carriers} packets, one of them came: {came}");
        }
    }
    eprintln!("{packets_lost} packets lost; {ran} usercmds ran, {lost} were lost");
    assert!(packets_lost > 100 && ran > 1_000, "{packets_lost} packets lost, {ran} usercmds ran");
}

#[test]
fn input_runs_in_the_first_tick_at_its_time_or_never() {
    if !has_sockets() {
        return;
    }
    let scenario = Scenario {
        preset: "nereids".to_owned(),
        players: 4,
        seconds: 6.0,
        link: LinkModel {
            delay_ms: 30.0,
            jitter: Jitter::Uniform(30.0),
            loss: Loss::Random(0.03),
            ..LinkModel::default()
        },
        ..Scenario::default()
    };
    let (session, _) = record(&scenario);
    let ticks: BTreeMap<Tick, Micros> = session.ticks.iter().map(|tick| (tick.tick, tick.at)).collect();
    let mut ran = 0;
    for player in &session.players {
        for executed in player.executed.iter().filter(|executed| executed.how == Execution::Run) {
            let frame = player.frames.iter().find(|frame| frame.command.seq == executed.command).expect("its frame");
            let stamp = frame.command.server_time;
            let before = executed.tick.0.checked_sub(1).and_then(|tick| ticks.get(&Tick(tick)));
            assert!(stamp <= ticks[&executed.tick], "{executed:?} ran before its time");
            assert!(before.is_none_or(|before| *before < stamp), "{executed:?} ran though its tick was over");
            ran += 1;
        }
    }
    assert!(ran > 300, "{ran} usercmds ran");
}
