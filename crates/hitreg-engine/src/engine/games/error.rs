//! The error of operations on games.

/// Why a game cannot do what is asked: it is not of this build, or the log, the map or the scenario does not suit it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GameError(String);

impl GameError {
    pub(super) fn of(error: impl ToString) -> GameError {
        GameError(error.to_string())
    }

    /// The log is of a game that this build does not play.
    pub(super) fn unknown(of_log: &str, of_build: &str) -> GameError {
        GameError(format!(
            "the log is of the game `{of_log}`, and this build plays {of_build}. These work without a build: info, export, \
             report, why. These work with the game's build: verify, why and sweep with --build BUILD; diff, report, bisect \
             and shrink with --a BUILD --b BUILD; check BUILD LOG; BUILD replay LOG -o TRACE (docs/builds.md). Others need \
             the game in Rust (docs/games.md)"
        ))
    }

    /// The map file does not define rules of the game.
    pub(super) fn no_rules(error: super::RulesError) -> GameError {
        GameError(format!("the game cannot use this map: {error}"))
    }
}
