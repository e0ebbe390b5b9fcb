//! The live protocol as its users see it: snapshots and usercmds through bad links, enemies at the door, sizes.

#[path = "wire/commands.rs"]
mod commands;
#[path = "wire/handshake.rs"]
mod handshake;
#[path = "wire/notices.rs"]
mod notices;
#[path = "wire/priority.rs"]
mod priority;
#[path = "wire/runners.rs"]
mod runners;
#[path = "wire/sizes.rs"]
mod sizes;
#[path = "wire/snapshots.rs"]
mod snapshots;
#[path = "wire/storm.rs"]
mod storm;
