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
#[cfg(not(test))]
mod compiled;
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
#[cfg(not(test))]
pub use compiled::{playable, record_synthetic};
pub use effect::ArenaEffect;
pub use fire::ArenaFire;
pub use game::Arena;
pub use hitbox::Hitgroup;
pub use map::{ArenaMap, BellPlace, MapTextError, Props, ShapeError, SpawnPoint, Teleporter};
pub use pmove::{
    BUTTON_DUCK, BUTTON_JUMP, MoveEvent, MoveVars, VIEW_HEIGHT_DUCKED_UNITS, VIEW_HEIGHT_STANDING_UNITS, pmove,
};
pub use rules::ArenaRules;
pub use solid::{Solid, SolidHull, SweepContact, SweepHit};
pub use state::ArenaWorld;
pub use weapon::{Muzzle, WeaponId, WeaponRules};
pub use world::CollisionWorld;
