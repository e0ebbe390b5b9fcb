//! Which player a shot hits: leads, rewinds, corners, and aim at a dodging target. Player 0 shoots, player 1 runs.

use std::sync::Arc;

use glam::Vec3;

use crate::claims::experiment::Experiment;
use crate::claims::watch::{ObservedShot, ObservedSnapshot, ObservedTick, SessionWatch, body_of};
use crate::claims::{Claim, ClaimError, NamedFigures, count, greatest, least, median, share};
use hitreg_analysis::fairness::{CoverHits, Fairness};
use hitreg_arena::{Arena, ArenaBody, ArenaEffect};
use hitreg_log::units::{EntityId, Micros, PlayerId};
use hitreg_netcode::game::{Effect, HitResult};
use hitreg_netcode::geometry::angle_off;
use hitreg_netcode::replay::TraceTables;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(LagCompensation, "lead-without-compensation", of ["rtt-100", "rtt-200"] lead_without),
    claim!(LagCompensation, "lead-with-compensation", played lead_with),
    claim!(LagCompensation, "lead-with-extrapolation", of ["rtt-60", "rtt-300"] lead_extrapolated),
    claim!(LagCompensation, "hit-tone", of ["led", "not-led"] hit_tone),
    claim!(LagCompensation, "rewind-three-terms", of ["latency", "lerp", "both", "sparse"] three_terms),
    claim!(LagCompensation, "rewind-moves-nobody", of ["with", "without"] moves_nobody),
    claim!(LagCompensation, "rewind-stance-and-life", of ["ducked", "died"] stance_and_life),
    claim!(LagCompensation, "shot-round-the-corner", round_the_corner),
    claim!(LagCompensation, "shot-head-on", head_on),
    claim!(LagCompensation, "shot-crossing", crossing),
    claim!(LagCompensation, "projectiles-not-compensated", of ["rockets", "bullets"] projectiles),
    claim!(LagCompensation, "client-says-it-hit", client_says_it_hit),
    claim!(LagCompensation, "false-stamps", false_stamps),
    claim!(LagCompensation, "lead-while-dodging", of ["straight", "dodging", "fluctuating"] while_dodging),
    claim!(LagCompensation, "running-one-way", played running_one_way),
];

const SHOOTER: u16 = 0;
const RUNNER: u16 = 1;

fn lead_without([at_100, at_200]: [&SessionWatch; 2]) -> NamedFigures {
    vec![("lead that hits, at 100 ms", lead_that_hits(at_100)), ("lead that hits, at 200 ms", lead_that_hits(at_200))]
}

fn lead_with(seen: &SessionWatch) -> NamedFigures {
    vec![("lead that hits, at 100 ms", lead_that_hits(seen))]
}

fn lead_extrapolated([at_60, at_300]: [&SessionWatch; 2]) -> NamedFigures {
    vec![("lead that hits, at 60 ms", lead_that_hits(at_60)), ("lead that hits, at 300 ms", lead_that_hits(at_300))]
}

fn hit_tone([led, unled]: [&SessionWatch; 2]) -> NamedFigures {
    let fired: Vec<Micros> =
        led.frames_of(SHOOTER).filter(|frame| frame.plays(ArenaEffect::Pistol)).map(|frame| frame.at).collect();
    let heard = tones(led);
    let delay = |heard: &Micros| {
        let shot = fired.iter().copied().filter(|shot| shot <= heard).max_by_key(|shot| shot.0)?;
        // Shots are farther apart than the round trip, so the last earlier shot is the right one.
        Some((*heard - shot).as_ms_f64())
    };
    let delays: Vec<f64> = heard.iter().filter_map(delay).collect();
    let predicted = led.frames_of(SHOOTER).flat_map(|frame| &frame.effects);
    let predicted = predicted.filter(|effect| effect.kind == ArenaEffect::HitTone as u8).count();
    vec![
        ("shots", count(fired.len())),
        ("tones with a lead of 50 units", count(heard.len())),
        ("tones without a lead", count(tones(unled).len())),
        ("shot to tone, median", median(&delays)),
        ("tones predicted by the client", count(predicted)),
    ]
}

fn three_terms([latency, lerp, both, sparse]: [&SessionWatch; 4]) -> NamedFigures {
    let rewind = |seen: &SessionWatch| median(seen.shots.iter().map(|shot| shot.rewound_by.as_ms_f64()));
    let errors: Vec<f64> = sparse.shots.iter().filter_map(|shot| view_error(sparse, shot)).collect();
    let said = sparse.frames_of(SHOOTER).last().map(|frame| f64::from(frame.command.lerp_msec));
    vec![
        ("rewind, 100 ms of latency", rewind(latency)),
        ("rewind, 100 ms of interpolation", rewind(lerp)),
        ("rewind, both", rewind(both)),
        ("interpolation in the usercmd", said),
        ("10 updates/s: distance from drawn to judged", greatest(&errors)),
    ]
}

fn moves_nobody([with, without]: [&SessionWatch; 2]) -> NamedFigures {
    let place = |seen: &SessionWatch| -> Vec<Option<ArenaBody>> {
        let at_rest = |body: &ArenaBody| ArenaBody { health: 0, ..*body };
        seen.ticks.iter().map(|tick| body_of(&tick.bodies, RUNNER).map(at_rest)).collect()
    };
    let differing = place(with).iter().zip(&place(without)).filter(|(a, b)| a != b).count();
    vec![
        ("hits, aimed at the drawn target", count(with.hits().count())),
        (
            "distance of the judged from the present position, median",
            median(with.shots.iter().filter_map(|shot| moved_back(with, shot))),
        ),
        ("ticks with another target position", count(differing)),
    ]
}

fn stance_and_life([ducked, died]: [&SessionWatch; 2]) -> NamedFigures {
    let shots = |seen: &SessionWatch| seen.shots_of(SHOOTER).count();
    let now_ducked = ducked.shots.iter().all(|shot| {
        ducked.tick_at(shot.at).and_then(|tick| body_of(&tick.bodies, RUNNER)).is_some_and(|body| body.ducked)
    });
    let found_dead = died.shots_of(SHOOTER);
    let found_dead = found_dead.filter(|shot| shot.verdict.reason == HitResult::AlreadyDead).count();
    vec![
        ("shots at the head of a target that ducked since", count(if now_ducked { shots(ducked) } else { 0 })),
        ("of those, hits", count(ducked.hits().filter(|shot| shot.shooter.0 == SHOOTER).count())),
        ("shots at a target that died since", count(shots(died))),
        ("of those, on the target alive in the past (no damage)", count(found_dead)),
    ]
}

fn round_the_corner(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let (late, quick) = (exposure(experiment, "rtt-500")?, exposure(experiment, "rtt-50")?);
    let longest = |exposure: &CoverHits| exposure.in_cover_ms.map(|spread| f64::from(spread.max));
    Ok(vec![
        ("hits in cover, shooter at 500 ms", count(late.in_cover as usize)),
        ("time in cover, shooter at 500 ms, max", longest(&late)),
        ("time in cover, shooter at 50 ms, max", longest(&quick)),
    ])
}

fn head_on(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let seen = experiment.play_variant("scene")?;
    let exposure = exposure(experiment, "scene")?;
    let bends: Vec<f64> = seen.hits().filter_map(|shot| bend_deg(&seen, shot)).collect();
    let moved: Vec<f64> = seen.hits().filter_map(|shot| moved_back(&seen, shot)).collect();
    Ok(vec![
        ("hits", count(seen.hits().count())),
        ("rewind distance, median", median(&moved)),
        ("angle from hit to present position, max", greatest(&bends)),
        ("hits in cover", count(exposure.in_cover as usize)),
        ("runner behind a wall: hits in cover", hits_in_cover(experiment, "aside")?),
        ("runner behind a wall: shots stopped", stopped(experiment, "aside")?),
    ])
}

fn crossing(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let seen = experiment.play_variant("scene")?;
    let exposure = exposure(experiment, "scene")?;
    Ok(vec![
        ("hits", count(seen.hits().count())),
        (
            "angle from the runner's view to the shooter, min",
            least(seen.hits().filter_map(|shot| off_view_deg(&seen, shot))),
        ),
        ("hits in cover", count(exposure.in_cover as usize)),
        ("runner behind a wall: hits in cover", hits_in_cover(experiment, "behind")?),
        ("runner behind a wall: shots stopped", stopped(experiment, "behind")?),
    ])
}

fn projectiles([rockets, bullets]: [&SessionWatch; 2]) -> NamedFigures {
    let rewind = greatest(rockets.shots.iter().map(|shot| shot.rewound_by.as_ms_f64()));
    let met = rockets.impacts.iter().filter(|(_, verdict)| verdict.reason == HitResult::Hit).count();
    let at_once = rockets.hits().count();
    let heard = rockets.frames_of(SHOOTER).flat_map(|frame| &frame.effects);
    let heard = heard.filter(|effect| effect.kind == ArenaEffect::Launcher as u8).count();
    vec![
        ("rockets aimed at the runner", count(rockets.shots.len())),
        ("of those, hits", count(met + at_once)),
        ("rewind of rockets, max", rewind),
        ("firing sounds predicted", count(heard)),
        ("bullets with the same aim that hit", share(bullets.hits().count(), bullets.shots.len())),
    ]
}

fn client_says_it_hit(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let silent = experiment.play()?;
    let (seen, heard) = experiment.play_saying_results(SHOOTER)?;
    let otherwise = silent.ticks.iter().zip(&seen.ticks).filter(|(without, with)| without.hash != with.hash).count()
        + silent.ticks.len().abs_diff(seen.ticks.len());
    let judged_otherwise = silent.shots.iter().zip(&seen.shots).filter(|(without, with)| without != with).count()
        + silent.shots.len().abs_diff(seen.shots.len());
    let claimed: Vec<_> = seen
        .frames_of(SHOOTER)
        .flat_map(|frame| &frame.shots)
        .filter(|(_, verdict)| verdict.reason == HitResult::Hit)
        .map(|(command, _)| *command)
        .collect();
    let agreed = seen.hits().filter(|shot| claimed.contains(&shot.command)).count();
    let health = |tick: Option<&ObservedTick>| Some(f64::from(body_of(&tick?.bodies, RUNNER)?.health));
    let lost = health(seen.ticks.first()).zip(health(seen.ticks.last())).map(|(first, last)| first - last);
    Ok(vec![
        ("shots that hit on the shooter's screen", count(claimed.len())),
        ("results reported to the server", count(heard)),
        ("of those, hits on the server", count(agreed)),
        ("shots judged differently because of reports", count(judged_otherwise)),
        ("ticks changed by reports", count(otherwise)),
        ("health lost by the target", lost),
    ])
}

fn false_stamps(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let prepared = experiment.variant("scene")?;
    let (honest, lied, slightly) = (prepared.stamped(0)?, prepared.stamped(-400)?, prepared.stamped(-190)?);
    let rewind = |seen: &SessionWatch| median(seen.shots.iter().map(|s| s.rewound_by.as_ms_f64()));
    let more = |seen: &SessionWatch| rewind(seen).zip(rewind(&honest)).map(|(lied, honest)| lied - honest);
    Ok(vec![
        ("shots at a target in cover", count(lied.shots.len())),
        ("honest times: hits", count(honest.hits().count())),
        ("times 400 ms older: hits", count(lied.hits().count())),
        ("times 400 ms older: additional rewind", more(&lied)),
        ("times 190 ms older: additional rewind", more(&slightly)),
    ])
}

fn while_dodging([straight, dodging, fluctuating]: [&SessionWatch; 3]) -> NamedFigures {
    let hits = |seen: &SessionWatch| share(seen.hits().count(), seen.shots.len());
    // From the time of the drawn state, which the client's clock has adopted, to the judgement.
    let latency = |seen: &SessionWatch| {
        let drawn_at = |shot: &ObservedShot| Some(seen.frame_of(shot.shooter, shot.command)?.command.server_time);
        let ms: Vec<f64> = seen.shots.iter().filter_map(|shot| Some((shot.at - drawn_at(shot)?).as_ms_f64())).collect();
        (!ms.is_empty()).then(|| ms.iter().sum::<f64>() / ms.len() as f64)
    };
    vec![
        ("shots", count(straight.shots.len())),
        ("latency of the shots, mean", latency(straight)),
        ("fluctuating latency of the shots, mean", latency(fluctuating)),
        ("right lead, straight run: hits", hits(straight)),
        ("same lead, dodging: hits", hits(dodging)),
        ("same lead, fluctuating latency: hits", hits(fluctuating)),
    ]
}

fn running_one_way(seen: &SessionWatch) -> NamedFigures {
    // The shooter as drawn on the target's screen at the time of the hit.
    let beside = |shot: &ObservedShot| {
        let frame = seen.frames_of(RUNNER).rfind(|frame| frame.at <= shot.at)?;
        let shooter = &frame.drawn(SHOOTER)?.body;
        Some(f64::from(angle_off(shooter.eye(), looking(shooter.viewangles), frame.own?.origin).to_degrees()))
    };
    vec![
        ("hits", count(seen.hits().count())),
        (
            "angle from the runner's view to the shooter, max",
            greatest(seen.hits().filter_map(|shot| off_view_deg(seen, shot))),
        ),
        ("visible aim error of the shooter", median(seen.hits().filter_map(beside))),
    ]
}

/// Returns the median lead of the hits, in units.
fn lead_that_hits(seen: &SessionWatch) -> Option<f64> {
    let leads: Vec<f64> =
        seen.hits().filter_map(|shot| seen.lead_of(shot.shooter, shot.command)).map(f64::from).collect();
    let (low, high) = (least(&leads)?, greatest(&leads)?);
    Some((low + high) / 2.0)
}

/// Returns the times at which the shooter heard its hits.
fn tones(seen: &SessionWatch) -> Vec<Micros> {
    let is_tone = |effect: &&Effect| effect.kind == ArenaEffect::HitTone as u8 && effect.entity == EntityId(SHOOTER);
    let heard = |s: &ObservedSnapshot| vec![s.at; s.effects.iter().filter(is_tone).count()];
    seen.received_by(SHOOTER).flat_map(heard).collect()
}

/// Returns the view error: the distance between where the runner was judged and where the shooter drew it.
fn view_error(seen: &SessionWatch, shot: &ObservedShot) -> Option<f64> {
    let drawn = seen.frame_of(PlayerId(SHOOTER), shot.command)?.drawn(RUNNER)?.body.origin;
    Some(f64::from(body_of(&shot.targets, RUNNER)?.origin.distance(drawn)))
}

/// Returns the distance between where the runner was judged and where it was at the time of judgement.
fn moved_back(seen: &SessionWatch, shot: &ObservedShot) -> Option<f64> {
    Some(f64::from(body_of(&shot.targets, RUNNER)?.origin.distance(seen.truth(RUNNER, shot.at)?)))
}

/// Returns the angle at the muzzle, in degrees, between where the runner was judged and where it was at that time.
fn bend_deg(seen: &SessionWatch, shot: &ObservedShot) -> Option<f64> {
    let judged = body_of(&shot.targets, RUNNER)?.origin;
    let off = angle_off(shot.muzzle, judged - shot.muzzle, seen.truth(RUNNER, shot.at)?);
    Some(f64::from(off.to_degrees()))
}

/// Returns the number of hits on a target that was already in cover.
fn hits_in_cover(experiment: &Experiment, variant: &str) -> Result<Option<f64>, ClaimError> {
    Ok(count(exposure(experiment, variant)?.in_cover as usize))
}

/// Returns the number of shots that only the map stopped from hitting.
fn stopped(experiment: &Experiment, variant: &str) -> Result<Option<f64>, ClaimError> {
    let seen = experiment.play_variant(variant)?;
    Ok(count(seen.shots.iter().filter(|shot| shot.verdict.reason == HitResult::HitWorld).count()))
}

/// Returns from the tables of a replay how targets were in cover when they were hit.
fn exposure(experiment: &Experiment, variant: &str) -> Result<CoverHits, ClaimError> {
    let prepared = experiment.variant(variant)?;
    let mut tables = TraceTables::new::<Arena>(prepared.scene.players.len(), Arc::clone(&prepared.rules));
    prepared.play(&mut tables)?;
    Ok(Fairness::of(&tables.finish::<Arena>()).all)
}

/// Returns the angle, in degrees, between where the runner looks and the shooter at the time of a shot.
fn off_view_deg(seen: &SessionWatch, shot: &ObservedShot) -> Option<f64> {
    let tick = seen.tick_at(shot.at)?;
    let runner = body_of(&tick.bodies, RUNNER)?;
    Some(f64::from(angle_off(runner.origin, looking(runner.viewangles), shot.muzzle).to_degrees()))
}

/// Returns the horizontal direction of a view.
fn looking(viewangles: Vec3) -> Vec3 {
    let (sin, cos) = libm::sincosf(viewangles.y.to_radians());
    Vec3::new(cos, sin, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::MechanismState;

    #[test]
    fn claims_about_cover_fail_without_the_wall() {
        for name in ["shot-crossing", "shot-head-on", "shot-round-the-corner"] {
            let claim = CLAIMS.iter().find(|claim| claim.name == name).expect(name);
            let open = claim.text.replace("map = \"corner\"", "map = \"plain\"");
            assert_ne!(open, claim.text, "{name} has a wall");
            let checked = claim.check_as(&open, MechanismState::On).expect(name);
            assert!(!checked.holds, "{name} needs no wall");
            // Everything else is unchanged.
            let other = checked.figures.iter().filter(|figure| !figure.figure.contains("cover"));
            assert!(other.filter(|figure| !figure.figure.contains("wall")).all(|figure| figure.holds), "{checked:?}");
        }
    }
}
