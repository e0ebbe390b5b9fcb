//! The `corrections` table has one row for each ack that was compared with a prediction. The `errors` table has one
//! row for each corrected field.

use std::collections::VecDeque;

use super::tables::value;
use crate::game::{Cause, CellKind, Explanation, FieldSchema, evidence};
use crate::pipeline::{Comparison, Correction};
use crate::push_bounded;
use hitreg_log::record::{Execution, PacketRecord};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{ABSENT, corrections, errors};
use hitreg_log::units::{CommandSeq, Micros, PlayerId};
use hitreg_log::usercmd::{Input, Usercmd};

#[derive(Debug, Default)]
pub(super) struct Corrections {
    pub(super) rows: corrections::Writer,
    pub(super) errors: errors::Writer,
    /// How the server handled the usercmds of each player, by number.
    handled: Vec<HandledUsercmds>,
}

/// How the server handled the usercmds of one player.
#[derive(Debug, Default)]
struct HandledUsercmds {
    /// The first and the last usercmd of the newest run without gaps that the server handled.
    known: Option<(CommandSeq, CommandSeq)>,
    /// The usercmds since the last acked one that it did not run as they were made.
    not_run: SortedMap<CommandSeq, UsercmdNotRun>,
    /// The oldest and the newest usercmd of each packet that arrives, if the newest has no ack.
    arriving: VecDeque<(CommandSeq, CommandSeq)>,
    /// Whether the player was alive after the last tick.
    is_alive: Option<bool>,
    /// The last usercmd handled at each death and spawn of the player, if it has no ack.
    life_changes: VecDeque<CommandSeq>,
}

/// A usercmd that the server did not run as it was made.
#[derive(Clone, Copy, Debug)]
struct UsercmdNotRun {
    /// What the server did in its place, or with it.
    how: Execution,
    /// Whether it arrived later.
    is_late: bool,
}

/// How far a usercmd that the server ran in the place of another is from that one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StandInDifference {
    None,
    /// Only the time of movement differs.
    Duration,
    /// Another input ran, or none.
    Input,
}

/// The most usercmds of a player that the server did not run, packets, deaths and spawns whose ack may still come.
const NOT_ACKED_MAX: usize = 512;

impl HandledUsercmds {
    fn add(&mut self, command: CommandSeq, how: Execution) {
        self.known = match self.known {
            Some((first, last)) if command <= last => Some((first, last)),
            Some((first, last)) if command.0 == last.0 + 1 => Some((first, command)),
            _ => Some((command, command)),
        };
        if how == Execution::Run {
            return;
        }
        let is_late = how == Execution::Late;
        match self.not_run.get_mut(&command) {
            Some(not_run) => not_run.is_late |= is_late,
            None => {
                self.not_run.insert(command, UsercmdNotRun { how, is_late });
                if self.not_run.len() > NOT_ACKED_MAX {
                    self.not_run.pop_first();
                }
            }
        }
    }

    /// Why the server did not run a usercmd of a correction as it was made: the cause of the first one with the greatest
    /// difference. `None` if no usercmd had another effect.
    fn cause(&self, first: CommandSeq, correction: &Correction) -> Option<Cause> {
        let not_run = self.not_run.range(first..=correction.command).rev();
        let differing = not_run
            .map(|(command, not_run)| (self.difference(*command, *not_run, correction), command, not_run))
            .filter(|(difference, ..)| *difference != StandInDifference::None);
        let (_, command, not_run) = differing.max_by_key(|(difference, ..)| *difference)?;
        let arrives = || self.arriving.iter().any(|(oldest, newest)| (oldest..=newest).contains(&command));
        Some(match not_run.how {
            Execution::OverBudget => Cause::InputRefused,
            _ if not_run.is_late || arrives() => Cause::InputLate,
            _ => Cause::InputLost,
        })
    }

    /// Compares a usercmd with what the server ran in its place: the last one that it had run, if any.
    fn difference(&self, command: CommandSeq, not_run: UsercmdNotRun, correction: &Correction) -> StandInDifference {
        let made = correction.usercmds.iter().find(|usercmd| usercmd.seq == command);
        let ran = |usercmd: &&Usercmd| usercmd.seq < command && !self.not_run.contains_key(&usercmd.seq);
        let (Execution::StoodIn, Some(made), Some(last)) = (not_run.how, made, correction.usercmds.iter().rfind(ran))
        else {
            return StandInDifference::Input;
        };
        let stand_in = Input { impulse: 0, ..last.input.clone() };
        if made.input == stand_in {
            StandInDifference::None
        } else if made.input == (Input { msec: made.input.msec, ..stand_in }) {
            StandInDifference::Duration
        } else {
            StandInDifference::Input
        }
    }

    /// Whether the server is known to have handled all these usercmds.
    fn knows(&self, first: CommandSeq, last: CommandSeq) -> bool {
        self.known.is_some_and(|known| known.0 <= first && last <= known.1)
    }

    /// Forgets what came before an ack. Whether the acked usercmd ran decides what stands in for the next one.
    fn forget(&mut self, acked: CommandSeq) {
        while self.not_run.first_key_value().is_some_and(|(command, _)| *command < acked) {
            self.not_run.pop_first();
        }
        while self.arriving.front().is_some_and(|(_, newest)| *newest <= acked) {
            self.arriving.pop_front();
        }
        while self.life_changes.front().is_some_and(|command| *command <= acked) {
            self.life_changes.pop_front();
        }
    }
}

impl Corrections {
    fn handled(&mut self, player: PlayerId) -> &mut HandledUsercmds {
        let index = usize::from(player.0);
        if index >= self.handled.len() {
            self.handled.resize_with(index + 1, HandledUsercmds::default);
        }
        &mut self.handled[index]
    }

    /// Notes how the server handled a usercmd.
    pub(super) fn executed(&mut self, player: PlayerId, command: CommandSeq, how: Execution) {
        self.handled(player).add(command, how);
    }

    /// Notes a packet that will arrive.
    pub(super) fn packet_will_arrive(&mut self, player: PlayerId, packet: &PacketRecord) {
        let oldest = CommandSeq((packet.newest.0 + 1).saturating_sub(packet.count.into()));
        push_bounded(&mut self.handled(player).arriving, (oldest, packet.newest), NOT_ACKED_MAX);
    }

    /// Notes whether each player was alive after a tick.
    pub(super) fn ticked(&mut self, is_alive: impl Fn(PlayerId) -> Option<bool>) {
        for (player, handled) in (0..).map(PlayerId).zip(&mut self.handled) {
            let was_alive = std::mem::replace(&mut handled.is_alive, is_alive(player));
            let has_changed = was_alive.is_some() && handled.is_alive.is_some() && was_alive != handled.is_alive;
            if let Some((_, last)) = handled.known.filter(|_| has_changed) {
                push_bounded(&mut handled.life_changes, last, NOT_ACKED_MAX);
            }
        }
    }

    /// Returns the explanation of a correction at an ack of this many usercmds. A client can only suppose that the server
    /// did not run its usercmds as they were made; the server knows whether it did, and why. It also knows a death with a
    /// spawn between two snapshots.
    fn explanation(&self, player: PlayerId, commands: u32, correction: &Correction) -> Explanation {
        let acked = correction.command;
        let first = CommandSeq((acked.0 + 1).saturating_sub(commands));
        let supposed = correction.explanation;
        let Some(handled) = self.handled.get(usize::from(player.0)) else { return supposed };
        let has_changed_life = handled.life_changes.iter().any(|command| (first..=acked).contains(command));
        if has_changed_life && supposed == Explanation::new(Cause::Teleport, evidence::SNAPSHOT) {
            return Explanation::new(Cause::SpawnOrDeath, evidence::SNAPSHOT);
        }
        let by_server = handled.cause(first, correction);
        let is_untested = supposed.cause == Cause::Unknown
            || supposed.evidence == evidence::TOUCHED
            || supposed.cause == Cause::Knockback && correction.is_nearer_with_loss;
        match by_server {
            Some(cause) if supposed.cause == Cause::InputLost => Explanation { cause, ..supposed },
            Some(cause) if is_untested => Explanation::new(cause, evidence::EXECUTED),
            None if handled.knows(first, acked) => correction.if_all_ran,
            _ => supposed,
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
        let explanation = correction.map(|correction| self.explanation(player, comparison.commands, correction));
        self.handled(player).forget(comparison.command);
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

    const TOUCHED_PLAYER: Explanation = Explanation::new(Cause::OtherPlayer, evidence::TOUCHED);

    /// Returns the explanation of a correction at the ack of usercmds 1 to 3, if the client supposes this one.
    fn explained(explanation: Explanation, handled: &[(u32, Execution)]) -> Explanation {
        explained_by(&Corrections::of(handled), explanation, false, &[])
    }

    impl Corrections {
        fn of(handled: &[(u32, Execution)]) -> Corrections {
            let mut table = Corrections::default();
            handled.iter().for_each(|(command, how)| table.executed(PlayerId(0), CommandSeq(*command), *how));
            table
        }
    }

    /// Returns the explanation of a correction at the ack of usercmds 1 to 3, which were made with these yaws.
    fn explained_by(table: &Corrections, explanation: Explanation, is_nearer: bool, yaws: &[f32]) -> Explanation {
        table.explanation(PlayerId(0), 3, &correction(explanation, is_nearer, yaws))
    }

    fn correction(explanation: Explanation, is_nearer_with_loss: bool, yaws: &[f32]) -> Correction {
        Correction {
            command: CommandSeq(3),
            errors: Vec::new(),
            reran: 0,
            explanation,
            if_all_ran: TOUCHED_PLAYER,
            is_nearer_with_loss,
            usercmds: (0..).zip(yaws).map(|(seq, yaw)| usercmd(seq, *yaw)).collect(),
            cancelled_effects: Vec::new(),
        }
    }

    fn usercmd(seq: u32, yaw: f32) -> Usercmd {
        let input = Input { viewangles: [0.0, yaw, 0.0].into(), ..Input::default() };
        Usercmd { seq: CommandSeq(seq), lerp_msec: 0, server_time: Micros::ZERO, input }
    }

    fn packet(newest: u32, count: u8) -> PacketRecord {
        PacketRecord { newest: CommandSeq(newest), count, ..PacketRecord::default() }
    }

    /// The server judges before the packet comes, but the packet is not lost.
    #[test]
    fn usercmds_that_arrive_after_the_ack_are_late() {
        use Execution::{Run, StoodIn};
        let lost = Explanation::new(Cause::InputLost, evidence::REPRODUCED);
        let explained = |packets: &[PacketRecord]| {
            let mut table = Corrections::of(&[(1, Run), (2, StoodIn), (3, Run)]);
            packets.iter().for_each(|packet| table.packet_will_arrive(PlayerId(0), packet));
            explained_by(&table, lost, false, &[]).cause
        };
        assert_eq!(explained(&[packet(1, 1), packet(3, 1)]), Cause::InputLost);
        assert_eq!(explained(&[packet(1, 1), packet(3, 1), packet(2, 1)]), Cause::InputLate);
        assert_eq!(explained(&[packet(1, 1), packet(3, 2)]), Cause::InputLate, "a later packet repeats it");
    }

    #[test]
    fn the_first_usercmd_with_another_effect_decides() {
        use Execution::{Late, Run, StoodIn};
        let lost = Explanation::new(Cause::InputLost, evidence::REPRODUCED);
        let explained =
            |handled: &[(u32, Execution)], yaws: &[f32]| explained_by(&Corrections::of(handled), lost, false, yaws);
        let late_and_lost = [(1, StoodIn), (1, Late), (2, Run), (3, StoodIn)];
        assert_eq!(explained(&late_and_lost, &[0.0, 5.0, 5.0, 9.0]).cause, Cause::InputLate);
        assert_eq!(explained(&late_and_lost, &[0.0, 0.0, 5.0, 9.0]).cause, Cause::InputLost);
        // Every usercmd that stood in was as the lost one.
        assert_eq!(explained(&late_and_lost, &[0.0, 0.0, 5.0, 5.0]), TOUCHED_PLAYER);
        // What stood in for a usercmd after a lost one is that before the lost one.
        let both = [(1, StoodIn), (2, StoodIn), (3, Run)];
        assert_eq!(explained(&both, &[0.0, 0.0, 5.0, 5.0]).cause, Cause::InputLost);
        assert_eq!(explained(&both, &[5.0, 5.0, 5.0, 0.0]), TOUCHED_PLAYER);
        // A usercmd of 1 ms more hardly changes anything.
        let cause = |last_yaw: f32| {
            let mut correction = correction(lost, false, &[0.0, 0.0, 5.0, last_yaw]);
            correction.usercmds[1].input.msec += 1;
            Corrections::of(&late_and_lost).explanation(PlayerId(0), 3, &correction).cause
        };
        assert_eq!([cause(9.0), cause(5.0)], [Cause::InputLost, Cause::InputLate]);
        // Usercmd 1 did not run, so it does not stand in for the next one either.
        let mut table = Corrections::of(&both);
        table.handled(PlayerId(0)).forget(CommandSeq(1));
        let after_ack = table.explanation(PlayerId(0), 2, &correction(lost, false, &[0.0, 5.0, 5.0, 5.0]));
        assert_eq!(after_ack.cause, Cause::InputLost);
        // Nothing is known of the usercmd before the first one.
        assert_eq!(explained(&both, &[]).cause, Cause::InputLost);
    }

    #[test]
    fn a_push_hides_usercmds_only_if_they_explain_less_than_half() {
        use Execution::{OverBudget, Run};
        let table = Corrections::of(&[(1, Run), (2, OverBudget), (3, OverBudget)]);
        let pushed = Explanation::new(Cause::Knockback, evidence::SNAPSHOT);
        assert_eq!(explained_by(&table, pushed, false, &[]), pushed);
        let refused = Explanation::new(Cause::InputRefused, evidence::EXECUTED);
        assert_eq!(explained_by(&table, pushed, true, &[]), refused);
        // The server ran all, so no loss explains anything.
        let ran = Corrections::of(&[(1, Run), (2, Run), (3, Run)]);
        assert_eq!(explained_by(&ran, pushed, true, &[]), TOUCHED_PLAYER);
    }

    #[test]
    fn a_death_and_a_spawn_between_two_snapshots_are_no_teleport() {
        let teleport = Explanation::new(Cause::Teleport, evidence::SNAPSHOT);
        let explained = |lives: &[bool]| {
            let mut table = Corrections::default();
            for (command, is_alive) in (1..).zip(lives) {
                table.executed(PlayerId(0), CommandSeq(command), Execution::Run);
                table.ticked(|_| Some(*is_alive));
            }
            table.handled(PlayerId(0)).forget(CommandSeq(1));
            explained_by(&table, teleport, false, &[]).cause
        };
        assert_eq!(explained(&[true, false, true]), Cause::SpawnOrDeath);
        assert_eq!(explained(&[true, true, false]), Cause::SpawnOrDeath);
        assert_ne!(explained(&[true, true, true]), Cause::SpawnOrDeath);
        assert_ne!(explained(&[true, true, true, false]), Cause::SpawnOrDeath, "it is after the ack");
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
