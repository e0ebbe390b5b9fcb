//! What recordings of a real game may need beyond the client pipeline.

use super::ReplayError;
use crate::pipeline::{Comparison, Correction, Netcode};
use crate::record::Session;
use crate::units::{Micros, PlayerId};

/// A game whose recordings may hold its predictions against the truth in its own way, because it knows what its real
/// servers do: with lost packets, with moving parts of the map, with rounded states. A game that needs no such thing
/// implements this with an empty body, and the client pipeline's own predictions count.
pub trait Imported: Netcode {
    /// Gives every prediction of `player` in an imported recording to `see`, in the order of the acks. `None` when the
    /// client pipeline is to do it.
    ///
    /// # Errors
    /// When the session is not a recording of this game.
    fn check_predictions(
        _session: &Session,
        _rules: &Self::Rules,
        _player: PlayerId,
        _see: &mut dyn FnMut(Checked),
    ) -> Option<Result<(), ReplayError>> {
        None
    }
}

/// One prediction, held against the truth.
#[derive(Clone, Debug)]
pub struct Checked {
    /// When the ack arrived.
    pub at: Micros,
    /// How well the prediction agrees.
    pub comparison: Comparison,
    /// What was wrong with it, and why.
    pub correction: Option<Correction>,
}
