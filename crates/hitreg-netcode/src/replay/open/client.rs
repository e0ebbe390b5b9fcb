//! One recorded client that runs alone in open loop. Its caller supplies the records.

use std::sync::Arc;

use glam::Vec3;

use super::{BudgetObserver, Jump, ReplayError, TraceTables};
use crate::game::{Body, Game};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{ClientPipeline, Setup};
use crate::session::{Observer, ScreenView, SessionEvent};
use hitreg_log::record::FrameRecord;
use hitreg_log::units::{CommandSeq, Micros, PlayerId};

pub(super) struct OpenLoopClient<G: Game, C> {
    pub(super) player: PlayerId,
    client: C,
    drawn_behind: Micros,
    last_shown: Option<Arc<Frame<G::Body>>>,
    /// The last usercmd made so far, and the last of the recording.
    made: CommandSeq,
    last: CommandSeq,
}

impl<G: Game, C: ClientPipeline<G>> OpenLoopClient<G, C> {
    /// Returns a client that makes the usercmds from `first` to `last`.
    pub(super) fn new(
        setup: &Setup<G>,
        player: PlayerId,
        [first, last]: [CommandSeq; 2],
        drawn_behind: Micros,
    ) -> OpenLoopClient<G, C> {
        let mut client = C::new(setup.of_player(player), player);
        client.number_from(first);
        OpenLoopClient { player, client, drawn_behind, last_shown: None, made: CommandSeq(0), last }
    }

    /// Whether a snapshot acks a usercmd that the client has yet to make. The snapshot then waits, even if the
    /// recorded times disagree, as on a local network or at the start of a level.
    pub(super) fn is_yet_to_make(&self, ack: CommandSeq) -> bool {
        ack > self.made && ack <= self.last
    }

    /// Handles a snapshot. Returns how far it moved the player's own prediction.
    pub(super) fn receive(
        &mut self,
        at: Micros,
        snapshot: &Snapshot<G::Body>,
        tables: &mut BudgetObserver<'_, TraceTables>,
    ) -> Option<Jump> {
        let before = self.client.predicted().cloned();
        let reconciled = self.client.handle_snapshot(at, snapshot);
        let shown = self.last_shown.replace(Arc::clone(&snapshot.frame));
        let units = before.zip(self.client.predicted()).and_then(|(before, after)| {
            moved(&before, after, carried::<G>(&before, shown.as_deref()?, &snapshot.frame))
        });
        let (player, reconciled) = (self.player, reconciled.as_ref());
        let event: SessionEvent<'_, G> = SessionEvent::SnapshotReceived { player, snapshot, reconciled };
        tables.event(at, event);
        units.map(|units| Jump { player: self.player, at, units })
    }

    /// Runs the client's next frame.
    pub(super) fn frame(
        &mut self,
        recorded: &FrameRecord,
        tables: &mut BudgetObserver<'_, TraceTables>,
    ) -> Result<(), ReplayError> {
        let client = &mut self.client;
        if G::IMPORTED.is_some_and(|imported| imported.draws_at_command_time) {
            client.set_clock(recorded.at, recorded.command.server_time + self.drawn_behind);
        }
        client.look(recorded.at);
        let output = client.command(recorded.at, &recorded.command.input);
        self.made = output.command.seq;
        let screen = ScreenView { drawn: client.drawn(), drawn_at: client.drawn_at() };
        tables.event(recorded.at, SessionEvent::Frame { player: self.player, output: &output, screen });
        tables.budget.check()
    }
}

/// Returns how far the carrier of a body moved from one snapshot to the next.
fn carried<G: Game>(body: &G::Body, from: &Frame<G::Body>, to: &Frame<G::Body>) -> Vec3 {
    let gone = G::carrier(body, &to.entities).and_then(|on| Some(to.get(on)?.offset_from(from.get(on)?)));
    gone.unwrap_or(Vec3::ZERO)
}

/// Returns how far a prediction moved, `None` if not at all. Teleports, carriers and absent bodies do not count.
fn moved<B: Body>(before: &B, after: &B, carried: Vec3) -> Option<f32> {
    let are_present = !before.is_absent() && !after.is_absent();
    let units = before.moved_by(carried).offset_from(after).length();
    (units > 0.0 && are_present && before.teleports() == after.teleports()).then_some(units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::body;
    use crate::rink::Skater;

    fn at(x: f32, teleports: u32) -> Skater {
        Skater { origin: Vec3::X * x, teleports: teleports as _, ..Skater::default() }
    }

    body! {
        struct Ghost {
            Status id: u64,
            Movement origin: Vec3,
        }
    }

    #[test]
    fn absent_players_have_no_misprediction() {
        let ghost = |id, x| Ghost { id, origin: Vec3::X * x };
        let units = |id| moved(&ghost(id, 5.0), &ghost(id, 7.0), Vec3::ZERO);
        assert_eq!((units(1), units(0)), (Some(2.0), None));
    }

    #[test]
    fn teleported_and_carried_players_have_no_misprediction() {
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::ZERO), Some(2.0));
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::X * 2.0), None, "as far as what it stands on");
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 0), Vec3::X * 1.5), Some(0.5));
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 0), Vec3::ZERO), None);
        assert_eq!(moved(&at(5.0, 0), &at(7.0, 1), Vec3::ZERO), None, "it went through a teleporter");
        assert_eq!(moved(&at(5.0, 0), &at(5.0, 1), Vec3::ZERO), None);
    }
}
