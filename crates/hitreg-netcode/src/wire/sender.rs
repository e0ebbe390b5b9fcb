//! The server side of one client's snapshots. Each snapshot becomes one message of limited size. Every entity is coded
//! as the difference from its last state that the client acked.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::BitWriter;
use super::datagram::{MESSAGE_BYTES_MAX, SEAL_BYTES};
use super::entity::BodyLayout;
use super::message::{CategoryCounter, CategoryOf, DatagramPage, SnapshotBitCounts};
use super::notice::{OutOfSeqWarning, put_effect};
use super::track::{EntityTrack, SharedStates};
use super::{ReceivedSet, WINDOW};
use crate::game::{Body, Effect};
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::push_bounded;
use crate::state::{state, value};
use hitreg_log::units::{EntityId, Micros, PlayerId, SnapshotSeq};

/// The most effects that wait for room; beyond this, the oldest are dropped.
const EFFECTS_WAITING_MAX: usize = 256;
/// The most warnings that wait for room; beyond this, the oldest are dropped.
const WARNINGS_WAITING_MAX: usize = 8;
/// The largest encoded effect, in bits.
pub(super) const EFFECT_BITS_MAX: usize = 143;

/// Encodes the snapshots of one client.
#[derive(Clone, Debug)]
pub struct Sender<B> {
    pub(super) layout: BodyLayout,
    /// The client's own body.
    pub(super) avatar: EntityId,
    pub(super) players: u16,
    score: fn(&Urgency) -> i64,
    categories: CategoryCounter<B>,
    /// In ascending order of id.
    tracks: Vec<(EntityId, EntityTrack)>,
    /// The last [`WINDOW`] snapshots sent.
    sent: VecDeque<SnapshotReference>,
    /// The newest snapshot that the client has acked.
    acked: Option<SnapshotReference>,
    warnings: VecDeque<OutOfSeqWarning>,
    effects: VecDeque<Effect>,
}

#[derive(Clone, Copy, Debug)]
struct SnapshotReference {
    seq: SnapshotSeq,
    server_time: Micros,
}

value!(SnapshotReference { seq, server_time });
state!(Sender<B: Body> { categories, tracks, sent, acked, warnings, effects } but {
    layout,
    avatar,
    players,
    score,
} if is_valid);

/// An encoded snapshot, not yet sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedSnapshot<B> {
    /// The message. Messages longer than a datagram must go as [`fragments`](super::fragments).
    pub datagram: Vec<u8>,
    /// The entities in the message, in order of priority.
    pub carried: Vec<EntityId>,
    /// Changed entities that the message has no room for. When it is empty, a client that receives this message has
    /// exactly the server's frame.
    pub deferred: Vec<EntityId>,
    /// The frame that a client has with this message if it lost none: deferred entities are as they were sent last. It
    /// is the snapshot's own frame if they have not changed since then.
    pub frame: Arc<Frame<B>>,
    /// The effects in the message.
    pub effects: Vec<Effect>,
    /// The number of effects that wait for a later message.
    pub effects_waiting: usize,
    /// The number of effects that were dropped, because too many wait.
    pub effects_dropped: usize,
    /// The number of warnings that were dropped for lack of room.
    pub warnings_dropped: usize,
    /// The bits of the message by purpose.
    pub bit_counts: SnapshotBitCounts,
}

/// The reasons why a snapshot cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The client's own body does not fit. It must be in every snapshot, because the client compares its prediction
    /// with it.
    #[error("{needed_bytes} bytes are needed for the client's own body, and {budget_bytes} allowed")]
    TooSmall {
        /// The bytes that the header, the client's own body and the seal take.
        needed_bytes: usize,
        /// The bytes that the budget allows.
        budget_bytes: usize,
    },
    /// The snapshot is not newer than the last one encoded.
    #[error("snapshot {next} after snapshot {last}")]
    OutOfOrder {
        /// The last snapshot that was encoded.
        last: SnapshotSeq,
        /// The snapshot that was refused.
        next: SnapshotSeq,
    },
}

/// A change of one entity that the client has to receive.
struct EntityChange<'a> {
    id: EntityId,
    /// The place of the entity's track in the sender.
    track: usize,
    /// The state to send; `None` when the entity is removed.
    cells: Option<&'a Arc<[u32]>>,
    urgency: Urgency,
    /// The state to code against, and how many snapshots ago a message carried it.
    base: Option<(u32, Arc<[u32]>)>,
}

impl EntityChange<'_> {
    /// Returns the number of submessages: an entity that appears needs a definition first.
    fn submessages(&self) -> u32 {
        if self.cells.is_some() && self.base.is_none() { 2 } else { 1 }
    }
}

/// Returns the connection that controls an entity in a session with this number of players; 0 for none.
pub(super) fn controller(entity: EntityId, players: u16) -> u16 {
    if entity.0 < players { entity.0 + 1 } else { 0 }
}

impl<B: Body> Sender<B> {
    /// Creates the sender for `player` in a session of `players` players.
    pub fn new(player: PlayerId, players: u16) -> Sender<B> {
        Sender {
            layout: BodyLayout::new::<B>(),
            avatar: player.entity(),
            players,
            score: Urgency::score,
            categories: CategoryCounter::new(player.entity()),
            tracks: Vec::new(),
            sent: VecDeque::new(),
            acked: None,
            warnings: VecDeque::new(),
            effects: VecDeque::new(),
        }
    }

    /// Warns the client about its last usercmd with the next snapshot.
    pub fn warn(&mut self, warning: OutOfSeqWarning) {
        push_bounded(&mut self.warnings, warning, WARNINGS_WAITING_MAX);
    }

    /// Replaces [`Urgency::score`] as the priority function. Entities with a higher score are sent sooner.
    pub fn prioritize(&mut self, score: fn(&Urgency) -> i64) {
        self.score = score;
    }

    /// Sets the categories used to count bits. By default, a field's category follows from its scope.
    pub fn categorize(&mut self, category: CategoryOf<B>) {
        self.categories.count_by(category);
    }

    /// Takes a client's ack. Ignores acks of snapshots that were never sent.
    pub fn handle_ack(&mut self, received: &ReceivedSet) {
        if self.sent.back().is_none_or(|last| received.newest > last.seq) {
            return;
        }
        let Some(newest) = self.sent.iter().rev().find(|sent| received.contains(sent.seq)).copied() else { return };
        if self.acked.is_none_or(|acked| acked.seq < newest.seq) {
            self.acked = Some(newest);
        }
        for (_, track) in &mut self.tracks {
            track.handle_ack(received);
        }
    }

    /// Encodes a snapshot in at most `budget_bytes` (and `MESSAGE_BYTES_MAX`), including the seal. The caller must send
    /// longer messages than a datagram as [`fragments`](super::fragments).
    /// `states` holds the states of the frame; share it among the senders of all clients.
    ///
    /// # Errors
    /// When the client's own body does not fit into the budget, or the snapshot is not newer than the last. The sender
    /// is then unchanged.
    pub fn encode(
        &mut self,
        snapshot: &Snapshot<B>,
        budget_bytes: usize,
        states: &mut SharedStates<B>,
    ) -> Result<EncodedSnapshot<B>, EncodeError> {
        if let Some(last) = self.sent.back().filter(|last| last.seq >= snapshot.seq) {
            return Err(EncodeError::OutOfOrder { last: last.seq, next: snapshot.seq });
        }
        let budget = budget_bytes.min(MESSAGE_BYTES_MAX);
        let mut changes = self.changes(snapshot, states);
        // The own avatar first, then by urgency; equal urgency by id.
        let order =
            |change: &EntityChange| (change.id != self.avatar, Reverse((self.score)(&change.urgency)), change.id);
        changes.sort_by_cached_key(order);
        let from = self.acked.filter(|acked| snapshot.seq.0 - acked.seq.0 < WINDOW);
        let usual_distance = from.map(|acked| snapshot.seq.0 - acked.seq.0);
        let base = from.map(|acked| (acked.seq, acked.server_time));
        let mut page = DatagramPage::begin(snapshot, base, budget.saturating_sub(SEAL_BYTES) * 8);
        let mut carried: Vec<&EntityChange> = Vec::with_capacity(changes.len());
        let mut deferred: Vec<&EntityChange> = Vec::new();
        let (own, others) = changes.split_at(changes.partition_point(|change| change.id == self.avatar));
        for change in own {
            if !page.put(change.submessages(), 0, |out| self.put_change(snapshot, usual_distance, change, out)) {
                let mut oversized = page.out;
                self.put_change(snapshot, usual_distance, change, &mut oversized);
                let needed_bytes = oversized.len_bits().div_ceil(8) + SEAL_BYTES;
                return Err(EncodeError::TooSmall { needed_bytes, budget_bytes: budget });
            }
            carried.push(change);
        }
        self.effects.extend(&snapshot.effects);
        let effects_dropped = self.effects.len().saturating_sub(EFFECTS_WAITING_MAX);
        self.effects.drain(..effects_dropped);
        // A warning is about the last usercmd and would be stale later.
        while self.warnings.front().copied().is_some_and(|warning| page.put_event(0, |out| warning.put(out))) {
            self.warnings.pop_front();
        }
        let warnings_dropped = std::mem::take(&mut self.warnings).len();
        if let Some(echo) = snapshot.echo {
            // An echo without room is no loss: the next one covers it.
            page.put_event(0, |out| echo.put(out));
        }
        // Effects are written last, because they are coded relative to their entities. Up to a quarter of the room is
        // reserved for them.
        let reserved = (self.effects.len() * EFFECT_BITS_MAX).min(page.left() / 4);
        for change in others {
            let is_carried =
                page.put(change.submessages(), reserved, |out| self.put_change(snapshot, usual_distance, change, out));
            if is_carried { &mut carried } else { &mut deferred }.push(change);
        }
        let effects = self.put_effects(&mut page, snapshot, &carried);
        let frame = self.client_frame(&snapshot.frame, &deferred);
        for change in &carried {
            self.tracks[change.track].1.remember_sent(snapshot.seq, change.cells.cloned());
        }
        for change in &deferred {
            self.tracks[change.track].1.waited += 1;
        }
        let sent = SnapshotReference { seq: snapshot.seq, server_time: snapshot.frame.server_time };
        push_bounded(&mut self.sent, sent, WINDOW as usize);
        let (datagram, bit_counts) = page.finish();
        Ok(EncodedSnapshot {
            datagram,
            bit_counts,
            carried: carried.iter().map(|change| change.id).collect(),
            deferred: deferred.iter().map(|change| change.id).collect(),
            frame,
            effects,
            effects_waiting: self.effects.len(),
            effects_dropped,
            warnings_dropped,
        })
    }

    /// Returns whether a client can have been sent these states.
    fn is_valid(&self) -> bool {
        let last = self.sent.back().map_or(SnapshotSeq(0), |sent| sent.seq);
        let in_order = self.sent.iter().zip(self.sent.iter().skip(1)).all(|(a, b)| a.seq < b.seq);
        in_order
            && self.sent.len() <= WINDOW as usize
            && self.acked.is_none_or(|acked| acked.seq <= last)
            && self.tracks.is_sorted_by(|(a, _), (b, _)| a < b)
            && self.tracks.iter().all(|(_, track)| track.is_valid(last, B::CELLS))
            && self.warnings.len() <= WARNINGS_WAITING_MAX
            && self.effects.len() <= EFFECTS_WAITING_MAX
    }

    /// Returns the changes that the client has to receive, in ascending order of entity.
    fn changes<'a>(&mut self, snapshot: &'a Snapshot<B>, states: &'a mut SharedStates<B>) -> Vec<EntityChange<'a>> {
        let frame = &snapshot.frame;
        self.follow(frame);
        let viewer = frame.get(self.avatar);
        let mut changes = Vec::with_capacity(self.tracks.len());
        let mut present = states.of(frame).peekable();
        for (place, (id, track)) in self.tracks.iter().enumerate() {
            let (body, truth) = present.next_if(|(shown, _)| shown == id).map(|(_, present)| present).unzip();
            if !track.needs(truth) {
                continue;
            }
            let distance_units = match (body, viewer) {
                (Some(body), Some(viewer)) => body.offset_from(viewer).length(),
                _ => 0.0,
            };
            let base = track.base(snapshot.seq);
            let bits = match (&base, truth) {
                (Some((_, old)), Some(new)) => self.layout.update_bits(old, new),
                // An entity that appears or disappears has the highest importance.
                _ => u8::MAX,
            };
            let urgency = Urgency { bits, echo: track.is_echo(truth), distance_units, waited: track.waited };
            let base = base.map(|(seq, old)| (snapshot.seq.0 - seq.0, Arc::clone(old)));
            changes.push(EntityChange { id: *id, track: place, cells: truth, urgency, base });
        }
        changes
    }

    /// Begins a track for each new entity of a frame, and drops the tracks of entities that are gone for both sides. An
    /// entity that was never sent, but still waits for room, is dropped only after it has left the frame.
    fn follow(&mut self, frame: &Frame<B>) {
        let mut place = 0;
        for (id, _) in &frame.entities {
            while self.tracks.get(place).is_some_and(|(tracked, _)| tracked < id) {
                place += 1;
            }
            if self.tracks.get(place).is_none_or(|(tracked, _)| tracked != id) {
                self.tracks.insert(place, (*id, EntityTrack::new()));
            }
            place += 1;
        }
        // Every entity of the frame has a track, so there are others only if there are more.
        if self.tracks.len() > frame.entities.len() {
            self.tracks.retain(|(id, track)| {
                let is_kept = !track.is_over() || frame.get(*id).is_some();
                if !is_kept {
                    self.categories.forget(*id);
                }
                is_kept
            });
        }
    }

    /// Writes a change and returns what its bits were used for. `usual_distance` is the number of snapshots to the base
    /// that most entities use.
    fn put_change(
        &mut self,
        snapshot: &Snapshot<B>,
        usual_distance: Option<u32>,
        change: &EntityChange,
        out: &mut BitWriter,
    ) -> SnapshotBitCounts {
        let body = snapshot.frame.get(change.id);
        let categories = body.map_or(&[][..], |body| self.categories.of(change.id, body));
        let begun = out.len_bits();
        let mut bit_counts = SnapshotBitCounts::default();
        let mut all_values = 0;
        let mut values = |cell: usize, bits: usize| {
            bit_counts.values[categories[cell] as usize] += bits as u32;
            all_values += bits;
        };
        let base = change.base.as_ref().map(|(distance, old)| (*distance, &old[..]));
        let who = (change.id, controller(change.id, self.players));
        self.layout.put_entity(who, usual_distance, base, change.cells.map(|cells| &cells[..]), &mut values, out);
        bit_counts.naming = (out.len_bits() - begun - all_values) as u32;
        bit_counts
    }

    /// Writes waiting effects, oldest first, as long as they fit. Returns them.
    fn put_effects(
        &mut self,
        page: &mut DatagramPage,
        snapshot: &Snapshot<B>,
        carried: &[&EntityChange],
    ) -> Vec<Effect> {
        let fits = |effect: &&Effect| {
            let is_carried = carried.iter().any(|change| change.id == effect.entity);
            let near = snapshot.frame.get(effect.entity).filter(|_| is_carried).map(Body::position_f32);
            page.put_event(0, |out| put_effect(out, effect, near))
        };
        let fitting = self.effects.iter().take_while(fits).count();
        self.effects.drain(..fitting).collect()
    }

    /// Returns the frame that a client has if it lost no snapshot: the deferred entities are as they were sent last.
    fn client_frame(&self, frame: &Arc<Frame<B>>, deferred: &[&EntityChange]) -> Arc<Frame<B>> {
        let mut client_frame = Arc::clone(frame);
        for change in deferred {
            let last_sent = self.tracks[change.track].1.last_sent().and_then(|cells| B::read(cells).ok());
            // Most deferred entities have not changed since they were sent, so the frame stays shared.
            if client_frame.get(change.id) == last_sent.as_ref() {
                continue;
            }
            let entities = &mut Arc::make_mut(&mut client_frame).entities;
            match (entities.binary_search_by_key(&change.id, |(id, _)| *id), last_sent) {
                (Ok(place), Some(body)) => entities[place].1 = body,
                (Ok(place), None) => drop(entities.remove(place)),
                (Err(place), Some(body)) => entities.insert(place, (change.id, body)),
                (Err(_), None) => {}
            }
        }
        client_frame
    }
}

/// An entity that has waited this many packets longer than another is sent before it.
pub const OVERTAKES_AFTER: u32 = 32;

/// The score of a nearby entity with all bits set.
const SCORE_MAX: f32 = 256.0 * 1024.0;
const SCORE_PER_PACKET: i64 = SCORE_MAX as i64 / OVERTAKES_AFTER as i64;
/// The distance from the avatar, in units, at which a change counts half.
const HALF_AT_UNITS: f32 = 512.0;
/// The divisor for a state that was already sent and is repeated in case it was lost.
const ECHO_DIVISOR: f32 = 4.0;

/// The inputs of an entity's priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urgency {
    /// The update bitfield; all bits are set for an entity that appears or disappears.
    pub bits: u8,
    /// Whether the same state was already sent but not yet acked.
    pub echo: bool,
    /// The distance from the client's avatar, in units.
    pub distance_units: f32,
    /// The number of packets that the entity has waited.
    pub waited: u32,
}

impl Urgency {
    /// Returns the score; entities with a higher score are sent sooner. Only the distance term uses floats, in one IEEE
    /// division and one multiplication, so every platform computes the same score.
    pub fn score(&self) -> i64 {
        let distance = if self.distance_units >= 0.0 { self.distance_units.min(1e6) } else { 1e6 };
        let importance = (f32::from(self.bits) + 1.0) * (SCORE_MAX / 256.0);
        let importance = if self.echo { importance / ECHO_DIVISOR } else { importance };
        let nearby = importance * (HALF_AT_UNITS / (HALF_AT_UNITS + distance));
        nearby as i64 + i64::from(self.waited) * SCORE_PER_PACKET
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rink::Skater;
    use crate::wire::{DecodeOutcome, Receiver};
    use glam::Vec3;
    use hitreg_log::rng::Rng;
    use hitreg_log::units::{CommandSeq, Seed, Tick};
    use proptest::prelude::*;

    fn urgency(bits: u8, distance_units: f32, waited: u32) -> Urgency {
        Urgency { bits, echo: false, distance_units, waited }
    }

    #[test]
    fn urgency_depends_on_importance_distance_and_waiting() {
        let base = urgency(0b1000, 300.0, 0).score();
        assert!(urgency(0b100_0000, 300.0, 0).score() > base);
        assert!(urgency(0b1000, 100.0, 0).score() > base);
        assert!(urgency(0b1000, 300.0, 1).score() > base);
        assert!(Urgency { echo: true, ..urgency(0b1000, 300.0, 0) }.score() < base);
        assert!(urgency(0b1000, f32::NAN, 0).score() < base);
    }

    proptest! {
        #[test]
        fn no_entity_is_overtaken_for_ever(a in any::<u8>(), b in any::<u8>(), d in 0f32..1e7, e in 0f32..1e7, w in 0u32..1000) {
            let long = urgency(a, d, w + OVERTAKES_AFTER + 1);
            prop_assert!(long.score() > urgency(b, e, w).score());
        }
    }

    #[test]
    fn an_entity_is_tracked_until_the_client_acks_its_removal() {
        let (mut sender, mut states) = (Sender::<Skater>::new(PlayerId(0), 1), SharedStates::default());
        let mut tracked = Vec::new();
        for (seq, entities, is_acked) in [(1, 3, true), (2, 1, false), (3, 1, true), (4, 1, false)] {
            let entities = (0..entities).map(|id| (EntityId(id), Skater::default())).collect();
            let frame = Frame { tick: Tick(seq), server_time: Micros::ZERO, entities };
            let snapshot = Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame));
            sender.encode(&snapshot, MESSAGE_BYTES_MAX, &mut states).expect("there is room");
            if is_acked {
                sender.handle_ack(&ReceivedSet { newest: SnapshotSeq(seq), before: 0 });
            }
            tracked.push(sender.tracks.len());
        }
        assert_eq!(tracked, [3, 3, 3, 1]);
    }

    /// Entities move, rest, disappear and appear again, alone and together, with room for few of them.
    #[test]
    fn a_client_that_loses_nothing_has_the_frames_that_the_sender_names() {
        let mut rng = Rng::new(Seed(1), 0);
        let (mut sender, mut receiver) = (Sender::<Skater>::new(PlayerId(0), 8), Receiver::default());
        let mut skaters = [Skater::default(); 90];
        let mut acks = VecDeque::from([receiver.received(); 3]);
        let [mut whole, mut late_removals] = [0, 0];
        for seq in 1..600 {
            for (id, skater) in skaters.iter_mut().enumerate() {
                let is_moving = if seq % 200 < 150 { id % 3 > 0 } else { id == 0 };
                skater.origin += Vec3::splat(f32::from(u8::from(is_moving)) * rng.signed_f32());
                skater.alive ^= id > 0 && is_moving && rng.chance(0.05);
            }
            let is_there = |(id, skater): &(EntityId, Skater)| id.0 == 0 || !skater.alive && seq % 50 > 10;
            let there = (0..).map(EntityId).zip(skaters).filter(is_there).collect();
            let frame = Frame { tick: Tick(seq), server_time: Micros(seq.into()), entities: there };
            let snapshot = Snapshot::new(SnapshotSeq(seq), CommandSeq(0), Arc::new(frame));
            let encoded = sender.encode(&snapshot, 120, &mut SharedStates::default()).expect("room for one");
            let decoded = receiver.decode(&encoded.datagram, CommandSeq(0)).expect("the sender encoded it");
            let DecodeOutcome::New(received) = decoded else { panic!("{decoded:?}") };
            assert_eq!(encoded.frame, received.snapshot.frame, "snapshot {seq}");
            assert_eq!(Arc::ptr_eq(&encoded.frame, &snapshot.frame), encoded.frame == snapshot.frame);
            whole += usize::from(encoded.deferred.is_empty());
            late_removals += encoded.deferred.iter().filter(|id| snapshot.frame.get(**id).is_none()).count();
            acks.push_back(receiver.received());
            sender.handle_ack(&acks.pop_front().expect("three are on their way"));
        }
        assert!(whole > 20 && late_removals > 20, "{whole} {late_removals}");
    }
}
