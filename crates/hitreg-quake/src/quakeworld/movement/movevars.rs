//! The numbers that a server sets for movement, and the two families of movement code that servers run.

use serde::{Deserialize, Serialize};

use crate::bsp::quake::trace::SweepRule;

/// Movement settings, as a server sends them. Speeds in units/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveVars {
    /// Units/s².
    pub gravity: f32,
    /// Below this speed friction acts as at this speed.
    pub stop_speed: f32,
    /// Wished speed is capped here; changes in play (message 49).
    pub max_speed: f32,
    /// The same for spectators.
    pub spectator_max_speed: f32,
    /// 1/s, as a multiple of the wished speed.
    pub accelerate: f32,
    /// Sent, and unused by every known server: air control uses [`MoveVars::accelerate`].
    pub air_accelerate: f32,
    /// 1/s, under water.
    pub water_accelerate: f32,
    /// 1/s.
    pub friction: f32,
    /// 1/s and water level.
    pub water_friction: f32,
    /// Multiplies gravity for this player; changes in play (message 50).
    pub entity_gravity: f32,
}

impl Default for MoveVars {
    /// The public server sources' defaults.
    fn default() -> MoveVars {
        MoveVars {
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

/// Which movement code the server runs. They differ in stairs, in gravity on slopes and in jumps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Dialect {
    /// id Software's server, up to 2.40 and what was built on it.
    Classic {
        /// The game stops who comes down hard, as KTeams and some of its children do.
        soft_landing: bool,
        /// The game takes the fall out of jumps, as KTeams and most of its children do.
        #[serde(default)]
        soft_jump: bool,
        /// A move through the air that ends on ground loses its fall at once: QWExtended's and QuakeForge's fix of jumps.
        #[serde(default)]
        landing_fix: bool,
    },
    /// ZQuake's reworked movement, in every MVDSV and ezQuake.
    Reworked {
        /// `pm_ktjump`: how far a jump is lifted to 270 units/s, 0 to 1.
        jump_floor: f32,
        /// `pm_airstep`: stairs are climbed in the air too.
        air_step: bool,
        /// `pm_slidefix`: gravity also acts on the ground.
        slide_fix: bool,
        /// `pm_bunnyspeedcap`: air control cannot raise speed above this multiple of the maximum; 0 is no cap.
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
