//! The result of a shot.

use super::Judge;
use hitreg_log::record::Reason;
use hitreg_log::units::EntityId;

/// The result of one shot.
#[derive(Clone, Debug, PartialEq)]
pub struct ShotVerdict {
    /// Why the shot did or did not hurt any target.
    pub reason: Reason,
    /// The wounds in ascending order of target; empty for a miss.
    pub wounds: Vec<DamageShare>,
}

/// The part of a shot's damage that one target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamageShare {
    /// The entity that was hit.
    pub target: EntityId,
    /// The body part, in the game's numbering; [`Judge::hitgroup_name`] names it.
    pub hitgroup: u8,
    /// Damage of the hit in health points, before armour and before the target's remaining health limits it.
    pub damage: i32,
    /// How many of the shot's pellets hit; 1 for a single bullet.
    pub pellets: u8,
}

impl ShotVerdict {
    /// The verdict on a shot: a projectile is launched, and [`Judge::judge`] judges every other shot.
    pub fn of<G: Judge>(rules: &G::Rules, fire: &G::Fire, targets: &[(EntityId, G::Body)]) -> ShotVerdict {
        match G::is_projectile(fire) {
            true => ShotVerdict::miss(Reason::Launched),
            false => G::judge(rules, fire, targets),
        }
    }

    /// The verdict for a shot without wounds.
    pub fn miss(reason: Reason) -> ShotVerdict {
        ShotVerdict { reason, wounds: Vec::new() }
    }

    /// The wound that counts as the shot's result: the one with the most damage. Among equals, the lowest target wins.
    pub fn main_wound(&self) -> Option<&DamageShare> {
        self.wounds.iter().max_by(|a, b| a.damage.cmp(&b.damage).then(b.target.cmp(&a.target)))
    }
}
