//! Clients that leave out a part of what a client does or is told, to show what it is for: wrappers around the real one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use glam::Vec3;

use super::results::Results;
use hitreg_arena::{Arena, ArenaBody, BodyKind, WeaponId};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Input;
use hitreg_netcode::client::Client;
use hitreg_netcode::game::{Body as _, Categorize as _, Category, Effect, Placed};
use hitreg_netcode::history::Frame;
use hitreg_netcode::packet::{ClientPacket, Snapshot};
use hitreg_netcode::pipeline::{ClientPipeline, Commanded, Reconciled, Setup};

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The mark on usercmds that have run: without it their effects play at every run.
    FirstRunMark,
    /// Copying what only the client knows to the acked state.
    ClientOnlyState,
    /// Heeding the mark of a teleport; a too large distance still is one.
    TeleportFlag,
    /// Heeding warnings of frames that came too late or too early.
    Warnings,
    /// Being told what never changes, but for the first time.
    Constants,
    /// Saying truly where it sees its avatar.
    Honesty,
    /// Running the server's weapons: its pistol is twice as fast.
    SharedWeapons,
    /// Knowing others as players: it takes them for something that only falls, and so for Simulated.
    Kinds,
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
    /// Where it writes down which of its shots hit somebody on its own screen, as its own messages to the server.
    results: Option<Results>,
    /// What it was told of, where it is told of what never changes only once.
    known: BTreeSet<(EntityId, u32)>,
}

impl Without {
    pub(super) fn say_results(mut self, results: Results) -> Without {
        self.results = Some(results);
        self
    }

    pub(super) fn leave_out(mut self, part: Part) -> Without {
        self.part = Some(part);
        if part == Part::SharedWeapons {
            let mut rules = (*self.setup.rules).clone();
            rules.weapons[WeaponId::Pistol as usize].interval_ms /= 2;
            self.setup.rules = Arc::new(rules);
            self.client = Client::new(self.setup.clone(), self.player);
        }
        self
    }

    /// The snapshot with nothing where a body has what never changes, but in bodies that it is the first to show.
    fn without_constants(&mut self, snapshot: &Snapshot<ArenaBody>) -> Snapshot<ArenaBody> {
        let fields = ArenaBody::fields();
        let mut entities = snapshot.frame.entities.clone();
        for (id, body) in &mut entities {
            if self.known.insert((*id, body.teleports)) {
                continue;
            }
            let own = *id == self.player.entity();
            let mut cells = vec![0; ArenaBody::CELLS];
            body.write(&mut cells);
            for (cell, field) in cells.iter_mut().zip(&fields) {
                if Arena::category(body, own, field) == Category::Constant {
                    *cell = 0;
                }
            }
            *body = ArenaBody::read(&cells).unwrap_or(*body);
        }
        Snapshot { frame: Arc::new(Frame { entities, ..(*snapshot.frame).clone() }), ..snapshot.clone() }
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
            results: None,
            known: BTreeSet::new(),
        }
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.client.number_from(first);
    }

    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<Reconciled> {
        match self.part {
            Some(Part::ClientOnlyState) => self.begin_anew(now, snapshot),
            Some(Part::TeleportFlag) => self.client.handle_snapshot(now, &unmarked(snapshot)),
            Some(Part::Warnings) => {
                self.client.handle_snapshot(now, &Snapshot { warnings: Vec::new(), ..snapshot.clone() })
            }
            Some(Part::Constants) => {
                let withheld = self.without_constants(snapshot);
                self.client.handle_snapshot(now, &withheld)
            }
            Some(Part::Kinds) => self.client.handle_snapshot(now, &falling(snapshot, self.player.entity())),
            Some(Part::FirstRunMark | Part::Honesty | Part::SharedWeapons) | None => {
                self.client.handle_snapshot(now, snapshot)
            }
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
        if let Some(results) = &self.results {
            results.note(&commanded.shots);
        }
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
            Some(Part::Honesty) => {
                let elsewhere = |own: ArenaBody| ArenaBody { origin: own.origin + Vec3::X * 1000.0, ..own };
                commanded.predicted = commanded.predicted.map(elsewhere);
            }
            Some(Part::TeleportFlag | Part::Warnings | Part::Constants | Part::SharedWeapons | Part::Kinds) | None => {}
        }
        commanded
    }

    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        self.client.handle_sent(packet, bytes);
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
    with_bodies(snapshot, |_, body| ArenaBody { teleports: 0, ..*body })
}

/// The snapshot with apples for all players but the own one.
fn falling(snapshot: &Snapshot<ArenaBody>, own: EntityId) -> Snapshot<ArenaBody> {
    with_bodies(snapshot, |id, body| match body.kind {
        BodyKind::Player if id != own => ArenaBody { kind: BodyKind::Apple, ..*body },
        _ => *body,
    })
}

fn with_bodies(
    snapshot: &Snapshot<ArenaBody>,
    change: impl Fn(EntityId, &ArenaBody) -> ArenaBody,
) -> Snapshot<ArenaBody> {
    let entities = snapshot.frame.entities.iter().map(|(id, body)| (*id, change(*id, body)));
    let frame = Frame { entities: entities.collect(), ..(*snapshot.frame).clone() };
    Snapshot { frame: Arc::new(frame), ..snapshot.clone() }
}
