//! Maps: read from `.bsp` files, checked, and traced through.

mod bsp;
mod check;
mod entities;
mod level;
mod outline;
pub(crate) mod trace;

pub use bsp::BspError;
pub use level::{EMPTY, Map, MovingKind, MovingModel, SLIME, SOLID, Trigger, TriggerEffect, WATER};
