//! The connection handshake. A client sends a request, and the server answers with a challenge that it does not store.
//! The client gets a slot only when it returns the challenge. A spoofed address therefore gets no session and costs the
//! server no memory.
//!
//! Every answer is shorter than its request, so that an attacker cannot use the server to amplify traffic.

mod connecting;
mod endpoint;
mod message;

pub use connecting::{AcceptedConnection, ConnectMachine, ConnectOptions, ConnectOutcome};
pub use endpoint::{Endpoint, EndpointOptions, IgnoredReason, IncomingMessage};
pub use message::{ASKED_BYTES_MAX, CONFIRM_BYTES, Refusal, WELCOME_BYTES_MAX};
