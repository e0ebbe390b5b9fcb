//! Aiming, apart from leading: at a dodging target, over a line with fluctuating latency, and as the target sees the
//! shooter. Player 0 shoots, player 1 runs.

use glam::Vec3;

use super::experiment::Experiment;
use super::watch::{ObservedShot, SessionWatch, body_of};
use super::{Claim, ClaimError, NamedFigures, count, greatest, median, share};
use hitreg_netcode::geometry::angle_off;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(LagCompensation, "lead-while-dodging", while_dodging),
    claim!(LagCompensation, "running-one-way", played running_one_way),
];

const SHOOTER: u16 = 0;
const RUNNER: u16 = 1;

fn while_dodging(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let straight = experiment.play_variant("straight")?;
    let dodging = experiment.play_variant("dodging")?;
    let fluctuating = experiment.play_variant("fluctuating")?;
    let hits = |seen: &SessionWatch| share(seen.hits().count(), seen.shots.len());
    Ok(vec![
        ("shots", count(straight.shots.len())),
        ("right lead, straight run: hits", hits(&straight)),
        ("same lead, dodging: hits", hits(&dodging)),
        ("same lead, fluctuating latency: hits", hits(&fluctuating)),
    ])
}

fn running_one_way(seen: &SessionWatch) -> NamedFigures {
    let off_view = |shot: &ObservedShot| {
        let tick = seen.ticks.iter().find(|tick| tick.at == shot.at)?;
        let runner = body_of(&tick.bodies, RUNNER)?;
        Some(f64::from(angle_off(runner.origin, looking(runner.viewangles), shot.muzzle).to_degrees()))
    };
    // The shooter as drawn on the target's screen at the time of the hit.
    let beside = |shot: &ObservedShot| {
        let frame = seen.frames_of(RUNNER).rfind(|frame| frame.at <= shot.at)?;
        let shooter = &frame.drawn(SHOOTER)?.body;
        Some(f64::from(angle_off(shooter.eye(), looking(shooter.viewangles), frame.own?.origin).to_degrees()))
    };
    vec![
        ("hits", count(seen.hits().count())),
        ("angle from the runner's view to the shooter, max", greatest(seen.hits().filter_map(off_view))),
        ("visible aim error of the shooter", median(seen.hits().filter_map(beside))),
    ]
}

/// Returns the horizontal direction of a view.
fn looking(viewangles: Vec3) -> Vec3 {
    let (sin, cos) = libm::sincosf(viewangles.y.to_radians());
    Vec3::new(cos, sin, 0.0)
}
