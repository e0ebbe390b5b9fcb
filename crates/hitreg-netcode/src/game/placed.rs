//! A body at the place where it is drawn or judged.

use super::category::Rendering;
use hitreg_log::units::named;

/// A body at one time, and how its place was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedBody<B> {
    /// The body.
    pub body: B,
    /// How its place was found.
    pub how: PlacementKind,
    /// The category by which it was drawn; `None` in every `interpolation.mode` but `category`.
    pub by: Option<Rendering>,
}

impl<B> PlacedBody<B> {
    /// A body without a category.
    pub fn new(body: B, how: PlacementKind) -> PlacedBody<B> {
        PlacedBody { body, how, by: None }
    }
}

named! {
    /// How a body's place was found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PlacementKind {
        /// Interpolated between two known states.
        Interpolated = "interpolated",
        /// Extrapolated from the last known state.
        Extrapolated = "extrapolated",
        /// The nearest known state, unchanged.
        Held = "held",
        /// Moved at once to where it was teleported.
        Teleported = "teleported",
    }
}
