//! Runs games and builds: the games of a program behind one trait ([`engine::Playable`]), other builds as processes
//! ([`build`]), [`verify`], [`shrink`], [`sweep`], and the searches of `hitreg bisect`.

pub mod build;
pub mod engine;
pub mod shrink;
pub mod sweep;
pub mod verify;
