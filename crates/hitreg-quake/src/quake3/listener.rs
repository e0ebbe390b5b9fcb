//! An observer between clients and a server that turns their datagrams into records. The same code imports captures and
//! records live sessions.
//!
//! Times are those at which datagrams pass. A pure observer cannot see when a client received a snapshot. It uses the
//! first packet that acks the snapshot, so the time is late by up to one packet interval. A snapshot without an ack
//! counts as lost. A proxy knows when it forwarded each datagram, and which it dropped.

mod client;
mod hits;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

use super::body::{Quake3Body, misplaced_entity};
use super::import::header;
use super::movement::PmoveSettings;
use super::protocol::{DecodedDatagram, EntityCells, Gamestate, Quake3Connection, Quake3Snapshot, UndecodedReason};
use super::{InfoString, Quake3Rules};
use crate::bsp::quake3::map_from;
use client::HeardClient;
use hitreg_log::record::{ArrivalRecord, Origin, Record, SessionHeader, ShotRecord, SnapshotRecord, StateRecord};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::protocol::{Direction, HeardCounts, PassingDatagram, SessionListener};
use hits::HitLog;

pub use hits::{DamageLine, ServerLog};

/// Limit of clients, above any server's.
const CLIENTS_MAX: usize = 64;
/// Snapshot flag: the client is not in the game yet.
const NOT_ACTIVE: u8 = 2;
/// Snapshot flag that changes with each level and each restart.
const SERVER_COUNT: u8 = 4;

/// Counts of the observed traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerCounts {
    /// Datagrams.
    pub datagrams: u64,
    /// Datagrams outside of any connection.
    pub out_of_band: u64,
    /// Fragments of incomplete messages.
    pub parts: u64,
    /// Overtaken and duplicated messages.
    pub stale: u64,
    /// Datagrams that could not be decoded.
    pub undecoded: u64,
    /// Usercmds, without repeats.
    pub usercmds: u64,
    /// Snapshots of clients in the game.
    pub snapshots: u64,
    /// Snapshots whose `commandTime` equals a usercmd's time.
    pub acked_by_time: u64,
    /// Hits reported to shooters.
    pub hits: u64,
    /// Hits with a known victim, from the server log or from event entities.
    pub hits_with_victim: u64,
    /// Damage lines of the server log within the recording.
    pub logged: u64,
    /// Damage lines matched with a hit that was reported to a shooter.
    pub logged_with_shooter: u64,
    /// Damage lines of the level that no decoded snapshot follows within the recording. They are not imported.
    pub logged_outside: u64,
    /// Datagrams of clients that had left the level, which are not recorded.
    pub after_level: u64,
}

/// An observer between clients and a server of protocol 71.
#[derive(Debug, Default)]
pub struct Quake3Listener {
    clients: SortedMap<u16, ClientEntry>,
    /// The checksum feed of the recorded level, from the first gamestate.
    level: Option<u32>,
    /// The rules of the level, after the first gamestate.
    pub(super) rules: Option<Quake3Rules>,
    /// The players whose connections were observed, by slot.
    pub(super) players: SortedMap<u16, HeardClient>,
    ticks: NewestTicks,
    /// The shared states of the newest tick.
    shared: (Tick, SortedMap<u16, Arc<EntityCells>>),
    damage: HitLog,
    counts: ListenerCounts,
    /// The first datagrams that could not be decoded, one for each client, direction and reason.
    pub(super) undecoded: Vec<UndecodedDatagram>,
    /// The largest difference between the time of a snapshot and the server's clock.
    pub(super) clock_error: Micros,
    /// A map, or an archive that contains the session's map.
    maps: Option<Vec<u8>>,
    /// Whether the log's header was given.
    is_begun: bool,
    /// Why the log has no map.
    warning: Option<String>,
}

/// A datagram that could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndecodedDatagram {
    /// Number of the client.
    pub client: u16,
    /// Its direction.
    pub direction: Direction,
    /// The reason.
    pub why: UndecodedReason,
}

impl std::fmt::Display for UndecodedDatagram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = match self.direction {
            Direction::Up => "from",
            Direction::Down => "to",
        };
        write!(f, "{way} client {}: {}", self.client, self.why)
    }
}

#[derive(Debug, Default)]
struct ClientEntry {
    connection: Quake3Connection,
    place: ClientPlace,
    /// The server's settings of movement, as the client knows them.
    settings: PmoveSettings,
    /// Flags of the newest snapshot since the gamestate.
    flags: Option<u8>,
    /// Delivery of the fragments of incomplete messages, from the client and from the server.
    parts: [DeliveryTime; 2],
}

/// Where a client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ClientPlace {
    /// It has no gamestate yet.
    #[default]
    Connecting,
    /// In a slot of the recorded level.
    Slot(u16),
    /// On another level, or its slot is another client's now.
    Away,
}

/// Whether and when a datagram was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeliveryTime {
    /// Delivered at an unknown time, or not at all; only acks tell.
    #[default]
    Unknown,
    /// Delivered at this time.
    At(Micros),
    /// Dropped.
    Lost,
}

/// Number of decoding errors to keep.
const REMEMBERED_ERRORS: usize = 16;

impl ClientEntry {
    /// Notes the flags of a snapshot. A client that is active leaves the game only for another level. The server sends
    /// its gamestate when the client sends something, and snapshots of the level also to a silent client.
    fn note_flags(&mut self, flags: u8) {
        let was_active = |before: u8| before & NOT_ACTIVE == 0 || (before ^ flags) & SERVER_COUNT != 0;
        if flags & NOT_ACTIVE != 0 && self.flags.is_some_and(was_active) && self.place != ClientPlace::Connecting {
            self.place = ClientPlace::Away;
        }
        self.flags = Some(flags);
    }
}

impl Quake3Listener {
    /// Returns an observer that takes the level's map from a `.bsp` or a `.pk3`. Without a map it cannot check
    /// predictions.
    pub fn new(maps: Option<Vec<u8>>) -> Quake3Listener {
        Quake3Listener { maps, ..Quake3Listener::default() }
    }

    /// Returns an observer that knows the server's damage log.
    pub(super) fn with_log(log: ServerLog) -> Quake3Listener {
        Quake3Listener { damage: HitLog::new(log), ..Quake3Listener::default() }
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> ListenerCounts {
        let [logged, logged_with_shooter, logged_outside] = self.damage.logged();
        ListenerCounts { logged, logged_with_shooter, logged_outside, ..self.counts }
    }

    /// Processes a datagram observed at session time `at`. With a known delivery time, its records include arrivals.
    /// `out` receives the resulting records in the order of their times.
    pub(super) fn hear_at(
        &mut self,
        at: Micros,
        client: u16,
        direction: Direction,
        bytes: &[u8],
        onward: DeliveryTime,
        out: &mut dyn FnMut(Record),
    ) {
        self.counts.datagrams += 1;
        if self.clients.len() == CLIENTS_MAX && !self.clients.contains_key(&client) {
            self.counts.undecoded += 1;
            return;
        }
        let connected = self.clients.entry(client).or_default();
        let decoded = connected.connection.take(direction, bytes);
        if !connected.connection.has_begun() {
            // Queries of server browsers, and whatever else comes from an address without a client, need no place.
            self.clients.remove(&client);
            return self.handle_decoded((at, client, direction), decoded, bytes.len(), onward, out);
        }
        // A message arrives with its last fragment and is lost with any.
        let parts = &mut connected.parts[usize::from(direction == Direction::Down)];
        let onward = match decoded {
            Ok(DecodedDatagram::Part) => {
                *parts = onward.max(*parts);
                onward
            }
            _ => onward.max(std::mem::take(parts)),
        };
        self.handle_decoded((at, client, direction), decoded, bytes.len(), onward, out);
    }

    /// Processes a message from a demo. Its time is the server time in it.
    pub(crate) fn hear_message(&mut self, number: u32, bytes: &[u8], out: &mut dyn FnMut(Record)) {
        self.counts.datagrams += 1;
        let decoded = self.clients.entry(0).or_default().connection.take_message(number, bytes);
        let mut at = Micros::ZERO;
        if let Ok(DecodedDatagram::Said { snapshot: Some(snapshot), .. }) = &decoded {
            self.ticks.begin(at, snapshot.server_time);
            at = self.ticks.time(snapshot.server_time).max(at);
        }
        self.handle_decoded((at, 0, Direction::Down), decoded, bytes.len(), DeliveryTime::At(at), out);
    }

    fn handle_decoded(
        &mut self,
        (at, client, direction): (Micros, u16, Direction),
        decoded: Result<DecodedDatagram, UndecodedReason>,
        bytes: usize,
        onward: DeliveryTime,
        out: &mut dyn FnMut(Record),
    ) {
        match decoded {
            Err(undecoded) => {
                self.note_undecoded(client, direction, undecoded);
            }
            Ok(DecodedDatagram::OutOfBand { begins }) => {
                self.counts.out_of_band += 1;
                if let Some(connected) = self.clients.get_mut(&client).filter(|_| begins) {
                    (connected.place, connected.parts) = Default::default();
                }
            }
            Ok(DecodedDatagram::Part) => self.counts.parts += 1,
            Ok(DecodedDatagram::Stale) => self.counts.stale += 1,
            Ok(DecodedDatagram::Input { sequence, message_ack, commands }) => {
                let ticks = std::mem::take(&mut self.ticks);
                if let Some(client) = self.playing(client) {
                    let (times, numbers) = ((at, onward), (sequence, message_ack));
                    let made = client.input(times, numbers, &commands, &ticks, bytes, out);
                    self.counts.usercmds += made;
                }
                self.ticks = ticks;
            }
            Ok(DecodedDatagram::Said { enters, gamestate, snapshot }) => {
                if let Some(gamestate) = gamestate {
                    if let Some(connected) = self.clients.get_mut(&client) {
                        connected.settings = PmoveSettings::of(&gamestate);
                    }
                    if enters {
                        self.enter(client, &gamestate);
                    }
                }
                if let Some(snapshot) = &snapshot {
                    self.ticks.begin(at, snapshot.server_time);
                }
                if let (Some(snapshot), Some(connected)) = (&snapshot, self.clients.get_mut(&client)) {
                    connected.note_flags(snapshot.flags);
                }
                let in_game = snapshot.filter(|snapshot| snapshot.flags & NOT_ACTIVE == 0);
                if let Some(snapshot) = in_game
                    && let Some(slot) = self.playing(client).map(|player| player.player.0)
                {
                    self.snapshot(at, (client, slot), &snapshot, bytes, onward, out);
                }
            }
        }
    }

    fn note_undecoded(&mut self, client: u16, direction: Direction, why: UndecodedReason) {
        self.counts.undecoded += 1;
        let undecoded = UndecodedDatagram { client, direction, why };
        if self.undecoded.len() < REMEMBERED_ERRORS && !self.undecoded.contains(&undecoded) {
            self.undecoded.push(undecoded);
        }
    }

    /// Returns the player of a client on the recorded level.
    fn playing(&mut self, client: u16) -> Option<&mut HeardClient> {
        match self.clients.get(&client)?.place {
            ClientPlace::Connecting => None,
            ClientPlace::Slot(slot) => self.players.get_mut(&slot),
            ClientPlace::Away => {
                self.counts.after_level += 1;
                None
            }
        }
    }

    /// Notes a gamestate. The first one determines the recorded level; a restarted level has another checksum feed.
    fn enter(&mut self, client: u16, gamestate: &Gamestate) {
        let level = *self.level.get_or_insert_with(|| {
            self.damage.begin_level(&InfoString::of_server(gamestate));
            gamestate.checksum_feed
        });
        let rules = self.rules.get_or_insert_with(|| Quake3Rules::of(gamestate));
        let slot = u16::from(gamestate.client);
        let is_here = level == gamestate.checksum_feed && slot < rules.places;
        let place = if is_here { ClientPlace::Slot(slot) } else { ClientPlace::Away };
        let before = self.clients.get(&client).map(|connected| connected.place);
        if is_here {
            // The server has given the slot to this client, so no other client has it any more.
            let others = self.clients.values_mut().filter(|other| other.place == place);
            others.for_each(|other| other.place = ClientPlace::Away);
        }
        if let Some(connected) = self.clients.get_mut(&client) {
            (connected.place, connected.flags) = (place, None);
        }
        if is_here && before != Some(place) {
            let player = self.players.remove(&slot);
            let player = player.map_or_else(|| HeardClient::new(PlayerId(slot)), HeardClient::succeeded);
            self.players.insert(slot, player);
        }
    }

    fn snapshot(
        &mut self,
        at: Micros,
        (from, slot): (u16, u16),
        snapshot: &Quake3Snapshot,
        bytes: usize,
        onward: DeliveryTime,
        out: &mut dyn FnMut(Record),
    ) {
        // A body at no place would make the log unusable.
        if let Some(entity) = misplaced_entity(snapshot, slot) {
            self.note_undecoded(from, Direction::Down, UndecodedReason::NoPlace { sequence: snapshot.message, entity });
            return;
        }
        let off = at - self.ticks.time(snapshot.server_time);
        self.clock_error = self.clock_error.max(Micros(off.0.abs()));
        let hz = self.rules.as_ref().map_or(1, |rules| rules.server_hz);
        let Some(tick) = self.ticks.of(at, snapshot.server_time, hz) else {
            // No server sends a snapshot older than the remembered ones.
            self.counts.stale += 1;
            return;
        };
        let Some(client) = self.players.get_mut(&slot) else { return };
        let player = client.player;
        let (seq, ack, is_known) = client.ack(snapshot);
        self.counts.snapshots += 1;
        self.counts.acked_by_time += u64::from(is_known);
        for hit in self.damage.of(client, snapshot) {
            self.counts.hits += 1;
            self.counts.hits_with_victim += u64::from(hit.target.is_some());
            out(Record::Judged(player, ShotRecord { at, ..hit }));
        }
        // By now, every shooter of the frame before the last has received its hits.
        let decoded = snapshot.server_time.saturating_sub(1000 / i32::from(hz));
        self.damage.until(decoded, &self.ticks).into_iter().for_each(|hurt| out(Record::Damage(hurt)));
        let mut entities = vec![player.entity()];
        entities
            .extend(snapshot.entities.iter().map(|(number, _)| EntityId(*number)).filter(|id| *id != player.entity()));
        entities.sort_unstable();
        entities.dedup();
        out(Record::Snapshot(
            player,
            SnapshotRecord {
                seq,
                tick,
                at,
                server_time: self.ticks.time(snapshot.server_time),
                ack,
                bytes: bytes.min(usize::from(u16::MAX)) as u16,
                entities,
                ..SnapshotRecord::default()
            },
        ));
        let settings = self.clients.get(&from).map(|connected| connected.settings).unwrap_or_default();
        self.states(tick, (player, settings), snapshot, out);
        if let DeliveryTime::At(at) = onward {
            out(Record::Received(player, ArrivalRecord { number: seq.0, at }));
        }
    }

    /// Emits the states of a snapshot. The own state is private to the client. Other states are shared, unless this
    /// client received different values.
    fn states(
        &mut self,
        tick: Tick,
        (player, settings): (PlayerId, PmoveSettings),
        snapshot: &Quake3Snapshot,
        out: &mut dyn FnMut(Record),
    ) {
        let mut state = |viewer, entity, body: Quake3Body| {
            let (class, cells) = (body.class(), body.row());
            out(Record::State(StateRecord { tick, viewer, entity: EntityId(entity), class, cells }));
        };
        let previous = |slot: u16| self.players.get(&slot).map_or(0, |player| player.previous_clients);
        state(Some(player), player.0, Quake3Body::of_player(&snapshot.player, settings, previous(player.0)));
        if self.shared.0 < tick {
            self.shared = (tick, SortedMap::new());
        }
        for (number, cells) in &snapshot.entities {
            if *number == player.0 {
                continue;
            }
            let body = || Quake3Body::of_entity(cells, snapshot.server_time, previous(*number));
            let shared = (self.shared.0 == tick).then(|| self.shared.1.get(number));
            match shared {
                Some(Some(same)) if same == cells => {}
                Some(None) => {
                    self.shared.1.insert(*number, Arc::clone(cells));
                    state(None, *number, body());
                }
                _ => state(Some(player), *number, body()),
            }
        }
    }
}

/// How many ticks a snapshot may be late.
const REMEMBERED_TICKS: usize = 64;

/// The newest ticks by server time.
#[derive(Debug, Default)]
struct NewestTicks {
    newest: VecDeque<(i32, Tick, Micros)>,
    /// The first server time, and the session time at which it was observed.
    first: Option<(i32, Micros)>,
}

impl NewestTicks {
    /// Sets the session time of the first observed server time. Session and server clocks then agree, except for the
    /// network delay.
    pub(super) fn begin(&mut self, at: Micros, server_time: i32) {
        self.first.get_or_insert((server_time, at));
    }

    /// Returns the tick of a server time in ms; `None` if it is older than all remembered ticks.
    pub(super) fn of(&mut self, at: Micros, server_time: i32, server_hz: u16) -> Option<Tick> {
        let (first, _) = *self.first.get_or_insert((server_time, at));
        let (last_time, last) = self.newest.back().map_or((i32::MIN, Tick(0)), |(time, tick, _)| (*time, *tick));
        if server_time <= last_time {
            return self.newest.iter().find(|(time, ..)| *time == server_time).map(|(_, tick, _)| *tick);
        }
        // Frames are normally evenly spaced. Otherwise each still gets a number of its own.
        let passed = (i64::from(server_time) - i64::from(first)).max(0);
        let even = 1 + passed * i64::from(server_hz) / 1000;
        let tick = u32::try_from(even).unwrap_or(u32::MAX).max(last.0.saturating_add(1));
        Some(self.add(at, server_time, Tick(tick)))
    }

    /// Returns the first tick after a server time, and its session time.
    pub(super) fn after(&self, server_time: i32) -> Option<(Tick, Micros)> {
        let after = self.newest.partition_point(|(time, ..)| *time <= server_time);
        self.newest.get(after).map(|(_, tick, at)| (*tick, *at))
    }

    /// Returns whether the first observed server time is at most this one.
    pub(super) fn has_begun(&self, server_time: i32) -> bool {
        self.first.is_some_and(|(first, _)| first <= server_time)
    }

    /// Returns the newest server time; `None` before the first tick.
    pub(super) fn newest(&self) -> Option<i32> {
        self.newest.back().map(|(time, ..)| *time)
    }

    fn add(&mut self, at: Micros, server_time: i32, tick: Tick) -> Tick {
        if self.newest.len() == REMEMBERED_TICKS {
            self.newest.pop_front();
        }
        self.newest.push_back((server_time, tick, at));
        tick
    }

    /// Converts a server time in ms to session time.
    pub(super) fn time(&self, server_time: i32) -> Micros {
        let (first, at) = self.first.unwrap_or((server_time, Micros::ZERO));
        at + Micros::from_ms(i64::from(server_time) - i64::from(first))
    }
}

impl SessionListener for Quake3Listener {
    fn hear(&mut self, passing: &PassingDatagram, out: &mut dyn FnMut(Record)) {
        let onward = passing.released.map_or(DeliveryTime::Lost, DeliveryTime::At);
        self.hear_at(passing.at, passing.client, passing.direction, &passing.bytes, onward, out);
    }

    fn header(&mut self) -> Option<Result<SessionHeader, String>> {
        let mut rules = self.rules.as_ref().filter(|_| !self.is_begun)?.clone();
        self.is_begun = true;
        if let Some(maps) = self.maps.take() {
            match map_from(&maps, &rules.map_name) {
                Ok(map) => rules.map = Some(map),
                // The session cannot be played again, so it is recorded without its map.
                Err(error) => self.warning = Some(format!("no predictions: --map: {error}")),
            }
        }
        // The players are not known yet, so the header lists every possible one.
        let places: Vec<u16> = (0..rules.places).collect();
        let origin = Origin::Imported { format: "quake3-proxy".to_owned() };
        Some(header(&rules, &places, origin).map_err(|error| error.to_string()))
    }

    fn heard(&self) -> HeardCounts {
        let counts = self.counts();
        HeardCounts {
            datagrams: counts.datagrams,
            undecoded: counts.undecoded,
            players: self.players.len() as u64,
            usercmds: counts.usercmds,
            snapshots: counts.snapshots,
            after_level: counts.after_level,
        }
    }

    fn undecoded(&self) -> Vec<String> {
        self.undecoded.iter().map(UndecodedDatagram::to_string).collect()
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    fn finish(&mut self, out: &mut dyn FnMut(Record)) {
        let Some(end) = self.ticks.newest() else { return };
        self.damage.until(end, &self.ticks).into_iter().for_each(|hurt| out(Record::Damage(hurt)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_servers_time() {
        let mut ticks = NewestTicks::default();
        let numbers = [1000, 1050, 1050, 1200, 1201, 1050]
            .map(|time| ticks.of(Micros(i64::from(time)), time, 20).map(|tick| tick.0));
        assert_eq!(numbers, [Some(1), Some(2), Some(2), Some(5), Some(6), Some(2)]);
        assert_eq!(
            (ticks.of(Micros(9), 1100, 20), ticks.time(1200)),
            (None, Micros(1000) + Micros::from_ms(200)),
            "no client received it in time"
        );
        assert_eq!((ticks.after(1100), ticks.after(1201)), (Some((Tick(5), Micros(1200))), None));
        assert_eq!((ticks.newest(), [999, 1000].map(|time| ticks.has_begun(time))), (Some(1201), [false, true]));
    }
}
