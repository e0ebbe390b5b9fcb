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

hitreg_log::named!(ArenaEffect {
    Pistol = "pistol",
    Shotgun = "shotgun",
    Launcher = "launcher",
    DryFire = "dry fire",
    Reload = "reload",
    Switch = "switch",
    Jump = "jump",
    Footstep = "footstep",
    Land = "land",
    Teleport = "teleport",
    HitTone = "hit tone",
    Pain = "pain",
    Death = "death",
    Respawn = "respawn",
    Explosion = "explosion",
    ArrowHit = "arrow hit",
    Bell = "bell",
});

impl ArenaEffect {
    /// Returns the name of a number in [`Effect::kind`].
    pub fn name_of(kind: u8) -> &'static str {
        ArenaEffect::NAMES.get(usize::from(kind)).copied().unwrap_or("unknown")
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
