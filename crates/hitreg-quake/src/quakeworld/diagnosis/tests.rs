//! Tests of the client pipeline and of the causes, on generated demos. A server with the same movement code writes
//! them, with and without packet loss.

mod evidence;

use crate::bsp::tests::{STANDING_Z, quake_bytes};
use crate::quakeworld::movement::{
    BUTTON_JUMP, MoveRunner, QuakeWorldPlayerState, Surroundings, WorldSolid, wire_angle_degrees,
};
use crate::quakeworld::tests::{DemoWriter, own_state};
use crate::quakeworld::*;
use hitreg_analysis::summary::Summary;
use hitreg_log::trace::Trace;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Input;
use hitreg_netcode::client::Client;
use hitreg_netcode::game::PlacedBody;
use hitreg_netcode::info::SessionInfo;
use hitreg_netcode::packet::{ClientPacket, Snapshot};
use hitreg_netcode::pipeline::{ClientFrameOutput, ClientPipeline, ReconcileOutcome, Setup};
use hitreg_netcode::replay::replay_clients;

/// The fate of one command's packet and of its answer.
#[derive(Clone, Copy, PartialEq)]
enum SentPacketFate {
    Arrives,
    Lost,
    AnswerLost,
    Hurts,
}

/// Writes the demo of a player who runs in circles, jumps and swims. `fate` gives the fate of each packet.
fn recorded(commands: usize, fate: impl Fn(usize) -> SentPacketFate) -> Vec<u8> {
    recorded_with(commands, fate, &[])
}

/// Writes the same demo with `extra` messages in every packet, which the server does not act on.
fn recorded_with(commands: usize, fate: impl Fn(usize) -> SentPacketFate, extra: &[u8]) -> Vec<u8> {
    let map = QuakeMap::parse(&quake_bytes()).expect("good");
    let dialect = Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false };
    let runner =
        MoveRunner { dialect, vars: &QuakeWorldMoveVars::default(), world: Surroundings { map: &map, solids: &[] } };
    let mut state = QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z]) };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let cmd = |n: usize| QuakeWorldUsercmd {
        msec: 14,
        angles: [0.0, wire_angle_degrees((n * 3 % 360) as f32), 0.0],
        forward: 400,
        side: if n % 50 < 25 { 400 } else { 0 },
        buttons: if n % 60 < 5 { BUTTON_JUMP } else { 0 },
        ..QuakeWorldUsercmd::default()
    };
    let mut received: Option<usize> = None;
    for n in 0..commands {
        let time_s = n as f32 * 0.014;
        demo.command(time_s, &cmd(n));
        if fate(n) == SentPacketFate::Lost {
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
        if fate(n) == SentPacketFate::Hurts {
            state.velocity = [-200.0, 30.0, 150.0];
            messages.extend([19, 5, 7, 0, 0, 0, 0, 0, 0]);
        }
        if fate(n) != SentPacketFate::AnswerLost {
            messages.extend(own_state(state.origin, state.velocity));
            messages.extend(extra);
            demo.packet(time_s + 0.04, n as u32 + 2, n as u32 + 1, &messages);
        }
    }
    demo.bytes
}

/// Writes the demo of a player on a lift. The lift rises two units per command from command 20 on; the player runs once
/// it is up.
fn on_a_lift(commands: usize) -> Vec<u8> {
    let map = QuakeMap::parse(&quake_bytes()).expect("good");
    let mut state =
        QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 0.0, 8.0 + STANDING_Z]) };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let height = |n: usize| 8.0 + 2.0 * n.clamp(20, 60) as f32 - 40.0;
    for n in 0..commands {
        let cmd = QuakeWorldUsercmd { msec: 14, forward: if n > 70 { 200 } else { 0 }, ..QuakeWorldUsercmd::default() };
        demo.command(n as f32 * 0.014, &cmd);
        let origin = [0.0, 0.0, height(n)];
        let moved = [0.0, 0.0, height(n) - height(n.saturating_sub(1))];
        let solids = [WorldSolid::Mover { model: 1, origin, moved }];
        let world = Surroundings { map: &map, solids: &solids };
        let runner = MoveRunner {
            dialect: Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false },
            vars: &QuakeWorldMoveVars::default(),
            world,
        };
        state = runner.run(&state, &[cmd]).state;
        let mut messages = own_state(state.origin, state.velocity);
        messages.extend([47, 40, 0x88, 4, 2]); // entity 40 with model 2 of the list, which is submodel 1
        messages.extend(((height(n) * 8.0) as i16).to_le_bytes());
        messages.extend([0, 0]);
        demo.packet(n as f32 * 0.014 + 0.04, n as u32 + 2, n as u32 + 1, &messages);
    }
    demo.bytes
}

/// Replays a demo with a client pipeline of this type, under `prediction.among`.
fn replayed<C: ClientPipeline<QuakeWorld>>(demo: &[u8], among: &str) -> Trace {
    let session =
        import(demo, &quake_bytes(), &ImportOptions { map_name: None, force_map: true }).expect("session").session;
    let mut settings = hitreg_netcode::replay::log_settings(&session.header).expect("settings");
    settings.set("prediction.among", among).expect("key");
    replay_clients::<QuakeWorld, C>(&session, Some(&settings), &mut |_| {}).expect("replay").trace
}

/// Returns the number of checked predictions and all corrections, each with command index, cause and evidence.
fn misses(demo: &[u8]) -> (usize, Vec<(u32, String, String)>) {
    misses_among(demo, "acking-packet")
}

fn misses_among(demo: &[u8], among: &str) -> (usize, Vec<(u32, String, String)>) {
    let trace = replayed::<Client<QuakeWorld>>(demo, among);
    let table = trace.table("corrections").expect("a table");
    let commands = table.u32s("command").iter().map(|seq| seq - 1);
    let causes = table.names("cause").iter().zip(table.names("evidence").iter());
    let rows = commands.zip(table.names("result").iter()).zip(causes);
    let missed = rows.filter(|((_, result), _)| *result == "miss");
    let found = missed.map(|((command, _), (cause, evidence))| (command, cause.to_owned(), evidence.to_owned()));
    (table.rows(), found.collect())
}

fn miss(command: u32, cause: &str, evidence: &str) -> (u32, String, String) {
    (command, cause.to_owned(), evidence.to_owned())
}

#[test]
fn prediction_without_loss_equals_the_server() {
    let demo = recorded(2_000, |_| SentPacketFate::Arrives);
    let (checked, found) = misses(&demo);
    assert_eq!(checked, 1_999);
    assert_eq!(found, []);
}

#[test]
fn lost_answers_and_lost_pairs_do_not_matter() {
    let fate = |n: usize| match n % 17 {
        3 | 4 => SentPacketFate::Lost,
        8..=11 => SentPacketFate::AnswerLost,
        _ => SentPacketFate::Arrives,
    };
    let (checked, found) = misses(&recorded(1_000, fate));
    assert!(checked > 600);
    assert!(found.len() <= 2, "{found:?}");
}

#[test]
fn a_burst_of_losses_is_found_in_its_place() {
    let demo = recorded(300, |n| if (222..228).contains(&n) { SentPacketFate::Lost } else { SentPacketFate::Arrives });
    let (_, found) = misses(&demo);
    assert_eq!(found, [miss(228, "input_lost", "reproduced: packets lost")]);
}

#[test]
fn damage_is_recognized_by_its_message() {
    let demo = recorded(300, |n| if n == 150 { SentPacketFate::Hurts } else { SentPacketFate::Arrives });
    let (_, found) = misses(&demo);
    assert_eq!(found, [miss(150, "knockback", "damage message")]);
}

#[test]
fn a_teleporter_that_only_the_prediction_enters_is_a_teleport_and_not_the_damage() {
    let map = QuakeMap::parse(&quake_bytes()).expect("good");
    let vars = QuakeWorldMoveVars::default();
    let dialect = Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false };
    let runner = MoveRunner { dialect, vars: &vars, world: Surroundings { map: &map, solids: &[] } };
    let mut state = QuakeWorldPlayerState { on_ground: true, ..QuakeWorldPlayerState::at([0.0, 540.0, STANDING_Z]) };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let cmd = QuakeWorldUsercmd { msec: 14, angles: [0.0, 90.0, 0.0], forward: 400, ..QuakeWorldUsercmd::default() };
    let teleported = (0..60).find(|n| {
        demo.command(*n as f32 * 0.014, &cmd);
        let run = runner.run(&state, &[cmd]);
        let mut messages = Vec::new();
        match run.touched.trigger {
            None => state = run.state,
            // The shot's push stops the player on the server, just before the teleporter.
            Some(_) => messages.extend([19, 5, 7, 0, 0, 0, 0, 0, 0]),
        }
        messages.extend(own_state(state.origin, state.velocity));
        demo.packet(*n as f32 * 0.014 + 0.04, n + 2, n + 1, &messages);
        run.touched.trigger.is_some()
    });
    let (_, found) = misses(&demo.bytes);
    assert_eq!(found, [miss(teleported.expect("it arrives"), "teleport", "prediction alone teleported")]);
}

/// The velocity error of an ack is the length of its velocity errors. Those of axes within the rounding have no row.
#[test]
fn velocity_errors_are_differences_from_the_recorded_velocity() {
    let demo = recorded(300, |n| if n == 150 { SentPacketFate::Hurts } else { SentPacketFate::Arrives });
    let trace = replayed::<Client<QuakeWorld>>(&demo, "acking-packet");
    let [table, errors] = ["corrections", "errors"].map(|name| trace.table(name).expect("a table"));
    let is_miss = |result: &str| result == "miss";
    let row = table.names("result").iter().position(is_miss).expect("a miss");
    let command = table.u32s("command")[row];
    let cells = errors.u32s("command").iter().zip(errors.names("field").iter());
    let off = errors.f32s("predicted").iter().zip(errors.f32s("authoritative")).map(|(ours, theirs)| ours - theirs);
    let of_miss = cells.zip(off).filter(|((of, field), _)| **of == command && field.starts_with("velocity."));
    let squares: f32 = of_miss.map(|(_, off)| off * off).sum();
    let found = table.f32s("velocity_error_units_per_s")[row];
    assert!(squares > 100.0 * 100.0 && found * found >= squares - 1.0 && found * found <= squares + 3.0, "{found}");
}

#[test]
fn the_statistics_count_lost_packets() {
    let fate = |n: usize| if n % 10 == 9 { SentPacketFate::AnswerLost } else { SentPacketFate::Arrives };
    let imported = import(&recorded(201, fate), &quake_bytes(), &ImportOptions::default()).expect("good");
    let info = SessionInfo::of(&imported.session);
    assert_eq!((info.usercmds, info.packets.received, info.packets.lost), (201, Some(181), Some(20)));
    assert!((info.rtt_ms.p50.expect("acks") - 40.0).abs() < 0.1);
}

#[test]
fn a_lift_has_the_position_in_the_acking_packet() {
    let demo = on_a_lift(120);
    assert_eq!(misses(&demo), (119, vec![]));
    let (_, blind) = misses_among(&demo, "known");
    assert!(blind.len() >= 35, "{}", blind.len());
    let by_the_lift = |(_, cause, evidence): &(u32, String, String)| {
        cause == "mover" && evidence == "reproduced: bodies of the acking packet"
    };
    assert!(blind.iter().all(by_the_lift), "{blind:?}");
    let played = Summary::of(&replayed::<Client<QuakeWorld>>(&demo, "acking-packet")).prediction.as_played;
    let played = played.expect("both ways of counting").ground;
    assert_eq!(played.checked - played.exact - played.near, blind.len() as u64, "the same, counted beside the other");
}

#[test]
fn a_missing_player_is_found_as_the_cause() {
    let mut ghost = vec![42, 5, 0, 0];
    for axis in [40.0f32, 60.0, STANDING_Z] {
        ghost.extend(((axis * 8.0) as i16).to_le_bytes());
    }
    ghost.push(0);
    let (_, found) = misses(&recorded_with(400, |_| SentPacketFate::Arrives, &ghost));
    let (_, cause, evidence) = &found[0];
    assert_eq!((cause.as_str(), evidence.as_str()), ("other_player", "reproduced: no players in the way"));
    let by_the_ghost = found.iter().filter(|(_, cause, _)| cause == "other_player").count();
    assert!(by_the_ghost * 10 > found.len() * 9, "{by_the_ghost} of {}", found.len());
}

/// A client with a bug: after each ack it counts one usercmd too many as acked, and so runs one too few again.
struct OffByOneClient(Client<QuakeWorld>);

impl ClientPipeline<QuakeWorld> for OffByOneClient {
    fn new(setup: Setup<QuakeWorld>, player: PlayerId) -> OffByOneClient {
        OffByOneClient(Client::new(setup, player))
    }
    fn number_from(&mut self, first: CommandSeq) {
        self.0.number_from(first);
    }
    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<QuakeWorldBody>) -> Option<ReconcileOutcome> {
        self.0.handle_snapshot(now, &Snapshot { ack: snapshot.ack.next(), ..snapshot.clone() })
    }
    fn draw_others(&mut self, now: Micros) {
        self.0.draw_others(now);
    }
    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<QuakeWorld> {
        self.0.command(now, input)
    }
    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        self.0.handle_sent(packet, bytes);
    }
    fn drawn(&self) -> &[(EntityId, PlacedBody<QuakeWorldBody>)] {
        self.0.drawn()
    }
    fn drawn_at(&self) -> Micros {
        self.0.drawn_at()
    }
    fn predicted(&self) -> Option<&QuakeWorldBody> {
        self.0.predicted()
    }
}

/// The published figures of real play come from the client pipeline. A bug in the pipeline shows in both ways of
/// counting.
#[test]
fn a_bug_in_the_client_pipeline_changes_the_figures_of_demos() {
    let demo = recorded(1_000, |n| if n % 20 == 7 { SentPacketFate::AnswerLost } else { SentPacketFate::Arrives });
    let right = |trace: &Trace| {
        let prediction = Summary::of(trace).prediction;
        let played = prediction.as_played.expect("both ways of counting");
        let played = [played.ground, played.air].map(|share| [share.checked, share.exact + share.near]);
        let [checked, right] = [0, 1].map(|n| played[0][n] + played[1][n]);
        [(prediction.checked, prediction.exact + prediction.near), (checked, right)]
    };
    let sound = right(&replayed::<Client<QuakeWorld>>(&demo, "acking-packet"));
    assert_eq!(sound, [(949, 949); 2]);
    let bugged = right(&replayed::<OffByOneClient>(&demo, "acking-packet"));
    println!("sound {sound:?}, bugged {bugged:?}");
    for (checked, right) in bugged {
        assert!(checked > 900 && right * 2 < checked, "{bugged:?}");
    }
}
