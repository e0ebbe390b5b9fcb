//! The built-in game, modelled on Half-Life: players move, shoot and die among convex brushes. Bots can play it.

mod body;
pub mod bot;
mod brush;
mod game;
mod map;
mod pmove;
mod projectile;
mod prop;
mod rules;
mod shot;
mod solid;
mod state;
mod step;
mod world;

pub use body::{Ammunition, ArenaBody, BodyKind, Decision};
pub use bot::ArenaBot;
pub use brush::{BrushError, ConvexBrush, Facet};
pub use game::{Arena, ArenaEffect};
#[cfg(not(test))]
pub use game::{playable, record_synthetic};
pub use map::{ArenaMap, BellPlace, MapTextError, Props, ShapeError, SpawnPoint, Teleporter};
pub use pmove::{
    BUTTON_DUCK, BUTTON_JUMP, MoveEvent, MoveVars, VIEW_HEIGHT_DUCKED_UNITS, VIEW_HEIGHT_STANDING_UNITS, pmove,
};
pub use rules::{ArenaRules, Muzzle, WeaponId, WeaponRules};
pub use shot::{ArenaFire, Hitgroup};
pub use solid::{Solid, SolidHull, SweepContact, SweepHit};
pub use state::ArenaWorld;
pub use world::CollisionWorld;
