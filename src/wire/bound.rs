//! How long a message can be at most, without encoding it.

use super::fragment::{FRAGMENT_OVERHEAD_BYTES, PIECE_BYTES_MAX};
use super::header::SEAL_BYTES;
use super::sender::{EFFECT_BITS_MAX, SUBMESSAGES_MAX};
use crate::game::Body;

/// The header, and `FRAME` in its longest form.
const FRAME_BITS_MAX: usize = 12 * 8 + 174;
const WARNING_BITS: usize = 36;
/// A definition and an update but for its cells: types, ids, controller, base, bitfield and what is rounded up in masks.
const ENTITY_BITS_MAX: usize = 141;
/// What one cell adds: its change, and its bits in masks.
const CELL_BITS_MAX: usize = 37;

/// The most bytes that the datagrams of a snapshot have, headers and seals included, when it has to tell of so many
/// entities that are or are gone. `None` where even submessages might not suffice, so that something might have to wait.
pub(crate) fn snapshot_bytes_max<B: Body>(entities: usize, effects: usize, warnings: usize) -> Option<usize> {
    if 1 + 2 * entities + effects + warnings > SUBMESSAGES_MAX as usize {
        return None;
    }
    let entity_bits = ENTITY_BITS_MAX + CELL_BITS_MAX * B::CELLS;
    let bits = FRAME_BITS_MAX + entities * entity_bits + effects * EFFECT_BITS_MAX + warnings * WARNING_BITS;
    let message = bits.div_ceil(8) + SEAL_BYTES;
    Some(message + message.div_ceil(PIECE_BYTES_MAX) * FRAGMENT_OVERHEAD_BYTES)
}
