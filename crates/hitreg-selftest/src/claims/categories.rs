//! The rendering categories of NeREIDS, each on an entity of the orchard. Player 0 watches.

use std::sync::Arc;

use glam::Vec3;

use crate::claims::experiment::Experiment;
use crate::claims::prediction::key_to_movement;
use crate::claims::watch::{ObservedFrame, SessionWatch, body_of};
use crate::claims::{Claim, ClaimError, NamedFigures, count, greatest, share};
use hitreg_arena::{ArenaBody, ArenaEffect, ArenaMap, ArenaRules, BodyKind, record_synthetic};
use hitreg_log::units::{EntityId, Micros};
use hitreg_netcode::game::{Category, PlacedBody};
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::wire::SnapshotBitCounts;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Nereids, "category-constant", of ["told-once"] constant),
    claim!(Nereids, "constant-told-once", constant_told_once),
    claim!(Nereids, "category-self-contained", played self_contained),
    claim!(Nereids, "category-authoritative", played authoritative),
    claim!(Nereids, "category-controlled", played controlled),
    claim!(Nereids, "category-simulated", played simulated),
    claim!(Nereids, "start-of-a-fall-smoothed", played start_of_a_fall),
    claim!(Nereids, "category-deterministic-ai", played deterministic_ai),
    claim!(Nereids, "category-reactive", played reactive),
    claim!(Nereids, "reactive-taken-back", played taken_back),
    claim!(Nereids, "category-inverted", played inverted),
    claim!(Nereids, "jump-shorter-than-the-round-trip", of ["as-drawn", "simulated"] short_jump),
    claim!(Nereids, "nereids-draws-by-all-categories", by_all),
];

fn constant([seen]: [&SessionWatch; 1]) -> NamedFigures {
    let trees = drawn_as(seen, BodyKind::Tree);
    let by = trees.iter().filter(|(_, _, placed)| is_by(placed, Category::Constant)).count();
    let moved = trees.iter().map(|(_, id, placed)| {
        let first = trees.iter().find(|(_, other, _)| other == id).map_or(Vec3::ZERO, |(_, _, p)| p.body.origin);
        f64::from(first.distance(placed.body.origin))
    });
    let moved: Vec<f64> = moved.collect();
    vec![("frames drawn as constant", share(by, trees.len())), ("distance moved, max", greatest(&moved))]
}

fn constant_told_once(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let seen = experiment.play_variant(if experiment.is_off { "unheard" } else { "heard" })?;
    let (from, _) = seen.inspect;
    let all = || seen.sent.iter().filter_map(|sent| Some((sent.at >= from, sent.bit_counts?)));
    let bytes = |later: bool, bits: &dyn Fn(&SnapshotBitCounts) -> u32| {
        let of = all().filter(|(is_later, _)| *is_later == later).map(|(_, counts)| f64::from(bits(&counts)));
        Some(of.sum::<f64>() / 8.0)
    };
    let constant = |counts: &SnapshotBitCounts| counts.of(Category::Constant);
    let others = |counts: &SnapshotBitCounts| counts.values.iter().sum::<u32>() - counts.of(Category::Constant);
    let whole = seen
        .sent
        .iter()
        .map(|sent| sent.bit_counts.map_or(0, |counts| counts.bits()).abs_diff(8 * u64::from(sent.bytes)));
    Ok(vec![
        ("Constant values sent in the first second", bytes(false, &constant)),
        ("Constant values sent later", bytes(true, &constant)),
        ("other values sent later", bytes(true, &others)),
        ("bits not counted, or counted twice", count(whole.sum::<u64>() as usize)),
    ])
}

fn self_contained(seen: &SessionWatch) -> NamedFigures {
    let bells = drawn_as(seen, BodyKind::Bell);
    let mut uneven = Vec::new();
    for pair in bells.windows(2) {
        let [(before, a, from), (now, b, to)] = pair else { continue };
        let same = a == b && from.body.teleports == to.body.teleports && from.body.teleports > 0;
        // Only while the bell rings; the sound position stays constant at its end.
        if same && (1..1_950_000).contains(&played_us(to)) {
            let heard = played_us(to) - played_us(from);
            uneven.push((heard - (now.at - before.at).0).abs() as f64 / 1000.0);
        }
    }
    vec![
        ("frames with the bell ringing", count(uneven.len())),
        ("sound progress minus frame time, max", greatest(&uneven)),
    ]
}

fn authoritative(seen: &SessionWatch) -> NamedFigures {
    let mut off = Vec::new();
    for frame in seen.inspected(0) {
        if let Some((sent, drawn)) = seen.newest_body(0, frame.at, 1).zip(frame.drawn(1)) {
            off.push(f64::from(sent.origin.distance(drawn.body.origin)));
        }
    }
    vec![("frames", count(off.len())), ("distance from the last update, max", greatest(&off))]
}

fn controlled(seen: &SessionWatch) -> NamedFigures {
    let drawn = |frame: &ObservedFrame| Some((frame.own_placed.as_ref()?.body.origin, frame.own_drawn?));
    let off = |(drawn, own): (Vec3, Vec3)| f64::from(drawn.distance(own));
    let off: Vec<f64> = seen.inspected(0).filter_map(drawn).map(off).collect();
    let own = seen.frames_of(0).filter_map(|frame| Some((frame.at, frame.own_placed.as_ref()?.body.health)));
    let shown = own.into_iter().find(|(_, health)| *health < 100).map(|(at, _)| at);
    let hurt = seen.ticks.iter().find(|tick| body_of(&tick.bodies, 0).is_some_and(|b| b.health < 100));
    vec![
        ("key to movement", key_to_movement(seen)),
        ("frames", count(off.len())),
        ("own avatar: distance from the prediction, max", greatest(&off)),
        ("loss of health to its display", shown.zip(hurt).map(|(shown, hurt)| (shown - hurt.at).as_ms_f64())),
    ]
}

fn simulated(seen: &SessionWatch) -> NamedFigures {
    let mut off = Vec::new();
    for (frame, id, placed) in drawn_as(seen, BodyKind::Apple) {
        // The present of the own avatar: the time at which a usercmd made now runs.
        let at = placed.by.map_or(frame.at + Micros::from_ms(60), |by| by.at);
        let truth = seen.ticks.get(seen.ticks.partition_point(|tick| tick.at <= at).saturating_sub(1));
        let truth = truth.and_then(|tick| Some((tick.at, body_of(&tick.bodies, id.0)?)));
        let (Some((then, truth)), Some(sent)) = (truth, seen.newest_body(0, frame.at, id.0)) else { continue };
        let falls = |body: &ArenaBody| !body.on_ground && body.velocity != Vec3::ZERO;
        if falls(sent) && falls(truth) && sent.teleports == truth.teleports {
            let truth = truth.origin + truth.velocity * (at - then).as_s_f64() as f32;
            off.push(f64::from(placed.body.origin.distance(truth)));
        }
    }
    vec![("frames with a falling apple", count(off.len())), ("distance from its future position, max", greatest(&off))]
}

fn start_of_a_fall(seen: &SessionWatch) -> NamedFigures {
    let (mut shifts, mut off) = (Vec::new(), Vec::new());
    let apples = drawn_as(seen, BodyKind::Apple);
    for pair in apples.windows(2) {
        let [(before, a, from), (now, b, to)] = pair else { continue };
        if a != b || from.body.teleports != to.body.teleports || from.body.on_ground || to.body.on_ground {
            continue;
        }
        // The movement in one frame, minus that due to its velocity.
        let fell = to.body.velocity * (now.at - before.at).as_s_f64() as f32;
        shifts.push(f64::from((to.body.origin - from.body.origin - fell).length()));
        let truth = to.by.and_then(|by| seen.truth(b.0, by.at)).filter(|_| to.body.velocity.z < -220.0);
        off.extend(truth.map(|truth| f64::from(truth.distance(to.body.origin))));
    }
    vec![
        ("frames with an apple", count(shifts.len())),
        ("shift in one frame, max", greatest(&shifts)),
        ("fast fall: distance from its future position, max", greatest(&off)),
    ]
}

fn deterministic_ai(seen: &SessionWatch) -> NamedFigures {
    let mut off = Vec::new();
    let mut moving = 0;
    for (frame, id, placed) in drawn_as(seen, BodyKind::Walker) {
        // The server timeline, which is the client's clock.
        let at = placed.by.map_or(frame.command.server_time, |by| by.at);
        let Some(truth) = seen.truth(id.0, at) else { continue };
        moving += usize::from(placed.body.velocity != Vec3::ZERO);
        off.push(f64::from(placed.body.origin.distance(truth)));
    }
    vec![("frames with the AI walking", count(moving)), ("distance from its true position, max", greatest(&off))]
}

fn reactive(seen: &SessionWatch) -> NamedFigures {
    let fired: Vec<&ObservedFrame> = seen.frames_of(0).filter(|frame| frame.plays(ArenaEffect::Launcher)).collect();
    let is_arrow = |placed: &PlacedBody<ArenaBody>| placed.body.kind == BodyKind::Arrow;
    let shown = |shot: &&ObservedFrame| {
        let had = arrows(seen, shot.at - Micros(1));
        let frame = seen
            .frames_of(0)
            .find(|frame| frame.at >= shot.at && frame.drawn.iter().filter(|(_, p)| is_arrow(p)).count() > had)?;
        Some((frame.at - shot.at).as_ms_f64())
    };
    let delays: Vec<f64> = fired.iter().filter_map(shown).collect();
    vec![
        ("arrows shot", count(fired.len())),
        ("shot to visible arrow, max", greatest(&delays)),
        ("arrows launched by the server", count(seen.shots_of(0).count())),
    ]
}

fn taken_back(seen: &SessionWatch) -> NamedFigures {
    let has_arrow = |frame: &&ObservedFrame| frame.drawn.iter().any(|(_, p)| is_by(p, Category::Reactive));
    let on_screen: Vec<Micros> = seen.frames_of(0).filter(has_arrow).map(|frame| frame.at).collect();
    let shot = seen.frames_of(0).find(|frame| !frame.shots.is_empty() || frame.plays(ArenaEffect::Launcher));
    let word = shot.and_then(|shot| seen.received_by(0).find(|s| s.ack >= shot.command.seq)).map(|s| s.at);
    let since = |at: Option<Micros>, from: Option<Micros>| at.zip(from).map(|(at, from)| (at - from).as_ms_f64());
    vec![
        ("arrows launched by the server", count(seen.shots_of(0).count())),
        ("shot to visible arrow", since(on_screen.first().copied(), shot.map(|shot| shot.at))),
        ("shot to the server's answer", since(word, shot.map(|shot| shot.at))),
        (
            "frames with the arrow before the answer",
            word.map(|word| on_screen.iter().filter(|at| **at < word).count() as f64),
        ),
        (
            "frames with the arrow after the answer",
            word.map(|word| on_screen.iter().filter(|at| **at >= word).count() as f64),
        ),
    ]
}

fn inverted(seen: &SessionWatch) -> NamedFigures {
    let mut missed = Vec::new();
    let (mut frames, mut unsteady) = (0, Vec::new());
    let mut flight: Option<ArrowFlight> = None;
    for (frame, id, placed) in drawn_as(seen, BodyKind::Arrow) {
        let last = seen.newest_for(0, frame.at);
        let Some((last, sent)) = last.and_then(|last| Some((last, body_of(&last.bodies, id.0)?))) else { continue };
        frames += 1;
        unsteady.extend(ArrowFlight::go_on(&mut flight, frame, id, placed, sent));
        let lands = last.server_time + Micros(i64::from(sent.event_in_us));
        let at = placed.by.map_or(last.server_time, |by| by.at);
        // An arrow drawn after its landing time has landed.
        if frame.command.server_time + Micros::from_ms(120) >= lands && at <= lands + Micros::from_s(1) {
            missed.push(f64::from(placed.body.origin.distance(sent.goal)));
        }
    }
    vec![
        ("frames with a server's arrow", count(frames)),
        ("frames after the landing time", count(missed.len())),
        ("distance from the announced end, max", greatest(&missed)),
        ("frames in flight", count(unsteady.len())),
        ("unevenness of steps in flight, max", greatest(&unsteady)),
    ]
}

/// An arrow followed from frame to frame.
struct ArrowFlight {
    arrow: (EntityId, u32),
    at: Micros,
    place: Vec3,
    /// The distance covered in the previous frame.
    step: Option<f64>,
}

impl ArrowFlight {
    /// Follows an arrow to the next frame. Returns the difference between its step there and the one before. Returns
    /// `None` for an arrow that has landed or is new.
    fn go_on(
        flight: &mut Option<ArrowFlight>,
        frame: &ObservedFrame,
        id: EntityId,
        placed: &PlacedBody<ArenaBody>,
        sent: &ArenaBody,
    ) -> Option<f64> {
        let arrow = (id, sent.teleports);
        let place = placed.body.origin;
        let before = flight.take().filter(|before| before.arrow == arrow && frame.at > before.at);
        let step = before.as_ref().map(|before| f64::from(before.place.distance(place)));
        let is_on_its_way = place.distance(sent.goal) > 0.5;
        let uneven = before.as_ref().and_then(|before| Some((step? - before.step?).abs()));
        *flight = Some(ArrowFlight { arrow, at: frame.at, place, step });
        uneven.filter(|_| is_on_its_way)
    }
}

fn short_jump([seen, simulating]: [&SessionWatch; 2]) -> NamedFigures {
    let ground = seen.ticks.iter().filter_map(|tick| body_of(&tick.bodies, 1)).map(|b| b.origin.z);
    let ground = ground.fold(f32::INFINITY, f32::min);
    let placed = |seen: &SessionWatch| -> Vec<PlacedBody<ArenaBody>> {
        seen.inspected(0).filter_map(|frame| frame.drawn(1).cloned()).collect()
    };
    let highest = |placed: &[PlacedBody<ArenaBody>]| {
        greatest(placed.iter().map(|placed| f64::from(placed.body.origin.z - ground)))
    };
    let simulated = placed(simulating);
    let by = simulated.iter().filter(|placed| is_by(placed, Category::Simulated)).count();
    vec![
        ("frames drawn as simulated", share(by, simulated.len())),
        ("height, simulated to the present, max", highest(&simulated)),
        ("height, as drawn, max", highest(&placed(seen))),
    ]
}

fn by_all(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let preset = "nereids".to_owned();
    let mut scenario = Scenario { preset, players: 4, seconds: 30.0, ..Scenario::default() };
    if experiment.is_off {
        scenario.settings.insert("prediction.mode".to_owned(), "movement".to_owned());
    }
    let mut seen = SessionWatch::default();
    let rules = Arc::new(ArenaRules::new(ArenaMap::orchard()));
    record_synthetic(&scenario, &rules, &mut seen)?;
    let all =
        || seen.frames.iter().flat_map(|frame| frame.drawn.iter().map(|(_, placed)| placed).chain(&frame.own_placed));
    let by = |category| count(all().filter(|placed| is_by(placed, category)).count());
    Ok(vec![
        ("views", count(all().count())),
        ("constant", by(Category::Constant)),
        ("authoritative", by(Category::Authoritative)),
        ("controlled", by(Category::Controlled)),
        ("simulated", by(Category::Simulated)),
        ("deterministic-ai", by(Category::DeterministicAi)),
        ("reactive", by(Category::Reactive)),
        ("inverted", by(Category::Inverted)),
    ])
}

/// Returns everything of a kind on the watcher's screen, by frame.
fn drawn_as(seen: &SessionWatch, kind: BodyKind) -> Vec<(&ObservedFrame, EntityId, &PlacedBody<ArenaBody>)> {
    let mut all: Vec<_> = seen
        .inspected(0)
        .flat_map(|frame| frame.drawn.iter().map(move |(id, placed)| (frame, *id, placed)))
        .filter(|(_, _, placed)| placed.body.kind == kind)
        .collect();
    all.sort_by_key(|(frame, id, _)| (*id, frame.at));
    all
}

/// Returns the number of arrows on the watcher's last screen before a time.
fn arrows(seen: &SessionWatch, before: Micros) -> usize {
    let frame = seen.frames_of(0).rfind(|frame| frame.at <= before);
    frame.map_or(0, |frame| frame.drawn.iter().filter(|(_, placed)| placed.body.kind == BodyKind::Arrow).count())
}

/// Returns the played length of a bell's sound, in µs.
fn played_us(placed: &PlacedBody<ArenaBody>) -> i64 {
    -i64::from(placed.body.event_in_us)
}

fn is_by(placed: &PlacedBody<ArenaBody>, category: Category) -> bool {
    placed.by.is_some_and(|by| by.category == category)
}
