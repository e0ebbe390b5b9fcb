//! What a game knows of prediction beyond running usercmds: how to compare, what to keep, why it was wrong.

use super::{Acked, BadCells, Body as _, Cause, Evidence, Grade, Scene, Simulate, SnapshotExtras};
use hitreg_log::units::EntityId;

/// Predicting a player's own body. All of it may be left out: the prediction begins anew from the server's body then, and any
/// other cell is an error.
pub trait Reconcile: Simulate {
    /// Whether the body stands on something; predictions are counted apart for ground and air.
    fn on_ground(_body: &Self::Body) -> bool {
        true
    }

    /// How well a prediction agrees with what the server made of the same usercmd. `None` where the two cannot be compared,
    /// as where one of them is on a level that the rules do not hold.
    fn grade(predicted: &Self::Body, authoritative: &Self::Body) -> Option<Grade> {
        Some(Grade::of_distance(predicted, authoritative))
    }

    /// What [`Reconcile::grade`] calls exact and near, for people: a game with a measure of its own says its own.
    const GRADES: &str = "exact: to the bit; near: within 0.2 units and 1.5 units/s";

    /// True where recorded states are rounded: then only a [`Grade::Miss`] is wrong. False where states are exact: then any
    /// difference of a predicted cell is.
    const RECORDS_ARE_ROUNDED: bool = false;

    /// The body to predict from after an ack: the server's, with what only the client knows. A game whose recorded states
    /// are rounded keeps of its prediction what the rounding cannot tell. The first state that a client has is its own prediction.
    fn resume(_rules: &Self::Rules, acked: &Acked<'_, Self::Body>) -> Self::Body {
        let mut body = acked.authoritative.clone();
        body.adopt_client_only(acked.predicted);
        body
    }

    /// What the bodies that moved by themselves since `before` do to a player's body before its next usercmd runs: a lift
    /// carries who stands on it. `scene` has them where they are now.
    fn carry(
        _rules: &Self::Rules,
        _scene: &Scene<'_, Self::Body>,
        _before: &[(EntityId, Self::Body)],
        body: &Self::Body,
    ) -> Self::Body {
        body.clone()
    }

    /// Whether somebody's shot hurt the body between two states of it: evidence that a push came from a shot.
    fn was_hurt(_before: &Self::Body, _after: &Self::Body) -> bool {
        false
    }

    /// Why a prediction was wrong, where the game knows better than the pipeline can tell.
    fn explain(_rules: &Self::Rules, _miss: &Acked<'_, Self::Body>) -> Option<(Cause, Evidence)> {
        None
    }

    /// Whether a recorded snapshot is one of this game's, beyond what [`Body::read`](super::Body::read) sees.
    ///
    /// # Errors
    /// Says what does not fit.
    fn check_snapshot(_bodies: &[(EntityId, Self::Body)], _extras: &SnapshotExtras<'_>) -> Result<(), BadCells> {
        Ok(())
    }
}
