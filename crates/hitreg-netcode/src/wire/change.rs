//! One entity's change in a snapshot message: its encoding and its priority.

use std::sync::Arc;

use super::DecodeError;
use super::bit_counts::SnapshotBitCounts;
use super::bits::{BitReader, BitWriter};
use super::layout::BodyLayout;
use super::notice::{ID_CHUNK_BITS, kind};
use super::number::{get_varint, put_varint};
use super::priority::Urgency;
use super::track::EntityTrack;
use crate::game::{Body, Category};
use hitreg_log::units::{EntityId, SnapshotSeq};

const BASE_CHUNK_BITS: u32 = 4;

/// A change of one entity that the client has to receive.
#[derive(Clone, Debug)]
pub(crate) struct EntityChange<'a> {
    pub(crate) id: EntityId,
    /// The place of the entity's track in the sender.
    pub(crate) track: usize,
    /// The state to send; `None` when the entity is removed.
    pub(crate) cells: Option<&'a Arc<[u32]>>,
    pub(crate) urgency: Urgency,
    controller: u16,
    /// The state to code against, and how many snapshots ago a message carried it.
    base: Option<(u32, Arc<[u32]>)>,
}

impl<'a> EntityChange<'a> {
    pub(crate) fn new<B: Body>(
        layout: &BodyLayout<B>,
        (place, id, track): (usize, EntityId, &EntityTrack),
        controller: u16,
        cells: Option<&'a Arc<[u32]>>,
        distance_units: f32,
        now: SnapshotSeq,
    ) -> EntityChange<'a> {
        let base = track.base(now);
        let bits = match (&base, cells) {
            (Some((_, old)), Some(new)) => layout.update_bits(old, new),
            // An entity that appears or disappears has the highest importance.
            _ => u8::MAX,
        };
        let echo = track.is_echo(cells);
        let urgency = Urgency { bits, echo, distance_units, waited: track.waited };
        let base = base.map(|(seq, old)| (now.0 - seq.0, Arc::clone(old)));
        EntityChange { id, track: place, cells, urgency, controller, base }
    }

    /// Returns the number of submessages: an entity that appears needs a definition first.
    pub(crate) fn submessages(&self) -> u32 {
        if self.cells.is_some() && self.base.is_none() { 2 } else { 1 }
    }

    /// Writes the change and returns what its bits were used for. `usual` is the distance in snapshots to the base that
    /// most entities use. `categories` holds one category for each cell of the entity.
    pub(crate) fn put<B: Body>(
        &self,
        layout: &BodyLayout<B>,
        usual: Option<u32>,
        categories: &[Category],
        out: &mut BitWriter,
    ) -> SnapshotBitCounts {
        let begun = out.len_bits();
        let mut bit_counts = SnapshotBitCounts::default();
        let mut all_values = 0;
        let mut values = |cell: usize, bits: usize| {
            bit_counts.values[categories[cell] as usize] += bits as u32;
            all_values += bits;
        };
        let base = self.base.as_ref().map(|(distance, old)| (*distance, &old[..]));
        let who = (self.id, self.controller);
        put_change(layout, who, usual, base, self.cells.map(|cells| &cells[..]), &mut values, out);
        bit_counts.naming = (out.len_bits() - begun - all_values) as u32;
        bit_counts
    }
}

/// Writes a change of an entity, from a base with its distance in snapshots to its state; without a base, the entity
/// appears, and without a state, it is removed. `values` gets the bits of each cell.
pub(crate) fn put_change<B: Body>(
    layout: &BodyLayout<B>,
    (id, controller): (EntityId, u16),
    usual: Option<u32>,
    base: Option<(u32, &[u32])>,
    cells: Option<&[u32]>,
    values: &mut impl FnMut(usize, usize),
    out: &mut BitWriter,
) {
    let Some(cells) = cells else {
        put_kind(out, kind::ENTITY_REMOVAL, id);
        return;
    };
    match base {
        Some((distance, old)) => {
            put_kind(out, kind::ENTITY_UPDATE, id);
            out.put_bool(Some(distance) == usual);
            if Some(distance) != usual {
                put_varint(out, u64::from(distance), BASE_CHUNK_BITS);
            }
            layout.put_update(out, old, cells, values);
        }
        None => {
            put_kind(out, kind::ENTITY_DEFINITION, id);
            out.put(u64::from(controller), 16);
            put_kind(out, kind::ENTITY_UPDATE, id);
            layout.put_update(out, &layout.zeros, cells, values);
        }
    }
}

/// Reads the base of an update, as a distance in snapshots (at least 1).
pub(crate) fn get_base(from: &mut BitReader<'_>, usual: Option<u32>) -> Result<u32, DecodeError> {
    if from.get_bool()? {
        return usual.ok_or(DecodeError::bad("the base of an update", 0));
    }
    let distance = get_varint(from, BASE_CHUNK_BITS)?;
    match u32::try_from(distance) {
        Ok(distance) if distance > 0 => Ok(distance),
        _ => Err(DecodeError::bad("the base of an update", distance)),
    }
}

fn put_kind(out: &mut BitWriter, kind: u64, id: EntityId) {
    out.put(kind, 4);
    put_varint(out, u64::from(id.0), ID_CHUNK_BITS);
}
