//! A body as it is drawn or judged.

use super::category::Rendering;
use hitreg_log::units::named;

/// A body at a time, and how it came to be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<B> {
    /// The body.
    pub body: B,
    /// How it came to be there.
    pub how: How,
    /// By which category it was drawn; `None` where drawing knows none (all of `interpolation.mode` but `category`).
    pub by: Option<Rendering>,
}

impl<B> Placed<B> {
    /// A body that was placed without asking for its category.
    pub fn new(body: B, how: How) -> Placed<B> {
        Placed { body, how, by: None }
    }
}

/// How a body's place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Between two known states.
    Interpolated,
    /// Carried on from the last known state.
    Extrapolated,
    /// The nearest known state as it is.
    Held,
    /// Put at once where it was teleported to.
    Teleported,
}

named!(How {
    Interpolated = "interpolated",
    Extrapolated = "extrapolated",
    Held = "held",
    Teleported = "teleported",
});
