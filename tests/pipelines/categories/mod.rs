//! The rendering categories of NeREIDS on the arena's orchard. The tests compare drawn positions, over a link with
//! delay, jitter and loss, with the server's positions.

mod arrows;
mod stage;

use std::path::Path;

use self::stage::{CategoryStage, Screen, StageControls, change};
use crate::built_in::replay;
use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, BodyKind};
use hitreg::game::{Categorize, Category};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::packet::Snapshot;
use hitreg::replay::ReplayOptions;
use hitreg::settings::Settings;
use hitreg::store;
use hitreg::trace::ColumnData;
use hitreg::units::{EntityId, Micros};
use hitreg::usercmd::{Input, buttons};

const UPDATE: Micros = Micros(50_000);

fn bad_link() -> LinkModel {
    LinkModel { jitter: Jitter::Exponential(6.0), loss: Loss::Random(0.05), ..delay(60.0) }
}

pub(crate) fn delay(delay_ms: f64) -> LinkModel {
    LinkModel { delay_ms, ..LinkModel::default() }
}

/// Runs a session. `on_snapshot` may change the snapshots on arrival.
pub(crate) fn run(
    stage: &mut CategoryStage,
    seconds: i64,
    mut input: impl FnMut(u16, Micros) -> Input,
    mut on_snapshot: impl FnMut(u16, Micros, &mut Snapshot<ArenaBody>) -> bool,
) {
    let mut play = StageControls { input: &mut input, on_snapshot: &mut on_snapshot, reaches_server: &mut |_, _| true };
    stage.run_until(Micros::from_s(seconds), &mut play);
}

fn nothing(_: u16, _: Micros) -> Input {
    Input::default()
}

pub(crate) fn as_sent(_: u16, _: Micros, _: &mut Snapshot<ArenaBody>) -> bool {
    true
}

pub(crate) fn category(screen: &Screen, entity: EntityId) -> Option<Category> {
    screen.of(entity).and_then(|placed| placed.by).map(|by| by.category)
}

#[test]
fn each_category_is_recorded_and_replayed_and_in_the_trace() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sessions/orchard.hitlog");
    let session = store::read_log(Path::new(path)).expect("a sound log");
    let again = |mode: &str| {
        let mut settings = Settings::from_pairs(&session.header.settings).expect("its settings");
        settings.set("interpolation.mode", mode).expect("a mode");
        let options = ReplayOptions { settings: Some(settings), ..ReplayOptions::default() };
        replay(&session, &options).expect("a log of this build")
    };
    let by_category = again("category");
    assert_eq!(by_category.findings.first_difference, None);
    let mut rows = [0_u32; Category::NAMES.len()];
    for name in ["views", "variables"] {
        let column = by_category.trace.table(name).and_then(|table| table.column("category")).expect("a column");
        let ColumnData::Name { names, codes } = &column.data else { panic!("names") };
        assert_eq!(*names, Category::NAMES);
        codes.iter().for_each(|code| rows[*code as usize] += 1);
    }
    eprintln!("{:?}", Category::NAMES.iter().zip(rows).collect::<Vec<_>>());
    assert!(rows.iter().all(|rows| *rows > 50), "{rows:?}");
    // A client with another way of drawing has no categories. Drawing changes nothing on the server.
    let otherwise = again("history");
    assert_eq!(otherwise.findings.first_difference, None);
    assert!(otherwise.trace.table("variables").is_none());
    assert!(otherwise.trace.table("views").is_some_and(|views| views.column("category").is_none()));
}

#[test]
fn a_static_tree_stays_when_the_servers_tree_moves() {
    let mut stage = CategoryStage::new(2, &bad_link(), 1, &[]);
    let tree = EntityId(2);
    run(&mut stage, 5, nothing, |_, at, snapshot| {
        change(snapshot, tree, |body| body.origin.x += at.as_s_f64() as f32 * 100.0);
        true
    });
    let screens = &stage.seats[0].screens;
    let first = screens[0].of(tree).expect("a tree").body;
    assert_eq!(first.kind, BodyKind::Tree);
    assert!(screens.iter().all(|screen| screen.of(tree).expect("a tree").body == first));
    assert!(screens.iter().all(|screen| category(screen, tree) == Some(Category::Constant)));
    let received = screens.last().expect("screens").newest.frame.get(tree).expect("a tree").origin.x;
    assert!(received - first.origin.x > 400.0, "the server's tree did move");
}

#[test]
fn a_sound_plays_to_its_end_without_further_snapshots() {
    let mut stage = CategoryStage::new(1, &bad_link(), 3, &[]);
    let mut deaf_from: Option<Micros> = None;
    // After the client knows that the bell rings, no more snapshots arrive.
    run(&mut stage, 9, nothing, |_, at, snapshot| {
        let deaf = deaf_from.is_some();
        let rings = snapshot.frame.entities.iter().any(|(_, b)| b.kind == BodyKind::Bell && b.teleports == 1);
        if rings && !deaf {
            deaf_from = Some(at);
        }
        !deaf
    });
    let bell = stage.all_of(BodyKind::Bell)[0];
    let deaf_from = deaf_from.expect("it rang");
    let mut played = Vec::new();
    let mut worst = Micros::ZERO;
    for screen in stage.seats[0].screens.iter().filter(|screen| screen.at > deaf_from) {
        let drawn = screen.of(bell).expect("a bell").body;
        let (truth, age) = stage.truth_at(screen.own_time(), bell).expect("a bell");
        let expected = Arena::play(&stage.rules, truth, age);
        if truth.teleports == 1 {
            worst = worst.max(Micros((i64::from(drawn.event_in_us) - i64::from(expected.event_in_us)).abs()));
        }
        played.push(-drawn.event_in_us);
    }
    eprintln!("{} frames without an update; the sound is at most {worst} off", played.len());
    assert!(played.len() > 100 && played.is_sorted());
    assert!(played[0] < 500_000 && played.last() == Some(&2_000_000), "{:?}", (played[0], played.last()));
    assert!(worst <= Micros(2), "{worst}");
}

#[test]
fn another_player_is_drawn_at_the_last_received_state() {
    let mut stage = CategoryStage::new(2, &bad_link(), 5, &[]);
    let dance = |player: u16, at: Micros| Input {
        forwardmove: 400.0,
        viewangles: Vec3::new(0.0, at.as_s_f64() as f32 * 90.0 + f32::from(player) * 40.0, 0.0),
        buttons: if at.0 % 1_000_000 < 100_000 { buttons::JUMP } else { 0 },
        ..Input::default()
    };
    run(&mut stage, 8, dance, as_sent);
    let other = EntityId(1);
    let mut moved = 0.0_f32;
    let screens = &stage.seats[0].screens;
    for (before, screen) in screens.iter().zip(&screens[1..]) {
        let received = screen.newest.frame.get(other).expect("the other");
        assert_eq!(screen.of(other).map(|placed| &placed.body), Some(received));
        assert_eq!(category(screen, other), Some(Category::Authoritative));
        moved += before.newest.frame.get(other).expect("the other").origin.distance(received.origin);
    }
    assert!(screens.len() > 400 && moved > 1_000.0, "{moved}");
}

#[test]
fn own_movement_is_immediate_and_own_health_is_the_servers() {
    let mut stage = CategoryStage::new(1, &delay(100.0), 7, &[]);
    let (begins, hurt) = (Micros::from_s(2), Micros::from_ms(2_500));
    let walk = |_: u16, at: Micros| Input { forwardmove: if at >= begins { 400.0 } else { 0.0 }, ..Input::default() };
    let me = EntityId(0);
    run(&mut stage, 4, walk, |_, at, snapshot| {
        change(snapshot, me, |body| body.health = if at >= hurt { 55 } else { 100 });
        true
    });
    let screens = &stage.seats[0].screens;
    let key = screens.iter().position(|screen| screen.at >= begins).expect("a frame");
    let mine = |at: usize| screens[at].own.as_ref().expect("myself");
    assert_eq!(mine(key).by.map(|by| by.category), Some(Category::Controlled));
    assert!(mine(key).body.origin != mine(key - 1).body.origin, "moves in the frame of the key");
    let received = |at: usize| screens[at].newest.frame.get(me).expect("myself").origin;
    let echo = (key..screens.len()).find(|at| received(*at) != received(key)).expect("the server's word");
    let waited = screens[echo].at - screens[key].at;
    eprintln!("the server's word on it comes {waited} after the key");
    assert!(waited >= Micros::from_ms(200));
    for screen in screens {
        let health = if screen.newest.frame.get(me).expect("myself").health == 55 { 55 } else { 100 };
        assert_eq!(screen.own.as_ref().expect("myself").body.health, health, "at {}", screen.at);
    }
    let running = screens.iter().find(|screen| screen.at >= hurt + Micros::from_ms(200)).expect("a frame");
    let own = &running.own.as_ref().expect("myself").body;
    assert_eq!(own.health, 55);
    let ahead = own.origin.distance(running.newest.frame.get(me).expect("myself").origin);
    assert!(ahead > 0.2 * 200.0, "the place is predicted all the same: {ahead} units ahead");
}

#[test]
fn an_apple_is_drawn_where_it_is_when_the_usercmd_runs() {
    let mut stage = CategoryStage::new(1, &bad_link(), 9, &[]);
    run(&mut stage, 40, nothing, as_sent);
    let (mut worst, mut worst_late, mut compared, mut greatest_lag) = (0.0_f32, 0.0_f32, 0, 0.0_f32);
    for apple in stage.all_of(BodyKind::Apple) {
        for screen in &stage.seats[0].screens {
            let drawn = screen.of(apple).expect("an apple");
            assert_eq!(drawn.by.map(|by| by.category), Some(Category::Simulated));
            let received = screen.newest.frame.get(apple).expect("an apple");
            let Some((truth, age)) = stage.truth_at(screen.own_time(), apple) else { continue };
            let truth = Arena::simulate(&stage.rules, truth, age);
            let falls = |body: &ArenaBody| !body.on_ground && body.velocity != Vec3::ZERO;
            if !falls(received) || truth.teleports != received.teleports {
                continue;
            }
            compared += 1;
            worst = worst.max(drawn.body.origin.distance(truth.origin));
            let late = received.origin.distance(truth.origin);
            if falls(&truth) {
                // At least half of the way, because the apple accelerates.
                let lag = (screen.own_time() - screen.newest.frame.server_time).as_s_f64() as f32;
                let least = 0.5 * truth.velocity.length() * lag;
                assert!(late >= least * 0.999, "{late} of {least}");
                greatest_lag = greatest_lag.max(lag);
            }
            worst_late = worst_late.max(late);
        }
    }
    eprintln!(
        "{compared} falling apples: simulated {worst} units off, as received {worst_late}; {greatest_lag} s behind"
    );
    assert!(compared > 300 && worst < 0.1 && worst_late > 60.0);
}

#[test]
fn a_walker_is_exact_from_its_decisions_alone() {
    let link = LinkModel { loss: Loss::Random(0.3), jitter: Jitter::Exponential(15.0), ..delay(100.0) };
    let mut stage = CategoryStage::new(1, &link, 11, &[]);
    // The test removes the walker's position and movement from every snapshot.
    run(&mut stage, 60, nothing, |_, _, snapshot| {
        let walker = snapshot.frame.entities.iter().find(|(_, body)| body.kind == BodyKind::Walker).map(|(id, _)| *id);
        change(snapshot, walker.expect("a walker"), |body| {
            *body = ArenaBody { origin: Vec3::ZERO, velocity: Vec3::ZERO, viewangles: Vec3::ZERO, ..*body };
        });
        true
    });
    let walker = stage.all_of(BodyKind::Walker)[0];
    let (mut exact, mut moving, mut decisions) = (0, 0, Vec::new());
    for screen in &stage.seats[0].screens {
        let drawn = screen.of(walker).expect("a walker");
        let by = drawn.by.expect("by a category");
        assert_eq!(by.category, Category::DeterministicAi);
        let (truth, age) = stage.truth_at(by.at, walker).expect("a walker");
        let truth = Arena::carry_out(&stage.rules, truth, age);
        assert_eq!(
            [drawn.body.origin, drawn.body.velocity, drawn.body.viewangles].map(|v| v.to_array().map(f32::to_bits)),
            [truth.origin, truth.velocity, truth.viewangles].map(|v| v.to_array().map(f32::to_bits)),
            "at {}",
            screen.at
        );
        exact += 1;
        moving += u32::from(truth.velocity != Vec3::ZERO);
        decisions.push(screen.newest.frame.get(walker).expect("a walker").decision);
    }
    decisions.dedup();
    eprintln!("{exact} frames exact, {moving} of them on the move, after {} decisions", decisions.len());
    assert!(exact > 3_500 && moving > 1_500 && decisions.len() >= 5);
}

#[test]
fn a_jumping_avatar_jumps_only_when_drawn_as_received() {
    // The claim: with a round trip of more than half a second, extrapolation draws a player on the ground who jumps
    // for half a second. A jump here takes 0.67 s.
    let mut stage = CategoryStage::new(2, &delay(350.0), 19, &[]);
    let jumps = |player: u16, at: Micros| Input {
        buttons: if player == 1 && at.0 % 1_500_000 < 50_000 { buttons::JUMP } else { 0 },
        ..Input::default()
    };
    run(&mut stage, 20, jumps, as_sent);
    let other = EntityId(1);
    let ground = stage.truth.iter().filter_map(|frame| frame.get(other)).map(|body| body.origin.z).fold(1e9, f32::min);
    let (mut extrapolated, mut as_told) = (0.0_f32, 0.0_f32);
    for screen in stage.seats[0].screens.iter().filter(|screen| screen.at > Micros::from_s(3)) {
        let received = screen.newest.frame.get(other).expect("the other");
        let ahead = screen.own_time() - screen.newest.frame.server_time;
        assert!(ahead > Micros::from_ms(700) && ahead < Micros::from_ms(700) + UPDATE + UPDATE, "{ahead}");
        extrapolated = extrapolated.max(Arena::simulate(&stage.rules, received, ahead).origin.z - ground);
        as_told = as_told.max(screen.of(other).expect("the other").body.origin.z - ground);
    }
    eprintln!("highest jump seen: extrapolated {extrapolated} units, as received {as_told}");
    assert!(extrapolated < 1.0 && as_told > 40.0);
}
