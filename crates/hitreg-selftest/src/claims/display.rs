//! How the others are drawn: extrapolation, interpolation, teleports. Player 0 watches, player 1 moves.

use crate::claims::watch::{ObservedFrame, SessionWatch, body_of};
use crate::claims::{Claim, NamedFigures, count, greatest, intervals_ms, least, median, share};
use hitreg_log::units::Micros;
use hitreg_netcode::game::PlacementKind;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Display, "extrapolation-distance", played extrapolation_distance),
    claim!(Display, "extrapolation-cap", played extrapolation_cap),
    claim!(Display, "extrapolation-dodging", of ["straight", "dodging"] extrapolation_dodging),
    claim!(Display, "interpolation-smooth", played interpolation_smooth),
    claim!(Display, "interpolation-algorithm", played interpolation_algorithm),
    claim!(Display, "interpolation-in-the-past", of ["near", "far"] interpolation_in_the_past),
    claim!(Display, "lost-update-100-ms", of ["hold", "extrapolate"] lost_update_100_ms),
    claim!(Display, "lost-update-200-ms", played lost_update_200_ms),
    claim!(
        Display,
        "bouncing-ball",
        of ["two-point-10", "two-point-50", "last-rendered-20", "history-20", "history-10", "history-50"] bouncing_ball
    ),
    claim!(Display, "teleport-flag", played teleport_flag),
    claim!(Display, "teleport-distance", of ["far", "near"] teleport_distance),
];

const VIEWER: u16 = 0;
const MOVER: u16 = 1;
/// A shorter step counts as standing still, in units.
const REST_UNITS: f64 = 0.01;

fn extrapolation_distance(seen: &SessionWatch) -> NamedFigures {
    let errors: Vec<f64> = seen.inspected(VIEWER).filter_map(|frame| error_at_present(seen, frame)).collect();
    vec![
        ("distance ahead of the last update, median", median(ahead_of_last(seen))),
        ("distance from the server's position, max", greatest(&errors)),
    ]
}

fn extrapolation_cap(seen: &SessionWatch) -> NamedFigures {
    let silence = greatest(intervals_ms(seen.received_by(VIEWER).map(|s| s.at)));
    vec![
        ("time without updates, max", silence),
        ("distance ahead of the last update, max", greatest(ahead_of_last(seen))),
    ]
}

fn extrapolation_dodging([straight, dodging]: [&SessionWatch; 2]) -> NamedFigures {
    let error = |seen: &SessionWatch| {
        let errors: Vec<f64> = seen.inspected(VIEWER).filter_map(|frame| error_of_picture(seen, frame)).collect();
        greatest(&errors)
    };
    vec![("error while running straight, max", error(straight)), ("error while dodging, max", error(dodging))]
}

fn interpolation_smooth(seen: &SessionWatch) -> NamedFigures {
    let steps = steps(seen);
    vec![
        ("updates per second", updates_per_s(seen)),
        ("smallest step between frames", least(&steps)),
        ("largest step between frames", greatest(&steps)),
    ]
}

fn interpolation_algorithm(seen: &SessionWatch) -> NamedFigures {
    let mut origin: Vec<f64> = Vec::new();
    let mut angle: Vec<f64> = Vec::new();
    for frame in seen.inspected(VIEWER) {
        // The clock at the frame: the last update's time plus the time since.
        let Some(last) = seen.newest_for(VIEWER, frame.at) else { continue };
        let clock = last.server_time + (frame.at - last.at);
        let target = clock - Micros::from_ms(100);
        let known = || seen.received_by(VIEWER).filter(|s| s.at <= frame.at);
        let before = known().filter(|s| s.server_time <= target).max_by_key(|s| s.server_time);
        let after = known().filter(|s| s.server_time > target).min_by_key(|s| s.server_time);
        let (Some(before), Some(after), Some(drawn)) = (before, after, frame.drawn(MOVER)) else { continue };
        let (Some(a), Some(b)) = (body_of(&before.bodies, MOVER), body_of(&after.bodies, MOVER)) else { continue };
        let share = (target - before.server_time).0 as f32 / (after.server_time - before.server_time).0 as f32;
        origin.push(f64::from(drawn.body.origin.distance(a.origin.lerp(b.origin, share))));
        let yaw = a.viewangles.y + (b.viewangles.y - a.viewangles.y) * share;
        angle.push(f64::from((drawn.body.viewangles.y - yaw).abs()));
    }
    vec![
        ("frames", count(origin.len())),
        ("distance from the line between updates, max", greatest(&origin)),
        ("difference from the angle between updates, max", greatest(&angle)),
    ]
}

fn interpolation_in_the_past([near, far]: [&SessionWatch; 2]) -> NamedFigures {
    vec![("delay at 20 ms of latency", behind_ms(near)), ("delay at 200 ms of latency", behind_ms(far))]
}

fn lost_update_100_ms([held, carried]: [&SessionWatch; 2]) -> NamedFigures {
    vec![
        ("updates lost", lost_updates(held)),
        ("hold: time at rest", longest_rest_ms(held)),
        ("hold: jump after the rest", greatest(steps(held))),
        ("extrapolate: warp at the next update", greatest(steps(carried))),
    ]
}

fn lost_update_200_ms(seen: &SessionWatch) -> NamedFigures {
    let steps = steps(seen);
    let others =
        seen.inspected(VIEWER).filter_map(|frame| frame.drawn(MOVER)).filter(|p| p.how != PlacementKind::Interpolated);
    vec![
        ("updates lost", lost_updates(seen)),
        ("frames not interpolated", count(others.count())),
        ("largest step between frames", greatest(&steps)),
        ("delay behind the server", behind_ms(seen)),
    ]
}

fn bouncing_ball([slow, fast, chasing, same_history, slow_history, history]: [&SessionWatch; 6]) -> NamedFigures {
    let resting = |seen: &SessionWatch| {
        let steps = steps(seen);
        let rests = steps.iter().filter(|step| **step < REST_UNITS).count();
        share(rests, steps.len())
    };
    vec![
        ("bounces", count(lowest_drawn(slow).len())),
        ("two-point, 10/s: lowest point above the ground", median(lowest_drawn(slow))),
        ("two-point, 50/s: frames at rest", resting(fast)),
        ("from the last render position, 20/s: lowest point above the ground", median(lowest_drawn(chasing))),
        ("history, 20/s: lowest point above the ground", median(lowest_drawn(same_history))),
        ("history, 10/s: lowest point above the ground", median(lowest_drawn(slow_history))),
        ("history, 50/s: lowest point above the ground", median(lowest_drawn(history))),
        ("history, 50/s: frames at rest", resting(history)),
    ]
}

fn teleport_flag(seen: &SessionWatch) -> NamedFigures {
    let steps = steps(seen);
    // No player is ever between the teleporter and its destination.
    let between = seen.inspected(VIEWER).filter_map(|frame| frame.drawn(MOVER)).filter(|placed| {
        let x = placed.body.origin.x;
        x > -8.0 && x < 88.0
    });
    let there = seen.ticks.iter().find(|tick| body_of(&tick.bodies, MOVER).is_some_and(|b| b.teleports > 0));
    let moved = there.and_then(|tick| body_of(&tick.bodies, MOVER)).map(|body| f64::from(body.origin.x));
    vec![
        ("distance of the teleport", moved),
        ("frames drawn between the ends", count(between.count())),
        ("largest step between frames", greatest(&steps)),
    ]
}

fn teleport_distance([far, near]: [&SessionWatch; 2]) -> NamedFigures {
    let moved_at_once = |seen: &SessionWatch| {
        let drawn: Vec<PlacementKind> = seen.inspected(VIEWER).filter_map(|f| Some(f.drawn(MOVER)?.how)).collect();
        let at_once = drawn.iter().filter(|how| **how == PlacementKind::Teleported).count();
        share(at_once, drawn.len())
    };
    vec![
        ("190 units between updates: moved at once", moved_at_once(far)),
        ("largest step between frames", greatest(steps(far))),
        ("50 units between updates: moved at once", moved_at_once(near)),
    ]
}

/// Returns, for each frame, the distance between where the mover is drawn and where the last update has it.
fn ahead_of_last(seen: &SessionWatch) -> Vec<f64> {
    let ahead = |frame: &ObservedFrame| {
        let last = seen.newest_body(VIEWER, frame.at, MOVER)?;
        Some(f64::from(frame.drawn(MOVER)?.body.origin.distance(last.origin)))
    };
    seen.inspected(VIEWER).filter_map(ahead).collect()
}

/// Returns the distance between where the mover is drawn and where the server has it at that time.
fn error_at_present(seen: &SessionWatch, frame: &ObservedFrame) -> Option<f64> {
    Some(f64::from(frame.drawn(MOVER)?.body.origin.distance(seen.truth(MOVER, frame.at)?)))
}

/// Returns the distance between where the mover is drawn and where it was at the drawn time. For an extrapolated mover,
/// this is the present.
fn error_of_picture(seen: &SessionWatch, frame: &ObservedFrame) -> Option<f64> {
    let drawn = frame.drawn(MOVER)?;
    let of = if drawn.how == PlacementKind::Extrapolated { frame.at } else { frame.drawn_at };
    Some(f64::from(drawn.body.origin.distance(seen.truth(MOVER, of)?)))
}

/// Returns, for each frame, the distance between the drawn origins of this frame and the previous one.
pub(super) fn steps(seen: &SessionWatch) -> Vec<f64> {
    let places: Vec<_> = seen.inspected(VIEWER).filter_map(|frame| Some(frame.drawn(MOVER)?.body.origin)).collect();
    places.windows(2).map(|pair| f64::from(pair[0].distance(pair[1]))).collect()
}

/// Returns the longest time for which the mover is drawn in one place.
pub(super) fn longest_rest_ms(seen: &SessionWatch) -> Option<f64> {
    let frames: Vec<(Micros, glam::Vec3)> =
        seen.inspected(VIEWER).filter_map(|frame| Some((frame.at, frame.drawn(MOVER)?.body.origin))).collect();
    let rests = |from: usize| {
        let (start, place) = frames[from];
        let end = frames[from..].iter().take_while(|(_, p)| f64::from(p.distance(place)) < REST_UNITS).last();
        end.map(|(at, _)| (*at - start).as_ms_f64())
    };
    greatest((0..frames.len()).filter_map(rests))
}

/// Returns the median age of the drawn position, computed from the distance covered since then.
fn behind_ms(seen: &SessionWatch) -> Option<f64> {
    let behind = |frame: &ObservedFrame| {
        let drawn = &frame.drawn(MOVER)?.body;
        let way = f64::from(drawn.origin.distance(seen.truth(MOVER, frame.at)?));
        Some(1000.0 * way / f64::from(drawn.velocity.length()))
    };
    median(seen.inspected(VIEWER).filter_map(behind))
}

fn updates_per_s(seen: &SessionWatch) -> Option<f64> {
    Some(seen.per_s(seen.received_by(VIEWER).filter(|s| seen.inspects(s.at)).count()))
}

/// Returns the number of snapshots to the viewer that were lost although a later one arrived.
fn lost_updates(seen: &SessionWatch) -> Option<f64> {
    let newest = seen.received_by(VIEWER).map(|s| s.seq.0).max()?;
    Some(f64::from(newest) - seen.received_by(VIEWER).count() as f64)
}

/// Returns the lowest drawn height of each bounce, in units above the standing height.
fn lowest_drawn(seen: &SessionWatch) -> Vec<f64> {
    let ground = seen.ticks.iter().filter_map(|tick| body_of(&tick.bodies, MOVER)).map(|b| b.origin.z);
    let ground = ground.skip(200).fold(f32::INFINITY, f32::min);
    let heights: Vec<f32> =
        seen.inspected(VIEWER).filter_map(|f| Some(f.drawn(MOVER)?.body.origin.z - ground)).collect();
    let mut lows = Vec::new();
    let mut low = f32::INFINITY;
    for height in heights {
        // Above this height, one bounce ends and the next begins.
        if height > 22.0 {
            if low < 22.0 {
                lows.push(f64::from(low));
            }
            low = f32::INFINITY;
        } else {
            low = low.min(height);
        }
    }
    lows
}
