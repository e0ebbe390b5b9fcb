//! The live protocol as its users see it: snapshots and usercmds through bad links, enemies at the door, sizes.

mod commands;
mod handshake;
mod notices;
mod priority;
mod runners;
mod sizes;
mod snapshots;
mod storm;
