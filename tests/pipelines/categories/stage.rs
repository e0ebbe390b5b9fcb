//! A session in virtual time under the test's control: the players' input, the links, and the contents of arriving
//! snapshots. It keeps every screen and the server's state of every tick.

use std::sync::Arc;

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaMap, ArenaRules, BodyKind};
use hitreg::client::Client;
use hitreg::game::{PlacedBody, Simulate};
use hitreg::history::Frame;
use hitreg::link::{Link, LinkModel, ModelledLink};
use hitreg::packet::{ClientPacket, Snapshot};
use hitreg::pipeline::{ClientPipeline, ServerPipeline, Setup};
use hitreg::server::Server;
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, Tick};
use hitreg::usercmd::Input;

/// The time grid: a tick and a client frame have 25 steps.
const STEP: Micros = Micros(625);
pub(crate) const TICK: Micros = Micros(15_625);

pub(crate) struct CategoryStage {
    pub rules: Arc<ArenaRules>,
    server: Server<Arena>,
    pub seats: Vec<StageClient>,
    at: Micros,
    /// The server's entities after each tick.
    pub truth: Vec<Frame<ArenaBody>>,
}

pub(crate) struct StageClient {
    client: Client<Arena>,
    up: ModelledLink,
    down: ModelledLink,
    to_server: Vec<(Micros, ClientPacket)>,
    to_client: Vec<(Micros, Snapshot<ArenaBody>)>,
    newest: Option<Snapshot<ArenaBody>>,
    last_ms: i64,
    pub screens: Vec<Screen>,
}

/// The screen of one player in one client frame.
pub(crate) struct Screen {
    pub at: Micros,
    pub drawn: Vec<(EntityId, PlacedBody<ArenaBody>)>,
    pub own: Option<PlacedBody<ArenaBody>>,
    /// The newest snapshot that had arrived.
    pub newest: Snapshot<ArenaBody>,
    /// The usercmds whose shots were fired in this frame.
    pub shots: Vec<CommandSeq>,
}

/// The test's decisions about a session.
pub(crate) struct StageControls<'a> {
    /// The input of a player. The stage fills in the duration.
    pub input: &'a mut dyn FnMut(u16, Micros) -> Input,
    /// May change a snapshot as it arrives at a player, or drop it (`false`).
    pub on_snapshot: &'a mut dyn FnMut(u16, Micros, &mut Snapshot<ArenaBody>) -> bool,
    /// Whether a packet that a player sends now may reach the server.
    pub reaches_server: &'a mut dyn FnMut(u16, Micros) -> bool,
}

impl CategoryStage {
    pub(crate) fn new(players: u16, link: &LinkModel, seed: u64, changes: &[&str]) -> CategoryStage {
        let mut settings = Settings::default();
        for pair in ["interpolation.mode=category", "lag_compensation.enabled=false"].iter().chain(changes) {
            settings.set_pair(pair).expect("a good setting");
        }
        let (rules, settings, seed) = (Arc::new(ArenaRules::new(ArenaMap::orchard())), Arc::new(settings), Seed(seed));
        let seat = |player: u16| StageClient {
            client: Client::new(
                Setup { rules: Arc::clone(&rules), settings: Arc::clone(&settings), seed },
                PlayerId(player),
            ),
            up: ModelledLink::new(link.clone(), seed, u64::from(player) * 2),
            down: ModelledLink::new(link.clone(), seed, u64::from(player) * 2 + 1),
            to_server: Vec::new(),
            to_client: Vec::new(),
            newest: None,
            last_ms: 0,
            screens: Vec::new(),
        };
        let seats = (0..players).map(seat).collect();
        let server = Server::new(Setup { rules: Arc::clone(&rules), settings: Arc::clone(&settings), seed }, players);
        CategoryStage { rules, server, seats, at: Micros::ZERO, truth: Vec::new() }
    }

    pub(crate) fn run_until(&mut self, end: Micros, play: &mut StageControls<'_>) {
        while self.at < end {
            self.at += STEP;
            for player in 0..self.seats.len() {
                let (due, waiting) =
                    std::mem::take(&mut self.seats[player].to_server).into_iter().partition(|(at, _)| *at <= self.at);
                self.seats[player].to_server = waiting;
                for (_, packet) in due {
                    self.server.handle_packet(self.at, PlayerId(player as u16), packet);
                }
            }
            if self.at.0 % TICK.0 == 0 {
                self.tick();
            }
            for player in 0..self.seats.len() {
                self.seats[player].hear(self.at, player as u16, play);
                // The clients' frames are at different times.
                if (self.at.0 + 1_875 * (player as i64 + 1)) % TICK.0 == 0 {
                    self.seats[player].frame(self.at, player as u16, play);
                }
            }
        }
    }

    fn tick(&mut self) {
        self.server.tick(self.at);
        while self.server.poll_event().is_some() {}
        let entities = Arena::entities(self.server.world()).to_vec();
        self.truth.push(Frame { tick: Tick(self.truth.len() as u32 + 1), server_time: self.at, entities });
        while let Some((player, snapshot)) = self.server.poll_snapshot() {
            self.server.handle_sent(player, Arc::clone(&snapshot.frame), None);
            let seat = &mut self.seats[usize::from(player.0)];
            for arrival in seat.down.send(self.at, snapshot.nominal_bytes()).arrivals() {
                seat.to_client.push((arrival, snapshot.clone()));
            }
        }
    }

    /// The position at which a player first appeared.
    pub(crate) fn first_place(&mut self, player: u16) -> Vec3 {
        let body = self.server.world().entity(EntityId(player));
        body.expect("a player").origin
    }

    /// The first view direction of a player, in degrees: towards the middle of the map.
    pub(crate) fn first_yaw_deg(&mut self, player: u16) -> f32 {
        let body = self.server.world().entity(EntityId(player));
        body.expect("a player").viewangles.y
    }

    /// The server's last state of an entity at or before a time, and its age.
    pub(crate) fn truth_at(&self, at: Micros, entity: EntityId) -> Option<(&ArenaBody, Micros)> {
        let after = self.truth.partition_point(|frame| frame.server_time <= at);
        let frame = &self.truth[after.checked_sub(1)?];
        Some((frame.get(entity)?, at - frame.server_time))
    }

    /// The entities of a kind, in map order.
    pub(crate) fn all_of(&self, kind: BodyKind) -> Vec<EntityId> {
        self.truth[0].entities.iter().filter(|(_, body)| body.kind == kind).map(|(id, _)| *id).collect()
    }
}

impl StageClient {
    fn hear(&mut self, now: Micros, player: u16, play: &mut StageControls<'_>) {
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.to_client).into_iter().partition(|(at, _)| *at <= now);
        self.to_client = waiting;
        due.sort_by_key(|(at, snapshot)| (*at, snapshot.seq));
        for (_, mut snapshot) in due {
            if !(play.on_snapshot)(player, now, &mut snapshot) {
                continue;
            }
            self.client.handle_snapshot(now, &snapshot);
            if self.newest.as_ref().is_none_or(|newest| newest.seq < snapshot.seq) {
                self.newest = Some(snapshot);
            }
        }
    }

    fn frame(&mut self, now: Micros, player: u16, play: &mut StageControls<'_>) {
        self.client.draw_others(now);
        let msec = (now.0 / 1_000 - self.last_ms) as u8;
        self.last_ms = now.0 / 1_000;
        let commanded = self.client.command(now, &Input { msec, ..(play.input)(player, now) });
        let fate = self.up.send(now, commanded.packet.nominal_bytes());
        if (play.reaches_server)(player, now) {
            self.to_server.extend(fate.arrivals().map(|at| (at, commanded.packet.clone())));
        }
        let Some(newest) = self.newest.clone() else { return };
        self.screens.push(Screen {
            at: now,
            drawn: self.client.drawn().to_vec(),
            own: commanded.own,
            newest,
            shots: commanded.shots.iter().map(|shot| shot.command).collect(),
        });
    }
}

impl Screen {
    pub(crate) fn of(&self, entity: EntityId) -> Option<&PlacedBody<ArenaBody>> {
        self.drawn.iter().find(|(id, _)| *id == entity).map(|(_, placed)| placed)
    }

    /// The client timeline.
    pub(crate) fn own_time(&self) -> Micros {
        self.own.as_ref().and_then(|own| own.by).expect("the own avatar is drawn").at
    }
}

/// Changes one entity in a snapshot.
pub(crate) fn change(snapshot: &mut Snapshot<ArenaBody>, entity: EntityId, how: impl FnOnce(&mut ArenaBody)) {
    let mut frame = Frame::clone(&snapshot.frame);
    if let Some((_, body)) = frame.entities.iter_mut().find(|(id, _)| *id == entity) {
        how(body);
    }
    snapshot.frame = Arc::new(frame);
}
