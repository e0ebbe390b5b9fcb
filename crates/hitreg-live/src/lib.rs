//! Live sessions: sockets and clocks. A session over real UDP is recorded so that it replays bit for bit.
//!
//! Live sessions run the same pipelines as a replay. The log holds every input of the pipelines, with its time and
//! order. Network timing and thread scheduling have no other influence. Each event has a unique time, later than the
//! times of all events that caused it. A replay therefore restores the order from the times alone.

#![expect(clippy::disallowed_types, reason = "live sessions open sockets")]

mod arrived_packets;
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
mod turn;
mod urgent;
mod welcome;

pub use error::LiveError;
pub use join::{JoinOptions, JoinResult, join, resolve};
pub use loopback::{live_header, record_live};
pub use own::{AskError, GrantLimits, OwnSettings};
pub use proxy::{ForwardedTraffic, ProxyOptions, ProxyReport, proxy};
pub use report::{
    ClientsReport, LatenessSummary, LiveReport, LiveSink, Perception, ServerReport, SessionRates, SnapshotCounts,
    TrafficCounts,
};
pub use serve::{ServeOptions, serve};
pub use welcome::WelcomeError;

use std::hash::{BuildHasher, RandomState};

use hitreg_netcode::wire::Key;
pub use hitreg_netcode::wire::{Notice, RequestKind};

/// Returns an unpredictable key from the random state that the system provides.
fn secret() -> Key {
    Key(RandomState::new().hash_one(0_u64), RandomState::new().hash_one(1_u64))
}
