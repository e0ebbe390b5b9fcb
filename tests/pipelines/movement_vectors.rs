//! Compares the arena's movement with recorded runs of Half-Life: from the start state alone, step by step, without
//! corrections. The directory is `HITREG_MOVEMENT_VECTORS`, by default `fixtures/movement`.

use std::fs;
use std::path::{Path, PathBuf};

use glam::Vec3;
use hitreg::arena::{
    ArenaBody, BUTTON_DUCK, BUTTON_JUMP, CollisionWorld, ConvexBrush, Facet, MoveEvent, MoveVars, Solid, SolidHull,
    pmove,
};
use hitreg::usercmd::Input;
use serde::Deserialize;

const ORIGIN_BAR_UNITS: f32 = 1.0 / 32.0;
const VELOCITY_BAR_UNITS_S: f32 = 0.1;

#[derive(Deserialize)]
struct VectorHeader {
    movevars: MoveVars,
    hulls: Hulls,
    brushes: Vec<Vec<Facet>>,
    start: VectorStart,
}

#[derive(Deserialize)]
struct Hulls {
    standing: HullShape,
    ducked: HullShape,
}

#[derive(Deserialize)]
struct HullShape {
    mins: [f32; 3],
    maxs: [f32; 3],
    view_height: f32,
}

#[derive(Deserialize)]
struct VectorStart {
    origin: [f32; 3],
    velocity: [f32; 3],
}

#[derive(Deserialize)]
struct VectorStep {
    cmd: StepInput,
    state: StateAfter,
}

#[derive(Deserialize)]
struct StepInput {
    msec: u8,
    viewangles: [f32; 3],
    forwardmove: f32,
    sidemove: f32,
    upmove: f32,
    buttons: u16,
}

impl From<StepInput> for Input {
    fn from(step: StepInput) -> Input {
        let StepInput { msec, viewangles, forwardmove, sidemove, upmove, buttons } = step;
        Input { msec, viewangles: viewangles.into(), forwardmove, sidemove, upmove, buttons, ..Input::default() }
    }
}

#[derive(Deserialize)]
struct StateAfter {
    origin: [f32; 3],
    velocity: [f32; 3],
    onground: bool,
    ducked: bool,
    view_ofs_z: f32,
}

/// The distance between a run and its recording.
#[derive(Default)]
struct RunDistance {
    steps: usize,
    exact: usize,
    worst_origin_units: f32,
    worst_velocity_units_s: f32,
    /// The first step that differs, and how.
    first_inexact: Option<String>,
    first_miss: Option<String>,
}

#[test]
fn every_recorded_run_is_followed_within_the_bar() {
    let directory = vectors_directory();
    let runs = runs_in(&directory);
    assert!(!runs.is_empty(), "no *.jsonl or *.jsonl.zst in {}", directory.display());
    let mut misses = Vec::new();
    for path in runs {
        let score = follow(&read(&path));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!(
            "{name}: {} of {} steps bit-exact; worst {:.6} units, {:.6} units/s",
            score.exact, score.steps, score.worst_origin_units, score.worst_velocity_units_s
        );
        if let Some(first) = score.first_inexact {
            println!("  first inexact: {first}");
        }
        assert!(score.steps > 0, "{name} holds no steps");
        misses.extend(score.first_miss.map(|miss| format!("{name}: {miss}")));
    }
    assert!(misses.is_empty(), "beyond the bar:\n{}", misses.join("\n"));
}

#[test]
fn the_committed_runs_are_followed_to_the_bit() {
    for path in runs_in(&committed_runs()) {
        let score = follow(&read(&path));
        assert_eq!(score.exact, score.steps, "{}: {}", path.display(), score.first_inexact.unwrap_or_default());
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names the folder of the runs")]
fn vectors_directory() -> PathBuf {
    std::env::var_os("HITREG_MOVEMENT_VECTORS").map_or_else(committed_runs, PathBuf::from)
}

fn committed_runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/movement")
}

fn runs_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|why| panic!("{}: {why}", directory.display()));
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable directory entry").path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
        })
        .collect();
    runs.sort();
    runs
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let bytes = if path.extension().is_some_and(|ending| ending == "zst") {
        zstd::decode_all(bytes.as_slice()).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    } else {
        bytes
    };
    String::from_utf8(bytes).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn follow(text: &str) -> RunDistance {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let header: VectorHeader = serde_json::from_str(lines.next().expect("a first line")).expect("a header");
    check_hull(&header.hulls.standing, SolidHull::Standing, hitreg::arena::VIEW_HEIGHT_STANDING_UNITS);
    check_hull(&header.hulls.ducked, SolidHull::Ducked, hitreg::arena::VIEW_HEIGHT_DUCKED_UNITS);
    let brushes: Vec<ConvexBrush> =
        header.brushes.into_iter().map(|facets| ConvexBrush::new(facets).expect("a brush")).collect();
    let world = CollisionWorld::new(&brushes);
    let start = ArenaBody::standing_at(header.start.origin.into());
    let mut state = ArenaBody { velocity: header.start.velocity.into(), ..start };
    let mut score = RunDistance::default();
    for line in lines {
        let step: VectorStep = serde_json::from_str(line).expect("a step");
        state = pmove(&header.movevars, &world, &state, &step.cmd.into(), &mut |_| ());
        score.add(&state, &step.state);
    }
    score
}

fn check_hull(recorded: &HullShape, hull: SolidHull, view_height_units: f32) {
    assert_eq!(Vec3::from(recorded.maxs), hull.half_extent_units());
    assert_eq!(Vec3::from(recorded.mins), -hull.half_extent_units());
    assert_eq!(recorded.view_height, view_height_units);
}

impl RunDistance {
    fn add(&mut self, ours: &ArenaBody, recorded: &StateAfter) {
        self.steps += 1;
        let (origin, velocity) = (Vec3::from(recorded.origin), Vec3::from(recorded.velocity));
        let origin_off = (ours.origin - origin).abs().max_element();
        let velocity_off = (ours.velocity - velocity).abs().max_element();
        self.worst_origin_units = self.worst_origin_units.max(origin_off);
        self.worst_velocity_units_s = self.worst_velocity_units_s.max(velocity_off);
        let same_stance = (ours.on_ground, ours.ducked) == (recorded.onground, recorded.ducked);
        let same_view = ours.view_ofs_z.to_bits() == recorded.view_ofs_z.to_bits();
        let exact = bits(ours.origin) == bits(origin) && bits(ours.velocity) == bits(velocity);
        let difference = || {
            format!(
                "step {}: origin {} {:?}, velocity {} {:?}, recorded {} {}; on ground {} ({}), ducked {} ({}), view {} ({})",
                self.steps,
                ours.origin,
                bits(ours.origin),
                ours.velocity,
                bits(ours.velocity),
                origin,
                velocity,
                ours.on_ground,
                recorded.onground,
                ours.ducked,
                recorded.ducked,
                ours.view_ofs_z,
                recorded.view_ofs_z
            )
        };
        if exact && same_stance && same_view {
            self.exact += 1;
        } else if self.first_inexact.is_none() {
            self.first_inexact = Some(difference());
        }
        let within = origin_off <= ORIGIN_BAR_UNITS && velocity_off <= VELOCITY_BAR_UNITS_S;
        if !(within && same_stance && same_view) && self.first_miss.is_none() {
            self.first_miss = Some(difference());
        }
    }
}

fn bits(vector: Vec3) -> [u32; 3] {
    vector.to_array().map(f32::to_bits)
}

/// Run with `cargo test --release --test pipelines movement_vectors -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, for release builds"]
#[expect(clippy::disallowed_methods, reason = "this program measures time")]
fn nanoseconds_per_step_among_150_brushes() {
    const STEPS: u32 = 500_000;
    let world = pillar_hall();
    let vars = MoveVars::default();
    let mut state = ArenaBody::standing_at(Vec3::new(64.0, 64.0, 37.0));
    let mut random = 0x9e37_79b9_u32;
    let (mut yaw, mut ducks) = (0.0, 0);
    let mut inputs = Vec::new();
    for _ in 0..STEPS {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let chance = random >> 16 & 127;
        yaw += (chance as f32 - 63.5) * 0.4;
        ducks = if chance == 0 { 60 } else { i32::max(ducks - 1, 0) };
        let jump = if chance & 31 == 3 { BUTTON_JUMP } else { 0 };
        let duck = if ducks > 0 { BUTTON_DUCK } else { 0 };
        let viewangles = Vec3::new(chance as f32 / 16.0, yaw, 0.0);
        let sidemove = if chance < 40 { -400.0 } else { 0.0 };
        let buttons = jump | duck;
        inputs.push(Input { msec: 10, viewangles, forwardmove: 400.0, sidemove, buttons, ..Input::default() });
    }
    let (mut landed, mut way) = (0, 0.0);
    let start = std::time::Instant::now();
    for input in &inputs {
        let before = state.origin;
        state = pmove(&vars, &world, &state, input, &mut |event| {
            landed += u32::from(matches!(event, MoveEvent::Landed { .. }))
        });
        way += state.origin.distance(before);
    }
    let ns = start.elapsed().as_nanos() as f64 / f64::from(STEPS);
    println!("{ns:.0} ns per step; went {way:.0} units, landed {landed} times, at {}", state.origin);
    assert!(way > 100_000.0, "the walker got stuck, so this measured nothing");
}

/// Run with `cargo test --release --test pipelines movement_vectors -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, for release builds"]
#[expect(clippy::disallowed_methods, reason = "this program measures time")]
fn nanoseconds_per_shot_among_150_brushes() {
    const SHOTS: u32 = 200_000;
    let world = pillar_hall();
    let from = Vec3::new(64.0, 64.0, 64.0);
    let mut hits = 0;
    let start = std::time::Instant::now();
    for shot in 0..SHOTS {
        let turn = shot as f32 * 0.001;
        let to = from + Vec3::new(libm::cosf(turn), libm::sinf(turn), 0.02) * 8_192.0;
        hits += u32::from(world.sweep(SolidHull::Point, from, to).fraction < 1.0);
    }
    println!("{:.0} ns per shot", start.elapsed().as_nanos() as f64 / f64::from(SHOTS));
    assert_eq!(hits, SHOTS, "a shot left the walled hall");
}

/// A walled floor with 145 boxes: steps, ledges and pillars.
fn pillar_hall() -> CollisionWorld {
    let mut brushes = vec![
        ConvexBrush::cuboid([-1_000.0, -1_000.0, -64.0], [1_000.0, 1_000.0, 0.0]),
        ConvexBrush::cuboid([-1_000.0, -1_000.0, 0.0], [-900.0, 1_000.0, 512.0]),
        ConvexBrush::cuboid([900.0, -1_000.0, 0.0], [1_000.0, 1_000.0, 512.0]),
        ConvexBrush::cuboid([-900.0, -1_000.0, 0.0], [900.0, -900.0, 512.0]),
        ConvexBrush::cuboid([-900.0, 900.0, 0.0], [900.0, 1_000.0, 512.0]),
    ];
    for i in 0..145 {
        let (column, row) = (f64::from(i % 12), f64::from(i / 12));
        let (x, y) = (column * 140.0 - 820.0, row * 140.0 - 820.0);
        let height = [16.0, 40.0, 128.0, 18.0, 256.0][i as usize % 5];
        brushes.push(ConvexBrush::cuboid([x, y, 0.0], [x + 48.0, y + 48.0, height]));
    }
    assert_eq!(brushes.len(), 150);
    CollisionWorld::new(&brushes)
}
