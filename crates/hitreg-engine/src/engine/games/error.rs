//! Why nothing can be done with a game.

use hitreg_log::units::{CommandSeq, PlayerId};
use hitreg_netcode::game::BadCells;
use hitreg_netcode::score;

/// A log of a game that this build does not play.
#[derive(Debug, thiserror::Error)]
#[error(
    "the log is of the game `{log}`, and this build plays {build}: replay it with the build that recorded it \
     (`BUILD replay LOG -o TRACE`; commands take a build by --build, --a and --b)"
)]
pub struct UnknownGame {
    pub(super) log: String,
    pub(super) build: String,
}

/// A game that has no bots.
#[derive(Debug, thiserror::Error)]
#[error("no synthetic session of `{name}` can be recorded: this build has bots for {able}")]
pub struct NotRecordable {
    pub(super) name: String,
    pub(super) able: String,
}

/// Why drawing could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// The rules in the log are not this build's.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// A recorded body is not one.
    #[error(transparent)]
    State(#[from] score::ScoreError),
    /// The same.
    #[error(transparent)]
    Cells(#[from] BadCells),
}

/// Why a usercmd could not be run again.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The rules in the log are not this build's.
    #[error("the rules in the log cannot be read: {0}")]
    Rules(#[from] hitreg_log::serial::ReadError),
    /// A body is not one of this game.
    #[error(transparent)]
    State(#[from] BadCells),
    /// The player's own body is not among the entities.
    #[error("there is no body of player {0}")]
    NoBody(PlayerId),
    /// It was never made, or is not in the log.
    #[error("the log has no usercmd {0} of player {1}")]
    NoUsercmd(CommandSeq, PlayerId),
}
