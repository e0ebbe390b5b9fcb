//! `hitreg` records the netcode of action games, replays it bit for bit, and shows what changed:
//! in reconciliation, in interpolation, in who was hit.

pub mod hash;
pub mod quakeworld;
pub mod rng;
pub mod units;
