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
pub use pmove::step;
pub use run::{MoveOutcome, MoveRunner};
pub use state::{MoveContacts, QuakeWorldPlayerState};
pub(crate) use usercmd::decode_angle16;
pub(crate) use usercmd::wire_angle_degrees;
pub use usercmd::{BUTTON_JUMP, QuakeWorldUsercmd};
pub(crate) use world::{MOST_SOLIDS, PLAYER_MAXS, PLAYER_MINS};
pub use world::{Surroundings, WorldSolid};
