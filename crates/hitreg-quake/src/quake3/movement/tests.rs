//! Tests of movement on a small level, against values computed by hand from the rules.

use glam::Vec3;

use super::{EntitySolid, MoveWorld, NO_ENTITY, PmoveSettings, Quake3PlayerState, SolidShape, WORLD, flag, run};
use crate::bsp::quake3::Quake3Map;
use crate::bsp::tests::quake3_bytes;
use crate::quake3::protocol::Quake3Usercmd;

const SETTINGS: PmoveSettings = PmoveSettings { float: true, fixed_ms: 0, no_bunny: false, fast_water: false };

fn standing() -> Quake3PlayerState {
    Quake3PlayerState {
        command_time: 1000,
        origin: Vec3::new(0.0, 0.0, 24.125),
        velocity: Vec3::ZERO,
        viewangles: Vec3::ZERO,
        delta_angles: [0; 3],
        kind: 0,
        flags: 0,
        time_ms: 0,
        speed: 320,
        gravity: 800,
        ground: WORLD,
        viewheight: 26,
        health: 100,
        flies: false,
        is_invulnerable: false,
        grapple: Vec3::ZERO,
    }
}

/// Runs the same input for several steps of 10 ms.
fn go(
    map: &Quake3Map,
    solids: &[EntitySolid],
    from: Quake3PlayerState,
    keys: Quake3Usercmd,
    steps: i32,
) -> (Quake3PlayerState, Vec<u32>) {
    let (mut state, mut met) = (from, Vec::new());
    for _ in 0..steps {
        let command = Quake3Usercmd { server_time: state.command_time + 10, ..keys };
        state = run(&MoveWorld { map, solids, triggers: &[] }, SETTINGS, &state, &command, &mut met);
    }
    (state, met)
}

#[test]
fn a_player_runs_stops_and_jumps() {
    let map = Quake3Map::parse(&quake3_bytes()).expect("a map");
    let ahead = Quake3Usercmd { forward: 127, ..Quake3Usercmd::default() };
    let (running, _) = go(&map, &[], standing(), ahead, 50);
    assert!((running.velocity.x - 320.0).abs() < 1.0 && running.ground == WORLD, "{running:?}");
    let (stopped, _) = go(&map, &[], running, Quake3Usercmd::default(), 100);
    assert_eq!((stopped.velocity, stopped.ground), (Vec3::ZERO, WORLD));
    let jump = Quake3Usercmd { up: 127, ..Quake3Usercmd::default() };
    let (jumped, _) = go(&map, &[], standing(), jump, 1);
    // 270 units/s less the gravity of 10 ms, and half of that on the way.
    assert_eq!((jumped.velocity.z, jumped.ground), (262.0, NO_ENTITY));
    assert!((jumped.origin.z - (24.125 + 2.66)).abs() < 1e-4 && jumped.flags & flag::JUMP_HELD != 0);
    let (landed, _) = go(&map, &[], jumped, jump, 100);
    assert!(landed.ground == WORLD && landed.velocity.z < 1.0, "held, it jumps once: {landed:?}");
    let (ducked, _) =
        go(&map, &[], standing(), Quake3Usercmd { up: -127, forward: 127, ..Quake3Usercmd::default() }, 60);
    assert!((ducked.velocity.x - 80.0).abs() < 1.0 && ducked.viewheight == 12, "{ducked:?}");
}

#[test]
fn long_usercmds_run_in_steps_and_old_ones_do_nothing() {
    let map = Quake3Map::parse(&quake3_bytes()).expect("a map");
    let world = MoveWorld { map: &map, solids: &[], triggers: &[] };
    let at = |server_time| Quake3Usercmd { server_time, forward: 127, ..Quake3Usercmd::default() };
    let run = |command: &Quake3Usercmd, from: &Quake3PlayerState| run(&world, SETTINGS, from, command, &mut Vec::new());
    let in_one = run(&at(1100), &standing());
    let in_two = run(&at(1100), &run(&at(1066), &standing()));
    assert_eq!(in_one, in_two, "66 ms at most");
    assert_eq!(run(&at(900), &standing()), standing());
    assert_eq!(run(&at(1000), &standing()), standing());
}

#[test]
fn players_climb_steps_and_touch_walls_and_others() {
    let map = Quake3Map::parse(&quake3_bytes()).expect("a map");
    let aside = Quake3Usercmd { right: -127, ..Quake3Usercmd::default() };
    let (climbed, _) = go(&map, &[], standing(), aside, 60);
    assert!(climbed.origin.y > 100.0 && (climbed.origin.z - 40.125).abs() < 0.01, "a step of 16: {climbed:?}");
    let ahead = Quake3Usercmd { forward: 127, ..Quake3Usercmd::default() };
    let (stopped, met) = go(&map, &[], standing(), ahead, 200);
    assert!((stopped.origin.x - (256.0 - 15.125)).abs() < 0.01 && stopped.velocity.x.abs() < 1.0, "{stopped:?}");
    assert!(met.contains(&WORLD));
    let (mins, maxs) = (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, 32.0));
    let other = EntitySolid { entity: 3, origin: Vec3::new(100.0, 0.0, 24.0), shape: SolidShape::Body { mins, maxs } };
    let (beside, met) = go(&map, &[other], standing(), ahead, 200);
    assert!((beside.origin.x - (100.0 - 30.125)).abs() < 0.01 && met.contains(&3), "{beside:?}");
    let corpse = Quake3PlayerState { health: 0, kind: 3, velocity: Vec3::new(300.0, 0.0, 0.0), ..standing() };
    let (slid, met) = go(&map, &[other], corpse, ahead, 200);
    assert!(slid.velocity == Vec3::ZERO && !met.contains(&3));
}
