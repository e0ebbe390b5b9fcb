//! QuakeWorld: reads client and server demos and maps, and runs the game's player movement. hitreg can thus replay and
//! explain the predictions of a real game.
//!
//! - [`QuakeWorldDemo::parse`] and [`QuakeMap::parse`] read files into checked types. [`import()`] converts them to a log.
//! - `movement` runs one step of movement as a pure function, and whole usercmds as a server does, with moving brush
//!   models before and triggers after.
//! - [`QuakeWorld`] is the game for the client pipeline. It compares predictions with rounded records, chooses the
//!   state to continue from, and explains corrections.
//!
//! The formats and the rules of movement follow the public id, MVDSV, ezQuake and KTX sources.

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
mod tests;

pub use crate::bsp::LumpError;
pub use crate::bsp::quake::{
    BspError, LeaningFace, MissingWall, MovingKind, MovingModel, QuakeMap, Trigger, TriggerEffect,
};
pub use body::{QuakeWorldBody, flag};
pub use demo::{
    DemoCut, DemoEnd, DemoEvent, DemoHit, DemoLevel, EffectKind, Extensions, Mover, OriginWire, OtherLevels,
    OtherPlayer, OwnState, QuakeWorldDemo, QwdError, RecordedBy, SentCommand, ServerDescription, ServerExtensions,
    ServerPacket,
};
pub use game::QuakeWorld;
pub use import::{
    DemoImportError, ImportOptions, ImportResult, ServerTrait, TraitFinding, UnpackError, import, played_map, unpacked,
};
pub use movement::{Dialect, QuakeWorldMoveVars, QuakeWorldUsercmd};
pub use rules::{QuakeWorldRules, stem as map_stem};

use hitreg_engine::engine::{Playable, replaying};

/// The game, for commands: its logs are replayed.
pub fn playable() -> Box<dyn Playable> {
    replaying::<QuakeWorld>()
}
