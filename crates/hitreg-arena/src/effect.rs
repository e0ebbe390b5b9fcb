//! The sounds and visual effects of the arena.

use glam::Vec3;

use hitreg_log::units::EntityId;
use hitreg_netcode::game::Effect;

/// A sound or a visual effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
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

impl EffectKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [EffectKind; 17] = [
        EffectKind::Pistol,
        EffectKind::Shotgun,
        EffectKind::Launcher,
        EffectKind::DryFire,
        EffectKind::Reload,
        EffectKind::Switch,
        EffectKind::Jump,
        EffectKind::Footstep,
        EffectKind::Land,
        EffectKind::Teleport,
        EffectKind::HitTone,
        EffectKind::Pain,
        EffectKind::Death,
        EffectKind::Respawn,
        EffectKind::Explosion,
        EffectKind::ArrowHit,
        EffectKind::Bell,
    ];

    /// Returns the name of a number in [`Effect::kind`].
    pub fn name_of(kind: u8) -> &'static str {
        EffectKind::ALL.get(usize::from(kind)).map_or("unknown", |kind| kind.name())
    }

    /// Returns the name in traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            EffectKind::Pistol => "pistol",
            EffectKind::Shotgun => "shotgun",
            EffectKind::Launcher => "launcher",
            EffectKind::DryFire => "dry fire",
            EffectKind::Reload => "reload",
            EffectKind::Switch => "switch",
            EffectKind::Jump => "jump",
            EffectKind::Footstep => "footstep",
            EffectKind::Land => "land",
            EffectKind::Teleport => "teleport",
            EffectKind::HitTone => "hit tone",
            EffectKind::Pain => "pain",
            EffectKind::Death => "death",
            EffectKind::Respawn => "respawn",
            EffectKind::Explosion => "explosion",
            EffectKind::ArrowHit => "arrow hit",
            EffectKind::Bell => "bell",
        }
    }

    /// Returns whether shared code causes the effect, so that a predicting client plays it without the server.
    pub const fn is_predictable(self) -> bool {
        !matches!(
            self,
            EffectKind::HitTone
                | EffectKind::Pain
                | EffectKind::Death
                | EffectKind::Respawn
                | EffectKind::Explosion
                | EffectKind::ArrowHit
                | EffectKind::Bell
        )
    }

    pub(crate) fn by(self, entity: EntityId, at: Vec3) -> Effect {
        Effect { kind: self as u8, entity, at, predictable: self.is_predictable() }
    }
}
