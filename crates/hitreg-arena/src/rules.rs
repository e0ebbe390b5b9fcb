//! What does not change during a session.

use serde::{Deserialize, Serialize};

use super::hitbox::Hitgroup;
use super::map::ArenaMap;
use super::pmove::MoveVars;
use super::weapon::{ARROWS, DEFAULT_WEAPONS, WeaponId, WeaponRules};

/// Map, movement, weapons and the course of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaRules {
    /// Where one plays.
    pub map: ArenaMap,
    /// How players move.
    pub movement: MoveVars,
    /// The weapons, in the order of [`WeaponId::ALL`].
    pub weapons: [WeaponRules; 3],
    /// By how much a hit counts, for each [`Hitgroup`] in the order of its numbers. Default: 3 for the head, 1 elsewhere, as
    /// Half-Life's skill settings say for players.
    pub hitgroup_factors: [f32; Hitgroup::ALL.len()],
    /// Whether living players stop each other. Default: true.
    pub player_collision: bool,
    /// Health points that one appears with. Default: 100.
    pub health: i32,
    /// From death to the next life, in ms. Default: 2,000.
    pub respawn_ms: u32,
    /// How fast a hit pushes per health point that it costs, in units/s. Default: 5, as Half-Life's.
    pub knockback_units_s: f32,
    /// The most that one hit pushes, in units/s. Default: 1,000, as Half-Life's.
    pub knockback_limit_units_s: f32,
    /// What share of a burst's damage its own shooter takes. Default: 0.5, as Quake's.
    pub own_burst_factor: f32,
}

impl ArenaRules {
    /// Half-Life deathmatch's rules on a map. The map says whether the launcher is loaded with arrows.
    pub fn new(map: ArenaMap) -> ArenaRules {
        let [pistol, shotgun, launcher] = DEFAULT_WEAPONS;
        let launcher = if map.props().arrows { ARROWS } else { launcher };
        ArenaRules {
            map,
            movement: MoveVars::default(),
            weapons: [pistol, shotgun, launcher],
            hitgroup_factors: [1.0, 3.0, 1.0, 1.0, 1.0],
            player_collision: true,
            health: 100,
            respawn_ms: 2_000,
            knockback_units_s: 5.0,
            knockback_limit_units_s: 1_000.0,
            own_burst_factor: 0.5,
        }
    }

    /// The rules of one weapon.
    pub fn weapon(&self, weapon: WeaponId) -> &WeaponRules {
        &self.weapons[weapon as usize]
    }
}

impl Default for ArenaRules {
    fn default() -> ArenaRules {
        ArenaRules::new(ArenaMap::courtyard())
    }
}
