//! The `corrections` table has one row for each ack that was compared with a prediction. The `errors` table has one
//! row for each corrected field.

use super::tables::value;
use crate::game::{Cause, CellKind, Explanation, FieldSchema, evidence};
use crate::pipeline::{Comparison, Correction};
use hitreg_log::record::Execution;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{ABSENT, corrections, errors};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

#[derive(Debug, Default)]
pub(super) struct Corrections {
    pub(super) rows: corrections::Writer,
    pub(super) errors: errors::Writer,
    /// How the server handled the usercmds of each player.
    handled: SortedMap<PlayerId, HandledUsercmds>,
}

/// How the server handled the usercmds of one player.
#[derive(Debug, Default)]
struct HandledUsercmds {
    /// The first and the last usercmd of the newest run without gaps that the server handled.
    known: Option<(CommandSeq, CommandSeq)>,
    /// The usercmds without an ack that it did not run as they were made.
    not_run: SortedMap<CommandSeq, Execution>,
}

/// The most usercmds of a player that the server did not run and whose ack may still come.
const NOT_RUN_MAX: usize = 512;

impl HandledUsercmds {
    fn add(&mut self, command: CommandSeq, how: Execution) {
        self.known = match self.known {
            Some((first, last)) if command <= last => Some((first, last)),
            Some((first, last)) if command.0 == last.0 + 1 => Some((first, command)),
            _ => Some((command, command)),
        };
        if how != Execution::Run {
            self.not_run.insert(command, how);
            if self.not_run.len() > NOT_RUN_MAX {
                self.not_run.pop_first();
            }
        }
    }

    /// Whether the server is known to have run all these usercmds as they were made.
    fn ran_all(&self, first: CommandSeq, last: CommandSeq) -> bool {
        let are_known = self.known.is_some_and(|known| known.0 <= first && last <= known.1);
        are_known && self.not_run.range(first..=last).next().is_none()
    }
}

impl Corrections {
    /// Notes how the server handled a usercmd.
    pub(super) fn executed(&mut self, player: PlayerId, command: CommandSeq, how: Execution) {
        self.handled.entry(player).or_default().add(command, how);
    }

    /// Returns the explanation of a correction. A client can only suppose that the server did not run its usercmds as they
    /// were made; the server knows whether it did, and why.
    fn explanation(&self, player: PlayerId, comparison: &Comparison, correction: &Correction) -> Explanation {
        let first = CommandSeq((comparison.command.0 + 1).saturating_sub(comparison.commands));
        let handled = self.handled.get(&player);
        let not_run = handled.and_then(|handled| handled.not_run.range(first..=comparison.command).next());
        let by_server = not_run.map(|(_, how)| match how {
            Execution::Late => Cause::InputLate,
            Execution::OverBudget => Cause::InputRefused,
            Execution::Run | Execution::StoodIn | Execution::Missing => Cause::InputLost,
        });
        let ran_all = handled.is_some_and(|handled| handled.ran_all(first, comparison.command));
        let supposed = correction.explanation;
        let is_untested = supposed.cause == Cause::Unknown || supposed.evidence == evidence::TOUCHED;
        match by_server {
            Some(cause) if supposed.cause == Cause::InputLost => Explanation { cause, ..supposed },
            Some(cause) if is_untested => Explanation::new(cause, evidence::EXECUTED),
            None if ran_all => correction.if_all_ran,
            _ => supposed,
        }
    }

    /// Forgets the usercmds until an ack.
    fn forget_acked(&mut self, player: PlayerId, acked: CommandSeq) {
        if let Some(HandledUsercmds { not_run, .. }) = self.handled.get_mut(&player) {
            while not_run.first_key_value().is_some_and(|(command, _)| *command <= acked) {
                not_run.pop_first();
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
        let explanation = correction.map(|correction| self.explanation(player, comparison, correction));
        self.forget_acked(player, comparison.command);
        self.rows.push(corrections::Row {
            player: player.0.into(),
            at_us: at.0,
            command: comparison.command.0,
            commands: comparison.commands,
            result: comparison.grade as u8,
            on_ground: comparison.on_ground.into(),
            error_units: comparison.error_units,
            velocity_error_units_per_s: comparison.velocity_error_units_per_s,
            fields: correction.map_or(0, |c| c.errors.len() as u32),
            reran: correction.map_or(0, |c| c.reran),
            // Code 0 is "none", before the causes.
            cause: explanation.map_or(0, |explanation| 1 + explanation.cause as u8),
            evidence: explanation.map_or(evidence::NONE, |explanation| explanation.evidence),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::PredictionGrade;

    const TOUCHED_PLAYER: Explanation = Explanation::new(Cause::OtherPlayer, evidence::TOUCHED);

    /// Returns the explanation of a correction at the ack of usercmds 1 to 3, if the client supposes this one.
    fn explained(explanation: Explanation, handled: &[(u32, Execution)]) -> Explanation {
        let mut table = Corrections::default();
        handled.iter().for_each(|(command, how)| table.executed(PlayerId(0), CommandSeq(*command), *how));
        let comparison = Comparison {
            command: CommandSeq(3),
            commands: 3,
            grade: PredictionGrade::Miss,
            as_played: None,
            error_units: 1.0,
            velocity_error_units_per_s: 0.0,
            on_ground: true,
        };
        let (errors, cancelled_effects) = (Vec::new(), Vec::new());
        let correction = Correction {
            command: CommandSeq(3),
            errors,
            reran: 0,
            explanation,
            if_all_ran: TOUCHED_PLAYER,
            cancelled_effects,
        };
        table.explanation(PlayerId(0), &comparison, &correction)
    }

    #[test]
    fn usercmds_that_the_server_ran_are_not_lost() {
        use Execution::{Late, Missing, Run};
        let lost = Explanation::new(Cause::InputLost, evidence::REPRODUCED);
        let explained = |handled: &[(u32, Execution)]| explained(lost, handled);
        assert_eq!(explained(&[(1, Run), (2, Run), (3, Run)]), TOUCHED_PLAYER);
        assert_eq!(explained(&[(1, Run), (2, Missing), (3, Run)]), lost);
        assert_eq!(
            explained(&[(1, Run), (2, Late), (3, Run)]),
            Explanation::new(Cause::InputLate, evidence::REPRODUCED)
        );
        // Without the server's records of all usercmds, the client's hypothesis remains.
        assert_eq!([explained(&[]), explained(&[(2, Run), (3, Run)]), explained(&[(1, Run), (3, Run)])], [lost; 3]);
    }

    #[test]
    fn only_a_tested_contact_hides_usercmds_that_the_server_did_not_run() {
        use Execution::{OverBudget, Run, StoodIn};
        let explained =
            |evidence, how| explained(Explanation::new(Cause::OtherPlayer, evidence), &[(1, Run), (2, how), (3, Run)]);
        assert_eq!(explained(evidence::TOUCHED, StoodIn), Explanation::new(Cause::InputLost, evidence::EXECUTED));
        assert_eq!(explained(evidence::TOUCHED, OverBudget), Explanation::new(Cause::InputRefused, evidence::EXECUTED));
        assert_eq!(
            explained(evidence::REPRODUCED, StoodIn),
            Explanation::new(Cause::OtherPlayer, evidence::REPRODUCED)
        );
    }
}
