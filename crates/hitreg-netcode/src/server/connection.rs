//! The server's state for one client, and the snapshots that it gets: when, with which entities, and what its rate allows
//! (Bernier 2001, footnote 7).

use std::collections::VecDeque;
use std::sync::Arc;

use super::Server;
use super::command_queue::LOST_TIME_FIRST;
use crate::game::{Body, Effect, Game};
use crate::history::{FRAMES_KEPT, FRAMES_MAX, Frame, History};
use crate::pacing::Calibration;
use crate::packet::{Echo, Snapshot};
use crate::push_bounded;
use crate::settings;
use crate::settings::{Settings, Zone};
use crate::state::{state, value};
use hitreg_log::record::OutOfSequence;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::{Input, Usercmd};

/// The most warnings in one snapshot; the newest are kept.
const WARNINGS_MAX: usize = 8;

/// What the server knew of a client when a packet of it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketArrival {
    /// The time of arrival.
    pub(super) at: Micros,
    /// The send time of the newest snapshot that the client had, by the acks so far; `None` without an ack.
    pub(super) newest: Option<Micros>,
    /// The newest round trip measured by then; `None` without an ack.
    pub(super) round_trip: Option<Micros>,
}

value!(PacketArrival { at, newest, round_trip });

/// The longest duration that a usercmd can state.
const MSEC_MAX: Micros = Micros::from_ms(u8::MAX as i64);

/// Returns the most simulated time that a client carries from one tick to the next: the setting, and the time of one
/// usercmd. A usercmd may be longer than a tick, so even a client without delay saves up for it. Durations are whole
/// milliseconds, so those of some usercmds may exceed their time by one.
pub(super) fn credit_max(settings: &Settings) -> Micros {
    let usercmd = (settings.client.cmd_hz.interval() + Micros::from_ms(1)).min(MSEC_MAX);
    Micros::from_ms(settings.server.command_credit_ms) + usercmd
}

pub(super) struct PlayerConnection<G: Game> {
    /// The player's settings.
    pub(super) settings: Arc<Settings>,
    /// Whether any packet has arrived.
    pub(super) has_joined: bool,
    /// Whether the player has left. It then gets no snapshots.
    pub(super) has_left: bool,
    /// The newest usercmd that ran or was given up.
    pub(super) last_command: CommandSeq,
    /// Its input, to replace usercmds that are lost.
    pub(super) last_input: Input,
    /// Usercmds that were missing when due and may still arrive late, in ascending order.
    pub(super) missing: VecDeque<CommandSeq>,
    /// The time in which the client can have made usercmds that were lost.
    pub(super) lost_time: Micros,
    /// The simulated time that the client may still use.
    pub(super) credit: Micros,
    /// The frames that this client has of the snapshots sent to it: the only ones that it can have drawn.
    pub(super) history: History<G::Body>,
    /// The send times of the snapshots that a later ack may name.
    pub(super) sent: VecDeque<(SnapshotSeq, Micros)>,
    /// The newest acked snapshot.
    pub(super) acked: SnapshotSeq,
    /// The send time of that snapshot.
    pub(super) acked_sent: Option<Micros>,
    /// The time from sending that snapshot until its first ack.
    pub(super) round_trip: Option<Micros>,
    /// The number of the last snapshot.
    pub(super) snapshot: SnapshotSeq,
    /// The time at which the next snapshot is due.
    due_at: Micros,
    /// The time from which the rate allows the next snapshot.
    pub(super) rate_free_at: Micros,
    /// The number of updates that the rate has held back since the last snapshot.
    held_back: u8,
    /// Usercmds that wait for their tick.
    pub(super) waiting: SortedMap<CommandSeq, (PacketArrival, Usercmd)>,
    /// The measurement of how early input arrives.
    pub(super) calibration: Calibration,
    /// The newest packet, its arrival time, and the number of packet numbers skipped so far.
    newest_packet: Option<(u32, Micros, u32)>,
    /// Warnings for the next snapshot.
    warnings: Vec<OutOfSequence>,
    /// Effects for the next snapshot.
    pub(super) effects: Vec<Effect>,
    /// The filter for what the client receives.
    zone: ZoneOfKnowledge,
}

state!(PlayerConnection<G: Game> {
    has_joined,
    has_left,
    last_command,
    last_input,
    missing,
    lost_time,
    credit,
    history,
    sent,
    acked,
    acked_sent,
    round_trip,
    snapshot,
    due_at,
    rate_free_at,
    held_back,
    waiting,
    calibration,
    newest_packet,
    warnings,
    effects,
    zone,
} but { settings });

impl<G: Game> PlayerConnection<G> {
    pub(super) fn new(settings: Arc<Settings>) -> PlayerConnection<G> {
        PlayerConnection {
            has_joined: false,
            has_left: false,
            last_command: CommandSeq(0),
            last_input: Input::default(),
            missing: VecDeque::new(),
            lost_time: LOST_TIME_FIRST,
            credit: credit_max(&settings),
            history: History::default(),
            sent: VecDeque::with_capacity(FRAMES_KEPT),
            acked: SnapshotSeq(0),
            acked_sent: None,
            round_trip: None,
            snapshot: SnapshotSeq(0),
            due_at: Micros(i64::MIN),
            rate_free_at: Micros(i64::MIN),
            held_back: 0,
            waiting: SortedMap::new(),
            calibration: Calibration::default(),
            newest_packet: None,
            warnings: Vec::new(),
            effects: Vec::new(),
            zone: ZoneOfKnowledge::default(),
            settings,
        }
    }

    /// Measures the round trip of a snapshot at its first ack, as Quake III does. It includes the client's delay before
    /// sending. Packets repeat the ack until the next snapshot arrives; later acks would add that wait.
    pub(super) fn measure_latency(&mut self, now: Micros, ack: SnapshotSeq) {
        if ack <= self.acked {
            return;
        }
        if let Some((_, sent)) = self.sent.iter().rev().find(|(seq, _)| *seq == ack) {
            self.acked = ack;
            self.acked_sent = Some(*sent);
            self.round_trip = Some(now - *sent);
            while self.sent.front().is_some_and(|(seq, _)| *seq <= ack) {
                self.sent.pop_front();
            }
        }
    }

    /// Records a packet. An overtaken packet stays counted as lost, because its usercmds already arrived as repeats.
    pub(super) fn note_packet(&mut self, now: Micros, number: u32) {
        let (newest, lost) =
            self.newest_packet.map_or((number.saturating_sub(1), 0), |(newest, _, lost)| (newest, lost));
        if number > newest {
            self.newest_packet = Some((number, now, lost.wrapping_add(number - newest - 1)));
        }
    }

    /// Returns the echo of the client's packets for a snapshot sent at `now`.
    fn echo(&self, now: Micros) -> Option<Echo> {
        let (number, arrived, lost) = self.newest_packet?;
        let held_ms = ((now - arrived).0 / 1000).clamp(0, u16::MAX.into()) as u16;
        Some(Echo { packet: number as u16, held_ms, lost: lost as u16 })
    }

    /// Keeps a warning for the next snapshot.
    pub(super) fn warn(&mut self, warning: OutOfSequence) {
        if self.warnings.len() == WARNINGS_MAX {
            self.warnings.remove(0);
        }
        self.warnings.push(warning);
    }

    /// Deducts the duration of a usercmd from the time that the client may still use. Returns false when there is not
    /// enough.
    pub(super) fn spend(&mut self, msec: u8) -> bool {
        let cost = Micros::from_ms(msec.into());
        let is_enough = cost <= self.credit;
        if is_enough {
            self.credit = self.credit - cost;
        }
        is_enough
    }

    /// Returns whether the tick at `now` sends a snapshot. A snapshot that the rate holds back is sent as soon as the line
    /// is free, without waiting for the next regular time. It counts as held back only if another one is due by then.
    fn take_turn(&mut self, now: Micros) -> bool {
        if self.has_left {
            return false;
        }
        let is_due = now >= self.due_at;
        let is_free = now >= self.rate_free_at;
        if is_due {
            let [interval, tick] =
                [self.settings.server.update_hz, self.settings.server.tick_hz].map(|hz| hz.interval());
            if self.snapshot == SnapshotSeq(0) {
                self.due_at = now;
            }
            // The average update rate matches the client's request; missed turns are not made up.
            self.due_at = (self.due_at + interval).max(now + interval - tick);
            if !is_free {
                self.held_back = self.held_back.saturating_add(1);
            }
            is_free
        } else {
            let is_late = is_free && self.held_back > 0;
            self.held_back -= u8::from(is_late);
            is_late
        }
    }

    fn next_snapshot(&mut self, frame: Arc<Frame<G::Body>>, now: Micros) -> Snapshot<G::Body> {
        self.snapshot = self.snapshot.next();
        let snapshot = Snapshot {
            effects: std::mem::take(&mut self.effects),
            choked: std::mem::take(&mut self.held_back),
            helper_ms: self.calibration.helper_ms(),
            warnings: std::mem::take(&mut self.warnings),
            echo: if self.settings.client.adaptive_redundancy { self.echo(now) } else { None },
            ..Snapshot::new(self.snapshot, self.last_command, frame)
        };
        push_bounded(&mut self.sent, (snapshot.seq, now), FRAMES_MAX);
        snapshot
    }
}

impl<G: Game> Server<G> {
    pub(super) fn send_updates(&mut self) {
        let mut frame: Option<Arc<Frame<G::Body>>> = None;
        for index in 0..self.connections.len() {
            if !self.connections[index].take_turn(self.now) {
                continue;
            }
            let all = Arc::clone(frame.get_or_insert_with(|| frame_of::<G>(&self.world, self.tick, self.now)));
            let connection = &mut self.connections[index];
            let own = PlayerId(index as u16).entity();
            let known =
                connection.zone.within::<G>(&self.setup.rules, &self.setup.settings.server, own, Arc::clone(&all));
            if known.entities.len() < all.entities.len() {
                let is_hidden = |entity| all.get(entity).is_some() && known.get(entity).is_none();
                connection.effects.retain(|effect| !is_hidden(effect.entity));
            }
            let snapshot = connection.next_snapshot(known, self.now);
            self.snapshots.push_back((PlayerId(index as u16), snapshot));
        }
    }
}

/// Converts the world to a frame, without client-only fields.
///
/// # Panics
/// When the game gives its entities out of order, or one of them twice.
fn frame_of<G: Game>(world: &G::World, tick: Tick, now: Micros) -> Arc<Frame<G::Body>> {
    let mut entities = G::entities(world).to_vec();
    let in_order = entities.is_sorted_by(|(a, _), (b, _)| a < b);
    assert!(in_order, "`Simulate::entities` of `{}` must give each id once, in ascending order", G::NAME);
    for (_, body) in &mut entities {
        body.strip_client_only();
    }
    Arc::new(Frame { tick, server_time: now, entities })
}

/// An entity stays in a client's snapshots for this long after it left the zone. It is thus not defined again each time
/// it leaves and enters the view.
const ZONE_LINGER: Micros = Micros::from_ms(250);

/// One client's zone of knowledge.
///
/// The zone of knowledge: the part of the world that one client receives (`server.zone`, `server.zone_units`).
/// Bernier's server packages the "visible objects" for each client. In NeREIDS an entity comes into range of a client's
/// zone of knowledge, and goes out of scope.
#[derive(Clone, Debug, Default)]
struct ZoneOfKnowledge {
    /// The time at which each known entity was last in the zone.
    seen: SortedMap<EntityId, Micros>,
}

value!(ZoneOfKnowledge { seen });

impl ZoneOfKnowledge {
    /// Returns the frame without the entities that the client must not know. The client's own avatar is always
    /// included. A client without an avatar receives every entity.
    pub(super) fn within<G: Game>(
        &mut self,
        rules: &G::Rules,
        settings: &settings::ServerSettings,
        own: EntityId,
        all: Arc<Frame<G::Body>>,
    ) -> Arc<Frame<G::Body>> {
        let is_wide = settings.zone_units as f32;
        let viewer = all.get(own).filter(|_| settings.bounds_zones()).cloned();
        let Some(viewer) = viewer else { return all };
        let now = all.server_time;
        let is_within = |body: &G::Body| {
            let is_near = body.offset_from(&viewer).length() <= is_wide;
            is_near && (settings.zone == Zone::Everything || is_visible::<G>(rules, &viewer, body))
        };
        let within = all.entities.iter().filter(|(id, body)| *id == own || is_within(body)).map(|(id, _)| (*id, now));
        self.seen.extend(within);
        self.seen.retain(|id, last| now - *last <= ZONE_LINGER && all.get(*id).is_some());
        let known = |(id, _): &&(EntityId, G::Body)| self.seen.contains_key(id);
        let entities = all.entities.iter().filter(known).cloned().collect();
        Arc::new(Frame { tick: all.tick, server_time: now, entities })
    }
}

/// Returns whether either body sees any part of the other; the eyes are somewhere in the body. Bodies are visible when
/// the game does not define sight.
fn is_visible<G: Game>(rules: &G::Rules, viewer: &G::Body, body: &G::Body) -> bool {
    let sees = |from: &G::Body, to: &G::Body| G::sees(rules, from.position_f32(), to).unwrap_or(true);
    sees(viewer, body) || sees(body, viewer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Simulate;
    use crate::rink::Rink;
    use hitreg_log::units::Seed;

    #[test]
    #[should_panic(expected = "must give each id once, in ascending order")]
    fn entities_out_of_order_are_named() {
        let mut world = Rink::spawn(&(), Seed(1), 2);
        world.reverse();
        frame_of::<Rink>(&world, Tick(1), Micros::ZERO);
    }

    /// Runs ticks of 1000 / `tick_hz` ms for a second, with snapshots that take `busy_ms` of the line each. Returns the
    /// number of ticks, and of updates that were sent, held back before a later one, and held back at the end.
    fn second_of_updates(tick_hz: i64, update_hz: i64, busy_ms: f64) -> [i64; 4] {
        let mut settings = Settings::default();
        settings.set("server.tick_hz", &tick_hz.to_string()).unwrap();
        settings.set("server.update_hz", &update_hz.to_string()).unwrap();
        let mut connection = PlayerConnection::<Rink>::new(Arc::new(settings));
        let frame = Arc::new(Frame { tick: Tick(1), server_time: Micros::ZERO, entities: Vec::new() });
        let [mut sent, mut choked] = [0, 0];
        for tick in 0..tick_hz {
            let now = Micros(7_000_000 + tick * 1_000_000 / tick_hz);
            if connection.take_turn(now) {
                sent += 1;
                choked += i64::from(connection.next_snapshot(Arc::clone(&frame), now).choked);
                connection.rate_free_at = now + Micros::from_ms_f64(busy_ms);
            }
        }
        [tick_hz, sent, choked, connection.held_back.into()]
    }

    #[test]
    fn each_update_is_either_sent_or_held_back() {
        // An update at every tick, and a line that is free at every second one.
        assert_eq!(second_of_updates(50, 50, 21.0), [50, 25, 24, 1]);
        // An update at every second tick, and a line that is free at every second one: each is late, and none is lost.
        assert_eq!(second_of_updates(50, 25, 39.0), [50, 25, 0, 0]);
        // No client gets more than one update a tick.
        assert_eq!(second_of_updates(50, 1_000, 21.0), [50, 25, 24, 1]);
        assert_eq!(second_of_updates(50, 1_000, 19.0), [50, 50, 0, 0]);
        // An update every 50 ms, and a line that takes 60 ms, or 90 ms with the wait for a tick.
        for (tick_hz, busy_ms) in [(100, 60.0), (1_000, 61.0), (64, 60.0), (33, 90.0), (100, 180.0), (100, 1.0)] {
            let [_, sent, choked, waiting] = second_of_updates(tick_hz, 20, busy_ms);
            assert_eq!(sent + choked + waiting, 20, "{tick_hz} Hz, {busy_ms} ms: {sent} sent, {choked} held back");
        }
    }
}
