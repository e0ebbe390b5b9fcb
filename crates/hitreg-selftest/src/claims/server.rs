//! Updates and clocks: rates, a full line, the client's clock, and the zone of knowledge (visible and near entities, and
//! the most important first when a packet is full). Player 0 watches, player 1 runs.

use crate::claims::display::{longest_rest_ms, steps};
use crate::claims::experiment::Experiment;
use crate::claims::watch::{ObservedFrame, ObservedSnapshot, ObservedTick, SessionWatch, body_of};
use crate::claims::{Claim, ClaimError, NamedFigures, changes, count, greatest, intervals_ms, least, median};
use hitreg_arena::{Arena, ArenaBody, ArenaRules};
use hitreg_log::units::Micros;
use hitreg_netcode::game::Judge as _;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Server, "update-rate", of ["default", "fifty"] update_rate),
    claim!(Server, "own-rates", played own_rates),
    claim!(Server, "choke-spacing", of ["free", "choked", "uneven"] choke_spacing),
    claim!(
        Server,
        "choke-and-interpolation",
        of ["two-point-even", "two-point-choked", "history-choked"] choke_and_interpolation
    ),
    claim!(Server, "clock-adopted", of ["steady", "rough"] clock_adopted),
    claim!(Server, "clock-smoothed", of ["steady", "rough"] clock_smoothed),
    claim!(Server, "visible-objects", visible_objects),
    claim!(Server, "full-packets", played full_packets),
];

fn update_rate([default, fifty]: [&SessionWatch; 2]) -> NamedFigures {
    vec![
        ("updates/s by default", updates_per_s(default, 0)),
        ("spacing by default, min", least(spacing_ms(default))),
        ("spacing by default, max", greatest(spacing_ms(default))),
        ("updates/s when asked for 50", updates_per_s(fifty, 0)),
        ("spacing when asked for 50, min", least(spacing_ms(fifty))),
        ("spacing when asked for 50, max", greatest(spacing_ms(fifty))),
    ]
}

fn own_rates(seen: &SessionWatch) -> NamedFigures {
    let updates = |player| updates_per_s(seen, player);
    let frames = |player| Some(seen.per_s(seen.inspected(player).count()));
    let lerp = |player| seen.frames_of(player).last().map(|frame| f64::from(frame.command.lerp_msec));
    vec![
        ("updates/s, player who asks for 50", updates(0)),
        ("updates/s, player who asks for 10", updates(1)),
        ("updates/s, player who does not ask", updates(2)),
        ("frames/s, player with 100", frames(0)),
        ("frames/s, player with 25", frames(1)),
        ("interpolation, first player", lerp(0)),
        ("interpolation, second player", lerp(1)),
    ]
}

fn choke_spacing([free, choked, uneven]: [&SessionWatch; 3]) -> NamedFigures {
    let uneven = spacing_ms(uneven);
    vec![
        ("spacing, line not full", median(spacing_ms(free))),
        ("spacing, choked", median(spacing_ms(choked))),
        ("spacing, choked, others fire, min", least(&uneven)),
        ("spacing, choked, others fire, max", greatest(&uneven)),
    ]
}

fn choke_and_interpolation([even, two_point, history]: [&SessionWatch; 3]) -> NamedFigures {
    vec![
        ("two-point, even updates: longest rest", longest_rest_ms(even)),
        ("two-point, choked: longest rest", longest_rest_ms(two_point)),
        ("two-point, choked: largest step", greatest(steps(two_point))),
        ("history, choked: longest rest", longest_rest_ms(history)),
        ("history, choked: largest step", greatest(steps(history))),
    ]
}

fn clock_adopted([steady, rough]: [&SessionWatch; 2]) -> NamedFigures {
    let off = |seen: &SessionWatch| {
        let off = |frame: &ObservedFrame| {
            let last = seen.newest_for(0, frame.at)?;
            let adopted = last.server_time + (frame.at - last.at);
            Some((frame.command.server_time - adopted).as_ms_f64().abs())
        };
        greatest(seen.inspected(0).filter_map(off))
    };
    vec![
        ("updates", count(rough.received_by(0).count())),
        ("delay behind the server's clock at 80 ms, median", median(behind_ms(steady))),
        ("distance from the last update's time, jitter, max", off(rough)),
    ]
}

fn clock_smoothed([steady, rough]: [&SessionWatch; 2]) -> NamedFigures {
    // The change of the clock between frames, minus the time passed.
    let jumps = changes(&behind_ms(rough));
    vec![
        ("delay behind the server's clock at 80 ms, median", median(behind_ms(steady))),
        ("delay under jitter, min", least(behind_ms(rough))),
        ("delay under jitter, max", greatest(behind_ms(rough))),
        ("clock jump under jitter, max", greatest(&jumps)),
    ]
}

fn updates_per_s(seen: &SessionWatch, player: u16) -> Option<f64> {
    Some(seen.per_s(seen.sent_to(player).filter(|sent| seen.inspects(sent.at)).count()))
}

/// How far a client's clock is behind the server's, by frame.
fn behind_ms(seen: &SessionWatch) -> Vec<f64> {
    seen.inspected(0).map(|frame| (frame.at - frame.command.server_time).as_ms_f64()).collect()
}

/// Returns the times between snapshots for player 0, in ms.
fn spacing_ms(seen: &SessionWatch) -> Vec<f64> {
    intervals_ms(seen.sent_to(0).map(|sent| sent.at).filter(|at| seen.inspects(*at)))
}

fn visible_objects(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let hidden = experiment.variant("wall")?;
    let seen = experiment.play_variant("wall")?;
    let sent: Vec<ZoneUpdate> =
        told_of(&seen).filter_map(|snapshot| ZoneUpdate::new(&hidden.rules, &seen, snapshot)).collect();
    let lost = sent.iter().filter(|sent| sent.is_in_sight && !sent.is_sent).count();
    let after: Vec<f64> = sent.iter().filter(|t| t.is_sent).filter_map(|t| Some(t.hidden_for?.as_ms_f64())).collect();
    let back = sent.windows(2).filter(|pair| !pair[0].is_sent && pair[1].is_sent).count();
    let drawn = seen
        .inspected(0)
        .filter(|frame| seen.newest_body(0, frame.at, 1).is_none() && frame.drawn.iter().any(|(id, _)| id.0 == 1));
    let far = experiment.play_variant("distance")?;
    let away: Vec<(bool, f64)> = told_of(&far)
        .filter_map(|snapshot| {
            let way = far.truth(1, snapshot.server_time)? - far.truth(0, snapshot.server_time)?;
            Some((body_of(&snapshot.bodies, 1).is_some(), f64::from(way.length())))
        })
        .collect();
    let of = |is_sent: bool| away.iter().filter(move |(sent, _)| *sent == is_sent).map(|(_, units)| *units);
    Ok(vec![
        ("updates without the hidden player", count(sent.iter().filter(|sent| !sent.is_sent).count())),
        ("updates without the player while in sight", count(lost)),
        ("time in updates after going out of sight, max", greatest(&after)),
        ("returns into the updates", count(back)),
        ("frames with a player who is in no update", count(drawn.count())),
        ("farthest player in updates", greatest(of(true))),
        ("nearest player not in updates", least(of(false))),
    ])
}

/// Returns the updates to player 0 that were sent within the inspected time.
fn told_of(seen: &SessionWatch) -> impl Iterator<Item = &ObservedSnapshot> {
    seen.received_by(0).filter(|snapshot| seen.inspects(snapshot.server_time))
}

/// An update, and whether the watcher could see player 1 at that time.
struct ZoneUpdate {
    is_sent: bool,
    is_in_sight: bool,
    /// How long no part of player 1 had been in sight, if it was in sight before.
    hidden_for: Option<Micros>,
}

impl ZoneUpdate {
    fn new(rules: &ArenaRules, seen: &SessionWatch, snapshot: &ObservedSnapshot) -> Option<ZoneUpdate> {
        let in_sight = |tick: &&ObservedTick| {
            let eye = body_of(&tick.bodies, 0).map(ArenaBody::eye);
            let other = body_of(&tick.bodies, 1);
            eye.zip(other).is_some_and(|(eye, other)| Arena::sees(rules, eye, other) == Some(true))
        };
        let until = seen.ticks.partition_point(|tick| tick.at <= snapshot.server_time);
        let now = seen.ticks[..until].last()?;
        let last = seen.ticks[..until].iter().rev().find(in_sight)?;
        Some(ZoneUpdate {
            is_sent: body_of(&snapshot.bodies, 1).is_some(),
            is_in_sight: last.at == now.at,
            hidden_for: Some(now.at - last.at).filter(|time| *time > Micros::ZERO),
        })
    }
}

/// Players from 1 on stand at different distances from player 0, and move all the time.
fn full_packets(seen: &SessionWatch) -> NamedFigures {
    let players = usize::from(seen.players);
    let mut stale = vec![0usize; players];
    let mut in_a_row = vec![0usize; players];
    let mut longest = 0;
    let mut updates = 0;
    for snapshot in told_of(seen) {
        updates += 1;
        let Some(tick) = seen.tick_at(snapshot.server_time) else { continue };
        for player in 0..players {
            let (sent, truth) = (body_of(&snapshot.bodies, player as u16), body_of(&tick.bodies, player as u16));
            let is_stale = sent.map(|body| body.origin) != truth.map(|body| body.origin);
            in_a_row[player] = if is_stale { in_a_row[player] + 1 } else { 0 };
            stale[player] += usize::from(is_stale);
            longest = longest.max(in_a_row[player]);
        }
    }
    let share = |players: &[usize]| {
        let stale: usize = players.iter().map(|player| stale[*player]).sum();
        100.0 * stale as f64 / (players.len() * updates) as f64
    };
    let place_of = |player: usize| body_of(&seen.ticks.first()?.bodies, player as u16).map(|body| body.origin);
    let distance = |player: usize| place_of(0).zip(place_of(player)).map_or(0.0, |(from, to)| from.distance(to));
    let mut others: Vec<usize> = (1..players).collect();
    others.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)));
    let third = others.len() / 3;
    let [nearest, farthest] = [share(&others[..third]), share(&others[others.len() - third..])];
    vec![
        ("updates", count(updates)),
        ("of those, with an old state of the client's avatar", count(stale[0])),
        ("old states, farthest third", Some(farthest)),
        ("old states, farthest third minus nearest third", Some(farthest - nearest)),
        ("updates waited, max", count(longest)),
    ]
}
