//! Errors of operations on games.

use hitreg_log::units::{CommandSeq, PlayerId};
use hitreg_netcode::game::BadCells;
use hitreg_netcode::score;

/// The log belongs to a game that this build does not play.
#[derive(Debug, thiserror::Error)]
#[error(
    "the log is of the game `{log}`, and this build plays {build}. These work without a build: info, export, report, why. \
     These work with the game's build: verify, why and sweep with --build BUILD; diff, report, bisect and shrink with \
     --a BUILD --b BUILD; check BUILD LOG; BUILD replay LOG -o TRACE (docs/builds.md). Others need the game in Rust (docs/games.md)"
)]
pub struct UnknownGame {
    pub(super) log: String,
    pub(super) build: String,
}

/// The game has no bots.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` has no bots in this build, so it cannot record a session: bots exist for {able}")]
pub struct NoBots {
    pub(super) name: String,
    pub(super) able: String,
}

/// Why the interpolation modes could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// This build cannot read the rules in the log.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// A recorded body is invalid.
    #[error(transparent)]
    State(#[from] score::DrawingScoreError),
}

/// Why a usercmd could not be run again.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// This build cannot read the rules in the log.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// A body does not belong to this game.
    #[error(transparent)]
    State(#[from] BadCells),
    /// The entities do not include the player's own body.
    #[error("--body of player {0} is missing")]
    NoBody(PlayerId),
    /// The log does not contain the usercmd.
    #[error("the log has no usercmd {0} of player {1}")]
    NoUsercmd(CommandSeq, PlayerId),
}
