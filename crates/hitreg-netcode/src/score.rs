//! How well each way of drawing the others does on a recorded session.
//!
//! Every recorded state of another player is left out once, and drawn from the rest: the distance to where it was is the
//! error. What is drawn "at the present" (as it is, or extrapolated) knows only earlier snapshots; what is drawn `lerp_ms`
//! behind knows those that had come by then. States that a teleport brought about are left out altogether.

mod as_read;
mod track;

use serde::Serialize;

pub use as_read::score_as_read;

use crate::game::{BadCells, Game, OtherFields, StateRows};
use crate::settings::Settings;
use hitreg_log::record::{KnowsStates, Session, SnapshotRecord};
use hitreg_log::stats::{Counted, Tail};
use hitreg_log::units::{EntityId, PlayerId};
use track::{Track, Ways};

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

/// The others as players received them so far.
struct Scoring<'a, G: Game> {
    rows: StateRows,
    ways: Ways<'a, G>,
    /// Of each player each other one that it sees, since it last came into sight.
    tracks: Vec<Vec<(EntityId, Track<G::Body>)>>,
    scores: Scores,
}

/// How far each way of drawing was from the truth so far.
#[derive(Default)]
struct Scores {
    samples: u64,
    errors_units: [Counted; MODES.len()],
}

const MODES: [&str; 4] = ["off", "extrapolate", "two-point", "history"];

impl<'a, G: Game> Scoring<'a, G> {
    fn new(rows: StateRows, (rules, settings): (&'a G::Rules, &Settings), players: usize) -> Self {
        let tracks = (0..players).map(|_| Vec::new()).collect();
        Scoring { rows, ways: Ways::new(rules, settings), tracks, scores: Scores::default() }
    }

    /// The next snapshot that a player received, in the order of their numbers.
    fn received(
        &mut self,
        player: PlayerId,
        record: &SnapshotRecord,
        states: &impl KnowsStates,
    ) -> Result<(), BadCells> {
        let players = self.tracks.len();
        let Some(tracks) = self.tracks.get_mut(usize::from(player.0)) else { return Ok(()) };
        for (_, gone) in tracks.extract_if(.., |(id, _)| record.entities.binary_search(id).is_err()) {
            gone.end(&self.ways, &mut self.scores);
        }
        let is_other = |entity: &&EntityId| **entity != player.entity() && usize::from(entity.0) < players;
        for entity in record.entities.iter().filter(is_other) {
            let Some((class, cells)) = states.sent(record.tick, player, *entity).next() else { continue };
            let Some(body) = self.rows.read::<G>(class, cells)? else { continue };
            let place = tracks.iter().position(|(id, _)| id == entity).unwrap_or_else(|| {
                tracks.push((*entity, Track::default()));
                tracks.len() - 1
            });
            tracks[place].1.add((record.server_time, body), &self.ways, &mut self.scores);
        }
        Ok(())
    }

    fn end(mut self) -> Vec<ModeScore> {
        for (_, track) in self.tracks.into_iter().flatten() {
            track.end(&self.ways, &mut self.scores);
        }
        let Scores { samples, errors_units } = self.scores;
        let of_mode = |(mode, errors): (_, Counted)| ModeScore { mode, samples, error_units: errors.tail() };
        MODES.into_iter().zip(errors_units).map(of_mode).collect()
    }
}
