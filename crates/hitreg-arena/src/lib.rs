//! The built-in game, modelled on Half-Life: players move, shoot and die among convex brushes. Bots can play it.

mod apple;
mod arrow;
mod bell;
mod body;
pub mod bot;
mod bounds;
mod brush;
mod bvh;
mod category;
mod crowd;
mod effect;
mod fall;
mod fire;
mod game;
mod harm;
mod hitbox;
mod judge;
mod map;
mod pmove;
mod prop;
mod rocket;
mod rules;
mod solid;
mod spawn;
mod state;
mod step;
mod vector;
mod walker;
mod weapon;
mod wield;
mod world;

pub use body::{Ammunition, ArenaBody, BodyKind, Decision};
pub use bot::ArenaBot;
pub use brush::{BrushError, ConvexBrush, Facet};
pub use effect::ArenaEffect;
pub use fire::ArenaFire;
pub use game::Arena;
pub use hitbox::Hitgroup;
pub use map::{ArenaMap, BellPlace, MapTextError, Props, ShapeError, SpawnPoint, Teleporter};
pub use pmove::{
    BUTTON_DUCK, BUTTON_JUMP, MoveEvent, MoveInput, MoveState, MoveVars, VIEW_HEIGHT_DUCKED_UNITS,
    VIEW_HEIGHT_STANDING_UNITS, pmove,
};
pub use rules::ArenaRules;
pub use solid::{Solid, SolidHull, SweepContact, SweepHit};
pub use state::ArenaWorld;
pub use weapon::{Muzzle, WeaponId, WeaponRules};
pub use world::CollisionWorld;

#[cfg(not(test))]
use std::sync::Arc;

#[cfg(not(test))]
use hitreg_engine::engine::{Playable, recording};
#[cfg(not(test))]
use hitreg_netcode::session::scenario::Scenario;
#[cfg(not(test))]
use hitreg_netcode::session::{Observer, SynthError};

/// The game, for commands: its logs are replayed, and its bots play on its own maps and on map files. Unit tests of
/// `hitreg-netcode` include this crate's source and have no commands.
#[cfg(not(test))]
pub fn playable() -> Box<dyn Playable> {
    recording::<Arena>(|map| match map {
        None => Ok(ArenaRules::default()),
        Some(map) => {
            let name = std::path::Path::new(map.path).file_stem().unwrap_or_default().to_string_lossy();
            Ok(ArenaRules::new(ArenaMap::parse(&name, map.bytes)?))
        }
    })
}

/// Records bots under rules of the caller's own. The generic function of this name compiles the pipelines in the
/// calling crate; this one is compiled with the game.
///
/// # Errors
/// When the scenario is out of bounds.
#[cfg(not(test))]
pub fn record_synthetic(
    scenario: &Scenario,
    rules: &Arc<ArenaRules>,
    observer: &mut dyn Observer<Arena>,
) -> Result<(), SynthError> {
    hitreg_netcode::session::record_synthetic::<Arena>(scenario, rules, observer)
}
