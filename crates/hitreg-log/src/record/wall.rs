//! The outline of a map, for whoever draws it from above.

use crate::units::EntityId;

/// A straight stretch of a wall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall {
    /// Where it begins, in units.
    pub from: [f32; 2],
    /// Where it ends.
    pub to: [f32; 2],
    /// How high its lower edge is.
    pub bottom: f32,
    /// How high its upper edge is.
    pub top: f32,
    /// The entity that it moves with, such as a door; it is displaced by that one's origin.
    pub of: Option<EntityId>,
}
