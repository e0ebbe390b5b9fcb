//! Quake III: reads what clients and servers of its engine say to each other (OpenArena is the one that was tried), so that a
//! session of a game that knows nothing of hitreg becomes a log.
//!
//! - [`Listener`] reads datagrams as somebody between clients and server sees them, and makes records of them.
//! - [`survey`] and [`import()`] read captures of them, and demos.
//!
//! The protocol and the rules are those of the public ioquake3 and OpenArena sources.

mod aim;
mod body;
mod capture;
mod demo;
mod diagnosis;
mod game;
mod hits;
mod import;
mod listener;
mod movement;
mod overheard;
mod protocol;
mod rules;
mod server_log;
mod surroundings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod trajectory;

pub use crate::bsp::LumpError;
pub use crate::bsp::quake3::{Map, MapError, map_from};
pub use body::BodyRow;
pub use capture::{Capture, CaptureError, Captured};
pub use game::{Quake3, Shot};
pub use import::{ImportError, Overview, Source, header, import, survey};
pub use listener::{Counts, Listener};
pub use overheard::Overheard;
pub use protocol::{DatagramError, DeltaError, MessageError, ReadError, Undecoded};
pub use rules::Rules;
pub use server_log::{Hurt, ServerLog};

use hitreg_engine::engine::{Playable, replaying};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<Quake3>()
}
