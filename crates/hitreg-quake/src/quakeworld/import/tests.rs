//! Tests that generated demos become logs, can be reconstructed from them, and replay.

mod found;
mod recorded;

use std::io::Write as _;

use glam::Vec3;

use super::{
    DemoImportError, ImportOptions, ImportResult, Prefix, UNPACKED_BYTES_MAX, UnpackError, XZ, import, unpacked,
    unpacked_prefix,
};
use crate::bsp::quake::QuakeMap;
use crate::bsp::tests::{STANDING_Z, quake_bytes};
use crate::quakeworld::body::{QuakeWorldBody, flag};
use crate::quakeworld::demo::{DemoEnd, DemoEvent, OtherLevels, QuakeWorldDemo};
use crate::quakeworld::movement::{
    Dialect, MoveRunner, QuakeWorldMoveVars, QuakeWorldPlayerState, QuakeWorldUsercmd, Surroundings,
};
use crate::quakeworld::tests::{DemoWriter, ServerDemoWriter, own_state, server_data};
use crate::quakeworld::{QuakeWorld, QuakeWorldRules, demo_stem, map_stem};
use hitreg_analysis::summary::Summary;
use hitreg_log::record::{DamageRecord, Origin, Session};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::Simulate;
use hitreg_netcode::info::SessionInfo;
use hitreg_netcode::replay::{self, Part, ReorderWindow, ReplayError, replay};
use hitreg_netcode::score::score;
use hitreg_netcode::settings::Settings;
use recorded::{RecordedBodies, recorded_demo};

const START_S: f32 = 100.0;

/// Writes a walk to the north by the rules of movement, truncated to the wire. A usercmd and its ack come every 20 ms,
/// and one packet is choked at `CHOKED`.
fn demo(first_seq: i32, extra_messages: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let map = QuakeMap::parse(&quake_bytes()).expect("map");
    let vars = QuakeWorldMoveVars::default();
    let dialect = Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix: false };
    let runner = MoveRunner { dialect, vars: &vars, world: Surroundings { map: &map, solids: &[] } };
    let mut writer = DemoWriter::default();
    writer.sequences(first_seq);
    writer.signon();
    let mut state = QuakeWorldPlayerState::at([0.0, 0.0, STANDING_Z]);
    let cmd = QuakeWorldUsercmd { msec: 20, angles: [0.0, 90.0, 0.0], forward: 400, ..QuakeWorldUsercmd::default() };
    for frame in 0..FRAMES {
        let now = START_S + frame as f32 * 0.02;
        writer.command(now, &cmd);
        state = runner.run(&state, &[cmd]).state;
        if frame == CHOKED {
            continue;
        }
        let mut messages = extra_messages(frame);
        if frame == CHOKED + 1 {
            messages.extend([44, 1]);
        }
        messages.extend(own_state(state.origin, state.velocity));
        messages.extend(other_player(7, [100.0, frame as f32 * 8.0, 24.0], frame as u8));
        writer.packet(now + 0.015, 10 + frame, (first_seq + frame as i32) as u32, &messages);
    }
    writer.bytes
}

const FRAMES: u32 = 40;
const CHOKED: u32 = 20;

/// Returns the message about another player with a usercmd that turns and runs.
fn other_player(slot: u8, origin: [f32; 3], age_ms: u8) -> Vec<u8> {
    let flags: u16 = 1 | 2 | 1 << 3;
    let mut out = vec![42, slot];
    out.extend(flags.to_le_bytes());
    for axis in origin {
        out.extend(((axis * 8.0) as i16).to_le_bytes());
    }
    out.extend([0, age_ms]);
    out.push(128 | 4);
    out.extend(i16::to_le_bytes(0x4000));
    out.extend(i16::to_le_bytes(400));
    out.push(20);
    out.extend(i16::to_le_bytes(400));
    out
}

fn imported(demo: &[u8]) -> (Session, QuakeWorldRules) {
    let session = import(demo, &quake_bytes(), &ImportOptions::default()).expect("session").session;
    let rules = hitreg_log::serial::from_msgpack(&session.header.rules).expect("rules");
    (session, rules)
}

#[test]
fn a_demo_becomes_a_session() {
    let (session, rules) = imported(&demo(5, |_| Vec::new()));
    let records = &session.players[3];
    assert_eq!((session.header.map.as_str(), session.players.len(), rules.player), ("small", 8, PlayerId(3)));
    let recorded: Vec<bool> = session.header.players.iter().map(|p| p.recorded).collect();
    assert_eq!(recorded, [false, false, false, true, false, false, false, false]);
    assert_eq!((records.frames.len(), records.snapshots.len()), (FRAMES as usize, FRAMES as usize - 1));
    assert_eq!(
        (records.frames[1].at, records.frames[1].command.seq),
        (Micros(19_997), CommandSeq(6)),
        "100.02 as a single"
    );
    assert_eq!((records.sent[9].count, records.sent[0].count), (3, 1));
    assert!(records.reached.is_empty() && session.ticks.is_empty(), "the demo does not tell");
    assert_eq!((records.snapshots[0].bytes, records.sent[9].bytes), (0, 0), "an import has no sizes");
    let after = &records.snapshots[CHOKED as usize];
    assert_eq!((after.seq.0, after.choked, after.tick), (10 + CHOKED + 1, 1, Tick(CHOKED)));
    assert_eq!(after.entities, [EntityId(3), EntityId(7)]);
    assert!(records.snapshots[1].extra.is_empty(), "nothing to tell takes no bytes");
    let other = RecordedBodies::of(&session).get(Tick(2), PlayerId(0), EntityId(7));
    assert_eq!((other.origin, other.velocity), (Vec3::new(100.0, 16.0, 24.0), Vec3::new(0.0, 400.0, 0.0)));
    assert_eq!((other.viewangles.y, other.forwardmove, other.age_ms, other.flags), (90.0, 400, 2, flag::COMMAND));
}

#[test]
fn a_demo_survives_a_round_trip() {
    let hurt = |frame| if frame % 7 == 3 { vec![19, 1, 2, 8, 0, 0, 0, 0, 0] } else { Vec::new() };
    for first_seq in [-1, 1, 900] {
        let bytes = demo(first_seq.max(0), hurt);
        let bytes = if first_seq < 0 { without_sequences(&bytes) } else { bytes };
        let (session, rules) = imported(&bytes);
        let demo = QuakeWorldDemo::parse(&bytes).expect("demo");
        let back = recorded_demo(&session, &rules);
        assert_eq!(back.commands, demo.commands);
        let mut events = back.packets.iter().flat_map(|packet| &packet.events);
        assert!(events.any(|event| matches!(event, DemoEvent::Damage { .. })));
        assert_eq!(back.packets[..], demo.packets[1..], "all but the one that sets up the level");
        assert!(demo.packets[0].others.is_empty() && demo.packets[0].events.is_empty());
        assert_eq!((back.server, back.levels, back.end), (demo.server, demo.levels, demo.end));
        assert_eq!(session.players[3].frames[0].command.seq.0, first_seq.max(1) as u32);
    }
}

/// A truncated compressed demo is read up to the truncation, like a plain one.
#[test]
fn a_truncated_packed_demo_is_read() {
    let packed = gzip(&demo(5, |_| Vec::new()));
    let of = |bytes: &[u8]| import(bytes, &quake_bytes(), &ImportOptions::default());
    let whole = of(&packed).expect("a demo");
    assert_eq!(whole.demo.cut, None);
    let cut = of(&packed[..packed.len() * 3 / 4]).expect("a demo");
    let usercmds = |of: &ImportResult| of.session.players[3].frames.len();
    assert!(cut.demo.cut.is_some() && (10..usercmds(&whole)).contains(&usercmds(&cut)), "{}", usercmds(&cut));
    // All content is present, and only the end marker is missing.
    let ends = of(&packed[..packed.len() - 8]).expect("a demo");
    assert_eq!((ends.demo.cut.map(|cut| cut.bytes), usercmds(&ends)), (Some(0), usercmds(&whole)));
    // Bytes after the compressed demo are no part of it.
    let followed = of(&[&packed[..], b"other"].concat()).expect("a demo");
    let ImportResult { demo, .. } = &followed;
    assert_eq!((demo.cut, demo.after_end.is_some(), usercmds(&followed)), (None, true, usercmds(&whole)));
    assert_eq!(whole.demo.after_end, None);
    let map = gzip(&quake_bytes());
    let cut_map = import(&packed, &map[..map.len() / 2], &ImportOptions::default());
    assert!(matches!(cut_map, Err(DemoImportError::Unpack { file: "map", .. })));
}

/// Recordings that start at the connect have no frame of sequence numbers; their numbers start at -1.
fn without_sequences(demo: &[u8]) -> Vec<u8> {
    demo[13..].to_vec()
}

#[test]
fn a_session_replays_and_has_no_server() {
    let (session, _) = imported(&demo(1, |_| Vec::new()));
    let replayed = replay::<QuakeWorld>(&session, &replay::ReplayOptions::default(), &mut |_| {}).expect("replay");
    let prediction = Summary::of(&replayed.trace).prediction;
    assert_eq!((prediction.checked, prediction.exact), (u64::from(FRAMES) - 2, u64::from(FRAMES) - 2));
    assert_eq!(prediction.usercmds, u64::from(FRAMES) - 1);
    let closed = replay::ReplayOptions { mode: replay::ReplayMode::Closed, ..replay::ReplayOptions::default() };
    assert!(matches!(replay::<QuakeWorld>(&session, &closed, &mut |_| {}), Err(ReplayError::NoServer)));
}

#[test]
fn a_damaged_log_is_refused() {
    let (session, _) = imported(&demo(1, |_| Vec::new()));
    let refused = |damage: &dyn Fn(&mut Session)| {
        let mut session = session.clone();
        damage(&mut session);
        replay::<QuakeWorld>(&session, &replay::ReplayOptions::default(), &mut |_| {}).expect_err("damage").to_string()
    };
    assert!(refused(&|s| s.players[3].snapshots[4].extra = vec![0xc1]).starts_with("tick 4: "));
    assert!(refused(&|s| s.players[3].snapshots[4].entities.push(EntityId(31))).contains("has no state of it"));
    assert!(refused(&|s| s.states.cells_mut()[0] = f32::NAN.to_bits()).contains("no place"));
}

/// Returns what a log keeps of a demo: packets since the first one with the player's state.
fn in_play(demo: &QuakeWorldDemo) -> QuakeWorldDemo {
    let first = demo.packets.iter().position(|packet| packet.own.is_some()).expect("a state");
    QuakeWorldDemo { packets: demo.packets[first..].to_vec(), ..demo.clone() }
}

#[test]
fn a_real_demo_comes_back_from_its_log_exactly() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/quakeworld");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return;
    }
    let drills = std::fs::read_dir(data.join("drills")).expect("drills").map(|entry| entry.expect("entry").path());
    let matches = [6, 9, 16, 22, 31, 38].map(|number| data.join(format!("matches/demo{number:02}.qwd.xz")));
    for path in drills.chain(matches) {
        let name = path.display();
        let packed = std::fs::read(&path).expect("demo");
        let demo = QuakeWorldDemo::parse(&unpacked(&packed).expect("unpacked")).expect("demo");
        let map = demo.levels[0].map.trim_start_matches("maps/").to_owned() + ".gz";
        let map = std::fs::read(data.join("maps").join(map)).expect("map");
        let session = import(&packed, &map, &ImportOptions::default()).expect("session").session;
        let rules: QuakeWorldRules = hitreg_log::serial::from_msgpack(&session.header.rules).expect("rules");
        let mut back = recorded_demo(&session, &rules);
        let mut demo = in_play(&demo);
        demo.server.dialect = rules.server.dialect; // found out by the import
        for (time, was) in times(&mut back).zip(times(&mut demo)) {
            assert!((f64::from(*time) - f64::from(*was)).abs() <= 0.5e-6, "{name}: {time} was {was}");
            assert!(time == was || *was < 16.0, "{name}: {time} was {was}");
            *time = *was;
        }
        assert!(back == demo, "{name}");
    }
}

fn times(demo: &mut QuakeWorldDemo) -> impl Iterator<Item = &mut f32> {
    demo.commands.iter_mut().map(|sent| &mut sent.time_s).chain(demo.packets.iter_mut().map(|p| &mut p.time_s))
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let (bytes, map) = (demo(1, |_| Vec::new()), quake_bytes());
    let named = |name: &str, force_map| ImportOptions { map_name: Some(name.to_owned()), force_map };
    let error = import(&bytes, &map, &named("dm3.bsp.gz", false)).expect_err("other map");
    assert!(matches!(&error, DemoImportError::OtherMap { demo, map } if demo == "small" && map == "dm3"), "{error}");
    assert!(
        import(&bytes, &map, &named("dm3", true)).is_ok() && import(&bytes, &map, &named("SMALL.bsp", false)).is_ok()
    );
    assert!(matches!(import(&bytes, b"map", &ImportOptions::default()), Err(DemoImportError::Map(_))));

    let mut lobby = DemoWriter::default();
    lobby.signon();
    lobby.command(0.0, &QuakeWorldUsercmd::default());
    assert!(matches!(import(&lobby.bytes, &map, &ImportOptions::default()), Err(DemoImportError::NeverSpawned)));

    let mut spectator = DemoWriter::default();
    spectator.signon_with(&server_data(28, 3 | 128));
    let refused = import(&spectator.bytes, &map, &ImportOptions::default());
    assert!(matches!(refused, Err(DemoImportError::NeverSpawned)), "nobody played");
}

/// All players' states are drawn and scored, without any predictions.
fn watched(demo: &[u8], format: &str) -> Session {
    let session = import(demo, &quake_bytes(), &ImportOptions::default()).expect("session").session;
    assert_eq!(session.header.origin, Origin::Imported { format: format.to_owned() });
    let replayed = replay::<QuakeWorld>(&session, &replay::ReplayOptions::default(), &mut |_| {}).expect("replay");
    assert_eq!(Summary::of(&replayed.trace).prediction.checked, 0);
    let rules: QuakeWorldRules = hitreg_log::serial::from_msgpack(&session.header.rules).expect("rules");
    let settings = Settings::from_pairs(&session.header.settings).expect("settings");
    let scores = score::<QuakeWorld>(
        &session.header,
        ReorderWindow::default(),
        &mut |take| take(session.clone().without_header()),
        &rules,
        &settings,
        Part::WHOLE,
    )
    .expect("scores");
    let p95 = |mode: &str| {
        let score = scores.iter().find(|score| score.mode == mode).expect("scored");
        assert!(score.samples > 20, "{score:?}");
        score.error_units.as_ref().expect("drawn").p95
    };
    assert!(p95("history") < 0.3 && p95("off") > 1.0, "{scores:?}");
    session
}

#[test]
fn a_spectators_demo_scores_drawing() {
    let mut writer = DemoWriter::default();
    writer.signon_with(&server_data(28, 3 | 128));
    writer.sequences(1);
    for n in 0..40u32 {
        let now = START_S + n as f32 * 0.02;
        writer.command(now, &QuakeWorldUsercmd { msec: 20, forward: 400, ..QuakeWorldUsercmd::default() });
        let mut messages = own_state([500.0, 0.0, 60.0], [0.0; 3]);
        messages.extend(other_player(7, [100.0, n as f32 * 8.0, 24.0], 0));
        writer.packet(now + 0.015, 10 + n, n + 1, &messages);
    }
    let session = watched(&writer.bytes, "qwd");
    let shown = &session.players[3].snapshots[5].entities;
    assert_eq!(shown, &[EntityId(7)], "who watches is not there");
    assert_eq!(session.players[3].frames.len(), 40);
}

#[test]
fn levels_on_other_maps_are_left_out_and_counted() {
    let level = |writer: &mut DemoWriter, frames: std::ops::Range<u32>, x: f32| {
        for frame in frames {
            let now = START_S + frame as f32 * 0.02;
            writer.command(now, &QuakeWorldUsercmd { msec: 20, ..QuakeWorldUsercmd::default() });
            writer.packet(now + 0.015, 10 + frame, frame + 1, &own_state([x, 0.0, STANDING_Z], [0.0; 3]));
        }
    };
    let mut writer = DemoWriter::default();
    writer.sequences(1);
    // A level without play, the played one with a restart, and one more.
    writer.signon_to("maps/lobby.bsp", &server_data(28, 5), 1);
    writer.signon_to("maps/small.bsp", &server_data(28, 3), 2);
    level(&mut writer, 0..20, 0.0);
    writer.signon_to("maps/small.bsp", &server_data(28, 3), 30);
    level(&mut writer, 21..40, 8.0);
    writer.signon_to("maps/other.bsp", &server_data(28, 3), 50);
    level(&mut writer, 41..50, 5_000.0);
    writer.packet(START_S + 1.0, 70, 50, &[2, b'B', b'y', b'e', 0]);
    let demo = QuakeWorldDemo::parse(&writer.bytes).expect("demo");
    let found = import(&writer.bytes, &quake_bytes(), &ImportOptions::default()).expect("the map of the played level");
    assert_eq!(found.demo.other_levels, OtherLevels { levels: 2, packets: 1 + 1 + 9 + 1, usercmds: 9 });
    assert_eq!((demo.levels.len(), demo.packets[0].level, demo.end), (2, 0, DemoEnd::File));
    let records = &found.session.players[3];
    assert_eq!((records.frames.len(), found.session.header.map.as_str()), (39, "small"));
    assert!(records.snapshots.iter().all(|snapshot| snapshot.seq.0 < 50));
}

/// Nobody is shown during a change of level and after the intermission. The last packet there tells of a held-back one.
#[test]
fn packets_without_players_are_received() {
    for spectates in [false, true] {
        let mut writer = DemoWriter::default();
        writer.signon_with(&server_data(28, if spectates { 3 | 128 } else { 3 }));
        writer.sequences(1);
        for n in (0..40u32).filter(|n| *n != 38) {
            let now = START_S + n as f32 * 0.02;
            writer.command(now, &QuakeWorldUsercmd { msec: 20, forward: 400, ..QuakeWorldUsercmd::default() });
            let messages = match n {
                39 => vec![44, 1],
                10..20 | 30.. => Vec::new(),
                _ if spectates => other_player(7, [100.0, 0.0, 24.0], 0),
                _ => own_state([0.0, 0.0, STANDING_Z], [0.0; 3]),
            };
            writer.packet(now + 0.015, 10 + n, n + 1, &messages);
        }
        let (session, rules) = imported(&writer.bytes);
        let packets = SessionInfo::of(&session).packets;
        let [sent, received, lost, choked] = [packets.sent, packets.received, packets.lost, packets.choked];
        assert_eq!([sent, received, lost, choked], [Some(40), Some(39), Some(0), Some(1)], "spectates: {spectates}");
        let shown: Vec<u32> = session.players[3].snapshots.iter().map(|s| s.entities.len() as u32).collect();
        assert_eq!(shown, [[1; 10], [0; 10], [1; 10], [0; 10]].concat()[..39]);
        let demo = QuakeWorldDemo::parse(&writer.bytes).expect("demo");
        if !spectates {
            assert_eq!(recorded_demo(&session, &rules).packets[..], demo.packets[1..]);
        }
        let replayed = replay::<QuakeWorld>(&session, &replay::ReplayOptions::default(), &mut |_| {});
        let prediction = Summary::of(&replayed.expect("replay").trace).prediction;
        // The first state is no prediction.
        assert_eq!(prediction.checked, if spectates { 0 } else { 19 });
    }
}

/// A client reads all packets that have come, and then draws.
#[test]
fn of_two_packets_in_one_client_frame_the_later_is_drawn() {
    let mut writer = DemoWriter::default();
    writer.signon_with(&server_data(28, 3 | 128));
    writer.sequences(1);
    for n in 0..40u32 {
        let now = START_S + n as f32 * 0.02;
        for (number, y) in [(2 * n, n as f32 * 8.0 - 60.0), (2 * n + 1, n as f32 * 8.0)] {
            writer.packet(now, 10 + number, n, &other_player(7, [100.0, y, 24.0], 0));
        }
        writer.command(now, &QuakeWorldUsercmd { msec: 20, forward: 400, ..QuakeWorldUsercmd::default() });
    }
    let session = watched(&writer.bytes, "qwd");
    assert_eq!(session.players[3].snapshots.len(), 80);
    let mut settings = Settings::from_pairs(&session.header.settings).expect("settings");
    settings.set("interpolation.mode", "off").expect("key");
    let options = replay::ReplayOptions { settings: Some(settings), ..replay::ReplayOptions::default() };
    let trace = replay::<QuakeWorld>(&session, &options, &mut |_| {}).expect("replay").trace;
    let drawn = trace.table("views").expect("views").f32s("origin.y");
    assert_eq!(drawn, (0..40).map(|n| n as f32 * 8.0).collect::<Vec<_>>());
}

#[test]
fn a_servers_demo_scores_drawing_and_names_hit_players() {
    let mut writer = ServerDemoWriter::default();
    writer.signon();
    for n in 0..40u8 {
        // The moments in between have no players.
        writer.moment(10);
        writer.lift(n % 30);
        writer.moment(10);
        writer.player(0, [100.0, f32::from(n) * 8.0, 24.0], 90.0);
        writer.player(4, [-100.0, 0.0, 24.0], 0.0);
        if n == 30 {
            writer.hit(5, 1, 24);
            writer.hit(0, 1, 5);
        }
        writer.ran(4, &QuakeWorldUsercmd { msec: n, ..QuakeWorldUsercmd::default() });
    }
    let session = watched(&writer.bytes, "mvd");
    assert_eq!((session.header.players.len(), session.players[5].snapshots.len()), (6, 40));
    let packets = SessionInfo::of(&session).packets;
    assert_eq!((packets.sent, packets.lost), (Some(40), Some(0)), "a server's demo has no packets to lose");
    let at = session.players[5].snapshots[30].tick;
    let hit = |attacker, amount| {
        let time = session.players[5].snapshots[30].at;
        DamageRecord { tick: at, at: time, victim: EntityId(0), attacker, amount, ..Default::default() }
    };
    assert_eq!(session.damage, [hit(Some(PlayerId(4)), 24), hit(None, 5)]);
    let ran = session.players[4].frames.iter().map(|frame| (frame.command.seq.0, frame.command.input.msec));
    assert_eq!(ran.collect::<Vec<_>>(), (0..40).map(|n| (n + 1, n as u8)).collect::<Vec<_>>());
    let body = RecordedBodies::of(&session).get(at, PlayerId(5), EntityId(0));
    assert_eq!((body.velocity.y, body.viewangles.y, body.alive), (400.0, 90.0, true));
}

#[test]
fn bodies_keep_the_fields_that_prediction_needs() {
    let (session, rules) = imported(&demo(1, |_| Vec::new()));
    let other = RecordedBodies::of(&session).get(Tick(5), PlayerId(0), EntityId(7));
    let ahead = QuakeWorld::extrapolate(&rules, &other, Micros::from_ms(95));
    assert_eq!(other.age_ms, 5);
    // Half of 100 ms, at the speed in which friction and acceleration balance.
    let way = ahead.origin - other.origin;
    assert!(
        way.y > 14.0 && way.y < 20.0 && way.x.abs() <= 0.125,
        "{way}: straight on, but for the way out of the floor"
    );
    let turned = QuakeWorldBody { viewangles: Vec3::new(0.0, -170.0, 0.0), ..other };
    let from = QuakeWorldBody { viewangles: Vec3::new(0.0, 170.0, 0.0), ..other };
    assert_eq!(QuakeWorld::blend(&from, &turned, 0.5).viewangles.y, 180.0);
    let mut words = Vec::new();
    let world = QuakeWorld::spawn(&rules, session.header.seed, 3);
    QuakeWorld::save(&world, &mut words);
    assert_eq!(QuakeWorld::load(&rules, &words).expect("world"), Some(world));
    assert!(QuakeWorld::load(&rules, &words[1..]).is_err());
}

#[test]
fn nan_values_end_only_the_movement() {
    let (session, rules) = imported(&demo(1, |_| Vec::new()));
    let other = RecordedBodies::of(&session).get(Tick(5), PlayerId(0), EntityId(7));
    let nowhere = QuakeWorldBody { origin: Vec3::NAN, ..other };
    assert!(QuakeWorld::extrapolate(&rules, &nowhere, Micros::from_ms(95)).origin.is_nan());
    let dizzy = QuakeWorldBody { viewangles: Vec3::NAN, ..other };
    QuakeWorld::extrapolate(&rules, &dizzy, Micros::from_ms(95));
    let mut lawless = rules.clone();
    lawless.move_vars[0].gravity = f32::NAN;
    QuakeWorld::extrapolate(&lawless, &other, Micros::from_ms(95));
    lawless.move_vars.clear();
    assert_eq!(QuakeWorld::extrapolate(&lawless, &other, Micros::from_ms(95)), other);
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn plain_bytes_are_unchanged_and_packed_ones_are_unpacked() {
    assert_eq!(unpacked(b"plain").expect("plain").as_ref(), b"plain");
    assert_eq!(unpacked(&gzip(b"packed")).expect("packed").as_ref(), b"packed");
    let members = [gzip(b"two "), gzip(b"members")].concat();
    assert_eq!(unpacked(&members).expect("packed").as_ref(), b"two members");
}

/// The squares of 0 to 39, packed by xz without a checksum.
#[rustfmt::skip]
const PACKED_SQUARES: [u8; 164] = [253, 55, 122, 88, 90, 0, 0, 0, 255, 18, 217, 65, 2, 0, 33, 1, 22, 0, 0, 0, 116, 47, 229, 163, 224, 0, 153, 0, 107, 93, 0, 24, 8, 2, 134, 73, 46, 104, 14, 38, 206, 43, 241, 146, 98, 249, 16, 186, 98, 48, 182, 88, 77, 234, 95, 151, 39, 65, 31, 0, 29, 66, 154, 188, 110, 212, 18, 202, 159, 169, 26, 201, 192, 153, 49, 69, 139, 82, 21, 191, 108, 119, 227, 0, 209, 30, 111, 37, 119, 90, 161, 46, 4, 227, 232, 59, 128, 106, 180, 145, 66, 205, 21, 255, 237, 170, 58, 3, 143, 57, 118, 76, 110, 49, 46, 148, 35, 111, 105, 113, 124, 32, 196, 86, 189, 27, 9, 246, 242, 14, 154, 112, 78, 211, 176, 207, 81, 0, 0, 0, 0, 1, 127, 154, 1, 0, 0, 0, 29, 51, 43, 26, 168, 0, 10, 252, 2, 0, 0, 0, 0, 0, 89, 90];

#[test]
fn a_truncated_xz_file_is_unpacked_up_to_its_last_usable_byte() {
    let squares: String = (0..40).map(|n| format!("{} ", n * n)).collect();
    let of = |bytes: &[u8]| {
        let Prefix { bytes, cut, is_followed } = unpacked_prefix(bytes).expect("xz");
        (String::from_utf8_lossy(&bytes).into_owned(), cut.is_some(), is_followed)
    };
    assert_eq!(of(&PACKED_SQUARES), (squares.clone(), false, false));
    let (text, is_cut, _) = of(&PACKED_SQUARES[..100]);
    assert!(is_cut && text.len() > 50 && squares.starts_with(&text), "{text}");
    assert_eq!(of(&[PACKED_SQUARES, PACKED_SQUARES].concat()), (squares.repeat(2), false, false));
    assert_eq!(of(&[&PACKED_SQUARES[..], &[0; 4], b"other"].concat()), (squares, false, true));
}

#[test]
fn damage_and_excessive_size_are_reported() {
    let mut cut = gzip(&[7; 1000]);
    cut.truncate(cut.len() - 9);
    assert!(matches!(unpacked(&cut), Err(UnpackError::Damaged { format: "gzip", .. })));
    let prefix = unpacked_prefix(&cut).expect("what there is");
    assert!(prefix.cut.is_some() && prefix.bytes.iter().all(|byte| *byte == 7));
    let mut wrong = gzip(&[7; 1000]);
    let end = wrong.len();
    wrong[end - 6] ^= 1;
    assert!(unpacked_prefix(&wrong).is_err(), "its sum is another: that is no end");
    assert!(matches!(unpacked(XZ), Err(UnpackError::Damaged { format: "xz", .. })));
    let bomb = gzip(&vec![0; UNPACKED_BYTES_MAX as usize + 1]);
    assert!(matches!(unpacked(&bomb), Err(UnpackError::TooLarge { format: "gzip" })));
}

#[test]
fn a_map_is_known_by_its_stem() {
    let maps = ["maps/dm3.bsp", "C:\\id1\\dm3.bsp.gz", "dm3", "DM3.BSP", "DM3.Bsp.GZ"];
    assert_eq!(maps.map(map_stem), ["dm3", "dm3", "dm3", "DM3", "DM3"]);
    assert_eq!(["duel.qwd", "DUEL.MVD.XZ", "é.qwd", "é"].map(demo_stem), ["duel", "DUEL", "é", "é"]);
}
