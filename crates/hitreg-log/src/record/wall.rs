//! The outline of a map, for a view from above.

use crate::units::EntityId;

/// A straight piece of a wall. All lengths are in units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall {
    /// Start, as x and y.
    pub from: [f32; 2],
    /// End, as x and y.
    pub to: [f32; 2],
    /// Height of the lower edge.
    pub bottom: f32,
    /// Height of the upper edge.
    pub top: f32,
    /// The entity that the wall moves with, such as a door. The wall is displaced by that entity's origin.
    pub of: Option<EntityId>,
}
