//! The two ends of one connection, without I/O: datagrams and times come in, datagrams and what they said come out. After
//! quinn-proto; a live session and one in virtual time drive the very same ends.

mod arrivals;
mod client;
mod requests;
mod server;

pub(crate) use arrivals::PACKETS_REMEMBERED;
pub use client::{ClientConnection, ClientEvent, Lost};
pub use requests::{REQUESTS_MAX, TooManyRequests};
pub use server::{Sent, ServerConnection, ServerEvent, Unusable};

#[cfg(test)]
mod tests;
