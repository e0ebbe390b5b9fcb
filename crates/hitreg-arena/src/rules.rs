//! The rules of a session, which are constant.

use serde::{Deserialize, Serialize};

use super::hitbox::Hitgroup;
use super::map::ArenaMap;
use super::pmove::MoveVars;
use super::weapon::{ARROWS, DEFAULT_WEAPONS, WeaponId, WeaponRules};

/// The map, movement, weapons and other rules of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaRules {
    /// The map.
    pub map: ArenaMap,
    /// The movement rules.
    pub movement: MoveVars,
    /// The weapons, in the order of [`WeaponId::ALL`].
    pub weapons: [WeaponRules; 3],
    /// The damage factor of each [`Hitgroup`], in order of number. Default: 3 for the head, 1 elsewhere, as in
    /// Half-Life's skill settings for players.
    pub hitgroup_factors: [f32; Hitgroup::ALL.len()],
    /// Whether living players block each other. Default: true.
    pub player_collision: bool,
    /// The health points of a spawned player. Default: 100.
    pub health: i32,
    /// The time from death to respawn, in ms. Default: 2,000.
    pub respawn_ms: u32,
    /// The knockback per health point of damage, in units/s. Default: 5, as in Half-Life.
    pub knockback_units_s: f32,
    /// The greatest knockback of one hit, in units/s. Default: 1,000, as in Half-Life.
    pub knockback_limit_units_s: f32,
    /// The share of an explosion's damage that its own shooter takes. Default: 0.5, as in Quake.
    pub own_burst_factor: f32,
}

impl ArenaRules {
    /// Returns Half-Life deathmatch's rules on a map. The map decides whether the launcher is loaded with arrows.
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

    /// Returns the rules of one weapon.
    pub fn weapon(&self, weapon: WeaponId) -> &WeaponRules {
        &self.weapons[weapon as usize]
    }
}

impl Default for ArenaRules {
    fn default() -> ArenaRules {
        ArenaRules::new(ArenaMap::courtyard())
    }
}
