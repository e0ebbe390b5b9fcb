//! Player movement: runs a usercmd on a player's state among the map and other bodies.

mod accelerate;
mod carry;
mod jump;
mod movevars;
pub(crate) mod pmove;
mod run;
mod slide;
pub(crate) mod state;
mod usercmd;
mod world;

pub use movevars::{Dialect, QuakeWorldMoveVars};
pub(crate) use run::{MoveOutcome, MoveRunner};
pub(crate) use state::{MoveContacts, QuakeWorldPlayerState};
pub use usercmd::QuakeWorldUsercmd;
pub(crate) use usercmd::{BUTTON_JUMP, decode_angle16, wire_angle_degrees};
pub(crate) use world::{MOST_SOLIDS, PLAYER_MAXS, PLAYER_MINS, Surroundings, WorldSolid, offsets};
