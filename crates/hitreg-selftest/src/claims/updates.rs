//! Updates and clocks: rates, a full line, and the client's clock. Player 0 watches, player 1 runs.

use super::display::{longest_rest_ms, steps};
use super::watch::SessionWatch;
use super::{Claim, NamedFigures, count, greatest, least, median};
use hitreg_log::units::Micros;

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
        let off = |frame: &super::watch::ObservedFrame| {
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
    let jumps: Vec<f64> = behind_ms(rough).windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
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
    let sent: Vec<Micros> = seen.sent_to(0).map(|sent| sent.at).filter(|at| seen.inspects(*at)).collect();
    sent.windows(2).map(|pair| (pair[1] - pair[0]).as_ms_f64()).collect()
}
