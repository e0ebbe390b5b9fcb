//! Packets and snapshots that travel without being encoded, for speed: what arrives is what was sent, so nothing is lost by
//! not putting it into bits, as long as nothing depends on how many bits there would have been.
//!
//! That is so where every snapshot is sure to be whole, to keep below the server's rate, and to be readable when it comes.
//! None of it is assumed: each is checked by the longest that a message can be and by what each side can have forgotten,
//! and where a check fails the run stops, to be made anew with datagrams ([`Unencoded::bytes_matter`]). How long a message can be
//! is said by its number of entities, and only where that is too much by their states, which is work. That both come to the same is
//! a property test (`tests/pipelines/carriage.rs`).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::game::Body;
use crate::history::Frame;
use crate::packet::Snapshot;
use crate::settings::{Settings, Sizes};
use crate::state::{BadState, Restorer, Saver, Value, fields};
use crate::wire::{Besides, KNOWN_FOR, Known, PACKETS_REMEMBERED, WINDOW, snapshot_bytes_max, told_bytes_max};
use hitreg_log::units::{EntityId, Micros, PlayerId, SnapshotSeq};

/// What the ends of all connections would know of each other.
pub(super) struct Unencoded<B> {
    message_max_bytes: usize,
    players: Vec<Ends<B>>,
    bytes_matter: bool,
}

/// Both ends of one player's connection.
struct Ends<B> {
    rate_bytes_per_s: i64,
    /// No snapshot is due earlier than this after the one before.
    spacing_min: Micros,
    /// The newest snapshot that the server knows the client to have.
    acked: Option<SnapshotSeq>,
    /// The last snapshot.
    sent: Option<Sent<B>>,
    /// The frames of it and of those before it, from the one before the acked one on.
    frames: VecDeque<(SnapshotSeq, Arc<Frame<B>>)>,
    /// The entities in it.
    entities: Vec<EntityId>,
    /// How many entities were gone in which snapshot, as far as the client may not know of it.
    gone: VecDeque<(SnapshotSeq, usize)>,
    /// The newest packet that reached the server.
    newest_packet: u32,
    /// The newest snapshot that the client has.
    newest: SnapshotSeq,
    /// Which of the snapshots up to it came, the lowest bit for itself.
    came: u64,
}

/// A snapshot that was sent.
struct Sent<B> {
    seq: SnapshotSeq,
    at: Micros,
    /// The most bytes that it can have.
    bytes_max: usize,
    /// What a closer look at that takes; `None` where there is none, or has been.
    closer: Option<Closer<B>>,
}

/// What a snapshot is told from; with nothing known, all of it is told.
struct Closer<B> {
    frame: Arc<Frame<B>>,
    known: Option<Known<B>>,
    besides: Besides,
}

impl<B: Body> Unencoded<B> {
    /// `None` where sizes are sure to matter.
    pub(super) fn new(settings: &Arc<Settings>, players: u16) -> Option<Unencoded<B>> {
        let own: Vec<_> = (0..players).map(|player| settings.of_player(PlayerId(player))).collect();
        if settings.wire.sizes != Sizes::Datagrams || own.iter().any(|own| own.client.adaptive_redundancy) {
            return None;
        }
        let ends = |own: &Arc<Settings>| Ends {
            rate_bytes_per_s: own.server.rate_bytes_per_s,
            spacing_min: own.server.update_hz.interval() - own.server.tick_hz.interval(),
            acked: None,
            sent: None,
            frames: VecDeque::new(),
            entities: Vec::new(),
            gone: VecDeque::new(),
            newest_packet: 0,
            newest: SnapshotSeq(0),
            came: 0,
        };
        Some(Unencoded {
            message_max_bytes: settings.wire.message_max_bytes.unsigned_abs() as usize,
            players: own.iter().map(ends).collect(),
            bytes_matter: false,
        })
    }

    pub(super) fn bytes_matter(&self) -> bool {
        self.bytes_matter
    }

    pub(super) fn save(&self, to: &mut Saver<'_, B>) {
        let Unencoded { message_max_bytes: _, players, bytes_matter: _ } = self;
        players.iter().for_each(|ends| ends.save(to));
    }

    pub(super) fn restore(&mut self, from: &mut Restorer<'_, B>) -> Result<(), BadState> {
        self.players.iter_mut().try_for_each(|ends| ends.restore(from))
    }

    pub(super) fn acked(&self, player: usize) -> Option<SnapshotSeq> {
        self.players[player].acked
    }

    /// The server ticks: no snapshot that would be due may be held back by the rate.
    pub(super) fn handle_tick(&mut self, at: Micros) {
        self.bytes_matter |= self.players.iter_mut().any(|ends| ends.holds_back(at));
    }

    /// A snapshot leaves: all of it must have room, and what it would be coded against must be known.
    pub(super) fn send_snapshot(&mut self, player: usize, at: Micros, snapshot: &Snapshot<B>) {
        let ends = &mut self.players[player];
        let entities = &snapshot.frame.entities;
        if !entities.iter().map(|(id, _)| id).eq(&ends.entities) {
            let is_gone = |id: &&EntityId| entities.binary_search_by_key(*id, |(id, _)| *id).is_err();
            let gone = ends.entities.iter().filter(is_gone).count();
            ends.gone.push_back((snapshot.seq, gone));
            ends.entities.clear();
            ends.entities.extend(entities.iter().map(|(id, _)| *id));
        }
        let besides = Besides {
            gone: ends.gone.iter().map(|(_, gone)| gone).sum(),
            effects: snapshot.effects.len(),
            warnings: snapshot.warnings.len(),
        };
        let most = snapshot_bytes_max::<B>(entities.len(), besides);
        let fits = |most: Option<usize>| most.filter(|bytes| *bytes <= self.message_max_bytes);
        let closer = ends.closer(snapshot, besides);
        let sent = match fits(most) {
            Some(bytes_max) => Some(Sent { seq: snapshot.seq, at, bytes_max, closer }),
            None => fits(closer.and_then(|closer| closer.bytes_max())).map(|bytes_max| Sent {
                seq: snapshot.seq,
                at,
                bytes_max,
                closer: None,
            }),
        };
        let is_known = ends.acked.is_none_or(|acked| snapshot.seq.0 - acked.0 < WINDOW);
        self.bytes_matter |= sent.is_none() || !is_known;
        ends.sent = sent;
        ends.frames.push_back((snapshot.seq, Arc::clone(&snapshot.frame)));
        if ends.frames.len() > WINDOW as usize + 1 {
            ends.frames.pop_front();
        }
    }

    /// A packet reaches the server, with the newest snapshot that its client had.
    pub(super) fn handle_packet(&mut self, player: usize, number: u32, ack: SnapshotSeq) {
        let ends = &mut self.players[player];
        self.bytes_matter |= number + PACKETS_REMEMBERED <= ends.newest_packet;
        ends.newest_packet = ends.newest_packet.max(number);
        if ack > ends.acked.unwrap_or(SnapshotSeq(0)) {
            let is_remembered = ends.sent.as_ref().is_some_and(|last| last.seq.0.saturating_sub(ack.0) < WINDOW);
            self.bytes_matter |= !is_remembered;
            ends.acked = Some(ack);
            while ends.frames.get(1).is_some_and(|(seq, _)| *seq < ack) {
                ends.frames.pop_front();
            }
            while ends.gone.front().is_some_and(|(seq, _)| *seq <= ack) {
                ends.gone.pop_front();
            }
        }
    }

    /// A packet as the server heard it, with whatever ack: one of a snapshot that was never sent says nothing.
    pub(super) fn handle_heard(&mut self, player: usize, ack: SnapshotSeq) {
        let ends = &self.players[player];
        if ends.sent.as_ref().is_some_and(|last| ack <= last.seq) {
            self.handle_packet(player, ends.newest_packet, ack);
        }
    }

    /// A snapshot reaches its client; false when it has come before. `base` is what the server knew the client to have.
    pub(super) fn handle_snapshot(&mut self, player: usize, seq: SnapshotSeq, base: Option<SnapshotSeq>) -> bool {
        let ends = &mut self.players[player];
        let newest = ends.newest.max(seq);
        let oldest = base.map_or(seq, |base| base.min(seq));
        if newest.0 - oldest.0 >= WINDOW {
            self.bytes_matter = true;
            return false;
        }
        ends.came = ends.came.checked_shl(newest.0 - ends.newest.0).unwrap_or(0);
        ends.newest = newest;
        let bit = 1 << (newest.0 - seq.0);
        let is_new = ends.came & bit == 0;
        ends.came |= bit;
        is_new
    }
}

impl<B: Body> Ends<B> {
    fields!(
        B,
        Ends { acked, sent, frames, entities, gone, newest_packet, newest, came } in place {} but {
            rate_bytes_per_s,
            spacing_min,
        }
    );

    /// What a closer look at a snapshot takes that is about to leave.
    fn closer(&self, snapshot: &Snapshot<B>, besides: Besides) -> Option<Closer<B>> {
        let known = match self.acked {
            None => None,
            Some(acked) if snapshot.seq.0 - acked.0 >= KNOWN_FOR => return None,
            Some(acked) => {
                let place = self.frames.iter().position(|(seq, _)| *seq == acked)?;
                let before = place.checked_sub(1).map(|before| Arc::clone(&self.frames[before].1));
                Some(Known { acked: Arc::clone(&self.frames[place].1), before })
            }
        };
        Some(Closer { frame: Arc::clone(&snapshot.frame), known, besides })
    }

    /// Whether the last snapshot may keep the line busy for so long that one which is due at `at` would have to wait.
    fn holds_back(&mut self, at: Micros) -> bool {
        let (spacing_min, rate_bytes_per_s) = (self.spacing_min, self.rate_bytes_per_s);
        let Some(sent) = &mut self.sent else { return false };
        let may = |bytes: usize| {
            let free_at = sent.at + Micros(bytes as i64 * 1_000_000 / rate_bytes_per_s);
            at > sent.at && at >= sent.at + spacing_min && at < free_at
        };
        if may(sent.bytes_max)
            && let Some(closer) = sent.closer.take()
        {
            sent.bytes_max = closer.bytes_max().unwrap_or(sent.bytes_max);
        }
        may(sent.bytes_max)
    }
}

impl<B: Body> Value<B> for Sent<B> {
    fn put(&self, to: &mut Saver<'_, B>) {
        let Sent { seq, at, bytes_max, closer } = self;
        (*seq, *at, *bytes_max).put(to);
        closer.put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, BadState> {
        let (seq, at, bytes_max) = Value::<B>::get(from)?;
        Ok(Sent { seq, at, bytes_max, closer: Value::<B>::get(from)? })
    }
}

impl<B: Body> Value<B> for Closer<B> {
    fn put(&self, to: &mut Saver<'_, B>) {
        let Closer { frame, known, besides: Besides { gone, effects, warnings } } = self;
        frame.put(to);
        known.is_some().put(to);
        if let Some(Known { acked, before }) = known {
            acked.put(to);
            before.put(to);
        }
        (*gone, *effects, *warnings).put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, BadState> {
        let frame = from.frame()?;
        let known = match <bool as Value<B>>::get(from)? {
            true => Some(Known { acked: from.frame()?, before: Value::<B>::get(from)? }),
            false => None,
        };
        let (gone, effects, warnings) = Value::<B>::get(from)?;
        Ok(Closer { frame, known, besides: Besides { gone, effects, warnings } })
    }
}

impl<B: Body> Closer<B> {
    fn bytes_max(&self) -> Option<usize> {
        told_bytes_max(&self.frame, self.known.as_ref(), self.besides)
    }
}
