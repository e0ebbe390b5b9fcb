//! Scores each way of drawing the others on a recorded session.
//!
//! Every recorded state of another player is left out once and drawn from the remaining states. The error is the
//! distance to the recorded origin. Modes that draw the present (unchanged or extrapolated) use only earlier snapshots.
//! Modes that draw `lerp_ms` behind also use later snapshots that had arrived by the time of drawing. States after a
//! teleport are skipped.

mod streamed;
mod track;

use serde::Serialize;

pub use streamed::score_streamed;

use crate::game::{BadCells, Game, OtherFields, StateRows};
use crate::settings::Settings;
use hitreg_log::record::{Session, SnapshotRecord, StateSource};
use hitreg_log::stats::{CountedValues, Tail};
use hitreg_log::units::{EntityId, PlayerId};
use track::{DrawingModes, SampleTrack};

/// The error of one way of drawing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeScore {
    /// The `interpolation.mode`.
    pub mode: &'static str,
    /// The number of states that were left out and drawn.
    pub samples: u64,
    /// The distances in units; `None` when nothing was drawn.
    pub error_units: Option<Tail>,
}

/// The recorded states do not belong to this game.
#[derive(Debug, thiserror::Error)]
pub enum DrawingScoreError {
    /// Their classes have other fields.
    #[error(transparent)]
    OtherFields(#[from] OtherFields),
    /// A state has an invalid value.
    #[error(transparent)]
    BadCells(#[from] BadCells),
}

/// Scores every mode on all snapshots that the session's players received.
///
/// # Errors
/// When a recorded state does not belong to this game.
pub fn score<G: Game>(
    session: &Session,
    rules: &G::Rules,
    settings: &Settings,
) -> Result<Vec<ModeScore>, DrawingScoreError> {
    let rows = StateRows::new::<G>(&session.header.classes)?;
    let mut scoring = Scoring::<G>::new(rows, (rules, settings), session.players.len());
    for (player, records) in (0..).map(PlayerId).zip(&session.players) {
        let mut received: Vec<u32> = records.received.iter().map(|arrival| arrival.number).collect();
        received.sort_unstable();
        received.dedup();
        for record in records.snapshots.iter().filter(|record| received.binary_search(&record.seq.0).is_ok()) {
            scoring.received(player, record, &session.states)?;
        }
    }
    Ok(scoring.end())
}

/// The other players' states as each player has received them so far.
struct Scoring<'a, G: Game> {
    rows: StateRows,
    modes: DrawingModes<'a, G>,
    /// For each player, the other players in sight, each since it last came into sight.
    tracks: Vec<Vec<(EntityId, SampleTrack<G::Body>)>>,
    scores: Scores,
}

/// The errors of each way of drawing so far.
#[derive(Default)]
struct Scores {
    samples: u64,
    errors_units: [CountedValues; MODES.len()],
}

const MODES: [&str; 4] = ["off", "extrapolate", "two-point", "history"];

impl<'a, G: Game> Scoring<'a, G> {
    fn new(rows: StateRows, (rules, settings): (&'a G::Rules, &Settings), players: usize) -> Self {
        let tracks = (0..players).map(|_| Vec::new()).collect();
        Scoring { rows, modes: DrawingModes::new(rules, settings), tracks, scores: Scores::default() }
    }

    /// Handles the next snapshot that a player received, in order of number.
    fn received(
        &mut self,
        player: PlayerId,
        record: &SnapshotRecord,
        states: &impl StateSource,
    ) -> Result<(), BadCells> {
        let players = self.tracks.len();
        let Some(tracks) = self.tracks.get_mut(usize::from(player.0)) else { return Ok(()) };
        for (_, gone) in tracks.extract_if(.., |(id, _)| record.entities.binary_search(id).is_err()) {
            gone.end(&self.modes, &mut self.scores);
        }
        let is_other = |entity: &&EntityId| **entity != player.entity() && usize::from(entity.0) < players;
        for entity in record.entities.iter().filter(is_other) {
            let Some((class, cells)) = states.sent(record.tick, player, *entity).next() else { continue };
            let Some(body) = self.rows.read::<G>(class, cells)? else { continue };
            let place = tracks.iter().position(|(id, _)| id == entity).unwrap_or_else(|| {
                tracks.push((*entity, SampleTrack::default()));
                tracks.len() - 1
            });
            tracks[place].1.add((record.server_time, body), &self.modes, &mut self.scores);
        }
        Ok(())
    }

    fn end(mut self) -> Vec<ModeScore> {
        for (_, track) in self.tracks.into_iter().flatten() {
            track.end(&self.modes, &mut self.scores);
        }
        let Scores { samples, errors_units } = self.scores;
        let of_mode = |(mode, errors): (_, CountedValues)| ModeScore { mode, samples, error_units: errors.tail() };
        MODES.into_iter().zip(errors_units).map(of_mode).collect()
    }
}
