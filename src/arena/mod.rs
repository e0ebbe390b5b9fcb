//! The built-in game, after Half-Life: what is solid in it, and how players move.

mod bounds;
mod brush;
mod bvh;
mod pmove;
mod solid;
mod vector;
mod world;

pub use brush::{Brush, BrushError, Facet};
pub use pmove::{
    BUTTON_ATTACK, BUTTON_DUCK, BUTTON_JUMP, MoveEvent, MoveInput, MoveState, MoveVars, VIEW_HEIGHT_DUCKED_UNITS,
    VIEW_HEIGHT_STANDING_UNITS, pmove,
};
pub use solid::{Hull, SURFACE_GAP_UNITS, Solid, Sweep, Touch, sweep_box};
pub use world::CollisionWorld;
