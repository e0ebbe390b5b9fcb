//! Live sessions: over real sockets, by the real clock.

mod claims;
mod sessions;
mod stage;
