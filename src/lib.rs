//! `hitreg` records the netcode of action games, replays it bit for bit, and shows what changed:
//! in reconciliation, in interpolation, in who was hit.

pub mod client;
pub mod game;
pub mod geometry;
pub mod hash;
pub mod history;
pub mod link;
pub mod packet;
pub mod record;
pub mod replay;
pub mod rng;
pub mod server;
pub mod session;
pub mod settings;
pub mod trace;
pub mod units;
pub mod usercmd;
