//! The server's end of one client's updates: each snapshot becomes one message of at most a given size, in which every
//! entity is coded as its difference from the last state of it that the client acked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::change::Change;
use super::fragment::MESSAGE_BYTES_MAX;
use super::header::SEAL_BYTES;
use super::layout::Layout;
use super::notice::{Notice, NoticeError, OutOfSeqWarning, Outbox, put_effect};
use super::page::Page;
use super::priority::Urgency;
use super::told::{Categories, CategoryOf, Told};
use super::track::Track;
use super::{ReceivedSet, WINDOW, Wrapping16};
use crate::game::{Body, Effect};
use crate::packet::Snapshot;
use hitreg_log::units::{EntityId, Micros, PlayerId, SnapshotSeq};

/// Effects that found no room wait; beyond this many the oldest are given up.
const EFFECTS_WAITING_MAX: usize = 256;
/// Warnings that found no room wait; beyond this many the oldest are given up.
const WARNINGS_WAITING_MAX: usize = 8;
/// The largest effect.
pub(super) const EFFECT_BITS_MAX: usize = 143;

/// Encodes the snapshots of one client.
#[derive(Clone, Debug)]
pub struct Sender<B> {
    layout: Layout<B>,
    avatar: EntityId,
    players: u16,
    score: fn(&Urgency) -> i64,
    categories: Categories<B>,
    tracks: BTreeMap<EntityId, Track>,
    /// The last [`WINDOW`] snapshots.
    sent: VecDeque<Sent>,
    /// The newest one that the client has.
    acked: Option<Sent>,
    warnings: VecDeque<OutOfSeqWarning>,
    outbox: Outbox,
    effects: VecDeque<Effect>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: SnapshotSeq,
    server_time: Micros,
    /// The number of the first notice that it did not carry.
    next_notice: Wrapping16,
}

/// A snapshot as a datagram, not yet sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The datagram.
    pub datagram: Vec<u8>,
    /// The entities that it tells about, in the order of their priority.
    pub carried: Vec<EntityId>,
    /// The entities that have changed, and for which there was no room. Empty means that the client, once it has this
    /// datagram, has the snapshot's frame to the bit.
    pub deferred: Vec<EntityId>,
    /// How many effects wait for a later datagram.
    pub effects_waiting: usize,
    /// How many warnings there was no room for; they are not sent later.
    pub warnings_dropped: usize,
    /// What its bits are for.
    pub told: Told,
}

/// A snapshot that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A client's own body may not wait, because an ack without it would be compared with the wrong state.
    #[error("{needed_bytes} bytes are needed for the client's own body, and {budget_bytes} allowed")]
    TooSmall {
        /// What the header, the client's own body and the seal take.
        needed_bytes: usize,
        /// What was allowed.
        budget_bytes: usize,
    },
    /// Snapshots go out in the order of their numbers.
    #[error("snapshot {next} after snapshot {last}")]
    OutOfOrder {
        /// The last one that was encoded.
        last: SnapshotSeq,
        /// The one that was to be.
        next: SnapshotSeq,
    },
}

impl<B: Body> Sender<B> {
    /// The updates of `player`, of a session of `players`.
    pub fn new(player: PlayerId, players: u16) -> Sender<B> {
        Sender {
            layout: Layout::new(),
            avatar: player.entity(),
            players,
            score: Urgency::score,
            categories: Categories::new(player.entity()),
            tracks: BTreeMap::new(),
            sent: VecDeque::new(),
            acked: None,
            warnings: VecDeque::new(),
            outbox: Outbox::default(),
            effects: VecDeque::new(),
        }
    }

    /// The client's own body.
    pub(crate) fn avatar(&self) -> EntityId {
        self.avatar
    }

    /// Warns the client about its last frame, with the next snapshot.
    pub fn warn(&mut self, warning: OutOfSeqWarning) {
        self.warnings.push_back(warning);
        if self.warnings.len() > WARNINGS_WAITING_MAX {
            self.warnings.pop_front();
        }
    }

    /// Tells the client something that it is to hear for certain.
    ///
    /// # Errors
    /// When it is too long, or too many wait already.
    pub fn tell(&mut self, notice: Notice) -> Result<(), NoticeError> {
        self.outbox.push(notice)
    }

    /// Takes another order of importance than [`Urgency::score`]: the greater the score, the sooner an entity is sent.
    pub fn prioritize(&mut self, score: fn(&Urgency) -> i64) {
        self.score = score;
    }

    /// Counts bits of values by these categories; without them a variable has the one that follows from its scope.
    pub fn categorize(&mut self, category: CategoryOf<B>) {
        self.categories.go_by(category);
    }

    /// Takes what the client says that it has received. What was never sent is not believed.
    pub fn handle_ack(&mut self, received: &ReceivedSet) {
        if self.sent.back().is_none_or(|last| received.newest > last.seq) {
            return;
        }
        let Some(newest) = self.sent.iter().rev().find(|sent| received.contains(sent.seq)).copied() else { return };
        if self.acked.is_none_or(|acked| acked.seq < newest.seq) {
            self.acked = Some(newest);
        }
        self.outbox.handle_ack(newest.next_notice);
        for track in self.tracks.values_mut() {
            track.handle_ack(received);
        }
    }

    /// Encodes a snapshot in at most `budget_bytes` (and `MESSAGE_BYTES_MAX`), the seal included. What is longer than
    /// a datagram is to be sent as [`fragments`](super::fragments). `calibration_ms` is the calibration helper.
    ///
    /// # Errors
    /// When the budget does not hold the client's own body, or the snapshot is not newer than the last. Nothing
    /// has changed then.
    pub fn encode(
        &mut self,
        snapshot: &Snapshot<B>,
        calibration_ms: Option<i16>,
        budget_bytes: usize,
    ) -> Result<Encoded, EncodeError> {
        if let Some(last) = self.sent.back().filter(|last| last.seq >= snapshot.seq) {
            return Err(EncodeError::OutOfOrder { last: last.seq, next: snapshot.seq });
        }
        let budget = budget_bytes.min(MESSAGE_BYTES_MAX);
        let mut changes = self.changes(snapshot);
        let order = |change: &Change| (change.id != self.avatar, Reverse((self.score)(&change.urgency)), change.id);
        changes.sort_by_cached_key(order);
        let from = self.acked.filter(|acked| snapshot.seq.0 - acked.seq.0 < WINDOW);
        let usual = from.map(|acked| snapshot.seq.0 - acked.seq.0);
        let told_from = from.map(|acked| (acked.seq, acked.server_time));
        let mut page = Page::begin(snapshot, calibration_ms, told_from, budget.saturating_sub(SEAL_BYTES) * 8);
        let mut carried = Vec::with_capacity(changes.len());
        let mut deferred = Vec::new();
        let own = changes.iter().take_while(|change| change.id == self.avatar).count();
        let others = changes.split_off(own);
        for change in changes {
            let body = snapshot.frame.get(change.id);
            let categories = body.map_or(&[][..], |body| self.categories.of(change.id, body));
            if !page.put(change.submessages(), 0, |out| change.put(&self.layout, usual, categories, out)) {
                let mut whole = page.out;
                change.put(&self.layout, usual, categories, &mut whole);
                let needed_bytes = whole.len_bits().div_ceil(8) + SEAL_BYTES;
                return Err(EncodeError::TooSmall { needed_bytes, budget_bytes: budget });
            }
            carried.push(change);
        }
        self.effects.extend(&snapshot.effects);
        let excess = self.effects.len().saturating_sub(EFFECTS_WAITING_MAX);
        self.effects.drain(..excess);
        let next_notice = self.put_notices(&mut page, snapshot.seq);
        let warnings_dropped = std::mem::take(&mut self.warnings).len();
        if let Some(echo) = snapshot.echo {
            // One that finds no room is no loss: the next says the same and more.
            page.put_event(0, |out| echo.put(out));
        }
        // Effects come last, so that they can be coded relative to their entities; a part of what is left is kept for them.
        let reserved = (self.effects.len() * EFFECT_BITS_MAX).min(page.left() / 4);
        for change in others {
            let body = snapshot.frame.get(change.id);
            let categories = body.map_or(&[][..], |body| self.categories.of(change.id, body));
            if page.put(change.submessages(), reserved, |out| change.put(&self.layout, usual, categories, out)) {
                carried.push(change);
            } else {
                deferred.push(change.id);
            }
        }
        self.put_effects(&mut page, snapshot, &carried);
        self.remember(snapshot, next_notice, &carried, &deferred);
        let (datagram, told) = page.finish();
        Ok(Encoded {
            datagram,
            told,
            carried: carried.iter().map(|change| change.id).collect(),
            deferred,
            effects_waiting: self.effects.len(),
            warnings_dropped,
        })
    }

    /// What the client has to be sent, in ascending order of entity.
    fn changes(&mut self, snapshot: &Snapshot<B>) -> Vec<Change> {
        let frame = &snapshot.frame;
        for (id, _) in &frame.entities {
            self.tracks.entry(*id).or_insert_with(Track::new);
        }
        // One that was never sent, and has waited for room, is over only once it has left.
        self.tracks.retain(|id, track| {
            let is_kept = !track.is_over() || frame.get(*id).is_some();
            if !is_kept {
                self.categories.forget(*id);
            }
            is_kept
        });
        let viewer = frame.get(self.avatar).map(Body::origin);
        let mut changes = Vec::new();
        for (id, track) in &self.tracks {
            let truth = frame.get(*id).map(|body| (body, cells_of(body)));
            if !track.needs(truth.as_ref().map(|(_, cells)| &**cells)) {
                continue;
            }
            let distance = match (&truth, viewer) {
                (Some((body, _)), Some(viewer)) => body.origin().distance(viewer),
                _ => 0.0,
            };
            let controller = if id.0 < self.players { id.0 + 1 } else { 0 };
            let cells = truth.map(|(_, cells)| cells);
            changes.push(Change::new(&self.layout, *id, controller, track, cells, distance, snapshot.seq));
        }
        changes
    }

    /// Writes warnings and notices; returns the number of the first notice that is not in.
    fn put_notices(&mut self, page: &mut Page, seq: SnapshotSeq) -> Wrapping16 {
        // A warning is about the last frame: later it would be stale.
        while self.warnings.front().copied().is_some_and(|warning| page.put_event(0, |out| warning.put(out))) {
            self.warnings.pop_front();
        }
        // Chat leaves half of the room to the entities, but a long line must not wait for ever.
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

    fn put_effects(&mut self, page: &mut Page, snapshot: &Snapshot<B>, carried: &[Change]) {
        while let Some(effect) = self.effects.front().copied() {
            let is_carried = carried.iter().any(|change| change.id == effect.entity);
            let near = snapshot.frame.get(effect.entity).filter(|_| is_carried).map(Body::origin);
            if !page.put_event(0, |out| put_effect(out, &effect, near)) {
                break;
            }
            self.effects.pop_front();
        }
    }

    fn remember(&mut self, snapshot: &Snapshot<B>, next_notice: Wrapping16, carried: &[Change], deferred: &[EntityId]) {
        for change in carried {
            if let Some(track) = self.tracks.get_mut(&change.id) {
                track.remember_sent(snapshot.seq, change.cells.clone());
            }
        }
        for id in deferred {
            if let Some(track) = self.tracks.get_mut(id) {
                track.waited += 1;
            }
        }
        self.sent.push_back(Sent { seq: snapshot.seq, server_time: snapshot.frame.server_time, next_notice });
        if self.sent.len() > WINDOW as usize {
            self.sent.pop_front();
        }
    }
}

fn cells_of<B: Body>(body: &B) -> Arc<[u32]> {
    let mut cells = vec![0; B::CELLS];
    body.write(&mut cells);
    Arc::from(cells)
}
