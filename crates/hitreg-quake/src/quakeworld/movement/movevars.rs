//! A server's movement settings, and the two families of movement code.

use serde::{Deserialize, Serialize};

use crate::bsp::quake::trace::SweepRule;

/// Movement settings as a server sends them. Speeds are in units/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuakeWorldMoveVars {
    /// Gravity, in units/s².
    pub gravity: f32,
    /// Speed below which friction acts as at this speed.
    pub stop_speed: f32,
    /// Limit of the wished speed; it can change in play (message 49).
    pub max_speed: f32,
    /// Limit of the wished speed for spectators.
    pub spectator_max_speed: f32,
    /// Acceleration in 1/s, as a multiple of the wished speed.
    pub accelerate: f32,
    /// Air acceleration, which servers send but none uses: air control uses [`QuakeWorldMoveVars::accelerate`].
    pub air_accelerate: f32,
    /// Acceleration under water, in 1/s.
    pub water_accelerate: f32,
    /// Friction on ground, in 1/s.
    pub friction: f32,
    /// Friction in water, in 1/s per water level.
    pub water_friction: f32,
    /// Factor on gravity for this player; it can change in play (message 50).
    pub entity_gravity: f32,
}

impl Default for QuakeWorldMoveVars {
    /// Returns the defaults of the public server sources.
    fn default() -> QuakeWorldMoveVars {
        QuakeWorldMoveVars {
            gravity: 800.0,
            stop_speed: 100.0,
            max_speed: 320.0,
            spectator_max_speed: 500.0,
            accelerate: 10.0,
            air_accelerate: 0.7,
            water_accelerate: 10.0,
            friction: 6.0,
            water_friction: 1.0,
            entity_gravity: 1.0,
        }
    }
}

/// The movement code of a server. Its variants differ in stairs, gravity on slopes and jumps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Dialect {
    /// id Software's server up to 2.40, and its descendants.
    Classic {
        /// Whether the game stops players who land hard, as KTeams and some of its descendants do.
        soft_landing: bool,
        /// Whether the game removes the falling speed from jumps, as KTeams and most of its descendants do.
        #[serde(default)]
        soft_jump: bool,
        /// Whether a move through the air that ends on ground loses its falling speed at once, a fix of QWExtended and
        /// QuakeForge.
        #[serde(default)]
        landing_fix: bool,
    },
    /// ZQuake's reworked movement, in every MVDSV and ezQuake.
    Reworked {
        /// `pm_ktjump`: how far a jump is raised towards 270 units/s, 0 to 1.
        jump_floor: f32,
        /// `pm_airstep`: players climb stairs in the air too.
        air_step: bool,
        /// `pm_slidefix`: gravity also acts on the ground.
        slide_fix: bool,
        /// `pm_bunnyspeedcap`: multiple of the maximum speed that air control cannot exceed; 0 for no cap.
        bunny_speed_cap: f32,
    },
}

impl Dialect {
    pub(crate) fn sweep_rule(self) -> SweepRule {
        match self {
            Dialect::Classic { .. } => SweepRule::Classic,
            Dialect::Reworked { .. } => SweepRule::Reworked,
        }
    }
}
