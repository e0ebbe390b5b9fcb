//! What a game says about shots: where they go, and what they do.

use glam::Vec3;

use super::{BadCells, Reason, Simulate, Verdict, WorldSink};
use crate::record::Session;
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};
use crate::usercmd::Usercmd;

/// Judging shots, and letting them act. A game without shots leaves all of it out.
pub trait Judge: Simulate {
    /// Where a shot goes among `targets`, which are the others as the shooter saw them, or as they are now.
    fn judge(_rules: &Self::Rules, _fire: &Self::Fire, _targets: &[(EntityId, Self::Body)]) -> Verdict {
        Verdict::miss(Reason::Missed)
    }

    /// Whether any part of a body can be seen from a place, with the map in the way. `None` where the game does not say.
    fn sees(_rules: &Self::Rules, _from: Vec3, _body: &Self::Body) -> Option<bool> {
        None
    }

    /// The line along which a shot is aimed: from where, in which direction (a unit vector).
    fn aim(_fire: &Self::Fire) -> (Vec3, Vec3) {
        (Vec3::ZERO, Vec3::X)
    }

    /// True for what flies on its own through the present (Bernier's footnote 9): such a shot is launched, never judged
    /// against a past.
    fn is_projectile(_fire: &Self::Fire) -> bool {
        false
    }

    /// Lets a judged shot act on the present world: damage, knockback, or a projectile leaving its muzzle.
    fn apply(
        _rules: &Self::Rules,
        _world: &mut Self::World,
        _shooter: PlayerId,
        _command: &Usercmd,
        _fire: &Self::Fire,
        _verdict: &Verdict,
        _out: &mut impl WorldSink,
    ) {
    }

    /// The hits that a recording of another server tells, judged again as that server judges; none where the game does not know how.
    ///
    /// # Errors
    /// When a recorded state is none of this game's.
    fn hits_again(_rules: &Self::Rules, _session: &Session) -> Result<Vec<HitAgain>, BadCells> {
        Ok(Vec::new())
    }

    /// The name of a [`Wound::hitgroup`](super::Wound::hitgroup).
    fn hitgroup_name(_hitgroup: u8) -> &'static str {
        "body"
    }

    /// The name of the weapon that a shot came from.
    fn weapon_name(_fire: &Self::Fire) -> &'static str {
        "weapon"
    }
}

/// A hit that another server gave.
#[derive(Clone, Debug, PartialEq)]
pub struct HitAgain {
    /// Who hit.
    pub shooter: PlayerId,
    /// When the shooter was told.
    pub at: Micros,
    /// With what.
    pub weapon: &'static str,
    /// Whom, where that was recorded.
    pub target: Option<EntityId>,
    /// The shot that comes nearest to it; `None` where no shot is known by then, or nobody knows where the target was.
    pub judged: Option<JudgedAgain>,
}

/// A shot, held against where its target was when it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedAgain {
    /// The usercmd that fired it.
    pub command: CommandSeq,
    /// The target.
    pub target: EntityId,
    /// Where it was.
    pub origin: Vec3,
    /// How far back that was.
    pub rewind: Micros,
    /// How far beside the target the shot passes: nothing where it goes through it.
    pub off_units: f32,
    /// The same of the outermost that the weapon's spread allows.
    pub beyond_spread_units: f32,
    /// How far beside the target it would have passed without going back; `None` where nobody knows where it was.
    pub off_present_units: Option<f32>,
}
