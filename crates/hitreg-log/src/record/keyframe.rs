//! A saved state from which a replay can continue.

use crate::units::{Micros, Tick};

/// The state of a replay just after a tick. Only the replay interprets the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyframe {
    /// The tick before the keyframe.
    pub tick: Tick,
    /// Time of that tick.
    pub at: Micros,
    /// Index of the first chunk that a replay from this keyframe reads, from 0. The keyframe precedes that chunk in the
    /// file.
    pub stretch: usize,
    /// The state, in the replay's own encoding.
    pub content: Vec<u8>,
}
