//! Sounds and sights of the arena.

use glam::Vec3;

use hitreg_log::units::EntityId;
use hitreg_netcode::game::Effect;

/// A sound or sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// A pistol going off.
    Pistol,
    /// A shotgun going off.
    Shotgun,
    /// A rocket leaving.
    Launcher,
    /// A trigger pulled on nothing.
    DryFire,
    /// A clip being changed.
    Reload,
    /// A weapon being put away for another.
    Switch,
    /// Legs leaving the ground.
    Jump,
    /// A foot being put down.
    Footstep,
    /// Coming down.
    Land,
    /// Going through a teleporter.
    Teleport,
    /// The tone that tells shooters of a hit, as in Quake III.
    HitTone,
    /// Somebody hurt.
    Pain,
    /// Somebody dying.
    Death,
    /// Somebody coming back.
    Respawn,
    /// A rocket bursting.
    Explosion,
    /// An arrow sticking.
    ArrowHit,
    /// A bell beginning to ring.
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

    /// The name of a number in [`Effect::kind`].
    pub fn name_of(kind: u8) -> &'static str {
        EffectKind::ALL.get(usize::from(kind)).map_or("unknown", |kind| kind.name())
    }

    /// The name in traces and reports.
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

    /// Whether shared code gives it off, so that clients play their own without being told.
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
