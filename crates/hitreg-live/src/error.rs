//! What can go wrong with a live session.

use std::net::SocketAddr;

use hitreg_netcode::session::SynthError;
use hitreg_netcode::wire::Refusal;

/// Why a live session could not be held, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] SynthError),
    /// A live session has datagrams, so nothing else counts.
    #[error("wire.sizes cannot be nominal in a live session: what is sent is what counts")]
    NominalSizes,
    /// A link that cannot be.
    #[error("{0}")]
    Link(String),
    /// The session that a proxy heard is not what was asked for.
    #[error("{0}")]
    Session(String),
    /// Another program has the port.
    #[error("UDP port {} is taken: choose another, or stop the program that uses it", address.port())]
    PortTaken {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address is not available.
    #[error("no UDP socket can be opened on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// A socket does not do what it should.
    #[error("the UDP socket cannot be used: {0}")]
    Socket(#[source] std::io::Error),
    /// No thread is to be had.
    #[error("no thread can be started: {0}")]
    Thread(#[source] std::io::Error),
    /// A thread ended before the session did.
    #[error("a thread of the session ended before its time")]
    ThreadGone,
    /// The server has no place for the client.
    #[error("{server} does not let this client in: {why}")]
    Refused {
        /// The server.
        server: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// Nobody answers.
    #[error("nobody answers at {server}: is a server running there?")]
    Silent {
        /// The server.
        server: SocketAddr,
    },
    /// A name that is no address.
    #[error("`{name}` is no address of a server ({why}): write HOST:PORT")]
    NoAddress {
        /// What was given.
        name: String,
        /// Why it is none.
        why: String,
    },
    /// What the server says cannot be played by.
    #[error(transparent)]
    Welcome(#[from] super::WelcomeError),
    /// What the client wants cannot be asked for.
    #[error(transparent)]
    Ask(#[from] super::AskError),
    /// The server gave up waiting for players.
    #[error("the server at {server} ended the session before it began")]
    NeverBegan {
        /// The server.
        server: SocketAddr,
    },
    /// The server does not answer any more.
    #[error("the server at {server} is gone: it has not been heard for 5 seconds")]
    ServerGone {
        /// The server.
        server: SocketAddr,
    },
}
