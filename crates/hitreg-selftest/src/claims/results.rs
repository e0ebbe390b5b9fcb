//! A client that reports the results of its own shots to the server, and a wrapper around the real server that believes
//! the reports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hitreg_arena::{Arena, ArenaBody, ArenaFire, ArenaRules, ArenaWorld, Muzzle};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};
use hitreg_log::usercmd::Usercmd;
use hitreg_netcode::game::{DamageShare, DiscardingSink, Judge as _, Reason, ShotVerdict};
use hitreg_netcode::history::Frame;
use hitreg_netcode::packet::{ClientPacket, Snapshot};
use hitreg_netcode::pipeline::{Event, JudgedShot, Rewind, Rollbacks, ServerPipeline, Setup, TickOutcome};
use hitreg_netcode::server::Server;
use hitreg_netcode::session::ClientAsk;
use hitreg_netcode::wire::RequestKind;

/// The number of results in one message.
const TOGETHER: usize = 6;
/// The bytes of one result: a usercmd number and an entity id.
const RESULT_BYTES: usize = 6;

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
    pub(super) fn note(&self, shots: &[(CommandSeq, u8, ArenaFire, ShotVerdict)]) {
        let hit = |(command, _, _, verdict): &(CommandSeq, u8, ArenaFire, ShotVerdict)| {
            Some(ScreenHit { command: *command, target: verdict.main_wound()?.target })
        };
        if let Ok(mut to_tell) = self.to_tell.lock() {
            to_tell.extend(shots.iter().filter_map(hit));
        }
    }

    /// Returns the channel by which this player's client reports: requests.
    pub(super) fn told_by(&self, player: PlayerId) -> ClientAsk {
        let (telling, hearing) = (self.clone(), self.clone());
        ClientAsk {
            player,
            asks: Box::new(move || telling.next_message()),
            hears: Box::new(move |player, what| hearing.hear(player, &what)),
        }
    }

    /// Returns the number of results that reached the server.
    pub(super) fn heard(&self) -> usize {
        self.heard.lock().map_or(0, |heard| heard.len())
    }

    fn next_message(&self) -> Option<RequestKind> {
        let mut to_tell = self.to_tell.lock().ok()?;
        let together = (to_tell.len() >= TOGETHER).then(|| to_tell.drain(..TOGETHER))?;
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
    results: ShotConfirmations,
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
    /// Starts to believe the received results.
    pub(super) fn believe(&mut self, results: ShotConfirmations) {
        self.results = results;
    }

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
            let verdict = ShotVerdict { reason: Reason::Hit, wounds: vec![wound] };
            Arena::apply(&self.rules, &mut world, shooter, command, fire, &verdict, &mut DiscardingSink);
            let (fire, rewind) = (*fire, rewind.clone());
            self.again.push_back(JudgedShot {
                shooter,
                command: sent.command,
                index: 0,
                fire,
                verdict,
                rewind,
                also: Vec::new(),
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

    fn poll_event(&mut self) -> Option<Event<Arena>> {
        if let Some(judged) = self.again.pop_front() {
            return Some(Event::Judged(judged));
        }
        let event = self.server.poll_event()?;
        if let Event::Judged(JudgedShot { shooter, command, fire, verdict, rewind, .. }) = &event
            && verdict.reason != Reason::Hit
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
