//! One correction: what was predicted, what came, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::asked::NotThere;
use super::{Reader, cell, measure};
use hitreg_log::trace::schema::{corrections, errors, frames};
use hitreg_log::trace::{Data, Trace};

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
    /// The whole of what was predicted, where the trace still has it: the frame of that usercmd, not predicted anew since.
    #[serde(skip)]
    pub predicted: Vec<(String, String)>,
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
    pub(super) fn find(reader: &Reader<'_>, player: u32, number: u32) -> Result<Correction, NotThere> {
        let corrected = corrected(reader.trace);
        let of_player = corrected.get(&player).map_or(&[][..], Vec::as_slice);
        let found = (number as usize).checked_sub(1).and_then(|index| of_player.get(index));
        let row = found.copied().ok_or_else(|| NotThere::NoCorrection {
            player,
            number,
            count: of_player.len(),
            players: corrected.iter().map(|(player, rows)| format!("p{player} ({})", rows.len())).collect(),
        })?;
        Ok(Correction { number, of: of_player.len(), ..Correction::read(reader, row) })
    }

    pub(super) fn all(reader: &Reader<'_>) -> Vec<Correction> {
        let of_player = |rows: Vec<usize>| {
            let of = rows.len();
            let numbered = (1..).zip(rows);
            numbered.map(|(number, row)| Correction { number, of, ..Correction::read(reader, row) }).collect()
        };
        let by_player: Vec<Vec<Correction>> = corrected(reader.trace).into_values().map(of_player).collect();
        by_player.into_iter().flatten().collect()
    }

    fn read(reader: &Reader<'_>, row: usize) -> Correction {
        let table = corrections::Columns::of(reader.trace);
        let [player, command] = [table.player, table.command].map(|column| cell(column, row).unwrap_or_default());
        let frames = frames::Columns::of(reader.trace);
        let made = reader.frames.at([player, 0], command).next();
        let errors = errors_of(reader, player, command);
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
            predicted: made.and_then(|row| predicted(reader.trace, row, &errors)).unwrap_or_default(),
            errors,
        }
    }
}

/// What the frame of a usercmd predicted, field by field; `None` where that is not what was corrected later.
pub fn predicted(trace: &Trace, row: usize, errors: &[FieldError]) -> Option<Vec<(String, String)>> {
    let columns = trace.table(frames::NAME)?.columns.iter();
    let own = columns.filter_map(|column| Some((column.name.strip_prefix("own.")?, &column.data)));
    let fields: Vec<(String, String)> =
        own.filter_map(|(name, data)| Some((name.to_owned(), written(data, row)?))).collect();
    let is_it = |error: &FieldError| fields.contains(&(error.field.clone(), error.predicted.to_string()));
    errors.iter().all(is_it).then_some(fields)
}

fn written(data: &Data, row: usize) -> Option<String> {
    Some(match data {
        Data::U32(values) => values.get(row)?.to_string(),
        Data::U64(values) => values.get(row)?.to_string(),
        Data::I64(values) => values.get(row)?.to_string(),
        Data::F32(values) => values.get(row)?.to_string(),
        Data::Name { names, codes } => names.get(*codes.get(row)? as usize)?.clone(),
    })
}

/// The rows in which something was corrected, by player.
fn corrected(trace: &Trace) -> BTreeMap<u32, Vec<usize>> {
    let table = corrections::Columns::of(trace);
    let mut corrected: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for row in (0..table.rows).filter(|row| cell(table.fields, *row).is_some_and(|fields| fields > 0)) {
        if let Some(player) = cell(table.player, row) {
            corrected.entry(player).or_default().push(row);
        }
    }
    corrected
}

fn errors_of(reader: &Reader<'_>, player: u32, command: u32) -> Vec<FieldError> {
    let errors = errors::Columns::of(reader.trace);
    let error = |row| FieldError {
        field: errors.field.get(row).to_owned(),
        predicted: cell(errors.predicted, row).unwrap_or(f32::NAN),
        authoritative: cell(errors.authoritative, row).unwrap_or(f32::NAN),
    };
    reader.errors.at([player, 0], command).map(error).collect()
}
