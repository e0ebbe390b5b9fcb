//! Live sessions: over real sockets, by the real clock.

mod claims;
mod proxy;
mod sessions;
mod stage;
