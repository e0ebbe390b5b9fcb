//! What becomes of a shot.

use crate::units::EntityId;

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
    /// Where: the game's numbering, named by [`Game::hitgroup_name`](crate::game::Game::hitgroup_name).
    pub hitgroup: u8,
    /// Health points that the hit is worth, before armour and before the target's health runs out.
    pub damage: i32,
    /// How many of the shot's pellets it took; 1 for a single bullet.
    pub pellets: u8,
}

/// Why a shot ended as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It hit somebody.
    Hit,
    /// A part of the map was in the way of a target that the line would have met.
    Blocked,
    /// The line meets nobody.
    Wide,
    /// It met somebody who is already dead at present: no damage.
    AlreadyDead,
    /// A projectile left the muzzle; its impact is a row of its own.
    Launched,
}

impl Reason {
    /// All reasons; a reason's place in this list is its code in a trace.
    pub const NAMES: [&'static str; 5] = ["hit", "blocked", "wide", "already dead", "launched"];

    /// The name that traces and reports use.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
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
