//! An observer between clients and a server that turns their datagrams into records. The same code imports captures and
//! records live sessions.
//!
//! Times are those at which datagrams pass. A pure observer cannot see when a client received a snapshot. It uses the
//! first packet that acks the snapshot, so the time is late by up to one packet interval. A snapshot without an ack
//! counts as lost. A proxy knows when it forwarded each datagram, and which it dropped.

mod client;
mod hits;
mod seen_events;
mod ticks;

use std::sync::Arc;

use serde::Serialize;

use super::body::Quake3Body;
use super::movement::PmoveSettings;
use super::protocol::{DecodedDatagram, EntityCells, Gamestate, Quake3Connection, Quake3Snapshot, UndecodedReason};
use super::rules::{InfoString, Quake3Rules};
use super::server_log::ServerLog;
use client::HeardClient;
use hitreg_log::record::{ArrivalRecord, Record, ShotRecord, SnapshotRecord, StateRecord};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::protocol::Direction;
use hits::HitLog;
use ticks::NewestTicks;

/// Limit of clients, above any server's.
const MOST_CLIENTS: usize = 64;
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
    /// Damage lines of the level before or after the recording, which are not imported.
    pub logged_outside: u64,
    /// Datagrams of clients that had left the level, which are not recorded.
    pub after_level: u64,
}

/// An observer between clients and a server.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    clients: SortedMap<u16, ClientEntry>,
    /// The checksum feed of the recorded level, from the first gamestate.
    level: Option<u32>,
    rules: Option<Quake3Rules>,
    /// The players by slot.
    players: SortedMap<u16, HeardClient>,
    ticks: NewestTicks,
    /// The shared states of the newest tick.
    shared: (Tick, SortedMap<u16, Arc<EntityCells>>),
    damage: HitLog,
    counts: ListenerCounts,
    /// The first datagrams that could not be decoded.
    undecoded: Vec<(u16, Direction, UndecodedReason)>,
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
const REMEMBERED: usize = 16;

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

impl Listener {
    /// Returns a listener that knows the server's damage log.
    pub(crate) fn new(log: ServerLog) -> Listener {
        Listener { damage: HitLog::new(log), ..Listener::default() }
    }

    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> ListenerCounts {
        let [logged, logged_with_shooter, logged_outside] = self.damage.logged();
        ListenerCounts { logged, logged_with_shooter, logged_outside, ..self.counts }
    }

    /// Returns the rules of the level, after the first gamestate.
    pub(crate) fn rules(&self) -> Option<&Quake3Rules> {
        self.rules.as_ref()
    }

    /// Returns the numbers of the players whose connections were observed.
    pub(crate) fn players(&self) -> impl Iterator<Item = u16> + '_ {
        self.players.keys().copied()
    }

    /// Returns the first decoding errors: client, direction, error.
    pub(crate) fn undecoded(&self) -> &[(u16, Direction, UndecodedReason)] {
        &self.undecoded
    }

    /// Processes a datagram observed at session time `at`. With a known delivery time, its records include arrivals.
    /// `out` receives the resulting records in the order of their times.
    pub(crate) fn hear(
        &mut self,
        at: Micros,
        client: u16,
        direction: Direction,
        bytes: &[u8],
        onward: DeliveryTime,
        out: &mut dyn FnMut(Record),
    ) {
        self.counts.datagrams += 1;
        if self.clients.len() == MOST_CLIENTS && !self.clients.contains_key(&client) {
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
                self.counts.undecoded += 1;
                if self.undecoded.len() < REMEMBERED {
                    self.undecoded.push((client, direction, undecoded));
                }
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

    /// Emits the remaining records at the end.
    pub(crate) fn finish(&mut self, out: &mut dyn FnMut(Record)) {
        let Some(end) = self.ticks.newest() else { return };
        self.damage.until(end, &self.ticks).into_iter().for_each(|hurt| out(Record::Damage(hurt)));
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
