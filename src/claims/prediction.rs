//! Dumb clients, and clients that predict.

use super::stage::Stage;
use super::watch::Seen;
use super::{Claim, ClaimError, Figures, Theme};
use crate::units::Micros;

macro_rules! claim {
    ($name:literal, $measure:expr) => {
        Claim {
            name: $name,
            theme: Theme::Prediction,
            text: include_str!(concat!("../../fixtures/claims/", $name, ".toml")),
            measure: $measure,
        }
    };
}

pub(super) const CLAIMS: &[Claim] = &[
    claim!("dumb-client", dumb_client),
    claim!("prediction-at-once", prediction_at_once),
    claim!("five-in-flight", five_in_flight),
];

fn dumb_client(stage: &Stage) -> Result<Figures, ClaimError> {
    let seen = stage.play()?;
    Ok(vec![("key to movement", key_to_movement(&seen, 0).map(Micros::as_ms_f64))])
}

fn prediction_at_once(stage: &Stage) -> Result<Figures, ClaimError> {
    let seen = stage.play()?;
    let checked: Vec<f32> = seen.received_by(0).filter_map(|s| Some(s.comparison?.error_units)).collect();
    let wrong = checked.iter().filter(|error| **error > 0.0).count();
    Ok(vec![
        ("key to movement", key_to_movement(&seen, 0).map(Micros::as_ms_f64)),
        ("predictions held against the server", Some(checked.len() as f64)),
        ("wrong predictions", Some(wrong as f64)),
    ])
}

fn five_in_flight(stage: &Stage) -> Result<Figures, ClaimError> {
    let seen = stage.play()?;
    let from = Micros::from_s(1);
    let mut acked = 0;
    let mut in_flight: Vec<f64> = Vec::new();
    let mut snapshots = seen.received_by(0).peekable();
    for frame in seen.frames_of(0) {
        while let Some(snapshot) = snapshots.next_if(|s| s.at <= frame.at) {
            acked = snapshot.ack.0;
        }
        if frame.at >= from {
            in_flight.push(f64::from(frame.command.seq.0 - acked));
        }
    }
    let corrected = seen.received_by(0).find(|s| s.at >= from && s.correction.is_some());
    let again = corrected.and_then(|s| seen.frames_of(0).find(|frame| frame.at >= s.at)).map(|f| f64::from(f.ran));
    Ok(vec![
        ("usercmds in flight, median", median(&in_flight)),
        ("usercmds in flight, most", in_flight.iter().copied().reduce(f64::max)),
        ("run to predict after a correction", again),
    ])
}

/// From the first usercmd that asks to move to the first frame in which the own body is drawn elsewhere than before.
fn key_to_movement(seen: &Seen, player: u16) -> Option<Micros> {
    let pressed = seen.frames_of(player).find(|f| f.command.input.forwardmove != 0.0 && f.own_drawn.is_some())?;
    let before = seen.frames_of(player).take_while(|f| f.at < pressed.at).last()?.own_drawn?;
    let moved = |drawn: glam::Vec3| (drawn - before).truncate().length() > 0.01;
    let shown = seen.frames_of(player).find(|f| f.at >= pressed.at && f.own_drawn.is_some_and(moved))?;
    Some(shown.at - pressed.at)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    crate::stats::percentile(&sorted, 50.0)
}
