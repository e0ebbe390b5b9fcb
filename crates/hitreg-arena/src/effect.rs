//! The sounds and visual effects of the arena.

use glam::Vec3;

use hitreg_log::units::EntityId;
use hitreg_netcode::game::Effect;

/// A sound or a visual effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArenaEffect {
    /// A pistol shot.
    Pistol,
    /// A shotgun shot.
    Shotgun,
    /// A rocket launch.
    Launcher,
    /// A shot with an empty weapon.
    DryFire,
    /// A reload.
    Reload,
    /// A change of weapon.
    Switch,
    /// A jump.
    Jump,
    /// A footstep.
    Footstep,
    /// A landing.
    Land,
    /// A passage through a teleporter.
    Teleport,
    /// The tone that signals a hit to the shooter, as in Quake III.
    HitTone,
    /// A player taking damage.
    Pain,
    /// A player's death.
    Death,
    /// A respawn.
    Respawn,
    /// A rocket's explosion.
    Explosion,
    /// An arrow's hit.
    ArrowHit,
    /// The start of a bell's ringing.
    Bell,
}

impl ArenaEffect {
    /// All kinds, in the order of their numbers.
    pub const ALL: [ArenaEffect; 17] = [
        ArenaEffect::Pistol,
        ArenaEffect::Shotgun,
        ArenaEffect::Launcher,
        ArenaEffect::DryFire,
        ArenaEffect::Reload,
        ArenaEffect::Switch,
        ArenaEffect::Jump,
        ArenaEffect::Footstep,
        ArenaEffect::Land,
        ArenaEffect::Teleport,
        ArenaEffect::HitTone,
        ArenaEffect::Pain,
        ArenaEffect::Death,
        ArenaEffect::Respawn,
        ArenaEffect::Explosion,
        ArenaEffect::ArrowHit,
        ArenaEffect::Bell,
    ];

    /// Returns the name of a number in [`Effect::kind`].
    pub fn name_of(kind: u8) -> &'static str {
        ArenaEffect::ALL.get(usize::from(kind)).map_or("unknown", |kind| kind.name())
    }

    /// Returns the name in traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            ArenaEffect::Pistol => "pistol",
            ArenaEffect::Shotgun => "shotgun",
            ArenaEffect::Launcher => "launcher",
            ArenaEffect::DryFire => "dry fire",
            ArenaEffect::Reload => "reload",
            ArenaEffect::Switch => "switch",
            ArenaEffect::Jump => "jump",
            ArenaEffect::Footstep => "footstep",
            ArenaEffect::Land => "land",
            ArenaEffect::Teleport => "teleport",
            ArenaEffect::HitTone => "hit tone",
            ArenaEffect::Pain => "pain",
            ArenaEffect::Death => "death",
            ArenaEffect::Respawn => "respawn",
            ArenaEffect::Explosion => "explosion",
            ArenaEffect::ArrowHit => "arrow hit",
            ArenaEffect::Bell => "bell",
        }
    }

    /// Returns whether shared code causes the effect, so that a predicting client plays it without the server.
    pub const fn is_predictable(self) -> bool {
        !matches!(
            self,
            ArenaEffect::HitTone
                | ArenaEffect::Pain
                | ArenaEffect::Death
                | ArenaEffect::Respawn
                | ArenaEffect::Explosion
                | ArenaEffect::ArrowHit
                | ArenaEffect::Bell
        )
    }

    pub(crate) fn by(self, entity: EntityId, at: Vec3) -> Effect {
        Effect { kind: self as u8, entity, at, predictable: self.is_predictable() }
    }
}
