//! The `corrections` table, a row for each ack that was held against a prediction, and the `errors` table, a row for each
//! field that had to be corrected.

use super::columns::{Names, push_all, table};
use crate::game::{Cause, CellKind, Field, Grade};
use crate::pipeline::{Comparison, Correction};
use crate::trace::{Data, Table};
use crate::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Corrections {
    player: Vec<u32>,
    at_us: Vec<i64>,
    command: Vec<u32>,
    commands: Vec<u32>,
    result: Names,
    /// Nothing but `none` unless predictions run again as the server ran them.
    as_played: Vec<u8>,
    on_ground: Vec<u32>,
    error_units: Vec<f32>,
    velocity_error: Vec<f32>,
    fields: Vec<u32>,
    reran: Vec<u32>,
    cause: Names,
    evidence: Names,
    errors: Errors,
}

#[derive(Debug, Default)]
struct Errors {
    player: Vec<u32>,
    command: Vec<u32>,
    field: Names,
    predicted: Vec<f32>,
    authoritative: Vec<f32>,
    bits: [Vec<u32>; 2],
}

impl Corrections {
    pub(super) fn new() -> Corrections {
        let causes: Vec<&str> = ["none"].into_iter().chain(Cause::NAMES).collect();
        Corrections {
            player: Vec::new(),
            at_us: Vec::new(),
            command: Vec::new(),
            commands: Vec::new(),
            result: Names::known(&Grade::NAMES),
            as_played: Vec::new(),
            on_ground: Vec::new(),
            error_units: Vec::new(),
            velocity_error: Vec::new(),
            fields: Vec::new(),
            reran: Vec::new(),
            cause: Names::known(&causes),
            evidence: Names::known(&["none"]),
            errors: Errors::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        fields: &[Field],
        player: PlayerId,
        at: Micros,
        comparison: &Comparison,
        correction: Option<&Correction>,
    ) {
        self.player.push(u32::from(player.0));
        self.at_us.push(at.0);
        self.command.push(comparison.command.0);
        self.commands.push(comparison.commands);
        self.result.push_code(comparison.grade as u8);
        self.as_played.push(comparison.as_played.map_or(0, |grade| 1 + grade as u8));
        self.on_ground.push(u32::from(comparison.on_ground));
        self.error_units.push(comparison.error_units);
        self.velocity_error.push(comparison.velocity_error);
        self.fields.push(correction.map_or(0, |c| c.errors.len() as u32));
        self.reran.push(correction.map_or(0, |c| c.reran));
        self.cause.push_code(correction.map_or(0, |c| 1 + c.cause as u8));
        self.evidence.push(correction.map_or("none", |c| c.evidence));
        for error in correction.iter().flat_map(|c| &c.errors) {
            let field = &fields[error.field];
            self.errors.player.push(u32::from(player.0));
            self.errors.command.push(comparison.command.0);
            self.errors.field.push(&field.name);
            self.errors.predicted.push(value(field.kind, error.predicted));
            self.errors.authoritative.push(value(field.kind, error.authoritative));
            push_all(&mut self.errors.bits, [error.predicted, error.authoritative]);
        }
    }

    pub(super) fn tables(self) -> (Table, Table) {
        let mut corrections = vec![
            ("player", Data::U32(self.player)),
            ("at_us", Data::I64(self.at_us)),
            ("command", Data::U32(self.command)),
            ("commands", Data::U32(self.commands)),
            ("result", self.result.data()),
            ("on_ground", Data::U32(self.on_ground)),
            ("error_units", Data::F32(self.error_units)),
            ("velocity_error_units_per_s", Data::F32(self.velocity_error)),
            ("fields", Data::U32(self.fields)),
            ("reran", Data::U32(self.reran)),
            ("cause", self.cause.data()),
            ("evidence", self.evidence.data()),
        ];
        if self.as_played.iter().any(|code| *code != 0) {
            let names = ["none"].iter().chain(&Grade::NAMES).map(|name| (*name).to_owned()).collect();
            corrections.push(("as_played", Data::Name { names, codes: self.as_played }));
        }
        let [predicted_bits, authoritative_bits] = self.errors.bits;
        let errors = vec![
            ("player", Data::U32(self.errors.player)),
            ("command", Data::U32(self.errors.command)),
            ("field", self.errors.field.data()),
            ("predicted", Data::F32(self.errors.predicted)),
            ("authoritative", Data::F32(self.errors.authoritative)),
            ("predicted_bits", Data::U32(predicted_bits)),
            ("authoritative_bits", Data::U32(authoritative_bits)),
        ];
        (table("corrections", corrections, Vec::new()), table("errors", errors, Vec::new()))
    }
}

fn value(kind: CellKind, cell: u32) -> f32 {
    match kind {
        CellKind::F32 => f32::from_bits(cell),
        CellKind::I32 => cell as i32 as f32,
        CellKind::U32 => cell as f32,
    }
}
