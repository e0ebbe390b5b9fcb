//! Connecting: a client asks, the server answers with a challenge that it does not remember, and only who gives the
//! challenge back gets a place. So a made-up address gets no session, and costs the server nothing.
//!
//! Every answer is shorter than what it answers, so that nobody can be flooded by way of the server.

mod connecting;
mod endpoint;
mod message;

pub use connecting::{Accepted, ConnectOptions, Connecting, Outcome};
pub use endpoint::{Endpoint, EndpointOptions, Ignored, Incoming};
pub use message::{ASKED_BYTES_MAX, CONFIRM_BYTES, Refusal, WELCOME_BYTES_MAX};
