//! Maps of Quake's engine (BSP version 29): reading, checks and collision.

mod bsp;
mod check;
mod entities;
mod level;
mod missing;
mod outline;
pub(crate) mod trace;

pub use bsp::BspError;
pub(crate) use level::{EMPTY, SLIME, SOLID, WATER};
pub use level::{MovingKind, MovingModel, QuakeMap, Trigger, TriggerEffect};
pub use missing::{LeaningFace, MissingWall};
