//! What an import finds out about server and map, on demos that are made by servers of every kind.

use super::{Finding, ImportOptions, Imported, Trait, import};
use crate::bsp::testing::{STANDING_Z, quake_bytes, quake_bytes_leaning};
use crate::quakeworld::movement::wire_angle_degrees;
use crate::quakeworld::testing::{DemoWriter, own_state};
use crate::quakeworld::{
    BUTTON_JUMP, Dialect, LeaningFace, Map, MissingWall, MoveVars, PlayerState, QuakeWorld, Rules, Runner, Solid,
    UserCmd, World,
};
use hitreg_analysis::summary::{Prediction, Summary};
use hitreg_netcode::replay::{self, replay};

/// Runs in circles and jumps now and then, falls from high up, and is sent what the server makes of it.
fn demo(dialect: Dialect, solids: &[Solid], degrees: usize, lengths: usize) -> Vec<u8> {
    let (map, vars) = (Map::parse(&quake_bytes()).expect("good"), MoveVars::default());
    let runner = Runner { dialect, vars: &vars, world: World { map: &map, solids } };
    let mut demo = DemoWriter::default();
    demo.signon();
    demo.sequences(1);
    let mut state = PlayerState::at([0.0, 0.0, STANDING_Z + 100.0]);
    for n in 0..4_000usize {
        if n % 800 == 0 {
            state = PlayerState::at([0.0, 0.0, STANDING_Z + 100.0]);
        }
        let cmd = UserCmd {
            msec: 11 + (n / 90 % lengths) as u8,
            angles: [0.0, wire_angle_degrees((n * degrees % 360) as f32), 0.0],
            forward: 400,
            buttons: if n % 80 < 20 { BUTTON_JUMP } else { 0 },
            ..UserCmd::default()
        };
        let time_s = 20.0 + n as f32 * 0.014;
        demo.command(time_s, &cmd);
        state = runner.run(&state, &[cmd]).state;
        demo.packet(time_s + 0.04, n as u32 + 2, n as u32 + 1, &own_state(state.origin, state.velocity));
    }
    demo.bytes
}

fn imported(demo: &[u8]) -> Imported {
    import(demo, &quake_bytes(), &ImportOptions::default()).expect("session")
}

fn predicted(imported: &Imported) -> Prediction {
    let replayed = replay::<QuakeWorld>(&imported.session, &replay::Options::default(), &mut |_| {}).expect("replay");
    Summary::of(&replayed.trace).prediction
}

#[test]
fn what_a_server_does_is_found_out_from_what_it_did() {
    for landing_fix in [false, true] {
        for soft_landing in [false, true] {
            let dialect = Dialect::Classic { soft_landing, soft_jump: false, landing_fix };
            let imported = imported(&demo(dialect, &[], 3, 9));
            let found = |what| *imported.findings.iter().find(|found: &&Finding| found.what == what).expect("asked");
            let landing = found(Trait::LandingFix);
            assert_eq!((landing.has, landing.expected, landing.disagree), (landing_fix, false, 0), "{dialect:?}");
            assert!(landing.agree >= 5, "{landing:?}");
            let soft = found(Trait::SoftLanding);
            assert_eq!((soft.has, soft.disagree), (soft_landing && soft.agree > 0, 0), "{dialect:?} {soft:?}");
            assert!(landing_fix || soft.agree > 0, "{dialect:?} {soft:?}");
            let misses = predicted(&imported).misses_by_cause;
            assert!(misses.values().sum::<u64>() <= 5, "{dialect:?}: the five starts from above, {misses:?}");
        }
    }
}

/// Of a demo that is played with a wall that the map lacks: the walls that are found, and how many predictions miss with them
/// and without.
fn found_walls(map: &[u8], wall: MissingWall) -> (Vec<MissingWall>, [u64; 2]) {
    let dialect = Dialect::Classic { soft_landing: false, soft_jump: false, landing_fix: false };
    let import = |solids: &[Solid]| import(&demo(dialect, solids, 1, 4), map, &ImportOptions::default());
    assert_eq!(import(&[]).expect("session").walls, 0);
    let mut imported = import(&[Solid::Wall(wall)]).expect("session");
    let misses = |imported: &Imported| predicted(imported).misses_by_cause.values().sum::<u64>();
    let with = misses(&imported);
    let mut rules: Rules = hitreg_log::serial::from_msgpack(&imported.session.header.rules).expect("rules");
    let walls = std::mem::take(&mut rules.map.walls);
    assert_eq!(imported.walls, walls.len());
    imported.session.header.rules = rmp_serde::to_vec(&rules).expect("plain data").into();
    (walls, [with, misses(&imported)])
}

#[test]
fn a_wall_that_the_map_lacks_is_found() {
    let wall = MissingWall { low: [40.0, -400.0, -10.0], high: [44.0, 400.0, 400.0], face: None };
    let (walls, [with, without]) = found_walls(&quake_bytes(), wall);
    assert!(matches!(walls[..], [MissingWall { face: None, .. }]), "{walls:?}");
    assert!(without > 100 && with * 2 < without, "{with} misses with the wall, {without} without");
}

#[test]
fn a_leaning_face_of_the_map_that_players_did_not_meet_is_found() {
    let face = LeaningFace { normal: [-0.96, 0.0, -0.28], dist: -45.0 };
    let wall = MissingWall { low: [-20.0, -400.0, -10.0], high: [90.0, 400.0, 400.0], face: Some(face) };
    // Where a point meets it: 16 units farther along x, and 32 along z.
    let map = quake_bytes_leaning(Some(([0.96, 0.0, 0.28], 45.0 + 0.96 * 16.0 + 0.28 * 32.0)));
    let (walls, [with, without]) = found_walls(&map, wall);
    let [MissingWall { face: Some(found), .. }] = walls[..] else { panic!("{walls:?}") };
    assert!(found.normal == face.normal && (found.dist - face.dist).abs() < 1e-4, "{found:?}");
    // Most others come out of the pool, or start anew.
    assert!(with + 20 <= without, "{with} misses with the wall, {without} without");
    let (walls, _) = found_walls(&quake_bytes(), wall);
    assert!(walls.iter().all(|wall| wall.face.is_none()), "the map has no such face: {walls:?}");
}
