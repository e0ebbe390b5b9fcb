//! What a game adds to prediction beyond running usercmds: how to compare, what to keep, and why a prediction was
//! wrong.

use super::{AckedPrediction, Body as _, Cause, Evidence, PredictionGrade, Scene, Simulate};
use hitreg_log::units::EntityId;

/// How a client reconciles the prediction of its own body. Every item has a default. By default, prediction resumes
/// from the server's body, and every cell that differs counts as an error.
pub trait Reconcile: Simulate {
    /// Whether the body is on the ground. Predictions are counted separately for ground and air.
    fn on_ground(_body: &Self::Body) -> bool {
        true
    }

    /// How well a prediction agrees with the server's result of the same usercmds. `None` if the two cannot be
    /// compared, for example if one of them is on a level that the rules do not hold. An exact prediction with a
    /// corrected field counts as near.
    fn grade(predicted: &Self::Body, authoritative: &Self::Body) -> Option<PredictionGrade> {
        Some(PredictionGrade::of_distance(predicted, authoritative))
    }

    /// What [`Reconcile::grade`] calls exact and near, as text for people. A game with its own measure describes it
    /// here.
    const GRADES: &str = "exact: to the bit; near: within 0.2 units and 1.5 units/s";

    /// Returns the body to predict from after an ack: the server's body with the fields that only the client knows. A
    /// game whose recorded states are rounded keeps the predicted values that the rounding hides. For the first state
    /// that a client has, `predicted` is that state.
    fn resume(_rules: &Self::Rules, acked: &AckedPrediction<'_, Self::Body>) -> Self::Body {
        let mut body = acked.authoritative.clone();
        body.adopt_client_only(acked.predicted);
        body
    }

    /// Applies the movement of carrying entities since `before` to a player's body, before its next usercmd runs. A
    /// lift carries the players on it. `scene` has the entities at their present places.
    fn carry(
        _rules: &Self::Rules,
        _scene: &Scene<'_, Self::Body>,
        _before: &[(EntityId, Self::Body)],
        body: &Self::Body,
    ) -> Self::Body {
        body.clone()
    }

    /// Whether a shot hurt the body between two of its states. This is evidence that a push came from a shot.
    fn was_hurt(_before: &Self::Body, _after: &Self::Body) -> bool {
        false
    }

    /// Explains a wrong prediction, if the game knows more than the pipeline can find out.
    fn explain(_rules: &Self::Rules, _miss: &AckedPrediction<'_, Self::Body>) -> Option<(Cause, Evidence)> {
        None
    }
}
