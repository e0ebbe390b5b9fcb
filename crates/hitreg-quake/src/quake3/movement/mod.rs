//! Quake III's player movement: pure functions of a state, a usercmd and the surroundings. The rules follow the public
//! OpenArena and ioquake3 sources (bg_pmove.c, bg_slidemove.c).

mod ground;
mod pmove;
mod slide;
mod state;
#[cfg(test)]
mod tests;
mod walk;
mod world;

pub(crate) use pmove::{PmoveSettings, run};
pub(crate) use state::{Quake3PlayerState, flag, kind};
pub(crate) use world::{EntitySolid, MoveWorld, NO_ENTITY, PushTrigger, SolidShape, WORLD};
