//! How well each way of drawing the others does on a recorded session.
//!
//! Every recorded state of another player is left out once, and drawn from the rest: the distance to where it was is the
//! error. What is drawn "at the present" (as it is, or extrapolated) knows only earlier snapshots; what is drawn `lerp_ms`
//! behind knows those that had come by then. States that a teleport brought about are left out altogether.

use serde::Serialize;

use crate::game::{BadCells, Body, Game, OtherFields, StateRows};
use crate::history::{Limits, between, beyond, is_teleport};
use crate::record::Session;
use crate::settings::Settings;
use crate::stats::Tail;
use crate::units::{EntityId, Micros, PlayerId};

/// How far from the truth one way of drawing is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeScore {
    /// The `interpolation.mode`.
    pub mode: &'static str,
    /// How many states were left out and drawn.
    pub samples: u64,
    /// The distances, in units; `None` when there was nothing to draw.
    pub error_units: Option<Tail>,
}

/// States that are none of this game's.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// Their classes have other fields.
    #[error(transparent)]
    OtherFields(#[from] OtherFields),
    /// One holds a value that is none.
    #[error(transparent)]
    BadCells(#[from] BadCells),
}

/// Scores every mode on all that the players of a session received.
///
/// # Errors
/// When a recorded state is not one of this game.
pub fn score<G: Game>(session: &Session, rules: &G::Rules, settings: &Settings) -> Result<Vec<ModeScore>, ScoreError> {
    let rows = StateRows::new::<G>(&session.header.classes)?;
    let mut errors: [Vec<f32>; 4] = Default::default();
    for index in 0..session.players.len() {
        for samples in tracks::<G>(session, &rows, PlayerId(index as u16))? {
            score_track::<G>(rules, settings, &samples, &mut errors);
        }
    }
    let modes = ["off", "extrapolate", "two-point", "history"];
    let scored = modes.into_iter().zip(errors).map(|(mode, errors)| ModeScore {
        mode,
        samples: errors.len() as u64,
        error_units: Tail::of(errors),
    });
    Ok(scored.collect())
}

/// A received state: when the server says it was, and the body.
type Sample<B> = (Micros, B);

/// Each other player's states as one player received them, in runs without a gap in which it was not seen.
fn tracks<G: Game>(
    session: &Session,
    rows: &StateRows,
    player: PlayerId,
) -> Result<Vec<Vec<Sample<G::Body>>>, BadCells> {
    let records = &session.players[usize::from(player.0)];
    let mut received: Vec<u32> = records.received.iter().map(|a| a.number).collect();
    received.sort_unstable();
    received.dedup();
    let mut open: Vec<(EntityId, Vec<Sample<G::Body>>)> = Vec::new();
    let mut done = Vec::new();
    for snapshot in records.snapshots.iter().filter(|s| received.binary_search(&s.seq.0).is_ok()) {
        let (still, gone) = open.into_iter().partition(|(id, _)| snapshot.entities.binary_search(id).is_ok());
        open = still;
        done.extend(gone.into_iter().map(|(_, track): (EntityId, _)| track));
        for entity in
            snapshot.entities.iter().filter(|e| **e != player.entity() && usize::from(e.0) < session.players.len())
        {
            let Some((class, cells)) = session.states.row(snapshot.tick, player, *entity) else { continue };
            let Some(body) = rows.read::<G>(class, cells)? else { continue };
            let sample = (snapshot.server_time, body);
            match open.iter_mut().find(|(id, _)| id == entity) {
                Some((_, track)) => track.push(sample),
                None => open.push((*entity, vec![sample])),
            }
        }
    }
    done.extend(open.into_iter().map(|(_, track)| track));
    Ok(done)
}

fn score_track<G: Game>(
    rules: &G::Rules,
    settings: &Settings,
    samples: &[Sample<G::Body>],
    errors: &mut [Vec<f32>; 4],
) {
    let limits = Limits::of(settings);
    let present = Limits { extrapolate_max: Some(Micros::from_ms(settings.extrapolation_max_ms)), ..limits };
    let lerp = Micros::from_ms(settings.interpolation.lerp_ms);
    for k in 1..samples.len() {
        let (at, truth) = &samples[k];
        let (last_at, last) = &samples[k - 1];
        if is_teleport(last, truth, &limits) || at <= last_at {
            continue;
        }
        let by_then = k + 1 + samples[k + 1..].iter().take_while(|(t, _)| *t <= *at + lerp).count();
        let after = &samples[k + 1..by_then];
        // Without a later state neither way of interpolating has anything to draw towards.
        let history = match after.first() {
            Some((t, next)) => between::<G>(Some((*last_at, last)), (*t, next), *at, &limits),
            None => beyond::<G>(rules, *last_at, last, *at, &limits),
        };
        let two_point = match after {
            [] => beyond::<G>(rules, *last_at, last, *at, &limits),
            [(t, next)] => between::<G>(Some((*last_at, last)), (*t, next), *at, &limits),
            // Only the last two are remembered, and both are later: the earlier of them is the nearest.
            [.., (t0, before), (t, next)] => between::<G>(Some((*t0, before)), (*t, next), *at, &limits),
        };
        let extrapolated = beyond::<G>(rules, *last_at, last, *at, &present);
        let drawn = [last, &extrapolated.body, &two_point.body, &history.body];
        for (errors, body) in errors.iter_mut().zip(drawn) {
            errors.push(body.origin().distance(truth.origin()));
        }
    }
}
