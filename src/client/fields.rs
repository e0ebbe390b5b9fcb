//! Which fields of a body a client predicts, and which of them came out differently.

use crate::game::{Body, Scope};
use crate::pipeline::FieldError;
use crate::settings::PredictionMode;

/// Which cells of a body a client predicts.
pub(super) struct Predicted {
    cells: Vec<bool>,
}

impl Predicted {
    pub(super) fn new<B: Body>(mode: PredictionMode) -> Predicted {
        let is_predicted = |scope: Scope| match scope {
            Scope::Movement => mode != PredictionMode::Off,
            Scope::Weapons => mode == PredictionMode::Weapons,
            Scope::Status | Scope::ClientOnly => false,
        };
        Predicted { cells: B::fields().iter().map(|f| is_predicted(f.scope)).collect() }
    }

    /// The predicted cells that came out differently.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B) -> Vec<FieldError> {
        let mut ours = vec![0; B::CELLS];
        let mut theirs = vec![0; B::CELLS];
        predicted.write(&mut ours);
        authoritative.write(&mut theirs);
        (0..B::CELLS)
            .filter(|&i| ours[i] != theirs[i] && self.cells[i])
            .map(|i| FieldError { field: i, predicted: ours[i], authoritative: theirs[i] })
            .collect()
    }
}
