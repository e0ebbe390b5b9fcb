//! The server of a live session, and the standalone server. One thread passes datagrams and ticks to the server pipeline,
//! each with a unique time, and records these inputs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::LiveError;
use crate::loopback::live_header;
use crate::session::{
    Counters, LiveReport, LiveSink, MainLoop, MonotonicClock, RecordSender, Schedule, WAITING_RECORDS,
};
use crate::socket::{
    LOOK_UP_EVERY, Outbound, ReceivedDatagram, WAITING_DATAGRAMS, open, read_from, receive, spawn, wait_for,
};
use crate::welcome::{self, GrantLimits, OwnSettings, Welcome, WelcomeError, with_own};
use hitreg_log::record::{RecordedSide, SessionHeader, SessionId};
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::game::{Body, Bots};
use hitreg_netcode::packet::{ReceivedPacket, Snapshot};
use hitreg_netcode::pipeline::{Netcode, ServerPipeline, Setup};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::scenario::Scenario;
use hitreg_netcode::session::sequence::{self, PackedSnapshot, ServerEnds};
use hitreg_netcode::session::{SessionRecorder, SynthError};
use hitreg_netcode::settings::Settings;
use hitreg_netcode::wire::{
    ClientRequest, Endpoint, EndpointOptions, IncomingMessage, LeaveReason, Notice, ReadyCount, RequestKind,
    ServerConnection, ServerEvent, SharedStates,
};

/// A tick that is late by this much follows a stall of the whole process.
const STALL: Micros = Micros::from_ms(50);

/// After a stall, the server waits this long for the thread that reads the socket.
const READER_WAKES: Micros = Micros::from_ms(10);

/// A client that is silent for this long counts as gone.
const TIMEOUT: Micros = Micros::from_s(10);

/// The same before the session begins: longer than a client waits for its server, so that a pause costs no slot.
const WAITING_TIMEOUT: Micros = Micros::from_s(6);

/// Where a server listens, and what it allows.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The limits on settings that clients request.
    pub limits: GrantLimits,
    /// The longest wait for all players; `None` for no limit.
    pub wait: Option<Micros>,
}

/// Serves a scenario's session over UDP, in real time, for clients that [`join`](super::join()). The
/// network between the machines replaces the scenario's links. Each client gets its requested settings within the limits.
/// The log's header holds the granted settings and is ready when all players are. Setting `stop` ends the session early
/// but cleanly.
///
/// # Errors
/// When the scenario cannot be run, when a socket or thread is not available, or when players are missing too long.
pub fn serve<G>(
    scenario: &Scenario,
    rules: &Arc<G::Rules>,
    options: ServeOptions,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<LiveReport, LiveError>
where
    G: Bots + Netcode,
{
    let session = SessionId(super::secret().0);
    let length = scenario.length();
    let mut header =
        SessionHeader { side: Some(RecordedSide { session, player: None }), ..live_header::<G>(scenario, rules)? };
    for player in &mut header.players {
        player.recorded = false;
    }
    let welcome = Welcome::new(&header, session, length)?;
    let settings = Arc::new(scenario.settings().map_err(SynthError::from)?);
    let socket = Arc::new(open(options.address)?);
    sink.listening(socket.local_addr().map_err(LiveError::Socket)?);
    let (clock, counters) = (MonotonicClock::start(), Counters::default());
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let lateness = std::thread::scope(|scope| {
        let (records, recorded) = sync_channel(WAITING_RECORDS);
        let (begins, begun) = sync_channel(1);
        let start = || {
            let serving = ServerSetup {
                slots: header.players.len() as u16,
                seed: header.seed,
                settings,
                clock,
                outbound: Outbound { socket: Arc::clone(&socket), delays: None },
                inbox: read_from(scope, &socket, None, &over)?,
                records: RecordSender(records),
                counters: &counters,
                length,
                stop: &ending,
                joins: Some(JoinPolicy { welcome, limits: options.limits, wait: options.wait, begins }),
            };
            let rules = Arc::clone(rules);
            spawn(scope, "server", move || run::<G>(serving, rules))
        };
        let ran = start().and_then(|server| {
            let main_loop = MainLoop { clock, counters: &counters, stop, ending: &ending };
            if let Some(settings) = main_loop.wait(sink, &begun) {
                header.settings = settings.to_pairs();
                main_loop.begin(sink, &header);
            }
            main_loop.run(sink, &recorded);
            wait_for(server)
        });
        over.store(true, Ordering::Relaxed);
        ran
    })?;
    Ok(counters.report(lateness))
}

/// The parameters of a server.
pub(super) struct ServerSetup<'a> {
    /// The number of players that it waits for.
    pub(super) slots: u16,
    pub(super) seed: Seed,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: MonotonicClock,
    pub(super) outbound: Outbound,
    pub(super) inbox: Receiver<ReceivedDatagram>,
    pub(super) records: RecordSender,
    pub(super) counters: &'a Counters,
    /// The length of the session.
    pub(super) length: Micros,
    /// Set when the session is to end.
    pub(super) stop: &'a AtomicBool,
    /// The settings for remote clients; `None` when all clients run in this process.
    pub(super) joins: Option<JoinPolicy>,
}

/// The welcome and the limits for remote clients.
pub(super) struct JoinPolicy {
    pub(super) welcome: Welcome,
    pub(super) limits: GrantLimits,
    /// The longest wait for all players; `None` for no limit.
    pub(super) wait: Option<Micros>,
    /// Receives the session's settings when it begins, including each player's own settings.
    pub(super) begins: SyncSender<Settings>,
}

/// Waits for all players, runs the session to its end, and sends farewells. Returns the lateness of each tick in µs.
pub(super) fn run<G: Netcode>(serving: ServerSetup<'_>, rules: Arc<G::Rules>) -> Result<Vec<u32>, LiveError> {
    let longest_wait = serving.joins.as_ref().and_then(|joins| joins.wait);
    let ServerSetup { slots, clock, inbox, counters, .. } = serving;
    let common = serving.joins.as_ref().map_or(Ok(Vec::new()), |joins| joins.welcome.encode())?;
    let options = EndpointOptions {
        game: G::NAME.to_owned(),
        slots,
        welcome: common,
        unready_per_host: (slots / 2).max(2),
        secret: super::secret(),
    };
    let mut ends = ServerConnections {
        endpoint: Endpoint::new(options),
        slots: (0..slots).map(|_| PlayerSlot::new(None)).collect(),
        states: SharedStates::default(),
        message_max_bytes: serving.settings.wire.message_max_bytes.unsigned_abs() as usize,
        settings: serving.settings,
        joins: serving.joins,
        outbound: serving.outbound,
        counters,
        accept_input: ServerConnection::accept_input::<G::Input>,
        running: false,
    };
    let is_over = || serving.stop.load(Ordering::Relaxed);
    counters.lock().slots = slots.into();
    let waits_since = clock.now();
    while !is_over() && ends.ready() < slots {
        if let Some((from, bytes)) = receive(&inbox, LOOK_UP_EVERY)? {
            ends.handle_datagram(clock.stamp(), from, &bytes);
        }
        ends.expire(clock.now());
        if let Some(waited) = longest_wait.filter(|longest| clock.now() - waits_since >= *longest) {
            let ready = ends.ready();
            ends.say_farewell(clock.now());
            return Err(LiveError::PlayersMissing { ready, slots, waited });
        }
    }
    let settings = ends.begin_session()?;
    let tick_hz = settings.server.tick_hz;
    let mut records = serving.records;
    // Remote clients may not provide a log, so the server records the packets that it receives from them.
    let heard = (0..slots).map(PlayerId).filter(|_| ends.joins.is_some());
    let mut server = LiveServer::<G> {
        clock,
        server: G::Server::new(Setup { rules, settings, seed: serving.seed }, slots),
        recorder: SessionRecorder::new(&mut records).with_heard(heard),
        lateness: Vec::new(),
        ends,
    };
    let begins = clock.now();
    counters.lock().began_at.get_or_insert(begins);
    let mut schedule = Schedule::new(begins, tick_hz);
    let has_players = |ends: &ServerConnections<'_, G::Body>| ends.endpoint.players().next().is_some();
    let mut order = TurnOrder::new(tick_hz.interval());
    while !is_over() && schedule.due() - begins <= serving.length && has_players(&server.ends) {
        let due = schedule.due();
        match order.next(&inbox, clock.now(), due)? {
            ServerTurn::Tick => {
                server.tick(due);
                counters.count_server(|report| report.ticks_left_out += schedule.advance(clock.now()));
            }
            ServerTurn::Datagram((from, bytes)) => server.handle_datagram(from, &bytes),
            ServerTurn::Idle => {}
        }
    }
    server.ends.say_farewell(clock.now());
    Ok(server.lateness)
}

struct LiveServer<'a, G: Netcode> {
    clock: MonotonicClock,
    server: G::Server,
    recorder: SessionRecorder<'a, RecordSender, G>,
    lateness: Vec<u32>,
    ends: ServerConnections<'a, G::Body>,
}

/// What the server knows of a player.
struct PlayerSlot<B> {
    /// The connection; `None` until the player joins.
    connection: Option<ServerConnection<B>>,
    /// Whether the player has confirmed that it is ready.
    is_ready: bool,
    arrived: ArrivedPackets,
    /// The player's own settings.
    own: OwnSettings,
}

impl<B> PlayerSlot<B> {
    fn new(connection: Option<ServerConnection<B>>) -> PlayerSlot<B> {
        PlayerSlot { connection, is_ready: false, arrived: ArrivedPackets::default(), own: OwnSettings::new() }
    }
}

/// The server's ends of all connections, with their socket.
struct ServerConnections<'a, B> {
    endpoint: Endpoint,
    slots: Vec<PlayerSlot<B>>,
    /// The entity states that the connections share.
    states: SharedStates<B>,
    settings: Arc<Settings>,
    joins: Option<JoinPolicy>,
    message_max_bytes: usize,
    outbound: Outbound,
    counters: &'a Counters,
    /// Sets the game's input type on a new connection.
    accept_input: fn(&mut ServerConnection<B>),
    /// False until all players are ready.
    running: bool,
}

impl<G: Netcode> LiveServer<'_, G> {
    fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        let at = self.clock.stamp();
        if let Some((player, received)) = self.ends.handle_datagram(at, from, bytes) {
            let is_new = self.ends.slot(player).arrived.insert(received.packet.number);
            self.ends.counters.count_server(|report| {
                report.received += u64::from(is_new);
                report.repeated += u64::from(!is_new);
            });
            sequence::packet_reached::<G>(&mut self.server, at, player, received, &mut self.recorder);
        }
    }

    fn tick(&mut self, due: Micros) {
        for player in self.ends.absent() {
            self.server.handle_left(player);
        }
        let at = self.clock.stamp();
        self.lateness.push(u32::try_from((at - due).0).unwrap_or(u32::MAX));
        sequence::tick::<G>(&mut self.server, &mut self.ends, at, &mut self.recorder);
        self.ends.send_notices(at);
        self.ends.counters.count_server(|report| report.ticks += 1);
        self.ends.expire(self.clock.now());
    }
}

impl<B: Body> ServerConnections<'_, B> {
    /// Takes a datagram. Returns the packet that it carries for the server's pipeline; the caller ignores it before the
    /// session begins.
    fn handle_datagram(&mut self, at: Micros, from: SocketAddr, bytes: &[u8]) -> Option<(PlayerId, ReceivedPacket)> {
        match self.endpoint.handle_datagram(at, from, bytes) {
            IncomingMessage::Reply(reply) => self.outbound.send(from, &reply),
            IncomingMessage::Joined { player, key, request_data, reply, .. } => {
                let mut connection = ServerConnection::new(key, player, self.slots.len() as u16, at);
                connection.limit_messages(self.message_max_bytes);
                (self.accept_input)(&mut connection);
                *self.slot(player) = PlayerSlot::new(Some(connection));
                let own = self.grant(player, &request_data);
                self.outbound.send(from, &own.unwrap_or(reply));
            }
            IncomingMessage::Connection(player) => {
                match self.slot(player).connection.as_mut()?.handle_datagram(at, bytes) {
                    Ok(ServerEvent::Packet(received)) => return Some((player, received)).filter(|_| self.running),
                    Ok(ServerEvent::Waiting(count)) => self.handle_waiting(at, player, count),
                    Ok(ServerEvent::Left(_)) => self.endpoint.remove(at, player),
                    Ok(ServerEvent::Request(request)) => self.answer(player, request),
                    Ok(ServerEvent::IgnoredRequest | ServerEvent::NoticesAcked) => {}
                    Err(_) => self.counters.count_server(|report| report.refused += 1),
                }
            }
            IncomingMessage::Ignored(_) => self.counters.count_server(|report| report.refused += 1),
        }
        None
    }

    /// Grants a player's requested settings within the server's limits, and returns the acceptance that says so. If the
    /// acceptance does not fit into a datagram, the player gets the common settings.
    fn grant(&mut self, player: PlayerId, request_data: &[u8]) -> Option<Vec<u8>> {
        let joins = self.joins.as_ref()?;
        let granted = welcome::grant(request_data, player, &self.settings, joins.limits);
        let welcome = joins.welcome.granting(&self.settings, player, granted.clone()).ok()?.encode().ok()?;
        let reply = self.endpoint.welcome(player, welcome)?;
        self.slot(player).own = granted;
        Some(reply)
    }

    /// Stops admitting clients and returns the settings of the session.
    fn begin_session(&mut self) -> Result<Arc<Settings>, LiveError> {
        self.running = true;
        self.endpoint.close();
        let mut settings = (*self.settings).clone();
        for (player, slot) in (0..).map(PlayerId).zip(&self.slots) {
            settings = with_own(&settings, player, &slot.own).map_err(WelcomeError::from)?;
        }
        if let Some(joins) = &self.joins {
            // If the receiver has ended, the session is over.
            let _ = joins.begins.send(settings.clone());
        }
        Ok(Arc::new(settings))
    }

    fn slot(&mut self, player: PlayerId) -> &mut PlayerSlot<B> {
        &mut self.slots[usize::from(player.0)]
    }

    /// Sends a waiting client the number of ready players. Once the session runs, snapshots replace this message.
    fn handle_waiting(&mut self, now: Micros, player: PlayerId, count: ReadyCount) {
        self.slot(player).is_ready = count.ready > 0;
        self.endpoint.note_waiting(now, player, count.ready > 0);
        let waiting = ReadyCount { ready: self.ready(), slots: self.slots.len() as u16 };
        if self.running {
            return;
        }
        if let Some(connection) = &mut self.slot(player).connection {
            connection.send_waiting(waiting);
            self.transmit(player);
        }
    }

    /// Handles a client's request and acks it. Chat goes to all players, including the speaker.
    fn answer(&mut self, player: PlayerId, ClientRequest { number, what }: ClientRequest) {
        let chat = match what {
            RequestKind::ChatOoc { channel, text } => Some(Notice::ChatOoc { sender: player.0 + 1, channel, text }),
            RequestKind::ChatIc { style, language, text } => {
                Some(Notice::ChatIc { entity: player.entity(), style, language, text })
            }
            // The games of live sessions define no requests.
            RequestKind::Game { .. } => None,
        };
        let answer = Notice::RequestAck { request: number, answer: Vec::new() };
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(connection) = &mut slot.connection else { continue };
            let answer = (index == usize::from(player.0)).then_some(&answer);
            for notice in chat.iter().chain(answer) {
                // An ack always has room. Chat has none when the client has not acked anything for long.
                let is_taken = connection.queue_notice(notice.clone()).is_ok();
                self.counters.count_server(|report| report.notices_lost += u64::from(!is_taken));
            }
        }
    }

    /// Sends the players' notices that are due.
    fn send_notices(&mut self, now: Micros) {
        for player in (0..self.slots.len() as u16).map(PlayerId) {
            if let Some(connection) = &mut self.slot(player).connection {
                connection.handle_timeout(now);
                self.transmit(player);
            }
        }
    }

    /// Returns the number of players who have a slot and are ready.
    fn ready(&self) -> u16 {
        let ready = self.endpoint.players().filter(|player| self.slots[usize::from(player.0)].is_ready).count() as u16;
        self.counters.lock().ready = ready.into();
        ready
    }

    /// Returns the players without a slot. Once the session runs, these are the players who have left.
    fn absent(&self) -> impl Iterator<Item = PlayerId> {
        let players = (0..self.slots.len() as u16).map(PlayerId);
        players.filter(|player| self.endpoint.address(*player).is_none())
    }

    /// Frees the slots of players who have been silent for too long.
    fn expire(&mut self, now: Micros) {
        let timeout = if self.running { TIMEOUT } else { WAITING_TIMEOUT };
        let is_silent = |player: &PlayerId| {
            let connection = self.slots[usize::from(player.0)].connection.as_ref();
            connection.is_some_and(|connection| connection.silent_for(now) > timeout)
        };
        let silent: Vec<PlayerId> = self.endpoint.players().filter(is_silent).collect();
        for player in silent {
            self.endpoint.remove(now, player);
        }
    }

    fn say_farewell(&mut self, now: Micros) {
        let players: Vec<PlayerId> = self.endpoint.players().collect();
        for player in players {
            if let Some(connection) = &mut self.slot(player).connection {
                connection.send_disconnect(LeaveReason::Done);
            }
            self.transmit(player);
            self.endpoint.remove(now, player);
        }
    }

    /// Sends the connection's queued datagrams that have no recorded time.
    fn transmit(&mut self, player: PlayerId) {
        while let Some((to, datagram)) = self.poll_transmit(player) {
            self.outbound.send(to, &datagram);
        }
    }

    /// Returns the next datagram to a player with its address. Discards the datagrams to a player who has left.
    fn poll_transmit(&mut self, player: PlayerId) -> Option<(SocketAddr, Vec<u8>)> {
        let connection = self.slots[usize::from(player.0)].connection.as_mut()?;
        let address = self.endpoint.address(player);
        std::iter::from_fn(|| connection.poll_transmit()).find_map(|datagram| Some((address?, datagram)))
    }
}

impl<B: Body> ServerEnds<B> for ServerConnections<'_, B> {
    fn pack(&mut self, _at: Micros, player: PlayerId, snapshot: &mut Snapshot<B>) -> PackedSnapshot<B> {
        let Some(connection) = self.slots[usize::from(player.0)].connection.as_mut() else {
            return PackedSnapshot::whole(snapshot, None);
        };
        let queued = connection.send_snapshot(snapshot, &mut self.states);
        // A player who has left gets no datagrams.
        if let Some(sent) = queued.as_ref().ok().filter(|_| self.endpoint.address(player).is_some()) {
            self.counters.count_server(|report| {
                if let Some(is_right) = sent.saw_avatar_right {
                    report.perceived.compared += 1;
                    report.perceived.right += u64::from(is_right);
                }
                report.snapshots.sent += 1;
                report.snapshots.whole += u64::from(sent.left_out == 0);
                report.snapshots.in_fragments += u64::from(sent.datagrams > 1);
            });
        }
        PackedSnapshot::encoded(queued)
    }

    fn send(&mut self, at: Micros, player: PlayerId, _snapshot: Snapshot<B>) {
        while let Some((to, datagram)) = self.poll_transmit(player) {
            self.counters.count_server(|report| {
                report.sent.datagrams += 1;
                report.sent.bytes += datagram.len() as u64;
            });
            self.outbound.send_on(usize::from(player.0), Direction::Down, at, to, datagram);
        }
    }
}

/// What the server does next.
#[derive(Debug, PartialEq, Eq)]
enum ServerTurn {
    /// It computes the tick that is due.
    Tick,
    /// It handles a datagram.
    Datagram(ReceivedDatagram),
    /// It checks whether the session is over.
    Idle,
}

/// Chooses the server's turns. A tick that is late by an interval or by [`STALL`] waits for the datagrams that arrived before
/// it: their usercmds may use the time that the tick covers. Their number is limited, so a flood cannot stop the ticks.
struct TurnOrder {
    /// The tick interval.
    interval: Micros,
    /// The time at which the late tick was noticed.
    late_since: Option<Micros>,
    /// The number of datagrams that went before the late tick.
    taken: usize,
}

impl TurnOrder {
    pub(super) fn new(interval: Micros) -> TurnOrder {
        TurnOrder { interval, late_since: None, taken: 0 }
    }

    /// Returns the turn at `now`, when the next tick is due at `due`. Waits for a datagram until then.
    ///
    /// # Errors
    /// When the reader thread has ended.
    pub(super) fn next(
        &mut self,
        inbox: &Receiver<ReceivedDatagram>,
        now: Micros,
        due: Micros,
    ) -> Result<ServerTurn, LiveError> {
        let late = now - due;
        if late < Micros::ZERO {
            let received = receive(inbox, duration(due - now).min(LOOK_UP_EVERY))?;
            return Ok(received.map_or(ServerTurn::Idle, ServerTurn::Datagram));
        }
        if late >= self.interval.min(STALL) && self.taken < WAITING_DATAGRAMS {
            let since = *self.late_since.get_or_insert(now);
            let wait = if since - due >= STALL { since + READER_WAKES - now } else { Micros::ZERO };
            if let Some(datagram) = receive(inbox, duration(wait))? {
                self.taken += 1;
                return Ok(ServerTurn::Datagram(datagram));
            }
        }
        (self.late_since, self.taken) = (None, 0);
        Ok(ServerTurn::Tick)
    }
}

/// Returns a duration; zero for a negative one.
fn duration(of: Micros) -> Duration {
    Duration::from_micros(of.0.max(0).unsigned_abs())
}

/// The newest packets that arrived from a player.
#[derive(Clone, Copy, Debug, Default)]
struct ArrivedPackets {
    newest: u32,
    /// A bit for each of the 64 packets before `newest`; the lowest is the packet just before it.
    before: u64,
}

impl ArrivedPackets {
    /// Returns whether the packet had not arrived yet. A packet far behind the newest counts as a new one.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        if number > self.newest {
            let steps = number - self.newest;
            let shifted = self.before.checked_shl(steps).unwrap_or_default();
            self.before = shifted | 1u64.checked_shl(steps - 1).unwrap_or_default();
            self.newest = number;
            return true;
        }
        let Some(age) = (self.newest - number).checked_sub(1) else { return false };
        let bit = 1u64.checked_shl(age).unwrap_or_default();
        let is_new = self.before & bit == 0;
        self.before |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const INTERVAL: Micros = Micros::from_ms(16);

    /// Returns the number of datagrams that the server takes before a tick that is late, of so many that wait.
    fn taken_before_tick(waiting: usize, late_ms: i64) -> usize {
        let (sender, inbox) = sync_channel(waiting.max(1));
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        (0..waiting).for_each(|_| sender.send((from, vec![7])).expect("there is room"));
        let mut order = TurnOrder::new(INTERVAL);
        // A second late tick has the same limit.
        let mut taken = [0; 2];
        for taken in &mut taken {
            let due = Micros::from_s(5);
            while let ServerTurn::Datagram(_) =
                order.next(&inbox, due + Micros::from_ms(late_ms), due).expect("a sender")
            {
                *taken += 1;
            }
        }
        assert_eq!(taken[1], (waiting - taken[0]).min(taken[0]), "{waiting} waiting, {late_ms} ms late");
        taken[0]
    }

    #[test]
    fn a_late_tick_runs_what_arrived_before_it() {
        assert_eq!([16, 49, 50, 1_500].map(|late_ms| taken_before_tick(100, late_ms)), [100; 4]);
        assert_eq!(taken_before_tick(0, 1_500), 0);
    }

    #[test]
    fn a_flood_delays_no_tick_for_long() {
        assert_eq!(taken_before_tick(2 * WAITING_DATAGRAMS, 1_500), WAITING_DATAGRAMS);
        assert_eq!([0, 15].map(|late_ms| taken_before_tick(100, late_ms)), [0; 2]);
    }

    #[test]
    fn datagrams_are_taken_until_the_tick_is_due() {
        let (sender, inbox) = sync_channel(1);
        let datagram = (SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), vec![7]);
        sender.send(datagram.clone()).expect("there is room");
        let mut order = TurnOrder::new(INTERVAL);
        let mut next = |now_us| order.next(&inbox, Micros(now_us), Micros(1_000)).expect("a sender");
        assert_eq!(next(999), ServerTurn::Datagram(datagram));
        assert_eq!([next(999), next(1_000)], [ServerTurn::Idle, ServerTurn::Tick]);
    }

    #[test]
    fn a_packet_that_arrives_again_is_not_new() {
        let mut arrived = ArrivedPackets::default();
        let order = [1, 2, 2, 5, 3, 5, 3, 1, 4, 200, 199, 199, 5, 200];
        let new = order.map(|number| arrived.insert(number));
        let [yes, no] = [true, false];
        assert_eq!(new, [yes, yes, no, yes, yes, no, no, no, yes, yes, yes, no, yes, no]);
    }
}
