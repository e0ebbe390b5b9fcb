//! Updates and clocks: rates, a full line, and the client's clock. Player 0 watches, player 1 runs.

use super::display::{longest_rest_ms, steps};
use super::experiment::Experiment;
use super::watch::SessionWatch;
use super::{Claim, ClaimError, NamedFigures, count, greatest, median};
use hitreg_log::units::Micros;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Server, "update-rate", update_rate),
    claim!(Server, "own-rates", own_rates),
    claim!(Server, "choke-spacing", choke_spacing),
    claim!(Server, "choke-and-interpolation", choke_and_interpolation),
    claim!(Server, "clock-adopted", clock_adopted),
    claim!(Server, "clock-smoothed", clock_smoothed),
];

fn update_rate(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let (default, fifty) = (experiment.play_variant("default")?, experiment.play_variant("fifty")?);
    let per_s = |seen: &SessionWatch| {
        let (from, to) = seen.inspect;
        let sent = seen.sent_to(0).filter(|at| *at >= from && *at < to).count();
        Some(sent as f64 / (to - from).as_s_f64())
    };
    let least = |seen: &SessionWatch| spacing_ms(seen).into_iter().reduce(f64::min);
    Ok(vec![
        ("updates/s by default", per_s(&default)),
        ("spacing by default, min", least(&default)),
        ("spacing by default, max", greatest(&spacing_ms(&default))),
        ("updates/s when asked for 50", per_s(&fifty)),
        ("spacing when asked for 50, min", least(&fifty)),
        ("spacing when asked for 50, max", greatest(&spacing_ms(&fifty))),
    ])
}

fn own_rates(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let seen = experiment.play()?;
    let (from, to) = seen.inspect;
    let per_s = |number: usize| Some(number as f64 / (to - from).as_s_f64());
    let updates = |player| per_s(seen.sent_to(player).filter(|at| *at >= from && *at < to).count());
    let frames = |player| per_s(seen.inspected(player).count());
    let lerp = |player| seen.frames_of(player).last().map(|frame| f64::from(frame.command.lerp_msec));
    Ok(vec![
        ("updates/s, player who asks for 50", updates(0)),
        ("updates/s, player who asks for 10", updates(1)),
        ("updates/s, player who does not ask", updates(2)),
        ("frames/s, player with 100", frames(0)),
        ("frames/s, player with 25", frames(1)),
        ("interpolation, first player", lerp(0)),
        ("interpolation, second player", lerp(1)),
    ])
}

fn choke_spacing(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let (free, choked, uneven) =
        (experiment.play_variant("free")?, experiment.play_variant("choked")?, experiment.play_variant("uneven")?);
    let uneven = spacing_ms(&uneven);
    Ok(vec![
        ("spacing, line not full", median(&spacing_ms(&free))),
        ("spacing, choked", median(&spacing_ms(&choked))),
        ("spacing, choked, others fire, min", uneven.iter().copied().reduce(f64::min)),
        ("spacing, choked, others fire, max", greatest(&uneven)),
    ])
}

fn choke_and_interpolation(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let even = experiment.play_variant("two-point-even")?;
    let (two_point, history) =
        (experiment.play_variant("two-point-choked")?, experiment.play_variant("history-choked")?);
    Ok(vec![
        ("two-point, even updates: longest rest", longest_rest_ms(&even)),
        ("two-point, choked: longest rest", longest_rest_ms(&two_point)),
        ("two-point, choked: largest step", greatest(&steps(&two_point))),
        ("history, choked: longest rest", longest_rest_ms(&history)),
        ("history, choked: largest step", greatest(&steps(&history))),
    ])
}

fn clock_adopted(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let (steady, rough) = (experiment.play_variant("steady")?, experiment.play_variant("rough")?);
    let behind: Vec<f64> =
        steady.inspected(0).map(|frame| (frame.at - frame.command.server_time).as_ms_f64()).collect();
    let off = |seen: &SessionWatch| {
        let off = |frame: &super::watch::ObservedFrame| {
            let last = seen.received_by(0).filter(|s| s.at <= frame.at).max_by_key(|s| s.seq)?;
            let adopted = last.server_time + (frame.at - last.at);
            Some((frame.command.server_time - adopted).as_ms_f64().abs())
        };
        greatest(&seen.inspected(0).filter_map(off).collect::<Vec<_>>())
    };
    Ok(vec![
        ("updates", count(rough.received_by(0).count())),
        ("delay behind the server's clock at 80 ms, median", median(&behind)),
        ("distance from the last update's time, jitter, max", off(&rough)),
    ])
}

fn clock_smoothed(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let (steady, rough) = (experiment.play_variant("steady")?, experiment.play_variant("rough")?);
    let behind = |seen: &SessionWatch| -> Vec<f64> {
        seen.inspected(0).map(|frame| (frame.at - frame.command.server_time).as_ms_f64()).collect()
    };
    // The change of the clock between frames, minus the time passed.
    let jumps: Vec<f64> = behind(&rough).windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    Ok(vec![
        ("delay behind the server's clock at 80 ms, median", median(&behind(&steady))),
        ("delay under jitter, min", behind(&rough).into_iter().reduce(f64::min)),
        ("delay under jitter, max", greatest(&behind(&rough))),
        ("clock jump under jitter, max", greatest(&jumps)),
    ])
}

/// Returns the times between snapshots for player 0, in ms.
fn spacing_ms(seen: &SessionWatch) -> Vec<f64> {
    let (from, to) = seen.inspect;
    let sent: Vec<Micros> = seen.sent_to(0).filter(|at| *at >= from && *at < to).collect();
    sent.windows(2).map(|pair| (pair[1] - pair[0]).as_ms_f64()).collect()
}
