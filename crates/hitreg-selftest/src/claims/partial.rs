//! Clients that omit one part of a client's work, to show its purpose; they wrap the real client. Also a client that
//! reports the results of its own shots, and a wrapper around the real server that believes the reports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use glam::Vec3;
use serde::Deserialize;

use crate::soak::FalseClaims;
use hitreg_arena::{Arena, ArenaBody, ArenaFire, ArenaRules, ArenaWorld, BodyKind, Muzzle, WeaponId};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq};
use hitreg_log::usercmd::{Input, Usercmd};
use hitreg_netcode::client::Client;
use hitreg_netcode::game::{
    Body as _, Categorize as _, Category, DamageShare, DiscardingSink, Effect, HitResult, Judge as _, PlacedBody,
    ShotVerdict,
};
use hitreg_netcode::history::Frame;
use hitreg_netcode::packet::{ClientPacket, Snapshot};
use hitreg_netcode::pipeline::{
    ClientFrameOutput, ClientPipeline, JudgedShot, PredictedShot, ReconcileOutcome, Rewind, Rollbacks, ServerPipeline,
    Setup, TickEvent, TickOutcome,
};
use hitreg_netcode::server::Server;
use hitreg_netcode::session::ClientRequests;
use hitreg_netcode::wire::RequestKind;

/// The number of results in one message.
const MESSAGE_RESULTS: usize = 6;

/// The bytes of one result: a usercmd number and an entity id.
const RESULT_BYTES: usize = 6;

/// The omitted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientPart {
    /// The mark on usercmds that have already run. Without it, effects play at every run.
    FirstRunMark,
    /// Copying the client-only fields to the acked state.
    ClientOnlyState,
    /// Using the teleport mark. A distance over the limit still counts as a teleport.
    TeleportFlag,
    /// Reacting to warnings about usercmds that were too late or too early.
    Warnings,
    /// Receiving constant fields after the first time.
    Constants,
    /// Reporting the predicted avatar truthfully.
    Honesty,
    /// Running the server's weapon code: the client's pistol is twice as fast.
    SharedWeapons,
    /// Knowing that others are players. The client treats them as falling objects, and so as Simulated.
    Kinds,
    /// Telling the truth about its clock, its usercmds and the snapshots that it has.
    #[serde(skip)]
    Truth(FalseClaims),
}

/// A client that may omit one part.
pub(crate) struct PartialClient {
    client: Client<Arena>,
    setup: Setup<Arena>,
    player: PlayerId,
    part: Option<ClientPart>,
    /// The effects of usercmds that may run again, for playing them again.
    effects: VecDeque<(CommandSeq, Vec<Effect>)>,
    /// Usercmds sent but not acked, for a client that restarts.
    in_flight: VecDeque<(CommandSeq, Micros, Input)>,
    packets: u32,
    /// The newest snapshot received.
    newest: SnapshotSeq,
    /// Records which of its shots hit on its own screen, to be sent to the server.
    pub(super) results: Option<ShotConfirmations>,
    /// The bodies already received, for a client that receives constant fields only once.
    known: SortedSet<(EntityId, u32)>,
}

impl PartialClient {
    /// Creates a client that omits this part.
    pub(crate) fn without(part: Option<ClientPart>, mut setup: Setup<Arena>, player: PlayerId) -> PartialClient {
        if part == Some(ClientPart::SharedWeapons) {
            let mut rules = (*setup.rules).clone();
            rules.weapons[WeaponId::Pistol as usize].interval_ms /= 2;
            setup.rules = Arc::new(rules);
        }
        PartialClient {
            client: Client::new(setup.clone(), player),
            setup,
            player,
            part,
            effects: VecDeque::new(),
            in_flight: VecDeque::new(),
            packets: 0,
            newest: SnapshotSeq(0),
            results: None,
            known: SortedSet::new(),
        }
    }

    /// Returns the snapshot without constant fields, except in bodies that appear for the first time.
    fn without_constants(&mut self, snapshot: &Snapshot<ArenaBody>) -> Snapshot<ArenaBody> {
        let fields = ArenaBody::fields();
        with_bodies(snapshot, |id, body| {
            if self.known.insert((id, body.teleports)) {
                return *body;
            }
            let own = id == self.player.entity();
            let mut cells = body.to_cells();
            for (cell, field) in cells.iter_mut().zip(&fields) {
                if Arena::category(body, own, field) == Category::Constant {
                    *cell = 0;
                }
            }
            ArenaBody::read(&cells).unwrap_or(*body)
        })
    }

    /// Restarts the client from this snapshot alone, and makes the usercmds in flight again.
    fn begin_anew(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<ReconcileOutcome> {
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

impl ClientPipeline<Arena> for PartialClient {
    fn new(setup: Setup<Arena>, player: PlayerId) -> PartialClient {
        PartialClient::without(None, setup, player)
    }

    fn number_from(&mut self, first: CommandSeq) {
        self.client.number_from(first);
    }

    fn handle_snapshot(&mut self, now: Micros, snapshot: &Snapshot<ArenaBody>) -> Option<ReconcileOutcome> {
        self.newest = self.newest.max(snapshot.seq);
        match self.part {
            Some(ClientPart::ClientOnlyState) => self.begin_anew(now, snapshot),
            Some(ClientPart::TeleportFlag) => {
                let unmarked = with_bodies(snapshot, |_, body| ArenaBody { teleports: 0, ..*body });
                self.client.handle_snapshot(now, &unmarked)
            }
            Some(ClientPart::Warnings) => {
                self.client.handle_snapshot(now, &Snapshot { warnings: Vec::new(), ..snapshot.clone() })
            }
            Some(ClientPart::Constants) => {
                let withheld = self.without_constants(snapshot);
                self.client.handle_snapshot(now, &withheld)
            }
            Some(ClientPart::Kinds) => {
                // All players except the own one become apples.
                let own = self.player.entity();
                let falling = with_bodies(snapshot, |id, body| match body.kind {
                    BodyKind::Player if id != own => ArenaBody { kind: BodyKind::Apple, ..*body },
                    _ => *body,
                });
                self.client.handle_snapshot(now, &falling)
            }
            Some(ClientPart::FirstRunMark | ClientPart::Honesty | ClientPart::SharedWeapons | ClientPart::Truth(_))
            | None => self.client.handle_snapshot(now, snapshot),
        }
    }

    fn draw_others(&mut self, now: Micros) {
        self.client.draw_others(now);
    }

    fn command(&mut self, now: Micros, input: &Input) -> ClientFrameOutput<Arena> {
        let mut commanded = self.client.command(now, input);
        self.packets += 1;
        commanded.packet.number = self.packets;
        let seq = commanded.command.seq;
        if let Some(results) = &self.results {
            results.note(&commanded.shots);
        }
        match self.part {
            Some(ClientPart::FirstRunMark) => {
                let again = commanded.ran.saturating_sub(1);
                while self.effects.pop_front_if(|(made, _)| made.0 + again < seq.0).is_some() {}
                let first = std::mem::take(&mut commanded.effects);
                commanded.effects.extend(self.effects.iter().flat_map(|(_, effects)| effects).cloned());
                commanded.effects.extend(&first);
                self.effects.push_back((seq, first));
            }
            Some(ClientPart::ClientOnlyState) => self.in_flight.push_back((seq, now, input.clone())),
            Some(ClientPart::Honesty) => {
                let elsewhere = |own: ArenaBody| ArenaBody { origin: own.origin + Vec3::X * 1000.0, ..own };
                commanded.predicted = commanded.predicted.map(elsewhere);
            }
            Some(ClientPart::Truth(lie)) => lie.put_in(&mut commanded.packet, self.newest),
            Some(
                ClientPart::TeleportFlag
                | ClientPart::Warnings
                | ClientPart::Constants
                | ClientPart::SharedWeapons
                | ClientPart::Kinds,
            )
            | None => {}
        }
        commanded
    }

    fn handle_sent(&mut self, packet: &ClientPacket, bytes: u16) {
        self.client.handle_sent(packet, bytes);
    }

    fn drawn(&self) -> &[(EntityId, PlacedBody<ArenaBody>)] {
        self.client.drawn()
    }

    fn drawn_at(&self) -> Micros {
        self.client.drawn_at()
    }

    fn predicted(&self) -> Option<&ArenaBody> {
        self.client.predicted()
    }
}

fn with_bodies(
    snapshot: &Snapshot<ArenaBody>,
    mut change: impl FnMut(EntityId, &ArenaBody) -> ArenaBody,
) -> Snapshot<ArenaBody> {
    let entities = snapshot.frame.entities.iter().map(|(id, body)| (*id, change(*id, body)));
    let frame = Frame { entities: entities.collect(), ..(*snapshot.frame).clone() };
    Snapshot { frame: Arc::new(frame), ..snapshot.clone() }
}

/// The shot results of a client by its own screen: the queue of results to send, and the results that the server
/// received.
#[derive(Clone, Debug, Default)]
pub(super) struct ShotConfirmations {
    to_tell: Arc<Mutex<VecDeque<ScreenHit>>>,
    heard: Arc<Mutex<Vec<(PlayerId, ScreenHit)>>>,
}

/// A shot that hit on its shooter's screen.
#[derive(Clone, Copy, Debug)]
struct ScreenHit {
    command: CommandSeq,
    target: EntityId,
}

impl ShotConfirmations {
    /// Queues the shots that hit on the client's own screen.
    fn note(&self, shots: &[PredictedShot<ArenaFire>]) {
        let hit = |shot: &PredictedShot<ArenaFire>| {
            Some(ScreenHit { command: shot.command, target: shot.verdict.main_wound()?.target })
        };
        if let Ok(mut to_tell) = self.to_tell.lock() {
            to_tell.extend(shots.iter().filter_map(hit));
        }
    }

    /// Returns the channel by which this player's client reports: requests.
    pub(super) fn told_by(&self, player: PlayerId) -> ClientRequests {
        let (telling, hearing) = (self.clone(), self.clone());
        ClientRequests {
            player,
            next: Box::new(move || telling.next_message()),
            on_arrival: Box::new(move |player, what| hearing.hear(player, &what)),
        }
    }

    /// Returns the number of results that reached the server.
    pub(super) fn heard(&self) -> usize {
        self.heard.lock().map_or(0, |heard| heard.len())
    }

    fn next_message(&self) -> Option<RequestKind> {
        let mut to_tell = self.to_tell.lock().ok()?;
        let together = (to_tell.len() >= MESSAGE_RESULTS).then(|| to_tell.drain(..MESSAGE_RESULTS))?;
        let bytes = |sent: ScreenHit| [sent.command.0.to_le_bytes().as_slice(), &sent.target.0.to_le_bytes()].concat();
        Some(RequestKind::Game { bytes: together.flat_map(bytes).collect() })
    }

    fn hear(&self, player: PlayerId, what: &RequestKind) {
        let RequestKind::Game { bytes } = what else { return };
        let sent = |bytes: &[u8; RESULT_BYTES]| {
            let [a, b, c, d, e, f] = *bytes;
            ScreenHit {
                command: CommandSeq(u32::from_le_bytes([a, b, c, d])),
                target: EntityId(u16::from_le_bytes([e, f])),
            }
        };
        if let Ok(mut heard) = self.heard.lock() {
            heard.extend(bytes.as_chunks().0.iter().map(|bytes| (player, sent(bytes))));
        }
    }
}

/// The real server, except that a shot judged as a miss becomes a hit when its shooter says so.
pub(super) struct TrustingServer {
    server: Server<Arena>,
    rules: Arc<ArenaRules>,
    /// The received results that it believes.
    pub(super) results: ShotConfirmations,
    /// The number of received results that it has processed.
    taken: usize,
    /// Results of shots that are not judged yet. A result may arrive together with its usercmd.
    early: Vec<(PlayerId, ScreenHit)>,
    usercmds: SortedMap<(PlayerId, CommandSeq), Usercmd>,
    judged: SortedMap<(PlayerId, CommandSeq), (ArenaFire, Rewind<ArenaBody>)>,
    /// Shots that are judged again.
    again: VecDeque<JudgedShot<Arena>>,
}

impl TrustingServer {
    fn act_on_what_was_told(&mut self) {
        let sent = self.results.heard.lock().map_or_else(|_| Vec::new(), |heard| heard[self.taken..].to_vec());
        self.taken += sent.len();
        self.early.extend(sent);
        let mut world = self.server.world().clone();
        for (shooter, sent) in std::mem::take(&mut self.early) {
            let shot = (shooter, sent.command);
            let Some((command, (fire, rewind))) = self.usercmds.get(&shot).zip(self.judged.get(&shot)) else {
                self.early.push((shooter, sent));
                continue;
            };
            let Muzzle::Bullets { damage, .. } = self.rules.weapon(fire.weapon).shot else { continue };
            let wound = DamageShare { target: sent.target, hitgroup: 0, damage, pellets: 1 };
            let verdict = ShotVerdict { reason: HitResult::Hit, wounds: vec![wound] };
            Arena::apply(&self.rules, &mut world, shooter, command, fire, &verdict, &mut DiscardingSink);
            let (fire, rewind) = (*fire, rewind.clone());
            self.again.push_back(JudgedShot {
                shooter,
                command: sent.command,
                index: 0,
                fire,
                verdict,
                rewind,
                rejudged: Vec::new(),
            });
        }
        // The real server accepts a new world at any time, although sessions set it only before the first tick.
        self.server.begin_from(world);
    }
}

impl ServerPipeline<Arena> for TrustingServer {
    fn new(setup: Setup<Arena>, players: u16) -> TrustingServer {
        TrustingServer {
            rules: Arc::clone(&setup.rules),
            server: Server::new(setup, players),
            results: ShotConfirmations::default(),
            taken: 0,
            early: Vec::new(),
            usercmds: SortedMap::new(),
            judged: SortedMap::new(),
            again: VecDeque::new(),
        }
    }

    fn begin_from(&mut self, world: ArenaWorld) {
        self.server.begin_from(world);
    }

    fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket) {
        self.usercmds.extend(packet.commands.iter().map(|command| ((player, command.seq), command.clone())));
        self.server.handle_packet(now, player, packet);
    }

    fn tick(&mut self, now: Micros) -> TickOutcome {
        self.act_on_what_was_told();
        self.server.tick(now)
    }

    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<ArenaBody>)> {
        self.server.poll_snapshot()
    }

    fn handle_sent(&mut self, player: PlayerId, frame: Arc<Frame<ArenaBody>>, bytes: Option<u16>) {
        self.server.handle_sent(player, frame, bytes);
    }

    fn poll_event(&mut self) -> Option<TickEvent<Arena>> {
        if let Some(judged) = self.again.pop_front() {
            return Some(TickEvent::Judged(judged));
        }
        let event = self.server.poll_event()?;
        if let TickEvent::Judged(JudgedShot { shooter, command, fire, verdict, rewind, .. }) = &event
            && verdict.reason != HitResult::Hit
        {
            self.judged.insert((*shooter, *command), (*fire, rewind.clone()));
        }
        Some(event)
    }

    fn world(&self) -> &ArenaWorld {
        self.server.world()
    }

    fn check_rollback(&mut self, every: u32) -> bool {
        self.server.check_rollback(every)
    }

    fn rollbacks(&self) -> Option<Rollbacks> {
        self.server.rollbacks()
    }
}
