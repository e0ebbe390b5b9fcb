//! The props of a map: entities other than solids and players.

use serde::{Deserialize, Serialize};

/// The most props of one kind; a walker's posts are numbered in one byte.
pub(crate) const MOST_PROPS: usize = 255;

/// The props of a map, each kind in the order of the file. Places are in units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Props {
    /// The trees, by the middle of the trunk. Their solid parts are brushes.
    pub trees: Vec<[f32; 3]>,
    /// The twigs from which apples fall.
    pub apples: Vec<[f32; 3]>,
    /// The bells.
    pub bells: Vec<BellPlace>,
    /// The walker's round: the middle of a standing hull at each post. A map with at least two posts has a walker.
    pub posts: Vec<[f32; 3]>,
    /// Whether the launcher is loaded with arrows.
    pub arrows: bool,
}

/// The place of a bell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BellPlace {
    /// The origin in units.
    pub origin: [f32; 3],
    /// The length of its ringing in ms.
    pub length_ms: u16,
}

impl Props {
    /// Returns whether there are no props.
    pub fn is_empty(&self) -> bool {
        *self == Props::default()
    }

    pub(crate) fn are_few(&self) -> bool {
        [self.trees.len(), self.apples.len(), self.bells.len(), self.posts.len()].into_iter().all(|n| n <= MOST_PROPS)
    }
}
