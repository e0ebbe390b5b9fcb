//! What becomes of a shot.

use hitreg_log::record::Reason;
use hitreg_log::units::EntityId;

/// Where one shot went.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Why it did or did not hurt anyone.
    pub reason: Reason,
    /// Who is hurt and how much, in ascending order of target; empty for a miss.
    pub wounds: Vec<Wound>,
}

/// The part of a shot that one target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wound {
    /// Who is hit.
    pub target: EntityId,
    /// Where: the game's numbering, named by [`Judge::hitgroup_name`](crate::game::Judge::hitgroup_name).
    pub hitgroup: u8,
    /// Health points that the hit is worth, before armour and before the target's health runs out.
    pub damage: i32,
    /// How many of the shot's pellets it took; 1 for a single bullet.
    pub pellets: u8,
}

impl Verdict {
    /// A shot that hurts nobody.
    pub fn miss(reason: Reason) -> Verdict {
        Verdict { reason, wounds: Vec::new() }
    }

    /// The wound that counts as the shot's result: the most damage, the lowest target among equals.
    pub fn main_wound(&self) -> Option<&Wound> {
        self.wounds.iter().max_by(|a, b| a.damage.cmp(&b.damage).then(b.target.cmp(&a.target)))
    }
}
