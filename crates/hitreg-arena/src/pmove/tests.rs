//! Tests of cases that the recorded runs of Half-Life do not cover, or cover only by chance.

use glam::{DVec3, Vec3};

use super::super::solid::sweep_box;
use super::super::{CollisionWorld, ConvexBrush, Facet};
use super::*;
use hitreg_log::units::EntityId;

const FLOOR: ([f64; 3], [f64; 3]) = ([-2_000.0, -2_000.0, -64.0], [2_000.0, 2_000.0, 0.0]);

fn boxes(boxes: &[([f64; 3], [f64; 3])]) -> CollisionWorld {
    CollisionWorld::new(&boxes.iter().map(|&(min, max)| ConvexBrush::cuboid(min, max)).collect::<Vec<_>>())
}

fn forward(buttons: u16) -> Input {
    Input { msec: 10, forwardmove: 400.0, buttons, ..Input::default() }
}

fn still(buttons: u16) -> Input {
    Input { msec: 10, buttons, ..Input::default() }
}

fn run(world: &impl Solid, state: ArenaBody, steps: usize, input: Input) -> ArenaBody {
    (0..steps).fold(state, |state, _| pmove(&MoveVars::default(), world, &state, &input, &mut |_| ()))
}

fn standing_at(x: f32, y: f32, z: f32) -> ArenaBody {
    ArenaBody::standing_at(Vec3::new(x, y, z + 36.0 + 1.0 / 32.0))
}

#[test]
fn a_runner_reaches_the_greatest_speed_and_stops() {
    let world = boxes(&[FLOOR]);
    let running = run(&world, standing_at(0.0, 0.0, 0.0), 200, forward(0));
    assert!((running.velocity.x - 270.0).abs() < 0.01, "{}", running.velocity);
    assert_eq!(run(&world, running, 200, still(0)).velocity, Vec3::ZERO);
}

#[test]
fn a_jump_rises_45_units() {
    let world = boxes(&[FLOOR]);
    let mut state = run(&world, standing_at(0.0, 0.0, 0.0), 1, still(0));
    let (start, mut highest) = (state.origin.z, 0.0_f32);
    for _ in 0..100 {
        state = run(&world, state, 1, still(BUTTON_JUMP));
        highest = highest.max(state.origin.z - start);
    }
    assert!((44.0..=45.1).contains(&highest), "{highest}");
    assert!(state.on_ground, "a held button does not jump again");
}

#[test]
fn friction_is_doubled_before_an_edge() {
    let ledge = ([-500.0, -500.0, 0.0], [0.0, 500.0, 256.0]);
    let slides = |x: f32| {
        let start = ArenaBody { velocity: Vec3::new(100.0, 0.0, 0.0), ..standing_at(x, 0.0, 256.0) };
        run(&boxes(&[FLOOR, ledge]), start, 1, still(0)).velocity.x
    };
    assert!((slides(-100.0) - 96.0).abs() < 0.01, "{}", slides(-100.0));
    assert!((slides(4.0) - 92.0).abs() < 0.01, "{}", slides(4.0));
}

#[test]
fn steps_are_climbed_up_to_stepsize() {
    let climbs = |height: f64| {
        let world = boxes(&[FLOOR, ([50.0, -100.0, 0.0], [400.0, 100.0, height])]);
        run(&world, standing_at(0.0, 0.0, 0.0), 60, forward(0)).origin
    };
    assert_eq!(climbs(18.0).z, 18.0 + 36.0 + 1.0 / 32.0);
    assert_eq!(climbs(19.0).z, 36.0 + 1.0 / 32.0);
    assert!(climbs(19.0).x < 34.0);
}

#[test]
fn slopes_are_ground_up_to_their_limit() {
    let stands = |normal_z: f64| {
        let normal_x = -libm::sqrt(1.0 - normal_z * normal_z);
        let slope = Facet { normal: DVec3::new(normal_x, 0.0, normal_z), distance: 0.0 };
        let world = CollisionWorld::new(&[ConvexBrush::new(vec![slope]).expect("a half space")]);
        let high = (normal_x.abs() * 16.0 + normal_z * 36.0) / normal_z;
        run(&world, ArenaBody::standing_at(Vec3::new(0.0, 0.0, high as f32 + 0.1)), 5, still(0)).on_ground
    };
    assert!(stands(0.71));
    assert!(!stands(0.69));
}

#[test]
fn standing_up_waits_for_room() {
    let world = boxes(&[FLOOR, ([64.0, -100.0, 40.0], [300.0, 100.0, 200.0])]);
    let ducked = run(&world, standing_at(0.0, 0.0, 0.0), 60, still(BUTTON_DUCK));
    assert!(ducked.ducked && ducked.on_ground);
    assert_eq!((ducked.origin.z, ducked.view_ofs_z), (18.0 + 1.0 / 32.0, VIEW_HEIGHT_DUCKED_UNITS));
    let below = run(&world, ducked, 150, forward(BUTTON_DUCK));
    let released = run(&world, below, 20, still(0));
    assert!((64.0..300.0).contains(&released.origin.x) && released.ducked, "{}", released.origin);
    let out = run(&world, released, 400, forward(0));
    assert!(!out.ducked && out.origin.z == 36.0 + 1.0 / 32.0, "{}", out.origin);
}

#[test]
fn ducking_takes_400_ms_on_the_ground_and_none_in_the_air() {
    let world = boxes(&[FLOOR]);
    let start = run(&world, standing_at(0.0, 0.0, 0.0), 1, still(0));
    let halfway = run(&world, start, 21, still(BUTTON_DUCK));
    assert!(halfway.in_duck && !halfway.ducked);
    assert!((halfway.view_ofs_z - 11.0).abs() < 0.01, "halfway from 28 to -6: {}", halfway.view_ofs_z);
    assert!(!run(&world, start, 40, still(BUTTON_DUCK)).ducked);
    assert!(run(&world, start, 41, still(BUTTON_DUCK)).ducked);
    let airborne = ArenaBody::standing_at(Vec3::new(0.0, 0.0, 300.0));
    let ducked = run(&world, airborne, 1, still(BUTTON_DUCK));
    assert!(ducked.ducked && ducked.origin.z > 299.0);
}

#[test]
fn mega_bunny_jumps_are_slowed_and_velocity_is_limited() {
    let world = boxes(&[FLOOR]);
    let fast = |speed| ArenaBody { velocity: Vec3::new(speed, 0.0, 0.0), ..standing_at(0.0, 0.0, 0.0) };
    let hop = |speed| run(&world, fast(speed), 1, still(BUTTON_JUMP)).velocity.x;
    assert_eq!(hop(450.0), 450.0);
    assert!((hop(500.0) - 1.7 * 270.0 * 0.65).abs() < 0.01, "{}", hop(500.0));
    let flung = ArenaBody { velocity: Vec3::splat(9_000.0), ..ArenaBody::standing_at(Vec3::new(0.0, 0.0, 500.0)) };
    assert!(run(&world, flung, 1, still(0)).velocity.max_element() <= 2_000.0);
}

#[test]
fn corners_stop_and_creases_lead_on() {
    let walls = [FLOOR, ([64.0, -500.0, 0.0], [128.0, 500.0, 500.0]), ([-500.0, 64.0, 0.0], [500.0, 128.0, 500.0])];
    let diagonal = Input { sidemove: -400.0, ..forward(0) };
    let cornered = run(&boxes(&walls), standing_at(40.0, 40.0, 0.0), 50, diagonal);
    assert_eq!((cornered.origin.x, cornered.origin.y), (48.0 - 1.0 / 32.0, 48.0 - 1.0 / 32.0));
    let falling = ArenaBody { velocity: Vec3::new(100.0, 100.0, -100.0), ..standing_at(40.0, 40.0, 300.0) };
    let slid = run(&boxes(&walls), falling, 30, still(0));
    assert!(slid.origin.z < 280.0 && slid.velocity.z < -300.0, "{} {}", slid.origin, slid.velocity);
}

#[test]
fn a_groove_of_two_steep_slopes_leads_along_itself() {
    let slope = |x: f64| {
        ConvexBrush::new(vec![Facet { normal: DVec3::new(x, 0.0, 0.6), distance: 0.0 }]).expect("a half space")
    };
    let world = CollisionWorld::new(&[slope(0.8), slope(-0.8)]);
    let falling =
        ArenaBody { velocity: Vec3::new(30.0, 100.0, -200.0), ..ArenaBody::standing_at(Vec3::new(0.0, 0.0, 72.0)) };
    let slid = run(&world, falling, 1, Input { msec: 100, ..still(0) });
    assert!(slid.origin.z < 57.5 && slid.origin.y > 9.0, "{}", slid.origin);
    // The crease's direction has the length of the sine between the slopes, and counts twice.
    let kept = 100.0 * 0.96 * 0.96;
    assert!(slid.velocity.x == 0.0 && (slid.velocity.y - kept).abs() < 0.01, "{}", slid.velocity);
}

#[test]
fn a_fast_rising_player_is_not_on_the_ground() {
    let world = boxes(&[FLOOR]);
    let rising = |speed| ArenaBody { velocity: Vec3::new(0.0, 0.0, speed), ..standing_at(0.0, 0.0, 0.0) };
    assert!(run(&world, rising(179.0), 1, still(0)).on_ground);
    assert!(!run(&world, rising(186.0), 1, still(0)).on_ground);
}

#[test]
fn a_slightly_stuck_player_is_freed() {
    let world = boxes(&[FLOOR]);
    let freed = run(&world, ArenaBody::standing_at(Vec3::new(0.0, 0.0, 35.95)), 2, forward(0));
    assert!(freed.on_ground && freed.velocity.x > 0.0, "{} {}", freed.origin, freed.velocity);
    let buried = ArenaBody::standing_at(Vec3::new(0.0, 0.0, -20.0));
    assert_eq!(run(&world, buried, 2, forward(0)).origin, buried.origin);
}

/// A map with one other player in it.
struct WorldWithPlayer<'a> {
    map: &'a CollisionWorld,
    other: Vec3,
}

impl WorldWithPlayer<'_> {
    const OTHER: SweepContact = SweepContact::Entity(EntityId(7));
}

impl Solid for WorldWithPlayer<'_> {
    fn sweep(&self, hull: SolidHull, from: Vec3, to: Vec3) -> SweepHit {
        let half = SolidHull::Standing.half_extent_units();
        let other = sweep_box(self.other - half, self.other + half, Self::OTHER, hull, from, to);
        self.map.sweep(hull, from, to).nearer(other)
    }

    fn inside(&self, hull: SolidHull, at: Vec3) -> SweepContact {
        let half = SolidHull::Standing.half_extent_units();
        let held = sweep_box(self.other - half, self.other + half, Self::OTHER, hull, at, at).start_solid;
        if held { Self::OTHER } else { self.map.inside(hull, at) }
    }
}

#[test]
fn other_players_block_the_way_and_can_be_stood_on() {
    let map = boxes(&[FLOOR]);
    let world = WorldWithPlayer { map: &map, other: Vec3::new(100.0, 0.0, 36.0) };
    let mut touched = Vec::new();
    let mut state = standing_at(0.0, 0.0, 0.0);
    for _ in 0..80 {
        state = pmove(&MoveVars::default(), &world, &state, &forward(0), &mut |event| touched.push(event));
    }
    assert_eq!(state.origin.x, 68.0 - 1.0 / 32.0);
    assert!(touched.contains(&MoveEvent::Touched { entity: EntityId(7) }));
    let above = run(&world, standing_at(100.0, 0.0, 90.0), 100, still(0));
    assert!(above.on_ground && above.origin.z == 72.0 + 36.0 + 1.0 / 32.0, "{}", above.origin);
    let within = standing_at(100.0, 0.0, 0.0);
    assert!(run(&world, within, 1, still(0)).origin.x == 100.0, "no way out without a struggle");
    let freed = run(&world, within, 1, still(BUTTON_JUMP)).origin;
    assert_eq!(world.inside(SolidHull::Standing, freed), SweepContact::Nothing, "{freed}");
}

#[test]
fn a_player_who_prevents_standing_up_is_touched() {
    let map = boxes(&[FLOOR]);
    let ducked = run(&boxes(&[FLOOR]), standing_at(0.0, 0.0, 0.0), 100, still(BUTTON_DUCK));
    // The other stands on the ducked player's head.
    let world = WorldWithPlayer { map: &map, other: Vec3::new(0.0, 0.0, 36.0 + 36.0 + 1.0 / 16.0) };
    let mut touched = Vec::new();
    let state = pmove(&MoveVars::default(), &world, &ducked, &still(0), &mut |event| touched.push(event));
    assert!(ducked.ducked && state.ducked);
    assert_eq!(touched, [MoveEvent::Touched { entity: EntityId(7) }]);
}

#[test]
fn a_fall_is_reported_once_with_its_speed() {
    let world = boxes(&[FLOOR]);
    let mut state = ArenaBody::standing_at(Vec3::new(0.0, 0.0, 400.0));
    let mut falls = Vec::new();
    for _ in 0..200 {
        state = pmove(&MoveVars::default(), &world, &state, &still(0), &mut |event| falls.push(event));
    }
    let [MoveEvent::Landed { fall_speed }] = falls[..] else { panic!("{falls:?}") };
    let expected = libm::sqrtf(2.0 * 800.0 * 364.0);
    assert!((fall_speed - expected).abs() < 20.0, "{fall_speed}, not about {expected}");
}

#[test]
fn running_makes_footsteps_with_both_feet() {
    let world = boxes(&[FLOOR]);
    let mut state = standing_at(0.0, 0.0, 0.0);
    let mut feet = Vec::new();
    for _ in 0..300 {
        state = pmove(&MoveVars::default(), &world, &state, &forward(0), &mut |event| {
            if let MoveEvent::Footstep { left, running: true } = event {
                feet.push(left);
            }
        });
    }
    assert!((8..=10).contains(&feet.len()), "every 300 ms of 3 s: {feet:?}");
    assert!(feet.windows(2).all(|pair| pair[0] != pair[1]), "{feet:?}");
}

#[test]
fn nan_and_infinity_do_no_harm() {
    let world = boxes(&[FLOOR]);
    let input = Input { forwardmove: f32::NAN, viewangles: Vec3::splat(f32::INFINITY), ..forward(7) };
    let state = ArenaBody { velocity: Vec3::splat(f32::NAN), ..ArenaBody::standing_at(Vec3::new(f32::NAN, 1.0, 99.0)) };
    let after = run(&world, state, 5, input);
    assert!(after.origin.is_finite() && after.velocity.is_finite(), "{after:?}");
}
