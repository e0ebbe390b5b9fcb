//! Connecting: a client asks, the server answers with a challenge that it does not remember, and only who gives the
//! challenge back gets a place. So a made-up address gets no session, and costs the server nothing.
//!
//! Every answer is shorter than what it answers, so that nobody can be flooded by way of the server.

mod door;
mod knock;
mod message;

pub use door::{Heard, Ignored, Lobby, LobbyOptions};
pub use knock::{Knock, KnockOptions, Outcome, Session};
pub use message::{CONFIRM_BYTES, GAME_NAME_BYTES_MAX, REQUEST_BYTES, Refusal, WELCOME_BYTES_MAX};
