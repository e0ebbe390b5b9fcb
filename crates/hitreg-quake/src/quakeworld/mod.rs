//! QuakeWorld: reads the demos that its clients record and the maps that they were played on, and runs its player
//! movement, so that a real game's predictions can be replayed and explained.
//!
//! - [`Demo::parse`] and [`Map::parse`] read files into types; both bound and check everything first. [`import()`] makes a log of them.
//! - [`step`] is the movement of one step, a pure function; [`Runner`] runs whole usercmds as a server does, with lifts
//!   before and triggers after.
//! - [`QuakeWorld`] is the game that the client pipeline predicts; it says how well a prediction agrees with a rounded
//!   record, what to go on from, and why one missed.
//!
//! The formats and the rules of movement are those of the public id, MVDSV, ezQuake and KTX sources.

mod body;
mod bytes;
mod demo;
mod diagnosis;
mod extra;
mod game;
mod import;
mod movement;
mod rounding;
mod rules;
mod surroundings;
#[cfg(test)]
mod testing;

pub use crate::bsp::LumpError;
pub use crate::bsp::quake::{BspError, LeaningFace, Map, MissingWall, MovingKind, MovingModel, Trigger, TriggerEffect};
pub use body::{BodyRow, flag};
pub use demo::{
    Cut, Demo, DemoEnd, EffectKind, Event, Extensions, Hit, Level, Mover, OriginWire, OtherPlayer, OwnState,
    Percentiles, QwdError, RecordedBy, SentCommand, Server, ServerExtensions, ServerPacket, Span, Statistics,
};
pub use game::{QuakeWorld, Shot};
pub use import::{Finding, ImportError, ImportOptions, Imported, Trait, UnpackError, import, played_map, unpacked};
pub use movement::{BUTTON_JUMP, Dialect, MoveVars, PlayerState, Run, Runner, Solid, Touched, UserCmd, World, step};
pub use rules::{Rules, stem as map_stem};

use hitreg_engine::engine::{Playable, replaying};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<QuakeWorld>()
}
