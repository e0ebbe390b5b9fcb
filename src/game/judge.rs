//! What a game says about shots: where they go, and what they do.

use glam::Vec3;

use super::{Simulate, Verdict, WorldSink};
use crate::units::{EntityId, PlayerId};
use crate::usercmd::Usercmd;

/// Judging shots, and letting them act.
pub trait Judge: Simulate {
    /// Where a shot goes among `targets`, which are the others as the shooter saw them, or as they are now.
    fn judge(rules: &Self::Rules, fire: &Self::Fire, targets: &[(EntityId, Self::Body)]) -> Verdict;

    /// Whether any part of a body can be seen from a place, with the map in the way. `None` where the game does not say.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: from where, in which direction (a unit vector).
    fn aim(fire: &Self::Fire) -> (Vec3, Vec3);

    /// True for what flies on its own through the present (Bernier's footnote 9): such a shot is launched, never judged
    /// against a past.
    fn is_projectile(_fire: &Self::Fire) -> bool {
        false
    }

    /// Lets a judged shot act on the present world: damage, knockback, or a projectile leaving its muzzle.
    fn apply(
        rules: &Self::Rules,
        world: &mut Self::World,
        shooter: PlayerId,
        command: &Usercmd,
        fire: &Self::Fire,
        verdict: &Verdict,
        out: &mut impl WorldSink,
    );

    /// The name of a [`Wound::hitgroup`](super::Wound::hitgroup).
    fn hitgroup_name(hitgroup: u8) -> &'static str;

    /// The name of the weapon that a shot came from.
    fn weapon_name(fire: &Self::Fire) -> &'static str;
}
