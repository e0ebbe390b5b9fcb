//! `hitreg` records the netcode of action games, replays it bit for bit, and shows what changed:
//! in reconciliation, in interpolation, in who was hit.

pub mod arena;
pub mod bisect;
pub mod cli;
pub mod client;
pub mod diff;
pub mod fairness;
pub mod game;
pub mod geometry;
pub mod golden;
pub mod hash;
pub mod history;
pub mod info;
pub mod link;
pub mod live;
pub mod log;
pub mod packet;
pub mod quakeworld;
pub mod record;
pub mod replay;
pub mod report;
pub mod rng;
pub mod score;
pub mod server;
pub mod session;
pub mod settings;
pub mod shrink;
pub mod stats;
pub mod store;
pub mod summary;
pub mod sweep;
pub mod trace;
pub mod units;
pub mod usercmd;
pub mod verify;
pub mod wire;
