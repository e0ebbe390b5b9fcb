//! The live protocol: snapshots and usercmds over bad links, attackers, sizes.

mod arena;
mod commands;
mod handshake;
mod notices;
mod priority;
mod runners;
mod sizes;
mod snapshots;
mod storm;
