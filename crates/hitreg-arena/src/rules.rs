//! The rules of a session and of its weapons, which are constant.

use serde::{Deserialize, Serialize};

use crate::map::ArenaMap;
use crate::pmove::MoveVars;
use crate::shot::Hitgroup;
use hitreg_netcode::game::cells;

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

cells! {
    /// A weapon.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub enum WeaponId {
        /// Fires single bullets.
        Pistol,
        /// Fires several pellets, whose spread follows from the usercmd's number.
        Shotgun,
        /// Launches a rocket.
        Launcher,
    }
}

hitreg_log::named!(WeaponId { Pistol = "pistol", Shotgun = "shotgun", Launcher = "launcher" });

impl WeaponId {
    /// Returns the weapon that a usercmd's impulse selects; `None` for 0 and for unknown impulses.
    pub fn selected_by(impulse: u8) -> Option<WeaponId> {
        WeaponId::ALL.into_iter().find(|weapon| weapon.impulse() == impulse)
    }

    /// Returns the impulse that selects this weapon.
    pub const fn impulse(self) -> u8 {
        self as u8 + 1
    }
}

/// The rules of one weapon. Times run down by the duration of each usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeaponRules {
    /// The kind of shot.
    pub shot: Muzzle,
    /// The capacity of the clip, in rounds.
    pub clip: u16,
    /// The rounds of a spawned player outside the clip.
    pub reserve: u16,
    /// The time between shots, in ms.
    pub interval_ms: u16,
    /// The time to fill the clip, in ms.
    pub reload_ms: u16,
    /// The time to put the weapon away, in ms.
    pub holster_ms: u16,
    /// The time from selecting the weapon to the first shot, in ms.
    pub deploy_ms: u16,
}

/// The kinds of shot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Muzzle {
    /// Bullets, which hit immediately.
    Bullets {
        /// The pellets per round.
        pellets: u8,
        /// The damage of one pellet in health points, before the hitgroup factor.
        damage: i32,
        /// Half the horizontal angle of the cone, in degrees; 0 for a straight line.
        spread_across_deg: f32,
        /// Half the vertical angle of the cone, in degrees.
        spread_upright_deg: f32,
        /// The range in units.
        reach_units: f32,
    },
    /// A rocket, which flies straight until it hits something, and explodes.
    Rocket {
        /// The speed in units/s.
        speed_units_s: f32,
        /// The damage at the centre in health points; it falls linearly to 0 at the edge.
        damage: i32,
        /// The radius of the explosion in units.
        radius_units: f32,
        /// The longest flight in ms.
        life_ms: u16,
    },
    /// An arrow, which flies straight to a target that is decided at launch: the first player in its line, or the map.
    /// The target cannot avoid it.
    Arrow {
        /// The speed in units/s.
        speed_units_s: f32,
        /// The damage in health points.
        damage: i32,
        /// The range in units.
        reach_units: f32,
    },
}

/// The launcher's rules on a map with arrows. Arrows are slow enough to be visible for longer than a round trip.
const ARROWS: WeaponRules = WeaponRules {
    shot: Muzzle::Arrow { speed_units_s: 900.0, damage: 50, reach_units: 4_096.0 },
    clip: 6,
    reserve: 24,
    interval_ms: 700,
    reload_ms: 1_200,
    holster_ms: 200,
    deploy_ms: 400,
};

/// The default rules, with Half-Life deathmatch's numbers for weapons that it has. These are the 9 mm pistol, and the
/// shotgun with its deathmatch cone of 10 by 5 degrees and pellets of 20. The launcher is modelled on Quake's: quick,
/// straight, and with knockback.
const DEFAULT_WEAPONS: [WeaponRules; 3] = [
    WeaponRules {
        shot: Muzzle::Bullets {
            pellets: 1,
            damage: 12,
            spread_across_deg: 0.0,
            spread_upright_deg: 0.0,
            reach_units: 8_192.0,
        },
        clip: 17,
        reserve: 119,
        interval_ms: 300,
        reload_ms: 1_500,
        holster_ms: 150,
        deploy_ms: 500,
    },
    WeaponRules {
        shot: Muzzle::Bullets {
            pellets: 4,
            damage: 20,
            spread_across_deg: 5.0,
            spread_upright_deg: 2.5,
            reach_units: 2_048.0,
        },
        clip: 8,
        reserve: 32,
        interval_ms: 750,
        reload_ms: 2_000,
        holster_ms: 150,
        deploy_ms: 500,
    },
    WeaponRules {
        shot: Muzzle::Rocket { speed_units_s: 1_000.0, damage: 100, radius_units: 160.0, life_ms: 5_000 },
        clip: 2,
        reserve: 10,
        interval_ms: 800,
        reload_ms: 1_800,
        holster_ms: 200,
        deploy_ms: 600,
    },
];
