//! The predicted fields of a body, and the comparison of their values with the server's.

use crate::game::{Body, Scope};
use crate::pipeline::FieldError;
use crate::settings::PredictionMode;

/// The cells of a body that a client predicts.
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

    /// Returns the predicted cells that differ from the server's and that `resumed` does not keep.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B, resumed: &B) -> Vec<FieldError> {
        let cells = |body: &B| {
            let mut cells = vec![0; B::CELLS];
            body.write(&mut cells);
            cells
        };
        let (ours, theirs, kept) = (cells(predicted), cells(authoritative), cells(resumed));
        (0..B::CELLS)
            .filter(|&i| ours[i] != theirs[i] && ours[i] != kept[i] && self.cells[i])
            .map(|i| FieldError { field: i, predicted: ours[i], authoritative: theirs[i] })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::Dot;

    #[test]
    fn an_error_is_what_is_predicted_is_not_so_and_is_not_kept() {
        let found = |mode, [ours, theirs, kept]: [u32; 3]| {
            let dot = |shots| Dot { shots, ..Dot::default() };
            Predicted::new::<Dot>(mode).errors(&dot(ours), &dot(theirs), &dot(kept)).len()
        };
        let weapons = PredictionMode::Weapons;
        assert_eq!(
            [[1, 2, 2], [1, 2, 3], [1, 2, 1], [1, 1, 2], [1, 1, 1]].map(|all| found(weapons, all)),
            [1, 1, 0, 0, 0]
        );
        assert_eq!(found(PredictionMode::Movement, [1, 2, 2]), 0);
    }
}
