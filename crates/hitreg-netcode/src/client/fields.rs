//! The predicted fields of a body, and the comparison of their values with the server's.

use crate::game::{Body, Scope};
use crate::pipeline::CellError;
use crate::settings::PredictionMode;

/// The cells of a body that a client predicts.
pub(super) struct PredictedCells {
    cells: Vec<bool>,
}

impl PredictedCells {
    pub(super) fn new<B: Body>(mode: PredictionMode) -> PredictedCells {
        let is_predicted = |scope: Scope| match scope {
            Scope::Movement => mode != PredictionMode::Off,
            Scope::Weapons => mode == PredictionMode::Weapons,
            Scope::Status | Scope::ClientOnly => false,
        };
        PredictedCells { cells: B::fields().iter().map(|f| is_predicted(f.scope)).collect() }
    }

    /// Returns the predicted cells that differ from the server's and that `resumed` does not keep.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B, resumed: &B) -> Vec<CellError> {
        let cells = |body: &B| {
            let mut cells = vec![0; B::CELLS];
            body.write(&mut cells);
            cells
        };
        let (ours, theirs, kept) = (cells(predicted), cells(authoritative), cells(resumed));
        (0..B::CELLS)
            .filter(|&i| ours[i] != theirs[i] && ours[i] != kept[i] && self.cells[i])
            .map(|i| CellError { field: i, predicted: ours[i], authoritative: theirs[i] })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::DotBody;

    #[test]
    fn errors_are_predicted_fields_that_differ_and_are_not_kept() {
        let found = |mode, [ours, theirs, kept]: [u32; 3]| {
            let dot = |shots| DotBody { shots, ..DotBody::default() };
            PredictedCells::new::<DotBody>(mode).errors(&dot(ours), &dot(theirs), &dot(kept)).len()
        };
        let weapons = PredictionMode::Weapons;
        assert_eq!(
            [[1, 2, 2], [1, 2, 3], [1, 2, 1], [1, 1, 2], [1, 1, 1]].map(|all| found(weapons, all)),
            [1, 1, 0, 0, 0]
        );
        assert_eq!(found(PredictionMode::Movement, [1, 2, 2]), 0);
    }
}
