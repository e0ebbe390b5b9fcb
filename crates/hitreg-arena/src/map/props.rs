//! What is on a map besides what is solid and who plays.

use serde::{Deserialize, Serialize};

/// More of a kind are refused; a walker's posts are numbered in a byte.
pub(crate) const MOST_PROPS: usize = 255;

/// The props of a map, each kind in the order of the file. Places are in units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Props {
    /// Where trees stand: the middle of the trunk. What of them is solid is brushes.
    pub trees: Vec<[f32; 3]>,
    /// The twigs from which apples fall.
    pub apples: Vec<[f32; 3]>,
    /// The bells.
    pub bells: Vec<BellPlace>,
    /// The round that the walker goes, the middle of a standing hull at each; there is a walker where there are two.
    pub posts: Vec<[f32; 3]>,
    /// Whether the launcher is loaded with arrows.
    pub arrows: bool,
}

/// Where a bell hangs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BellPlace {
    /// In units.
    pub origin: [f32; 3],
    /// How long it rings, in ms.
    pub length_ms: u16,
}

impl Props {
    /// Whether there is nothing of the kind.
    pub fn is_empty(&self) -> bool {
        *self == Props::default()
    }

    pub(crate) fn are_few(&self) -> bool {
        [self.trees.len(), self.apples.len(), self.bells.len(), self.posts.len()].into_iter().all(|n| n <= MOST_PROPS)
    }
}
