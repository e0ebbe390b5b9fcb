//! Clients that leave out a part of what a client does, to show what it is for: wrappers around the real one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::arena::{Arena, ArenaBody};
use crate::client::Client;
use crate::game::{Effect, Placed};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::pipeline::{ClientPipeline, Commanded, Reconciled, Setup};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};
use crate::usercmd::Input;

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The mark on usercmds that have run: without it their effects play at every run.
    FirstRunMark,
    /// Copying what only the client knows to the acked state.
    ClientOnlyState,
    /// Heeding the mark of a teleport; a too large distance still is one.
    TeleportFlag,
}

/// A client without one part, or a whole one.
pub(super) struct Without {
    client: Client<Arena>,
    setup: Setup<Arena>,
    player: PlayerId,
    part: Option<Part>,
    /// The effects of the usercmds that may run again, where they are to be played again.
    effects: VecDeque<(CommandSeq, Vec<Effect>)>,
    /// What has been sent and not been acked, where a client is to begin anew.
    in_flight: VecDeque<(CommandSeq, Micros, Input)>,
    packets: u32,
}

impl Without {
    pub(super) fn leave_out(mut self, part: Part) -> Without {
        self.part = Some(part);
        self
    }

    /// A new client, which knows what this snapshot says and nothing more, makes again what is in flight.
    fn begin_anew(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<Reconciled> {
        self.client = Client::new(self.setup.clone(), self.player);
        self.client.number_from(snapshot.ack.next());
        let reconciled = self.client.handle_snapshot(now, snapshot);
        while self.in_flight.pop_front_if(|(seq, ..)| *seq <= snapshot.ack).is_some() {}
        for (_, at, input) in &self.in_flight {
            self.client.command(*at, input);
        }
        reconciled
    }
}

impl ClientPipeline<Arena> for Without {
    fn new(setup: Setup<Arena>, player: PlayerId) -> Without {
        Without {
            client: Client::new(setup.clone(), player),
            setup,
            player,
            part: None,
            effects: VecDeque::new(),
            in_flight: VecDeque::new(),
            packets: 0,
        }
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.client.number_from(first);
    }

    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<Reconciled> {
        match self.part {
            Some(Part::ClientOnlyState) => self.begin_anew(now, snapshot),
            Some(Part::TeleportFlag) => self.client.handle_snapshot(now, &unmarked(snapshot)),
            Some(Part::FirstRunMark) | None => self.client.handle_snapshot(now, snapshot),
        }
    }

    fn look(&mut self, now: Micros) {
        self.client.look(now);
    }

    fn command(&mut self, now: Micros, input: &Input) -> Commanded<Arena> {
        let mut commanded = self.client.command(now, input);
        self.packets += 1;
        commanded.packet.number = self.packets;
        let seq = commanded.command.seq;
        match self.part {
            Some(Part::FirstRunMark) => {
                let again = commanded.ran.saturating_sub(1);
                while self.effects.pop_front_if(|(made, _)| made.0 + again < seq.0).is_some() {}
                let first = std::mem::take(&mut commanded.effects);
                commanded.effects.extend(self.effects.iter().flat_map(|(_, effects)| effects).cloned());
                commanded.effects.extend(&first);
                self.effects.push_back((seq, first));
            }
            Some(Part::ClientOnlyState) => self.in_flight.push_back((seq, now, *input)),
            Some(Part::TeleportFlag) | None => {}
        }
        commanded
    }

    fn drawn(&self) -> &[(EntityId, Placed<ArenaBody>)] {
        self.client.drawn()
    }

    fn drawn_at(&self) -> Micros {
        self.client.drawn_at()
    }

    fn predicted(&self) -> Option<&ArenaBody> {
        self.client.predicted()
    }
}

/// The snapshot without the bodies' marks of a teleport.
fn unmarked(snapshot: &Snapshot<ArenaBody>) -> Snapshot<ArenaBody> {
    let entities = snapshot.frame.entities.iter().map(|(id, body)| (*id, ArenaBody { teleports: 0, ..*body }));
    let frame = Frame { entities: entities.collect(), ..(*snapshot.frame).clone() };
    Snapshot { frame: Arc::new(frame), ..snapshot.clone() }
}
