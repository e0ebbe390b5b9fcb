//! Tests with a small generated level: the collision rules of a box that slides, rests and stops.

use glam::Vec3;

use super::patches::pieces_of;
use super::{BoxSweep, Patch, Quake3Map, contents};
use crate::bsp::tests::quake3_bytes;

fn sweep(start: [f32; 3], end: [f32; 3]) -> BoxSweep {
    let (mins, maxs) = (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, 32.0));
    BoxSweep { start: start.into(), end: end.into(), mins, maxs, mask: contents::SOLID }
}

#[test]
fn brushes_stop_a_box_an_eighth_before_them() {
    let map = Quake3Map::parse(&quake3_bytes()).expect("a map");
    let down = sweep([0.0, 0.0, 100.0], [0.0, 0.0, -100.0]).through(&map);
    assert_eq!((down.end.z, down.normal, down.starts_solid), (24.125, Vec3::Z, false));
    let aside = sweep([0.0, 0.0, 24.125], [500.0, 0.0, 24.125]).through(&map);
    assert_eq!((aside.end.x, aside.normal), (256.0 - 15.0 - 0.125, -Vec3::X));
    // Within that eighth the box stays where it is.
    let again = sweep([240.9, 0.0, 24.125], [260.0, 0.0, 24.125]).through(&map);
    assert_eq!((again.fraction, again.end.x), (0.0, 240.9));
    assert!(sweep([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).through(&map).all_solid);
    assert_eq!(sweep([0.0, 0.0, 30.0], [0.0, 0.0, 30.0]).through(&map).fraction, 1.0);
    let point = |z| map.contents_at(Vec3::new(0.0, 0.0, z));
    assert_eq!((point(-1.0), point(1.0)), (contents::SOLID, 0));
}

#[test]
fn curves_stop_a_box_from_their_front() {
    let map = Quake3Map::parse(&quake3_bytes()).expect("a map");
    // A flat patch at z = 64, with x from -200 to -100.
    let down = sweep([-150.0, 0.0, 200.0], [-150.0, 0.0, 30.0]).through(&map);
    assert!((down.end.z - (64.0 + 24.125)).abs() < 1e-3 && down.normal.z > 0.99, "{down:?}");
    let up = sweep([-150.0, 0.0, 25.0], [-150.0, 0.0, 130.0]).through(&map);
    assert_eq!(up.fraction, 1.0, "from behind it passes");
    let beside = sweep([-50.0, 0.0, 200.0], [-50.0, 0.0, 30.0]).through(&map);
    assert_eq!(beside.fraction, 1.0);
    let ray = BoxSweep { mins: Vec3::ZERO, maxs: Vec3::ZERO, ..sweep([-150.0, 0.0, 200.0], [-150.0, 0.0, 30.0]) };
    assert!((ray.through(&map).end.z - 64.125).abs() < 1e-3, "a point, too");
}

/// Each plane is compared with all others, so the engine's limits bound the work that a small file can cause.
#[test]
fn curves_beyond_the_engines_limits_are_refused() {
    let patch = |side: u32, rough: f32| {
        let height = |x: u32, y: u32| rough * ((x * 7919 + y * 104_729) % 97) as f32;
        let point = |at: u32| [(at % side) as f32 * 64.0, (at / side) as f32 * 64.0, height(at % side, at / side)];
        Patch { width: side, height: side, points: (0..side * side).map(point).collect(), contents: 1, flags: 0 }
    };
    let mut work = u64::MAX;
    assert_eq!(pieces_of(&patch(9, 0.0), &mut work).expect("a flat one").planes.len(), 17);
    let took = u64::MAX - work;
    assert!((100..2000).contains(&took), "{took} comparisons");
    assert!(pieces_of(&patch(9, 0.0), &mut (took - 1)).is_none(), "the work of a map is counted");
    assert!(pieces_of(&patch(9, 1.0), &mut u64::MAX.clone()).is_some());
    let mut work = u64::MAX;
    assert!(pieces_of(&patch(129, 1.0), &mut work).is_none());
    // At most 128 by 128 squares, and each compares with at most the limit of planes.
    assert!(u64::MAX - work < 4 * 128 * 128 * 4200, "{}", u64::MAX - work);
}

#[test]
fn a_map_survives_a_log_and_damage_is_refused() {
    let bytes = quake3_bytes();
    let map = Quake3Map::parse(&bytes).expect("a map");
    let packed = rmp_serde::to_vec(&map).expect("packed");
    assert_eq!(hitreg_log::serial::from_msgpack::<Quake3Map>(&packed).expect("a map"), map);
    assert!(Quake3Map::parse(&bytes[..100]).is_err() && Quake3Map::parse(b"IBSP").is_err());
    // Any changed byte must give a valid map or an error.
    for at in 0..bytes.len() {
        for to in [0, 1, 0x7f, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = to;
            if let Ok(map) = Quake3Map::parse(&bytes) {
                sweep([0.0, 0.0, 100.0], [300.0, 40.0, -100.0]).through(&map);
                map.contents_at(Vec3::ZERO);
            }
        }
    }
}
