//! The `corrections` table has one row for each ack that was compared with a prediction. The `errors` table has one
//! row for each corrected field.

use super::columns::value;
use crate::game::{Cause, CellKind, Evidence, FieldSchema};
use crate::pipeline::{Comparison, Correction};
use hitreg_log::record::Execution;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{ABSENT, corrections, errors};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Corrections {
    pub(super) rows: corrections::Writer,
    pub(super) errors: errors::Writer,
    /// The usercmds without an ack that the server did not run as they were made.
    not_run: SortedMap<PlayerId, SortedMap<CommandSeq, Execution>>,
}

/// The most usercmds of a player that the server did not run and whose ack may still come.
const NOT_RUN_MAX: usize = 512;

impl Corrections {
    /// Notes how the server handled a usercmd.
    pub(super) fn executed(&mut self, player: PlayerId, command: CommandSeq, how: Execution) {
        if how == Execution::Run {
            return;
        }
        let of_player = self.not_run.entry(player).or_default();
        of_player.insert(command, how);
        if of_player.len() > NOT_RUN_MAX {
            of_player.pop_first();
        }
    }

    /// Returns the cause of a correction. A client knows only that the server did not run its usercmds as they were made;
    /// the server knows why.
    fn cause(&self, player: PlayerId, comparison: &Comparison, correction: &Correction) -> (Cause, Evidence) {
        let first = CommandSeq((comparison.command.0 + 1).saturating_sub(comparison.commands));
        let not_run =
            self.not_run.get(&player).and_then(|of_player| of_player.range(first..=comparison.command).next());
        let by_server = not_run.map(|(_, how)| match how {
            Execution::Late => Cause::InputLate,
            Execution::OverBudget => Cause::InputRefused,
            Execution::Run | Execution::StoodIn | Execution::Missing => Cause::InputLost,
        });
        match (correction.cause, by_server) {
            (Cause::InputLost, Some(cause)) => (cause, correction.evidence),
            (Cause::Unknown, Some(cause)) => (cause, "executed"),
            (cause, _) => (cause, correction.evidence),
        }
    }

    /// Forgets the usercmds until an ack.
    fn forget_acked(&mut self, player: PlayerId, acked: CommandSeq) {
        if let Some(of_player) = self.not_run.get_mut(&player) {
            while of_player.first_key_value().is_some_and(|(command, _)| *command <= acked) {
                of_player.pop_first();
            }
        }
    }

    pub(super) fn push(
        &mut self,
        fields: &[FieldSchema],
        player: PlayerId,
        at: Micros,
        comparison: &Comparison,
        correction: Option<&Correction>,
    ) {
        let cause = correction.map(|correction| self.cause(player, comparison, correction));
        self.forget_acked(player, comparison.command);
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
            cause: cause.map_or(0, |(cause, _)| 1 + cause as u8),
            evidence: cause.map_or("none", |(_, evidence)| evidence),
            as_played: comparison.as_played.map(|grade| grade as u8),
        });
        for error in correction.iter().flat_map(|c| &c.errors) {
            let (name, kind) = match error.field {
                Some(index) => (&*fields[index].name, fields[index].kind),
                None => (ABSENT, CellKind::Bool),
            };
            self.errors.push(errors::Row {
                player: player.0.into(),
                command: comparison.command.0,
                field: name,
                predicted: value(kind, error.predicted),
                authoritative: value(kind, error.authoritative),
                predicted_bits: error.predicted as u32,
                authoritative_bits: error.authoritative as u32,
            });
        }
    }
}
