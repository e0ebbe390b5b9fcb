//! `hitreg` records the netcode of action games, replays it bit for bit, and shows what changed:
//! in reconciliation, in interpolation, in who was hit.

pub mod game;
pub mod hash;
pub mod log;
pub mod record;
pub mod rng;
pub mod store;
pub mod trace;
pub mod units;
pub mod usercmd;
