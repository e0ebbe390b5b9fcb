//! The two ends of one connection, without I/O: datagrams and times come in, datagrams and events come out. The design
//! follows quinn-proto. Live sessions and sessions in virtual time drive the same code.

mod arrivals;
mod client;
mod requests;
mod server;

pub(crate) use arrivals::PACKETS_REMEMBERED;
pub use client::{ClientConnection, ClientEvent, DisconnectReason};
pub use requests::{REQUESTS_MAX, TooManyRequests};
pub use server::{QueuedSnapshot, ServerConnection, ServerEvent, UnusableDatagram};

#[cfg(test)]
mod tests;
