//! Packets and snapshots that travel without being encoded, for speed. The encoding is lossless, so omitting it changes
//! nothing as long as message sizes do not matter.
//!
//! Sizes do not matter when every snapshot has room for all changes, stays below the server's rate, and can be decoded
//! on arrival. Each condition is checked, using an upper bound on the message size and on what each side may have
//! dropped. When a check fails, the run stops and must be repeated with datagrams
//! ([`UnencodedTransport::needs_encoding`]). The bound first uses only the number of entities. If that exceeds a limit,
//! a tighter and costlier bound uses their states. A property test compares both ways of running
//! (`tests/pipelines/packet_encoding.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::game::Body;
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::push_bounded;
use crate::settings::{Settings, Sizes};
use crate::state::{State, StateError, StateReader, StateWriter, state, value};
use crate::wire::{DeltaBase, DeltaBound, ExtraCounts, KNOWN_FOR, PACKETS_REMEMBERED, WINDOW, snapshot_bytes_max};
use hitreg_log::units::{EntityId, Micros, PlayerId, SnapshotSeq};

/// What the ends of all connections would know of each other.
pub(super) struct UnencodedTransport<B> {
    message_max_bytes: usize,
    players: Vec<ConnectionEnds<B>>,
    bound: DeltaBound<B>,
    /// Whether encoding could have made a difference, so that the session must run again with datagrams.
    pub(super) needs_encoding: bool,
}

/// Both ends of one player's connection.
struct ConnectionEnds<B> {
    rate_bytes_per_s: i64,
    /// The shortest time between two snapshots.
    spacing_min: Micros,
    /// The newest snapshot that the server knows the client to have.
    acked: Option<SnapshotSeq>,
    /// The last snapshot sent.
    sent: Option<SentSnapshot<B>>,
    /// The frames of the last snapshots, starting with the one before the acked one.
    frames: VecDeque<(SnapshotSeq, Arc<Frame<B>>)>,
    /// The entities in the last snapshot.
    entities: Vec<EntityId>,
    /// The number of entities removed in each snapshot, as long as the client may not know about it.
    removed: VecDeque<(SnapshotSeq, usize)>,
    /// The newest packet that reached the server.
    newest_packet: u32,
    /// The newest snapshot that the client has.
    newest: SnapshotSeq,
    /// One bit for each snapshot up to `newest` that arrived; the lowest bit is `newest` itself.
    arrived: u64,
}

/// A sent snapshot.
struct SentSnapshot<B> {
    seq: SnapshotSeq,
    at: Micros,
    /// The upper bound of its size in bytes.
    bytes_max: usize,
    /// The inputs of the tight bound; `None` when there are none, or when it has been computed.
    tight_bound: Option<DeltaReference<B>>,
}

/// A frame and the frames that it is coded against. When `known` is `None`, the frame is sent in full.
struct DeltaReference<B> {
    frame: Arc<Frame<B>>,
    known: Option<DeltaBase<B>>,
    extras: ExtraCounts,
}

impl<B: Body> UnencodedTransport<B> {
    /// Creates the state of all connections; `None` when message sizes are sure to matter.
    pub(super) fn new(settings: &Arc<Settings>, players: u16) -> Option<UnencodedTransport<B>> {
        let player_settings: Vec<_> = (0..players).map(|player| settings.of_player(PlayerId(player))).collect();
        if settings.wire.sizes != Sizes::Datagrams
            || player_settings.iter().any(|settings| settings.client.adaptive_redundancy)
        {
            return None;
        }
        let ends = |settings: &Arc<Settings>| ConnectionEnds {
            rate_bytes_per_s: settings.server.rate_bytes_per_s,
            spacing_min: settings.server.update_hz.interval() - settings.server.tick_hz.interval(),
            acked: None,
            sent: None,
            frames: VecDeque::new(),
            entities: Vec::new(),
            removed: VecDeque::new(),
            newest_packet: 0,
            newest: SnapshotSeq(0),
            arrived: 0,
        };
        Some(UnencodedTransport {
            message_max_bytes: settings.wire.message_max_bytes.unsigned_abs() as usize,
            players: player_settings.iter().map(ends).collect(),
            bound: DeltaBound::new(),
            needs_encoding: false,
        })
    }

    pub(super) fn acked(&self, player: usize) -> Option<SnapshotSeq> {
        self.players[player].acked
    }

    /// Handles a tick: the rate must not hold back a snapshot that is due.
    pub(super) fn handle_tick(&mut self, at: Micros) {
        self.needs_encoding |= self.players.iter_mut().any(|ends| ends.holds_back(at, &mut self.bound));
    }

    /// Handles a sent snapshot: it must have room for all changes, and its base must be known to the client.
    pub(super) fn send_snapshot(&mut self, player: usize, at: Micros, snapshot: &Snapshot<B>) {
        let ends = &mut self.players[player];
        let entities = &snapshot.frame.entities;
        if !entities.iter().map(|(id, _)| id).eq(&ends.entities) {
            let is_removed = |id: &&EntityId| entities.binary_search_by_key(*id, |(id, _)| *id).is_err();
            let removed = ends.entities.iter().filter(is_removed).count();
            ends.removed.push_back((snapshot.seq, removed));
            ends.entities.clear();
            ends.entities.extend(entities.iter().map(|(id, _)| *id));
        }
        let extras = ExtraCounts {
            removed: ends.removed.iter().map(|(_, removed)| removed).sum(),
            effects: snapshot.effects.len(),
            warnings: snapshot.warnings.len(),
        };
        let rough_bound = snapshot_bytes_max::<B>(entities.len(), extras);
        let within_message = |bound: Option<usize>| bound.filter(|bytes| *bytes <= self.message_max_bytes);
        let tight_bound = ends.tight_bound(snapshot, extras);
        let bound = &mut self.bound;
        let (bytes_max, tight_bound) = match within_message(rough_bound) {
            Some(bytes_max) => (Some(bytes_max), tight_bound),
            None => (within_message(tight_bound.and_then(|tight_bound| tight_bound.bytes_max(bound))), None),
        };
        let sent = bytes_max.map(|bytes_max| SentSnapshot { seq: snapshot.seq, at, bytes_max, tight_bound });
        let is_known = ends.acked.is_none_or(|acked| snapshot.seq.0 - acked.0 < WINDOW);
        self.needs_encoding |= sent.is_none() || !is_known;
        ends.sent = sent;
        push_bounded(&mut ends.frames, (snapshot.seq, Arc::clone(&snapshot.frame)), WINDOW as usize + 1);
    }

    /// Handles a packet that reached the server, with the client's ack.
    pub(super) fn handle_packet(&mut self, player: usize, number: u32, ack: SnapshotSeq) {
        let ends = &mut self.players[player];
        self.needs_encoding |= number + PACKETS_REMEMBERED <= ends.newest_packet;
        ends.newest_packet = ends.newest_packet.max(number);
        if ack > ends.acked.unwrap_or(SnapshotSeq(0)) {
            let is_remembered = ends.sent.as_ref().is_some_and(|last| last.seq.0.saturating_sub(ack.0) < WINDOW);
            self.needs_encoding |= !is_remembered;
            ends.acked = Some(ack);
            while ends.frames.get(1).is_some_and(|(seq, _)| *seq < ack) {
                ends.frames.pop_front();
            }
            while ends.removed.front().is_some_and(|(seq, _)| *seq <= ack) {
                ends.removed.pop_front();
            }
        }
    }

    /// Handles a packet as the server received it. Its ack may name a snapshot that was never sent, and is then
    /// ignored.
    pub(super) fn handle_heard(&mut self, player: usize, ack: SnapshotSeq) {
        let ends = &self.players[player];
        if ends.sent.as_ref().is_some_and(|last| ack <= last.seq) {
            self.handle_packet(player, ends.newest_packet, ack);
        }
    }

    /// Handles a snapshot that reached its client. Returns false when it arrived before. `base` is the newest snapshot
    /// that the server knew the client to have.
    pub(super) fn handle_snapshot(&mut self, player: usize, seq: SnapshotSeq, base: Option<SnapshotSeq>) -> bool {
        let ends = &mut self.players[player];
        let newest = ends.newest.max(seq);
        let oldest = base.map_or(seq, |base| base.min(seq));
        if newest.0 - oldest.0 >= WINDOW {
            self.needs_encoding = true;
            return false;
        }
        ends.arrived = ends.arrived.checked_shl(newest.0 - ends.newest.0).unwrap_or(0);
        ends.newest = newest;
        let bit = 1 << (newest.0 - seq.0);
        let is_new = ends.arrived & bit == 0;
        ends.arrived |= bit;
        is_new
    }
}

impl<B: Body> ConnectionEnds<B> {
    /// Returns the inputs of the tight bound for a snapshot that is about to be sent.
    fn tight_bound(&self, snapshot: &Snapshot<B>, extras: ExtraCounts) -> Option<DeltaReference<B>> {
        let known = match self.acked {
            None => None,
            Some(acked) if snapshot.seq.0 - acked.0 >= KNOWN_FOR => return None,
            Some(acked) => {
                let place = self.frames.iter().position(|(seq, _)| *seq == acked)?;
                let before = place.checked_sub(1).map(|before| Arc::clone(&self.frames[before].1));
                Some(DeltaBase { acked: Arc::clone(&self.frames[place].1), before })
            }
        };
        Some(DeltaReference { frame: Arc::clone(&snapshot.frame), known, extras })
    }

    /// Returns whether sending the last snapshot may take so long that one due at `at` would have to wait.
    fn holds_back(&mut self, at: Micros, bound: &mut DeltaBound<B>) -> bool {
        let (spacing_min, rate_bytes_per_s) = (self.spacing_min, self.rate_bytes_per_s);
        let Some(sent) = &mut self.sent else { return false };
        let may = |bytes: usize| {
            let free_at = sent.at + Micros(bytes as i64 * 1_000_000 / rate_bytes_per_s);
            at > sent.at && at >= sent.at + spacing_min && at < free_at
        };
        if may(sent.bytes_max)
            && let Some(tight_bound) = sent.tight_bound.take()
        {
            sent.bytes_max = tight_bound.bytes_max(bound).unwrap_or(sent.bytes_max);
        }
        may(sent.bytes_max)
    }
}

value!(SentSnapshot<B: Body> { seq, at, bytes_max, tight_bound });
value!(DeltaReference<B: Body> { frame, known, extras });
value!(DeltaBase<B: Body> { acked, before });
value!(ExtraCounts { removed, effects, warnings });
state!(ConnectionEnds<B: Body> {
    acked,
    sent,
    frames,
    entities,
    removed,
    newest_packet,
    newest,
    arrived,
} but { rate_bytes_per_s, spacing_min });

impl<B: Body> State for UnencodedTransport<B> {
    fn save(&self, to: &mut StateWriter) {
        self.players.iter().for_each(|ends| ends.save(to));
    }

    fn restore(&mut self, from: &mut StateReader) -> Result<(), StateError> {
        self.players.iter_mut().try_for_each(|ends| ends.restore(from))
    }
}

impl<B: Body> DeltaReference<B> {
    fn bytes_max(&self, bound: &mut DeltaBound<B>) -> Option<usize> {
        bound.bytes_max(&self.frame, self.known.as_ref(), self.extras)
    }
}
