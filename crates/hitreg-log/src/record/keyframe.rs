//! A state from which a replay goes on.

use crate::units::{Micros, Tick};

/// What a replay was just after a tick. What is in it is the replay's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyframe {
    /// The tick that it follows.
    pub tick: Tick,
    /// When that was.
    pub at: Micros,
    /// The first stretch of the log that is needed to go on from it, counted from 0: it stands before that one.
    pub stretch: usize,
    /// What there is to know.
    pub content: Vec<u8>,
}
