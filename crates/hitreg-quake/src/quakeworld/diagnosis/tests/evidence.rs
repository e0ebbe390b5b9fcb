//! Checks every label against independent evidence on real demos. It measures how many cases of a label a second sign
//! confirms, and how often a placebo gets the label. A placebo is a correctly predicted stretch of usercmds whose
//! record gets a random push, so it has no real cause. docs/accuracy.md has the shares.

use glam::Vec3;

use crate::quakeworld::QuakeWorldRules;
use crate::quakeworld::body::QuakeWorldBody;
use crate::quakeworld::demo::{DemoEvent, EffectKind};
use crate::quakeworld::diagnosis::MissedPrediction;
use crate::quakeworld::diagnosis::explain;
use crate::quakeworld::import::prepared;
use crate::quakeworld::import::{AckedUsercmds, replay_acks};
use crate::quakeworld::movement::{MoveOutcome, WorldSolid};
use crate::quakeworld::rounding::grade;
use hitreg_log::sorted::SortedMap;
use hitreg_netcode::game::{Cause, Explanation, LostInput, PredictionGrade};

/// Interval of correct stretches that get a push.
const PLACEBO_EVERY: usize = 40;

/// Labels below the bar, documented as such.
const WEAK: [&str; 0] = [];

#[derive(Default)]
struct EvidenceTally {
    cases: u32,
    confirmed: u32,
    placebos: u32,
}

fn missed<'a>(rules: &QuakeWorldRules, acked: &AckedUsercmds<'a>, recorded: QuakeWorldBody) -> MissedPrediction<'a> {
    let lost_input = LostInput { backups: 2, repeats: true };
    let acked = AckedUsercmds { recorded, ..acked.clone() };
    MissedPrediction::of_acked(acked, rules.player.entity(), None, lost_input, &[]).expect("a state")
}

/// Pushes a record by 20 to 300 units/s in a random direction, for the whole time of the usercmds.
fn pushed(acked: &AckedUsercmds<'_>, chance: &mut u64) -> QuakeWorldBody {
    let mut next = || {
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*chance >> 40) as f32 / (1u64 << 24) as f32
    };
    let direction = Vec3::new(next() - 0.5, next() - 0.5, next() - 0.5).normalize_or(Vec3::X);
    let push = direction * (20.0 + 280.0 * next());
    let seconds = acked.commands.iter().map(|cmd| f32::from(cmd.msec) * 0.001).sum::<f32>();
    let mut own = acked.recorded;
    for axis in 0..3 {
        own.velocity[axis] = f32::from((own.velocity[axis] + push[axis]) as i16);
        own.origin[axis] = ((own.origin[axis] + push[axis] * seconds) * 8.0).round() / 8.0;
    }
    own
}

/// Returns whether a sign that the label does not use confirms the cause.
fn confirms(cause: Cause, evidence: &str, acked: &AckedUsercmds<'_>, run: &MoveOutcome) -> bool {
    let at = acked.recorded.origin;
    let change = acked.recorded.velocity - Vec3::from_array(run.state.velocity);
    let near = |origin: [f32; 3], units: f32| at.distance(Vec3::from_array(origin)) < units;
    let events = &acked.events;
    let flash = |event: &DemoEvent| match *event {
        DemoEvent::Effect { kind: EffectKind::Teleport, origin } => near(origin, 96.0),
        _ => false,
    };
    let health = events.iter().any(|event| matches!(event, DemoEvent::Health(_)));
    let damage = events.iter().any(|event| matches!(event, DemoEvent::Damage { .. }));
    match cause {
        // The label uses the message itself. The source of the damage and the size of the push are independent of it.
        Cause::Knockback if evidence == "damage message" => {
            let hurt: f32 = events
                .iter()
                .map(|event| match *event {
                    DemoEvent::Damage { armor, health, .. } => f32::from(armor) + f32::from(health),
                    _ => 0.0,
                })
                .sum();
            let from_there = events.iter().any(|event| match *event {
                DemoEvent::Effect { origin, .. } => {
                    let away = at - Vec3::from_array(origin);
                    near(origin, 250.0) && away.dot(change) > 0.3 * away.length() * change.length()
                }
                _ => false,
            });
            from_there || (0.4..4.5).contains(&(change.length() / (8.0 * hurt.max(1.0))))
        }
        Cause::Knockback => health || damage || change.length() > 20.0,
        Cause::SpawnOrDeath if evidence.starts_with("reproduced") => acked.from.dead,
        Cause::SpawnOrDeath => health || damage || events.iter().any(flash),
        // The label uses only positions.
        Cause::Teleport if evidence == "prediction alone teleported" => !events.iter().any(flash),
        // The label uses only the position. The flash may be in a lost packet; a predicted way through a trigger
        // confirms the label as well.
        Cause::Teleport => events.iter().any(flash) || run.touched.trigger.is_some(),
        Cause::OtherPlayer => acked.solids.iter().any(|solid| match *solid {
            WorldSolid::Player { origin, .. } => near(origin, 140.0),
            _ => false,
        }),
        // A lift or door causes a small error and never throws a player.
        Cause::Mover => change.length() < 120.0,
        Cause::InputLost => acked.commands.len() > 1,
        _ => change.length() < 500.0,
    }
}

#[test]
fn labels_are_confirmed_and_placebos_are_not_labelled() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/quakeworld");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return;
    }
    let mut tallies: SortedMap<(&str, &str), EvidenceTally> = SortedMap::new();
    let (mut placebos, mut chance) = (0, 7u64);
    for number in [3, 6, 11, 16, 22, 25, 31, 38] {
        let read = |path: std::path::PathBuf| std::fs::read(path).expect("data");
        let demo = read(data.join(format!("matches/demo{number:02}.qwd.xz")));
        let (demo, rules) = prepared(&demo, |map| read(data.join("maps").join(format!("{map}.bsp.gz"))));
        let mut right = 0;
        replay_acks(&demo, &rules, |acked, run| {
            let is_right = grade(&run.state, &acked.recorded) == PredictionGrade::Exact;
            right += usize::from(is_right);
            if is_right && right % PLACEBO_EVERY == 0 {
                let Explanation { cause, evidence } = explain(&missed(&rules, acked, pushed(acked, &mut chance)));
                tallies.entry((cause.name(), evidence)).or_default().placebos += 1;
                placebos += 1;
            } else if grade(&run.state, &acked.recorded) == PredictionGrade::Miss {
                let Explanation { cause, evidence } = explain(&missed(&rules, acked, acked.recorded));
                let tally = tallies.entry((cause.name(), evidence)).or_default();
                tally.cases += 1;
                tally.confirmed += u32::from(confirms(cause, evidence, acked, run));
            }
            true
        });
    }
    println!("{placebos} placebos");
    let mut weak = Vec::new();
    for ((cause, evidence), EvidenceTally { cases, confirmed, placebos: taken }) in &tallies {
        let share = 100.0 * f64::from(*taken) / f64::from(placebos);
        println!("{cause:15} {evidence:45} cases {cases:5} confirmed {confirmed:5} placebos {taken:5} {share:.2} %");
        let confirmed = *cases < 10 || confirmed * 10 >= cases * 9;
        if *cause != "unknown" && (share >= 2.0 || !confirmed) {
            weak.push(*evidence);
        }
    }
    assert_eq!(
        weak, WEAK,
        "labels that are confirmed in less than 90 % of their cases, or given to 2 % of the placebos"
    );
}
