//! Which fields of a body a client predicts, and which of them came out differently.

use crate::game::{Body, Scope};
use crate::settings::PredictionMode;

/// One cell that was predicted wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The cell's place in [`Body::fields`].
    pub field: usize,
    /// The predicted cell.
    pub predicted: u32,
    /// The server's.
    pub authoritative: u32,
}

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
