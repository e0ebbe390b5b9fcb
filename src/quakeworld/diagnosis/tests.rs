//! Tests of the open loop and of the causes: demos that a server made of the same movement code writes, with and without
//! losses on the way.

use super::*;
use crate::quakeworld::testing::{DemoWriter, STANDING_Z, bsp_bytes, own_state};

const VARS: MoveVars = MoveVars {
    gravity: 800.0,
    stop_speed: 100.0,
    max_speed: 320.0,
    spectator_max_speed: 500.0,
    accelerate: 10.0,
    air_accelerate: 0.7,
    water_accelerate: 10.0,
    friction: 6.0,
    water_friction: 1.0,
    entity_gravity: 1.0,
};

/// What happens to one command's packet on its way, and to the answer.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Arrives,
    Lost,
    AnswerLost,
    Hurts,
}

/// A player runs in circles, jumps and swims; `fate` says what becomes of each packet.
fn recorded(commands: usize, fate: impl Fn(usize) -> Fate) -> Demo {
    recorded_with(commands, fate, &[])
}

/// The same, with `extra` messages in every packet that the server knows nothing of.
fn recorded_with(commands: usize, fate: impl Fn(usize) -> Fate, extra: &[u8]) -> Demo {
    let map = Map::parse(&bsp_bytes()).expect("good");
    let dialect = Dialect::Classic { soft_landing: true };
    let runner = Runner { dialect, vars: &VARS, world: World { map: &map, solids: &[] } };
    let mut state = PlayerState { on_ground: true, ..PlayerState::at([0.0, 0.0, STANDING_Z]) };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let cmd = |n: usize| UserCmd {
        msec: 14,
        angles: [0.0, wire_angle_degrees((n * 3 % 360) as f32), 0.0],
        forward: 400,
        side: if n % 50 < 25 { 400 } else { 0 },
        buttons: if n % 60 < 5 { BUTTON_JUMP } else { 0 },
        ..UserCmd::default()
    };
    let mut received: Option<usize> = None;
    for n in 0..commands {
        let time_s = n as f32 * 0.014;
        demo.command(time_s, &cmd(n));
        if fate(n) == Fate::Lost {
            continue;
        }
        let mut run = runner.start(&state);
        let missed = received.map_or(0, |last| n - last - 1);
        if missed < 20 {
            for _ in 2..missed {
                runner.command(&mut run, &cmd(received.expect("something came")).repeated_by_server());
            }
            for back in (1..=missed.min(2)).rev() {
                runner.command(&mut run, &cmd(n - back));
            }
        }
        runner.command(&mut run, &cmd(n));
        runner.end_packet(&mut run);
        state = run.state;
        state.view_fixed = false;
        received = Some(n);
        let mut messages = Vec::new();
        if fate(n) == Fate::Hurts {
            state.velocity = [-200.0, 30.0, 150.0];
            messages.extend([19, 5, 7, 0, 0, 0, 0, 0, 0]);
        }
        if fate(n) != Fate::AnswerLost {
            messages.extend(own_state(state.origin, state.velocity));
            messages.extend(extra);
            demo.packet(time_s + 0.04, n as u32 + 2, n as u32 + 1, &messages);
        }
    }
    Demo::parse(&demo.bytes).expect("good")
}

/// A player stands on a lift that rises two units a command from command 20 on, and runs once it is up.
fn on_a_lift(commands: usize) -> Demo {
    let map = Map::parse(&bsp_bytes()).expect("good");
    let mut state = PlayerState { on_ground: true, ..PlayerState::at([0.0, 0.0, 8.0 + STANDING_Z]) };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let height = |n: usize| 8.0 + 2.0 * n.clamp(20, 60) as f32 - 40.0;
    for n in 0..commands {
        let cmd = UserCmd { msec: 14, forward: if n > 70 { 200 } else { 0 }, ..UserCmd::default() };
        demo.command(n as f32 * 0.014, &cmd);
        let origin = [0.0, 0.0, height(n)];
        let moved = [0.0, 0.0, height(n) - height(n.saturating_sub(1))];
        let solids = [Solid::Mover { model: 1, origin, moved }];
        let world = World { map: &map, solids: &solids };
        let runner = Runner { dialect: Dialect::Classic { soft_landing: true }, vars: &VARS, world };
        state = runner.run(&state, &[cmd]).state;
        let mut messages = own_state(state.origin, state.velocity);
        messages.extend([47, 40, 0x88, 4, 2]); // entity 40 with model 2 of the list, which is submodel 1
        messages.extend(((height(n) * 8.0) as i16).to_le_bytes());
        messages.extend([0, 0]);
        demo.packet(n as f32 * 0.014 + 0.04, n as u32 + 2, n as u32 + 1, &messages);
    }
    Demo::parse(&demo.bytes).expect("good")
}

fn misses(demo: &Demo) -> (usize, Vec<(usize, Cause, Evidence)>) {
    misses_among(demo, Bodies::Acking)
}

fn misses_among(demo: &Demo, bodies: Bodies) -> (usize, Vec<(usize, Cause, Evidence)>) {
    let map = Map::parse(&bsp_bytes()).expect("good");
    let mut checked = 0;
    let mut found = Vec::new();
    open_loop(demo, &map, bodies, |check| {
        checked += 1;
        if check.prediction.verdict == Verdict::Miss {
            let (cause, evidence) = check.prediction.explain();
            found.push((check.commands.end - 1, cause, evidence));
        }
    });
    (checked, found)
}

#[test]
fn prediction_without_loss_equals_the_server() {
    let demo = recorded(2_000, |_| Fate::Arrives);
    let (checked, found) = misses(&demo);
    assert_eq!(checked, 1_999);
    assert_eq!(found, []);
}

#[test]
fn lost_answers_and_lost_pairs_do_not_matter() {
    let fate = |n: usize| match n % 17 {
        3 | 4 => Fate::Lost,
        8..=11 => Fate::AnswerLost,
        _ => Fate::Arrives,
    };
    let (checked, found) = misses(&recorded(1_000, fate));
    assert!(checked > 600);
    assert!(found.len() <= 2, "{found:?}");
}

#[test]
fn a_burst_of_losses_is_found_in_its_place() {
    let demo = recorded(300, |n| if (222..228).contains(&n) { Fate::Lost } else { Fate::Arrives });
    let (_, found) = misses(&demo);
    let last = Burst { lost: 6, arrived: 6 };
    let hypothesis = Hypothesis::Lost { first: None, last };
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0], (228, Cause::InputLost, Evidence::Reproduced { hypothesis }));
}

#[test]
fn damage_is_believed_from_its_message() {
    let demo = recorded(300, |n| if n == 150 { Fate::Hurts } else { Fate::Arrives });
    let (_, found) = misses(&demo);
    assert_eq!(found[0], (150, Cause::DamageOrKnockback, Evidence::DamageMessage { armor: 5, health: 7 }));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn the_statistics_count_what_was_lost() {
    let fate = |n: usize| if n % 10 == 9 { Fate::AnswerLost } else { Fate::Arrives };
    let statistics = recorded(201, fate).statistics();
    assert_eq!((statistics.usercmds, statistics.packets, statistics.lost), (201, 181, 20));
    assert!((statistics.rtt_ms.p50 - 40.0).abs() < 0.1);
}

#[test]
fn a_lift_is_followed_where_the_acking_packet_shows_it() {
    let demo = on_a_lift(120);
    assert_eq!(misses(&demo), (119, vec![]));
    let (_, blind) = misses_among(&demo, Bodies::Acked);
    assert!(blind.len() >= 35, "{}", blind.len());
    let all_by_the_lift = blind.iter().all(|(_, cause, evidence)| {
        (*cause, *evidence) == (Cause::Mover, Evidence::TouchedMover { model: 1 }) || *cause == Cause::Quantisation
    });
    assert!(all_by_the_lift, "{blind:?}");
}

#[test]
fn a_player_who_was_not_there_is_found_out() {
    let mut ghost = vec![42, 5, 0, 0];
    for axis in [40.0f32, 60.0, STANDING_Z] {
        ghost.extend(((axis * 8.0) as i16).to_le_bytes());
    }
    ghost.push(0);
    let (_, found) = misses(&recorded_with(400, |_| Fate::Arrives, &ghost));
    let (_, cause, evidence) = found[0];
    assert_eq!(cause, Cause::OtherPlayer);
    assert_eq!(evidence, Evidence::Reproduced { hypothesis: Hypothesis::NoPlayers });
    let by_the_ghost = found.iter().filter(|(_, cause, _)| *cause == Cause::OtherPlayer).count();
    assert!(by_the_ghost * 10 > found.len() * 9, "{by_the_ghost} of {}", found.len());
}
