//! One correction: what was predicted, what came, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::asked::NotThere;
use super::{cell, measure};
use crate::trace::Trace;
use crate::trace::schema::{corrections, errors, frames};

/// An ack that said something else than was predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// Whose.
    pub player: u32,
    /// Which of that player's, the first is 1.
    pub number: u32,
    /// How many that player has.
    pub of: usize,
    /// The usercmd that was acked.
    pub command: u32,
    /// When that was made.
    pub made_us: Option<i64>,
    /// When the ack came.
    pub at_us: Option<i64>,
    /// How many usercmds it acked.
    pub commands: Option<u32>,
    /// How well the prediction agreed.
    pub result: String,
    /// Whether the first of them began on the ground.
    pub on_ground: Option<bool>,
    /// Distance between predicted and authoritative place.
    pub error_units: Option<f32>,
    /// The same of the velocities.
    pub velocity_error_units_per_s: Option<f32>,
    /// How many usercmds were run again.
    pub reran: Option<u32>,
    /// Why it was wrong.
    pub cause: String,
    /// What shows that.
    pub evidence: String,
    /// What had to be corrected, the first field first.
    pub errors: Vec<FieldError>,
}

/// A field that was predicted otherwise than it came.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldError {
    /// Its name.
    pub field: String,
    /// As it was predicted.
    pub predicted: f32,
    /// As it came.
    pub authoritative: f32,
}

impl Correction {
    pub(super) fn find(trace: &Trace, player: u32, number: u32) -> Result<Correction, NotThere> {
        let table = corrections::Columns::of(trace);
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut of_player = Vec::new();
        for row in 0..table.rows {
            if cell(table.fields, row).is_none_or(|fields| fields == 0) {
                continue;
            }
            let Some(whose) = cell(table.player, row) else { continue };
            *counts.entry(whose).or_default() += 1;
            if whose == player {
                of_player.push(row);
            }
        }
        let found = (number as usize).checked_sub(1).and_then(|index| of_player.get(index));
        let row = found.copied().ok_or_else(|| NotThere::NoCorrection {
            player,
            number,
            count: of_player.len(),
            players: counts.iter().map(|(player, count)| format!("p{player} ({count})")).collect(),
        })?;
        Ok(Correction { number, of: of_player.len(), ..Correction::read(trace, row) })
    }

    fn read(trace: &Trace, row: usize) -> Correction {
        let table = corrections::Columns::of(trace);
        let [player, command] = [table.player, table.command].map(|column| cell(column, row).unwrap_or_default());
        let frames = frames::Columns::of(trace);
        let made = (0..frames.rows)
            .find(|row| cell(frames.command, *row) == Some(command) && cell(frames.player, *row) == Some(player));
        Correction {
            player,
            number: 0,
            of: 0,
            command,
            made_us: made.and_then(|row| cell(frames.at_us, row)),
            at_us: cell(table.at_us, row),
            commands: cell(table.commands, row),
            result: table.result.get(row).to_owned(),
            on_ground: cell(table.on_ground, row).map(|on_ground| on_ground == 1),
            error_units: measure(table.error_units, row),
            velocity_error_units_per_s: measure(table.velocity_error_units_per_s, row),
            reran: cell(table.reran, row),
            cause: table.cause.get(row).to_owned(),
            evidence: table.evidence.get(row).to_owned(),
            errors: errors_of(trace, player, command),
        }
    }
}

fn errors_of(trace: &Trace, player: u32, command: u32) -> Vec<FieldError> {
    let errors = errors::Columns::of(trace);
    let of_it = (0..errors.rows)
        .filter(|row| cell(errors.player, *row) == Some(player) && cell(errors.command, *row) == Some(command));
    of_it
        .map(|row| FieldError {
            field: errors.field.get(row).to_owned(),
            predicted: cell(errors.predicted, row).unwrap_or(f32::NAN),
            authoritative: cell(errors.authoritative, row).unwrap_or(f32::NAN),
        })
        .collect()
}
