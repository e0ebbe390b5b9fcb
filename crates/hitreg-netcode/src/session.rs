//! Sessions. `sequence` defines the steps of a tick and of a client frame for all drivers of server and clients.
//! [`Machine`] runs a whole session in virtual time. The same machine records a synthetic session and replays any
//! recorded one.

mod bots;
mod network;
mod queue;
mod record;
pub mod scenario;
pub mod sequence;
mod unencoded;

use crate::game::Game;
use crate::link::Link;
use crate::packet::ReceivedPacket;
use crate::pipeline::{ClientPipeline, Netcode, ServerPipeline, Setup};
use crate::state::{KnownRecords, StateError, StateReader, StateValue, StateWriter, check};
pub use bots::{BotInput, BotPlayer, LateFrames, frame_phase};
use hitreg_log::units::{Micros, PlayerId};
use hitreg_log::usercmd::Input;
pub(crate) use network::TransportKind;
pub use network::{ClientRequests, InjectedDatagram, Intruder, Links};
use network::{DeliveredPacket, NetworkEnd, SessionNetwork};
use queue::QueuedEvent;
pub use record::{BatchReceiver, RecordBatcher, RecordSink, SessionRecorder};
pub use scenario::{SynthError, record_synthetic, record_synthetic_while};
use sequence::FrameInput;
pub use sequence::{Observer, PlayerScreen, ScreenView, SessionEvent, SnapshotSize};

/// The source of usercmds: bots that react to the screen, or a recording.
pub trait InputSource<G: Game> {
    /// Returns the time of the player's next client frame. Returns `None` when there are no more, or none within many
    /// ticks.
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros>;

    /// Returns whether a player who has nothing queued may still have input. The machine then asks again after each
    /// tick.
    fn has_more(&self, _player: PlayerId) -> bool {
        false
    }

    /// Returns the next player who has left by `at`, the time of a tick.
    fn next_left(&mut self, _at: Micros) -> Option<PlayerId> {
        None
    }

    /// Returns the player's input in a frame. Called once for each frame, in the order of time.
    fn input(&mut self, at: Micros, screen: &PlayerScreen<'_, G>) -> Input;

    /// Returns whether the input depends on what is drawn. If neither it nor the observer needs drawing, the client may
    /// skip it.
    fn needs_drawing(&self) -> bool {
        true
    }

    /// Returns the next packet, and its arrival time, of a player for whom the recording has only what the server
    /// received. Such a player has no frames.
    fn next_heard(&mut self, _player: PlayerId) -> Option<(Micros, ReceivedPacket)> {
        None
    }
}

/// A session in virtual time: the server, the clients, their connections, and the links between them. The driver supplies
/// the times of ticks, the players' input and the links. Both pipelines are the netcode's own, unless
/// [`Machine::with_clients`] replaces them.
///
/// At equal times, packets reach the server before it ticks, and snapshots reach clients before their frames. Among
/// equal events, the lower player goes first. This order is part of the format, because replays depend on it.
pub struct Machine<G: Netcode, L, C = <G as Netcode>::Client, S = <G as Netcode>::Server> {
    server: S,
    clients: Vec<C>,
    network: SessionNetwork<G::Body, L>,
    /// The number of corrections of each client so far.
    corrections: Vec<u32>,
    /// The players who had nothing queued just after the tick at which the machine resumes; `None` before the first
    /// tick.
    idle_at_resume: Option<Vec<PlayerId>>,
}

hitreg_log::partial_debug!([G: Netcode, L, C, S] Machine<G, L, C, S> {});

impl<G: Netcode, L: Link> Machine<G, L> {
    /// Creates a machine before its first tick, with one connected player for each pair of links.
    pub fn new(setup: &Setup<G>, links: Vec<Links<L>>) -> Machine<G, L> {
        Self::with_clients(setup, links, G::Client::new)
    }

    /// Creates a machine whose packets travel unencoded, which is several times faster. Returns `None` when packet
    /// sizes are sure to matter. [`Machine::needs_encoding`] says after the run whether they did.
    pub fn unencoded(setup: &Setup<G>, links: Vec<Links<L>>) -> Option<Machine<G, L>> {
        Some(Self::with_network(setup, SessionNetwork::unencoded(setup, links)?, G::Client::new))
    }
}

impl<G: Netcode, L: Link, C: ClientPipeline<G>, S: ServerPipeline<G>> Machine<G, L, C, S> {
    /// Like [`Machine::new`], but with another kind of client or server.
    pub fn with_clients(setup: &Setup<G>, links: Vec<Links<L>>, client: impl Fn(Setup<G>, PlayerId) -> C) -> Self {
        Self::with_network(setup, SessionNetwork::new::<G>(setup, links), client)
    }

    fn with_network(
        setup: &Setup<G>,
        network: SessionNetwork<G::Body, L>,
        client: impl Fn(Setup<G>, PlayerId) -> C,
    ) -> Machine<G, L, C, S> {
        let players = network.players();
        Machine {
            server: S::new(setup.clone(), players),
            clients: (0..players).map(|player| client(setup.of_player(PlayerId(player)), PlayerId(player))).collect(),
            network,
            corrections: vec![0; usize::from(players)],
            idle_at_resume: None,
        }
    }

    /// Runs from the first tick to the last and reports every event to the observer. Events that follow the last tick,
    /// such as a client frame at its time, do not happen.
    pub fn run(
        &mut self,
        ticks: impl IntoIterator<Item = Micros>,
        input: &mut dyn InputSource<G>,
        observer: &mut dyn Observer<G>,
    ) {
        self.run_with_state(&mut ticks.into_iter(), input, observer, &mut |_| {});
    }

    /// Like [`Machine::run`], and calls `after_tick` with the machine's state after each tick.
    pub(crate) fn run_with_state(
        &mut self,
        ticks: &mut dyn Iterator<Item = Micros>,
        input: &mut dyn InputSource<G>,
        observer: &mut dyn Observer<G>,
        after_tick: &mut AfterTickFn<'_, G, L, C, S>,
    ) {
        let Some(first) = ticks.next() else { return };
        self.network.queue.push(first, PlayerId(0), 0, QueuedEvent::Tick);
        // Players who have nothing queued but may still have input.
        let mut idle = Vec::new();
        let all = || (0..self.clients.len()).map(|player| PlayerId(player as u16)).collect();
        for player in self.idle_at_resume.take().unwrap_or_else(all) {
            self.queue_next(player, input, observer, &mut idle);
        }
        while let Some((at, player, event)) = self.network.queue.pop() {
            match event {
                QueuedEvent::Tick => {
                    while let Some(player) = input.next_left(at) {
                        self.server.handle_left(player);
                    }
                    sequence::tick::<G>(&mut self.server, &mut self.network, at, observer);
                    after_tick(&AfterTick { machine: self, idle: &idle, at });
                    for player in std::mem::take(&mut idle) {
                        self.queue_next(player, input, observer, &mut idle);
                    }
                    let Some(next) = ticks.next() else { return };
                    self.network.queue.push(next, PlayerId(0), 0, QueuedEvent::Tick);
                }
                QueuedEvent::Frame => {
                    let client = &mut self.clients[usize::from(player.0)];
                    let end = &mut NetworkEnd { network: &mut self.network, player };
                    let needs_drawing = input.needs_drawing();
                    let read = |screen: &PlayerScreen<'_, G>| input.input(at, screen);
                    sequence::frame(client, end, at, player, FrameInput { needs_drawing, read }, observer);
                    self.queue_next(player, input, observer, &mut idle);
                }
                arrived => {
                    let is_heard = matches!(arrived, QueuedEvent::Heard(_));
                    self.handle_arrival(at, player, arrived, observer);
                    if is_heard {
                        self.queue_next(player, input, observer, &mut idle);
                    }
                }
            }
            if self.network.needs_encoding() {
                return;
            }
        }
    }

    /// Hands an arrived packet to the server, or an arrived snapshot to the player's client.
    fn handle_arrival(
        &mut self,
        at: Micros,
        player: PlayerId,
        arrived: QueuedEvent<G::Body>,
        observer: &mut dyn Observer<G>,
    ) {
        match self.network.deliver(at, player, arrived) {
            Some(DeliveredPacket::Packet(received)) => {
                sequence::packet_reached::<G>(&mut self.server, at, player, received, observer);
            }
            Some(DeliveredPacket::Snapshot(snapshot)) => {
                let index = usize::from(player.0);
                let is_corrected =
                    sequence::snapshot_received(&mut self.clients[index], at, player, &snapshot, observer);
                self.corrections[index] = self.corrections[index].saturating_add(is_corrected.into());
            }
            None => {}
        }
    }

    /// Queues the player's next frame, or the next packet of a player who has packets only.
    fn queue_next(
        &mut self,
        player: PlayerId,
        input: &mut dyn InputSource<G>,
        observer: &dyn Observer<G>,
        idle: &mut Vec<PlayerId>,
    ) {
        if observer.is_over() {
            return;
        }
        if let Some(at) = input.next_frame(player) {
            self.network.queue.push(at, player, 0, QueuedEvent::Frame);
        } else if let Some((at, heard)) = input.next_heard(player) {
            self.network.queue.push(at, player, heard.packet.number, QueuedEvent::Heard(heard));
        } else if input.has_more(player) {
            idle.push(player);
        }
    }

    /// Lets an intruder see all datagrams of the session and send others.
    pub fn add_intruder(&mut self, intruder: Box<dyn Intruder>) {
        self.network.intruder = Some(intruder);
    }

    /// Lets one player's client send its own acks, true or false.
    pub fn forge_acks(&mut self, player: PlayerId) {
        self.network.ack_forger = Some(player);
    }

    /// Lets one player's client make requests besides sending usercmds.
    pub fn add_requests(&mut self, requests: ClientRequests) {
        self.network.client_requests = Some(requests);
    }

    /// Returns the server.
    pub fn server(&mut self) -> &mut S {
        &mut self.server
    }

    /// Lets the clients leave out the causes of corrections, see [`ClientPipeline::skip_causes`].
    pub(crate) fn skip_causes(&mut self) {
        self.clients.iter_mut().for_each(ClientPipeline::skip_causes);
    }

    /// Returns whether the machine stopped because encoding could have made a difference. The session must then run
    /// again with [`Machine::new`]. Always false for a machine from [`Machine::new`].
    pub fn needs_encoding(&self) -> bool {
        self.network.needs_encoding()
    }

    /// Returns how packets and snapshots travel.
    pub(crate) fn transport_kind(&self) -> TransportKind {
        self.network.transport_kind()
    }

    /// Restores the saved state of another machine that has the same transport, and the numbers of corrections of its
    /// clients. Links, input and ticks must continue from that time.
    pub(crate) fn restore(
        &mut self,
        known: &KnownRecords<G::Body>,
        corrections: &[u32],
        from: &mut StateReader,
    ) -> Result<(), StateError> {
        let idle = Vec::<PlayerId>::get(from)?;
        check(idle.iter().all(|player| usize::from(player.0) < self.clients.len()), "PlayerId")?;
        self.idle_at_resume = Some(idle);
        self.corrections.copy_from_slice(corrections);
        self.server.restore(from)?;
        self.clients.iter_mut().try_for_each(|client| client.restore(from))?;
        self.network.restore(known, from)
    }

    /// Returns the state after the tick at which the machine resumes; `None` before the first tick.
    pub(crate) fn resumed(&self, at: Micros) -> Option<AfterTick<'_, G, L, C, S>> {
        self.idle_at_resume.as_ref().map(|idle| AfterTick { machine: self, idle, at })
    }
}

/// The state of a machine just after a tick, ready to be saved.
pub(crate) struct AfterTick<'m, G: Netcode, L, C, S = <G as Netcode>::Server> {
    machine: &'m Machine<G, L, C, S>,
    idle: &'m [PlayerId],
    /// The time of the tick.
    pub(crate) at: Micros,
}

/// Takes the state of a machine after each tick.
pub(crate) type AfterTickFn<'l, G, L, C, S> = dyn FnMut(&AfterTick<'_, G, L, C, S>) + 'l;

impl<G: Netcode, L: Link, C: ClientPipeline<G>, S: ServerPipeline<G>> AfterTick<'_, G, L, C, S> {
    /// Returns the number of corrections of each client so far.
    pub(crate) fn corrections(&self) -> &[u32] {
        &self.machine.corrections
    }

    /// Returns how packets and snapshots travel.
    pub(crate) fn transport_kind(&self) -> TransportKind {
        self.machine.transport_kind()
    }

    /// Saves all state except the external inputs: links, usercmds and ticks. Returns false when the state cannot be
    /// saved.
    pub(crate) fn save(&self, known: Option<&KnownRecords<G::Body>>, to: &mut StateWriter) -> bool {
        let Machine { server, clients, network, corrections: _, idle_at_resume: _ } = self.machine;
        self.idle.to_vec().put(to);
        server.save(to) && clients.iter().all(|client| client.save(to)) && network.save(known, to)
    }
}
