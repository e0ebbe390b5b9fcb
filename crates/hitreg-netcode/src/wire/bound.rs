//! Upper bounds on the size of a snapshot message, computed without encoding it.

use std::sync::Arc;

use super::bits::BitWriter;
use super::datagram::SEAL_BYTES;
use super::datagram::{FRAGMENT_OVERHEAD_BYTES, PIECE_BYTES_MAX};
use super::entity::BodyLayout;
use super::message::SUBMESSAGES_MAX;
use super::sender::EFFECT_BITS_MAX;
use crate::game::Body;
use crate::history::Frame;

/// The header, and the `FRAME` submessage in its longest form.
const FRAME_BITS_MAX: usize = 12 * 8 + 174;
const WARNING_BITS: usize = 36;
/// A definition and an update without cells: types, ids, controller, base, bitfield and rounding of the masks.
const ENTITY_BITS_MAX: usize = 141;
/// The most bits that one cell adds: its change, and its bits in the masks.
const CELL_BITS_MAX: usize = 37;
/// A submessage type and an entity id.
const REMOVAL_BITS_MAX: usize = 28;

/// The contents of a snapshot message other than entity states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtraCounts {
    /// Removed entities that the client may not know about yet.
    pub(crate) removed: usize,
    pub(crate) effects: usize,
    pub(crate) warnings: usize,
}

impl ExtraCounts {
    /// Returns the most bytes of all datagrams, including headers and seals, for `entities` entities that take
    /// `entity_bits` bits. Returns `None` when the submessage limit may be exceeded, so that something may have to
    /// wait.
    fn bytes_max(self, entities: usize, entity_bits: usize) -> Option<usize> {
        if 1 + 2 * entities + self.removed + self.effects + self.warnings > SUBMESSAGES_MAX as usize {
            return None;
        }
        let others = self.removed * REMOVAL_BITS_MAX + self.effects * EFFECT_BITS_MAX + self.warnings * WARNING_BITS;
        let message = (FRAME_BITS_MAX + entity_bits + others).div_ceil(8) + SEAL_BYTES;
        Some(message + message.div_ceil(PIECE_BYTES_MAX) * FRAGMENT_OVERHEAD_BYTES)
    }
}

/// Returns the most bytes that a snapshot of `entities` entities can take, whatever their states are.
pub(crate) fn snapshot_bytes_max<B: Body>(entities: usize, extras: ExtraCounts) -> Option<usize> {
    extras.bytes_max(entities, entities * (ENTITY_BITS_MAX + CELL_BITS_MAX * B::CELLS))
}

/// The frames that a delta starts from: the newest frame known to have reached the client, and the frame sent to it
/// before that one.
#[derive(Clone, Debug)]
pub(crate) struct DeltaBase<B> {
    pub(crate) acked: Arc<Frame<B>>,
    pub(crate) before: Option<Arc<Frame<B>>>,
}

impl<B> DeltaBase<B> {
    /// Returns whether both have the same frames in memory.
    fn has_frames_of(&self, other: &DeltaBase<B>) -> bool {
        self.before.as_ref().map(Arc::as_ptr) == other.before.as_ref().map(Arc::as_ptr)
            && Arc::ptr_eq(&self.acked, &other.acked)
    }
}

/// For this many snapshots after an ack, every state is coded against the acked frame, except for entities at rest.
pub(crate) const KNOWN_FOR: u32 = 16;

/// Computes upper bounds from the states of a snapshot. Clients that get the same frame often acked the same frame too,
/// so it remembers the results for the last frame.
#[derive(Debug)]
pub(crate) struct DeltaBound<B> {
    frame: Option<Arc<Frame<B>>>,
    /// The most bits of the entities in `frame`, for each base.
    computed: Vec<(Option<DeltaBase<B>>, usize)>,
    layout: BodyLayout,
    /// Buffers: the cells of an entity in the three frames, and its update.
    old: Vec<u32>,
    new: Vec<u32>,
    before: Vec<u32>,
    update: BitWriter,
}

impl<B: Body> DeltaBound<B> {
    pub(crate) fn new() -> DeltaBound<B> {
        let cells = vec![0; B::CELLS];
        let (old, new, before) = (cells.clone(), cells.clone(), cells);
        let layout = BodyLayout::new::<B>();
        DeltaBound { frame: None, computed: Vec::new(), layout, old, new, before, update: BitWriter::default() }
    }

    /// Returns the most bytes that a snapshot with these states can take. The snapshot is coded against a frame that
    /// was acked less than [`KNOWN_FOR`] snapshots earlier, or against nothing. Every snapshot since that frame must
    /// have had room for all changes.
    ///
    /// The acked frame carried every state that changed in it, so the client has those states. For a state that did not
    /// change in it, client and server may already have dropped the snapshot that carried it last
    /// ([`EntityTrack`](super::track::EntityTrack)). Such a state is coded against nothing.
    pub(crate) fn bytes_max(
        &mut self,
        frame: &Arc<Frame<B>>,
        known: Option<&DeltaBase<B>>,
        extras: ExtraCounts,
    ) -> Option<usize> {
        if !self.frame.as_ref().is_some_and(|last| Arc::ptr_eq(last, frame)) {
            self.frame = Some(Arc::clone(frame));
            self.computed.clear();
        }
        let same = self.computed.iter().find(|(base, _)| match (base, known) {
            (Some(base), Some(known)) => base.has_frames_of(known),
            (base, known) => base.is_none() && known.is_none(),
        });
        let entity_bits = match same {
            Some((_, bits)) => *bits,
            None => {
                let bits = self.entities_bits_max(frame, known);
                self.computed.push((known.cloned(), bits));
                bits
            }
        };
        extras.bytes_max(frame.entities.len(), entity_bits)
    }

    fn entities_bits_max(&mut self, frame: &Frame<B>, known: Option<&DeltaBase<B>>) -> usize {
        let DeltaBound { layout, old, new, before, update, .. } = self;
        let mut update_bits = |old: &[u32], new: &[u32]| {
            update.cut_to(0);
            layout.put_update(update, old, new, &mut |_, _| {});
            update.len_bits()
        };
        let mut sum = frame.entities.len() * ENTITY_BITS_MAX;
        for (id, body) in &frame.entities {
            body.write(new);
            let Some(acked) = known.and_then(|known| known.acked.get(*id)) else {
                sum += update_bits(&layout.zeros, new);
                continue;
            };
            acked.write(old);
            let from_acked = update_bits(old, new);
            let has_rested = known.and_then(|known| known.before.as_ref()?.get(*id)).is_some_and(|state| {
                state.write(before);
                before == old
            });
            sum += if has_rested { from_acked.max(update_bits(&layout.zeros, new)) } else { from_acked };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use glam::Vec3;

    use super::*;
    use crate::game::{Effect, body};
    use crate::packet::Snapshot;
    use crate::wire::{MESSAGE_BYTES_MAX, ReceivedSet, Sender, SharedStates, fragments};
    use hitreg_log::rng::Rng;
    use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};

    body! {
        struct Snail {
            Movement origin: Vec3,
            Movement velocity: Vec3,
            Movement viewangles: Vec3,
            Movement on_ground: bool,
            Weapons ammo: u32,
            Weapons refire_ms: u32,
            Status health: i32,
            Status frags: i32,
            Status teleports: u32,
            Status alive: bool,
        }
    }

    fn snail(rng: &mut Rng) -> Snail {
        let mut any = || rng.signed_f32() * 1000.0;
        let [origin, velocity, viewangles] = [(); 3].map(|()| Vec3::new(any(), any(), any()));
        let (ammo, health) = (rng.below(1 << 20) as u32, rng.below(200) as i32 - 100);
        Snail {
            origin,
            velocity,
            viewangles,
            ammo,
            health,
            alive: true,
            on_ground: rng.chance(0.5),
            ..Snail::default()
        }
    }

    /// A client's line: the snapshots that arrived, and the acks in transit.
    #[derive(Default)]
    struct BoundLink {
        newest: u32,
        came: u64,
        acks: VecDeque<(u32, ReceivedSet)>,
    }

    impl BoundLink {
        fn send(&mut self, seq: u32, rng: &mut Rng, good: bool) {
            if !rng.chance(if good { 0.95 } else { 0.3 }) {
                return;
            }
            self.came = self.came.checked_shl(seq - self.newest).unwrap_or(0) | 1;
            self.newest = seq;
            let received = ReceivedSet { newest: SnapshotSeq(seq), before: (self.came >> 1) as u32 };
            if rng.chance(if good { 0.95 } else { 0.5 }) {
                self.acks.push_back((seq + 2, received));
            }
        }
    }

    /// Entities move, rest for long, disappear and reappear. Snapshots and acks are lost one by one and in runs.
    #[test]
    fn messages_stay_within_their_bounds_and_the_tight_bound_is_tight() {
        let (mut sum, mut loose_sum, mut close_sum, mut sent_again) = (0, 0, 0, 0);
        for seed in 0..12 {
            let mut rng = Rng::new(Seed(seed), 0);
            let mut sender = Sender::<Snail>::new(PlayerId(0), 4);
            let mut bound = DeltaBound::new();
            let mut line = BoundLink::default();
            let mut there: Vec<(EntityId, Snail)> = (0..12).map(|id| (EntityId(id), snail(&mut rng))).collect();
            let mut frames: VecDeque<(u32, Arc<Frame<Snail>>)> = VecDeque::new();
            let (mut acked, mut gone): (u32, Vec<(u32, usize)>) = (0, Vec::new());
            let mut restless = 1.0;
            for seq in 1..1500u32 {
                while line.acks.front().is_some_and(|(at, _)| *at <= seq) {
                    let Some((_, received)) = line.acks.pop_front() else { break };
                    sender.handle_ack(&received);
                    acked = acked.max(received.newest.0);
                }
                if seq.is_multiple_of(50) {
                    restless = [0.0, 0.003, 0.03, 1.0][rng.below(4) as usize];
                }
                for (_, body) in &mut there {
                    if rng.chance(restless) {
                        body.origin.x += rng.signed_f32();
                        body.ammo += 1;
                    }
                }
                let before = there.len();
                there.retain(|(id, _)| id.0 == 0 || !rng.chance(0.004));
                gone.push((seq, before - there.len()));
                gone.retain(|(at, _)| *at > acked);
                if rng.chance(0.04) {
                    let id = EntityId(1 + rng.below(12) as u16);
                    if let Err(place) = there.binary_search_by_key(&id, |(id, _)| *id) {
                        there.insert(place, (id, snail(&mut rng)));
                    }
                }
                let frame =
                    Frame { tick: Tick(seq), server_time: Micros(i64::from(seq) * 50_000), entities: there.clone() };
                let frame = Arc::new(frame);
                let at = Vec3::splat(seq as f32 * 1.7);
                let effect = Effect { kind: 2, entity: EntityId(3), at, predictable: false };
                let effects = vec![effect; rng.below(3) as usize];
                let extras =
                    ExtraCounts { removed: gone.iter().map(|g| g.1).sum(), effects: effects.len(), warnings: 0 };
                let place = frames.iter().position(|(at, _)| *at == acked);
                let known = place.map(|place| DeltaBase {
                    acked: Arc::clone(&frames[place].1),
                    before: place.checked_sub(1).map(|before| Arc::clone(&frames[before].1)),
                });
                let helper_ms = Some(7);
                let snapshot = Snapshot {
                    effects,
                    helper_ms,
                    ..Snapshot::new(SnapshotSeq(seq), CommandSeq(seq), Arc::clone(&frame))
                };
                let encoded =
                    sender.encode(&snapshot, MESSAGE_BYTES_MAX, &mut SharedStates::default()).expect("there is room");
                let datagrams = fragments(SnapshotSeq(seq), encoded.datagram).expect("few entities");
                let bytes: usize = datagrams.iter().map(|datagram| datagram.len() + SEAL_BYTES).sum();
                let loose = snapshot_bytes_max::<Snail>(there.len(), extras).expect("few entities");
                assert!(bytes <= loose, "seed {seed}, snapshot {seq}: {bytes} of {loose}");
                if acked == 0 || known.is_some() && seq - acked < KNOWN_FOR {
                    let close = bound.bytes_max(&frame, known.as_ref(), extras).expect("few entities");
                    assert!(
                        bytes <= close && close <= loose,
                        "seed {seed}, snapshot {seq}: {bytes} of {close} of {loose}"
                    );
                    (sum, close_sum, loose_sum) = (sum + bytes, close_sum + close, loose_sum + loose);
                    let from_acked = known.map(|known| DeltaBase { before: None, ..known });
                    let without_rest = bound.bytes_max(&frame, from_acked.as_ref(), extras).expect("few entities");
                    sent_again += usize::from(bytes > without_rest);
                }
                frames.push_back((seq, frame));
                if frames.len() > 80 {
                    frames.pop_front();
                }
                line.send(seq, &mut rng, seq / 100 % 3 != 1);
            }
        }
        eprintln!("{sum} bytes, {close_sum} by the closer bound, {loose_sum} by the other; {sent_again} sent again");
        assert!(sent_again > 0, "none was longer for an entity that had rested");
        assert!(close_sum * 3 < loose_sum * 2, "{sum} {close_sum} {loose_sum}");
    }
}
