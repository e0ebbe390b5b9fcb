//! Updates and clocks: how often, when the line is full, and what time it is. Player 0 looks, player 1 runs.

use super::display::{longest_rest_ms, steps};
use super::experiment::Experiment;
use super::watch::Seen;
use super::{Claim, ClaimError, Figures, count, greatest, median};
use crate::units::Micros;

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Server, "update-rate", update_rate),
    claim!(Server, "choke-spacing", choke_spacing),
    claim!(Server, "choke-and-interpolation", choke_and_interpolation),
    claim!(Server, "clock-adopted", clock_adopted),
];

fn update_rate(experiment: &Experiment) -> Result<Figures, ClaimError> {
    let per_s = |name: &str| -> Result<Option<f64>, ClaimError> {
        let seen = experiment.play_variant(name)?;
        Ok(median(&spacing_ms(&seen)).map(|ms| 1000.0 / ms))
    };
    Ok(vec![("updates/s by default", per_s("default")?), ("updates/s when asked for 50", per_s("fifty")?)])
}

fn choke_spacing(experiment: &Experiment) -> Result<Figures, ClaimError> {
    let (free, choked, uneven) =
        (experiment.play_variant("free")?, experiment.play_variant("choked")?, experiment.play_variant("uneven")?);
    let uneven = spacing_ms(&uneven);
    Ok(vec![
        ("spacing with room", median(&spacing_ms(&free))),
        ("spacing while choked", median(&spacing_ms(&choked))),
        ("spacing while choked and others fire, least", uneven.iter().copied().reduce(f64::min)),
        ("spacing while choked and others fire, most", greatest(&uneven)),
    ])
}

fn choke_and_interpolation(experiment: &Experiment) -> Result<Figures, ClaimError> {
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

fn clock_adopted(experiment: &Experiment) -> Result<Figures, ClaimError> {
    let (steady, rough) = (experiment.play_variant("steady")?, experiment.play_variant("rough")?);
    let behind: Vec<f64> =
        steady.inspected(0).map(|frame| (frame.at - frame.command.server_time).as_ms_f64()).collect();
    let off = |seen: &Seen| {
        let off = |frame: &super::watch::SeenFrame| {
            let last = seen.received_by(0).filter(|s| s.at <= frame.at).max_by_key(|s| s.seq)?;
            let adopted = last.server_time + (frame.at - last.at);
            Some((frame.command.server_time - adopted).as_ms_f64().abs())
        };
        greatest(&seen.inspected(0).filter_map(off).collect::<Vec<_>>())
    };
    Ok(vec![
        ("updates", count(rough.received_by(0).count())),
        ("behind the server's clock, 80 ms away, median", median(&behind)),
        ("off from the last update's time, under jitter, most", off(&rough)),
    ])
}

/// From one snapshot for player 0 to the next, in ms.
fn spacing_ms(seen: &Seen) -> Vec<f64> {
    let (from, to) = seen.inspect;
    let sent: Vec<Micros> = seen.sent_to(0).filter(|at| *at >= from && *at < to).collect();
    sent.windows(2).map(|pair| (pair[1] - pair[0]).as_ms_f64()).collect()
}
