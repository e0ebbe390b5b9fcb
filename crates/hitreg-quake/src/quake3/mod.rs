//! Quake III: reads the traffic between clients and servers of its engine, so that sessions of an unmodified game
//! become logs. Tested with OpenArena.
//!
//! - [`Quake3Listener`] decodes datagrams that it observes between clients and server, and produces records.
//! - [`survey`] and [`import()`] read captures of such datagrams, and demos.
//!
//! The protocol and the rules follow the public ioquake3 and OpenArena sources.

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
mod tests;
mod trajectory;

pub use crate::bsp::LumpError;
pub use crate::bsp::quake3::{Quake3Map, Quake3MapError, check_maps, map_from};
pub use body::Quake3Body;
pub use capture::{CaptureError, CaptureReader, CapturedDatagram};
pub use game::Quake3;
pub use import::{Overview, Quake3ImportError, RecordingKind, header, import, survey};
pub use listener::ListenerCounts;
pub use overheard::Quake3Listener;
pub use protocol::{BitReadError, DatagramError, DeltaError, MessageError, UndecodedReason};
pub use rules::Quake3Rules;
pub use server_log::{DamageLine, ServerLog};

use hitreg_engine::engine::{Playable, replaying};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<Quake3>()
}
