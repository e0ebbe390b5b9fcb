//! The sounds and visual effects of the arena.

use glam::Vec3;

use hitreg_log::units::EntityId;
use hitreg_netcode::game::Effect;

hitreg_log::named! {
    /// A sound or a visual effect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ArenaEffect {
        /// A pistol shot.
        Pistol = "pistol",
        /// A shotgun shot.
        Shotgun = "shotgun",
        /// A rocket launch.
        Launcher = "launcher",
        /// A shot with an empty weapon.
        DryFire = "dry fire",
        /// A reload.
        Reload = "reload",
        /// A change of weapon.
        Switch = "switch",
        /// A jump.
        Jump = "jump",
        /// A footstep.
        Footstep = "footstep",
        /// A landing.
        Land = "land",
        /// A passage through a teleporter.
        Teleport = "teleport",
        /// The tone that signals a hit to the shooter, as in Quake III.
        HitTone = "hit tone",
        /// A player taking damage.
        Pain = "pain",
        /// A player's death.
        Death = "death",
        /// A respawn.
        Respawn = "respawn",
        /// A rocket's explosion.
        Explosion = "explosion",
        /// An arrow's hit.
        ArrowHit = "arrow hit",
        /// The start of a bell's ringing.
        Bell = "bell",
    }
}

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
