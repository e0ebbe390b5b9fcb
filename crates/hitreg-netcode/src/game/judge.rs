//! How a game judges shots, and what they do to the world.

use glam::Vec3;

use super::{Body as _, Reason, ShotVerdict, Simulate, WorldSink};
use hitreg_log::units::{EntityId, PlayerId};
use hitreg_log::usercmd::Usercmd;

/// Judges shots and applies their effects. A game without shots uses the defaults.
pub trait Judge: Simulate {
    /// Judges a shot against `targets`: the other entities as the shooter saw them, or at their present places. It is
    /// not called for projectiles.
    fn judge(_rules: &Self::Rules, _fire: &Self::Fire, _targets: &[(EntityId, Self::Body)]) -> ShotVerdict {
        ShotVerdict::miss(Reason::Missed)
    }

    /// Whether a shot can hit a body.
    fn is_target(body: &Self::Body) -> bool {
        body.is_alive()
    }

    /// Whether any part of a body is visible from a place; the walls of the map may hide it. `None` if the game does
    /// not implement it.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: its start, and its direction as a unit vector.
    fn aim(_fire: &Self::Fire) -> (Vec3, Vec3) {
        (Vec3::ZERO, Vec3::X)
    }

    /// Whether the shot is a projectile that flies through the present world (Bernier's footnote 9). Its verdict is
    /// always [`Reason::Launched`]. [`WorldSink::impact`] reports what it hits later.
    fn is_projectile(_fire: &Self::Fire) -> bool {
        false
    }

    /// Applies a judged shot to the present world: damage, knockback, or the launch of a projectile.
    fn apply(
        _rules: &Self::Rules,
        _world: &mut Self::World,
        _shooter: PlayerId,
        _command: &Usercmd<Self::Input>,
        _fire: &Self::Fire,
        _verdict: &ShotVerdict,
        _out: &mut impl WorldSink,
    ) {
    }

    /// The name of a [`DamageShare::hitgroup`](super::DamageShare::hitgroup).
    fn hitgroup_name(_hitgroup: u8) -> &'static str {
        "body"
    }

    /// The name of the weapon that a shot came from.
    fn weapon_name(_fire: &Self::Fire) -> &'static str {
        "weapon"
    }
}
