//! The weapons, and what each does.

use serde::{Deserialize, Serialize};

use hitreg_netcode::game::cells;

cells! {
    /// A weapon.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub enum WeaponId {
        /// One bullet at a time.
        Pistol,
        /// A handful of pellets, spread by the usercmd's number.
        Shotgun,
        /// A rocket, which flies for itself.
        Launcher,
    }
}

impl WeaponId {
    /// All weapons, in the order of the impulses that select them: 1, 2, 3.
    pub const ALL: [WeaponId; 3] = [WeaponId::Pistol, WeaponId::Shotgun, WeaponId::Launcher];

    /// The weapon that a usercmd's impulse selects; none by 0 and what is beyond the last.
    pub fn selected_by(impulse: u8) -> Option<WeaponId> {
        WeaponId::ALL.into_iter().find(|weapon| weapon.impulse() == impulse)
    }

    /// The impulse that selects this weapon.
    pub const fn impulse(self) -> u8 {
        self as u8 + 1
    }

    /// The name in traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            WeaponId::Pistol => "pistol",
            WeaponId::Shotgun => "shotgun",
            WeaponId::Launcher => "launcher",
        }
    }
}

/// What one weapon does. Times run down with each usercmd's own msec.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeaponRules {
    /// What leaves the muzzle.
    pub shot: Shot,
    /// Rounds that the clip takes.
    pub clip: u16,
    /// Rounds that one appears with besides the clip.
    pub reserve: u16,
    /// From one shot to the next, in ms.
    pub interval_ms: u16,
    /// To fill the clip, in ms.
    pub reload_ms: u16,
    /// To put the weapon away, in ms.
    pub holster_ms: u16,
    /// From taking it in hand to the first shot, in ms.
    pub deploy_ms: u16,
}

/// What leaves a muzzle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shot {
    /// Hits at once.
    Bullets {
        /// How many pellets one round has.
        pellets: u8,
        /// Health points that one pellet is worth, before the hitgroup counts.
        damage: i32,
        /// Half the angle of the cone, across, in degrees; 0 for a straight line.
        spread_across_deg: f32,
        /// Half the angle of the cone, up and down, in degrees.
        spread_upright_deg: f32,
        /// How far it reaches, in units.
        reach_units: f32,
    },
    /// Flies straight on until it meets something, and bursts.
    Rocket {
        /// In units/s.
        speed_units_s: f32,
        /// Health points at the centre; it falls in a line to none at the edge.
        damage: i32,
        /// How far the burst reaches, in units.
        radius_units: f32,
        /// How long it flies at most, in ms.
        life_ms: u16,
    },
    /// Flies straight to what it is going to hit, which is decided when it leaves: the first player in its line, or the
    /// map. Nobody can step out of its way any more.
    Arrow {
        /// In units/s.
        speed_units_s: f32,
        /// Health points.
        damage: i32,
        /// How far it reaches, in units.
        reach_units: f32,
    },
}

/// What the launcher is loaded with on a map that says so: arrows, slow enough to be seen for longer than a round trip.
pub(crate) const ARROWS: WeaponRules = WeaponRules {
    shot: Shot::Arrow { speed_units_s: 900.0, damage: 50, reach_units: 4_096.0 },
    clip: 6,
    reserve: 24,
    interval_ms: 700,
    reload_ms: 1_200,
    holster_ms: 200,
    deploy_ms: 400,
};

/// Half-Life deathmatch's numbers, where it has such a weapon: the 9 mm pistol, the shotgun with its deathmatch cone of 10 by 5 degrees and
/// pellets of 20. The launcher is after Quake's: quick to fire, straight, with a burst that pushes.
pub(crate) const DEFAULT_WEAPONS: [WeaponRules; 3] = [
    WeaponRules {
        shot: Shot::Bullets {
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
        shot: Shot::Bullets {
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
        shot: Shot::Rocket { speed_units_s: 1_000.0, damage: 100, radius_units: 160.0, life_ms: 5_000 },
        clip: 2,
        reserve: 10,
        interval_ms: 800,
        reload_ms: 1_800,
        holster_ms: 200,
        deploy_ms: 600,
    },
];
