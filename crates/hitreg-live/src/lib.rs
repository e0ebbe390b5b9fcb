//! Sockets and clocks: sessions over real UDP, recorded so that they replay bit for bit.
//!
//! The pipelines are the very ones that a replay runs. What they are handed here, at which times and in which order, is
//! what the log holds; how datagrams travel and how threads take turns decides nothing else. Each event has a time
//! of its own, later than those of all events that led to it, and so a replay finds the same order by the times alone.

#![expect(clippy::disallowed_types, reason = "this is the room that opens sockets")]

mod client;
mod clock;
mod counters;
mod error;
mod join;
mod loopback;
mod main_loop;
mod own;
mod proxy;
mod report;
mod serve;
mod server;
mod socket;
mod threads;
mod transit;
mod urgent;
mod welcome;

pub use error::LiveError;
pub use join::{Joined, Joining, join, resolve};
pub use loopback::{live_header, record_live};
pub use own::{AskError, Limits, OwnSettings};
pub use proxy::{ProxyOptions, ProxyReport, proxy};
pub use report::{Lateness, LiveReport, LiveSink, Perception, Rates, Snapshots, Traffic};
pub use serve::serve;
pub use welcome::WelcomeError;

use std::hash::{BuildHasher, RandomState};

use hitreg_netcode::wire::Key;
pub use hitreg_netcode::wire::{Notice, What};

/// A number that nobody can guess, from the system's own source of them.
fn secret() -> Key {
    Key(RandomState::new().hash_one(0_u64), RandomState::new().hash_one(1_u64))
}
