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

pub(crate) use pmove::{Settings, run};
pub(crate) use state::{Command, PlayerState, flag, kind};
pub(crate) use world::{NO_ENTITY, Shape, Solid, Trigger, WORLD, World};
