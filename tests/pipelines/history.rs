//! The position history at its limits: equal times, the greatest number of frames, exactly at a frame, exactly at the
//! distance of a teleport.

use std::sync::Arc;

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaRules};
use hitreg::game::PlacementKind;
use hitreg::history::{FRAMES_KEPT, Frame, History, PlacementLimits};
use hitreg::units::{EntityId, Micros, Tick};

fn frame(ms: i64, x: f32) -> Arc<Frame<ArenaBody>> {
    let body = ArenaBody { origin: Vec3::X * x, velocity: Vec3::X * 100.0, alive: true, ..ArenaBody::default() };
    let entities = vec![(EntityId(3), body), (EntityId(7), ArenaBody { origin: Vec3::Y * x, ..body })];
    Arc::new(Frame { tick: Tick(ms as u32), server_time: Micros::from_ms(ms), entities })
}

fn history(frames: &[(i64, f32)]) -> History<ArenaBody> {
    let mut history = History::default();
    frames.iter().for_each(|(ms, x)| history.push(frame(*ms, *x)));
    history
}

fn times(history: &History<ArenaBody>, ms: i64) -> [Option<i64>; 2] {
    let (before, after) = history.around(Micros::from_ms(ms));
    [before, after].map(|frame| frame.map(|frame| frame.server_time.0 / 1000))
}

/// The position of entity 3, and how it was found.
fn place(history: &History<ArenaBody>, ms: i64, limits: &PlacementLimits) -> (f32, PlacementKind) {
    let mut out = Vec::new();
    history.place_all::<Arena>(&ArenaRules::default(), Micros::from_ms(ms), EntityId(7), limits, &mut out);
    let [(id, placed)] = &out[..] else { panic!("one, and not the one left out") };
    assert_eq!(*id, EntityId(3));
    (placed.body.origin.x, placed.how)
}

const LIMITS: PlacementLimits =
    PlacementLimits { teleport_distance_units: 128.0, extrapolate_max: Some(Micros::from_ms(100)) };

#[test]
fn frames_are_sorted_by_time_and_unique() {
    let history = history(&[(100, 1.0), (300, 3.0), (200, 2.0), (200, 99.0), (300, 99.0)]);
    assert_eq!(times(&history, 150), [Some(100), Some(200)]);
    assert_eq!(times(&history, 250), [Some(200), Some(300)]);
    let origin = |frame: Option<&Arc<Frame<ArenaBody>>>| frame.map(|frame| frame.entities[0].1.origin.x);
    assert_eq!([origin(history.newest()), origin(history.before_newest())], [Some(3.0), Some(2.0)]);
    assert_eq!(origin(history.oldest()), Some(1.0));
}

#[test]
fn a_time_exactly_at_a_frame_gives_that_frame() {
    let history = history(&[(100, 1.0), (200, 2.0)]);
    assert_eq!(times(&history, 100), [Some(100), Some(200)]);
    assert_eq!(times(&history, 200), [Some(200), None]);
    assert_eq!(times(&history, 99), [None, Some(100)]);
    assert_eq!(place(&history, 100, &LIMITS), (1.0, PlacementKind::Interpolated));
    assert_eq!(place(&history, 200, &LIMITS), (2.0, PlacementKind::Held));
    assert_eq!(place(&history, 250, &LIMITS), (7.0, PlacementKind::Extrapolated));
    assert_eq!(place(&history, 900, &LIMITS), (12.0, PlacementKind::Extrapolated));
    assert_eq!(place(&history, 50, &LIMITS), (1.0, PlacementKind::Held));
}

#[test]
fn the_history_drops_frames_beyond_a_number_and_two_seconds() {
    let frames =
        |apart: i64| -> Vec<(i64, f32)> { (1..=FRAMES_KEPT as i64 + 1).map(|n| (n * apart, n as f32)).collect() };
    assert_eq!(times(&history(&frames(32)[..FRAMES_KEPT]), 32), [Some(32), Some(64)]);
    assert_eq!(times(&history(&frames(32)), 32), [None, Some(64)]);
    assert_eq!(times(&history(&frames(20)), 20), [Some(20), Some(40)]);
}

#[test]
fn a_move_of_exactly_the_limit_is_not_a_teleport() {
    assert_eq!(place(&history(&[(100, 0.0), (200, 128.0)]), 150, &LIMITS), (64.0, PlacementKind::Interpolated));
    assert_eq!(place(&history(&[(100, 0.0), (200, 128.5)]), 150, &LIMITS), (128.5, PlacementKind::Teleported));
}

#[test]
fn an_entity_is_found_by_its_number_in_any_order() {
    let frame = frame(100, 5.0);
    let x = |id| frame.get(EntityId(id)).map(|body| body.origin.x);
    assert_eq!([x(0), x(1), x(3), x(7)], [None, None, Some(5.0), Some(0.0)]);
}
