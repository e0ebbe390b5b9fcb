//! The server side of one client's snapshots. Each snapshot becomes one message of limited size. Every entity is coded
//! as the difference from its last state that the client acked.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use super::bit_counts::{CategoryCounter, CategoryOf, SnapshotBitCounts};
use super::bits::BitWriter;
use super::change::EntityChange;
use super::fragment::MESSAGE_BYTES_MAX;
use super::header::SEAL_BYTES;
use super::layout::BodyLayout;
use super::notice::{Notice, NoticeError, OutOfSeqWarning, Outbox, put_effect};
use super::page::DatagramPage;
use super::priority::Urgency;
use super::shared_states::SharedStates;
use super::track::EntityTrack;
use super::{ReceivedSet, WINDOW, Wrapping16};
use crate::bounded::push_bounded;
use crate::game::{Body, Effect};
use crate::history::Frame;
use crate::packet::Snapshot;
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
    layout: BodyLayout<B>,
    avatar: EntityId,
    players: u16,
    score: fn(&Urgency) -> i64,
    categories: CategoryCounter<B>,
    /// In ascending order of id.
    tracks: Vec<(EntityId, EntityTrack)>,
    /// The last [`WINDOW`] snapshots sent.
    sent: VecDeque<SentRecord>,
    /// The newest snapshot that the client has acked.
    acked: Option<SentRecord>,
    warnings: VecDeque<OutOfSeqWarning>,
    outbox: Outbox,
    effects: VecDeque<Effect>,
}

#[derive(Clone, Copy, Debug)]
struct SentRecord {
    seq: SnapshotSeq,
    server_time: Micros,
    /// The number of the first notice that this snapshot did not carry.
    next_notice: Wrapping16,
}

value!(SentRecord { seq, server_time, next_notice });
state!(Sender<B: Body> { categories, tracks, sent, acked, warnings, outbox, effects } but {
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

/// Returns the connection that controls an entity in a session with this number of players; 0 for none.
pub(super) fn controller(entity: EntityId, players: u16) -> u16 {
    if entity.0 < players { entity.0 + 1 } else { 0 }
}

impl<B: Body> Sender<B> {
    /// Creates the sender for `player` in a session of `players` players.
    pub fn new(player: PlayerId, players: u16) -> Sender<B> {
        Sender {
            layout: BodyLayout::new(),
            avatar: player.entity(),
            players,
            score: Urgency::score,
            categories: CategoryCounter::new(player.entity()),
            tracks: Vec::new(),
            sent: VecDeque::new(),
            acked: None,
            warnings: VecDeque::new(),
            outbox: Outbox::default(),
            effects: VecDeque::new(),
        }
    }

    /// Returns the layout of bodies, and the number of players.
    pub(super) fn layout(&self) -> (&BodyLayout<B>, u16) {
        (&self.layout, self.players)
    }

    /// Returns the client's own body.
    pub(crate) fn avatar(&self) -> EntityId {
        self.avatar
    }

    /// Warns the client about its last usercmd with the next snapshot.
    pub fn warn(&mut self, warning: OutOfSeqWarning) {
        push_bounded(&mut self.warnings, warning, WARNINGS_WAITING_MAX);
    }

    /// Queues a notice that is repeated until the client acks it.
    ///
    /// # Errors
    /// When the notice is too long, or too many are waiting.
    pub fn tell(&mut self, notice: Notice) -> Result<(), NoticeError> {
        self.outbox.push(notice)
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
        self.outbox.handle_ack(newest.next_notice);
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
        let order =
            |change: &EntityChange| (change.id != self.avatar, Reverse((self.score)(&change.urgency)), change.id);
        changes.sort_by_cached_key(order);
        let from = self.acked.filter(|acked| snapshot.seq.0 - acked.seq.0 < WINDOW);
        let usual = from.map(|acked| snapshot.seq.0 - acked.seq.0);
        let base = from.map(|acked| (acked.seq, acked.server_time));
        let mut page = DatagramPage::begin(snapshot, base, budget.saturating_sub(SEAL_BYTES) * 8);
        let mut carried: Vec<&EntityChange> = Vec::with_capacity(changes.len());
        let mut deferred: Vec<&EntityChange> = Vec::new();
        let (own, others) = changes.split_at(changes.partition_point(|change| change.id == self.avatar));
        for change in own {
            if !page.put(change.submessages(), 0, |out| self.put_change(snapshot, usual, change, out)) {
                let mut whole = page.out;
                self.put_change(snapshot, usual, change, &mut whole);
                let needed_bytes = whole.len_bits().div_ceil(8) + SEAL_BYTES;
                return Err(EncodeError::TooSmall { needed_bytes, budget_bytes: budget });
            }
            carried.push(change);
        }
        self.effects.extend(&snapshot.effects);
        let effects_dropped = self.effects.len().saturating_sub(EFFECTS_WAITING_MAX);
        self.effects.drain(..effects_dropped);
        let next_notice = self.put_notices(&mut page, snapshot.seq);
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
                page.put(change.submessages(), reserved, |out| self.put_change(snapshot, usual, change, out));
            if is_carried { &mut carried } else { &mut deferred }.push(change);
        }
        let effects = self.put_effects(&mut page, snapshot, &carried);
        let frame = self.client_frame(&snapshot.frame, &deferred);
        self.remember(snapshot, next_notice, &carried, &deferred);
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
            let distance = match (body, viewer) {
                (Some(body), Some(viewer)) => body.offset_from(viewer).length(),
                _ => 0.0,
            };
            let controller = controller(*id, self.players);
            let tracked = (place, *id, track);
            changes.push(EntityChange::new(&self.layout, tracked, controller, truth, distance, snapshot.seq));
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

    fn put_change(
        &mut self,
        snapshot: &Snapshot<B>,
        usual: Option<u32>,
        change: &EntityChange,
        out: &mut BitWriter,
    ) -> SnapshotBitCounts {
        let body = snapshot.frame.get(change.id);
        let categories = body.map_or(&[][..], |body| self.categories.of(change.id, body));
        change.put(&self.layout, usual, categories, out)
    }

    /// Writes warnings and notices. Returns the number of the first notice that did not fit.
    fn put_notices(&mut self, page: &mut DatagramPage, seq: SnapshotSeq) -> Wrapping16 {
        // A warning is about the last usercmd and would be stale later.
        while self.warnings.front().copied().is_some_and(|warning| page.put_event(0, |out| warning.put(out))) {
            self.warnings.pop_front();
        }
        // Chat leaves half of the room to entities, except in every eighth snapshot, so that a long line cannot wait
        // forever.
        let reserved = if seq.0.is_multiple_of(8) { 0 } else { page.left() / 2 };
        let mut next = None;
        for (number, notice) in self.outbox.iter() {
            if !page.put_event(reserved, |out| notice.put(out, number)) {
                return number;
            }
            next = Some(number.later(1));
        }
        next.unwrap_or(self.outbox.first())
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
            let near = snapshot.frame.get(effect.entity).filter(|_| is_carried).map(Body::origin);
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

    fn remember(
        &mut self,
        snapshot: &Snapshot<B>,
        next_notice: Wrapping16,
        carried: &[&EntityChange],
        deferred: &[&EntityChange],
    ) {
        for change in carried {
            self.tracks[change.track].1.remember_sent(snapshot.seq, change.cells.cloned());
        }
        for change in deferred {
            self.tracks[change.track].1.waited += 1;
        }
        let sent = SentRecord { seq: snapshot.seq, server_time: snapshot.frame.server_time, next_notice };
        push_bounded(&mut self.sent, sent, WINDOW as usize);
    }
}

#[cfg(test)]
mod tests;
