//! The `corrections` table has one row for each ack that was compared with a prediction. The `errors` table has one
//! row for each corrected field.

use super::columns::value;
use crate::game::FieldSchema;
use crate::pipeline::{Comparison, Correction};
use hitreg_log::trace::schema::{corrections, errors};
use hitreg_log::units::{Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Corrections {
    pub(super) rows: corrections::Writer,
    pub(super) errors: errors::Writer,
}

impl Corrections {
    pub(super) fn push(
        &mut self,
        fields: &[FieldSchema],
        player: PlayerId,
        at: Micros,
        comparison: &Comparison,
        correction: Option<&Correction>,
    ) {
        self.rows.push(corrections::Row {
            player: player.0.into(),
            at_us: at.0,
            command: comparison.command.0,
            commands: comparison.commands,
            result: comparison.grade as u8,
            on_ground: comparison.on_ground.into(),
            error_units: comparison.error_units,
            velocity_error_units_per_s: comparison.velocity_error,
            fields: correction.map_or(0, |c| c.errors.len() as u32),
            reran: correction.map_or(0, |c| c.reran),
            // Code 0 is "none", before the causes.
            cause: correction.map_or(0, |c| 1 + c.cause as u8),
            evidence: correction.map_or("none", |c| c.evidence),
            as_played: comparison.as_played.map(|grade| grade as u8),
        });
        for error in correction.iter().flat_map(|c| &c.errors) {
            let field = &fields[error.field];
            self.errors.push(errors::Row {
                player: player.0.into(),
                command: comparison.command.0,
                field: &field.name,
                predicted: value(field.kind, error.predicted),
                authoritative: value(field.kind, error.authoritative),
                predicted_bits: error.predicted as u32,
                authoritative_bits: error.authoritative as u32,
            });
        }
    }
}
