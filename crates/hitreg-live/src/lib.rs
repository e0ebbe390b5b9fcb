//! Live sessions: sockets and clocks. A session over real UDP is recorded so that it replays bit for bit.
//!
//! Live sessions run the same pipelines as a replay. The log holds every input of the pipelines, with its time and
//! order. Network timing and thread scheduling have no other influence. Each event has a unique time, later than the
//! times of all events that caused it. A replay therefore restores the order from the times alone.
//!
//! Players are bots of the game. An engine with players of its own records with [`hitreg_log::recorder`].

#![expect(clippy::disallowed_types, reason = "live sessions open sockets")]

mod client;
mod loopback;
mod proxy;
mod server;
mod session;
mod socket;
mod welcome;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

pub use client::{JoinOptions, JoinResult, join, resolve};
use hitreg_log::units::Micros;
use hitreg_netcode::link::ModelError;
use hitreg_netcode::session::SynthError;
use hitreg_netcode::wire::{Key, Refusal};
pub use hitreg_netcode::wire::{Notice, RequestKind};
pub use loopback::{live_header, record_live};
pub use proxy::{ForwardedTraffic, ProxyOptions, ProxyReport, proxy};
pub use server::{ServeOptions, serve};
pub use session::{
    ClientsReport, LatenessSummary, LiveReport, LiveSink, Perception, ServerReport, SessionRates, SnapshotCounts,
    TrafficCounts,
};
pub use welcome::{AskError, GrantLimits, OwnSettings, WelcomeError};

/// The reason why a live session could not start or had to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] SynthError),
    /// A live session measures real datagrams, so it cannot use nominal sizes.
    #[error("wire.sizes=nominal is not possible in a live session, which sends real datagrams: leave it out")]
    NominalSizes,
    /// A number of the proxy's link is out of bounds.
    #[error(transparent)]
    Link(#[from] ModelError),
    /// The session that the proxy observed does not match the request.
    #[error("{0}")]
    Proxy(String),
    /// Another program uses the port.
    #[error("UDP port {} is in use: choose another one, or stop the program that uses it", address.port())]
    PortTaken {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address is not available.
    #[error("no UDP socket can be opened on {address}: {source}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The socket failed.
    #[error("the UDP socket cannot be used: {0}")]
    Socket(#[source] std::io::Error),
    /// The system refused to start a thread.
    #[error("no thread can be started: {0}")]
    Thread(#[source] std::io::Error),
    /// A thread ended before the session.
    #[error("a thread of the session ended unexpectedly")]
    ThreadGone,
    /// The server refused the client.
    #[error("{server} refused this client: {why}")]
    Refused {
        /// The server.
        server: SocketAddr,
        /// The reason.
        #[source]
        why: Refusal,
    },
    /// The server does not answer.
    #[error(
        "{server} does not answer: start a server there with `hitreg serve -o server.hitlog --port {}`, or check the \
         address",
        server.port()
    )]
    Silent {
        /// The server.
        server: SocketAddr,
    },
    /// The name is not a valid server address.
    #[error("`{name}` is not an address ({why}): write HOST:PORT")]
    NoAddress {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The client cannot play by the server's welcome.
    #[error(transparent)]
    Welcome(#[from] WelcomeError),
    /// The client's settings cannot be requested.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The server stopped waiting for players.
    #[error("the server at {server} ended the session before it began")]
    NeverBegan {
        /// The server.
        server: SocketAddr,
    },
    /// Not all players were ready in time.
    #[error(
        "after {} s, {ready} of {slots} players are ready: start the others with `hitreg join HOST -o client.hitlog`, \
         or wait longer with --wait",
        waited.as_s_f64()
    )]
    PlayersMissing {
        /// The number of ready players.
        ready: u16,
        /// The number of players of the session.
        slots: u16,
        /// How long the server waited.
        waited: Micros,
    },
    /// The server has fallen silent.
    #[error("the server at {server} is gone: no packet for 5 seconds. Start it again, then join again")]
    ServerGone {
        /// The server.
        server: SocketAddr,
    },
}

/// Returns an unpredictable key from the random state that the system provides.
fn secret() -> Key {
    Key(RandomState::new().hash_one(0_u64), RandomState::new().hash_one(1_u64))
}
