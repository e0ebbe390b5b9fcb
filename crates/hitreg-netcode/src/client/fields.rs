//! The predicted fields of a body, and the comparison of their values with the server's.

use std::ops::Range;

use crate::game::{Body, CellKind, Scope};
use crate::pipeline::FieldMisprediction;
use crate::settings::PredictionMode;
use hitreg_log::record::cells_of;

/// The fields of a body that a client predicts.
pub(super) struct PredictedFields {
    /// The index, kind and cells of each.
    fields: Vec<(usize, CellKind, Range<usize>)>,
}

impl PredictedFields {
    pub(super) fn new<B: Body>(mode: PredictionMode) -> PredictedFields {
        let is_predicted = |scope: Scope| match scope {
            Scope::Movement => mode != PredictionMode::Off,
            Scope::Weapons => mode == PredictionMode::Weapons,
            Scope::Status | Scope::ClientOnly => false,
        };
        let all = B::fields();
        let predicted = cells_of(&all).enumerate().filter(|(_, (field, _))| is_predicted(field.scope));
        PredictedFields { fields: predicted.map(|(index, (field, place))| (index, field.kind, place)).collect() }
    }

    /// Returns whether all predicted fields have the server's values.
    pub(super) fn are_equal<B: Body>(&self, predicted: &B, authoritative: &B) -> bool {
        if predicted.is_absent() != authoritative.is_absent() {
            return false;
        }
        let (ours, theirs) = (predicted.to_cells(), authoritative.to_cells());
        self.fields.iter().all(|(_, _, place)| ours[place.clone()] == theirs[place.clone()])
    }

    /// Returns the predicted fields that differ from the server's and that `resumed` does not keep. An absent body has no
    /// fields, so only its absence is an error.
    pub(super) fn errors<B: Body>(&self, predicted: &B, authoritative: &B, resumed: &B) -> Vec<FieldMisprediction> {
        if predicted.is_absent() != authoritative.is_absent() {
            let [ours, theirs] = [predicted, authoritative].map(|body| body.is_absent().into());
            let error = FieldMisprediction { field: None, predicted: ours, authoritative: theirs };
            return if resumed.is_absent() == predicted.is_absent() { Vec::new() } else { vec![error] };
        }
        let (ours, theirs, kept) = (predicted.to_cells(), authoritative.to_cells(), resumed.to_cells());
        let is_wrong = |place: &Range<usize>| {
            let ours = &ours[place.clone()];
            *ours != theirs[place.clone()] && *ours != kept[place.clone()]
        };
        let error = |(field, kind, place): &(usize, CellKind, Range<usize>)| FieldMisprediction {
            field: Some(*field),
            predicted: kind.number(&ours[place.clone()]),
            authoritative: kind.number(&theirs[place.clone()]),
        };
        self.fields.iter().filter(|(_, _, place)| is_wrong(place)).map(error).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::dot::DotBody;
    use crate::game::body;

    body! {
        struct Boat {
            Status id: u64,
            Movement east: f64,
        }
    }

    #[test]
    fn a_wrong_double_is_one_error() {
        let boat = |east| Boat { id: 1, east };
        let errors = |ours, theirs| {
            let fields = PredictedFields::new::<Boat>(PredictionMode::Movement);
            fields.errors(&boat(ours), &Boat { id: 2, ..boat(theirs) }, &boat(theirs))
        };
        // The high words are the same, then both words differ.
        for (ours, theirs) in [(0.1_f64, 0.1_f64.next_up()), (0.1, -1e9)] {
            let [predicted, authoritative] = [ours, theirs].map(|east| east.to_bits() as i64);
            assert_eq!(errors(ours, theirs), [FieldMisprediction { field: Some(1), predicted, authoritative }]);
        }
        assert_eq!(errors(0.1, 0.1), []);
    }

    /// The zeros of an absent body are no values of its fields.
    #[test]
    fn an_absent_body_is_one_error() {
        let fields = PredictedFields::new::<Boat>(PredictionMode::Movement);
        let [boat, gone] = [Boat { id: 1, east: 3.0 }, Boat::default()];
        let absent = |predicted, authoritative| [FieldMisprediction { field: None, predicted, authoritative }];
        assert_eq!(fields.errors(&boat, &gone, &gone), absent(0, 1));
        assert_eq!(fields.errors(&gone, &boat, &boat), absent(1, 0));
        assert_eq!(fields.errors(&gone, &boat, &gone), []);
        assert_eq!(fields.errors(&gone, &gone, &gone), []);
        assert!(!fields.are_equal(&boat, &gone) && !fields.are_equal(&gone, &boat) && fields.are_equal(&gone, &gone));
    }

    #[test]
    fn errors_are_predicted_fields_that_differ_and_are_not_kept() {
        let found = |mode, [ours, theirs, kept]: [u32; 3]| {
            let dot = |shots| DotBody { shots, ..DotBody::default() };
            let fields = PredictedFields::new::<DotBody>(mode);
            let are_equal = fields.errors(&dot(ours), &dot(theirs), &dot(theirs)).is_empty();
            assert_eq!(fields.are_equal(&dot(ours), &dot(theirs)), are_equal);
            fields.errors(&dot(ours), &dot(theirs), &dot(kept)).len()
        };
        let weapons = PredictionMode::Weapons;
        assert_eq!(
            [[1, 2, 2], [1, 2, 3], [1, 2, 1], [1, 1, 2], [1, 1, 1]].map(|all| found(weapons, all)),
            [1, 1, 0, 0, 0]
        );
        assert_eq!(found(PredictionMode::Movement, [1, 2, 2]), 0);
    }
}
